#include "base/assert.h"
#include "base/log.h"
#include "server/call.h"
#include "server/live_internal.h"
#include "server/profiles.h"
#include "server/query.h"

#include <stdlib.h>

enum { METRICS_SIZE_MAX = 4 << 20, PROFILE_MS = 30000 };

static const struct json_field worker_fields[] = {
    {"lease", JSON_U64, offsetof(struct live_worker, lease), .is_required = true},
    {"role", JSON_I64, offsetof(struct live_worker, role), .is_required = true},
    {"rank", JSON_U64, offsetof(struct live_worker, rank), .is_required = true},
    {"replica", JSON_BOOL, offsetof(struct live_worker, is_replica), .is_zero_omitted = true},
    {"machine", JSON_U64, offsetof(struct live_worker, machine), .is_required = true},
    {"at_ms", JSON_I64, offsetof(struct live_worker, at_ms), .is_required = true},
    {"steps", JSON_U64, offsetof(struct live_worker, steps), .is_required = true},
    {"samples", JSON_U64, offsetof(struct live_worker, samples), .is_required = true},
    {"commits", JSON_U64, offsetof(struct live_worker, commits), .is_required = true},
    {"has_loss", JSON_BOOL, offsetof(struct live_worker, has_loss), .is_required = true},
    {"loss", JSON_DOUBLE, offsetof(struct live_worker, loss), .is_required = true},
    {"steps_per_second", JSON_DOUBLE, offsetof(struct live_worker, steps_per_second),
     .is_required = true},
    {"share", JSON_DOUBLE, offsetof(struct live_worker, share), .is_required = true},
    {"first_step_ms", JSON_I64, offsetof(struct live_worker, first_step_ms),
     .is_zero_omitted = true},
    {"compute_ms", JSON_DOUBLE, offsetof(struct live_worker, compute_ms), .is_zero_omitted = true},
    {"transfer_ms", JSON_DOUBLE, offsetof(struct live_worker, transfer_ms),
     .is_zero_omitted = true},
    {"wait_ms", JSON_DOUBLE, offsetof(struct live_worker, wait_ms), .is_zero_omitted = true},
    {"sent_bytes", JSON_U64, offsetof(struct live_worker, sent_bytes), .is_zero_omitted = true},
    {"received_bytes", JSON_U64, offsetof(struct live_worker, received_bytes),
     .is_zero_omitted = true},
    {"cpu_ms", JSON_I64, offsetof(struct live_worker, cpu_ms)},
    {"gpu_ms", JSON_I64, offsetof(struct live_worker, gpu_ms)},
    {"memory_peak_bytes", JSON_I64, offsetof(struct live_worker, memory_peak_bytes)},
    {"codec", JSON_CHARS, offsetof(struct live_worker, codec), .size_max = REPORT_CODEC_SIZE},
    {"clipped", JSON_U64, offsetof(struct live_worker, clipped), .is_zero_omitted = true},
    {"refused", JSON_U64, offsetof(struct live_worker, refused), .is_zero_omitted = true},
};
/* Lenient: a market from before kept other times. */
static const struct json_schema worker_schema =
    JSON_SCHEMA_LENIENT("worker", worker_fields, struct live_worker);

static const struct json_field point_fields[] = {
    {"at_ms", JSON_I64, offsetof(struct live_point, at_ms), .is_required = true},
    {"elapsed_ms", JSON_I64, offsetof(struct live_point, elapsed_ms), .is_required = true},
    {"samples", JSON_U64, offsetof(struct live_point, samples), .is_required = true},
    {"has_loss", JSON_BOOL, offsetof(struct live_point, has_loss), .is_required = true},
    {"loss", JSON_DOUBLE, offsetof(struct live_point, loss), .is_required = true},
    {"has_accuracy", JSON_BOOL, offsetof(struct live_point, has_accuracy), .is_required = true},
    {"test_accuracy", JSON_DOUBLE, offsetof(struct live_point, test_accuracy), .is_required = true},
};
static const struct json_schema point_schema =
    JSON_SCHEMA("point", point_fields, struct live_point);

static const struct json_field workers_fields[] = {
    {"workers", JSON_ARRAY, offsetof(struct live_job, workers), .size_max = LIVE_WORKER_MAX,
     .schema = &worker_schema},
    {"policy_in_force", JSON_CHARS, offsetof(struct live_job, policy_in_force),
     .size_max = REPORT_POLICY_SIZE},
    {"policy_reason", JSON_CHARS, offsetof(struct live_job, policy_reason),
     .size_max = REPORT_REASON_SIZE},
    {"checks", JSON_U64, offsetof(struct live_job, checks), .is_zero_omitted = true},
    {"checks_undecided", JSON_U64, offsetof(struct live_job, checks_undecided),
     .is_zero_omitted = true},
};
static const struct json_schema workers_schema =
    JSON_SCHEMA("workers", workers_fields, struct live_job);

static const struct json_field curve_fields[] = {
    {"elapsed_ms", JSON_I64, offsetof(struct live_job, elapsed_ms), .is_required = true},
    {"stride", JSON_U64, offsetof(struct live_job, stride), .is_required = true},
    {"point_count", JSON_U64, offsetof(struct live_job, point_count), .is_required = true},
    {"curve", JSON_ARRAY, offsetof(struct live_job, curve), .size_max = LIVE_CURVE_READ_MAX,
     .schema = &point_schema},
};
static const struct json_schema curve_schema = JSON_SCHEMA("curve", curve_fields, struct live_job);

void live_entry_free(struct live_entry *entry)
{
    if (!entry)
        return;
    free(entry->job.workers.items);
    free(entry->job.curve.items);
    free(entry);
}

static void *copy_items(const void *items, size_t size)
{
    void *copy = malloc(size ? size : 1);
    ASSERT(copy);
    if (size)
        memcpy(copy, items, size);
    return copy;
}

static void read_figures(const struct store_value *row, struct live_job *out)
{
    *out = (struct live_job){
        .job = (uint64_t)row[METRICS_JOB].integer,
        .account = (uint64_t)row[METRICS_ACCOUNT].integer,
        .first_step_ms = row[METRICS_FIRST_STEP_MS].integer,
        .has_loss = row[METRICS_HAS_LOSS].integer != 0,
        .loss = row[METRICS_LOSS].real,
        .has_accuracy = row[METRICS_HAS_ACCURACY].integer != 0,
        .test_accuracy = row[METRICS_TEST_ACCURACY].real,
        .samples = (uint64_t)row[METRICS_SAMPLES].integer,
        .gamma_ms = row[METRICS_GAMMA_MS].integer,
    };
}

static int read_job(struct live *live, struct arena *arena, uint64_t job, enum live_part part,
                    struct live_job *out, struct error *error)
{
    const struct store_value id = store_integer((int64_t)job);
    const struct store_value *row = NULL, *curve = NULL;
    if (query_one(live->server, arena, TABLE_METRICS, "job", id, &row, error) < 0)
        return -1;
    if (!row)
        return 0;
    read_figures(row, out);
    if (part >= LIVE_WORKERS &&
        json_read_written(arena, row[METRICS_WORKERS].bytes, &workers_schema, out, error) < 0)
        return -1;
    if (part < LIVE_CURVE)
        return 1;
    if (query_one(live->server, arena, TABLE_CURVES, "job", id, &curve, error) < 0 ||
        (curve &&
         json_read_written(arena, curve[CURVES_JSON].bytes, &curve_schema, out, error) < 0))
        return -1;
    return 1;
}

struct live_entry *live_entry_load(struct live *live, uint64_t job, enum live_part part)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct live_job read = {0};
    const int found = read_job(live, arena, job, part, &read, &error);
    if (found < 0)
        log_event(LOG_WARN, "metrics_not_read", "error=\"%s\"", error.message);
    if (found <= 0)
        return NULL;
    struct live_entry *entry = calloc(1, sizeof(*entry));
    ASSERT(entry);
    entry->job = read;
    entry->worker_capacity = read.workers.count;
    entry->curve_capacity = read.curve.count;
    entry->job.workers.items =
        copy_items(read.workers.items, read.workers.count * sizeof(struct live_worker));
    entry->job.curve.items =
        copy_items(read.curve.items, read.curve.count * sizeof(struct live_point));
    return entry;
}

struct saved_rows {
    struct live_job job; /* without its arrays */
    int64_t now_ms;
    struct buffer workers, curve;
};

static void put_saved(void *context, struct store_batch *batch)
{
    const struct saved_rows *saved = context;
    const struct live_job *job = &saved->job;
    const struct store_value metrics[METRICS_COLUMN_COUNT] = {
        [METRICS_JOB] = store_integer((int64_t)job->job),
        [METRICS_ACCOUNT] = store_integer((int64_t)job->account),
        [METRICS_UPDATED_MS] = store_integer(saved->now_ms),
        [METRICS_FIRST_STEP_MS] = store_integer(job->first_step_ms),
        [METRICS_HAS_LOSS] = store_integer(job->has_loss),
        [METRICS_LOSS] = store_real(job->loss),
        [METRICS_HAS_ACCURACY] = store_integer(job->has_accuracy),
        [METRICS_TEST_ACCURACY] = store_real(job->test_accuracy),
        [METRICS_SAMPLES] = store_integer((int64_t)job->samples),
        [METRICS_GAMMA_MS] = store_integer(job->gamma_ms),
        [METRICS_WORKERS] = store_text(buffer_text(&saved->workers)),
    };
    const struct store_value curves[CURVES_COLUMN_COUNT] = {
        [CURVES_JOB] = store_integer((int64_t)job->job),
        [CURVES_JSON] = store_text(buffer_text(&saved->curve)),
    };
    store_batch_put(batch, &tables[TABLE_METRICS], metrics, METRICS_COLUMN_COUNT);
    store_batch_put(batch, &tables[TABLE_CURVES], curves, CURVES_COLUMN_COUNT);
}

static void release_saved(void *context)
{
    struct saved_rows *saved = context;
    buffer_done(&saved->workers);
    buffer_done(&saved->curve);
    free(saved);
}

static void write_part(struct buffer *out, const struct json_schema *schema,
                       const struct live_job *job)
{
    struct json_writer writer;
    buffer_init(out, METRICS_SIZE_MAX);
    json_writer_init(&writer, out);
    json_write(&writer, schema, job);
}

void live_entry_save(struct live *live, struct live_entry *entry)
{
    struct saved_rows *saved = calloc(1, sizeof(*saved));
    const int64_t saved_ms = clock_utc_ms(live->server->clock);
    ASSERT(saved);
    saved->job = entry->job;
    saved->now_ms = saved_ms;
    write_part(&saved->workers, &workers_schema, &entry->job);
    write_part(&saved->curve, &curve_schema, &entry->job);
    entry->is_changed = false;
    server_put_rows(live->server, put_saved, saved, release_saved);
    if (!entry->is_final && saved_ms - entry->profiled_ms < PROFILE_MS)
        return;
    entry->profiled_ms = saved_ms;
    profiles_save(live->server, &entry->job);
}
