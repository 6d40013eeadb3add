#include "base/assert.h"
#include "runtime/child_message.h"
#include "server/answers.h"
#include "server/live_internal.h"

#include <math.h>
#include <stdlib.h>

enum { EVENT_SIZE_MAX = 8192 };

/* ---- Finding --------------------------------------------------------------------------------- */

struct live *live_new(struct server *server)
{
    struct live *live = calloc(1, sizeof(*live));
    ASSERT(live);
    live->server = server;
    map_init(&live->jobs);
    map_init(&live->paused);
    list_init(&live->streams);
    return live;
}

void live_free(struct live *live)
{
    if (!live)
        return;
    live_streams_done(live);
    for (size_t i = 0; i < live->jobs.count; i++)
        live_entry_free(live->jobs.entries[i].value);
    map_done(&live->jobs);
    map_done(&live->paused);
    live_entry_free(live->shown);
    free(live);
}

static void forget_shown(struct live *live)
{
    live_entry_free(live->shown);
    live->shown = NULL;
    live->shown_job = 0;
}

const struct live_job *live_find(struct live *live, uint64_t job, enum live_part part)
{
    struct live_entry *entry = map_get(&live->jobs, job);
    answers_note_key(live->server->answers, TABLE_METRICS, job);
    if (entry)
        return &entry->job;
    if (live->shown_job != job || live->shown_part < part) {
        forget_shown(live);
        live->shown = live_entry_load(live, job, part);
        live->shown_job = job;
        live->shown_part = part;
    }
    return live->shown ? &live->shown->job : NULL;
}

bool live_is_there(const struct live *live, uint64_t job)
{
    return map_get(&live->jobs, job) != NULL;
}

const struct live_worker *live_find_worker(const struct live_job *job, uint64_t lease)
{
    const struct live_worker *workers = job->workers.items;
    for (size_t i = 0; i < job->workers.count; i++)
        if (workers[i].lease == lease)
            return &workers[i];
    return NULL;
}

static struct live_entry *entry_of(struct live *live, const struct live_source *source)
{
    struct live_entry *entry = map_get(&live->jobs, source->job);
    if (entry)
        return entry;
    forget_shown(live); /* what is shown from the tables would go stale */
    entry = live_entry_load(live, source->job, LIVE_CURVE);
    if (!entry) {
        entry = calloc(1, sizeof(*entry));
        ASSERT(entry);
        entry->job.job = source->job;
        entry->job.account = source->account;
        entry->job.stride = 1;
    }
    map_put(&live->jobs, source->job, entry);
    return entry;
}

static struct live_worker *worker_of(struct live_entry *entry, const struct live_source *source)
{
    struct live_job *job = &entry->job;
    struct live_worker *workers = job->workers.items;
    for (size_t i = 0; i < job->workers.count; i++)
        if (workers[i].lease == source->lease) {
            workers[i].rank = source->rank; /* a replica may have taken the lead */
            workers[i].is_replica = source->is_replica;
            return &workers[i];
        }
    if (job->workers.count == LIVE_WORKER_MAX)
        return NULL;
    if (job->workers.count == entry->worker_capacity) {
        entry->worker_capacity = entry->worker_capacity ? 2 * entry->worker_capacity : 8;
        workers = realloc(workers, entry->worker_capacity * sizeof(*workers));
        ASSERT(workers);
        job->workers.items = workers;
    }
    struct live_worker *worker = &workers[job->workers.count++];
    *worker = (struct live_worker){
        .lease = source->lease,
        .role = source->role,
        .rank = source->rank,
        .is_replica = source->is_replica,
        .machine = source->machine,
    };
    return worker;
}

/* ---- Reports --------------------------------------------------------------------------------- */

/* Keeps every stride-th point; when the curve is full, every second one goes and the stride
 * doubles, so that a long job's curve keeps its whole length. */
static void add_point(struct live_entry *entry, const struct live_point *point)
{
    struct live_job *job = &entry->job;
    if (job->point_count++ % job->stride)
        return;
    struct live_point *points = job->curve.items;
    while (job->curve.count >= LIVE_CURVE_MAX) {
        const size_t count = job->curve.count / 2;
        for (size_t i = 0; i < count; i++)
            points[i] = points[2 * i];
        job->curve.count = count;
        job->stride *= 2;
    }
    if (job->curve.count == entry->curve_capacity) {
        entry->curve_capacity = entry->curve_capacity ? 2 * entry->curve_capacity : 64;
        points = realloc(points, entry->curve_capacity * sizeof(*points));
        ASSERT(points);
        job->curve.items = points;
    }
    points[job->curve.count++] = *point;
}

static void measured(struct json_writer *writer, const char *key, bool is_known, double value)
{
    json_key(writer, key);
    if (is_known)
        json_double(writer, value);
    else
        json_null(writer);
}

/* What a worker's time went into: between two reports, or two looks, the differences. */
static void write_times(struct json_writer *writer, const struct live_worker *worker)
{
    json_field_i64(writer, "first_step_ms", worker->first_step_ms);
    json_field_i64(writer, "compute_ms", (int64_t)worker->compute_ms);
    json_field_i64(writer, "transfer_ms", (int64_t)worker->transfer_ms);
    json_field_i64(writer, "wait_ms", (int64_t)worker->wait_ms);
}

static void send_metric(struct live *live, const struct live_source *source,
                        const struct live_entry *entry, const struct live_worker *worker)
{
    const bool is_server = source->role == LEASE_ROLE_SERVER;
    const struct live_job *job = &entry->job;
    struct buffer data AUTO_BUFFER;
    buffer_init(&data, EVENT_SIZE_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &data);
    json_object_begin(&writer);
    json_field_u64(&writer, "job", source->job);
    json_field_u64(&writer, "lease", source->lease);
    json_field_string(&writer, "role", lease_role_name(source->role));
    json_field_u64(&writer, "rank", source->rank);
    json_field_bool(&writer, "replica", source->is_replica);
    json_field_i64(&writer, "at_ms", worker->at_ms);
    json_field_i64(&writer, "elapsed_ms", job->elapsed_ms);
    json_field_u64(&writer, "steps", worker->steps);
    json_field_u64(&writer, "samples", worker->samples);
    json_field_u64(&writer, "commits", worker->commits);
    measured(&writer, "loss", is_server ? job->has_loss : worker->has_loss,
             is_server ? job->loss : worker->loss);
    json_field_double(&writer, "steps_per_second", worker->steps_per_second);
    measured(&writer, "test_accuracy", is_server && job->has_accuracy, job->test_accuracy);
    write_times(&writer, worker);
    json_object_end(&writer);
    live_send(live, &(struct live_event){.job = source->job,
                                         .account = source->account,
                                         .name = "metric",
                                         .data = buffer_text(&data)});
}

#define TIMES_MS_MAX 1e12
#define BYTES_MAX    (UINT64_C(1) << 60)

/* Who reports may say anything. */
static double bounded_ms(double ms)
{
    return ms > 0 ? fmin(ms, TIMES_MS_MAX) : 0;
}

static uint64_t bounded_bytes(uint64_t bytes)
{
    return bytes < BYTES_MAX ? bytes : BYTES_MAX;
}

static void take_worker_report(struct live_entry *entry, struct live_worker *worker,
                               const struct worker_report *report)
{
    struct live_job *job = &entry->job;
    worker->compute_ms = bounded_ms(report->compute_ms);
    worker->transfer_ms = bounded_ms(report->transfer_ms);
    worker->wait_ms = bounded_ms(report->wait_ms);
    worker->first_step_ms = report->first_step_ms;
    worker->sent_bytes = bounded_bytes(report->sent_bytes);
    worker->received_bytes = bounded_bytes(report->received_bytes);
    worker->steps = report->steps;
    worker->samples = report->samples;
    worker->commits = report->commits;
    worker->steps_per_second = report->steps_per_second;
    if (report->loss > 0) { /* 0: no step since the last report */
        worker->has_loss = true;
        worker->loss = report->loss;
    }
    const int64_t first = report->first_step_ms;
    if (first && (!job->first_step_ms || first < job->first_step_ms))
        job->first_step_ms = first;
}

static void take_server_report(struct live_entry *entry, struct live_worker *worker,
                               const struct server_report *report, int64_t now_ms)
{
    struct live_job *job = &entry->job;
    worker->steps = report->steps;
    worker->samples = report->samples;
    worker->commits = report->version;
    worker->steps_per_second = 0;
    job->samples = report->samples;
    job->gamma_ms = report->gamma_ms;
    memcpy(job->policy_in_force, report->policy_in_force, sizeof(job->policy_in_force));
    memcpy(job->policy_reason, report->policy_reason, sizeof(job->policy_reason));
    job->checks = report->checks;
    job->checks_undecided = report->checks_undecided;
    job->elapsed_ms = report->elapsed_ms;
    job->has_loss = job->has_loss || report->loss_evaluations;
    if (report->loss_evaluations)
        job->loss = report->loss;
    job->has_accuracy = job->has_accuracy || report->accuracy_evaluations;
    if (report->accuracy_evaluations)
        job->test_accuracy = report->test_accuracy;
    /* Of the model that stays: over the whole test, not a sample of it. */
    if (report->is_final && report->accuracy_evaluations) {
        job->has_loss = true;
        job->loss = report->test_loss;
    }
    const struct server_report_worker *members = report->workers.items;
    struct live_worker *workers = job->workers.items;
    for (size_t i = 0; i < report->workers.count; i++) {
        for (size_t j = 0; j < job->workers.count; j++) {
            if (workers[j].lease != members[i].lease)
                continue;
            workers[j].share = members[i].share;
            workers[j].steps_per_second = members[i].steps_per_second;
            memcpy(workers[j].codec, members[i].codec, sizeof(workers[j].codec));
            workers[j].clipped = members[i].clipped;
            workers[j].refused = members[i].refused;
        }
    }
    const uint64_t evaluations = report->loss_evaluations + report->accuracy_evaluations;
    if (evaluations == entry->evaluations)
        return;
    entry->evaluations = evaluations;
    add_point(entry, &(struct live_point){.at_ms = now_ms,
                                          .elapsed_ms = job->elapsed_ms,
                                          .samples = job->samples,
                                          .has_loss = job->has_loss,
                                          .loss = job->loss,
                                          .has_accuracy = job->has_accuracy,
                                          .test_accuracy = job->test_accuracy});
}

int live_report(struct live *live, const struct live_source *source, struct text json,
                struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(4 << 20);
    struct worker_report worker_report = {0};
    struct server_report server_report = {0};
    const bool is_server = source->role == LEASE_ROLE_SERVER;
    if (json_read(arena, json, is_server ? &server_report_schema : &worker_report_schema,
                  is_server ? (void *)&server_report : (void *)&worker_report, error) < 0)
        return -1;
    struct live_entry *entry = entry_of(live, source);
    if (live->server->versions)
        versions_move(live->server->versions, TABLE_METRICS, source->job);
    struct live_worker *worker = worker_of(entry, source);
    if (!worker)
        return error_set(error, ERROR_EXHAUSTED, "more leases report than a job can have");
    worker->at_ms = clock_utc_ms(live->server->clock);
    if (is_server)
        take_server_report(entry, worker, &server_report, worker->at_ms);
    else
        take_worker_report(entry, worker, &worker_report);
    entry->is_changed = true;
    send_metric(live, source, entry, worker);
    return 0;
}

void live_use(struct live *live, const struct live_source *source, const struct live_use *use)
{
    struct live_entry *entry = entry_of(live, source);
    struct live_worker *worker = worker_of(entry, source);
    if (!worker)
        return;
    if (live->server->versions)
        versions_move(live->server->versions, TABLE_METRICS, source->job);
    /* Besides the lead parameter servers report nothing: that they run is all there is to show. */
    if (source->role == LEASE_ROLE_SERVER && source->rank > 0)
        worker->at_ms = clock_utc_ms(live->server->clock);
    worker->cpu_ms += use->cpu_ms;
    worker->gpu_ms += use->gpu_ms;
    if (use->memory_peak_bytes > worker->memory_peak_bytes)
        worker->memory_peak_bytes = use->memory_peak_bytes;
    entry->is_changed = true;
}

/* ---- Showing and saving ---------------------------------------------------------------------- */

void live_write(struct json_writer *writer, uint64_t job, const struct live_job *live_job,
                struct text (*machine_name)(void *context, uint64_t machine), void *context)
{
    static const struct live_job silent;
    const struct live_job *live = live_job ? live_job : &silent;
    const struct live_worker *workers = live->workers.items;
    const struct live_point *points = live->curve.items;
    json_object_begin(writer);
    json_field_u64(writer, "job", job);
    measured(writer, "loss", live->has_loss, live->loss);
    measured(writer, "test_accuracy", live->has_accuracy, live->test_accuracy);
    json_field_u64(writer, "samples", live->samples);
    json_field_i64(writer, "gamma_ms", live->gamma_ms);
    json_field_string(writer, "policy_in_force", live->policy_in_force);
    json_field_string(writer, "policy_reason", live->policy_reason);
    json_key(writer, "workers");
    json_array_begin(writer);
    for (size_t i = 0; i < live->workers.count; i++) {
        const struct live_worker *worker = &workers[i];
        if (worker->at_ms == 0)
            continue; /* metered, but it has nothing to report */
        json_object_begin(writer);
        json_field_u64(writer, "lease", worker->lease);
        json_field_string(writer, "role", lease_role_name((enum lease_role)worker->role));
        json_field_u64(writer, "rank", worker->rank);
        json_field_bool(writer, "replica", worker->is_replica);
        json_field_u64(writer, "machine", worker->machine);
        json_field_text(writer, "machine_name", machine_name(context, worker->machine));
        json_field_i64(writer, "at_ms", worker->at_ms);
        json_field_u64(writer, "steps", worker->steps);
        json_field_u64(writer, "samples", worker->samples);
        json_field_u64(writer, "commits", worker->commits);
        measured(writer, "loss", worker->has_loss, worker->loss);
        json_field_double(writer, "steps_per_second", worker->steps_per_second);
        json_field_double(writer, "share", worker->share);
        json_field_string(writer, "codec", worker->codec);
        write_times(writer, worker);
        json_object_end(writer);
    }
    json_array_end(writer);
    json_key(writer, "curve");
    json_array_begin(writer);
    for (size_t i = 0; i < live->curve.count; i++) {
        json_object_begin(writer);
        json_field_i64(writer, "at_ms", points[i].at_ms);
        json_field_i64(writer, "elapsed_ms", points[i].elapsed_ms);
        json_field_u64(writer, "samples", points[i].samples);
        measured(writer, "loss", points[i].has_loss, points[i].loss);
        measured(writer, "test_accuracy", points[i].has_accuracy, points[i].test_accuracy);
        json_object_end(writer);
    }
    json_array_end(writer);
    json_object_end(writer);
}

void live_save(struct live *live)
{
    for (size_t i = live->jobs.count; i-- > 0;) {
        struct live_entry *entry = live->jobs.entries[i].value;
        if (entry->is_changed) {
            live_entry_save(live, entry);
        } else if (entry->is_final) {
            /* It was saved a round ago, so the table has it. */
            map_remove(&live->jobs, entry->job.job);
            live_entry_free(entry);
        }
    }
}

void live_forget_ended(struct live *live, uint64_t account)
{
    for (size_t i = live->jobs.count; i-- > 0;) {
        struct live_entry *entry = live->jobs.entries[i].value;
        if (!entry->is_final || entry->job.account != account)
            continue;
        if (entry->is_changed)
            live_entry_save(live, entry);
        map_remove(&live->jobs, entry->job.job);
        live_entry_free(entry);
    }
}

void live_lease_ended(struct live *live, uint64_t job)
{
    struct live_entry *entry = map_get(&live->jobs, job);
    if (!entry)
        return;
    entry->profiled_ms = 0;
    entry->is_changed = true;
}

void live_finish(struct live *live, uint64_t job)
{
    struct live_entry *entry = map_get(&live->jobs, job);
    if (!entry)
        return;
    entry->is_final = true;
    live_entry_save(live, entry);
}
