#include "server/link_budget.h"

#include "base/assert.h"
#include "runtime/lease_message.h"

#define SECOND_NS  INT64_C(1000000000)
#define LEASES_MAX 100000 /* so that nothing overflows */

enum {
    BYTES_PER_UNIT = 4 << 10,
    COST_HELLO = 256,   /* told to the core, and answered with all its leases */
    COST_COMMAND = 8,   /* a command for the core */
    COST_SIGNATURE = 8, /* one to check */
    COST_PROBE = 64,
    COST_ARTIFACT = 64,  /* its manifest is read from the disk */
    COST_ADDRESSES = 64, /* told to every rank of a job */
};

int64_t link_budget_cost(uint16_t type, size_t size)
{
    const int64_t bytes = (int64_t)(size / BYTES_PER_UNIT);
    switch (type) {
    case LEASE_MESSAGE_HELLO:
        return COST_HELLO + bytes;
    case LEASE_MESSAGE_STATE:
    case LEASE_MESSAGE_YIELD:
        return COST_COMMAND + bytes;
    case LEASE_MESSAGE_METER:
        return COST_SIGNATURE + bytes;
    case LEASE_MESSAGE_PROBE:
        return COST_PROBE + bytes;
    case LEASE_MESSAGE_ARTIFACT:
        return COST_ARTIFACT + bytes;
    case LEASE_MESSAGE_ADDRESSES:
    case LEASE_MESSAGE_CHUNKS_AT:
    case LEASE_MESSAGE_LOGS_AT:
        return COST_ADDRESSES + bytes;
    default:
        return 1 + bytes;
    }
}

static void fill(struct link_budget *budget, int64_t rate, int64_t now_ns)
{
    const int64_t most = rate * LINK_BUDGET_BURST_S;
    const int64_t passed_ns = now_ns - budget->filled_ns;
    if (budget->filled_ns == 0) {
        budget->units = most;
        budget->filled_ns = now_ns;
        return;
    }
    if (passed_ns <= 0)
        return;
    if (passed_ns >= SECOND_NS * 2 * LINK_BUDGET_BURST_S) { /* it was empty at the worst */
        budget->units = most;
        budget->filled_ns = now_ns;
        return;
    }
    const int64_t added = passed_ns / 1000 * rate / (SECOND_NS / 1000);
    budget->units += added;
    budget->filled_ns += added * SECOND_NS / rate; /* what made no whole unit counts next time */
    if (budget->units >= most) {
        budget->units = most;
        budget->filled_ns = now_ns;
    }
}

int64_t link_budget_take(struct link_budget *budget, int64_t cost, size_t lease_count,
                         int64_t now_ns)
{
    ASSERT(cost > 0 && now_ns > 0);
    const int64_t leases = lease_count < LEASES_MAX ? (int64_t)lease_count : LEASES_MAX;
    const int64_t rate = LINK_BUDGET_BASE + leases * LINK_BUDGET_PER_LEASE;
    fill(budget, rate, now_ns);
    budget->units -= cost;
    if (budget->units < -rate * LINK_BUDGET_BURST_S)
        budget->units = -rate * LINK_BUDGET_BURST_S;
    return budget->units >= 0 ? 0 : -budget->units * SECOND_NS / rate;
}
