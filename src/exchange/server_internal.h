/*
 * Inside of the exchange server: its state, and what server.c (training), server_member.c (workers)
 * and server_link.c (the links to them) call of each other.
 */
#pragma once

#include "base/list.h"
#include "base/random.h"
#include "exchange/check.h"
#include "exchange/global_model.h"
#include "exchange/message.h"
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

    bool is_pushing;                   /* PUSH came, its DATA not all */
    bool is_waiting;                   /* pushed and not answered */
    int64_t held_ns;                   /* since when it is held; 0: it is not */
    int64_t was_held_ns;               /* how long, before its last answer */
    struct exchange_settings settings; /* as last sent */
    struct exchange_push push;
    int64_t push_came_ns; /* when PUSH came */
    uint64_t push_bytes;  /* of its DATA until now */
    int64_t last_push_ns; /* when the one before it was whole; 0: none was */
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

enum server_state { SERVER_RUNNING, SERVER_ENDING, SERVER_ENDED };

struct exchange_server {
    struct exchange_server_options options;
    struct sync_policy *policy;
    struct sync_actions actions;
    enum server_state state;
    struct list connections;
    uint32_t member_count;

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
void server_push(struct exchange_server *server, struct connection *connection);
/* The connection is no longer a member. */
void server_leave(struct exchange_server *server, struct connection *connection);
/* server.c: a connection is gone; it may have been the last one waited for. */
void server_connection_gone(struct exchange_server *server);

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
