#include "server/verify.h"

#include "base/assert.h"

#include <inttypes.h>
#include <string.h>

void verify_lease_init(struct verify_lease *lease, bool is_alone, int64_t started_ms,
                       uint64_t next_index, int64_t metered_ms)
{
    *lease = (struct verify_lease){
        .is_alone = is_alone,
        .started_ms = started_ms,
        .next_index = next_index,
        .metered_ms = metered_ms,
        .paid_index = next_index,
    };
}

static uint32_t release_pending(struct verify_lease *lease, struct verified_tick *out)
{
    const uint32_t count = lease->pending_count;
    memcpy(out, lease->pending, count * sizeof(*out));
    lease->pending_count = 0;
    if (count)
        lease->paid_index = out[count - 1].index + 1;
    return count;
}

int verify_meter(struct verify_lease *lease, const struct verify_meter *meter, int64_t now_ms,
                 struct verified_tick out[VERIFY_PENDING_MAX + 1], uint32_t *out_count,
                 struct error *error)
{
    if (meter->index < lease->next_index)
        return error_set(error, ERROR_CONFLICT, "tick %" PRIu64 " was reported before",
                         meter->index);
    if (meter->wall_ms <= 0 || meter->cpu_ms < 0)
        return error_set(error, ERROR_INVALID, "tick %" PRIu64 " claims no time", meter->index);
    const int64_t passed_ms = now_ms - lease->started_ms + VERIFY_SLACK_MS;
    const int64_t left_ms = passed_ms - lease->metered_ms;
    if (left_ms <= 0 || meter->index > (uint64_t)passed_ms)
        return error_set(error, ERROR_INVALID,
                         "tick %" PRIu64 " claims more time than passed since the lease started",
                         meter->index);
    const struct verified_tick tick = {
        .index = meter->index,
        .wall_ms = meter->wall_ms < left_ms ? meter->wall_ms : left_ms,
    };
    lease->next_index = meter->index + 1;
    lease->metered_ms += tick.wall_ms;

    *out_count = 0;
    if (meter->is_held) {
        lease->has_push = false;
        lease->is_cut_short = false;
        return 0;
    }
    const bool is_last = lease->is_cut_short && tick.index == lease->paid_index;
    const bool is_verified =
        lease->is_alone ? lease->is_standby || meter->cpu_ms > 0 : lease->has_push || is_last;
    lease->has_push = false;
    lease->is_cut_short = false;
    uint32_t count = 0;
    if (is_verified) {
        count = release_pending(lease, out);
        out[count++] = tick;
        lease->paid_index = tick.index + 1;
    } else if (!lease->is_alone) {
        /* A worker silent towards the parameter server for this long is not paid for the oldest. */
        if (lease->pending_count == VERIFY_PENDING_MAX)
            memmove(lease->pending, lease->pending + 1,
                    --lease->pending_count * sizeof(*lease->pending));
        lease->pending[lease->pending_count++] = tick;
    }
    *out_count = count;
    return 0;
}

uint32_t verify_push(struct verify_lease *lease, struct verified_tick out[VERIFY_PENDING_MAX + 1])
{
    lease->has_push = true;
    return release_pending(lease, out);
}

uint32_t verify_training_over(struct verify_lease *lease,
                              struct verified_tick out[VERIFY_PENDING_MAX + 1])
{
    if (lease->is_alone || lease->paid_index == 0)
        return 0;
    lease->is_cut_short = lease->pending_count == 0;
    if (lease->pending_count == 1 && lease->pending[0].index == lease->paid_index)
        return release_pending(lease, out);
    return 0;
}
