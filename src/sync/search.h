/*
 * Commit rate search: which number of commits per check period makes the loss fall fastest.
 *
 * The owner runs one check period at search->candidate, gives the period's reward to
 * rate_search_feed, and goes on until is_active is false; then `candidate` is the rate to keep.
 *
 * paper: candidates go up by one from 1 and are compared one after the other; the first that is not
 * better than the one before ends it.
 * auto: the current rate A is tried against B = 2A (then A/2) in the order A B B A, so that the
 * flattening of the curve weighs on both alike; B wins when it is 5 % better. A winner is tried on
 * in its direction.
 */
#pragma once

#include "sync/reward.h"

struct rate_search {
    enum sync_search mode;
    bool is_active;
    uint32_t candidate; /* commits per check period, 1..rate_max */
    uint32_t rate_max;

    uint32_t base;       /* auto: A */
    uint32_t challenger; /* auto: B */
    bool is_going_down;
    bool has_won;
    uint32_t fed_count; /* periods of this pairing */
    uint32_t pairing_count;
    struct sync_reward rewards[4];
    bool has_previous; /* paper */
    struct sync_reward previous;
};

/* With mode off, or nothing to compare, it is not active afterwards and candidate = rate. */
void rate_search_begin(struct rate_search *search, enum sync_search mode, uint32_t rate,
                       uint32_t rate_max);
/* The reward of the period just run at `candidate`. */
void rate_search_feed(struct rate_search *search, const struct sync_reward *reward);
/* Ends it where it stands, keeping the best rate known. */
void rate_search_abandon(struct rate_search *search);
