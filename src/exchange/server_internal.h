/*
 * Inside of the exchange server: its state, and what server.c (training), server_member.c
 * (workers), server_link.c (the links to them), server_ranges.c (the servers of the other ranges)
 * and server_cut.c (the whole model) call of each other.
 */
#pragma once

#include "base/list.h"
#include "base/random.h"
#include "exchange/check.h"
#include "exchange/chooser.h"
#include "exchange/global_model.h"
#include "exchange/message.h"
#include "exchange/range.h"
#include "exchange/server.h"
#include "exchange/vector.h"

/* One stream with a worker, or with somebody who has yet to prove to be one. */
struct connection {
    struct list_node node;
    struct exchange_server *server;
    struct link *link;
    uint64_t lease, fence; /* 0 until the handshake is done */
    uint32_t rank;         /* the lease's, whatever the worker says */
    int64_t opened_ns, last_frame_ns;
    bool is_member; /* has joined; `worker` is its number */
    uint32_t worker;
    bool must_drop;  /* after the actions at hand are carried out */
    bool is_leaving; /* said goodbye: only the close is left */
    struct error drop_reason;

    uint64_t session;                  /* of the last JOIN */
    struct exchange_join join;         /* that JOIN */
    bool is_joining;                   /* it has yet to join at the servers of other ranges */
    bool is_parted;                    /* its session is over: what comes is void until a JOIN */
    bool is_pushing;                   /* PUSH came, its DATA not all */
    bool is_whole;                     /* they did; its slices at other servers may not have */
    bool is_waiting;                   /* pushed and not answered */
    int64_t held_ns;                   /* since when it is held; 0: it is not */
    int64_t was_held_ns;               /* how long, before its last answer */
    struct exchange_settings settings; /* as last sent */
    struct exchange_push push;
    int64_t push_came_ns; /* when PUSH came */
    int64_t push_took_ns; /* until its DATA had */
    uint64_t push_bytes;  /* of its DATA until now */
    int64_t last_push_ns; /* when the one before it was whole; 0: none was */
    struct chooser chooser;
    struct vector_receiver update;
    double update_square_sum;    /* of what has come of it */
    uint64_t next_sample;        /* behind those of its pushes: none is pushed twice */
    bool owes_check;             /* it was asked to make a push again, and did not in time */
    struct vector_sender answer; /* W on its way out, as it is when a run goes */
    bool has_shadow;             /* the worker has the answer's shadow */
    bool is_offered;             /* the first model, and it may want it */
};

enum { CHECKS_OPEN = 2, CHECK_ASKED_MAX = 16 };

/* One push that is made again by others: server_check.c. */
struct check_slot {
    float *start; /* the model it started from; NULL: the slot is free */
    struct exchange_recompute task;
    uint64_t push_number;
    struct check check;
    struct connection *asked; /* who makes it again now */
    int64_t asked_ns;
    uint64_t asked_leases[CHECK_ASKED_MAX];
    uint32_t asked_count;
    struct vector_sender sender;
    struct vector_receiver receiver;
    bool is_receiving;
};

/* A link with the server of another range, or a replica; or with somebody who has yet to prove it.
 */
struct range_peer {
    struct list_node node;
    struct exchange_server *server;
    struct link *link;
    uint64_t lease, fence; /* 0 until the handshake is done */
    uint32_t rank;         /* the lease's; 0 until then */
    int64_t last_frame_ns;
    bool must_drop;
    struct error drop_reason;
    struct vector_sender outgoing;   /* its range on its way out; the momentum is next */
    const float *next_momentum;      /* NULL: none is */
    struct vector_receiver incoming; /* its part of a cut; the momentum is next */
    float *incoming_momentum;        /* NULL: none is */
    uint64_t last_cut;               /* of which a part came, or began to; 0: of none */
    int64_t part_ns;                 /* when some of a part came last */
};

/* The server of another range, as far as the lead knows. */
struct server_range {
    struct range_peer *peer;          /* NULL: it is not there */
    bool is_ready;                    /* it has its range: acts may follow */
    struct exchange_arrived *arrived; /* [EXCHANGE_WORKERS_MAX] by the worker's rank: its last */
    struct exchange_served served;    /* as it last said */
};

/* The whole model at one point of the acts. */
struct server_copy {
    float *parameters, *momentum; /* NULL: none is needed, or there is none */
    struct exchange_state state;
    int64_t at_ns;
};

struct server_cut {
    struct server_copy newest, next;
    uint64_t number;                       /* of the last one begun */
    bool is_under_way;                     /* `next` is gathered */
    uint32_t parts_left;                   /* of it */
    int64_t took_ns;                       /* the last one */
    bool is_wanted[EVALUATION_KIND_COUNT]; /* a measurement of a model from now on ... */
    bool is_for[EVALUATION_KIND_COUNT];    /* ... of the one that is gathered */
    uint64_t final; /* the cut that the outcome is; 0: it is known, or not wanted yet */
    struct loop_timer *timer;
    struct server_copy sent; /* to the replica */
    int64_t sent_ns;         /* since when it is on its way; 0: it is not */
    int64_t pause_ns;        /* until then the replica gets nothing more */
};

enum server_state { SERVER_RUNNING, SERVER_ENDING, SERVER_ENDED };

struct exchange_server {
    struct exchange_server_options options;
    struct sync_policy *policy;
    struct sync_actions actions;
    enum server_state state;
    struct list connections;
    uint32_t member_count;
    bool is_at_barrier;      /* the policy waits to go on */
    uint32_t workers_wanted; /* in this epoch; 0: any number */

    struct range range; /* the lead's own */
    uint32_t servers;
    struct list range_peers;
    struct server_range ranges[EXCHANGE_SERVERS_MAX + 1]; /* from 1; the last is the replica */
    struct server_cut cut;

    struct exchange_worker_status workers[EXCHANGE_WORKERS_MAX];
    struct connection *connection_of[EXCHANGE_WORKERS_MAX]; /* NULL: not a member */
    uint64_t shard_samples[EXCHANGE_WORKERS_MAX];           /* 0: unknown */
    uint32_t worker_count;

    struct global_model *model;
    struct robust_norms norms;
    uint64_t first_digest; /* of the model before anything entered it */

    struct check_slot checks[CHECKS_OPEN];
    struct random check_random;
    uint64_t check_number;

    struct vector_scratch *scratch;
    struct evaluator *evaluator;
    int64_t loss_asked_ns; /* the policy waits for a loss of a model not older; 0: no */
    int64_t
        evaluate_next_ms; /* until the next measurement: options.evaluate_ms, or less at first */
    bool has_mustered;    /* who joins begins at once */
    struct loop_timer *muster_timer;
    struct loop_timer *policy_timer, *evaluate_timer, *moment_timer, *house_timer, *end_timer,
        *late_timer;
    int64_t opened_ns, joined_ns, lonely_since_ns, house_ns;

    float *final;
    float *good; /* the last model with a good loss on all test data; NULL: none yet */
    uint64_t good_version;
    double good_accuracy, good_loss, good_loss_min;
    uint32_t bad_measurements; /* since then, in a row */
    struct exchange_outcome outcome;
    bool is_late; /* stopped, and the time for a last measurement is over */
    char reason[EXCHANGE_REASON_MAX];
    struct exchange_status status;
};

int64_t server_now_ns(const struct exchange_server *server);

/* --- server.c: called by the workers' part --- */

int64_t server_elapsed_ms(const struct exchange_server *server);
void server_changed(struct exchange_server *server);
/* Carries out what the policy has asked for. */
void server_act(struct exchange_server *server);
/* Ends training, unless it is ending. */
__attribute__((format(printf, 3, 4))) void
server_end(struct exchange_server *server, enum exchange_end end, const char *format, ...);

/* --- server_member.c --- */

/* A part of a shard's share of what is left until the epochs are done, at least 1; 0: no end. So
 * that the limit is kept however seldom a policy has workers push: what others have under way when
 * it is reached is at most that part of what was left when they were answered last. */
uint64_t server_samples_left(const struct exchange_server *server);
double server_epochs(const struct exchange_server *server);

/* May fail and change nothing: the connection is then dropped. */
MUST_CHECK int server_join(struct exchange_server *server, struct connection *connection,
                           const struct exchange_join *join, struct error *error);
/* The join, or the push, may have come to all servers: if so it counts. */
void server_try(struct exchange_server *server, struct connection *connection);
void server_muster_due(void *context);
/* The connection is no longer a member but stays: the worker joins again. */
void server_part(struct exchange_server *server, struct connection *connection);
void server_push(struct exchange_server *server, struct connection *connection);
/* The connection is no longer a member. */
void server_leave(struct exchange_server *server, struct connection *connection);
/* server.c: a connection is gone; it may have been the last one waited for. */
void server_connection_gone(struct exchange_server *server);

/* Members leave, and the policy begins anew: the server of a range is lost. */
void server_begin_anew(struct exchange_server *server);
/* The outcome's model is known. */
void server_final_known(struct exchange_server *server);

/* --- server_ranges.c --- */

void server_ranges_free(struct exchange_server *server);
bool server_ranges_are_ready(const struct exchange_server *server);
/* To the servers of all other ranges. */
void server_ranges_act(struct exchange_server *server, const struct exchange_act *act);
/* What the policy asks for, of the worker's push where it is about one. */
void server_ranges_do(struct exchange_server *server, const struct sync_action *action);
/* They answer the worker as the lead does. */
void server_ranges_answer(struct exchange_server *server, const struct connection *connection,
                          uint64_t push, bool is_offer);
/* Whether `push` (0: the join) has come to all of them, and the squares of its slices there. */
bool server_ranges_have(const struct exchange_server *server, const struct connection *connection,
                        uint64_t push, double *out_square_sum);
void server_ranges_house(struct exchange_server *server, int64_t now_ns, bool was_asleep);
void server_ranges_stop(struct exchange_server *server);
/* Drops who is marked. */
void server_ranges_sweep(struct exchange_server *server);
void range_peer_mark(struct range_peer *peer, const struct error *reason);
void range_peer_send(struct range_peer *peer, const struct exchange_message *message);
/* Puts this on its way; the parameters, and the momentum unless that is NULL, stay until it went.
 */
void range_peer_send_state(struct range_peer *peer, const struct exchange_state *state,
                           const float *parameters, const float *momentum, size_t count);

/* --- server_cut.c --- */

MUST_CHECK int server_cut_open(struct exchange_server *server, const float *parameters,
                               const float *momentum, struct error *error);
void server_cut_free(struct exchange_server *server);
/* Asks for a measurement of the model as it is now. */
void server_measure(struct exchange_server *server, enum evaluation_kind kind);
/* Training has ended: the model as it is now will be the outcome's. */
void server_cut_final(struct exchange_server *server);
/* There is no time to wait for it, or no way: it is the newest one. */
void server_cut_give_up(struct exchange_server *server);
/* A part of a cut comes. */
void server_cut_state(struct range_peer *peer, const struct exchange_state *state);
/* How long nothing came of the part that it owes to the cut under way; 0: it owes none. */
int64_t server_cut_owed_ns(const struct range_peer *peer, int64_t now_ns);
MUST_CHECK int server_cut_data(struct range_peer *peer, struct text payload, struct error *error);
/* All servers are ready. */
void server_cut_ready(struct exchange_server *server);
/* One is lost: what is gathered will not be whole. */
void server_cut_lost(struct exchange_server *server);
/* The replica can take more, or is another one (or none). */
void server_cut_replica_ready(struct exchange_server *server);
void server_cut_replica_changed(struct exchange_server *server);

/* --- server_epoch.c --- */

/* The policy is at a barrier: who is not wanted for the next epoch parts, the others go on. */
void server_epoch_over(struct exchange_server *server);
/* Whether it may be a member now. */
bool server_wants(const struct exchange_server *server, const struct connection *connection);

/* --- server_diverge.c --- */

/* A measurement on all test data with a finite loss: kept unless the loss has risen far. */
void server_keep_good(struct exchange_server *server, const struct evaluation_report *report);
/* The outcome is the last good model. */
void server_take_good(struct exchange_server *server);
/* A loss that is not finite was measured; whether the policy undid that. May end training. */
void server_measured_bad(struct exchange_server *server, bool has_gone_back);
/* The worker says that its loss is not finite any more. May end training. */
void server_worker_diverged(struct exchange_server *server, const struct connection *connection);

/* --- server_check.c --- */

void server_checks_free(struct exchange_server *server);
/* Of a job that checks: CORRUPT for a push that nobody could make again. */
MUST_CHECK int server_check_is_fit(const struct connection *connection,
                                   const struct exchange_push *push, struct error *error);
/* A push has come; it may be checked. */
void server_check_push(struct exchange_server *server, struct connection *connection);
void server_check_pump(struct connection *connection);
MUST_CHECK int server_check_recomputed(struct connection *connection,
                                       const struct exchange_recomputed *recomputed,
                                       struct error *error);
MUST_CHECK int server_check_data(struct connection *connection, struct text payload,
                                 struct error *error);
/* The connection is no longer a member. */
void server_check_left(struct exchange_server *server, struct connection *connection);
void server_checks_tick(struct exchange_server *server);

/* --- server_link.c: called by training --- */

void connection_send(struct connection *connection, const struct exchange_message *message);
/* Sends W as it is now, as the answer to `push` (0: to the join). */
void connection_send_model(struct connection *connection, uint64_t push);
/* Answers a join: the first model is offered, any later one sent. */
void connection_welcome(struct connection *connection);
/* Marks it; connections_sweep drops it and tells the policy. */
void connection_mark(struct connection *connection, const struct error *reason);
void connections_sweep(struct exchange_server *server);
void connections_free(struct exchange_server *server);
