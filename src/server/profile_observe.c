#include "server/profile_observe.h"

#include "server/market_kinds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void profile_signature(const struct profile *profile, struct signature *out_signature)
{
    struct signature signature = {
        .parameter_count = profile->parameter_count,
        .batch = (uint32_t)profile->batch,
        .local_steps = (uint32_t)profile->local_steps,
        .rate = profile->rate,
        .momentum = profile->momentum,
    };
    _Static_assert(sizeof(signature.model) == sizeof(profile->model), "names are as long");
    memcpy(signature.model, profile->model, sizeof(signature.model));
    memcpy(signature.data, profile->data, sizeof(signature.data));
    memcpy(signature.layers, profile->layers, sizeof(signature.layers));
    snprintf(signature.policy, sizeof(signature.policy), "%s",
             profile->policy_in_force[0] ? profile->policy_in_force : profile->policy);
    *out_signature = signature;
}

static struct observed_kind *find_kind(struct observation *observation, const char *name)
{
    for (uint32_t i = 0; i < observation->kind_count; i++)
        if (strcmp(observation->kinds[i].name, name) == 0)
            return &observation->kinds[i];
    if (observation->kind_count == OBSERVATION_KINDS_MAX)
        return NULL;
    struct observed_kind *kind = &observation->kinds[observation->kind_count++];
    snprintf(kind->name, sizeof(kind->name), "%s", name);
    return kind;
}

/* Sums over the kind's workers, to be divided at the end. */
struct kind_sums {
    double compute_ms, transfer_ms, wait_ms, commits, rtt_us, bandwidth_kbit;
};

static void add_worker(struct observed_kind *kind, struct kind_sums *sums,
                       const struct profile_worker *worker)
{
    kind->speed_weight = (uint32_t)worker->speed_weight_milli;
    kind->cores_milli = (uint32_t)worker->cores_milli;
    kind->gpu_count = (uint32_t)((worker->gpus_milli + 999) / 1000);
    kind->worker_count++;
    kind->steps += worker->steps;
    sums->compute_ms += worker->compute_ms;
    sums->transfer_ms += worker->transfer_ms;
    sums->wait_ms += worker->wait_ms;
    sums->commits += (double)worker->commits;
    sums->rtt_us += (double)worker->rtt_us;
    sums->bandwidth_kbit += (double)worker->bandwidth_kbit;
}

static void finish_kind(struct observed_kind *kind, const struct kind_sums *sums)
{
    const double all_ms = sums->compute_ms + sums->transfer_ms + sums->wait_ms;
    kind->step_s = kind->steps > 0 ? 1e-3 * sums->compute_ms / (double)kind->steps : 0;
    kind->commit_s = sums->commits > 0 ? 1e-3 * sums->transfer_ms / sums->commits : 0;
    kind->rtt_s = 1e-6 * sums->rtt_us / kind->worker_count;
    kind->bytes_per_s = 125 * sums->bandwidth_kbit / kind->worker_count;
    kind->wait_share = all_ms > 0 ? sums->wait_ms / all_ms : 0;
}

static bool is_lost(const struct profile_worker *worker)
{
    return worker->outcome == LEASE_OUTCOME_LOST || worker->outcome == LEASE_OUTCOME_RECLAIMED;
}

static void observe_workers(const struct profile *profile, struct observation *observation)
{
    const struct profile_worker *workers = profile->workers.items;
    struct kind_sums sums[OBSERVATION_KINDS_MAX] = {0};
    double sent = 0, received = 0, pushes = 0;
    for (size_t i = 0; i < profile->workers.count; i++) {
        const struct profile_worker *worker = &workers[i];
        char name[OBSERVATION_NAME_SIZE];
        if (worker->role == LEASE_ROLE_SERVER && worker->rank == 0)
            observation->server_bytes_per_s = 125.0 * (double)worker->bandwidth_kbit;
        if (worker->role != LEASE_ROLE_WORKER || worker->steps == 0)
            continue;
        kind_name(&(struct kind_figures){worker->cores_milli, worker->speed_weight_milli,
                                         worker->gpus_milli, text_of(worker->gpu_model)},
                  name);
        struct observed_kind *kind = find_kind(observation, name);
        if (kind)
            add_worker(kind, &sums[kind - observation->kinds], worker);
        observation->losses += is_lost(worker);
        sent += (double)worker->sent_bytes;
        received += (double)worker->received_bytes;
        pushes += (double)worker->commits;
    }
    for (uint32_t i = 0; i < observation->kind_count; i++)
        finish_kind(&observation->kinds[i], &sums[i]);
    observation->pushes = (uint64_t)pushes;
    observation->bytes_up = pushes > 0 ? sent / pushes : 0;
    observation->bytes_down = pushes > 0 ? received / pushes : 0;
}

/* The most that ran at one instant: when one of them started. */
static uint32_t most_workers(const struct profile *profile)
{
    const struct profile_worker *workers = profile->workers.items;
    uint32_t most = 0;
    for (size_t i = 0; i < profile->workers.count; i++) {
        const int64_t at_ms = workers[i].started_ms;
        uint32_t count = 0;
        for (size_t k = 0; k < profile->workers.count && at_ms > 0; k++)
            count += workers[k].role == LEASE_ROLE_WORKER && workers[k].started_ms > 0 &&
                     workers[k].started_ms <= at_ms &&
                     (workers[k].ended_ms == 0 || workers[k].ended_ms > at_ms);
        most = count > most ? count : most;
    }
    return most;
}

static enum observation_end end_of(const struct profile *profile)
{
    const bool has_accuracy = profile->target_accuracy > 0 && profile->has_accuracy &&
                              profile->test_accuracy >= profile->target_accuracy;
    const bool has_loss =
        profile->target_loss > 0 && profile->has_loss && profile->loss <= profile->target_loss;
    if (profile->state != JOB_STATE_SUCCEEDED)
        return OBSERVATION_CUT;
    if (has_accuracy || has_loss)
        return OBSERVATION_TARGET;
    return profile->records > 0 && profile->samples >= profile->epochs * profile->records
               ? OBSERVATION_EPOCHS
               : OBSERVATION_CUT;
}

/* What is paid for beside training: until all have begun, and until the result is kept. Clocks of
 * machines are apart by more than that at times, so only the market's own is read. */
static double start_of(const struct profile *profile)
{
    const int64_t rest_ms = profile->ended_ms - profile->started_ms - profile->elapsed_ms;
    const bool is_known = profile->state == JOB_STATE_SUCCEEDED && profile->started_ms > 0 &&
                          profile->elapsed_ms > 0 && rest_ms > 0;
    return is_known ? 1e-3 * (double)rest_ms : 0;
}

void profile_observe(const struct profile *profile, struct observation *out_observation)
{
    struct observation *out = out_observation;
    const struct profile_point *points = profile->points.items;
    _Static_assert((int)PROFILE_POINTS_MAX <= (int)OBSERVATION_POINTS_MAX, "all points fit");
    *out = (struct observation){
        .end = end_of(profile),
        .target_loss = profile->target_loss,
        .worker_count = most_workers(profile),
        .samples = profile->samples,
        .start_s = start_of(profile),
        .seconds = 1e-3 * (double)profile->elapsed_ms,
    };
    profile_signature(profile, &out->signature);
    observe_workers(profile, out);
    for (size_t i = 0; i < profile->points.count; i++)
        if (points[i].loss > 0)
            out->points[out->point_count++] = (struct observed_point){
                1e-3 * (double)points[i].elapsed_ms, points[i].samples, points[i].loss};
}

void profile_asks(const struct profile *asked, const struct profile *const *runs, size_t run_count,
                  struct recommend_job *out_job, bool *out_is_target_known)
{
    struct recommend_job job = {.samples = (double)asked->epochs * (double)asked->records,
                                .target_loss = asked->target_loss};
    *out_is_target_known = !(asked->target_accuracy > 0) || job.target_loss > 0;
    profile_signature(asked, &job.signature);
    for (size_t i = 0; i < run_count && !*out_is_target_known; i++) {
        if (strcmp(runs[i]->signature.task, asked->signature.task) != 0 || !runs[i]->has_accuracy ||
            !runs[i]->has_loss || runs[i]->test_accuracy < asked->target_accuracy)
            continue;
        job.target_loss = runs[i]->loss;
        *out_is_target_known = true;
    }
    if (job.target_loss > 0)
        job.samples = 0;
    *out_job = job;
}
