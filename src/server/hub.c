#include "server/hub.h"

#include "base/assert.h"
#include "base/log.h"
#include "net/address.h"
#include "server/hub_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int64_t hub_now_ns(const struct hub *hub)
{
    return clock_monotonic_ns(hub->server->clock);
}

/* ---- Machines -------------------------------------------------------------------------------- */

struct hub_machine *hub_machine(struct hub *hub, uint64_t machine)
{
    return map_get(&hub->machines, machine);
}

void hub_put_machine(struct hub *hub, const struct hub_enrolled *enrolled)
{
    struct hub_machine *machine = hub_machine(hub, enrolled->id);
    if (!machine) {
        machine = calloc(1, sizeof(*machine));
        ASSERT(machine);
        machine->id = enrolled->id;
        machine->hub = hub;
        machine->heard_ns = hub_now_ns(hub);
        buffer_init(&machine->offers, LEASE_MESSAGE_SIZE_MAX);
        map_init(&machine->lingering);
        pace_init(machine);
        map_put(&hub->machines, enrolled->id, machine);
    }
    if (machine->generation != enrolled->generation) { /* its key is no longer good */
        connection_free(machine->contender);
        connection_free(machine->connection);
    }
    presence_put(machine, enrolled->probe);
    machine->owner = enrolled->owner;
    machine->generation = enrolled->generation;
    memcpy(machine->public_key, enrolled->public_key, sizeof(machine->public_key));
}

void hub_put_offers(struct hub *hub, uint64_t id, struct text payload)
{
    struct hub_machine *machine = hub_machine(hub, id);
    ASSERT(machine);
    buffer_clear(&machine->offers);
    buffer_append_text(&machine->offers, payload);
    if (machine->is_welcome)
        hub_send_encoded(machine, LEASE_MESSAGE_OFFERS, payload);
}

void hub_put_earnings(struct hub *hub, uint64_t id, const struct earnings_message *earnings)
{
    struct hub_machine *machine = hub_machine(hub, id);
    ASSERT(machine);
    if (machine->earnings.earned_micro == earnings->earned_micro &&
        machine->earnings.withheld_micro == earnings->withheld_micro)
        return;
    machine->earnings = *earnings;
    if (machine->is_welcome)
        hub_send(machine,
                 &(struct lease_message){.type = LEASE_MESSAGE_EARNINGS, .earnings = *earnings});
}

bool hub_send_encoded(struct hub_machine *machine, enum lease_message_type type,
                      struct text payload)
{
    if (!machine->connection)
        return false;
    struct error error;
    if (link_send_text(connection_link(machine->connection), (uint16_t)type, payload, &error) == 0)
        return true;
    log_event(LOG_WARN, "message_not_sent", "machine=%" PRIu64 " type=%s error=\"%s\"", machine->id,
              lease_message_type_name(type), error.message);
    return false;
}

bool hub_send(struct hub_machine *machine, const struct lease_message *message)
{
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
    lease_message_encode(message, &payload);
    ASSERT(!payload.is_overflowed);
    return hub_send_encoded(machine, message->type, buffer_text(&payload));
}

void hub_tell_online(struct hub_machine *machine)
{
    if (machine->is_told_online || machine->muted_ns)
        return;
    machine->is_told_online = true;
    hub_command(machine->hub,
                &(struct command){.kind = COMMAND_MACHINE_CONNECTED,
                                  .machine_connected = {machine->id, machine->generation}},
                NULL);
}

void hub_tell_silent(struct hub_machine *machine)
{
    machine->is_told_online = false;
    log_event(LOG_INFO, "machine_silent", "machine=%" PRIu64, machine->id);
    hub_command(machine->hub,
                &(struct command){.kind = COMMAND_MACHINE_SILENT, .machine_silent = {machine->id}},
                NULL);
}

/* Its going ends its leases: one whose last ticks may still be confirmed comes first. */
void hub_tell_gone(struct hub_machine *machine)
{
    if (!machine->is_leaving || dispatch_is_settling(machine))
        return;
    machine->is_leaving = false;
    machine->is_told_online = false;
    hub_command(machine->hub,
                &(struct command){.kind = COMMAND_MACHINE_GONE, .machine_gone = {machine->id}},
                NULL);
}

static void take_message(struct hub_machine *machine, struct arena *arena,
                         const struct lease_message *message)
{
    if (message->type != LEASE_MESSAGE_HELLO && !machine->is_welcome) {
        log_event(LOG_WARN, "message_before_hello", "machine=%" PRIu64, machine->id);
        connection_free(machine->connection);
        return;
    }
    switch (message->type) {
    case LEASE_MESSAGE_HELLO:
        presence_hello(machine, &message->hello);
        return;
    case LEASE_MESSAGE_HEARTBEAT:
        presence_heartbeat(machine, &message->heartbeat);
        return;
    case LEASE_MESSAGE_PONG:
        presence_pong(machine, &message->pong);
        return;
    case LEASE_MESSAGE_PROBE:
        presence_probe(machine, arena, &message->probe);
        return;
    case LEASE_MESSAGE_FILL:
        presence_fill(machine, &message->fill);
        return;
    case LEASE_MESSAGE_STATE:
        dispatch_state(machine, &message->state);
        return;
    case LEASE_MESSAGE_METER:
        tick_meter(machine, &message->meter);
        return;
    case LEASE_MESSAGE_REPORT:
        tick_report(machine, arena, &message->report);
        return;
    case LEASE_MESSAGE_LOG:
        tick_log(machine, &message->log);
        return;
    case LEASE_MESSAGE_ARTIFACT:
        tick_artifact(machine, &message->artifact);
        return;
    case LEASE_MESSAGE_STREAM_READY:
        log_event(LOG_DEBUG, "stream_ready", "lease=%" PRIu64 " peer=%" PRIu64,
                  message->stream_ready.lease, message->stream_ready.peer_lease);
        return;
    case LEASE_MESSAGE_YIELD:
        presence_yield(machine, &message->yield);
        return;
    case LEASE_MESSAGE_ADDRESSES:
        if (message->addresses.lease == 0)
            trial_addresses(machine, &message->addresses);
        else
            network_addresses(machine, &message->addresses);
        return;
    case LEASE_MESSAGE_TRIED:
        trial_done(machine, &message->tried);
        return;
    case LEASE_MESSAGE_CHUNKS_AT:
        sources_addresses(machine, &message->addresses);
        return;
    case LEASE_MESSAGE_LOGS_AT:
        direct_addresses(machine, &message->addresses);
        return;
    case LEASE_MESSAGE_CHECKPOINT_WANTED:
        checkpoints_wanted(machine, &message->checkpoint_wanted);
        return;
    case LEASE_MESSAGE_CHECKPOINTS:
    case LEASE_MESSAGE_RANK:
    case LEASE_MESSAGE_CHUNK_PEER:
    case LEASE_MESSAGE_LOG_KEPT:
    case LEASE_MESSAGE_LOG_READER:
    case LEASE_MESSAGE_WELCOME:
    case LEASE_MESSAGE_START:
    case LEASE_MESSAGE_EARNINGS:
    case LEASE_MESSAGE_PAUSE:
    case LEASE_MESSAGE_PEER:
    case LEASE_MESSAGE_RENEW:
    case LEASE_MESSAGE_STOP:
    case LEASE_MESSAGE_STREAM_OPEN:
    case LEASE_MESSAGE_OFFERS:
    case LEASE_MESSAGE_REFUSED:
    case LEASE_MESSAGE_PING:
    case LEASE_MESSAGE_MEASURE:
    case LEASE_MESSAGE_TRY:
        log_event(LOG_WARN, "message_refused", "machine=%" PRIu64 " type=%s", machine->id,
                  lease_message_type_name(message->type));
        connection_free(machine->connection);
        return;
    }
}

void hub_take_message(struct hub_machine *machine, struct arena *arena,
                      const struct lease_message *message)
{
    struct hub *hub = machine->hub;
    hub->speaking = machine;
    take_message(machine, arena, message);
    hub->speaking = NULL;
}

/* ---- From other threads ---------------------------------------------------------------------- */

struct word {
    struct hub *hub;
    uint64_t machine;
    struct lease_message message;
};

static void pass_on(void *context)
{
    struct word *word = context;
    struct hub_machine *machine = hub_machine(word->hub, word->machine);
    if (machine && machine->is_welcome)
        hub_send(machine, &word->message);
    sodium_memzero(word, sizeof(*word)); /* a reader's key */
    free(word);
}

static void post_word(struct hub *hub, uint64_t machine, const struct lease_message *message)
{
    struct word *word = malloc(sizeof(*word));
    ASSERT(word);
    *word = (struct word){hub, machine, *message};
    loop_post(hub->loop, pass_on, word);
}

void hub_pause(struct hub *hub, uint64_t machine, const struct pause_message *pause)
{
    post_word(hub, machine, &(struct lease_message){.type = LEASE_MESSAGE_PAUSE, .pause = *pause});
}

void hub_log_kept(void *context, uint64_t machine, const struct log_kept_message *kept)
{
    post_word(context, machine,
              &(struct lease_message){.type = LEASE_MESSAGE_LOG_KEPT, .log_kept = *kept});
}

void hub_log_reader(struct hub *hub, uint64_t machine, const struct log_reader_message *reader)
{
    post_word(hub, machine,
              &(struct lease_message){.type = LEASE_MESSAGE_LOG_READER, .log_reader = *reader});
}

void hub_unlinked(struct hub_machine *machine, const struct error *reason)
{
    const bool was_welcome = machine->is_welcome;
    log_event(LOG_INFO, "machine_unlinked", "machine=%" PRIu64 " reason=\"%s\"", machine->id,
              reason ? reason->message : "good-bye");
    connection_free(machine->connection);
    if (!reason && was_welcome) { /* otherwise it may come back */
        machine->is_leaving = true;
        hub_tell_gone(machine);
    }
    connection_promote(machine);
    /* Nothing is lost by waiting for one that has leases; one that has none shall get none. */
    if (reason && !machine->connection && machine->is_told_online && machine->lease_count == 0)
        hub_tell_silent(machine);
}

/* ---- The hub itself -------------------------------------------------------------------------- */

/* A linked machine without leases speaks seldom. One that has just got a lease, or lost its link,
 * was not late until then. */
static bool is_silent(const struct hub_machine *machine, int64_t now_ns)
{
    const int64_t silence_ns = machine->hub->silence_ns;
    const int64_t heard_ns = atomic_load(&machine->heard_ns);
    if (machine->is_welcome && machine->lease_count == 0)
        return now_ns - heard_ns > silence_ns + LEASE_HEARTBEAT_IDLE_MS * INT64_C(1000000);
    return now_ns - (heard_ns > machine->awaited_ns ? heard_ns : machine->awaited_ns) > silence_ns;
}

static void check(void *context)
{
    struct hub *hub = context;
    const int64_t now_ns = hub_now_ns(hub);
    for (size_t i = 0; i < hub->machines.count; i++) {
        struct hub_machine *machine = hub->machines.entries[i].value;
        if (machine->is_told_online && is_silent(machine, now_ns))
            hub_tell_silent(machine);
        suspect_check(machine);
        pace_check(machine);
        presence_check(machine);
    }
    dispatch_check(hub);
    trial_check(hub);
    seek_check(hub);
    hub_retry_commands(hub);
    loop_timer_start(hub->timer, HUB_TIMER_MS);
}

static void take_over(struct hub *hub, const struct core *core)
{
    hub->silence_ns = core_settings(core)->silence_ms * INT64_C(1000000);
    for (size_t i = 0; i < core_machine_count(core); i++) {
        const struct machine *machine = core_machine_at(core, i);
        struct buffer offers AUTO_BUFFER;
        buffer_init(&offers, LEASE_MESSAGE_SIZE_MAX);
        order_offers(machine, &offers);
        hub_put_machine(hub, &(struct hub_enrolled){.id = machine->id,
                                                    .owner = machine->owner,
                                                    .generation = machine->generation,
                                                    .public_key = machine->public_key,
                                                    .probe = &machine->probe});
        hub_put_offers(hub, machine->id, buffer_text(&offers));
        const struct earnings_message earnings = order_earnings(machine);
        hub_put_earnings(hub, machine->id, &earnings);
        /* What was online before a restart is expected back within the silence. */
        hub_machine(hub, machine->id)->is_told_online = machine->state == MACHINE_STATE_ONLINE;
    }
    for (size_t i = 0; i < core_lease_count(core); i++) {
        const struct lease *lease = core_lease_at(core, i);
        struct error error;
        if (!lease_is_open(lease))
            continue;
        struct hub_lease *made = order_lease(hub, core, lease, &error);
        if (made)
            dispatch_add_take(hub, made);
        else
            order_refuse(hub, lease->id, lease->fence, error.message);
    }
}

int hub_open(struct server *server, const char *listen, const struct core *core,
             struct hub **out_hub, struct error *error)
{
    AUTO(hub) struct hub *hub = calloc(1, sizeof(*hub));
    ASSERT(hub);
    hub->server = server;
    hub->listen_fd = -1;
    map_init(&hub->machines);
    map_init(&hub->leases);
    map_init(&hub->tickets);
    map_init(&hub->pairs);
    map_init(&hub->waiting);
    map_init(&hub->trials);
    map_init(&hub->tried);
    map_init(&hub->heard_machines);
    map_init(&hub->log_places);
    map_init(&hub->checkpoints);
    pthread_mutex_init(&hub->live_mutex, NULL);
    list_init(&hub->connections);
    list_init(&hub->accepting);
    list_init(&hub->relays);
    list_init(&hub->borrowers);
    list_init(&hub->retries);
    struct host_port host_port;
    struct address address;
    if (host_port_parse(text_of(listen), &host_port, error) < 0 ||
        address_resolve(&host_port, &address, error) < 0 ||
        loop_open(server->clock, &hub->loop, error) < 0 ||
        tcp_listen(&address, "--link-listen", &hub->listen_fd, &hub->port, error) < 0 ||
        loop_watch_open(hub->loop, hub->listen_fd, LOOP_READ, connection_accept, hub,
                        &hub->listen_watch, error) < 0 ||
        checkpoints_load(hub, core, error) < 0)
        return -1;
    take_over(hub, core);
    hub->timer = loop_timer_new(hub->loop, check, hub);
    loop_timer_start(hub->timer, HUB_TIMER_MS);
    *out_hub = TAKE(hub);
    return 0;
}

static void *run(void *context)
{
    struct hub *hub = context;
    struct error error;
    pthread_setname_np(pthread_self(), "souk-link");
    if (loop_run(hub->loop, &error) < 0)
        log_event(LOG_ERROR, "hub_failed", "error=\"%s\"", error.message);
    return NULL;
}

int hub_start(struct hub *hub, struct error *error)
{
    const int result = pthread_create(&hub->thread, NULL, run, hub);
    if (result)
        return error_set_errno(error, result, "start the link thread");
    hub->is_started = true;
    return 0;
}

void hub_stop(struct hub *hub)
{
    if (!hub->is_started)
        return;
    loop_stop(hub->loop);
    pthread_join(hub->thread, NULL);
    hub->is_started = false;
}

void hub_free(struct hub *hub)
{
    if (!hub)
        return;
    hub_stop(hub);
    connections_done(hub);
    streams_done(hub);
    borrowers_done(hub);
    loop_timer_free(hub->timer);
    loop_watch_free(hub->listen_watch);
    if (hub->listen_fd >= 0)
        close(hub->listen_fd);
    for (size_t i = 0; i < hub->machines.count; i++)
        pace_done(hub->machines.entries[i].value);
    loop_free(hub->loop); /* answers of the core that still wait are taken first */
    struct list_node *node;
    while ((node = list_take_first(&hub->retries)))
        hub_request_free(LIST_ITEM(node, struct hub_request, node));
    for (size_t i = 0; i < hub->leases.count; i++)
        dispatch_lease_free(hub->leases.entries[i].value);
    for (size_t i = 0; i < hub->machines.count; i++) {
        struct hub_machine *machine = hub->machines.entries[i].value;
        buffer_done(&machine->offers);
        map_done(&machine->lingering);
        free(machine);
    }
    map_done(&hub->machines);
    map_done(&hub->leases);
    map_done(&hub->tickets);
    for (size_t i = 0; i < hub->pairs.count; i++)
        free(hub->pairs.entries[i].value);
    map_done(&hub->pairs);
    map_done(&hub->waiting);
    map_done(&hub->heard_machines);
    direct_done(hub);
    checkpoints_done(hub);
    trials_done(hub);
    pthread_mutex_destroy(&hub->live_mutex);
    free(hub);
}

uint16_t hub_port(const struct hub *hub)
{
    return hub->port;
}

struct hub_counts hub_counts(const struct hub *hub)
{
    return (struct hub_counts){
        .links = atomic_load(&hub->link_count),
        .relays = atomic_load(&hub->relay_count),
        .waiting_streams = atomic_load(&hub->waiting_count),
        .bad_meters = atomic_load(&hub->bad_meter_count),
    };
}
