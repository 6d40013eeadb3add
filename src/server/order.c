/*
 * Orders: what the core decided, brought over to the hub's thread.
 *
 * On the core thread each committed event that concerns a machine becomes an order with everything
 * the hub needs (a START is written and signed here, where the state is); the orders of a batch are
 * posted together and carried out in their order.
 */
#include "base/assert.h"
#include "base/log.h"
#include "runtime/native.h"
#include "server/hub_internal.h"
#include "server/projection.h"
#include "server/secrets.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>

enum order_kind {
    ORDER_MACHINE,
    ORDER_OFFERS,
    ORDER_EARNINGS,
    ORDER_START,
    ORDER_RENEW,
    ORDER_PROMOTE,
    ORDER_STOP,
    ORDER_END,
    ORDER_JOB_OVER,
    ORDER_SETTINGS
};

struct order {
    struct order *next;
    struct hub *hub;
    enum order_kind kind;
    uint64_t id; /* of the machine, the lease or the job */
    uint64_t fence;
    uint64_t owner;
    uint64_t generation;
    uint8_t public_key[MACHINE_KEY_SIZE];
    struct probe probe;
    struct buffer offers; /* payload of an OFFERS */
    struct earnings_message earnings;
    struct hub_lease *lease; /* start; NULL: it could not be prepared, `reason` says why */
    uint32_t grace_ms;
    int64_t silence_ms;
    char reason[LEASE_REASON_SIZE];
};

/* ---- Preparing a START ----------------------------------------------------------------------- */

/* What each shard's first worker was leased with: its successors take over the same records. */
static const uint64_t *shard_speeds(struct arena *arena, const struct job *job)
{
    const size_t world = job->request.num_nodes;
    uint64_t *speeds = arena_alloc(arena, world * sizeof(*speeds));
    uint64_t *firsts = arena_alloc(arena, world * sizeof(*firsts));
    memset(speeds, 0, world * sizeof(*speeds));
    memset(firsts, 0, world * sizeof(*firsts));
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *lease = job->leases[i];
        if (lease->role != LEASE_ROLE_WORKER || lease->is_former || lease->rank >= world ||
            (firsts[lease->rank] && firsts[lease->rank] < lease->id))
            continue;
        firsts[lease->rank] = lease->id;
        speeds[lease->rank] = (uint64_t)lease->units.core_milli;
    }
    return speeds;
}

/* Beside those that the server will write itself, one while it replaces the other. */
static bool do_fit(const struct native_checkpoint checkpoints[2], const struct lease *lease)
{
    const uint64_t third = (uint64_t)lease->resources.disk_bytes / 3;
    return checkpoints[0].size_bytes <= third &&
           checkpoints[1].size_bytes <= third - checkpoints[0].size_bytes;
}

static int write_document(struct hub *hub, const struct core *core, const struct job *job,
                          const struct lease *lease, struct hub_lease *out, struct buffer *json,
                          struct buffer *secrets, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(4 << 20);
    struct job_spec spec = {0};
    if (job_spec_read(arena, job->request.spec, &spec, error) < 0)
        return -1;
    /* One that runs has had its START, and gets no other. */
    if (lease->state != LEASE_STATE_RUNNING &&
        secrets_open(hub->server, job->request.account, &spec, secrets, error) < 0)
        return -1;
    out->is_command = job_spec_is_command(&spec);
    out->checkpoint_interval_ms = job_spec_checkpoint_ms(&spec);
    if (spec.input_count > 0)
        memcpy(out->manifest, spec.inputs[0].manifest, sizeof(out->manifest));
    struct native_checkpoint checkpoints[2];
    const size_t checkpoint_count =
        lease->role == LEASE_ROLE_SERVER
            ? checkpoints_find(hub, job->id, CHECKPOINT_SLOT_JOB, checkpoints)
            : 0;
    const struct native_lease native = {
        .checkpoint = checkpoint_count > 0 ? &checkpoints[0] : NULL,
        .checkpoint_before =
            checkpoint_count > 1 && do_fit(checkpoints, lease) ? &checkpoints[1] : NULL,
        .lease = lease->id,
        .fence = lease->fence,
        .job = lease->job,
        .machine = lease->machine,
        .machine_name = text_of(core_machine(core, lease->machine)->name),
        .offer = lease->offer,
        .role = lease->role,
        .rank = (uint32_t)lease->rank,
        .world = (uint32_t)job->request.num_nodes,
        .speeds = text_is(spec.train.shards, "speed") ? shard_speeds(arena, job) : NULL,
        .cores_milli = lease->resources.cores_milli,
        .ram_bytes = lease->resources.ram_bytes,
        .disk_bytes = lease->resources.disk_bytes,
        .gpus_milli = lease->resources.gpus_milli,
        .expires_ms = projection_lease_expires_ms(core, lease),
    };
    return native_lease_write(&spec, &native, json, error);
}

/* Workers dial every server but the replica, and servers the lead. */
static bool does_dial(const struct job *job, const struct lease *from, const struct lease *to)
{
    return to->role == LEASE_ROLE_SERVER && to->rank < job_request_servers(&job->request) &&
           (from->role == LEASE_ROLE_WORKER || (from->rank > 0 && to->rank == 0));
}

/* Who is dialled is told the dialler's key; who dials has it. Both ends get the same ticket. */
static uint32_t list_peers(const struct keys *keys, const struct job *job,
                           const struct lease *lease, struct lease_peer *out)
{
    uint32_t count = 0;
    for (size_t i = 0; i < job->lease_count && count < LEASE_PEERS_MAX; i++) {
        const struct lease *other = job->leases[i];
        const bool is_dialled = does_dial(job, other, lease);
        if (!lease_is_open(other) || (!is_dialled && !does_dial(job, lease, other)))
            continue;
        struct lease_peer *peer = &out[count++];
        *peer = (struct lease_peer){
            .lease = other->id,
            .fence = other->fence,
            .role = other->role,
            .rank = (uint32_t)other->rank,
        };
        if (is_dialled)
            keys_lease(keys, other->id, other->fence, peer->key);
        const struct keys_stream stream = {.lease = is_dialled ? other->id : lease->id,
                                           .server_rank =
                                               (uint32_t)(is_dialled ? lease : other)->rank};
        keys_ticket(keys, &stream, peer->ticket);
    }
    return count;
}

/* Its START names all that dial it and are open now. One that runs already may have had its START
 * when there were only those made together with it; or when it was a replica, and there was nobody.
 */
static uint64_t newest_peer(const struct job *job, const struct lease *lease)
{
    uint64_t newest = 0;
    if (lease->role != LEASE_ROLE_SERVER ||
        (lease->state == LEASE_STATE_RUNNING && job->request.has_replica) ||
        lease->rank >= job_request_servers(&job->request))
        return 0;
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *other = job->leases[i];
        const bool is_named = lease->state == LEASE_STATE_RUNNING
                                  ? other->offered_ms == lease->offered_ms
                                  : lease_is_open(other);
        if (is_named && other->id > newest)
            newest = other->id;
    }
    return newest;
}

static int write_start(struct hub *hub, const struct core *core, const struct job *job,
                       const struct lease *lease, struct hub_lease *out, struct error *error)
{
    const struct keys *keys = hub->server->keys;
    struct buffer document AUTO_BUFFER, secrets AUTO_BUFFER;
    buffer_init(&document, LEASE_DOCUMENT_SIZE_MAX);
    buffer_init_secret(&secrets, LEASE_SECRETS_SIZE_MAX + 1);
    if (write_document(hub, core, job, lease, out, &document, &secrets, error) < 0)
        return -1;
    struct lease_peer *peers = calloc(LEASE_PEERS_MAX, sizeof(*peers));
    ASSERT(peers);
    char token[KEYS_TOKEN_SIZE];
    keys_fetch_token(keys, lease->id, lease->fence, token);
    struct lease_message message = {
        .type = LEASE_MESSAGE_START,
        .start = {.document = buffer_text(&document),
                  .fetch_token = text_of(token),
                  .secrets = buffer_text(&secrets),
                  .peers = peers,
                  .peer_count = list_peers(keys, job, lease, peers)},
    };
    keys_sign(keys, message.start.document, message.start.signature);
    keys_lease(keys, lease->id, lease->fence, message.start.key);
    lease_message_encode(&message, &out->start);
    struct lease_message renewal = {.type = LEASE_MESSAGE_RENEW,
                                    .renew = {.document = message.start.document}};
    memcpy(renewal.renew.signature, message.start.signature, LEASE_SIGNATURE_SIZE);
    lease_message_encode(&renewal, &out->renewal);
    sodium_memzero(peers, LEASE_PEERS_MAX * sizeof(*peers));
    free(peers);
    return buffer_check(&out->start, error) < 0 ? -1 : buffer_check(&out->renewal, error);
}

/* The newest server of each rank that the lease dials. */
static void list_dials(const struct job *job, const struct lease *lease, struct hub_lease *out)
{
    for (size_t rank = 0; rank < job_request_servers(&job->request); rank++) {
        const struct lease *server_lease = job->servers[rank];
        if (server_lease && does_dial(job, lease, server_lease))
            out->dials[out->dial_count++].server_lease = server_lease->id;
    }
}

struct hub_lease *order_lease(struct hub *hub, const struct core *core, const struct lease *lease,
                              struct error *error)
{
    const struct job *job = core_job(core, lease->job);
    ASSERT(job);
    struct hub_lease *made = calloc(1, sizeof(*made));
    ASSERT(made);
    *made = (struct hub_lease){
        .id = lease->id,
        .fence = lease->fence,
        .job = lease->job,
        .account = job->request.account,
        .machine = lease->machine,
        .role = lease->role,
        .rank = lease->rank,
        .is_replica = job_is_replica(job, lease),
        .newest_peer = newest_peer(job, lease),
        .is_known = lease->state == LEASE_STATE_RUNNING,
        .has_network =
            lease->role == LEASE_ROLE_WORKER && job->request.wishes.network != OFFER_NETWORK_NONE,
        .is_stop_wanted = lease->stop_wanted_ms != 0,
        .grace_ms = (uint32_t)core_settings(core)->grace_ms,
        .verified_index = lease->tick_index,
        .verified_ms = lease->wall_ms,
    };
    snprintf(made->stop_reason, sizeof(made->stop_reason), "the job is stopping");
    const int64_t started_ms = lease->started_ms ? lease->started_ms : lease->offered_ms;
    list_dials(job, lease, made);
    verify_lease_init(&made->verify, !hub_has_server(made), started_ms, lease->tick_index,
                      lease->wall_ms);
    made->verify.is_standby = hub_has_lead(made);
    buffer_init_secret(&made->start, LEASE_MESSAGE_SIZE_MAX);
    buffer_init(&made->renewal, LEASE_MESSAGE_SIZE_MAX);
    if (write_start(hub, core, job, lease, made, error) < 0) {
        dispatch_lease_free(made);
        return NULL;
    }
    return made;
}

/* ---- Core thread ----------------------------------------------------------------------------- */

static struct order *order_new(struct hub *hub, enum order_kind kind, uint64_t id)
{
    struct order *order = calloc(1, sizeof(*order));
    ASSERT(order);
    order->hub = hub;
    order->kind = kind;
    order->id = id;
    return order;
}

static struct order *start_order(struct hub *hub, const struct core *core, enum order_kind kind,
                                 uint64_t id)
{
    const struct lease *lease = core_lease(core, id);
    if (!lease || !lease_is_open(lease))
        return NULL; /* offered and ended in one batch */
    struct order *order = order_new(hub, kind, lease->id);
    order->fence = lease->fence;
    struct error error;
    order->lease = order_lease(hub, core, lease, &error);
    if (!order->lease)
        snprintf(order->reason, sizeof(order->reason), "%.*s", LEASE_REASON_SIZE - 1,
                 error.message);
    return order;
}

/* Enrolled, or probed anew. */
static struct order *machine_order(struct hub *hub, const struct core *core, uint64_t id)
{
    const struct machine *machine = core_machine(core, id);
    ASSERT(machine);
    struct order *order = order_new(hub, ORDER_MACHINE, id);
    order->owner = machine->owner;
    order->generation = machine->generation;
    memcpy(order->public_key, machine->public_key, sizeof(order->public_key));
    order->probe = machine->probe;
    return order;
}

void order_offers(const struct machine *machine, struct buffer *payload)
{
    struct lent_offer offers[LEASE_OFFERS_MAX];
    _Static_assert((int)MACHINE_OFFERS_MAX <= (int)LEASE_OFFERS_MAX, "an OFFERS holds them all");
    for (size_t i = 0; i < machine->offer_count; i++) {
        const struct offer_kept_terms *terms = &machine->offers[i]->terms;
        const uint32_t worker = terms->roles & MACHINE_ROLE_WORKER ? 1u << LEASE_ROLE_WORKER : 0;
        const uint32_t server = terms->roles & MACHINE_ROLE_SERVER ? 1u << LEASE_ROLE_SERVER : 0;
        offers[i] = (struct lent_offer){.offer = machine->offers[i]->id,
                                        .resources = terms->resources,
                                        .roles = worker | server};
    }
    const struct lease_message message = {
        .type = LEASE_MESSAGE_OFFERS,
        .offers = {.offers = offers, .offer_count = (uint32_t)machine->offer_count}};
    lease_message_encode(&message, payload);
    ASSERT(!payload->is_overflowed);
}

static struct order *offers_order(struct hub *hub, const struct core *core, uint64_t id)
{
    const struct machine *machine = core_machine(core, id);
    ASSERT(machine);
    struct order *order = order_new(hub, ORDER_OFFERS, id);
    buffer_init(&order->offers, LEASE_MESSAGE_SIZE_MAX);
    order_offers(machine, &order->offers);
    return order;
}

struct earnings_message order_earnings(const struct machine *machine)
{
    return (struct earnings_message){machine->reputation.earned_micro, machine->withheld_micro};
}

static struct order *earnings_order(struct hub *hub, const struct core *core, uint64_t lease)
{
    const struct lease *found = core_lease(core, lease);
    ASSERT(found);
    struct order *order = order_new(hub, ORDER_EARNINGS, found->machine);
    order->earnings = order_earnings(core_machine(core, found->machine));
    return order;
}

/* A server that its job gets a successor of must not tell the workers to stop: its machine is not
 * told who is to follow, so it is not asked to end in good order. */
static bool is_moved(const struct core *core, const struct event *event)
{
    const struct lease *lease = core_lease(core, event->lease_stop_wanted.lease);
    return event->lease_stop_wanted.is_reclaim && lease && lease->role == LEASE_ROLE_SERVER &&
           core_job(core, lease->job)->request.replaces_lost;
}

static struct order *order_of(struct hub *hub, const struct core *core, const struct event *event)
{
    struct order *order = NULL;
    if (event->kind == EVENT_MACHINE_ENROLLED) {
        order = machine_order(hub, core, event->machine_enrolled.machine);
    } else if (event->kind == EVENT_MACHINE_PROBED) {
        order = machine_order(hub, core, event->machine_probed.machine);
    } else if (event->kind == EVENT_OFFER_SET) {
        order = offers_order(hub, core, event->offer_set.machine);
    } else if (event->kind == EVENT_OFFER_WITHDRAWN) {
        order = offers_order(hub, core, event->offer_withdrawn.machine);
    } else if (event->kind == EVENT_LEASE_TICKED) {
        order = earnings_order(hub, core, event->lease_ticked.lease);
    } else if (event->kind == EVENT_LEASE_OFFERED) {
        order = start_order(hub, core, ORDER_START, event->lease_offered.lease);
    } else if (event->kind == EVENT_LEASE_PROMOTED) {
        order = order_new(hub, ORDER_PROMOTE, event->lease_promoted.lease);
    } else if (event->kind == EVENT_LEASE_EXTENDED) {
        order = start_order(hub, core, ORDER_RENEW, event->lease_extended.lease);
    } else if (event->kind == EVENT_LEASE_STOP_WANTED) {
        order = order_new(hub, ORDER_STOP, event->lease_stop_wanted.lease);
        order->grace_ms = is_moved(core, event) ? 0 : (uint32_t)event->lease_stop_wanted.grace_ms;
        memcpy(order->reason, event->lease_stop_wanted.reason, sizeof(order->reason));
    } else if (event->kind == EVENT_SETTINGS_CHANGED) {
        order = order_new(hub, ORDER_SETTINGS, 0);
        order->silence_ms = event->settings_changed.silence_ms;
    } else if (event->kind == EVENT_LEASE_ENDED) {
        order = order_new(hub, ORDER_END, event->lease_ended.lease);
    } else if (event->kind == EVENT_JOB_STATE_CHANGED &&
               job_state_is_final(event->job_state_changed.state)) {
        secrets_forget(hub->server, core_job(core, event->job_state_changed.job));
        order = order_new(hub, ORDER_JOB_OVER, event->job_state_changed.job);
    }
    return order;
}

/* ---- Hub thread ------------------------------------------------------------------------------ */

void order_refuse(struct hub *hub, uint64_t lease, uint64_t fence, const char *reason)
{
    log_event(LOG_ERROR, "lease_not_prepared", "lease=%" PRIu64 " error=\"%s\"", lease, reason);
    hub_command(hub,
                &(struct command){
                    .kind = COMMAND_END_LEASE,
                    .end_lease = {.lease = lease, .fence = fence, .outcome = LEASE_OUTCOME_FAILED}},
                reason);
}

static void carry_out(struct order *order)
{
    struct hub *hub = order->hub;
    struct hub_lease *lease = map_get(&hub->leases, order->id);
    switch (order->kind) {
    case ORDER_MACHINE:
        hub_put_machine(hub, &(struct hub_enrolled){.id = order->id,
                                                    .owner = order->owner,
                                                    .generation = order->generation,
                                                    .public_key = order->public_key,
                                                    .probe = &order->probe});
        return;
    case ORDER_OFFERS:
        hub_put_offers(hub, order->id, buffer_text(&order->offers));
        buffer_done(&order->offers);
        return;
    case ORDER_EARNINGS:
        hub_put_earnings(hub, order->id, &order->earnings);
        return;
    case ORDER_START:
        if (order->lease)
            dispatch_add_take(hub, TAKE(order->lease));
        else
            order_refuse(hub, order->id, order->fence, order->reason);
        return;
    case ORDER_RENEW:
        if (order->lease)
            dispatch_renew_take(hub, TAKE(order->lease));
        else
            order_refuse(hub, order->id, order->fence, order->reason);
        return;
    case ORDER_PROMOTE:
        if (lease)
            dispatch_promote(hub, lease);
        return;
    case ORDER_STOP:
        if (!lease)
            return;
        lease->grace_ms = order->grace_ms;
        snprintf(lease->stop_reason, sizeof(lease->stop_reason), "%s", order->reason);
        dispatch_stop(hub, lease);
        return;
    case ORDER_SETTINGS:
        hub->silence_ns = order->silence_ms * INT64_C(1000000);
        return;
    case ORDER_END:
        if (lease)
            dispatch_end(hub, lease);
        tick_lease_ended(hub, order->id);
        return;
    case ORDER_JOB_OVER:
        checkpoints_forget(hub, order->id); /* after its leases' end: none leaves another */
        return;
    }
}

static void carry_out_all(void *context)
{
    struct order *order = context;
    while (order) {
        carry_out(order);
        struct order *next = order->next;
        free(order);
        order = next;
    }
}

void hub_listen(void *context, const struct core *core, const struct event *events,
                size_t event_count)
{
    struct hub *hub = context;
    struct order *first = NULL, **end = &first;
    for (size_t i = 0; i < event_count; i++) {
        struct order *order = order_of(hub, core, &events[i]);
        if (!order)
            continue;
        *end = order;
        end = &order->next;
    }
    if (first)
        loop_post(hub->loop, carry_out_all, first);
    seek_listen(hub, core, events, event_count);
}
