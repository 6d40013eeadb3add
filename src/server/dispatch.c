/*
 * Dispatch: gets leases to their machines and stopped there, however often links break.
 *
 * A lease stays in the hub's map from its offer to its end. What a machine does not have yet is
 * sent when it connects; what it has and should not is stopped; what it lost is ended.
 *
 * A worker's process may end before its parameter server has told the market of its last pushes.
 * The lease then settles: its end waits for that word, for the parameter server's own end, or for
 * HUB_SETTLE_MS, so that no accepted work goes unpaid.
 */
#include "base/assert.h"
#include "base/log.h"
#include "server/hub_internal.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>

void dispatch_lease_free(struct hub_lease *lease)
{
    buffer_done(&lease->start);
    buffer_done(&lease->renewal);
    free(lease);
}

struct hub_lease *dispatch_find(struct hub_machine *machine, uint64_t id, uint64_t fence)
{
    struct hub_lease *lease = map_get(&machine->hub->leases, id);
    if (!lease || lease->fence != fence || lease->machine != machine->id)
        return NULL;
    return lease;
}

static void send_start(struct hub *hub, struct hub_lease *lease)
{
    struct hub_machine *machine = hub_machine(hub, lease->machine);
    if (!machine || !machine->is_welcome || machine->lingering.count > 0)
        return; /* it is sent when the machine says hello, or has let go of the others */
    if (!hub_send_encoded(machine, LEASE_MESSAGE_START, buffer_text(&lease->start)))
        return;
    log_event(LOG_INFO, "lease_sent", "lease=%" PRIu64 " job=%" PRIu64 " machine=%" PRIu64,
              lease->id, lease->job, lease->machine);
    borrower_tell(hub, lease); /* right behind it: it is asked before the market is */
}

/* Who came later and dials: its key and ticket, for the parameter server that has its START. */
static void send_peer(struct hub *hub, const struct hub_lease *server_lease,
                      const struct hub_dial *dial)
{
    const struct hub_lease *dialler = dial->dialler;
    struct hub_machine *machine = hub_machine(hub, server_lease->machine);
    if (!machine || !machine->is_welcome || dialler->is_over ||
        dialler->id <= server_lease->newest_peer)
        return;
    struct lease_message message = {
        .type = LEASE_MESSAGE_PEER,
        .peer = {.lease = server_lease->id,
                 .fence = server_lease->fence,
                 .peer = {.lease = dialler->id,
                          .fence = dialler->fence,
                          .role = dialler->role,
                          .rank = (uint32_t)dialler->rank}},
    };
    const struct keys_stream stream = {dialler->id, dial->server_rank, dial->attempt};
    keys_lease(hub->server->keys, dialler->id, dialler->fence, message.peer.peer.key);
    keys_ticket(hub->server->keys, &stream, message.peer.peer.ticket);
    if (hub_send(machine, &message))
        log_event(LOG_INFO, "peer_sent", "lease=%" PRIu64 " peer=%" PRIu64, server_lease->id,
                  dialler->id);
    sodium_memzero(&message, sizeof(message));
}

/* The lease's stream to that server; NULL: it does not dial it. */
static struct hub_dial *dial_to(struct hub_lease *lease, const struct hub_lease *server_lease)
{
    for (uint32_t i = 0; i < lease->dial_count; i++)
        if (lease->dials[i].server_lease == server_lease->id)
            return &lease->dials[i];
    return NULL;
}

/* Calls the function for every stream to that server. */
static void each_dial_to(struct hub *hub, const struct hub_lease *server_lease,
                         void (*function)(struct hub *, const struct hub_lease *,
                                          struct hub_dial *))
{
    if (server_lease->role != LEASE_ROLE_SERVER)
        return;
    for (size_t i = 0; i < hub->leases.count; i++) {
        struct hub_dial *dial = dial_to(hub->leases.entries[i].value, server_lease);
        if (dial)
            function(hub, server_lease, dial);
    }
}

static void send_dialler(struct hub *hub, const struct hub_lease *server_lease,
                         struct hub_dial *dial)
{
    send_peer(hub, server_lease, dial);
}

/* A daemon that knows a peer already lets it be. */
static void send_peers(struct hub *hub, const struct hub_lease *server_lease)
{
    each_dial_to(hub, server_lease, send_dialler);
}

static void send_stop(struct hub_machine *machine, uint64_t lease, uint64_t fence,
                      uint32_t grace_ms, const char *reason)
{
    hub_send(machine, &(struct lease_message){.type = LEASE_MESSAGE_STOP,
                                              .stop = {.lease = lease,
                                                       .fence = fence,
                                                       .grace_ms = grace_ms,
                                                       .reason = text_of(reason)}});
}

/* Who dials its rank dialled another before: the streams they have do not lead to it. */
static void hand_over(struct hub *hub, const struct hub_lease *successor)
{
    for (size_t i = 0; i < hub->leases.count; i++) {
        struct hub_lease *lease = hub->leases.entries[i].value;
        if (lease->job != successor->job || successor->rank >= lease->dial_count ||
            lease->dials[successor->rank].server_lease >= successor->id)
            continue;
        lease->dials[successor->rank].server_lease = successor->id;
        stream_cut(&lease->dials[successor->rank]);
    }
}

static void redial(struct hub *hub, const struct hub_lease *server_lease, struct hub_dial *dial)
{
    (void)server_lease;
    if (!dial->dialler->is_over)
        stream_redial(hub, dial);
}

static void expect_streams(struct hub *hub, struct hub_lease *lease)
{
    for (uint32_t i = 0; i < lease->dial_count; i++) {
        struct hub_dial *dial = &lease->dials[i];
        dial->dialler = lease;
        dial->server_rank = i;
        dial->is_redial_due = lease->is_known; /* the market restarted: the relay is gone */
        stream_expect(hub, dial, dial->attempt);
        const struct hub_lease *server_lease = map_get(&hub->leases, dial->server_lease);
        if (server_lease)
            send_peer(hub, server_lease, dial);
    }
}

void dispatch_add_take(struct hub *hub, struct hub_lease *lease)
{
    struct hub_lease *old = map_get(&hub->leases, lease->id);
    if (old)
        dispatch_end(hub, old);
    map_put(&hub->leases, lease->id, lease);
    struct hub_machine *machine = hub_machine(hub, lease->machine);
    if (machine && machine->lease_count++ == 0)
        machine->awaited_ns = hub_now_ns(hub);
    if (lease->role == LEASE_ROLE_SERVER)
        hand_over(hub, lease);
    expect_streams(hub, lease);
    if (!lease->is_known)
        send_start(hub, lease);
    network_tell(hub, lease);
}

/* What it was told at its start is of a replica: all who dial a lead are news to it. */
void dispatch_promote(struct hub *hub, struct hub_lease *lease)
{
    log_event(LOG_INFO, "lease_promoted", "lease=%" PRIu64 " job=%" PRIu64, lease->id, lease->job);
    stream_forget(hub, lease);
    lease->dial_count = 0;
    lease->rank = 0;
    lease->is_replica = false;
    lease->newest_peer = 0;
    lease->verify.is_standby = false;
    hand_over(hub, lease);
    send_peers(hub, lease);
    each_dial_to(hub, lease, redial);
}

static void send_renewal(struct hub *hub, const struct hub_lease *lease)
{
    struct hub_machine *machine = hub_machine(hub, lease->machine);
    if (machine && machine->is_welcome && lease->is_known && !lease->is_over)
        hub_send_encoded(machine, LEASE_MESSAGE_RENEW, buffer_text(&lease->renewal));
}

void dispatch_renew_take(struct hub *hub, struct hub_lease *renewed)
{
    struct hub_lease *lease = map_get(&hub->leases, renewed->id);
    if (lease && lease->fence == renewed->fence) {
        const struct buffer start = lease->start, renewal = lease->renewal;
        lease->start = renewed->start;
        lease->renewal = renewed->renewal;
        renewed->start = start;
        renewed->renewal = renewal;
        log_event(LOG_INFO, "lease_renewed", "lease=%" PRIu64, lease->id);
        send_renewal(hub, lease);
    }
    dispatch_lease_free(renewed);
}

void dispatch_stop(struct hub *hub, struct hub_lease *lease)
{
    lease->is_stop_wanted = true;
    struct hub_machine *machine = hub_machine(hub, lease->machine);
    if (machine && machine->is_welcome)
        send_stop(machine, lease->id, lease->fence, lease->grace_ms, lease->stop_reason);
}

/* A server that is out of its lease may still speak: nobody listens to it any more. */
static void cut(struct hub *hub, const struct hub_lease *server_lease, struct hub_dial *dial)
{
    (void)hub;
    (void)server_lease;
    stream_cut(dial);
}

void dispatch_end(struct hub *hub, struct hub_lease *lease)
{
    struct hub_machine *machine = hub_machine(hub, lease->machine);
    /* Ended without the machine's word: should it still run, it must not go on. */
    if (!lease->is_over && machine && machine->is_welcome) {
        send_stop(machine, lease->id, lease->fence, 0, "the lease has ended");
        map_put(&machine->lingering, lease->id, machine);
    }
    suspect_lease_over(hub, lease);
    stream_forget(hub, lease);
    each_dial_to(hub, lease, cut);
    network_forget(hub, lease);
    direct_forget(hub, lease);
    map_remove(&hub->leases, lease->id);
    if (machine)
        machine->lease_count--;
    dispatch_lease_free(lease);
}

static bool names(const struct hello_message *hello, const struct hub_lease *lease)
{
    for (uint32_t i = 0; i < hello->running_count; i++)
        if (hello->running[i].lease == lease->id && hello->running[i].fence == lease->fence)
            return true;
    return false;
}

void dispatch_hello(struct hub_machine *machine, const struct hello_message *hello)
{
    struct hub *hub = machine->hub;
    map_clear(&machine->lingering);
    for (uint32_t i = 0; i < hello->running_count; i++) {
        const struct lease_fence *running = &hello->running[i];
        if (dispatch_find(machine, running->lease, running->fence))
            continue;
        send_stop(machine, running->lease, running->fence, 0,
                  "the market does not know this lease any more");
        map_put(&machine->lingering, running->lease, machine);
    }
    for (size_t i = 0; i < hub->leases.count; i++) {
        struct hub_lease *lease = hub->leases.entries[i].value;
        if (lease->machine != machine->id || lease->is_over)
            continue;
        if (names(hello, lease)) {
            lease->is_known = true;
            lease->missing_ns = 0;
            for (uint32_t k = 0; k < lease->dial_count; k++)
                lease->dials[k].is_redial_due |= !lease->dials[k].relay;
            if (lease->is_stop_wanted)
                dispatch_stop(hub, lease);
            send_peers(hub, lease);
            send_renewal(hub, lease);
            network_tell(hub, lease);
            sources_tell(hub, lease);
            borrower_tell(hub, lease);
        } else if (lease->is_known || lease->is_stop_wanted) {
            /* It may be about to say how the lease ended. */
            lease->missing_ns = hub_now_ns(hub);
        } else {
            send_start(hub, lease);
            send_peers(hub, lease);
            network_tell(hub, lease);
        }
    }
}

static enum lease_outcome outcome_of(const struct hub_lease *lease, enum lease_run_state state)
{
    if (state == LEASE_RUN_SUCCEEDED)
        return LEASE_OUTCOME_SUCCEEDED;
    if (state == LEASE_RUN_STOPPED && lease->is_stop_wanted)
        return LEASE_OUTCOME_STOPPED;
    if (state == LEASE_RUN_RECLAIMED)
        return LEASE_OUTCOME_RECLAIMED;
    if (state == LEASE_RUN_LOST)
        return LEASE_OUTCOME_LOST;
    return LEASE_OUTCOME_FAILED;
}

/* A daemon may say anything; what no process ends with counts as the worst. */
static int64_t exit_code_of(const struct state_message *state)
{
    return state->exit_code < 0 || state->exit_code > LEASE_EXIT_CODE_MAX ? LEASE_EXIT_CODE_MAX
                                                                          : state->exit_code;
}

/* Whether the lead runs, and so may still confirm ticks. */
static bool is_vouched_for(const struct hub *hub, const struct hub_lease *lease)
{
    const struct hub_lease *lead =
        hub_has_server(lease) ? map_get(&hub->leases, lease->dials[0].server_lease) : NULL;
    return lead && !lead->is_over;
}

void dispatch_settle(struct hub *hub, struct hub_lease *lease)
{
    if (!lease->is_settling)
        return;
    lease->is_settling = false;
    hub_command(hub,
                &(struct command){.kind = COMMAND_END_LEASE,
                                  .end_lease = {.lease = lease->id,
                                                .fence = lease->fence,
                                                .outcome = lease->outcome,
                                                .exit_code = lease->exit_code,
                                                .tick_index = lease->verified_index,
                                                .wall_ms = lease->verified_ms}},
                lease->end_reason);
    struct hub_machine *machine = hub_machine(hub, lease->machine);
    if (machine)
        hub_tell_gone(machine);
}

bool dispatch_is_settling(const struct hub_machine *machine)
{
    const struct hub *hub = machine->hub;
    for (size_t i = 0; i < hub->leases.count; i++) {
        const struct hub_lease *lease = hub->leases.entries[i].value;
        if (lease->machine == machine->id && lease->is_settling)
            return true;
    }
    return false;
}

static void settle_dialler(struct hub *hub, const struct hub_lease *lead, struct hub_dial *dial)
{
    (void)lead;
    dispatch_settle(hub, dial->dialler);
}

/* Its machine has nothing more to do for it. */
static void lease_over(struct hub *hub, struct hub_lease *lease, enum lease_outcome outcome,
                       const char *reason)
{
    lease->is_over = true;
    lease->is_settling = true;
    suspect_lease_over(hub, lease);
    lease->settling_ns = hub_now_ns(hub);
    lease->outcome = outcome;
    snprintf(lease->end_reason, sizeof(lease->end_reason), "%s", reason);
    if (!lease->verify.pending_count || !is_vouched_for(hub, lease))
        dispatch_settle(hub, lease);
    if (!hub_has_lead(lease))
        each_dial_to(hub, lease, settle_dialler);
}

/* It has let go of a lease that ended without its word. After the last, what waited for the room is
 * sent; a daemon that has one already says so. */
static void lease_let_go(struct hub_machine *machine, uint64_t id)
{
    struct hub *hub = machine->hub;
    if (!map_remove(&machine->lingering, id) || machine->lingering.count > 0)
        return;
    for (size_t i = 0; i < hub->leases.count; i++) {
        struct hub_lease *lease = hub->leases.entries[i].value;
        if (lease->machine == machine->id && !lease->is_known && !lease->is_over &&
            !lease->is_stop_wanted) {
            send_start(hub, lease);
            send_peers(hub, lease); /* those that came while its START waited */
        }
    }
}

void dispatch_state(struct hub_machine *machine, const struct state_message *state)
{
    struct hub *hub = machine->hub;
    struct hub_lease *lease = dispatch_find(machine, state->lease, state->fence);
    if (state->state != LEASE_RUN_STARTING && state->state != LEASE_RUN_RUNNING)
        lease_let_go(machine, state->lease);
    if (!lease || lease->is_over) {
        log_event(LOG_DEBUG, "state_of_unknown_lease", "lease=%" PRIu64 " machine=%" PRIu64,
                  state->lease, machine->id);
        return;
    }
    const bool is_news = !lease->is_known;
    lease->is_known = true;
    lease->missing_ns = 0;
    if (is_news)
        each_dial_to(hub, lease, redial); /* they need not wait for the next look at all leases */
    if (state->state == LEASE_RUN_STARTING ||
        (state->state == LEASE_RUN_RUNNING && lease->is_told_running))
        return;
    log_event(LOG_INFO, "lease_state",
              "lease=%" PRIu64 " job=%" PRIu64 " state=%s exit=%d reason=\"" TEXT_FORMAT "\"",
              lease->id, lease->job, lease_run_state_name(state->state), state->exit_code,
              TEXT_ARGS(state->reason));
    if (state->state == LEASE_RUN_RUNNING) {
        lease->is_told_running = true;
        hub_command(hub,
                    &(struct command){.kind = COMMAND_LEASE_RUNNING,
                                      .lease_running = {lease->id, lease->fence}},
                    NULL);
        return;
    }
    char reason[LEASE_REASON_SIZE];
    snprintf(reason, sizeof(reason), TEXT_FORMAT, TEXT_ARGS(state->reason));
    lease->exit_code = exit_code_of(state);
    lease_over(hub, lease, outcome_of(lease, state->state), reason);
}

static void redial_all(struct hub *hub, struct hub_lease *lease)
{
    for (uint32_t i = 0; i < lease->dial_count; i++)
        stream_redial(hub, &lease->dials[i]);
}

void dispatch_check(struct hub *hub)
{
    const int64_t now_ns = hub_now_ns(hub);
    for (size_t i = 0; i < hub->leases.count; i++) {
        struct hub_lease *lease = hub->leases.entries[i].value;
        if (lease->is_settling && (!is_vouched_for(hub, lease) ||
                                   now_ns - lease->settling_ns > HUB_SETTLE_MS * INT64_C(1000000)))
            dispatch_settle(hub, lease);
        if (lease->is_over)
            continue;
        if (lease->missing_ns && now_ns - lease->missing_ns > HUB_MISSING_MS * INT64_C(1000000))
            lease_over(hub, lease, LEASE_OUTCOME_LOST, "the machine came back without this lease");
        else
            redial_all(hub, lease);
    }
}
