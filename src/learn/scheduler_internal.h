/* Scheduler, for those who are one: a scheduler begins with its ops. */
#pragma once

#include "learn/scheduler.h"

struct scheduler_ops {
    const char *name;
    struct epoch_choice (*choose)(struct scheduler *scheduler, const struct epoch_state *state);
    void (*see)(struct scheduler *scheduler, const struct epoch_seen *seen); /* may be NULL */
    void (*free)(struct scheduler *scheduler);
};

struct scheduler {
    const struct scheduler_ops *ops;
};
