#include "function/purse.h"

#include "base/assert.h"

struct purse purse_begin(struct bill_price price, int64_t budget_micro, int64_t spent_micro)
{
    return (struct purse){.price = price,
                          .budget_micro = budget_micro,
                          .spent_micro = spent_micro,
                          .other_micro = spent_micro};
}

int64_t purse_left(const struct purse *purse)
{
    return purse->budget_micro ? purse->budget_micro - purse->spent_micro - purse->held_micro
                               : INT64_MAX;
}

int64_t purse_most(const struct purse *purse, uint32_t memory_mb, int64_t time_ms)
{
    return bill_call_micro(&purse->price, memory_mb, time_ms + PURSE_START_MS_MAX);
}

void purse_hold(struct purse *purse, int64_t held_micro)
{
    ASSERT(held_micro >= 0 && held_micro <= purse_left(purse));
    purse->held_micro += held_micro;
}

void purse_release(struct purse *purse, int64_t held_micro)
{
    ASSERT(held_micro >= 0 && held_micro <= purse->held_micro);
    purse->held_micro -= held_micro;
}

/* In megabytes times milliseconds. The lender's own limits may break, but no more was agreed to. */
static uint64_t use_of(const struct purse_call *call, const struct invoke_result *result,
                       int64_t billed_ms)
{
    const uint64_t longest_ms = (uint64_t)(call->time_ms + PURSE_START_MS_MAX);
    const uint64_t ms = (uint64_t)billed_ms < longest_ms ? (uint64_t)billed_ms : longest_ms;
    const uint64_t mb = result->memory_mb > 0 ? (uint64_t)result->memory_mb : call->memory_mb;
    const uint64_t most = call->memory_mb * longest_ms;
    return mb * ms < most ? mb * ms : most;
}

struct purse_paid purse_pay(struct purse *purse, const struct purse_call *call,
                            const struct invoke_result *result)
{
    const int64_t before = purse->spent_micro;
    const bool is_known = result->billed_ms >= 0 || result->outcome == INVOKE_ANSWERED;
    const int64_t billed_ms = result->billed_ms >= 0 ? result->billed_ms
                              : is_known             ? call->passed_ms
                                                     : call->time_ms;
    purse_release(purse, call->held_micro);
    if (is_known)
        purse->used_mb_ms += use_of(call, result, billed_ms);
    else
        purse->other_micro += call->held_micro;
    purse->spent_micro = purse->other_micro + bill_use_micro(&purse->price, purse->used_mb_ms);
    ASSERT(purse->spent_micro - before <= call->held_micro);
    return (struct purse_paid){purse->spent_micro - before, billed_ms};
}
