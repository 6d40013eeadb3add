/*
 * Earnings: what the machine has earned by the market's word, and how much of that today.
 *
 * The market says the sum since the machine was enlisted. What it was when the day (UTC) was first
 * seen is kept in the state folder, earnings.json, with the last sum, for times without the market.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"

#include <stdint.h>

struct earnings {
    int64_t earned_micro;   /* by verified work for others, less fees */
    int64_t withheld_micro; /* of it, until the machine is proven */
    int64_t told_ms;        /* UTC, when the market said so; 0: it never did */
    int64_t day;            /* since 1970 */
    int64_t before_micro;   /* earned before that day */
    int64_t stored_ms;      /* when it was written last */
};

/* NOT_FOUND when nothing was kept. */
MUST_CHECK int earnings_load(const char *state_dir, struct earnings *out_earnings,
                             struct error *error);
MUST_CHECK int earnings_store(const char *state_dir, const struct earnings *earnings,
                              struct error *error);

/* The market's word at `now_ms`, UTC. True when it is time to keep it: on a new day, and once a
 * minute. */
bool earnings_take(struct earnings *earnings, int64_t earned_micro, int64_t withheld_micro,
                   int64_t now_ms);

int64_t earnings_today_micro(const struct earnings *earnings, int64_t now_ms);

/* Fields of an object that is open. */
void earnings_write(const struct earnings *earnings, int64_t now_ms, struct json_writer *writer);
