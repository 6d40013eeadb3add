/*
 * Progress view: what there is to show of a running job at one moment.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { PROGRESS_LENDERS_MAX = 64, PROGRESS_NAME_SIZE = 48, PROGRESS_REASON_SIZE = 200 };

struct progress_lender {
    uint64_t lease;
    char name[PROGRESS_NAME_SIZE];
    bool is_server; /* the parameter server: trains nothing, shown without a share */
    uint64_t rank;
    bool is_silent;                 /* not heard: it may still run */
    bool is_gone;                   /* lost, failed, or taken back */
    bool has_successor;             /* then that one is shown in its place */
    char after[PROGRESS_NAME_SIZE]; /* whose successor it is; "": nobody's */
    uint64_t steps;
    uint64_t samples;
    uint64_t commits;
    double steps_per_second; /* 0: not known yet */
};

struct progress_view {
    char name[72];
    char state[16];
    char reason[PROGRESS_REASON_SIZE];
    int64_t elapsed_ms;     /* since it began to run */
    int64_t expected_ms;    /* 0: not known */
    int64_t min_ms;         /* before it no target accuracy ends the job; 0: none */
    double loss;            /* NaN: not known */
    double test_accuracy;   /* NaN: not known */
    double target_accuracy; /* 0: none */
    double target_loss;     /* 0: none */
    bool is_number;         /* told: then the accuracy is R^2 */
    bool is_local;          /* trains here: nothing is spent */
    double done;            /* of a local one: the share of its epochs */
    int64_t away_ms;        /* the market has not answered for so long */
    int64_t spent_micro;
    int64_t held_micro;
    struct progress_lender lenders[PROGRESS_LENDERS_MAX];
    uint32_t lender_count; /* more are not shown */
};
