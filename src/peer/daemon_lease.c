/* The leases of the daemon: each has a keeper, a process of its own. */
#include "base/log.h"
#include "peer/daemon_internal.h"
#include "peer/lease_verify.h"
#include "peer/meter.h"
#include "sandbox/folder.h"

#include <inttypes.h>
#include <string.h>

enum { DISBAND_MS = 500 }; /* keepers that were let go end within that */
enum { RELEASE_MS = 20 };  /* between two looks at whether a link has sent what it was given */

void daemon_send_state(struct daemon *daemon, struct lease_fence lease, enum lease_run_state state,
                       const char *reason)
{
    struct text text = text_of(reason);
    if (text.size > LEASE_REASON_SIZE_MAX)
        text.size = LEASE_REASON_SIZE_MAX;
    const struct lease_message message = {
        .type = LEASE_MESSAGE_STATE,
        .state = {.lease = lease.lease, .fence = lease.fence, .state = state, .reason = text}};
    outbox_send(daemon->outbox, &message, daemon_now_ns(daemon));
}

void daemon_answer(struct daemon *daemon, struct lease_fence lease, enum lease_run_state state,
                   const char *reason)
{
    if (!outbox_is_full(daemon->outbox))
        daemon_send_state(daemon, lease, state, reason);
}

struct holding *daemon_holding_at(const struct daemon *daemon, size_t index)
{
    return daemon->holdings.entries[index].value;
}

static struct holding *daemon_find(struct daemon *daemon, struct lease_fence lease)
{
    struct holding *holding = map_get(&daemon->holdings, lease.lease);
    return holding && holding_fence(holding).fence == lease.fence ? holding : NULL;
}

size_t daemon_list_running(const struct daemon *daemon, struct lease_fence *out)
{
    size_t count = 0;
    for (size_t i = 0; i < daemon->holdings.count; i++) {
        if (holding_state(daemon_holding_at(daemon, i))->has_ended)
            continue;
        if (out)
            out[count] = holding_fence(daemon_holding_at(daemon, i));
        count++;
    }
    return count;
}

size_t daemon_list_uses(const struct daemon *daemon, struct lent_use out[DAEMON_LEASE_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < daemon->holdings.count && count < DAEMON_LEASE_MAX; i++)
        if (!holding_state(daemon_holding_at(daemon, i))->has_ended)
            out[count++] = holding_state(daemon_holding_at(daemon, i))->use;
    return count;
}

/* ---- Keepers --------------------------------------------------------------------------------- */

static void lease_folder(const struct daemon *daemon, struct lease_fence lease,
                         char out[PATH_MAX + 64])
{
    snprintf(out, PATH_MAX + 64, "%s/%" PRIu64 "-%" PRIu64, daemon->leases_dir, lease.lease,
             lease.fence);
}

bool daemon_is_sandbox_of(struct lease_fence lease, const char *name)
{
    char own[SANDBOX_NAME_MAX];
    const int size =
        snprintf(own, sizeof(own), "lease-%" PRIu64 "-%" PRIu64, lease.lease, lease.fence);
    return strncmp(name, own, (size_t)size) == 0 && (name[size] == '\0' || name[size] == '-');
}

static bool is_sandbox_of_other(const char *name, void *context)
{
    return !daemon_is_sandbox_of(*(const struct lease_fence *)context, name);
}

void daemon_clear_away(struct daemon *daemon, struct lease_fence lease)
{
    struct error error;
    char folder[PATH_MAX + 64];
    size_t swept_count;
    lease_folder(daemon, lease, folder);
    if (sandbox_sweep_others(daemon->options->sandboxes, is_sandbox_of_other, &lease, &swept_count,
                             &error) < 0 ||
        folder_remove(folder, &error) < 0)
        log_event(LOG_ERROR, "lease_not_cleared", "lease=%" PRIu64 " error=\"%s\"", lease.lease,
                  error.message);
}

/* Frees the holding. */
static void daemon_drop(struct daemon *daemon, struct holding *holding)
{
    const struct lease_fence lease = holding_fence(holding);
    if (map_get(&daemon->holdings, lease.lease) == holding)
        map_remove(&daemon->holdings, lease.lease);
    past_note(&daemon->past, lease);
    if (!holding_state(holding)->is_known)
        daemon->awaited_count--;
    holding_free(holding);
    daemon->is_fresh = true;
    daemon_watch_leases(daemon);
}

void daemon_kill(struct daemon *daemon, struct holding *holding)
{
    const struct lease_fence lease = holding_fence(holding);
    holding_kill(holding);
    daemon_drop(daemon, holding);
    daemon_clear_away(daemon, lease);
}

void daemon_lose(struct daemon *daemon, struct lease_fence lease, const char *reason)
{
    log_event(LOG_ERROR, "lease_lost", "lease=%" PRIu64 " fence=%" PRIu64 " reason=\"%s\"",
              lease.lease, lease.fence, reason);
    past_note(&daemon->past, lease);
    daemon_send_state(daemon, lease, LEASE_RUN_LOST, reason);
}

void daemon_on_keeper_gone(struct holding *holding, void *context)
{
    struct daemon *daemon = context;
    const struct lease_fence lease = holding_fence(holding);
    const bool has_ended = holding_state(holding)->has_ended;
    if (has_ended)
        holding_await(holding);   /* its work is done: it is about to go by itself */
    daemon_kill(daemon, holding); /* should it only be mad */
    if (!has_ended)
        daemon_lose(daemon, lease, "the process that kept the lease died");
    daemon_check_stopped(daemon);
}

/* ---- From a keeper to the market ------------------------------------------------------------- */

static bool is_last(enum lease_run_state state)
{
    return state != LEASE_RUN_STARTING && state != LEASE_RUN_RUNNING;
}

/* What a keeper may say, and of which lease it says it. */
static int keeper_message_fence(const struct lease_message *message, struct lease_fence *out_lease,
                                struct error *error)
{
    switch (message->type) {
    case LEASE_MESSAGE_STATE:
        *out_lease = (struct lease_fence){message->state.lease, message->state.fence};
        return 0;
    case LEASE_MESSAGE_METER:
        *out_lease = (struct lease_fence){message->meter.lease, message->meter.fence};
        return 0;
    case LEASE_MESSAGE_REPORT:
        *out_lease = (struct lease_fence){message->report.lease, message->report.fence};
        return 0;
    case LEASE_MESSAGE_LOG:
        *out_lease = (struct lease_fence){message->log.lease, message->log.fence};
        return 0;
    case LEASE_MESSAGE_ARTIFACT:
        *out_lease = (struct lease_fence){message->artifact.lease, message->artifact.fence};
        return 0;
    case LEASE_MESSAGE_ADDRESSES:
    case LEASE_MESSAGE_CHUNKS_AT:
    case LEASE_MESSAGE_LOGS_AT:
        *out_lease = (struct lease_fence){message->addresses.lease, message->addresses.fence};
        return 0;
    case LEASE_MESSAGE_CHECKPOINT_WANTED:
        *out_lease = message->checkpoint_wanted;
        return 0;
    case LEASE_MESSAGE_STREAM_READY:
        *out_lease = (struct lease_fence){message->stream_ready.lease, message->stream_ready.fence};
        return 0;
    default:
        return error_set(error, ERROR_CORRUPT, "%s is not a keeper's to say",
                         lease_message_type_name(message->type));
    }
}

/* Nobody will ever take what the process of a lease printed: the keeper need not wait for it. */
static void daemon_drop_log(struct holding *holding)
{
    const struct lease_fence lease = holding_fence(holding);
    const struct lease_message kept = {
        .type = LEASE_MESSAGE_LOG_KEPT,
        .log_kept = {.lease = lease.lease, .fence = lease.fence, .offset = LEASE_LOG_ALL}};
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
    lease_message_encode(&kept, &payload);
    holding_send(holding, LEASE_MESSAGE_LOG_KEPT, buffer_text(&payload));
}

static int daemon_take_message(struct daemon *daemon, struct holding *holding, uint16_t type,
                               struct text payload, struct error *error)
{
    struct lease_message message;
    struct lease_fence lease;
    const struct lease_fence own = holding_fence(holding);
    arena_clear(daemon->arena);
    if (lease_message_decode(daemon->arena, type, payload, &message, error) < 0 ||
        keeper_message_fence(&message, &lease, error) < 0)
        return -1;
    if (lease.lease != own.lease || lease.fence != own.fence)
        return error_set(error, ERROR_CORRUPT, "it speaks of lease %" PRIu64, lease.lease);
    if (message.type == LEASE_MESSAGE_METER) {
        message.meter.gpu_ms = daemon_take_gpu_ms(holding);
        meter_sign(&message.meter, daemon->options->identity);
        outbox_send(daemon->outbox, &message, daemon_now_ns(daemon));
        return 0;
    }
    if (message.type == LEASE_MESSAGE_LOG && !daemon->is_welcome && daemon->is_stopping)
        daemon_drop_log(holding);
    outbox_send_encoded(daemon->outbox, type, payload, daemon_now_ns(daemon));
    if (message.type == LEASE_MESSAGE_STATE && is_last(message.state.state)) {
        holding_state(holding)->has_ended = true;
        daemon_check_room(daemon);
    }
    return 0;
}

void daemon_on_keeper_message(struct holding *holding, uint16_t type, struct text payload,
                              void *context)
{
    struct daemon *daemon = context;
    struct error error;
    if (daemon_take_message(daemon, holding, type, payload, &error) < 0) {
        log_event(LOG_ERROR, "keeper_refused", "lease=%" PRIu64 " error=\"%s\"",
                  holding_fence(holding).lease, error.message);
        daemon_on_keeper_gone(holding, daemon);
        return;
    }
    daemon_pace_keepers(daemon);
    daemon_release_ended(daemon);
}

void daemon_pace_keepers(struct daemon *daemon)
{
    const bool is_held_back = daemon->is_welcome && !outbox_has_room(daemon->outbox);
    if (is_held_back == daemon->is_held_back)
        return;
    daemon->is_held_back = is_held_back;
    for (size_t i = 0; i < daemon->holdings.count; i++)
        holding_set_paused(daemon_holding_at(daemon, i), is_held_back);
}

/* The kernel has all that was said: it goes out even if we are killed now. */
static bool daemon_has_told_all(const struct daemon *daemon)
{
    if (daemon->is_welcome)
        return outbox_waiting_count(daemon->outbox) == 0 && link_queued_bytes(daemon->link) == 0;
    return daemon->is_stopping; /* there is nobody to tell */
}

void daemon_release_ended(struct daemon *daemon)
{
    const bool has_told_all = daemon_has_told_all(daemon);
    for (size_t i = 0; i < daemon->holdings.count; i++) {
        struct holding_state *state = holding_state(daemon_holding_at(daemon, i));
        if (!state->has_ended || state->is_released)
            continue;
        if (!has_told_all) {
            if (daemon->is_welcome) /* else the next welcome comes here */
                loop_timer_start(daemon->release_timer, RELEASE_MS);
            return;
        }
        state->is_released = true;
        holding_tell(daemon_holding_at(daemon, i),
                     &(struct keeper_message){.type = KEEPER_MESSAGE_RELEASE});
    }
}

void daemon_on_release(void *context)
{
    daemon_release_ended(context);
}

/* ---- From the market to a keeper ------------------------------------------------------------- */

void daemon_tell_keeper_market(struct daemon *daemon, struct holding *holding)
{
    const struct enrolment *enrolment = daemon->enrolment;
    /* A daemon that stops takes what the keepers still have to say. */
    holding_tell(holding, &(struct keeper_message){
                              .type = KEEPER_MESSAGE_MARKET,
                              .market = {.is_linked = daemon->is_welcome || daemon->is_stopping,
                                         .ahead_ms = daemon->market_ahead_ms,
                                         .server_url = text_of(enrolment->server_url),
                                         .fingerprint = text_of(enrolment->fingerprint),
                                         .link_address = text_of(enrolment->link_address),
                                         .link_ipv4 = daemon->link_ipv4,
                                         .seen_ipv4 = daemon->seen_ipv4}});
}

void daemon_tell_market(struct daemon *daemon)
{
    for (size_t i = 0; i < daemon->holdings.count; i++)
        daemon_tell_keeper_market(daemon, daemon_holding_at(daemon, i));
}

void daemon_tell_keeper_yield(const struct daemon *daemon, struct holding *holding)
{
    holding_tell(holding,
                 &(struct keeper_message){.type = KEEPER_MESSAGE_YIELD, .yield = daemon->yield});
}

void daemon_set_yield(struct daemon *daemon, enum yield_level level)
{
    if (level == daemon->yield)
        return;
    daemon->yield = level;
    for (size_t i = 0; i < daemon->holdings.count; i++)
        daemon_tell_keeper_yield(daemon, daemon_holding_at(daemon, i));
}

void daemon_reclaim(struct daemon *daemon, struct holding *holding, int64_t grace_ms,
                    struct text reason)
{
    daemon_tell_keeper_market(daemon, holding);
    holding_tell(holding, &(struct keeper_message){
                              .type = KEEPER_MESSAGE_RECLAIM,
                              .reclaim = {.grace_ms = (uint32_t)grace_ms, .reason = reason}});
}

void daemon_reclaim_all(struct daemon *daemon, int64_t grace_ms, struct text reason)
{
    for (size_t i = 0; i < daemon->holdings.count; i++)
        daemon_reclaim(daemon, daemon_holding_at(daemon, i), grace_ms, reason);
}

void daemon_pass_on(struct daemon *daemon, struct lease_fence lease, enum lease_message_type type,
                    struct text payload)
{
    struct holding *holding = daemon_find(daemon, lease);
    if (holding)
        holding_send(holding, (uint16_t)type, payload);
}

void daemon_on_renew(struct daemon *daemon, const struct renew_message *renew, struct text payload)
{
    struct error error;
    struct lease_document document;
    struct start_message start = {.document = renew->document};
    memcpy(start.signature, renew->signature, sizeof(start.signature));
    if (lease_verify(daemon->arena, &start, daemon->enrolment, &document, &error) < 0)
        log_event(LOG_ERROR, "renewal_refused", "error=\"%s\"", error.message);
    else
        daemon_pass_on(daemon, (struct lease_fence){document.lease, document.fence},
                       LEASE_MESSAGE_RENEW, payload);
}

void daemon_on_stop_message(struct daemon *daemon, const struct stop_message *stop,
                            struct text payload)
{
    const struct lease_fence lease = {stop->lease, stop->fence};
    if (daemon_find(daemon, lease))
        daemon_pass_on(daemon, lease, LEASE_MESSAGE_STOP, payload);
    else
        daemon_answer(daemon, lease, LEASE_RUN_STOPPED, "the lease does not run here");
}

void daemon_close_leases(struct daemon *daemon)
{
    for (size_t i = daemon->holdings.count; i-- > 0;) {
        struct holding *holding = daemon_holding_at(daemon, i);
        if (daemon->is_stopping)
            daemon_kill(daemon, holding); /* it had its grace */
        else
            daemon_drop(daemon, holding);
    }
    map_done(&daemon->holdings);
    holding_reapers_done(&daemon->reapers);
    sandbox_host_disband(daemon->options->sandboxes, daemon->is_stopping ? DISBAND_MS : 0);
}
