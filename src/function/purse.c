#include "function/purse.h"

#include "base/assert.h"

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

/* The lender's own limits may break, but no more was agreed to. */
static int64_t cost_of(const struct purse *purse, const struct purse_call *call,
                       const struct invoke_result *result, int64_t billed_ms)
{
    const int64_t longest_ms = call->time_ms + PURSE_START_MS_MAX;
    const uint32_t memory_mb =
        result->memory_mb > 0 ? (uint32_t)result->memory_mb : call->memory_mb;
    const int64_t cost =
        bill_call_micro(&purse->price, memory_mb, billed_ms < longest_ms ? billed_ms : longest_ms);
    return cost < call->held_micro ? cost : call->held_micro;
}

struct purse_paid purse_pay(struct purse *purse, const struct purse_call *call,
                            const struct invoke_result *result)
{
    struct purse_paid paid = {call->held_micro, call->time_ms};
    if (result->billed_ms >= 0)
        paid.billed_ms = result->billed_ms;
    else if (result->outcome == INVOKE_ANSWERED)
        paid.billed_ms = call->passed_ms;
    if (result->billed_ms >= 0 || result->outcome == INVOKE_ANSWERED)
        paid.cost_micro = cost_of(purse, call, result, paid.billed_ms);
    purse_release(purse, call->held_micro);
    purse->spent_micro += paid.cost_micro;
    return paid;
}
