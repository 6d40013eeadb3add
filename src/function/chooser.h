/*
 * Chooser: how many functions the next epoch has, and how large they are. Pure.
 *
 * One call between two epochs: what was seen goes in, a choice comes out. A scheduler that learns
 * is another such function.
 */
#pragma once

#include <stdint.h>

struct function_choice {
    uint32_t function_count;
    uint32_t memory_mb;
};

/* One epoch as it was. Times are means over the calls but for total_s. */
struct function_seen {
    struct function_choice choice;
    double loss; /* after it; on the test data */
    double fetch_s, compute_s, update_s;
    double total_s;             /* from barrier to barrier */
    double memory_use, cpu_use; /* shares of what the functions had, 0 to 1 */
    int64_t cost_micro;
    uint64_t call_count, failure_count;
};

struct function_state {
    uint64_t epoch, epoch_max;        /* the one to be chosen, from 0 */
    double loss;                      /* of the model as it is, on the test data */
    const struct function_seen *seen; /* of the epoch before; NULL before the first */
    int64_t budget_micro;             /* left; INT64_MAX: there is none */
    int64_t held_micro;               /* of it, by calls of as many functions as last; not spent */
};

typedef struct function_choice function_chooser(void *context, const struct function_state *state);
