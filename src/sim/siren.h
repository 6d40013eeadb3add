/*
 * Siren: the world in which schedulers of elastic training are compared: functions that fetch,
 * compute and update, and a loss that falls, epoch by epoch, in virtual time.
 *
 *     paper  what the figures of Siren's own simulation imply: 309 epochs of 6.30 + 1354.5/n
 *            seconds at 1.47e-4 credits for a function's second, whatever the memory. The number of
 *            epochs is fixed there, so that a constant n is best and no scheduler can gain.
 *     floor  the form of learn/epoch_model.h: the noise floor of the loss rises with n, so that
 *            scheduling pays. Every constant is drawn by the seed, evenly within 30 % around the
 *            typical one, and is not told to any scheduler.
 *     sgd    times and costs of that form, a function for 50 of its functions and an epoch for ten
 *            of its epochs; the loss is what real training makes of it (siren_sgd.h). There is no
 *            bound, as nobody can know what a schedule will do.
 *
 * With noise an epoch's times are multiplied by a log-normal of deviation 5 %, and the loss it ends
 * with by one of 1.5 %; both have mean 1. The loss is so, it is not only seen so. In `sgd` the
 * noise of the loss is the training's own and always there: each episode has its own first model
 * and order of records.
 *
 * A run that would pass its budget is stopped in the middle of that epoch, with all of the budget
 * spent and the loss as it was: the budget is never passed.
 */
#pragma once

#include "base/error.h"
#include "base/random.h"
#include "learn/epoch_model.h"
#include "sim/siren_sgd.h"

#include <stdbool.h>
#include <stdint.h>

enum siren_mode {
    SIREN_PAPER,
    SIREN_FLOOR,
    SIREN_SGD,
    SIREN_MODE_COUNT,
};

extern const char *const siren_mode_names[SIREN_MODE_COUNT + 1]; /* ends with NULL */

struct siren_world {
    enum siren_mode mode;
    struct epoch_model truth;
    struct epoch_task task; /* without a budget */
    struct siren_sgd *sgd;  /* of SIREN_SGD, set by who opened it: one run at a time; else NULL */
};

/* The same seed, the same world. */
struct siren_world siren_world_draw(enum siren_mode mode, uint64_t seed);
/* Whether episodes differ: the constants are then found on others than count. */
bool siren_world_varies(const struct siren_world *world, bool is_noisy);
/* The typical constants themselves. */
struct siren_world siren_world_typical(enum siren_mode mode);

enum siren_end {
    SIREN_RUNNING,
    SIREN_REACHED,   /* the target */
    SIREN_EXHAUSTED, /* the budget */
    SIREN_TOO_LONG,  /* epoch_max */
};

/* One run. Plain data; but for `sgd` a copy goes on alone. */
struct siren {
    const struct siren_world *world;
    struct epoch_task task;
    struct epoch_state state;
    enum siren_end end;
    bool is_noisy;
    struct random noise;
};

struct siren_options {
    const struct siren_world *world;
    int64_t budget_micro;
    bool is_noisy;
    uint64_t episode; /* which noise, and which first model */
};

void siren_begin(struct siren *siren, const struct siren_options *options);

/* Runs one epoch while SIREN_RUNNING; the choice is of the task's space. */
void siren_step(struct siren *siren, struct epoch_choice choice);

int64_t siren_spent_micro(const struct siren *siren);
