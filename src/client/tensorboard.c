#include "client/tensorboard.h"

#include "base/clock.h"
#include "base/memory.h"
#include "client/api_internal.h"
#include "train/tfevents.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CURVE_MAX = 1 << 20, LEASES_MAX = 1024 };

struct point {
    int64_t at_ms;
    uint64_t samples;
    double loss, test_accuracy; /* NaN: not measured */
};

static const struct json_field point_fields[] = {
    {"at_ms", JSON_I64, offsetof(struct point, at_ms), .is_required = true},
    {"samples", JSON_U64, offsetof(struct point, samples)},
    {"loss", JSON_DOUBLE, offsetof(struct point, loss)},
    {"test_accuracy", JSON_DOUBLE, offsetof(struct point, test_accuracy)},
};
static const struct json_schema point_schema =
    JSON_SCHEMA_LENIENT("point", point_fields, struct point);

struct metrics {
    struct json_array curve;
};

static const struct json_field metrics_fields[] = {
    {"curve", JSON_ARRAY, offsetof(struct metrics, curve), .size_max = CURVE_MAX,
     .schema = &point_schema},
};
static const struct json_schema metrics_schema =
    JSON_SCHEMA_LENIENT("metrics", metrics_fields, struct metrics);

struct tensorboard {
    struct client *client;
    uint64_t job;
    char folder[PATH_MAX];
    struct tfevents *events;
    bool has_samples; /* `samples` counts */
    uint64_t samples; /* of the last point written */
    struct {
        uint64_t lease, samples;
    } workers[LEASES_MAX]; /* by place; what was last written of each */
    uint32_t worker_count;
    bool has_failed;
    struct error failure; /* the first */
};

static void write_scalars(struct tensorboard *board, int64_t at_ms, uint64_t samples,
                          const struct tfevents_scalar *scalars, size_t count)
{
    struct error error;
    if (tfevents_write(board->events, at_ms, samples, scalars, count, &error) == 0 ||
        board->has_failed)
        return;
    board->has_failed = true;
    board->failure = error;
}

static void write_point(struct tensorboard *board, const struct point *point)
{
    if (board->has_samples && point->samples <= board->samples)
        return;
    const struct tfevents_scalar scalars[] = {{"test/loss", point->loss},
                                              {"test/accuracy", point->test_accuracy}};
    write_scalars(board, point->at_ms, point->samples, scalars, 2);
    board->has_samples = true;
    board->samples = point->samples;
}

/* A point without a measurement has null or no loss. */
static int write_curve(struct tensorboard *board, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct metrics metrics = {0};
    struct client_answer answer = {&metrics_schema, &metrics, {0}};
    const char *path = arena_format(arena, "/v1/jobs/%" PRIu64 "/metrics", board->job);
    if (client_get(board->client, arena, path, &answer, error) < 0)
        return -1;
    const struct point *points = metrics.curve.items;
    for (size_t i = 0; i < metrics.curve.count; i++) {
        struct point point = points[i];
        point.loss = point.loss > 0 ? point.loss : (double)NAN;
        point.test_accuracy = point.test_accuracy > 0 ? point.test_accuracy : (double)NAN;
        write_point(board, &point);
    }
    return 0;
}

int tensorboard_open(struct client *client, const char *folder, uint64_t job,
                     struct tensorboard **out_board, struct error *error)
{
    AUTO(tensorboard) struct tensorboard *board = memory_zeroed(1, sizeof(*board));
    board->client = client;
    board->job = job;
    if (snprintf(board->folder, sizeof(board->folder), "%s/job-%" PRIu64, folder, job) >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "--tensorboard: the path is too long");
    if (tfevents_open(board->folder, clock_utc_ms(&clock_system), &board->events, error) < 0)
        return error_wrap(error, "--tensorboard");
    if (write_curve(board, error) < 0)
        return -1;
    *out_board = TAKE(board);
    return 0;
}

void tensorboard_free(struct tensorboard *board)
{
    if (!board)
        return;
    tfevents_free(board->events);
    free(board);
}

const char *tensorboard_folder(const struct tensorboard *board)
{
    return board->folder;
}

/* NULL: there are more than are kept apart. */
static uint64_t *last_samples(struct tensorboard *board, uint64_t lease)
{
    for (uint32_t i = 0; i < board->worker_count; i++)
        if (board->workers[i].lease == lease)
            return &board->workers[i].samples;
    if (board->worker_count == LEASES_MAX)
        return NULL;
    board->workers[board->worker_count].lease = lease;
    return &board->workers[board->worker_count++].samples;
}

void tensorboard_take(struct tensorboard *board, const struct api_event *event)
{
    if (text_equal(event->role, TEXT("server"))) {
        write_point(board, &(struct point){event->at_ms, event->samples, event->loss,
                                           event->test_accuracy});
        return;
    }
    uint64_t *samples = last_samples(board, event->lease);
    if (!samples || event->samples <= *samples)
        return;
    char loss[64], speed[64];
    snprintf(loss, sizeof(loss), "lease-%" PRIu64 "/loss", event->lease);
    snprintf(speed, sizeof(speed), "lease-%" PRIu64 "/steps_per_second", event->lease);
    const struct tfevents_scalar scalars[] = {
        {loss, event->loss},
        {speed, event->steps_per_second > 0 ? event->steps_per_second : (double)NAN}};
    write_scalars(board, event->at_ms, event->samples, scalars, 2);
    *samples = event->samples;
}

int tensorboard_finish(struct tensorboard *board, struct error *error)
{
    if (write_curve(board, error) < 0)
        return -1;
    if (!board->has_failed)
        return 0;
    *error = board->failure;
    return -1;
}
