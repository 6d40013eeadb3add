/*
 * Chooser by a scheduler of learn/: what the driver saw, in the words it knows.
 */
#pragma once

#include "function/chooser.h"
#include "learn/scheduler.h"

struct chooser_scheduler {
    struct scheduler *scheduler; /* borrowed */
    struct epoch_state state;    /* zero at first */
};

/* The context is a struct chooser_scheduler. */
function_chooser chooser_scheduler;
