/*
 * Inside of the exchange client: a mailbox between the training thread (client.c) and the link's
 * thread (client_link.c: frames on one link; client_session.c: what all of them come to).
 *
 * Vectors change hands, they are not shared: `update` belongs to the training thread while
 * is_in_flight is false and to the link's thread otherwise; an answer is gathered in `incoming`
 * (link's thread), swapped into `answer` (the mailbox) when it is whole, and swapped into `taken`
 * (training thread) when it is wanted. An eventfd tells the loop that the mailbox changed, a
 * condition tells the training thread.
 *
 * Where the training thread only waits for its answer it lends its parameters meanwhile: the link's
 * thread reads the update off them, L - B, and writes the answer into them, run by run, while they
 * are in the cache and the next run is under way. `base` is then the link's thread's too, and is
 * made good when the loan ends (loan_end). What has come of an answer when the link breaks stays:
 * every number of it is W's.
 */
#pragma once

#include "exchange/check.h"
#include "exchange/client.h"
#include "exchange/compressor.h"
#include "exchange/range.h"
#include "exchange/vector.h"

#include <pthread.h>

enum { EXCHANGE_PROGRESS_MS = 1000 };

/* Whose the check's vector is. */
enum client_check_turn {
    CLIENT_CHECK_NONE,
    CLIENT_CHECK_COMES,  /* the link's thread: the model is on its way here */
    CLIENT_CHECK_WANTED, /* the training thread's */
    CLIENT_CHECK_MADE,   /* the link's, which has yet to see it */
    CLIENT_CHECK_GOES,   /* the link's: the result is on its way out */
};

struct client_check {
    enum client_check_turn turn; /* guarded by mutex */
    bool is_stale;               /* so is this: nobody waits for the result any more */
    bool is_done;
    struct exchange_recompute task;
    float *values;
    struct vector_receiver incoming;
    struct vector_sender outgoing;
};

/* The link to one of the servers, and the range that it holds; the link's thread's but for what is
 * named. */
struct client_range {
    struct exchange_client *client;
    uint32_t server;
    struct range range;
    struct link *link;
    bool is_open;
    uint64_t term; /* of the server that the link is to */
    struct vector_receiver incoming;
    float *shadow;                 /* from the first model that others may be differences to */
    bool has_shadow;               /* it is the last model that came in this session */
    struct vector_sender outgoing; /* it, and the next, guarded by mutex while the update is lent */
    size_t lent_sent;              /* floats that it has read of what is lent */
    struct compressor *compressor; /* from the first push that a codec is to make smaller */
    bool is_receiving;             /* MODEL came, its DATA not all */
    bool is_offered;               /* OFFER came, and the first model is not there to compare */
    bool is_answered;              /* the join, or the push under way */
    bool is_own;                   /* ... by the model that is here */
    bool is_skipping;              /* what comes is of a session that is over */
    struct exchange_offer offer;
    uint64_t model_push; /* of the model that comes */
};

struct exchange_client {
    struct exchange_client_options options;

    pthread_mutex_t mutex;
    pthread_cond_t changed;

    /* --- guarded by mutex --- */
    bool is_stopped;
    bool has_begun;    /* `base` is the first model */
    bool is_joined;    /* the server's first model came on this link */
    bool is_in_flight; /* a push is with the link's thread or the server */
    bool has_push;     /* ... and has yet to be sent */
    bool has_answer;   /* `answer` holds a model not yet taken over */
    bool wants_leave;  /* the training thread is done */
    bool has_diverged; /* and its loss was not finite */
    bool has_left;     /* LEAVE is sent, or there is no link to send it on */
    struct exchange_settings settings;
    struct exchange_push push; /* of the update in flight, or the next one's number */
    float *answer;
    float *lent;            /* the parameters, while they are lent; else NULL */
    bool is_update_lent;    /* `outgoing` reads its runs off them */
    bool is_answer_written; /* all that has come of the answer is in them */
    uint64_t samples_max;   /* in the next push; 0: no bound */
    int64_t sent_ns;        /* of the push in flight */
    int64_t answer_ns;      /* when the last answer came */
    int64_t late_ns;        /* what the last push was late by */
    int64_t due_ns;         /* of the push in flight, by period */
    int64_t commit_ns, lost_since_ns;
    int64_t waiting_ns, transfer_ns;
    uint64_t sent_bytes, received_bytes; /* as client_traffic_note left them */
    int64_t waiting_since_ns;            /* 0: the training thread goes */
    /* While the push in flight lay at the servers: from when the last has it whole to when the
     * first answers. Until they say so, from when it is sent. 0: not yet. */
    int64_t held_from_ns, held_until_ns;
    uint64_t steps, samples, commits;
    double loss; /* moving mean */
    double steps_per_second;
    char reason[256];

    /* --- the training thread's --- */
    float *base, *taken;
    uint32_t steps_unsent;
    uint64_t samples_unsent;
    double loss_unsent; /* sum over steps_unsent */
    uint64_t first_step_unsent, first_sample_unsent;
    int64_t compute_unsent_ns;

    float *update; /* see above */

    /* --- the link's thread's --- */
    struct client_range ranges[EXCHANGE_SERVERS_MAX];
    uint32_t range_count;
    uint64_t session;
    bool has_session;                              /* joined on all links, none of which broke */
    bool is_leaving;                               /* LEAVE is with the link, if there is one */
    uint64_t lost_sent_bytes, lost_received_bytes; /* on links that are no more */
    float *incoming;                               /* the answer that comes */
    uint64_t incoming_samples_max;
    int wake_fd;
    struct loop_watch *wake_watch;
    struct loop_timer *progress_timer;
    struct vector_scratch *scratch;
    struct client_check check;
    bool was_joined;         /* in this session or another: `base` may be any model */
    uint64_t progress_steps; /* at progress_ns */
    int64_t progress_ns;
};

static inline int64_t client_now_ns(const struct exchange_client *client)
{
    return clock_monotonic_ns(loop_clock(client->options.loop));
}

static inline void client_lock(struct exchange_client *client)
{
    pthread_mutex_lock(&client->mutex);
}

static inline void client_unlock(struct exchange_client *client)
{
    pthread_mutex_unlock(&client->mutex);
}

static inline void client_swap(float **left, float **right)
{
    float *kept = *left;
    *left = *right;
    *right = kept;
}

/* Each `range` of the client. */
#define CLIENT_RANGES(client)                                                                      \
    for (struct client_range *range = (client)->ranges;                                            \
         range < (client)->ranges + (client)->range_count; range++)

/* --- client_session.c --- */

void client_on_wake(void *context, uint32_t events);
void client_on_progress(void *context);
/* A link broke: the session is over on all of them. */
void client_link_lost(struct client_range *range, const struct error *reason);
void client_link_opened(struct client_range *range);
/* The server says that the session is over. */
void client_again(struct exchange_client *client, uint64_t session);
/* The range's part of the answer to `push` (0: the join) is whole. */
void client_range_answered(struct client_range *answered, uint64_t push);
/* There will be no model: what was pushed is accepted. */
void client_accepted(struct exchange_client *client, uint64_t push);
/* Takes its own first model for the server's where they are equal. */
void client_offer_answer(struct client_range *range);
void client_changed(struct exchange_client *client);
/* Adds up what went over the links until now. With the mutex held. */
void client_traffic_note(struct exchange_client *client);

/* --- client_link.c --- */

/* To the server of the first range. */
void client_message_send(struct exchange_client *client, const struct exchange_message *message);
void client_range_send(struct client_range *range, const struct exchange_message *message);
/* The next run of a vector to that server, as a frame of this type; the link may be lost over it.
 */
void client_run_send(struct exchange_client *client, struct vector_sender *sender, uint16_t type);
void client_push_send(struct exchange_client *client, const struct exchange_push *push);

/* --- client_check.c --- */

void client_check_free(struct exchange_client *client);
/* The training thread, with the mutex held; gives it up while it computes. It is wanted. */
void client_check_make(struct exchange_client *client);
MUST_CHECK int client_check_take(struct exchange_client *client,
                                 const struct exchange_recompute *task, struct error *error);
MUST_CHECK int client_check_data(struct exchange_client *client, struct text payload,
                                 struct error *error);
void client_check_send(struct exchange_client *client);
void client_check_pump(struct exchange_client *client);
void client_check_lost(struct exchange_client *client);

/* --- client.c: called with the mutex held --- */

/* Makes `update` what is not sent of it, and `base` the parameters, which are no longer lent. */
void client_loan_end(struct exchange_client *client);
/* What it learnt is no number any more: it ends. */
void client_give_up(struct exchange_client *client);
