/*
 * For tests of prices: what was counted in the last slot that ended, and a small job to count.
 */
#pragma once

#include "core/testing_internal.h"

#define HOUR_MS      INT64_C(3600000)
#define SLOT_ENDS_MS INT64_C(1800014400000) /* of the slot TEST_NOW is in: four hours are left */

HELPER void pass_to(struct market *market, int64_t at_ms)
{
    market_pass_time(market, at_ms - market->now_ms);
}

/* The core-hours counted in the last slot that ended, in thousandths. */
HELPER const struct price_inputs *last_inputs(const struct market *market)
{
    const size_t kept = core_price_close_kept(market->core);
    assert_true(kept > 0);
    return core_price_close_at(market->core, kept - 1)->inputs;
}

HELPER int64_t wanted_core_ms(const struct market *market)
{
    return last_inputs(market)[PRICE_CORE].wanted_milli_s;
}

HELPER int64_t offered_core_ms(const struct market *market)
{
    return last_inputs(market)[PRICE_CORE].offered_milli_s;
}

/* One worker with a core for an hour, without a server. */
HELPER struct command one_core_job(uint64_t account)
{
    return (struct command){.kind = COMMAND_SUBMIT_JOB,
                            .submit_job = {.account = account,
                                           .name = "job",
                                           .spec = TEXT("{}"),
                                           .num_nodes = 1,
                                           .worker = {.cores_milli = 1000},
                                           .max_run_ms = HOUR_MS,
                                           .expected_run_ms = HOUR_MS,
                                           .tick_ms = 10000}};
}

HELPER const struct job *submit(struct market *market, const struct command *command)
{
    return core_job(market->core, market_do(market, command));
}
