/*
 * Progress: shows a running job: a block of lines redrawn in place on a terminal, a plain line now
 * and then elsewhere.
 *
 * `job submit`, `job wait` and `demo` share it. It draws what it is given and knows nothing of
 * where that came from.
 */
#pragma once

#include "base/clock.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PROGRESS_LENDERS_MAX = 64, PROGRESS_NAME_SIZE = 48, PROGRESS_REASON_SIZE = 200 };

struct progress_lender {
    uint64_t lease;
    char name[PROGRESS_NAME_SIZE];
    bool is_server; /* the parameter server: trains nothing, shown without a share */
    bool is_gone;   /* lost, failed or unreachable */
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
    int64_t spent_micro;
    int64_t held_micro;
    struct progress_lender lenders[PROGRESS_LENDERS_MAX];
    uint32_t lender_count; /* more are not shown */
};

struct progress_options {
    FILE *file;       /* standard error as a rule */
    const char *unit; /* of what is spent; NULL: credits */
    bool is_terminal; /* redraw in place */
    bool has_color;
    bool is_quiet;   /* draw nothing */
    uint32_t width;  /* of the terminal; 0: asked for, or 80 */
    int64_t line_ms; /* elsewhere: a line at most this often; 0: 5 s */
    const struct clock *clock;
};

struct progress;
struct progress *progress_new(const struct progress_options *options);
/* Leaves what was drawn on the screen. NULL is fine. */
void progress_free(struct progress *progress);
DEFINE_AUTO(progress);

void progress_draw(struct progress *progress, const struct progress_view *view);
/* Draws a last time whatever was drawn before, and ends the block: what is printed next stands
 * below it. */
void progress_end(struct progress *progress, const struct progress_view *view);

/* A worker's part of all samples so far, 0 to 1. */
double progress_share(const struct progress_view *view, const struct progress_lender *lender);
