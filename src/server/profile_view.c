/* Profile, shown: what follows from its figures, and its JSON. */
#include "server/profile.h"

double profile_step_ms(const struct profile_worker *worker)
{
    return worker->steps > 0 ? worker->compute_ms / (double)worker->steps : 0;
}

double profile_worker_ms(const struct profile_worker *worker)
{
    return worker->compute_ms + worker->transfer_ms + worker->wait_ms;
}

static uint64_t sum(const struct profile *profile,
                    uint64_t (*figure)(const struct profile_worker *))
{
    const struct profile_worker *workers = profile->workers.items;
    uint64_t total = 0;
    for (size_t i = 0; i < profile->workers.count; i++)
        total += workers[i].role == LEASE_ROLE_WORKER ? figure(&workers[i]) : 0;
    return total;
}

static uint64_t commits_of(const struct profile_worker *worker)
{
    return worker->commits;
}

static uint64_t steps_of(const struct profile_worker *worker)
{
    return worker->steps;
}

static uint64_t one_of(const struct profile_worker *worker)
{
    return worker->started_ms > 0;
}

uint64_t profile_pushes(const struct profile *profile)
{
    return sum(profile, commits_of);
}

uint64_t profile_steps(const struct profile *profile)
{
    return sum(profile, steps_of);
}

uint64_t profile_worker_count(const struct profile *profile)
{
    return sum(profile, one_of);
}

static void measured(struct json_writer *writer, const char *key, bool is_known, double value)
{
    json_key(writer, key);
    if (is_known)
        json_double(writer, value);
    else
        json_null(writer);
}

/* Per second of the time that its parts add up to; null before the first step. */
static void rate(struct json_writer *writer, const char *key, const struct profile_worker *worker,
                 uint64_t amount)
{
    const double ms = profile_worker_ms(worker);
    measured(writer, key, ms > 0, ms > 0 ? 1000 * (double)amount / ms : 0);
}

static void write_worker(struct json_writer *writer, const struct profile_worker *worker,
                         struct text machine_name)
{
    const bool has_meter = worker->billed_ms > 0;
    json_object_begin(writer);
    json_field_u64(writer, "lease", worker->lease);
    json_field_string(writer, "role", lease_role_name((enum lease_role)worker->role));
    json_field_u64(writer, "rank", worker->rank);
    json_field_bool(writer, "replica", worker->is_replica);
    json_field_u64(writer, "machine", worker->machine);
    json_field_text(writer, "machine_name", machine_name);
    json_field_string(writer, "cpu_model", worker->cpu_model);
    json_field_string(writer, "gpu_model", worker->gpu_model);
    json_field_i64(writer, "cores_milli", worker->cores_milli);
    json_field_i64(writer, "gpus_milli", worker->gpus_milli);
    json_field_i64(writer, "speed_weight_milli", worker->speed_weight_milli);
    json_field_i64(writer, "bandwidth_kbit", worker->bandwidth_kbit);
    json_field_i64(writer, "rtt_us", worker->rtt_us);
    json_field_i64(writer, "started_ms", worker->started_ms);
    json_field_i64(writer, "ended_ms", worker->ended_ms);
    json_field_string(writer, "outcome", lease_outcome_name((enum lease_outcome)worker->outcome));
    json_field_i64(writer, "billed_ms", worker->billed_ms);
    json_field_i64(writer, "posted_microcredits", worker->posted_micro);
    json_field_u64(writer, "steps", worker->steps);
    json_field_u64(writer, "samples", worker->samples);
    json_field_u64(writer, "commits", worker->commits);
    measured(writer, "loss", worker->has_loss, worker->loss);
    measured(writer, "step_ms", worker->steps > 0 && worker->compute_ms > 0,
             profile_step_ms(worker));
    json_field_i64(writer, "compute_ms", (int64_t)worker->compute_ms);
    json_field_i64(writer, "transfer_ms", (int64_t)worker->transfer_ms);
    json_field_i64(writer, "wait_ms", (int64_t)worker->wait_ms);
    json_field_u64(writer, "sent_bytes", worker->sent_bytes);
    json_field_u64(writer, "received_bytes", worker->received_bytes);
    rate(writer, "sent_bytes_per_s", worker, worker->sent_bytes);
    rate(writer, "received_bytes_per_s", worker, worker->received_bytes);
    json_field_i64(writer, "cpu_ms", worker->cpu_ms);
    measured(writer, "cores_used", has_meter,
             has_meter ? (double)worker->cpu_ms / (double)worker->billed_ms : 0);
    json_field_i64(writer, "gpu_ms", worker->gpu_ms);
    measured(writer, "gpus_used", has_meter && worker->gpus_milli > 0,
             has_meter ? (double)worker->gpu_ms / (double)worker->billed_ms : 0);
    json_field_i64(writer, "memory_peak_bytes", worker->memory_peak_bytes);
    json_field_string(writer, "codec", worker->codec);
    json_object_end(writer);
}

/* How fast the loss fell from the first to the last point, by steps and by seconds. */
static void write_learning(struct json_writer *writer, const struct profile *profile)
{
    const struct profile_point *points = profile->points.items;
    const size_t count = profile->points.count;
    const double fallen = count > 1 ? points[0].loss - points[count - 1].loss : 0;
    const double seconds =
        count > 1 ? 1e-3 * (double)(points[count - 1].elapsed_ms - points[0].elapsed_ms) : 0;
    const double steps =
        count > 1 && profile->batch > 0
            ? (double)(points[count - 1].samples - points[0].samples) / (double)profile->batch
            : 0;
    measured(writer, "loss_per_step", steps > 0, steps > 0 ? -fallen / steps : 0);
    measured(writer, "loss_per_second", seconds > 0, seconds > 0 ? -fallen / seconds : 0);
    json_key(writer, "points");
    json_array_begin(writer);
    for (size_t i = 0; i < count; i++) {
        json_object_begin(writer);
        json_field_i64(writer, "elapsed_ms", points[i].elapsed_ms);
        json_field_u64(writer, "samples", points[i].samples);
        json_field_double(writer, "loss", points[i].loss);
        json_object_end(writer);
    }
    json_array_end(writer);
}

void profile_write(struct json_writer *writer, const struct profile *profile,
                   struct text (*machine_name)(void *context, uint64_t machine), void *context)
{
    const struct profile_worker *workers = profile->workers.items;
    json_field_u64(writer, "job", profile->job);
    json_field_string(writer, "signature", profile->signature.whole);
    json_field_string(writer, "task", profile->signature.task);
    json_field_string(writer, "runtime", profile->runtime);
    json_field_string(writer, "model", profile->model);
    json_field_string(writer, "data", profile->data);
    json_field_string(writer, "policy", profile->policy);
    json_field_string(writer, "policy_in_force", profile->policy_in_force);
    json_field_u64(writer, "parameter_count", profile->parameter_count);
    json_field_u64(writer, "batch", profile->batch);
    json_field_string(writer, "state", job_state_name((enum job_state)profile->state));
    json_field_i64(writer, "started_ms", profile->started_ms);
    json_field_i64(writer, "first_step_ms", profile->first_step_ms);
    json_field_i64(writer, "ended_ms", profile->ended_ms);
    json_field_i64(writer, "updated_ms", profile->updated_ms);
    json_field_i64(writer, "elapsed_ms", profile->elapsed_ms);
    json_field_u64(writer, "steps", profile_steps(profile));
    json_field_u64(writer, "samples", profile->samples);
    json_field_u64(writer, "pushes", profile_pushes(profile));
    measured(writer, "loss", profile->has_loss, profile->loss);
    measured(writer, "test_accuracy", profile->has_accuracy, profile->test_accuracy);
    json_field_i64(writer, "spent_microcredits", profile->spent_micro);
    json_field_u64(writer, "lease_count", profile->lease_count);
    json_key(writer, "workers");
    json_array_begin(writer);
    for (size_t i = 0; i < profile->workers.count; i++)
        write_worker(writer, &workers[i], machine_name(context, workers[i].machine));
    json_array_end(writer);
    write_learning(writer, profile);
}
