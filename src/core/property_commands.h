/*
 * Random commands for property tests: mostly sensible, so that most are done, and now and then
 * wrong in one way. The same seed and the same states give the same commands.
 */
#pragma once

#include "base/random.h"
#include "core/core.h"

struct property_world {
    struct random random;
    const struct core *core; /* what the commands are about; only looked at */
    int64_t now_ms;
    int quiet_steps;             /* to come, in which there is little but time and work */
    char name[MARKET_NAME_SIZE]; /* of an account or a group to be */
    /* What the last command points to. */
    struct span spans[4];
    struct offer_account accounts[1];
};

/* Its texts are constants or the world's, as its arrays are: good until the next. */
struct command property_command(struct property_world *world);

/* Moves now_ms on, now and then straight to the next wake, where the limits are, or back. */
void property_pass_time(struct property_world *world);
