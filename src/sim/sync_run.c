#include "sim/sync_run.h"

#include "base/assert.h"
#include "sim/sync_run_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MEASURE_SHARE = 25 };          /* of the time passed lies between measurements */
static const double diverged_at = 10; /* times the first loss */

const char *sync_run_end_name(enum sync_run_end end)
{
    static const char *const names[SYNC_RUN_END_COUNT] = {
        [SYNC_RUN_TARGET] = "target",   [SYNC_RUN_SAMPLES] = "samples",   [SYNC_RUN_TIME] = "time",
        [SYNC_RUN_STOPPED] = "stopped", [SYNC_RUN_DIVERGED] = "diverged",
    };
    ASSERT(end < SYNC_RUN_END_COUNT);
    return names[end];
}

void sync_run_result_done(struct sync_run_result *result)
{
    free(result->points);
    free(result->machines);
    *result = (struct sync_run_result){0};
}

void sync_schedule(struct sync_state *state, int64_t at_ns, enum sync_event event, uint32_t worker,
                   uint64_t generation)
{
    ASSERT(at_ns >= state->now_ns);
    agenda_put(&state->agenda,
               &(struct agenda_item){
                   .at = at_ns, .kind = (int)event, .index = worker, .generation = generation});
}

void sync_end(struct sync_state *state, enum sync_run_end end)
{
    if (state->has_ended)
        return;
    state->has_ended = true;
    state->result->end = end;
}

int64_t sync_jitter(struct sync_state *state, struct sync_worker *worker, int64_t ns)
{
    const double deviation = state->options->jitter;
    if (deviation > 0)
        /* Log-normal of mean 1: slower now and then, as fast on the whole. */
        ns = llround((double)ns *
                     exp(deviation * random_normal(&worker->random) - deviation * deviation / 2));
    return ns > 0 ? ns : 1;
}

/* The server's link takes one message after the other, as they come. */
static int64_t link_ns(struct sync_state *state, enum sync_way way, int64_t begin_ns,
                       uint64_t bytes)
{
    const int64_t bytes_per_s = state->options->server_bytes_per_s;
    int64_t *free_ns = &state->link_free_ns[way];
    if (bytes_per_s == 0 || bytes == 0)
        return 0;
    const int64_t taken_ns = llround(1e9 * (double)bytes / (double)bytes_per_s);
    *free_ns = (*free_ns > begin_ns ? *free_ns : begin_ns) + taken_ns;
    return *free_ns - state->now_ns;
}

int64_t sync_way_ns(struct sync_state *state, uint32_t index, enum sync_way way, uint64_t bytes)
{
    const struct sync_machine *machine = &state->options->profile->machines[index];
    const double half_ns = (double)machine->commit_ns / 2;
    double ns = half_ns;
    if (machine->bytes_per_s > 0)
        ns += 1e9 * (double)bytes / (double)machine->bytes_per_s;
    const int64_t own_ns = ns > 0 ? sync_jitter(state, &state->workers[index], llround(ns)) : 0;
    const int64_t shared_ns = link_ns(state, way, state->now_ns + llround(half_ns), bytes);
    return own_ns > shared_ns ? own_ns : shared_ns;
}

/* --- the curve --- */

static void add_point(struct sync_state *state, double at_s, double loss, double samples)
{
    struct sync_run_result *result = state->result;
    const double target = state->options->target_loss;
    if (target > 0 && loss <= target && result->point_count > 0) {
        const struct sync_point *before = &result->points[result->point_count - 1];
        const double share = (before->loss - target) / (before->loss - loss);
        result->target_s = before->at_s + share * (at_s - before->at_s);
        sync_end(state, SYNC_RUN_TARGET);
    }
    if (result->point_count == result->point_capacity) {
        result->point_capacity = result->point_capacity ? 2 * result->point_capacity : 128;
        result->points = realloc(result->points, result->point_capacity * sizeof(*result->points));
        ASSERT(result->points);
    }
    result->points[result->point_count++] = (struct sync_point){at_s, loss, samples};
}

static int measure(struct sync_state *state, struct error *error)
{
    const struct sync_data *data = state->options->data;
    struct sync_measure measured;
    if (sync_engine_measure(state->engine, global_model_parameters(state->model), data->test,
                            &data->curve, &measured, error) < 0)
        return -1;
    state->result->loss = measured.loss;
    state->result->accuracy = measured.accuracy;
    if (state->measure_count == 0)
        state->first_loss = measured.loss;
    if (!isfinite(measured.loss) || measured.loss > diverged_at * state->first_loss) {
        sync_end(state, SYNC_RUN_DIVERGED);
        return 0;
    }
    const uint32_t at = state->measure_count++ % SYNC_CURVE_WINDOW;
    state->window[at] = measured.loss;
    state->window_ns[at] = state->now_ns;
    state->window_samples[at] = state->result->samples;
    if (state->measure_count == 1)
        add_point(state, 0, measured.loss, 0);
    if (state->measure_count >= SYNC_CURVE_WINDOW) {
        double loss = 0, at_ns = 0, samples = 0;
        for (uint32_t i = 0; i < SYNC_CURVE_WINDOW; i++) {
            loss += state->window[i] / SYNC_CURVE_WINDOW;
            at_ns += (double)state->window_ns[i] / SYNC_CURVE_WINDOW;
            samples += (double)state->window_samples[i] / SYNC_CURVE_WINDOW;
        }
        add_point(state, 1e-9 * at_ns, loss, samples);
    }
    const int64_t share_ns = state->now_ns / MEASURE_SHARE;
    const int64_t least_ns = state->options->measure_ns;
    sync_schedule(state, state->now_ns + (share_ns > least_ns ? share_ns : least_ns),
                  SYNC_EVENT_MEASURE, 0, 0);
    return 0;
}

static int answer_policy(struct sync_state *state, struct error *error)
{
    const struct sync_data *data = state->options->data;
    struct sync_measure measured;
    if (sync_engine_measure(state->engine, global_model_parameters(state->model), data->test,
                            &data->policy, &measured, error) < 0)
        return -1;
    sync_server_tick(state, &(struct sync_loss){state->now_ns, measured.loss});
    return 0;
}

/* --- time --- */

static int act(struct sync_state *state, const struct agenda_item *item, struct error *error)
{
    const uint32_t index = item->index;
    struct sync_worker *worker = &state->workers[index];
    const bool is_of_stay = worker->is_there && item->generation == worker->generation;
    const bool is_of_member = worker->is_member && item->generation == worker->connection;
    switch ((enum sync_event)item->kind) {
    case SYNC_EVENT_STEP:
        if (is_of_stay)
            sync_worker_step_done(state, index);
        return 0;
    case SYNC_EVENT_PUSH:
        if (is_of_member)
            sync_server_push(state, index);
        return 0;
    case SYNC_EVENT_ANSWER:
        if (is_of_stay)
            sync_worker_answered(state, index);
        return 0;
    case SYNC_EVENT_SETTING:
        if (is_of_stay)
            sync_worker_set(state, index);
        return 0;
    case SYNC_EVENT_CHANGE:
        sync_worker_change(state, index);
        return 0;
    case SYNC_EVENT_GONE:
        if (is_of_member)
            sync_server_leave(state, index);
        return 0;
    case SYNC_EVENT_JOIN:
        if (is_of_stay)
            sync_server_join(state, index);
        return 0;
    case SYNC_EVENT_TICK:
        if (item->generation == state->tick_generation)
            sync_server_tick(state, NULL);
        return 0;
    case SYNC_EVENT_LOSS:
        return answer_policy(state, error);
    case SYNC_EVENT_MEASURE:
        return measure(state, error);
    }
    UNREACHABLE("an event that nobody scheduled");
}

static int run(struct sync_state *state, struct error *error)
{
    const struct sync_presence *presence = state->options->presence;
    for (uint32_t i = 0; i < state->worker_count; i++) {
        struct sync_worker *worker = &state->workers[i];
        if (sync_presence_at_start(presence, i)) {
            sync_worker_change(state, i);
            continue;
        }
        const int64_t next_ns = sync_presence_change_ns(presence, i, worker->change_index++);
        if (next_ns < INT64_MAX)
            sync_schedule(state, next_ns, SYNC_EVENT_CHANGE, i, 0);
    }
    sync_schedule(state, 0, SYNC_EVENT_MEASURE, 0, 0);
    struct agenda_item item;
    while (!state->has_ended && agenda_take(&state->agenda, &item)) {
        if (item.at > state->options->time_max_ns) {
            state->now_ns = state->options->time_max_ns;
            sync_end(state, SYNC_RUN_TIME);
            break;
        }
        state->now_ns = item.at;
        if (act(state, &item, error) < 0)
            return -1;
    }
    return 0;
}

static struct sync_run_machine account_machine(const struct sync_worker *worker)
{
    const uint64_t commits = worker->commit_count;
    return (struct sync_run_machine){
        .steps = worker->step_count,
        .samples = worker->sample_count,
        .commits = commits,
        .there_s = 1e-9 * (double)worker->there_ns,
        .compute_s = 1e-9 * (double)worker->compute_ns,
        .commit_s = commits > 0 ? 1e-9 * (double)worker->commit_sum_ns / (double)commits : 0,
    };
}

static void account(struct sync_state *state)
{
    struct sync_run_result *result = state->result;
    result->machines = calloc(state->worker_count, sizeof(*result->machines));
    ASSERT(result->machines);
    double there_ns = 0, compute_ns = 0;
    for (uint32_t i = 0; i < state->worker_count; i++) {
        struct sync_worker *worker = &state->workers[i];
        if (worker->is_there)
            worker->there_ns += state->now_ns - worker->there_since_ns;
        if (worker->is_computing)
            worker->compute_ns += state->now_ns - worker->step_since_ns;
        there_ns += (double)worker->there_ns;
        compute_ns += (double)worker->compute_ns;
        result->machines[i] = account_machine(worker);
    }
    result->waiting_share = there_ns > 0 ? 1 - compute_ns / there_ns : 0;
    result->elapsed_s = 1e-9 * (double)state->now_ns;
    result->status = sync_policy_status(state->policy);
    uint64_t hash = 14695981039346656037U; /* FNV-1a */
    const unsigned char *bytes = (const unsigned char *)global_model_parameters(state->model);
    for (size_t i = 0; i < state->vectors->count * sizeof(float); i++)
        hash = (hash ^ bytes[i]) * 1099511628211U;
    result->fingerprint = hash;
}

static int state_open(struct sync_state *state, struct error *error)
{
    const struct sync_run_options *options = state->options;
    state->workers = calloc(state->worker_count, sizeof(*state->workers));
    state->actions = calloc(1, sizeof(*state->actions));
    ASSERT(state->workers && state->actions);
    if (sync_policy_new(options->policy, &options->settings, &state->policy, error) < 0)
        return -1;
    uint64_t pass = 0;
    for (uint32_t i = 0; i < options->data->shard_count; i++)
        pass += options->data->shards[i].count;
    sync_policy_set_pass(state->policy, pass);
    struct sync_vector *first = sync_engine_begin(state->engine, options->seed);
    const int result = global_model_open(first->values, /* momentum= */ NULL, state->vectors->count,
                                         &state->model, error);
    sync_vector_release(state->vectors, &first);
    if (result < 0)
        return -1;
    global_model_set_robust(state->model, &options->robust);
    robust_norms_init(&state->norms);
    for (uint32_t i = 0; i < state->worker_count; i++)
        if (sync_worker_open(state, i, error) < 0)
            return -1;
    return 0;
}

static void state_done(struct sync_state *state)
{
    for (uint32_t i = 0; state->workers && i < state->worker_count; i++)
        sync_worker_done(state, i);
    sync_vector_release(state->vectors, &state->snapshot);
    global_model_free(state->model);
    sync_policy_free(state->policy);
    agenda_done(&state->agenda);
    free(state->workers);
    free(state->actions);
    free(state->records);
}

int sync_run(struct sync_engine *engine, const struct sync_run_options *options,
             struct sync_run_result *out_result, struct error *error)
{
    if (options->data->shard_count != options->profile->machine_count)
        return error_set(error, ERROR_INVALID, "%" PRIu32 " shards for %" PRIu32 " machines",
                         options->data->shard_count, options->profile->machine_count);
    if (options->time_max_ns <= 0 || options->measure_ns <= 0)
        return error_set(error, ERROR_INVALID, "a run needs an end and times to measure at");
    const double compression = options->compression > 0 ? options->compression : 1;
    struct sync_run_result result = {.target_s = (double)NAN};
    struct sync_state state = {
        .options = options,
        .engine = engine,
        .vectors = sync_engine_vectors(engine),
        .worker_count = options->profile->machine_count,
        .message_bytes = (uint64_t)llround(
            compression * (double)(sync_engine_parameter_count(engine) * sizeof(float))),
        .result = &result,
    };
    const double push_share = options->push_share > 0 ? options->push_share : 1;
    state.push_bytes = (uint64_t)llround(push_share * (double)state.message_bytes);
    agenda_init(&state.agenda);
    int outcome = state_open(&state, error);
    if (outcome == 0)
        outcome = run(&state, error);
    if (outcome == 0)
        account(&state);
    state_done(&state);
    if (outcome < 0)
        sync_run_result_done(&result);
    else
        *out_result = result;
    return outcome;
}
