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

/* Rounded to the nearest. */
static uint32_t between(uint32_t first, uint32_t last, double share)
{
    return (uint32_t)lround((double)first + share * ((double)last - (double)first));
}

static struct epoch_choice decay_choose(struct scheduler *scheduler,
                                        const struct epoch_state *state)
{
    const struct scheduler_decay *options = &((struct decay *)scheduler)->options;
    const double share =
        options->epoch_count > 0 ? fmin((double)state->epoch / options->epoch_count, 1) : 0;
    const uint32_t memory_last_mb =
        options->memory_last_mb ? options->memory_last_mb : options->memory_mb;
    return (struct epoch_choice){
        between(options->function_first, options->function_last, share),
        between(options->memory_mb, memory_last_mb, share),
    };
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

struct grow {
    struct scheduler scheduler;
    struct epoch_choice first, last;
};

static struct epoch_choice grow_choose(struct scheduler *scheduler, const struct epoch_state *state)
{
    const struct grow *grow = (const struct grow *)scheduler;
    const double factor = ldexp(1, state->epoch < 30 ? (int)state->epoch : 30);
    const double count = grow->first.function_count * factor;
    if (count >= grow->last.function_count)
        return grow->last;
    return (struct epoch_choice){(uint32_t)count, grow->first.memory_mb};
}

static const struct scheduler_ops grow_ops = {
    .name = "grow", .choose = grow_choose, .free = plain_free};

struct scheduler *scheduler_new_grow(struct epoch_choice first, struct epoch_choice last)
{
    struct grow *grow = memory_zeroed(1, sizeof(*grow));
    grow->scheduler.ops = &grow_ops;
    grow->first = first;
    grow->last = last;
    return &grow->scheduler;
}
