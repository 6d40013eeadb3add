/*
 * Inside of the range server: range_server.c (the lead's link and its acts) and range_worker.c (the
 * workers' links).
 */
#pragma once

#include "base/list.h"
#include "exchange/global_model.h"
#include "exchange/message.h"
#include "exchange/range.h"
#include "exchange/range_server.h"
#include "exchange/vector.h"

/* A worker's joining: from its JOIN until the lead parts from it, or the link is lost unadmitted.
 */
struct range_member {
    struct range_server *server;
    struct range_link *link; /* NULL: lost, or the worker joined again */
    uint32_t rank;
    uint64_t lease, fence, session;
    bool is_admitted; /* it is member_of[worker] */
    uint32_t worker;
    uint64_t push;    /* whose slice `update` is; 0: none yet */
    bool is_pushing;  /* the slice is under way */
    bool is_whole;    /* it is there, and not answered */
    int64_t whole_ns; /* since when */
    double square_sum;
    struct vector_receiver update;
};

/* A stream with a worker, or with somebody who has yet to prove to be one. */
struct range_link {
    struct list_node node;
    struct range_server *server;
    struct link *link;
    uint64_t lease, fence; /* 0 until the handshake is done */
    uint32_t rank;
    int64_t last_frame_ns;
    bool must_drop;
    bool is_refused; /* for a value that is not finite */
    struct error drop_reason;
    struct range_member *member; /* NULL: it has not joined */
    struct vector_sender answer;
    enum codec wanted; /* for answers, and */
    float density;     /* what top-k keeps, as the lead last said */
    bool has_shadow;   /* the worker has the answer's shadow */
    bool is_offered;
};

struct range_server {
    struct range_server_options options;
    struct range range;
    struct list links;
    struct range_member *member_of[EXCHANGE_WORKERS_MAX];
    struct global_model *model; /* NULL: the range is yet to come */
    struct vector_scratch *scratch;
    struct loop_timer *house_timer;
    int64_t house_ns;
    struct exchange_served served;

    struct link *lead;
    bool is_lead_open;
    uint64_t lead_term;
    int64_t lost_since_ns;
    bool must_drop_lead; /* at the end of the callback at hand */
    struct error drop_reason;
    float *state[2];   /* parameters and momentum that come, or that go as a cut */
    bool has_momentum; /* of what comes */
    bool is_receiving;
    struct vector_receiver incoming;
    struct vector_sender outgoing;
    bool is_momentum_next;
    bool is_ending; /* the lead has ended training */
    char reason[EXCHANGE_REASON_MAX + 1];
};

int64_t range_now_ns(const struct range_server *server);

/* --- range_server.c --- */

/* The server has its range, and the lead is there. */
bool range_server_is_ready(const struct range_server *server);
void range_lead_send(struct range_server *server, const struct exchange_message *message);
/* Drops who is marked, the lead's link too; last in each callback. */
void range_server_sweep(struct range_server *server);

/* --- range_worker.c --- */

/* Tells the lead of every join that it does not know. */
void range_members_tell(struct range_server *server);
/* No act will name it any more. */
void range_member_part(struct range_member *member);
void range_members_part(struct range_server *server);
/* Sends the range as it is now. */
void range_answer(struct range_member *member, const struct exchange_act *act);
void range_links_sweep(struct range_server *server);
void range_links_house(struct range_server *server, int64_t now_ns, bool was_asleep);
void range_links_free(struct range_server *server);
