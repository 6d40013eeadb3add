/*
 * Exchange client: a worker's side: sends what it learnt, takes over the global model, and keeps
 * the worker computing meanwhile.
 *
 * Two threads use it. The training thread calls the functions of its group between its steps. The
 * link's thread runs the loop and calls attach and the rest. The rule for the worker's parameters L
 * with base B (the model they started from):
 *
 *     push    U = L - B is sent; B = L              nothing waits, steps go on changing L
 *     answer  L += W - B; B = W                     what was learnt meanwhile stays on top of W
 *     rejoin  as an answer; a push that was under way is given up, so that it cannot count twice
 *
 * Where the model is split among servers (range.h) there is a link to each, and all of the above is
 * about all of them: a push is sent when its slices are, an answer is there when its parts are, and
 * when one link breaks the worker joins again once all of them stand.
 *
 * Between a push and its answer the training thread makes as many steps as the settings' overlap
 * says, then waits (bsp: 0). By period, the next push is due `period` after the last answer, less
 * what the last one was late because a step was running: so pushes keep their number per check
 * period.
 */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/scope.h"
#include "exchange/message.h"
#include "net/link.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exchange_client_options {
    struct loop *loop; /* run by the link's thread; its clock is used */
    uint64_t lease, fence;
    uint8_t key[LINK_KEY_SIZE];
    uint32_t rank;
    uint64_t shard_samples;
    size_t parameter_count;
    uint32_t servers;     /* that the model is split among; 0: 1 */
    uint32_t local_steps; /* before the server's first settings: 1 for bsp and tap, 0 for adsp */
    uint64_t samples_max; /* before the server's first model; 0: no bound */
    /* For `souk bench exchange` alone: links in TLS records, or not encrypted at all (net/link.h).
     */
    bool is_bench_tls, is_bench_plain;
    /*
     * So that each push can be made again by others (check.h): it starts from an answer, nothing
     * stays on top of one, and it has CHECK_STEPS_MAX steps at most.
     */
    bool is_exact;
    /* On the training thread, within exchange_client_step: an answer was taken over; may be NULL.
     */
    void (*on_taken)(void *context);
    /* There too: makes another's push again: `values` are the model it starts from, and then what
     * it comes to, the difference. -1 when it cannot. NULL: it is never asked. */
    int (*recompute)(void *context, const struct exchange_recompute *task, float *values);
    /* On the link's thread, after an answer, a stop or a loss of the link; may be NULL. */
    void (*on_change)(void *context);
    void *context;
};

enum exchange_client_state {
    EXCHANGE_CLIENT_CONNECTING, /* no stream yet, or it broke: steps may go on */
    EXCHANGE_CLIENT_TRAINING,
    EXCHANGE_CLIENT_STOPPED, /* by the server, or exchange_client_stop */
};

struct exchange_client_status {
    enum exchange_client_state state;
    uint64_t steps, samples;
    uint64_t commits; /* answered */
    double loss;      /* moving mean over the last steps */
    double steps_per_second;
    int64_t commit_ns;   /* O of the last push */
    int64_t waiting_ns;  /* the training thread stood still, in all */
    int64_t transfer_ns; /* of that, while its push or the answer travelled */
    /* Over all links, those that broke too: payload and headers, to within a second. */
    uint64_t sent_bytes, received_bytes;
    int64_t lost_since_ns; /* monotonic; 0 while the link is up */
    bool has_left;         /* exchange_client_finish said goodbye: it needs no stream any more */
    struct exchange_settings settings;
    char reason[256]; /* why it stopped, or what broke the link last */
};

struct exchange_client;

MUST_CHECK int exchange_client_open(const struct exchange_client_options *options,
                                    struct exchange_client **out_client, struct error *error);
/* After the training thread has ended, on the link's thread or once the loop no longer runs. */
void exchange_client_free(struct exchange_client *client); /* NULL is fine */
DEFINE_AUTO(exchange_client);

/* --- the training thread --- */

struct exchange_step {
    uint32_t steps;                    /* that were made in one go; 0: one */
    uint32_t samples;                  /* of all of them */
    double loss;                       /* their mean */
    int64_t started_ns, ended_ns;      /* monotonic */
    uint64_t first_step, first_sample; /* made and drawn before it; where pushes are exact */
};

/* The parameters before the first step, the same on every machine. Once, before all else. */
void exchange_client_begin(struct exchange_client *client, const float *parameters);
/*
 * After each step: takes over an answer that has come, pushes when it is time, waits where the
 * policy says so. `parameters` are read and changed. Returns false when training is to end.
 */
bool exchange_client_step(struct exchange_client *client, const struct exchange_step *step,
                          float *parameters);
/* The same in two parts, for parameters that must be gathered first: count returns whether they are
 * wanted now; if so, exchange follows with them before the next count. */
bool exchange_client_count(struct exchange_client *client, const struct exchange_step *step);
bool exchange_client_exchange(struct exchange_client *client, float *parameters);
/* How steps are made from now on, as the policy says. */
struct exchange_steps {
    uint32_t batch; /* samples a step; 0: the job's */
    bool is_plain;  /* without momentum, at the rate / (1 - momentum) */
};
struct exchange_steps exchange_client_steps(struct exchange_client *client);
/* Sends what is not pushed yet, waits for its acceptance and says goodbye; for at most timeout_ms.
 * Of parameters that are not finite any more nothing is sent but that.
 * Nothing may be called by this thread afterwards. */
void exchange_client_finish(struct exchange_client *client, const float *parameters,
                            int64_t timeout_ms);

/* Instead, when its loss is not finite any more: pushes nothing, waits for the link if need be, and
 * says so to the server. */
void exchange_client_diverged(struct exchange_client *client, int64_t timeout_ms);

/* --- the link's thread --- */

/* A new stream to this one of the servers, of this term, in place of the one before: what another
 * one sends on it is refused. Takes `fd` on success only. */
MUST_CHECK int exchange_client_attach_take(struct exchange_client *client, uint32_t server, int fd,
                                           uint64_t term, struct error *error);

/* --- any thread --- */

/* Asks the training thread to end, also while it waits. */
void exchange_client_stop(struct exchange_client *client, const char *reason);
void exchange_client_status(struct exchange_client *client, struct exchange_client_status *out);
