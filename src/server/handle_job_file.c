/* A job to take along: as a job file, and as TensorBoard reads its curve. */
#include "runtime/job_file.h"
#include "server/handle_job.h"
#include "server/handlers.h"
#include "server/query.h"
#include "server/view.h"
#include "train/tfevents.h"

#include <inttypes.h>
#include <math.h>

enum {
    YAML_SIZE_MAX = 4 * JOB_SPEC_SIZE_MAX,
    EVENTS_SIZE_MAX = 4 << 20,
    SCHEMA_SIZE_MAX = 1 << 20
};

static int add_name(struct http_request *request, const char *name, struct error *error)
{
    return http_reply_header(
        request, "Content-Disposition",
        arena_format(http_request_arena(request), "attachment; filename=\"%s\"", name), error);
}

/* ---- The job file ---------------------------------------------------------------------------- */

/* Built-in data are found again by their name. */
static int write_file(struct server *server, struct arena *arena, struct store_value job,
                      struct buffer *yaml, struct error *error)
{
    const struct store_value *row = NULL;
    struct job_spec spec;
    if (query_one(server, arena, TABLE_JOB_SPECS, "job", job, &row, error) < 0)
        return -1;
    if (!row)
        return error_set(error, ERROR_NOT_FOUND, "job %" PRId64 " has no spec", job.integer);
    if (job_spec_read(arena, row[JOB_SPECS_SPEC].bytes, &spec, error) < 0)
        return error_wrap(error, "the job was submitted to another version of the market");
    if (!job_spec_is_command(&spec) && !job_train_is_file(&spec.train))
        spec.input_count = 0;
    return job_file_write(arena, &spec, yaml, error);
}

void handle_job_file(struct http_request *request, void *context)
{
    struct server *server = context;
    const struct store_value *row = handle_job_find(server, request);
    if (!row)
        return;
    struct arena *arena = http_request_arena(request);
    struct buffer yaml AUTO_BUFFER;
    struct error error;
    buffer_init(&yaml, YAML_SIZE_MAX);
    const char *name = arena_format(arena, TEXT_FORMAT ".yaml", TEXT_ARGS(row[JOBS_NAME].bytes));
    if (write_file(server, arena, row[JOBS_ID], &yaml, &error) < 0 ||
        add_name(request, name, &error) < 0)
        http_reply_error(request, &error);
    else
        http_reply_take(request, 200, "application/yaml", &yaml);
}

void handle_job_schema(struct http_request *request, void *context)
{
    (void)context;
    struct buffer schema AUTO_BUFFER;
    buffer_init(&schema, SCHEMA_SIZE_MAX);
    job_spec_write_schema(&schema);
    http_reply_take(request, 200, "application/schema+json", &schema);
}

/* ---- TensorBoard ----------------------------------------------------------------------------- */

static void write_events(const struct live_job *live, int64_t begun_ms, struct buffer *events)
{
    const struct live_point *points = live ? live->curve.items : NULL;
    tfevents_append_version(events, begun_ms);
    for (size_t i = 0; live && i < live->curve.count; i++) {
        const struct live_point *point = &points[i], *before = i ? &points[i - 1] : NULL;
        const int64_t passed_ms = before ? point->elapsed_ms - before->elapsed_ms : 0;
        const struct tfevents_scalar scalars[] = {
            {"test/loss", point->has_loss ? point->loss : (double)NAN},
            {"test/accuracy", point->has_accuracy ? point->test_accuracy : (double)NAN},
            {"train/samples_per_second",
             passed_ms > 0 && point->samples >= before->samples
                 ? 1000.0 * (double)(point->samples - before->samples) / (double)passed_ms
                 : (double)NAN},
        };
        tfevents_append(events, point->at_ms, point->samples, scalars,
                        sizeof(scalars) / sizeof(*scalars));
    }
}

void handle_job_tensorboard(struct http_request *request, void *context)
{
    struct server *server = context;
    const struct store_value *row = handle_job_find(server, request);
    if (!row)
        return;
    const uint64_t job = (uint64_t)row[JOBS_ID].integer;
    const int64_t begun_ms = row[JOBS_SUBMITTED_MS].integer;
    struct buffer events AUTO_BUFFER;
    struct error error;
    buffer_init(&events, EVENTS_SIZE_MAX);
    write_events(live_find(server->live, job, LIVE_CURVE), begun_ms, &events);
    const char *name =
        arena_format(http_request_arena(request), "events.out.tfevents.%" PRId64 ".job-%" PRIu64,
                     begun_ms / 1000, job);
    if (buffer_check(&events, &error) < 0 || add_name(request, name, &error) < 0)
        http_reply_error(request, &error);
    else
        http_reply_take(request, 200, "application/octet-stream", &events);
}
