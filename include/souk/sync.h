/*
 * souk/sync.h: Souk's synchronisation for anybody's training loop.
 *
 * Each rank of a job runs the same program. Rank 0's library keeps the model and decides, by one of
 * Souk's policies, when each rank sends what it learnt and takes over what the others did; this
 * happens on a thread of the library, while the program computes on. Between two of its steps, and
 * only within souk_sync_step or souk_sync_exchange, the program's own buffers change.
 *
 *     struct souk_sync *sync;
 *     char error[256];
 *     if (souk_sync_init(NULL, &sync, error, sizeof error) < 0) ...
 *     souk_sync_train(sync, &(struct souk_sync_training){
 *                     .size = sizeof(struct souk_sync_training), .policy = "adsp", ...}) ...
 *     for (...) { own_step(); souk_sync_step(sync, samples, loss); }
 *     souk_sync_settle(sync);      all ranks now have the same model
 *     souk_sync_finish(sync);
 *
 * In a job of Souk with `resources.network: job` (every framework's runtime has it) ranks find each
 * other by themselves. Elsewhere set SOUK_RANK, SOUK_WORLD_SIZE and SOUK_PEERS ("host:port" of
 * rank 0, further ones after commas), and SOUK_SYNC_KEY, a secret that all share: without it
 * anybody who reaches rank 0's port may join.
 *
 * A rank may be lost and come back: the others go on. When rank 0 is started again it takes the
 * model from whoever has trained most; without it for longer than join_ms calls fail. What only a
 * rank that has left could begin (training: rank 0; a broadcast: its root) fails too. Broadcast,
 * allreduce and barrier are numbered rounds, 1, 2, ... from the start of the program: a rank that
 * starts again walks through those that are over with the results the others had.
 *
 * All calls on one souk_sync are made by one thread. They return 0, or what is said, and -1 with
 * souk_sync_error on failure.
 */
#ifndef SOUK_SYNC_H
#define SOUK_SYNC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SOUK_SYNC_VERSION 1 /* grows when a caller would have to change */

int souk_sync_version(void); /* of the library */

struct souk_sync;

/* Structs begin with their size, so that later versions can add fields at their end. Else all zero:
 * as the environment says. */
struct souk_sync_options {
    size_t size;       /* sizeof(struct souk_sync_options) */
    const char *peers; /* "host:port" of rank 0; NULL: SOUK_PEERS */
    int rank;          /* counts where world_size > 0 */
    int world_size;    /* 0: SOUK_RANK and SOUK_WORLD_SIZE; without them 1 */
    const char *key;   /* NULL: SOUK_SYNC_KEY */
    int64_t join_ms;   /* rank 0 waits so long for all others at the start, they for it; 0: 120 s */
    int64_t lost_ms;   /* nobody waits longer for a rank that is not heard; 0: 10 s */
};

/* Returns when all ranks are there, or join_ms have passed and some are. */
int souk_sync_init(const struct souk_sync_options *options, struct souk_sync **out_sync,
                   char *error, size_t error_size);
/* Whether what failed did so since rank 0's program has ended well: a rank that came late, as the
 * successor of one that was lost, has nothing left to do, and ends well too. Of a job whose ranks
 * are restarted one by one. */
int souk_sync_is_over(void);
/* Leaves: the others go on. Rank 0 waits until all have left, or are lost. NULL is fine. */
void souk_sync_finish(struct souk_sync *sync);

int souk_sync_rank(const struct souk_sync *sync);
int souk_sync_size(const struct souk_sync *sync);
/* Why the last call failed. */
const char *souk_sync_error(const struct souk_sync *sync);

/* --- rounds: every rank makes the same calls --- */

int souk_sync_barrier(struct souk_sync *sync);
/* `size` bytes, of any kind, from rank `root` to all. */
int souk_sync_broadcast(struct souk_sync *sync, void *data, size_t size, int root);
enum souk_sync_op { SOUK_SYNC_SUM, SOUK_SYNC_MEAN };
/* The sum or mean over the ranks that are there, in place; any number of values. Returns how many
 * ranks that were, the fewest of any part of it. */
int souk_sync_allreduce(struct souk_sync *sync, float *values, size_t count, enum souk_sync_op op);

/* --- training --- */

struct souk_sync_buffer {
    float *values;
    size_t count;
};

struct souk_sync_training {
    size_t size;          /* sizeof(struct souk_sync_training) */
    const char *policy;   /* "adsp", "bsp", "ssp", "pace", ...; NULL: "adsp" */
    const char *compress; /* "f32", "f16", "bf16", "int8", "1bit", "topk", "auto"; NULL: "f32" */
    const struct souk_sync_buffer *buffers; /* the model; they stay where they are; copied */
    size_t buffer_count;
    int64_t gamma_ms;     /* check period; 0: 4 s */
    uint32_t local_steps; /* per push, of policies that have it; 0: the policy's */
    uint32_t slack;       /* of ssp; 0: the policy's */
    double momentum;      /* of the program's own steps */
    int reports_loss;     /* each step comes with its loss: adsp then searches its commit rate;
                             adacomm, hsp and auto need it */
};

/* Begins with rank 0's model on all ranks: buffers are changed. Rank 0's settings count. */
int souk_sync_train(struct souk_sync *sync, const struct souk_sync_training *training);
/* After each own step. Returns 1 when the buffers were changed, else 0. */
int souk_sync_step(struct souk_sync *sync, uint32_t samples, double loss);
/*
 * The same in two parts, for buffers that mirror what lies elsewhere (on a GPU): count returns 1
 * when the buffers are wanted; fill them, call exchange, and where that returns 1 copy them back.
 */
int souk_sync_count(struct souk_sync *sync, uint32_t samples, double loss);
int souk_sync_exchange(struct souk_sync *sync);
/* Ends training: sends what is left, waits for all ranks, and leaves the same model in the buffers
 * of each. A round. */
int souk_sync_settle(struct souk_sync *sync);

struct souk_sync_status {
    size_t size;             /* sizeof(struct souk_sync_status), before the call */
    uint64_t steps, commits; /* of this rank */
    int64_t waiting_ms;      /* it stood still, in all */
    uint32_t batch;          /* samples a step that the policy asks for; 0: as the program likes */
    int is_connected;
};
int souk_sync_status(struct souk_sync *sync, struct souk_sync_status *out);

#ifdef __cplusplus
}
#endif

#endif
