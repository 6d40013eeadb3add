/*
 * A linear regression on several ranks with Souk's synchronisation, in C.
 *
 *     gcc -o sync sync.c -lsouk
 *     souk run -n 3 --network job --files . -- ./sync
 *
 * or by hand, here with three ranks on one machine:
 *
 *     export SOUK_WORLD_SIZE=3 SOUK_PEERS=127.0.0.1:7078 SOUK_SYNC_KEY=secret
 *     for r in 0 1 2; do SOUK_RANK=$r ./sync & done; wait
 *
 * Every rank draws samples of its own of y = 3 x0 - 2 x1 + 1. Usage: sync [POLICY [STEPS
 * [STEP_MS]]]
 */
#include <inttypes.h>
#include <souk/sync.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 16 };

struct model {
    float weights[2];
    float bias;
};

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (double)(1 << 24) * 2 - 1;
}

/* One step of gradient descent on a batch of its own; returns the loss before it. */
static double own_step(struct model *model, uint64_t *random)
{
    double loss = 0, gradient[3] = {0};
    for (int i = 0; i < BATCH; i++) {
        const double x[2] = {uniform(random), uniform(random)};
        const double y = 3 * x[0] - 2 * x[1] + 1;
        const double wrong = (double)model->weights[0] * x[0] + (double)model->weights[1] * x[1] +
                             (double)model->bias - y;
        loss += wrong * wrong / BATCH;
        gradient[0] += 2 * wrong * x[0] / BATCH;
        gradient[1] += 2 * wrong * x[1] / BATCH;
        gradient[2] += 2 * wrong / BATCH;
    }
    model->weights[0] -= (float)(0.1 * gradient[0]);
    model->weights[1] -= (float)(0.1 * gradient[1]);
    model->bias -= (float)(0.1 * gradient[2]);
    return loss;
}

static int fail(struct souk_sync *sync, const char *what)
{
    fprintf(stderr, "rank %d: %s: %s\n", souk_sync_rank(sync), what, souk_sync_error(sync));
    souk_sync_finish(sync);
    return 1;
}

int main(int argc, char **argv)
{
    const char *policy = argc > 1 ? argv[1] : "adsp";
    const long steps = argc > 2 ? strtol(argv[2], NULL, 10) : 400;
    const long step_ms = argc > 3 ? strtol(argv[3], NULL, 10) : 2;
    char error[256];
    struct souk_sync *sync;
    struct model model = {{0}, 0};
    if (souk_sync_init(NULL, &sync, error, sizeof error) < 0) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    const struct souk_sync_buffer buffers[] = {{model.weights, 2}, {&model.bias, 1}};
    const struct souk_sync_training training = {.size = sizeof training,
                                                .policy = policy,
                                                .buffers = buffers,
                                                .buffer_count = 2,
                                                .gamma_ms = 500,
                                                .reports_loss = 1};
    if (souk_sync_train(sync, &training) < 0)
        return fail(sync, "train");
    printf("rank %d of %d begins at %.3f %.3f %.3f\n", souk_sync_rank(sync), souk_sync_size(sync),
           (double)model.weights[0], (double)model.weights[1], (double)model.bias);
    fflush(stdout);
    uint64_t random = 17 + (uint64_t)souk_sync_rank(sync);
    int has_taken = 0;
    for (long step = 0; step < steps; step++) {
        const double loss = own_step(&model, &random);
        const struct timespec pause = {step_ms / 1000, step_ms % 1000 * 1000000};
        nanosleep(&pause, NULL); /* in place of work */
        const int is_changed = souk_sync_step(sync, BATCH, loss);
        if (is_changed < 0)
            return fail(sync, "step");
        if (is_changed && !has_taken) {
            printf("rank %d learns from the others after step %ld\n", souk_sync_rank(sync), step);
            fflush(stdout);
        }
        has_taken |= is_changed;
    }
    struct souk_sync_status status = {.size = sizeof status};
    souk_sync_status(sync, &status);
    printf("rank %d made %" PRIu64 " steps and %" PRIu64 " commits\n", souk_sync_rank(sync),
           status.steps, status.commits);
    if (souk_sync_settle(sync) < 0)
        return fail(sync, "settle");
    printf("rank %d ends at %.3f %.3f %.3f\n", souk_sync_rank(sync), (double)model.weights[0],
           (double)model.weights[1], (double)model.bias);
    souk_sync_finish(sync);
    return 0;
}
