/* What driver.c and driver_epoch.c share. */
#pragma once

#include "function/driver.h"
#include "function/epoch_plan.h"

enum { DRIVER_PUBLISH_ATTEMPTS = 3 }; /* of a store that is away */

/* Sums over the calls of an epoch. */
struct tally {
    int64_t fetch_us, compute_us, update_us, billed_ms, cost_micro;
    double memory_use;
    uint64_t calls, failures;
};

struct driver {
    struct driver_options options;
    struct epoch_plan *plan;
    struct work_request *ready; /* updates that may not be added yet */
    size_t ready_count;
    struct function_choice choice;
    struct function_seen seen;
    struct tally tally;
    struct purse purse;
    struct loop_timer *timer; /* after calls were throttled */
    int64_t pause_ms;
    int64_t throttled_ns; /* since when all calls are; 0: they are not */
    uint32_t running;
    int64_t time_ms, longest_ms, epoch_ns;
    bool is_ending, has_ended;
    bool is_memory_told; /* that calls had another memory than they were to have */
    uint64_t epoch;
    bool is_told; /* of the epoch, how it ended */
    struct driver_outcome outcome;
    float *best;
    bool has_best;
    double loss; /* measured last */
};

int64_t driver_now_ns(const struct driver *driver);
/* Whatever runs is waited for; the first reason stays. */
void driver_finish(struct driver *driver, enum driver_end end, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What a call of this epoch costs at the most. */
int64_t driver_call_most(const struct driver *driver);
/* What is spent if nothing is heard any more of the calls that may be under way. */
int64_t driver_may_spend(const struct driver *driver);
/* "all 3 epochs are done"; returns `out`. */
const char *driver_done_words(uint64_t epochs, char *out, size_t size);
/* Keeps the model if it is the best yet. */
MUST_CHECK int driver_measure(struct driver *driver, struct driver_measure *out_measure,
                              struct error *error);
MUST_CHECK int driver_begin_epoch(struct driver *driver, struct error *error);
/* All are back and every batch is in. What the epoch made is measured before it is published: it
 * may be the best, whatever becomes of the store. */
void driver_end_epoch(struct driver *driver);
/* What the epoch has so far may be better than where it began. */
void driver_end_short(struct driver *driver);
