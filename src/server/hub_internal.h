/*
 * Hub, inside. hub.c keeps machines, hub_command.c commands, connection.c accepts and carries the
 * links, stream.c joins streams, dispatch.c starts and stops leases, tick.c turns meter reports
 * into verified ticks, order.c brings over what the core decided, presence.c knows who is at the
 * other end of a link, suspect.c looks after machines that somebody found silent, seek.c has
 * machines tried for the jobs that want near ones, trial.c tries them with one another, pace.c sees
 * to it that none says more than can be taken.
 */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "market/suspicion.h"
#include "net/link.h"
#include "net/loop.h"
#include "net/relay.h"
#include "runtime/lease_message.h"
#include "runtime/native.h"
#include "server/hub.h"
#include "server/link_budget.h"
#include "server/live.h"
#include "server/server_internal.h"
#include "server/verify.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    HUB_TIMER_MS = 1000,
    HUB_HANDSHAKE_MS = 10000,
    HUB_FIRST_BYTE_MS = 2000,
    HUB_WAITING_MAX = 4096,
    HUB_MISSING_MS = 5000, /* a lease its machine does not name: lost after this */
    HUB_REDIAL_MS = 15000, /* a stream asked for again that did not come */
    HUB_SETTLE_MS = 3000,  /* three reports of a parameter server */
    HUB_RTT_SAMPLES = 5,
    HUB_SOUGHT_MAX = 32,
    TICKET_TEXT_SIZE = 2 * LEASE_TICKET_SIZE + 1,
};

/* presence.c's: of the daemon at the other end. */
struct hub_presence {
    uint8_t instance[LEASE_INSTANCE_SIZE];
    struct probe found; /* by the daemon, as it said last */
    struct probe told;  /* to the core */
    int64_t told_ns;    /* 0: never */
    bool is_probe_due;  /* it differs from what was told */

    bool is_pinged;
    uint64_t nonce;
    int64_t pinged_ns;
    int64_t samples_us[HUB_RTT_SAMPLES]; /* the last ones, in a ring */
    size_t sample_count;                 /* since the welcome */
    int64_t rtt_us;                      /* as told; 0: not yet */
    int64_t rtt_told_ns;

    int64_t measure_begin_ns; /* 0: never */
    int64_t measure_bytes, filled_bytes;
    int64_t first_fill_ns, first_fill_bytes;
    int64_t bandwidth_kbit; /* 0: not measured yet */
};

/* pace.c's: what a machine may say. */
struct hub_pace {
    struct link_budget budget;
    struct backlog *backlog;
    struct loop_timer *timer; /* until its link is read again */
    bool is_paused;
    bool is_yield_due;     /* machine->yield is news to the core */
    int64_t yield_told_ns; /* 0: never */
};

struct hub_machine {
    uint64_t id;
    uint64_t owner;
    uint64_t generation;
    uint8_t public_key[MACHINE_KEY_SIZE];
    struct hub *hub;
    struct hub_connection *connection; /* NULL: not linked */
    struct hub_connection *contender;  /* another link in its name: presence.c */
    bool is_welcome;                   /* HELLO came on this link */
    bool is_told_online;               /* what the core was told last */
    bool is_leaving;                   /* it said good-bye; the core is told once all is settled */
    atomic_int_fast64_t heard_ns;      /* when anything came last, or the hub started */
    int64_t awaited_ns;                /* when it got its first lease, or lost its link */
    size_t lease_count;                /* of hub->leases, its own */
    struct probe probe;                /* as the core has it */
    struct hub_presence presence;
    struct hub_pace pace;
    struct suspicion suspicion;
    enum machine_yield yield; /* as its daemon said last */
    int64_t muted_ns;         /* since when it counts as silent though it speaks; 0: it does not */
    bool has_live;            /* it is linked; guarded by hub->live_mutex, as is the next */
    struct hub_live live;
    int64_t paused_until_ms; /* UTC, as its daemon said; 0: not known; guarded as well */
    struct buffer offers;    /* payload of its OFFERS */
    struct earnings_message earnings;
    /* Leases that ended without its word, of which it has not said yet that they have: until then
     * their room may be taken, and no START is sent. */
    struct map lingering;

    /* trial.c's. */
    struct hub_near near[HUB_NEAR_MAX]; /* the nearest first; guarded by hub->live_mutex, as is the
                                           next */
    size_t near_count;
    char addresses[LEASE_ADDRESSES_MAX][LEASE_ADDRESS_SIZE_MAX + 1]; /* as its daemon says */
    uint32_t address_count;
    int64_t trials_since_ns; /* the minute that began then */
    uint32_t trial_count;    /* in it */
};

/* A parameter server that a lease dials, and the stream to it. */
struct hub_dial {
    struct hub_lease *dialler;
    uint32_t server_rank;
    uint64_t server_lease; /* the newest of that rank; 0: none yet */
    char ticket[TICKET_TEXT_SIZE];
    uint64_t attempt;
    bool is_redial_due;
    int64_t dialled_ns; /* when a redial was asked for; 0: never */
    struct hub_relay *relay;
};

struct hub_lease {
    uint64_t id, fence, job, account, machine;
    enum lease_role role;
    uint64_t rank;
    bool is_replica; /* until it takes the lead */
    /* By the rank of the server: a worker dials all, a server the lead, the lead nobody. Whoever
     * dials nobody speaks for itself. */
    struct hub_dial dials[JOB_SERVERS_MAX];
    uint32_t dial_count;
    uint64_t newest_peer;  /* of a parameter server: who was made after this one came later */
    struct buffer start;   /* payload of its START */
    struct buffer renewal; /* payload of its RENEW: the same document */
    bool is_known;         /* its machine has it */
    bool is_told_running;  /* the core was told so */
    bool is_over;          /* its machine said it ended */
    int64_t missing_ns;    /* since when its machine does not name it; 0: it does */
    bool is_stop_wanted;
    uint32_t grace_ms;
    char stop_reason[LEASE_REASON_SIZE_MAX + 1];

    uint32_t artifact_count;
    bool is_command; /* it runs a program of the borrower's */
    int64_t checkpoint_interval_ms;
    struct verify_lease verify;
    uint64_t verified_index; /* of the last verified tick, from 1; 0: none */
    int64_t verified_ms;     /* all verified ticks together */

    /* Over, with ticks that the parameter server may still confirm: its end waits for that. */
    bool is_settling;
    bool is_faulty;          /* its parameter server found so; the core was told */
    bool is_let_go;          /* its parameter server wants it no more */
    uint64_t workers_wanted; /* of a lead: as it said last; 0: it did not */
    int64_t settling_ns;     /* since when */
    enum lease_outcome outcome;
    int64_t exit_code;
    char end_reason[LEASE_REASON_SIZE];

    /* network.c's: of a worker in a job network. */
    bool has_network;
    bool has_addresses; /* its daemon has told them */
    char addresses[LEASE_ADDRESSES_MAX][LEASE_ADDRESS_SIZE_MAX + 1];
    uint32_t address_count;

    /* sources.c's: of a worker. */
    bool has_chunk_addresses; /* its daemon has told them */
    char chunk_addresses[LEASE_ADDRESSES_MAX][LEASE_ADDRESS_SIZE_MAX + 1];
    uint32_t chunk_address_count;
    uint8_t
        manifest[LEASE_HASH_SIZE]; /* the first of the job's inputs, for borrower.c; or zeroes */
};

/* Two ranks of a job network, and the stream the market carries for them if it must. */
struct hub_pair {
    uint64_t low_lease, high_lease;
    char ticket[TICKET_TEXT_SIZE];
    struct hub_relay *relay; /* NULL: none now */
};

/* A command, or rows, on the way to the core; tried again while the store is away. */
struct hub_request {
    struct engine_request request;
    struct hub *hub;
    struct list_node node;
    char reason[LEASE_REASON_SIZE];
    void (*put)(void *rows, struct store_batch *batch);
    void *rows;              /* owned */
    struct backlog *backlog; /* of the machine whose message asked for it; NULL: nobody's did */
};

/* seek.c's: a set of machines that was sought lately, and whether trials of it are under way. */
struct hub_sought {
    uint64_t fingerprint;
    bool is_settled;
};

struct hub {
    struct server *server;
    struct loop *loop;
    pthread_t thread;
    bool is_started;
    int listen_fd;
    uint16_t port;
    struct loop_watch *listen_watch;
    struct loop_timer *timer;
    int64_t silence_ns; /* beyond what heartbeats leave: the machine is unreachable */

    struct map machines;     /* id -> struct hub_machine, owned */
    struct map leases;       /* id -> struct hub_lease, owned */
    struct map tickets;      /* ticket -> struct hub_dial */
    struct map pairs;        /* ticket -> struct hub_pair, owned */
    struct map waiting;      /* ticket -> struct hub_wait, owned */
    struct list connections; /* machines' links */
    struct list accepting;   /* connections that are not a machine's yet, or its contender */
    size_t accepting_count;
    uint64_t displaced_count; /* of those that were asked to go, since it was last logged */
    int64_t displaced_told_ns;
    struct list relays;
    struct list borrowers; /* borrower.c's */
    struct list retries;   /* struct hub_request */
    struct map trials;     /* under way: id -> struct hub_trial, of tried */
    struct map tried;      /* two machines' ids -> struct hub_trial, owned */
    uint64_t last_trial;
    int64_t asked_to_look_ns;
    atomic_bool has_seekers; /* some job looks for machines near each other */
    atomic_bool is_look_pressing;
    int64_t looked_ns; /* the core thread's, as is the next */
    size_t seeker_turn;
    struct hub_machine *speaking; /* whose message is being taken; NULL: nobody's */
    struct hub_machine *measured; /* whose bandwidth is being measured; NULL: nobody's */

    pthread_mutex_t live_mutex;
    struct hub_sought sought[HUB_SOUGHT_MAX]; /* a ring; guarded by live_mutex, as is the next */
    size_t sought_count;
    struct map heard_machines; /* id -> struct hub_machine, those that ever were linked here;
                                  guarded by live_mutex */
    struct map log_places;     /* lease -> direct.c's, owned; guarded by live_mutex */
    struct map checkpoints;    /* job and slot -> checkpoints.c's, owned; guarded by live_mutex */

    atomic_uint_fast64_t link_count, relay_count, waiting_count, bad_meter_count;
};

/* ---- hub_command.c ---- */
/* Takes over the command; `reason` (may be NULL) is copied for an end_lease. */
void hub_command(struct hub *hub, const struct command *command, const char *reason);
void hub_retry_commands(struct hub *hub);
void hub_request_free(struct hub_request *request);
/* Takes `rows`, which `put` writes on the core thread and free() releases. */
void hub_rows_take(struct hub *hub, void (*put)(void *rows, struct store_batch *batch), void *rows);

/* ---- hub.c ---- */
int64_t hub_now_ns(const struct hub *hub);
struct hub_machine *hub_machine(struct hub *hub, uint64_t machine);
struct hub_enrolled {
    uint64_t id;
    uint64_t owner;
    uint64_t generation;
    const uint8_t *public_key; /* MACHINE_KEY_SIZE */
    const struct probe *probe;
};
void hub_put_machine(struct hub *hub, const struct hub_enrolled *enrolled);
/* Keeps the payload of an OFFERS, and sends it if the machine is there. */
void hub_put_offers(struct hub *hub, uint64_t id, struct text payload);
void hub_put_earnings(struct hub *hub, uint64_t id, const struct earnings_message *earnings);
/* False when the machine is not linked or its queue is full; then it is sent on reconnecting. */
bool hub_send(struct hub_machine *machine, const struct lease_message *message);
bool hub_send_encoded(struct hub_machine *machine, enum lease_message_type type,
                      struct text payload);

void hub_take_message(struct hub_machine *machine, struct arena *arena,
                      const struct lease_message *message);
void hub_tell_online(struct hub_machine *machine); /* the core, unless it was told */
void hub_tell_silent(struct hub_machine *machine);
void hub_tell_gone(struct hub_machine *machine); /* unless a lease of it is settling */
/* The link is gone; `reason` NULL: the machine said good-bye. */
void hub_unlinked(struct hub_machine *machine, const struct error *reason);

/* ---- connection.c ---- */
void connection_accept(void *context, uint32_t events); /* the listening socket's watch */
struct link *connection_link(struct hub_connection *connection);
const char *connection_host(const struct hub_connection *connection); /* where it comes from */
/* Closes it without a word; its machine is not linked any more. NULL is fine. */
void connection_free(struct hub_connection *connection);
void connections_done(struct hub *hub);
/* Says why, and closes it. */
void connection_refuse(struct hub_connection *connection, bool is_final, const char *reason);
/* A contender whose HELLO waits for a verdict. */
bool connection_has_hello(const struct hub_connection *connection);
/* The contender, if there is one, is the machine's link from now on. */
void connection_promote(struct hub_machine *machine);

/* ---- presence.c ---- */
enum presence_verdict { PRESENCE_TAKES_OVER, PRESENCE_WAITS };
/* What the core has of the machine. */
void presence_put(struct hub_machine *machine, const struct probe *probe);
void presence_hello(struct hub_machine *machine, const struct hello_message *hello);
/* Why a HELLO cannot be taken; NULL: it can. */
const char *presence_refusal(const struct hub_machine *machine, const struct hello_message *hello);
/* WAITS: the old link has presence_alive_ms to show that it lives. */
enum presence_verdict presence_contend(struct hub_machine *machine,
                                       const struct hello_message *hello);
int64_t presence_alive_ms(void);
void presence_heartbeat(struct hub_machine *machine, const struct heartbeat_message *heartbeat);
void presence_yield(struct hub_machine *machine, const struct yield_message *yield);
void presence_pong(struct hub_machine *machine, const struct pong_message *pong);
void presence_fill(struct hub_machine *machine, const struct fill_message *fill);
void presence_probe(struct hub_machine *machine, struct arena *arena,
                    const struct probe_message *message);
void presence_forget_measure(struct hub_machine *machine);
void presence_gone(struct hub_machine *machine); /* its link is */

void presence_check(struct hub_machine *machine); /* once a second */

/* For a sign of life. */
void presence_ask(struct hub_machine *machine);

/* ---- pace.c ---- */
void pace_init(struct hub_machine *machine);
void pace_done(struct hub_machine *machine); /* before the loop is freed */
void pace_link(struct hub_machine *machine); /* it has a new link */
/* A message came on the machine's link: it is taken, and the next ones perhaps later. */
void pace_charge(struct hub_machine *machine, uint16_t type, size_t size);
/* The core is told at once, or within a second of the last time: then the last one said. */
void pace_yield(struct hub_machine *machine, enum machine_yield yield);
void pace_check(struct hub_machine *machine); /* once a second */

/* What a machine said is on its way to another thread, and has arrived there. */
struct backlog;
struct backlog *backlog_add(struct hub_machine *machine, size_t bytes, size_t commands);
void backlog_arrived(struct backlog *backlog, size_t bytes, size_t commands); /* NULL is fine */

/* ---- suspect.c ---- */
/* The job of the lease finds its machine silent. */
void suspect_report(struct hub *hub, const struct hub_lease *lease);
/* A push of the lease was accepted. */
void suspect_pushed(struct hub *hub, const struct hub_lease *lease);
void suspect_lease_over(struct hub *hub, const struct hub_lease *lease);
void suspect_check(struct hub_machine *machine); /* once a second */

/* ---- stream.c ---- */
/* The rest of a connection that began with 'S'; takes the descriptor. */
void stream_take(struct hub *hub, int fd, const char ticket[TICKET_TEXT_SIZE]);
void stream_expect(struct hub *hub, struct hub_dial *dial, uint64_t attempt);
/* All streams to the servers it dials. */
void stream_forget(struct hub *hub, struct hub_lease *lease);
/* Whoever is at the other end is no longer the parameter server of that rank. */
void stream_cut(struct hub_dial *dial);
/* Asks both ends to dial again where that is due. */
void stream_redial(struct hub *hub, struct hub_dial *dial);
void streams_done(struct hub *hub);
/* Ends what is carried for the pair, and who waits to be. */
void stream_forget_pair(struct hub *hub, struct hub_pair *pair);

/* ---- network.c ---- */
/* A lease that the hub has now, or whose machine is there again: its peers are told to it, and it
 * to them. */
void network_tell(struct hub *hub, struct hub_lease *lease);
void network_addresses(struct hub_machine *machine, const struct addresses_message *addresses);
void network_forget(struct hub *hub, const struct hub_lease *lease);

/* ---- seek.c ---- */
/* Core thread, with what was committed. */
void seek_listen(struct hub *hub, const struct core *core, const struct event *events,
                 size_t event_count);
void seek_check(struct hub *hub); /* once a second */

/* ---- trial.c ---- */
/* Has those that may be and were not lately tried with each other. True: some are under way. */
bool trial_all(struct hub *hub, const uint64_t *machines, size_t machine_count, int64_t max_rtt_us);
/* Two that are not being tried, nor were lately. */
void trial_begin(struct hub *hub, struct hub_machine *low, struct hub_machine *high);
void trial_addresses(struct hub_machine *machine, const struct addresses_message *addresses);
void trial_done(struct hub_machine *machine, const struct tried_message *tried);
void trial_check(struct hub *hub);              /* once a second */
void trial_forget(struct hub_machine *machine); /* its link is gone */
void trials_done(struct hub *hub);

/* ---- sources.c ---- */
/* As network_tell and network_addresses, of leases that exchange chunks. */
void sources_tell(struct hub *hub, const struct hub_lease *lease);
void sources_addresses(struct hub_machine *machine, const struct addresses_message *addresses);

/* ---- borrower.c ---- */
/* A lease was sent to its machine, or its machine is there again: it is told of its borrower. */
void borrower_tell(struct hub *hub, const struct hub_lease *lease);
void borrowers_done(struct hub *hub); /* before the loop is freed */

/* ---- direct.c ---- */
/* Where what a lease prints may be read. */
void direct_addresses(struct hub_machine *machine, const struct addresses_message *addresses);
void direct_forget(struct hub *hub, const struct hub_lease *lease);
void direct_done(struct hub *hub);
/* Tells the machine of somebody who may read. From any thread. */
void hub_log_reader(struct hub *hub, uint64_t machine, const struct log_reader_message *reader);

/* ---- checkpoints.c: any thread ---- */
/* A job has one checkpoint of its own, and one of each rank that leaves some. */
enum { CHECKPOINT_SLOT_JOB = 0, CHECKPOINT_SLOT_BITS = 20 };
static inline uint64_t checkpoint_slot(uint64_t rank)
{
    return rank + 1;
}
struct checkpoint_left {
    uint64_t job, account;
    uint64_t slot; /* checkpoint_slot */
    struct blob_hash manifest;
    uint64_t size_bytes;
    int64_t left_ms; /* UTC */
};
/* Whether the job may leave another now, and if so that it does: on average one in half of its
 * interval, whichever leases they are of. Of those refused some are dropped. The hub's thread. */
MUST_CHECK int checkpoints_pace(struct hub *hub, const struct checkpoint_left *left,
                                int64_t interval_ms, struct error *error);
void checkpoints_note(struct hub *hub, const struct checkpoint_left *left);
/* How many of [0], the newest, and [1], the one before it, there are. */
size_t checkpoints_find(struct hub *hub, uint64_t job, uint64_t slot,
                        struct native_checkpoint out_checkpoints[2]);
/* A lease asks for the newest: it is answered. The hub's thread. */
void checkpoints_wanted(struct hub_machine *machine, const struct lease_fence *wanted);
void checkpoints_forget(struct hub *hub, uint64_t job);
/* Those of jobs under way, as the rows of artifacts say; the main thread's. */
MUST_CHECK int checkpoints_load(struct hub *hub, const struct core *core, struct error *error);
void checkpoints_done(struct hub *hub);

/* ---- dispatch.c ---- */
/* Whether it is a worker whose ticks a parameter server confirms. */
static inline bool hub_has_server(const struct hub_lease *lease)
{
    return lease->role == LEASE_ROLE_WORKER && lease->dial_count > 0;
}
/* Whether it is a parameter server that is not, or not yet, the lead. */
static inline bool hub_has_lead(const struct hub_lease *lease)
{
    return lease->role == LEASE_ROLE_SERVER && lease->dial_count > 0;
}
void dispatch_add_take(struct hub *hub, struct hub_lease *lease);
/* The lease with a later end; takes `renewed`. */
void dispatch_renew_take(struct hub *hub, struct hub_lease *renewed);
void dispatch_stop(struct hub *hub, struct hub_lease *lease);
/* A replica leads its job now. */
void dispatch_promote(struct hub *hub, struct hub_lease *lease);
void dispatch_end(struct hub *hub, struct hub_lease *lease);
void dispatch_lease_free(struct hub_lease *lease);
void dispatch_hello(struct hub_machine *machine, const struct hello_message *hello);
void dispatch_state(struct hub_machine *machine, const struct state_message *state);
/* The parameter server has said all there is to say of this worker's pushes. */
void dispatch_settle(struct hub *hub, struct hub_lease *lease);
bool dispatch_is_settling(const struct hub_machine *machine); /* any lease of it */
/* Once a second. */
void dispatch_check(struct hub *hub);
/* The open lease of this machine under this fence, or NULL. */
struct hub_lease *dispatch_find(struct hub_machine *machine, uint64_t id, uint64_t fence);

/* ---- tick.c ---- */
void tick_meter(struct hub_machine *machine, const struct meter_message *meter);
void tick_report(struct hub_machine *machine, struct arena *arena,
                 const struct report_message *report);
void tick_log(struct hub_machine *machine, const struct log_message *log);
void tick_artifact(struct hub_machine *machine, const struct artifact_message *artifact);
void tick_lease_ended(struct hub *hub, uint64_t lease); /* its log is complete */

/* ---- order.c ---- */
/* What the hub needs to know of an open lease. NULL when it could not be prepared: then *error says
 * why and the lease must end. */
struct hub_lease *order_lease(struct hub *hub, const struct core *core, const struct lease *lease,
                              struct error *error);
/* The payload of a machine's OFFERS. */
void order_offers(const struct machine *machine, struct buffer *payload);
struct earnings_message order_earnings(const struct machine *machine);
/* Ends a lease that could not be prepared, so that its job does not wait for it. */
void order_refuse(struct hub *hub, uint64_t lease, uint64_t fence, const char *reason);
