#include "sim/recommend_run.h"

#include "base/assert.h"
#include "base/random.h"
#include "sim/sync_run.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 64, MACHINES_MAX = 64, CHECK_MS = 60000 };
static const double time_most = 40; /* times what the work would take alone */
static const double start_deviation = 0.1, link_deviation = 0.05;
static const double replace_s = 30;
static const double samples_most = 250000; /* where only the target ends a run, per worker */

/* One run while it is made. */
struct making {
    const struct world *world;
    const struct world_family *family;
    const struct world_run *run;
    struct sync_machine machines[MACHINES_MAX];
    uint32_t kinds[MACHINES_MAX];
    uint32_t machine_count;
    struct random random;
    struct sync_data *data;
    struct sync_presence *presence;
    struct sync_engine *engine;
};

struct signature world_signature(const struct world *world, const struct world_run *run)
{
    struct signature signature = world->families[run->family].signature;
    signature.batch = run->batch;
    signature.rate = run->rate;
    memset(signature.policy, 0, sizeof(signature.policy));
    (void)snprintf(signature.policy, sizeof(signature.policy), "%s", run->policy);
    return signature;
}

static void place_machines(struct making *making)
{
    for (uint32_t kind = 0; kind < WORLD_KINDS; kind++)
        for (uint32_t n = 0; n < making->run->counts[kind]; n++) {
            const struct candidate *offer = &making->world->kinds[kind];
            const double step_s =
                world_step_s(making->world, making->family, kind, making->run->batch);
            const double link = exp(link_deviation * random_normal(&making->random));
            ASSERT(making->machine_count < MACHINES_MAX);
            making->kinds[making->machine_count] = kind;
            making->machines[making->machine_count++] = (struct sync_machine){
                .step_ns = llround(1e9 * step_s),
                .commit_ns = llround(1e9 * offer->rtt_s),
                .bytes_per_s = llround(link * offer->bytes_per_s),
            };
        }
    ASSERT(making->machine_count > 0);
}

/* When spot instances and lenders go, and functions end; another is there a while later. */
static void place_losses(struct making *making, double end_s)
{
    for (uint32_t i = 0; i < making->machine_count; i++) {
        const struct candidate *offer = &making->world->kinds[making->kinds[i]];
        double losses_per_s = offer->losses_per_hour / 3600;
        if (offer->lifetime_s > 0)
            losses_per_s += 1 / offer->lifetime_s;
        for (double at_s = 0; losses_per_s > 0;) {
            at_s -= log(1 - random_unit(&making->random)) / losses_per_s;
            if (at_s > end_s)
                break;
            sync_presence_add_change(making->presence, i, llround(1e9 * at_s));
            at_s += fmax(offer->start_s, replace_s);
            sync_presence_add_change(making->presence, i, llround(1e9 * at_s));
        }
    }
}

static double slowest_step_s(const struct making *making)
{
    int64_t most_ns = 0;
    for (uint32_t i = 0; i < making->machine_count; i++)
        if (making->machines[i].step_ns > most_ns)
            most_ns = making->machines[i].step_ns;
    return 1e-9 * (double)most_ns;
}

static int making_open(struct making *making, double end_s, struct error *error)
{
    const struct world_family *family = making->family;
    const struct sync_engine_options engine = {family->spec, making->run->batch};
    const struct sync_data_options data = {.train = family->train,
                                           .test = family->test,
                                           .shard_count = making->machine_count,
                                           .seed = making->run->seed};
    const struct sync_presence_options presence = {.machine_count = making->machine_count,
                                                   .end_ns = llround(1e9 * end_s)};
    if (sync_data_open(&data, &making->data, error) < 0 ||
        sync_presence_open(&presence, &making->presence, error) < 0 ||
        sync_engine_open(&engine, &making->engine, error) < 0)
        return -1;
    place_losses(making, end_s);
    return 0;
}

static void making_done(struct making *making)
{
    sync_engine_free(making->engine);
    sync_presence_free(making->presence);
    sync_data_free(making->data);
}

/* ---- What its profile tells ------------------------------------------------------------------ */

static void tell_kind(const struct making *making, const struct sync_run_result *result,
                      uint32_t kind, struct observation *seen)
{
    const struct candidate *offer = &making->world->kinds[kind];
    struct observed_kind *told = &seen->kinds[seen->kind_count];
    double compute_s = 0, there_s = 0, commit_s = 0, commits = 0;
    if (making->run->counts[kind] == 0 || seen->kind_count == OBSERVATION_KINDS_MAX)
        return;
    seen->kind_count++;
    *told = (struct observed_kind){
        .speed_weight = offer->speed_weight,
        .cores_milli = offer->cores_milli,
        .worker_count = making->run->counts[kind],
        .step_deviation = making->family->jitter,
        .rtt_s = offer->rtt_s,
        .bytes_per_s = offer->bytes_per_s,
    };
    (void)snprintf(told->name, sizeof(told->name), "%s", offer->name);
    for (uint32_t i = 0; i < making->machine_count; i++) {
        const struct sync_run_machine *machine = &result->machines[i];
        if (making->kinds[i] != kind)
            continue;
        told->steps += machine->steps;
        told->samples += machine->samples;
        compute_s += machine->compute_s;
        there_s += machine->there_s;
        commit_s += machine->commit_s * (double)machine->commits;
        commits += (double)machine->commits;
    }
    if (told->steps > 0)
        told->step_s = compute_s / (double)told->steps;
    if (commits > 0)
        told->commit_s = commit_s / commits;
    told->wait_share = there_s > 0 ? 1 - compute_s / there_s : 0;
}

static void tell_curve(const struct sync_run_result *result, struct observation *seen)
{
    const size_t every =
        (result->point_count + OBSERVATION_POINTS_MAX - 1) / OBSERVATION_POINTS_MAX;
    for (size_t i = 0; i < result->point_count && seen->point_count < OBSERVATION_POINTS_MAX;
         i += every)
        seen->points[seen->point_count++] =
            (struct observed_point){.at_s = result->points[i].at_s,
                                    .samples = (uint64_t)llround(result->points[i].samples),
                                    .loss = result->points[i].loss};
    if (every > 1 && seen->point_count > 0 && seen->point_count < OBSERVATION_POINTS_MAX) {
        const struct sync_point *last = &result->points[result->point_count - 1];
        seen->points[seen->point_count++] = (struct observed_point){
            .at_s = last->at_s, .samples = (uint64_t)llround(last->samples), .loss = last->loss};
    }
}

static void tell(struct making *making, const struct sync_run_result *result,
                 struct world_outcome *outcome)
{
    struct observation *seen = &outcome->observation;
    const struct world_run *run = making->run;
    double price = (double)run->server.price_micro_per_hour, start_s = 0;
    *seen = (struct observation){
        .signature = world_signature(making->world, run),
        .end = run->target_loss > 0 ? OBSERVATION_TARGET : OBSERVATION_EPOCHS,
        .target_loss = run->target_loss,
        .worker_count = making->machine_count,
        .server_bytes_per_s = run->server.bytes_per_s,
        .bytes_up = sizeof(float) * (double)making->family->signature.parameter_count,
        .bytes_down = sizeof(float) * (double)making->family->signature.parameter_count,
        .pushes = result->commits,
        .samples = result->samples,
        .seconds = result->elapsed_s,
        .losses = (uint32_t)result->leaves,
        .replace_s = replace_s,
    };
    for (uint32_t kind = 0; kind < WORLD_KINDS; kind++) {
        const struct candidate *offer = &making->world->kinds[kind];
        tell_kind(making, result, kind, seen);
        price += run->counts[kind] * (double)offer->price_micro_per_hour;
        if (run->counts[kind] > 0)
            start_s = fmax(start_s, offer->start_s);
    }
    tell_curve(result, seen);
    seen->start_s = start_s * exp(start_deviation * random_normal(&making->random));
    outcome->is_done = result->end == SYNC_RUN_TARGET || result->end == SYNC_RUN_SAMPLES;
    if (run->target_loss > 0)
        outcome->is_done = result->end == SYNC_RUN_TARGET;
    outcome->seconds =
        seen->start_s + (run->target_loss > 0 ? result->target_s : result->elapsed_s);
    outcome->cost_micro = price * outcome->seconds / 3600;
}

/* ---- The run --------------------------------------------------------------------------------- */

static int make(struct making *making, struct world_outcome *outcome, struct error *error)
{
    const struct world_run *run = making->run;
    const double workers = making->machine_count, step_s = slowest_step_s(making);
    const bool has_target = run->target_loss > 0;
    const double samples = has_target ? samples_most * workers : run->samples;
    const double alone_s = samples / run->batch * (step_s + 0.5);
    const double end_s = has_target ? alone_s : time_most * alone_s;
    if (making_open(making, end_s, error) < 0)
        return -1;
    const struct sync_profile profile = {.machine_count = making->machine_count,
                                         .machines = making->machines};
    const struct sync_run_options options = {
        .profile = &profile,
        .presence = making->presence,
        .data = making->data,
        .policy = text_of(run->policy),
        .settings = {.gamma_ms = CHECK_MS, .batch = run->batch, .target_loss = run->target_loss},
        .sgd = {.lr = (float)run->rate},
        .batch = run->batch,
        .seed = run->seed,
        .jitter = making->family->jitter,
        .compression = making->family->size,
        .target_loss = run->target_loss,
        .sample_max = (uint64_t)llround(samples),
        .server_bytes_per_s = llround(run->server.bytes_per_s),
        .measure_ns = llround(1e9 * (run->has_curve ? 4 * step_s : end_s)),
        .time_max_ns = llround(1e9 * end_s),
    };
    struct sync_run_result result;
    if (sync_run(making->engine, &options, &result, error) < 0)
        return -1;
    tell(making, &result, outcome);
    sync_run_result_done(&result);
    return 0;
}

int world_run(const struct world *world, const struct world_run *run,
              struct world_outcome *out_outcome, struct error *error)
{
    struct making making = {.world = world, .family = &world->families[run->family], .run = run};
    *out_outcome = (struct world_outcome){0};
    random_init(&making.random, ~run->seed);
    place_machines(&making);
    const int result = make(&making, out_outcome, error);
    making_done(&making);
    return result;
}

/* ---- Many ------------------------------------------------------------------------------------ */

struct many {
    const struct world *world;
    const struct world_run *runs;
    struct world_outcome *outcomes;
    size_t count;
    pthread_mutex_t mutex;
    size_t next; /* guarded by mutex, as the rest */
    bool has_failed;
    struct error error; /* the first */
};

static bool take_one(struct many *many, size_t *out_index)
{
    pthread_mutex_lock(&many->mutex);
    const bool is_left = !many->has_failed && many->next < many->count;
    if (is_left)
        *out_index = many->next++;
    pthread_mutex_unlock(&many->mutex);
    return is_left;
}

static void *work(void *context)
{
    struct many *many = context;
    for (size_t index; take_one(many, &index);) {
        struct error error;
        if (world_run(many->world, &many->runs[index], &many->outcomes[index], &error) == 0)
            continue;
        pthread_mutex_lock(&many->mutex);
        if (!many->has_failed)
            many->error = error;
        many->has_failed = true;
        pthread_mutex_unlock(&many->mutex);
    }
    return NULL;
}

int world_run_all(const struct world *world, const struct world_run *runs, size_t count,
                  uint32_t thread_count, struct world_outcome *outcomes, struct error *error)
{
    ASSERT(thread_count >= 1 && thread_count <= THREADS_MAX);
    struct many many = {.world = world, .runs = runs, .outcomes = outcomes, .count = count};
    pthread_t threads[THREADS_MAX];
    uint32_t started = 0;
    pthread_mutex_init(&many.mutex, NULL);
    for (; started + 1 < thread_count; started++)
        if (pthread_create(&threads[started], NULL, work, &many) != 0)
            break; /* fewer do as well */
    work(&many);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&many.mutex);
    if (many.has_failed)
        *error = many.error;
    return many.has_failed ? -1 : 0;
}
