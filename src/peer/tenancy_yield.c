/*
 * Making way for the machine's owner.
 *
 * A process that is held still breathes: every two seconds it runs for a moment, at most a
 * hundredth of a core all in all. So it can say that it lives. Its parameter server, and every
 * framework with time limits of its own, sees a slow worker and not a dead one.
 */
#include "base/log.h"
#include "peer/tenancy_internal.h"

#include <inttypes.h>

enum {
    BREATH_MS = 20,
    BREATH_PERIOD_MS = 2000,
    BREATH_CPU_MILLI = 500, /* within those 20 ms; not idle, or a busy owner would leave it none */
};

static int set_share(struct tenancy *tenancy, enum yield_level level, struct error *error)
{
    const int64_t full_milli = tenancy_own_milli(tenancy);
    const int64_t low_milli = (full_milli * TENANCY_LOW_SHARE_MILLI + 999) / 1000;
    switch (level) {
    case YIELD_FULL:
        return sandbox_set_cpu(tenancy->sandbox, full_milli, /* is_idle= */ false, error);
    case YIELD_LOW: /* the sooner it has ended, the sooner the owner has its memory */
        return sandbox_set_cpu(tenancy->sandbox, low_milli, !tenancy->is_stop_wanted, error);
    case YIELD_FROZEN:
    case YIELD_LEVEL_COUNT:
        break;
    }
    return sandbox_set_cpu(tenancy->sandbox,
                           full_milli < BREATH_CPU_MILLI ? full_milli : BREATH_CPU_MILLI,
                           /* is_idle= */ false, error);
}

/* First still, then another share, or the other way around: it never gets more than it may. */
static int change_level(struct tenancy *tenancy, enum yield_level level, struct error *error)
{
    if (level == YIELD_FROZEN && sandbox_set_paused(tenancy->sandbox, true, error) < 0)
        return -1;
    if (set_share(tenancy, level, error) < 0)
        return -1;
    return level == YIELD_FROZEN ? 0 : sandbox_set_paused(tenancy->sandbox, false, error);
}

/* What fails is told and nothing else: the owner comes first, but not at a lease's cost. */
void tenancy_yield(struct tenancy *tenancy, enum yield_level level)
{
    struct error error;
    tenancy->yield_wanted = level;
    if (tenancy->chunk_server)
        chunk_server_set_paused(tenancy->chunk_server, level != YIELD_FULL);
    if (tenancy->internet) /* by the owner's word also while it ends: bytes may cost */
        open_network_set_rate(tenancy->internet, open_network_rate(&tenancy->host->open, level));
    if (tenancy->is_stop_wanted && level == YIELD_FROZEN)
        level = YIELD_LOW; /* it saves what it has, and is killed if it takes too long */
    if (tenancy->has_ended || tenancy->has_exited || level == tenancy->yield)
        return;
    if (change_level(tenancy, level, &error) < 0) {
        log_event(LOG_ERROR, "yield_failed", "lease=%" PRIu64 " level=%s error=\"%s\"",
                  tenancy->document.lease, yield_level_name(level), error.message);
        return;
    }
    tenancy->yield = level;
    tenancy->is_breathing = false;
    if (tenancy->functions)
        tenancy_yield_functions(tenancy, level);
    if (level == YIELD_FROZEN)
        loop_timer_start(tenancy->breath_timer, BREATH_PERIOD_MS);
    else
        loop_timer_stop(tenancy->breath_timer);
    log_event(LOG_INFO, "lease_yields", "lease=%" PRIu64 " level=%s", tenancy->document.lease,
              yield_level_name(level));
}

void tenancy_yield_to_end(struct tenancy *tenancy)
{
    struct error error;
    if (tenancy->yield == YIELD_FROZEN)
        tenancy_yield(tenancy, tenancy->yield_wanted);
    else if (tenancy->yield == YIELD_LOW && !tenancy->has_exited &&
             set_share(tenancy, YIELD_LOW, &error) < 0)
        log_event(LOG_ERROR, "yield_failed", "lease=%" PRIu64 " error=\"%s\"",
                  tenancy->document.lease, error.message);
}

void tenancy_keep_yield(struct tenancy *tenancy)
{
    tenancy->yield = YIELD_FULL; /* as whatever was just started runs */
    tenancy_yield(tenancy, tenancy->yield_wanted);
    loop_timer_start(tenancy->pace_timer, 0);
}

void tenancy_on_breath(void *context)
{
    struct tenancy *tenancy = context;
    struct error error;
    if (tenancy->has_ended || tenancy->has_exited || tenancy->yield != YIELD_FROZEN)
        return;
    if (sandbox_set_paused(tenancy->sandbox, tenancy->is_breathing, &error) < 0)
        log_event(LOG_ERROR, "yield_failed", "lease=%" PRIu64 " error=\"%s\"",
                  tenancy->document.lease, error.message);
    tenancy->is_breathing = !tenancy->is_breathing;
    loop_timer_start(tenancy->breath_timer, tenancy->is_breathing ? BREATH_MS : BREATH_PERIOD_MS);
}
