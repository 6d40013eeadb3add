/*
 * Inside of the sync engine: two threads. The program's own calls the functions of souk/sync.h
 * (sync_init.c, sync_call.c, sync_train.c) and mostly waits for the library's, which runs the loop:
 * the link to rank 0 (sync_member.c), the stream to the parameter server (sync_worker.c), and at
 * rank 0 the host. They share what stands under the mutex.
 */
#pragma once

#include "base/error.h"
#include "exchange/client.h"
#include "library/sync_host.h"
#include "library/sync_message.h"
#include "net/address.h"
#include "net/link.h"
#include "net/loop.h"

#include <pthread.h>
#include <souk/sync.h>

struct sync_place {
    uint32_t rank, world;
    struct host_port host; /* rank 0's */
    uint8_t key[LINK_KEY_SIZE];
    int64_t join_ms, lost_ms;
    const char *done_file; /* SOUK_DONE_FILE; NULL: none */
};

/* From the options, and the environment where they say nothing. */
MUST_CHECK int sync_place_find(const struct souk_sync_options *options, struct sync_place *out,
                               struct error *error);

/* Whether rank 0's program has ended well already, as the job's own ranks were told. */
bool sync_place_is_over(const struct sync_place *place);

enum sync_turn { SYNC_TURN_NONE, SYNC_TURN_CALLED, SYNC_TURN_ANSWERED, SYNC_TURN_FAILED };

struct souk_sync {
    struct sync_place place;
    uint64_t process;
    struct loop *loop;
    pthread_t thread;
    bool has_thread;
    char error[256]; /* of the last call; the program's thread's */

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* --- guarded by mutex --- */
    bool is_welcome;  /* rank 0 knows this rank */
    bool is_complete; /* at rank 0: all came or were given up */
    bool is_left;     /* at rank 0: all others left */
    bool is_refused;
    bool has_ended;            /* the library's thread has, by an error */
    bool has_host_left;        /* rank 0 said goodbye: no training begins any more */
    int64_t lost_since_ns;     /* 0: the link to rank 0 stands */
    struct sync_opened opened; /* term 0: no server yet */
    uint64_t closed_term;      /* training of it, and of those before, is over here */
    uint64_t settled_round;    /* settle's barrier: servers that open before it are over by it */
    char failure[256];         /* of rank 0's server, or why this rank is refused; "": none */
    enum sync_turn turn;       /* of the call at hand */
    struct sync_call call;
    uint8_t *call_bytes; /* the program's thread's, which waits */
    uint32_t contributors;
    char call_error[256];
    uint64_t rounds_done;
    float *kept; /* the model as it last was at a push or answer, for a rank 0 that starts again */
    size_t kept_count;
    uint64_t kept_steps;

    /* --- the library's thread's --- */
    struct sync_host *host; /* at rank 0 */
    struct link *link;
    struct tcp_connect *dial, *worker_dial;
    struct loop_timer *redial_timer, *alive_timer, *worker_timer;
    int64_t heard_ns;
    bool is_call_sent, is_receiving, is_leaving;
    uint64_t receive_round;
    size_t received, receive_size;
    struct exchange_client *client;
    bool has_stream; /* to the server of worker_term */
    uint64_t worker_term;

    /* --- the program's thread's --- */
    uint64_t round;
    bool is_training;
    struct souk_sync_buffer *buffers;
    size_t buffer_count, parameter_count;
    float *values; /* all buffers, one after the other; the buffer itself where it is one */
    bool owns_values, was_taken, is_wanted;
    int64_t step_ended_ns;
    double last_loss;
    struct sync_host_training host_training;
    char policy[64];
};

int sync_fail(struct souk_sync *sync, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int64_t sync_now_ns(const struct souk_sync *sync);
/* Waits for a change, or a moment. With the mutex held. */
void sync_wait(struct souk_sync *sync);
/* Runs it on the library's thread and waits until it is done; not if that thread has ended. */
void sync_run(struct souk_sync *sync, void (*function)(struct souk_sync *sync));

/* --- sync_call.c: the program's thread --- */

/* -1 when rank 0 is lost for too long, or refuses this rank; with the mutex held. */
int sync_check_host(struct souk_sync *sync);

/* --- sync_member.c: the library's thread --- */

void member_begin(struct souk_sync *sync);
void member_end(struct souk_sync *sync);
/* There is a call to send. */
void member_call(struct souk_sync *sync);
/* The program has given the call up. */
void member_cancel(struct souk_sync *sync);
void member_leave(struct souk_sync *sync);

/* --- sync_worker.c: the library's thread --- */

/* A server stands, or stands anew. */
void worker_dial_start(struct souk_sync *sync);
void worker_open(struct souk_sync *sync);
void worker_close(struct souk_sync *sync);
/* Training ends with an error where rank 0 is gone for good. */
void worker_check_host(struct souk_sync *sync);
