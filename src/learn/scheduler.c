#include "base/memory.h"
#include "learn/scheduler_internal.h"

#include <math.h>
#include <stdlib.h>

void scheduler_free(struct scheduler *scheduler)
{
    if (scheduler)
        scheduler->ops->free(scheduler);
}

const char *scheduler_name(const struct scheduler *scheduler)
{
    return scheduler->ops->name;
}

struct epoch_choice scheduler_choose(struct scheduler *scheduler, const struct epoch_state *state)
{
    return scheduler->ops->choose(scheduler, state);
}

void scheduler_see(struct scheduler *scheduler, const struct epoch_seen *seen)
{
    if (scheduler->ops->see)
        scheduler->ops->see(scheduler, seen);
}

struct constant {
    struct scheduler scheduler;
    struct epoch_choice choice;
};

static void plain_free(struct scheduler *scheduler)
{
    free(scheduler);
}

static struct epoch_choice constant_choose(struct scheduler *scheduler,
                                           const struct epoch_state *state __attribute__((unused)))
{
    return ((struct constant *)scheduler)->choice;
}

static const struct scheduler_ops constant_ops = {
    .name = "constant", .choose = constant_choose, .free = plain_free};

struct scheduler *scheduler_new_constant(struct epoch_choice choice)
{
    struct constant *constant = memory_zeroed(1, sizeof(*constant));
    constant->scheduler.ops = &constant_ops;
    constant->choice = choice;
    return &constant->scheduler;
}

struct decay {
    struct scheduler scheduler;
    struct scheduler_decay options;
};

static struct epoch_choice decay_choose(struct scheduler *scheduler,
                                        const struct epoch_state *state)
{
    const struct scheduler_decay *options = &((struct decay *)scheduler)->options;
    const double share = fmin((double)state->epoch / options->epoch_count, 1);
    const double first = options->function_first, last = options->function_last;
    return (struct epoch_choice){(uint32_t)lround(first + share * (last - first)),
                                 options->memory_mb};
}

static const struct scheduler_ops decay_ops = {
    .name = "decay", .choose = decay_choose, .free = plain_free};

struct scheduler *scheduler_new_decay(const struct scheduler_decay *options)
{
    struct decay *decay = memory_zeroed(1, sizeof(*decay));
    decay->scheduler.ops = &decay_ops;
    decay->options = *options;
    return &decay->scheduler;
}
