/* The owner of the machine and the daemon: leases make way, and the owner's word is taken. */
#include "base/log.h"
#include "peer/cache.h"
#include "peer/daemon_internal.h"
#include "sandbox/process_tree.h"

#include <inttypes.h>

enum { RELEASE_GRACE_MS = 3000 };

/* ---- Making way ------------------------------------------------------------------------------ */

static enum yield_level yield_level(const struct daemon *daemon)
{
    switch (owner_level(daemon->owner)) {
    case GUARD_FULL:
        return YIELD_FULL;
    case GUARD_LOW:
        return YIELD_LOW;
    case GUARD_FROZEN:
    case GUARD_RELEASED:
    case GUARD_LEVEL_COUNT:
        break;
    }
    return YIELD_FROZEN;
}

/* Keepers weigh little while the owner works; not when the owner's programs want the memory, for
 * then they end leases. */
static void daemon_weigh_keepers(struct daemon *daemon)
{
    const enum guard_level level = owner_level(daemon->owner);
    struct error error;
    if (sandbox_host_set_light(daemon->options->sandboxes,
                               level == GUARD_LOW || level == GUARD_FROZEN, &error) < 0)
        log_event(LOG_WARN, "keepers_not_weighed", "error=\"%s\"", error.message);
}

static void daemon_release_leases(struct daemon *daemon)
{
    daemon_reclaim_all(daemon, RELEASE_GRACE_MS, TEXT("the machine's owner needs its memory"));
}

/* Why is for the owner to know, and not for the market. */
static enum machine_yield market_yield(const struct daemon *daemon)
{
    switch (owner_word(daemon->owner)) {
    case OWNER_WORD_PAUSE:
        return MACHINE_YIELD_PAUSED;
    case OWNER_WORD_PAUSE_REMOTELY:
        return MACHINE_YIELD_PAUSED_REMOTELY;
    case OWNER_WORD_DRAIN:
        return MACHINE_YIELD_DRAINING;
    case OWNER_WORD_NONE:
        break;
    }
    switch (yield_level(daemon)) {
    case YIELD_FULL:
        return daemon->is_full ? MACHINE_YIELD_DRAINING : MACHINE_YIELD_NONE;
    case YIELD_LOW:
        return daemon->is_full ? MACHINE_YIELD_DRAINING : MACHINE_YIELD_LOW;
    case YIELD_FROZEN:
    case YIELD_LEVEL_COUNT:
        break;
    }
    return MACHINE_YIELD_FROZEN;
}

void daemon_tell_yield(struct daemon *daemon)
{
    if (!daemon->is_welcome)
        return; /* told with the welcome */
    const int64_t left_ms = owner_pause_left_ms(daemon->owner);
    const struct lease_message message = {
        .type = LEASE_MESSAGE_YIELD,
        .yield = {market_yield(daemon),
                  (uint64_t)(left_ms < LEASE_PAUSE_MS_MAX ? left_ms : LEASE_PAUSE_MS_MAX)}};
    outbox_send(daemon->outbox, &message, daemon_now_ns(daemon));
}

void daemon_check_room(struct daemon *daemon)
{
    struct lent_use running[DAEMON_LEASE_MAX];
    const size_t count = daemon_list_uses(daemon, running);
    const bool is_full = !lent_has_room(&daemon->lent, running, count);
    if (is_full == daemon->is_full)
        return;
    daemon->is_full = is_full;
    log_event(LOG_INFO, is_full ? "no_room_for_processes" : "room_for_processes", "leases=%zu",
              count);
    if (daemon->owner)
        daemon_tell_yield(daemon);
}

static void daemon_on_owner(void *context)
{
    struct daemon *daemon = context;
    daemon_weigh_keepers(daemon);
    daemon_set_yield(daemon, yield_level(daemon));
    if (owner_level(daemon->owner) == GUARD_RELEASED)
        daemon_release_leases(daemon);
    daemon_tell_yield(daemon);
}

static int64_t keeper_cpu_ms(const struct holding *holding)
{
    struct process_info info;
    struct error gone; /* and its time with it */
    return process_read(holding_pid(holding), &info, &gone) < 0
               ? 0
               : process_ticks_to_ms(info.cpu_ticks);
}

/* Sandboxes, and what looks after them: relaying a job's streams costs the keeper time. */
static int64_t daemon_lease_cpu_ms(void *context)
{
    const struct daemon *daemon = context;
    int64_t cpu_ms = sandbox_host_cpu_ms(daemon->options->sandboxes);
    for (size_t i = 0; i < daemon->holdings.count; i++)
        cpu_ms += keeper_cpu_ms(daemon->holdings.entries[i].value);
    return cpu_ms;
}

void daemon_watch_leases(struct daemon *daemon)
{
    if (daemon->owner)
        owner_set_working(daemon->owner, daemon_list_running(daemon, NULL) > 0);
    daemon_watch_gpus(daemon);
    daemon_pace_heartbeats(daemon);
    daemon_check_room(daemon);
}

/* ---- The owner's word ------------------------------------------------------------------------ */

void daemon_on_pause(struct daemon *daemon, const struct pause_message *pause)
{
    log_event(LOG_INFO, "owner_said", "where=market word=%s",
              pause->is_paused ? "pause" : "resume");
    if (pause->is_paused)
        owner_pause(daemon->owner, OWNER_REMOTE,
                    pause->for_ms > INT64_MAX ? 0 : (int64_t)pause->for_ms);
    else
        owner_resume(daemon->owner, OWNER_REMOTE);
}

static int64_t market_now_ms(const struct daemon *daemon)
{
    return clock_utc_ms(loop_clock(daemon->loop)) + daemon->market_ahead_ms;
}

void daemon_on_earnings(struct daemon *daemon, const struct earnings_message *earnings)
{
    struct error error;
    if (earnings_take(&daemon->earnings, earnings->earned_micro, earnings->withheld_micro,
                      market_now_ms(daemon)) &&
        earnings_store(daemon->options->state_dir, &daemon->earnings, &error) < 0)
        log_event(LOG_WARN, "earnings_not_kept", "error=\"%s\"", error.message);
}

static void write_leases(const struct daemon *daemon, struct json_writer *writer)
{
    json_key(writer, "leases");
    json_array_begin(writer);
    for (size_t i = 0; i < daemon->holdings.count; i++) {
        struct holding *holding = daemon->holdings.entries[i].value;
        const struct holding_state *state = holding_state(holding);
        if (state->has_ended)
            continue;
        json_object_begin(writer);
        json_field_u64(writer, "lease", holding_fence(holding).lease);
        json_field_u64(writer, "fence", holding_fence(holding).fence);
        json_field_u64(writer, "job", state->job);
        json_field_string(writer, "name", state->job_name);
        json_field_string(writer, "role", lease_role_name(state->role));
        json_field_i64(writer, "cores_milli", state->use.resources.cores_milli);
        json_field_i64(writer, "ram_bytes", state->use.resources.ram_bytes);
        json_object_end(writer);
    }
    json_array_end(writer);
}

static void write_cache(const struct daemon *daemon, struct json_writer *writer)
{
    struct error error;
    uint64_t bytes = 0;
    if (cache_measure(daemon->options->state_dir, &bytes, &error) < 0)
        log_event(LOG_WARN, "cache_unknown", "error=\"%s\"", error.message);
    else
        json_field_u64(writer, "cache_bytes", bytes);
    json_field_i64(writer, "cache_bytes_max", daemon->options->cache_bytes);
}

static void write_status(const struct daemon *daemon, struct json_writer *writer)
{
    json_object_begin(writer);
    json_field_u64(writer, "machine", daemon->enrolment->machine);
    json_field_string(writer, "name", daemon->enrolment->name);
    json_field_string(writer, "market", daemon->enrolment->server_url);
    json_field_bool(writer, "linked", daemon->is_welcome);
    json_field_bool(writer, "stopping", daemon->is_stopping);
    write_cache(daemon, writer);
    earnings_write(&daemon->earnings, market_now_ms(daemon), writer);
    owner_write(daemon->owner, writer);
    write_leases(daemon, writer);
    json_object_end(writer);
}

static void daemon_on_request(void *context, const struct owner_request *request,
                              struct json_writer *writer)
{
    struct daemon *daemon = context;
    if (request->verb != OWNER_STATUS)
        log_event(LOG_INFO, "owner_said", "where=here word=%s",
                  owner_verb_name((enum owner_verb)request->verb));
    switch ((enum owner_verb)request->verb) {
    case OWNER_PAUSE:
        owner_pause(daemon->owner, OWNER_HERE, request->for_ms);
        break;
    case OWNER_RESUME:
        owner_resume(daemon->owner, OWNER_HERE);
        break;
    case OWNER_DRAIN:
        owner_drain(daemon->owner);
        break;
    case OWNER_STATUS:
    case OWNER_STOP:
    case OWNER_VERB_COUNT:
        break;
    }
    write_status(daemon, writer);
    if (request->verb == OWNER_STOP)
        daemon_stop(daemon);
}

/* ---- Life ------------------------------------------------------------------------------------ */

int daemon_open_owner(struct daemon *daemon, struct error *error)
{
    const struct daemon_options *options = daemon->options;
    const struct owner_options owner = {.loop = daemon->loop,
                                        .root = options->root,
                                        .display = options->display,
                                        .state_dir = options->state_dir,
                                        .limits = options->guard,
                                        .is_blind = options->is_blind,
                                        .is_metered = options->is_metered,
                                        .our_cpu_ms = daemon_lease_cpu_ms,
                                        .others_gpu_milli = daemon_others_gpu_milli,
                                        .uses_gpu = daemon_leases_gpu,
                                        .on_change = daemon_on_owner,
                                        .context = daemon};
    daemon->owner = owner_new(&owner);
    struct error unread;
    if (earnings_load(options->state_dir, &daemon->earnings, &unread) < 0 &&
        unread.code != ERROR_NOT_FOUND)
        log_event(LOG_WARN, "earnings_forgotten", "error=\"%s\"", unread.message);
    daemon_weigh_keepers(daemon); /* it may have been paused before */
    daemon_set_yield(daemon, yield_level(daemon));
    return owner_line_open(daemon->loop, options->state_dir, daemon_on_request, daemon,
                           &daemon->owner_line, error);
}
