/* Match: which two machines are too far from one another, in words. Looks at LOOKS_MAX machines. */
#include "base/units.h"
#include "market/match_internal.h"
#include "market/pair.h"

#include <inttypes.h>

enum { LOOKS_MAX = 128 };

struct far {
    const struct match_wish *wish; /* without the longest RTT */
    const struct machine *machines[LOOKS_MAX];
    size_t count;
    const struct machine *a, *b; /* the nearest two that are too far from each other */
    int64_t rtt_us;              /* of these */
};

static void find_with_room(struct far *far, struct machine *const *machines, size_t machine_count)
{
    for (size_t i = 0; i < machine_count && far->count < LOOKS_MAX; i++)
        if (match_has_offer(machines[i], far->wish, MACHINE_ROLE_WORKER, /* is_free= */ true))
            far->machines[far->count++] = machines[i];
}

static void find_nearest_beyond(struct far *far, int64_t max_us)
{
    for (size_t i = 0; i < far->count; i++)
        for (size_t k = 0; k < i; k++) {
            const struct machine *a = far->machines[k], *b = far->machines[i];
            const int64_t rtt_us = pair_rtt_us(a, b, far->wish->now_ms);
            if (rtt_us <= max_us || (far->rtt_us > 0 && rtt_us >= far->rtt_us))
                continue;
            far->a = a;
            far->b = b;
            far->rtt_us = rtt_us;
        }
}

void match_append_far(struct machine *const *machines, size_t machine_count,
                      const struct match_wish *wish, struct buffer *out)
{
    const int64_t max_us = wish_max_rtt_us(wish, MACHINE_ROLE_WORKER);
    struct job_request request = *wish->request;
    struct match_wish anywhere = *wish;
    request.wishes.max_rtt_us = 0;
    anywhere.request = &request;
    struct far far = {.wish = &anywhere};
    find_with_room(&far, machines, machine_count);
    if ((int64_t)far.count < request.num_nodes)
        return; /* that they are far is not what it waits for */
    find_nearest_beyond(&far, max_us);
    if (!far.a)
        return;
    const int64_t direct_us = pair_direct_us(far.a, far.b, wish->now_ms);
    buffer_append_format(out,
                         "; too few are within max_rtt %.15g ms: %s and %s are %.1f ms apart %s",
                         (double)max_us / 1e3, far.a->name, far.b->name, (double)far.rtt_us / 1e3,
                         direct_us == far.rtt_us ? "directly" : "through the market");
}
