/*
 * Inside of the exchange client: a mailbox between the training thread (client.c) and the link's
 * thread (client_link.c).
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
    size_t lent_sent;       /* floats that it has read */
    bool is_answer_written; /* all that has come of the answer is in them */
    uint64_t samples_max;   /* in the next push; 0: no bound */
    int64_t sent_ns;        /* of the push in flight */
    int64_t answer_ns;      /* when the last answer came */
    int64_t late_ns;        /* what the last push was late by */
    int64_t due_ns;         /* of the push in flight, by period */
    int64_t commit_ns, waiting_ns, lost_since_ns;
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
    struct link *link;
    int wake_fd;
    struct loop_watch *wake_watch;
    struct loop_timer *progress_timer;
    struct vector_receiver incoming;
    struct vector_sender outgoing;
    bool has_shadow; /* the incoming vector's is the last model that came on this link */
    struct compressor *compressor; /* from the first push that a codec is to make smaller */
    struct vector_scratch *scratch;
    struct client_check check;
    bool is_receiving; /* MODEL came, its DATA not all */
    bool is_offered;   /* OFFER came, and the first model is not there to compare */
    bool was_joined;   /* on this link or another: `base` may be any model */
    struct exchange_offer offer;
    struct exchange_model incoming_model;
    uint64_t term;           /* of the server that the link is to */
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

/* --- client_link.c: called by the client's life --- */

void client_on_wake(void *context, uint32_t events);
void client_message_send(struct exchange_client *client, const struct exchange_message *message);
/* The next run of a vector, as a frame of this type; the link may be lost over it. */
void client_run_send(struct exchange_client *client, struct vector_sender *sender, uint16_t type);

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
void client_on_progress(void *context);

/* --- client.c: called with the mutex held --- */

/* Makes `update` what is not sent of it, and `base` the parameters, which are no longer lent. */
void client_loan_end(struct exchange_client *client);
/* What it learnt is no number any more: it ends. */
void client_give_up(struct exchange_client *client);
