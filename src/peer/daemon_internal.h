/* Daemon, inside: shared by daemon.c (its life), daemon_link.c (the link to the market),
 * daemon_lease.c (the leases and their keepers), daemon_start.c (how they begin), daemon_gpu.c
 * (their GPUs) and daemon_owner.c (whose machine it is). */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/random.h"
#include "net/address.h"
#include "net/link.h"
#include "net/loop.h"
#include "peer/daemon.h"
#include "peer/earnings.h"
#include "peer/gpu_use.h"
#include "peer/holding.h"
#include "peer/outbox.h"
#include "peer/owner.h"
#include "peer/owner_line.h"
#include "peer/past.h"
#include "peer/probe.h"
#include "peer/servers.h"
#include "peer/standing.h"
#include "peer/trial.h"

#include <limits.h>

struct daemon {
    const struct daemon_options *options;
    const struct enrolment *enrolment;
    struct loop *loop;
    struct http_client *client;
    struct outbox *outbox;
    struct map holdings; /* by lease: struct holding; with those that ended, until released */
    struct past past;    /* those that ended here */
    struct list reapers;
    enum yield_level yield; /* of all leases */
    bool is_full;           /* as the market was told: no other lease's process fits */
    size_t awaited_count;   /* keepers that have not answered TAKE */
    struct lent lent;
    struct standing *standing;
    struct servers *servers;
    struct trials *trials;
    struct host_port addresses[PATH_CANDIDATE_MAX]; /* where it may be tried, as told last */
    size_t address_count;
    bool has_told_addresses; /* on this link */
    uint8_t instance[LEASE_INSTANCE_SIZE];
    struct error refusal; /* the market's last word, when trying again is of no use */
    bool is_refused;
    struct arena *arena; /* for one message at a time */
    struct random random;
    char leases_dir[PATH_MAX];
    char blobs_dir[PATH_MAX];
    int ready_fd;

    struct tcp_connect *connect;
    struct link *link;
    bool is_welcome;
    bool is_held_back;       /* the market is slow: keepers are not read from */
    int64_t market_ahead_ms; /* the market's clock less ours */
    uint32_t link_ipv4;      /* the link's other end, when it is one; last known */
    uint32_t seen_ipv4;      /* where the market sees us; last known */
    int64_t retry_ms;
    struct loop_timer *retry_timer;
    struct loop_timer *heartbeat_timer;
    uint64_t beat_count;    /* since the welcome */
    bool is_beating_slowly; /* the next heartbeat is far off */
    struct load_probe load;
    bool is_fresh; /* since the last trim something happened that took memory for a while */

    struct gpu_use *gpu_use;
    struct loop_timer *gpu_timer; /* runs while a lease has a GPU */
    int64_t others_gpu_milli;     /* of the last look; GUARD_UNKNOWN */

    struct earnings earnings;

    struct owner *owner;
    struct owner_line *owner_line;

    struct loop_signal *signals[4];
    struct loop_watch *stop_watch;
    bool is_stopping;
    bool wants_restart;
    struct loop_timer *stop_timer;
    struct loop_timer *release_timer;
};

/* daemon.c */
int64_t daemon_now_ns(const struct daemon *daemon);
/* Ends the daemon when it was asked to and nothing is left to do. */
void daemon_check_stopped(struct daemon *daemon);

/* As by a signal; asked twice: without grace. */
void daemon_stop(struct daemon *daemon);

/* daemon_link.c */
void daemon_dial(void *context);
void daemon_on_heartbeat(void *context);
void daemon_on_tried(void *context, const struct tried_message *tried);
/* Leases began or ended: while there are some, the market expects to hear more often. */
void daemon_pace_heartbeats(struct daemon *daemon);

/* daemon_lease.c */
void daemon_on_stop_message(struct daemon *daemon, const struct stop_message *stop,
                            struct text payload);
void daemon_on_renew(struct daemon *daemon, const struct renew_message *renew, struct text payload);
/* To the keeper of this lease, if there is one. */
void daemon_pass_on(struct daemon *daemon, struct lease_fence lease, enum lease_message_type type,
                    struct text payload);
/* Tells the keepers how the market can be reached now. */
void daemon_tell_market(struct daemon *daemon);
/* Lets the keepers go whose last state the market has. */
void daemon_release_ended(struct daemon *daemon);
void daemon_on_release(void *context);
/* Reads from the keepers as long as the market takes what they say. */
void daemon_pace_keepers(struct daemon *daemon);
/* How much of their share all leases get, those that come later too. */
void daemon_set_yield(struct daemon *daemon, enum yield_level level);
void daemon_reclaim(struct daemon *daemon, struct holding *holding, int64_t grace_ms,
                    struct text reason);
void daemon_reclaim_all(struct daemon *daemon, int64_t grace_ms, struct text reason);
/* What those take that run, into `out`, which has room for all. */
size_t daemon_list_uses(const struct daemon *daemon, struct lent_use out[DAEMON_LEASE_MAX]);
/* Those that run, into `out` if it is not NULL, which has room for all. */
size_t daemon_list_running(const struct daemon *daemon, struct lease_fence *out);
/* Leaves the keepers to themselves, or ends them. */
void daemon_close_leases(struct daemon *daemon);

/* daemon_lease.c, for daemon_start.c */
struct holding *daemon_holding_at(const struct daemon *daemon, size_t index);
/* The lease's own, or one of its functions'. */
bool daemon_is_sandbox_of(struct lease_fence lease, const char *name);
void daemon_send_state(struct daemon *daemon, struct lease_fence lease, enum lease_run_state state,
                       const char *reason);
/* To a market that asks and does not listen nothing more is said: it asks again on its next link.
 */
void daemon_answer(struct daemon *daemon, struct lease_fence lease, enum lease_run_state state,
                   const char *reason);
/* What a keeper leaves that did not end in good order. */
void daemon_clear_away(struct daemon *daemon, struct lease_fence lease);
/* Frees the holding. */
void daemon_kill(struct daemon *daemon, struct holding *holding);
void daemon_lose(struct daemon *daemon, struct lease_fence lease, const char *reason);
void daemon_on_keeper_gone(struct holding *holding, void *context);
void daemon_on_keeper_message(struct holding *holding, uint16_t type, struct text payload,
                              void *context);
void daemon_tell_keeper_market(struct daemon *daemon, struct holding *holding);
void daemon_tell_keeper_yield(const struct daemon *daemon, struct holding *holding);

/* daemon_start.c */
void daemon_on_start(struct daemon *daemon, const struct start_message *start, struct text payload);
/* Takes up the leases of a former daemon whose keepers live, and clears away what is left of the
 * others. Before the link is dialled. */
MUST_CHECK int daemon_take_up_leases(struct daemon *daemon, struct error *error);

/* daemon_gpu.c */
void daemon_open_gpus(struct daemon *daemon);
void daemon_close_gpus(struct daemon *daemon);
/* Looks at the GPUs as long as a lease has one. */
void daemon_watch_gpus(struct daemon *daemon);
bool daemon_leases_gpu(void *context);
int64_t daemon_others_gpu_milli(void *context);
/* What the lease used of its GPUs since it was asked last. */
uint64_t daemon_take_gpu_ms(struct holding *holding);

/* daemon_owner.c */
MUST_CHECK int daemon_open_owner(struct daemon *daemon, struct error *error);
/* The owner is watched closely while leases run, and the market hears more often. */
void daemon_watch_leases(struct daemon *daemon);
/* Leases began or ended: where there is room for no other, the market is told to give none. */
void daemon_check_room(struct daemon *daemon);
/* Tells the market what the owner leaves to leases. */
void daemon_tell_yield(struct daemon *daemon);
void daemon_on_earnings(struct daemon *daemon, const struct earnings_message *earnings);
void daemon_on_pause(struct daemon *daemon, const struct pause_message *pause);
