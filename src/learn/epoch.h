/*
 * Epoch: what a scheduler of elastic training chooses and sees.
 *
 * An epoch is one pass over the data. Between two epochs the scheduler chooses how many functions
 * run the next and how much memory each has; all else of the epoch is then seen, not chosen. Losses
 * are above 0. Times are in seconds of the job, amounts in microcredits.
 */
#pragma once

#include <stdint.h>

enum {
    EPOCH_FUNCTIONS_MAX = 10000,
    EPOCH_MEMORY_LEVELS_MAX = 64,
    EPOCH_COUNT_MAX = 1000,
};

struct epoch_choice {
    uint32_t function_count;
    uint32_t memory_mb;
};

struct epoch_space {
    uint32_t function_max;
    uint32_t memory_min_mb, memory_step_mb, memory_max_mb;
};

/* How the loss falls (epoch_model.h): towards a floor that rises with the functions, as in the
 * simulated worlds, or with the work that goes in, as real jobs do whose updates are averaged. */
enum epoch_loss_form { EPOCH_LOSS_FLOOR, EPOCH_LOSS_WORK };

/* What is known of a job before it runs. */
struct epoch_task {
    struct epoch_space space;
    enum epoch_loss_form loss_form;
    double loss_start, loss_target;
    double price; /* credits for a GiB of memory held for a second */
    int64_t budget_micro;
    uint32_t epoch_max;
};

/* One epoch as it was. */
struct epoch_seen {
    struct epoch_choice choice;
    double loss_before, loss_after;
    double fetch_s, compute_s, update_s; /* means over the functions */
    double total_s;                      /* with the start of the functions */
    double memory_use, cpu_use;          /* shares, 0 to 1 */
    int64_t cost_micro;
};

/* Where a job stands when the next epoch is to be chosen. */
struct epoch_state {
    uint32_t epoch; /* epochs that ended */
    double loss;
    double elapsed_s;
    int64_t left_micro;     /* of the budget */
    struct epoch_seen last; /* zero before the first */
};

uint32_t epoch_memory_level_count(const struct epoch_space *space);
uint32_t epoch_memory_at(const struct epoch_space *space, uint32_t level);

/* The nearest choice the space has. */
struct epoch_choice epoch_round(const struct epoch_space *space, double function_count,
                                double memory_mb);

/* Rounded up. */
int64_t epoch_cost_micro(const struct epoch_task *task, struct epoch_choice choice, double total_s);
