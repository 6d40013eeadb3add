#include "server/profile.h"

#include "base/log.h"
#include "runtime/job_model.h"
#include "server/handle_job.h"
#include "server/query.h"
#include "train/dataset_catalogue.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- As it is kept --------------------------------------------------------------------------- */

#define WORKER(member)  offsetof(struct profile_worker, member)
#define PROFILE(member) offsetof(struct profile, member)

static const struct json_field worker_fields[] = {
    {"lease", JSON_U64, WORKER(lease), .is_required = true},
    {"role", JSON_I64, WORKER(role)},
    {"rank", JSON_U64, WORKER(rank)},
    {"replica", JSON_BOOL, WORKER(is_replica), .is_zero_omitted = true},
    {"machine", JSON_U64, WORKER(machine)},
    {"cpu_model", JSON_CHARS, WORKER(cpu_model), .size_max = MACHINE_CPU_MODEL_SIZE},
    {"gpu_model", JSON_CHARS, WORKER(gpu_model), .size_max = MACHINE_GPU_MODEL_SIZE},
    {"cores_milli", JSON_I64, WORKER(cores_milli)},
    {"gpus_milli", JSON_I64, WORKER(gpus_milli), .is_zero_omitted = true},
    {"speed_weight_milli", JSON_I64, WORKER(speed_weight_milli)},
    {"bandwidth_kbit", JSON_I64, WORKER(bandwidth_kbit), .is_zero_omitted = true},
    {"rtt_us", JSON_I64, WORKER(rtt_us), .is_zero_omitted = true},
    {"started_ms", JSON_I64, WORKER(started_ms)},
    {"ended_ms", JSON_I64, WORKER(ended_ms), .is_zero_omitted = true},
    {"outcome", JSON_I64, WORKER(outcome), .is_zero_omitted = true},
    {"billed_ms", JSON_I64, WORKER(billed_ms)},
    {"posted_micro", JSON_I64, WORKER(posted_micro)},
    {"steps", JSON_U64, WORKER(steps), .is_zero_omitted = true},
    {"samples", JSON_U64, WORKER(samples), .is_zero_omitted = true},
    {"commits", JSON_U64, WORKER(commits), .is_zero_omitted = true},
    {"has_loss", JSON_BOOL, WORKER(has_loss), .is_zero_omitted = true},
    {"loss", JSON_DOUBLE, WORKER(loss), .is_zero_omitted = true},
    {"compute_ms", JSON_DOUBLE, WORKER(compute_ms), .is_zero_omitted = true},
    {"transfer_ms", JSON_DOUBLE, WORKER(transfer_ms), .is_zero_omitted = true},
    {"wait_ms", JSON_DOUBLE, WORKER(wait_ms), .is_zero_omitted = true},
    {"sent_bytes", JSON_U64, WORKER(sent_bytes), .is_zero_omitted = true},
    {"received_bytes", JSON_U64, WORKER(received_bytes), .is_zero_omitted = true},
    {"cpu_ms", JSON_I64, WORKER(cpu_ms)},
    {"gpu_ms", JSON_I64, WORKER(gpu_ms), .is_zero_omitted = true},
    {"memory_peak_bytes", JSON_I64, WORKER(memory_peak_bytes)},
    {"codec", JSON_CHARS, WORKER(codec), .size_max = REPORT_CODEC_SIZE},
};
static const struct json_schema worker_schema =
    JSON_SCHEMA_LENIENT("worker", worker_fields, struct profile_worker);

static const struct json_field point_fields[] = {
    {"elapsed_ms", JSON_I64, offsetof(struct profile_point, elapsed_ms)},
    {"samples", JSON_U64, offsetof(struct profile_point, samples)},
    {"loss", JSON_DOUBLE, offsetof(struct profile_point, loss)},
};
static const struct json_schema point_schema =
    JSON_SCHEMA_LENIENT("point", point_fields, struct profile_point);

static const struct json_field profile_fields[] = {
    {"job", JSON_U64, PROFILE(job), .is_required = true},
    {"account", JSON_U64, PROFILE(account), .is_required = true},
    {"signature", JSON_CHARS, PROFILE(signature.whole), .size_max = JOB_SIGNATURE_SIZE},
    {"task", JSON_CHARS, PROFILE(signature.task), .size_max = JOB_SIGNATURE_SIZE},
    {"runtime", JSON_CHARS, PROFILE(runtime), .size_max = PROFILE_NAME_SIZE},
    {"model", JSON_CHARS, PROFILE(model), .size_max = PROFILE_NAME_SIZE},
    {"data", JSON_CHARS, PROFILE(data), .size_max = PROFILE_NAME_SIZE},
    {"layers", JSON_CHARS, PROFILE(layers), .size_max = PROFILE_NAME_SIZE},
    {"policy", JSON_CHARS, PROFILE(policy), .size_max = REPORT_POLICY_SIZE},
    {"policy_in_force", JSON_CHARS, PROFILE(policy_in_force), .size_max = REPORT_POLICY_SIZE},
    {"parameter_count", JSON_U64, PROFILE(parameter_count)},
    {"batch", JSON_U64, PROFILE(batch)},
    {"local_steps", JSON_U64, PROFILE(local_steps)},
    {"epochs", JSON_U64, PROFILE(epochs)},
    {"records", JSON_U64, PROFILE(records)},
    {"rate", JSON_DOUBLE, PROFILE(rate)},
    {"momentum", JSON_DOUBLE, PROFILE(momentum)},
    {"target_loss", JSON_DOUBLE, PROFILE(target_loss)},
    {"target_accuracy", JSON_DOUBLE, PROFILE(target_accuracy)},
    {"state", JSON_I64, PROFILE(state)},
    {"submitted_ms", JSON_I64, PROFILE(submitted_ms)},
    {"started_ms", JSON_I64, PROFILE(started_ms)},
    {"first_step_ms", JSON_I64, PROFILE(first_step_ms)},
    {"ended_ms", JSON_I64, PROFILE(ended_ms)},
    {"updated_ms", JSON_I64, PROFILE(updated_ms)},
    {"elapsed_ms", JSON_I64, PROFILE(elapsed_ms)},
    {"samples", JSON_U64, PROFILE(samples)},
    {"has_loss", JSON_BOOL, PROFILE(has_loss)},
    {"loss", JSON_DOUBLE, PROFILE(loss)},
    {"has_accuracy", JSON_BOOL, PROFILE(has_accuracy)},
    {"test_accuracy", JSON_DOUBLE, PROFILE(test_accuracy)},
    {"spent_micro", JSON_I64, PROFILE(spent_micro)},
    {"lease_count", JSON_U64, PROFILE(lease_count)},
    {"workers", JSON_ARRAY, PROFILE(workers), .size_max = PROFILE_WORKERS_MAX,
     .schema = &worker_schema},
    {"points", JSON_ARRAY, PROFILE(points), .size_max = PROFILE_POINTS_MAX,
     .schema = &point_schema},
};
/* Lenient: one of a market of another release is read as far as it is understood. */
const struct json_schema profile_schema =
    JSON_SCHEMA_LENIENT("profile", profile_fields, struct profile);

/* ---- Making ---------------------------------------------------------------------------------- */

/* Cut at its end when it is too long. */
static void copy(char *out, size_t size, struct text text)
{
    const size_t kept = text.size < size ? text.size : size - 1;
    if (kept > 0)
        memcpy(out, text.data, kept);
    out[kept] = '\0';
}

/* "conv max_pool dense", each once in a row. */
static void name_layers(const struct model_spec *model, char out[PROFILE_NAME_SIZE])
{
    struct buffer words AUTO_BUFFER;
    const char *last = "";
    buffer_init(&words, PROFILE_NAME_SIZE - 1);
    for (int64_t i = 0; i < model->layer_count; i++) {
        const char *name = layer_type_name(model->layers[i].type);
        if (strcmp(name, last) != 0)
            buffer_append_format(&words, "%s%s", i > 0 ? " " : "", name);
        last = name;
    }
    copy(out, PROFILE_NAME_SIZE, buffer_text(&words));
}

static void describe_network(const struct job_train *train, struct profile *profile)
{
    struct dataset_shape shape = {0};
    struct model_spec *model = calloc(1, sizeof(*model));
    struct parameter_table *table = calloc(1, sizeof(*table));
    struct error ignored; /* nothing is known of it, then */
    int layer;
    if (model && table && job_train_shape(train, &shape) &&
        job_train_model(train, &shape, model, &layer, &ignored) == 0 &&
        model_spec_layout(model, table, &ignored) == 0) {
        profile->parameter_count = table->float_count;
        name_layers(model, profile->layers);
    }
    free(model);
    free(table);
}

static uint64_t count_records(const struct job_spec *spec)
{
    const struct dataset_entry *entry = NULL;
    struct error ignored; /* a file of the borrower's */
    for (size_t i = 0; i < spec->input_count; i++)
        if (spec->inputs[i].split == JOB_SPLIT_TRAIN)
            return spec->inputs[i].records;
    return dataset_entry_find(spec->train.data, &entry, &ignored) == 0 ? entry->train_records : 0;
}

void profile_of_spec(const struct job_spec *spec, struct profile *out_profile)
{
    const struct job_train *train = &spec->train;
    struct profile *profile = out_profile;
    const bool is_own =
        job_spec_is_command(spec) || text_equal(train->model, TEXT("layers")) || !train->model.size;
    *profile = (struct profile){.local_steps = spec->sync.local_steps};
    job_signature(spec, &profile->signature);
    copy(profile->runtime, PROFILE_NAME_SIZE, spec->runtime);
    copy(profile->model, PROFILE_NAME_SIZE,
         is_own ? text_of(profile->signature.task) : train->model);
    if (job_spec_is_command(spec))
        return;
    /* What is cut would be taken for another's with the same beginning. */
    copy(profile->data, PROFILE_NAME_SIZE,
         train->data.size < PROFILE_NAME_SIZE ? train->data : text_of(profile->signature.task));
    copy(profile->policy, REPORT_POLICY_SIZE, spec->sync.policy);
    profile->batch = train->batch;
    profile->epochs = train->epochs;
    profile->records = count_records(spec);
    profile->rate = train->optimizer.lr;
    profile->momentum = train->optimizer.momentum;
    profile->target_loss = train->target.loss;
    profile->target_accuracy = train->target.accuracy;
    describe_network(train, profile);
}

static void take_live(const struct live_worker *live, struct profile_worker *worker)
{
    worker->steps = live->steps;
    worker->samples = live->samples;
    worker->commits = live->commits;
    worker->has_loss = live->has_loss;
    worker->loss = live->loss;
    worker->compute_ms = live->compute_ms;
    worker->transfer_ms = live->transfer_ms;
    worker->wait_ms = live->wait_ms;
    worker->sent_bytes = live->sent_bytes;
    worker->received_bytes = live->received_bytes;
    worker->cpu_ms = live->cpu_ms;
    worker->gpu_ms = live->gpu_ms;
    worker->memory_peak_bytes = live->memory_peak_bytes;
    memcpy(worker->codec, live->codec, sizeof(worker->codec));
}

static struct profile_worker worker_of_rows(const struct store_value *lease,
                                            const struct store_value *machine, int64_t gpus_milli)
{
    struct profile_worker worker = {
        .lease = (uint64_t)lease[LEASES_ID].integer,
        .role = lease[LEASES_ROLE].integer,
        .rank = (uint64_t)lease[LEASES_RANK].integer,
        .is_replica = lease[LEASES_IS_REPLICA].integer != 0,
        .machine = (uint64_t)lease[LEASES_MACHINE].integer,
        .cores_milli = lease[LEASES_CORES_MILLI].integer,
        .gpus_milli = lease[LEASES_ROLE].integer == LEASE_ROLE_WORKER ? gpus_milli : 0,
        .started_ms = lease[LEASES_STARTED_MS].integer,
        .ended_ms = lease[LEASES_ENDED_MS].integer,
        .outcome = lease[LEASES_OUTCOME].integer,
        .billed_ms = lease[LEASES_WALL_MS].integer,
        .posted_micro = lease[LEASES_POSTED_MICRO].integer,
    };
    if (!machine)
        return worker;
    /* By what it was offered at, or nobody knows the run's kinds of machines again. */
    worker.speed_weight_milli = machine_speed_counted_milli(
        machine[MACHINES_SPEED_WEIGHT_MILLI].integer, machine[MACHINES_IS_UNPROVEN].integer != 0);
    worker.bandwidth_kbit = machine[MACHINES_BANDWIDTH_KBIT].integer;
    worker.rtt_us = machine[MACHINES_RTT_US].integer;
    copy(worker.cpu_model, sizeof(worker.cpu_model), machine[MACHINES_CPU_MODEL].bytes);
    if (worker.gpus_milli > 0)
        copy(worker.gpu_model, sizeof(worker.gpu_model), machine[MACHINES_GPU_MODEL].bytes);
    return worker;
}

static int take_workers(struct server *server, struct arena *arena, const struct job_spec *spec,
                        const struct live_job *live, struct profile *profile, struct error *error)
{
    struct query_rows leases;
    if (handle_job_leases(server, arena, profile->job, &leases, error) < 0)
        return -1;
    const size_t count = leases.count < PROFILE_WORKERS_MAX ? leases.count : PROFILE_WORKERS_MAX;
    struct profile_worker *workers = arena_alloc(arena, (count + 1) * sizeof(*workers));
    for (size_t i = 0; i < count; i++) {
        const struct store_value *machine = NULL;
        if (query_one(server, arena, TABLE_MACHINES, "id", leases.items[i][LEASES_MACHINE],
                      &machine, error) < 0)
            return -1;
        workers[i] =
            worker_of_rows(leases.items[i], machine, spec->resources.accelerators.count_milli);
        const struct live_worker *shown = live ? live_find_worker(live, workers[i].lease) : NULL;
        if (shown)
            take_live(shown, &workers[i]);
    }
    profile->lease_count = leases.count;
    profile->workers = (struct json_array){workers, count};
    return 0;
}

/* Evenly thinned out; the last is kept. */
static void take_points(struct arena *arena, const struct live_job *live, struct profile *profile)
{
    const struct live_point *all = live->curve.items;
    struct profile_point *points = arena_alloc(arena, PROFILE_POINTS_MAX * sizeof(*points));
    size_t measured = 0, kept = 0, seen = 0;
    for (size_t i = 0; i < live->curve.count; i++)
        measured += all[i].has_loss;
    const size_t stride = (measured + PROFILE_POINTS_MAX - 1) / PROFILE_POINTS_MAX;
    for (size_t i = 0; i < live->curve.count; i++) {
        if (!all[i].has_loss)
            continue;
        seen++;
        if (seen == measured || (seen - 1) % stride == 0)
            points[kept < PROFILE_POINTS_MAX ? kept++ : kept - 1] =
                (struct profile_point){all[i].elapsed_ms, all[i].samples, all[i].loss};
    }
    profile->points = (struct json_array){points, kept};
}

static void take_job(const struct store_value *row, const struct live_job *live,
                     struct profile *profile)
{
    profile->job = (uint64_t)row[JOBS_ID].integer;
    profile->account = (uint64_t)row[JOBS_ACCOUNT].integer;
    profile->state = row[JOBS_STATE].integer;
    profile->submitted_ms = row[JOBS_SUBMITTED_MS].integer;
    profile->started_ms = row[JOBS_STARTED_MS].integer;
    profile->ended_ms = row[JOBS_ENDED_MS].integer;
    profile->spent_micro = row[JOBS_POSTED_MICRO].integer;
    if (!live)
        return;
    memcpy(profile->policy_in_force, live->policy_in_force, sizeof(profile->policy_in_force));
    profile->first_step_ms = live->first_step_ms;
    profile->elapsed_ms = live->elapsed_ms;
    profile->samples = live->samples;
    profile->has_loss = live->has_loss;
    profile->loss = live->loss;
    profile->has_accuracy = live->has_accuracy;
    profile->test_accuracy = live->test_accuracy;
}

int profile_make(struct server *server, struct arena *arena, uint64_t job,
                 const struct live_job *live, struct profile *out_profile, bool *out_is_there,
                 struct error *error)
{
    const struct store_value id = store_integer((int64_t)job);
    const struct store_value *row = NULL, *written = NULL;
    struct job_spec spec;
    struct error unreadable;
    *out_is_there = false;
    if (query_one(server, arena, TABLE_JOBS, "id", id, &row, error) < 0 ||
        query_one(server, arena, TABLE_JOB_SPECS, "job", id, &written, error) < 0)
        return -1;
    if (!row || !written)
        return 0;
    if (job_spec_read(arena, written[JOB_SPECS_SPEC].bytes, &spec, &unreadable) < 0) {
        log_event(LOG_DEBUG, "profile_not_made", "job=%" PRIu64 " error=\"%s\"", job,
                  unreadable.message);
        return 0;
    }
    profile_of_spec(&spec, out_profile);
    take_job(row, live, out_profile);
    out_profile->updated_ms = clock_utc_ms(server->clock);
    if (live)
        take_points(arena, live, out_profile);
    if (take_workers(server, arena, &spec, live, out_profile, error) < 0)
        return -1;
    *out_is_there = true;
    return 0;
}
