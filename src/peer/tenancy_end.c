/* How a tenancy ends: stopped, taken back, expired, failed or done; and what is told of it. */
#include "base/assert.h"
#include "base/log.h"
#include "base/units.h"
#include "peer/tenancy_internal.h"

#include <inttypes.h>
#include <string.h>

static void tenancy_on_kill(void *context)
{
    struct tenancy *tenancy = context;
    if (tenancy->sandbox)
        sandbox_kill(tenancy->sandbox);
}

/* Results wait for a market that does not take them, but no longer than the lease, nor than the
 * owner does. */
void tenancy_on_grace_over(void *context)
{
    struct tenancy *tenancy = context;
    struct error error;
    tenancy_on_kill(tenancy);
    if (tenancy->has_ended || (!tenancy->is_leaving && tenancy_left_ms(tenancy) > 0))
        return;
    loop_timer_start(tenancy->kill_timer, TENANCY_EXPIRY_GRACE_MS);
    if (tenancy->has_exited && tenancy->host->is_market_away)
        tenancy_give_up_logs(tenancy, "the market was away");
    const char *trouble = tenancy_upload_trouble(tenancy);
    if (tenancy->has_exited && !list_is_empty(&tenancy->uploads) &&
        (trouble || tenancy->host->is_market_away)) {
        error_set(&error, ERROR_UNAVAILABLE, "the results could not be sent: %.180s",
                  trouble ? trouble : "the market was away");
        tenancy_fail(tenancy, &error);
    }
}

void tenancy_fail(struct tenancy *tenancy, const struct error *reason)
{
    if (tenancy->has_ended)
        return;
    if (tenancy->has_done && tenancy->is_done_ok && !tenancy->has_failed)
        tenancy->reason[0] = '\0'; /* why it went well is no reason any more */
    tenancy_set_reason(tenancy, text_of(reason->message));
    tenancy->has_failed = true;
    tenancy_on_kill(tenancy);
    tenancy_check_end(tenancy);
}

void tenancy_reclaim(struct tenancy *tenancy, int64_t grace_ms, struct text reason)
{
    /* What is done is done, and what the market stops is not the owner's doing. */
    if (!tenancy->has_done && !tenancy->is_stop_wanted)
        tenancy->is_reclaimed = true;
    tenancy->is_leaving = true;
    tenancy_stop(tenancy, grace_ms, reason);
}

/* Of a lease that never came to run, also what it was waiting for. */
static void tenancy_set_stop_reason(struct tenancy *tenancy, struct text reason)
{
    const char *trouble = tenancy->shard ? shard_trouble(tenancy->shard) : NULL;
    char words[LEASE_REASON_SIZE_MAX + 1];
    if (!trouble) {
        tenancy_set_reason(tenancy, reason);
        return;
    }
    const int size = snprintf(words, sizeof(words), "%.*s; its data was not there yet: %s",
                              reason.size < 80 ? (int)reason.size : 80, reason.data, trouble);
    ASSERT(size > 0); /* cut off where it is too long */
    tenancy_set_reason(tenancy, text_of(words));
}

void tenancy_stop(struct tenancy *tenancy, int64_t grace_ms, struct text reason)
{
    if (tenancy->has_ended)
        return;
    tenancy->is_stop_wanted = true;
    tenancy_set_stop_reason(tenancy, reason);
    tenancy_yield_to_end(tenancy);
    if (tenancy->has_config && grace_ms > 0) {
        const struct child_message message = {.kind = CHILD_STOP,
                                              .stop = {.grace_ms = (uint32_t)grace_ms,
                                                       .is_handover = tenancy->is_reclaimed,
                                                       .reason = text_of(tenancy->reason)}};
        tenancy_tell_child(tenancy, &message);
        if (!loop_timer_is_running(tenancy->kill_timer))
            loop_timer_start(tenancy->kill_timer, grace_ms);
        return;
    }
    shard_free(TAKE(tenancy->shard));
    tenancy_on_kill(tenancy);
    tenancy_check_end(tenancy);
}

void tenancy_on_expiry(void *context)
{
    struct tenancy *tenancy = context;
    tenancy_stop(tenancy, TENANCY_EXPIRY_GRACE_MS, TEXT("the lease has expired"));
}

static enum lease_run_state tenancy_outcome(struct tenancy *tenancy)
{
    const bool is_well = tenancy->has_done && tenancy->is_done_ok && tenancy->exit.code == 0;
    if (tenancy->exit.is_out_of_memory && !is_well) { /* else it got over what was killed */
        tenancy->reason[0] = '\0';                    /* what came of it says less */
        char size[UNITS_TEXT_SIZE], words[128];
        snprintf(words, sizeof(words),
                 "the job used more memory than the %s it was given: raise resources.memory",
                 units_format_bytes(tenancy_own_bytes(tenancy), size));
        tenancy_set_reason(tenancy, text_of(words));
        return LEASE_RUN_FAILED;
    }
    if (tenancy->has_failed)
        return LEASE_RUN_FAILED;
    if (tenancy->is_reclaimed)
        return LEASE_RUN_RECLAIMED;
    if (is_well)
        return LEASE_RUN_SUCCEEDED;
    if (tenancy->is_stop_wanted)
        return LEASE_RUN_STOPPED;
    char words[64];
    snprintf(words, sizeof(words), "the process ended with code %d", tenancy->exit.code);
    tenancy_set_reason(tenancy, text_of(words));
    return LEASE_RUN_FAILED;
}

static void on_cleared(void *context)
{
    struct tenancy *tenancy = context;
    tenancy_free_functions(tenancy);
    tenancy->is_cleared = true;
    tenancy->on_ended(tenancy->context, tenancy);
}

/* The end is worked out in a turn of its own: many ways lead here, some from deep inside. */
void tenancy_on_end(void *context)
{
    struct tenancy *tenancy = context;
    struct error error;
    if (tenancy->has_ended)
        return;
    tenancy->has_ended = true;
    loop_timer_stop(tenancy->pace_timer);
    loop_timer_stop(tenancy->talk_timer);
    loop_timer_stop(tenancy->kill_timer);
    loop_timer_stop(tenancy->expiry_timer);
    loop_timer_stop(tenancy->breath_timer);
    loop_timer_stop(tenancy->log_timer);
    loop_timer_stop(tenancy->look_timer);
    tenancy_stop_meter(tenancy);
    tenancy_end_calls(tenancy);
    tenancy_free_uploads(tenancy);
    shard_free(TAKE(tenancy->shard));
    tenancy_free_checkpoints(tenancy);
    tenancy_free_child(tenancy);
    tenancy_free_streams(tenancy);
    tenancy_free_image(tenancy);
    job_network_free(TAKE(tenancy->network));
    open_network_free(TAKE(tenancy->internet));
    tenancy_free_sources(tenancy);
    log_server_free(TAKE(tenancy->log_server));
    if (folder_remove(tenancy->data_folder, &error) < 0 ||
        folder_remove(tenancy->lease_folder, &error) < 0)
        log_event(LOG_WARN, "folder_left", "lease=%" PRIu64 " error=\"%s\"",
                  tenancy->document.lease, error.message);
    tenancy->state = tenancy_outcome(tenancy);
    tenancy_send_state(tenancy);
    /* A store elsewhere may take its time: nobody waits for it but the lease's folder. */
    if (!tenancy_clear_functions(tenancy, on_cleared))
        on_cleared(tenancy);
}

void tenancy_check_end(struct tenancy *tenancy)
{
    const bool is_waiting = !list_is_empty(&tenancy->uploads) && !tenancy->has_failed;
    const bool is_yet_to_begin =
        !tenancy->has_begun && !tenancy->has_failed && !tenancy->is_stop_wanted;
    if (tenancy->has_ended || !tenancy->has_exited || is_waiting || is_yet_to_begin)
        return;
    const bool is_silent = !tenancy->has_begun && !tenancy->has_printed;
    if (is_silent || tenancy_has_settled_logs(tenancy))
        loop_timer_start(tenancy->end_timer, 0);
    else
        tenancy_stop_meter(tenancy); /* nobody pays for this wait */
}
