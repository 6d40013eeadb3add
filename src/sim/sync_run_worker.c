/*
 * Sync run, the workers: exchange/client.c in virtual time. A step takes its time and then is
 * computed, from the model it began with: answers are taken over between steps only.
 */
#include "base/assert.h"
#include "sim/sync_run_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int sync_worker_open(struct sync_state *state, uint32_t index, struct error *error)
{
    const struct sync_run_options *options = state->options;
    struct sync_worker *worker = &state->workers[index];
    const struct sync_range *shard = &options->data->shards[index];
    const uint64_t seed = options->seed ^ (index + UINT64_C(1)) * 0x9e3779b97f4a7c15;
    if (sampler_init(&worker->sampler, options->data->train, shard->first, shard->count, seed,
                     error) < 0)
        return -1;
    random_init(&worker->random, ~seed);
    if (options->sgd.momentum > 0) {
        worker->velocity = calloc(state->vectors->count, sizeof(float));
        ASSERT(worker->velocity);
    }
    return 0;
}

static void forget(struct sync_state *state, struct sync_worker *worker)
{
    sync_vector_release(state->vectors, &worker->local);
    sync_vector_release(state->vectors, &worker->base);
    sync_vector_release(state->vectors, &worker->answer);
    sync_vector_release(state->vectors, &worker->arriving);
}

void sync_worker_done(struct sync_state *state, uint32_t index)
{
    struct sync_worker *worker = &state->workers[index];
    forget(state, worker);
    sync_vector_release(state->vectors, &worker->update);
    sampler_done(&worker->sampler);
    free(worker->velocity);
    free(worker->queue);
}

/* When so much is computed that begins now, by who may use `cores` of each quota_ns. */
static int64_t quota_end_ns(struct sync_worker *worker, const struct sync_machine *machine,
                            int64_t now_ns, int64_t left_ns)
{
    const int64_t share_ns = llround(machine->cores * (double)machine->quota_ns);
    for (;;) {
        const int64_t index = now_ns / machine->quota_ns;
        if (index != worker->quota_index)
            worker->quota_used_ns = 0;
        worker->quota_index = index;
        const int64_t free_ns = share_ns - worker->quota_used_ns;
        if (left_ns <= free_ns) {
            worker->quota_used_ns += left_ns;
            return now_ns + left_ns;
        }
        worker->quota_used_ns = share_ns;
        left_ns -= free_ns;
        now_ns = (index + 1) * machine->quota_ns;
    }
}

static int64_t step_end_ns(struct sync_worker *worker, const struct sync_machine *machine,
                           int64_t now_ns, int64_t step_ns)
{
    if (!(machine->cores > 0))
        return now_ns + step_ns;
    return quota_end_ns(worker, machine, now_ns, llround(machine->cores * (double)step_ns));
}

static void step_begin(struct sync_state *state, uint32_t index)
{
    struct sync_worker *worker = &state->workers[index];
    const uint32_t usual = state->options->batch;
    const uint32_t batch = worker->settings.batch > 0 ? worker->settings.batch : usual;
    const double share = (double)batch / usual;
    const struct sync_machine *machine = &state->options->profile->machines[index];
    const int64_t even_ns = sync_jitter(state, worker, llround((double)machine->step_ns * share));
    const int64_t end_ns = step_end_ns(worker, machine, state->now_ns, even_ns);
    worker->step_batch = batch;
    worker->step_ns = end_ns - state->now_ns;
    worker->step_since_ns = state->now_ns;
    worker->is_computing = true;
    sync_schedule(state, end_ns, SYNC_EVENT_STEP, index, worker->generation);
}

static void push_begin(struct sync_state *state, uint32_t index)
{
    struct sync_worker *worker = &state->workers[index];
    const uint32_t steps = worker->steps_unsent;
    sync_vector_release(state->vectors, &worker->update);
    worker->update = sync_vector_subtract(state->vectors, worker->local, worker->base);
    sync_vector_release(state->vectors, &worker->base);
    worker->base = sync_vector_hold(worker->local);
    worker->push = (struct sync_push){
        .worker = index,
        .steps = steps,
        .samples = worker->samples_unsent,
        .compute_ns = worker->compute_unsent_ns,
        .commit_ns = worker->commit_ns,
        .loss = steps > 0 ? worker->loss_unsent / steps : 0,
    };
    worker->sent_ns = state->now_ns;
    worker->late_ns = 0;
    if (worker->settings.period_ns > 0 && worker->due_ns > 0 && worker->sent_ns > worker->due_ns)
        worker->late_ns = worker->sent_ns - worker->due_ns;
    if (worker->late_ns > worker->settings.period_ns)
        worker->late_ns = worker->settings.period_ns;
    worker->is_in_flight = true;
    worker->steps_unsent = 0;
    worker->samples_unsent = 0;
    worker->loss_unsent = 0;
    worker->compute_unsent_ns = 0;
    worker->up_ns = sync_way_ns(state, index, SYNC_WAY_UP, state->push_bytes);
    state->result->bytes += state->push_bytes;
    sync_schedule(state, state->now_ns + worker->up_ns, SYNC_EVENT_PUSH, index, worker->generation);
}

static bool is_due(struct sync_worker *worker, int64_t now_ns)
{
    if (worker->settings.local_steps > 0)
        return worker->steps_unsent >= worker->settings.local_steps;
    worker->due_ns = worker->answer_ns + worker->settings.period_ns - worker->late_ns;
    return worker->settings.period_ns > 0 && now_ns >= worker->due_ns;
}

/* L += W - A; A = W. Without a step since the push L is A, and becomes W as it is. */
static void take_answer(struct sync_state *state, struct sync_worker *worker)
{
    if (worker->local == worker->base) {
        sync_vector_release(state->vectors, &worker->local);
        worker->local = sync_vector_hold(worker->answer);
    } else {
        sync_vector_shift(state->vectors, &worker->local, worker->answer, worker->base);
    }
    sync_vector_release(state->vectors, &worker->base);
    worker->base = TAKE(worker->answer);
}

/* Between two steps: takes over an answer, pushes when it is time, waits or goes on. */
static void go_on(struct sync_state *state, uint32_t index)
{
    struct sync_worker *worker = &state->workers[index];
    if (!worker->is_joined || worker->is_computing || state->has_ended)
        return;
    if (worker->answer)
        take_answer(state, worker);
    if (!worker->is_in_flight && is_due(worker, state->now_ns))
        push_begin(state, index);
    if (!worker->is_in_flight || worker->steps_unsent < worker->settings.overlap)
        step_begin(state, index);
}

static void draw_records(struct sync_state *state, struct sync_worker *worker)
{
    const uint32_t count = worker->step_batch;
    if (count > state->record_capacity) {
        state->records = realloc(state->records, count * sizeof(*state->records));
        ASSERT(state->records);
        state->record_capacity = count;
    }
    sampler_next(&worker->sampler, state->records, count);
    for (uint32_t i = 0; i < count; i++)
        state->records[i] = state->options->data->records[state->records[i]];
}

void sync_worker_step_done(struct sync_state *state, uint32_t index)
{
    struct sync_worker *worker = &state->workers[index];
    double loss;
    draw_records(state, worker);
    const float *gradient =
        sync_engine_gradient(state->engine, worker->local, state->options->data->train,
                             state->records, worker->step_batch, &loss);
    if (!isfinite(loss)) {
        sync_end(state, SYNC_RUN_DIVERGED);
        return;
    }
    const struct sgd_rule *own = &state->options->sgd;
    const struct sgd_rule rule = worker->settings.is_plain ? sgd_rule_plain(own) : *own;
    sync_vector_step(state->vectors, &worker->local, &rule, worker->velocity, gradient);
    worker->is_computing = false;
    worker->compute_ns += worker->step_ns;
    worker->steps_unsent++;
    worker->samples_unsent += worker->step_batch;
    worker->loss_unsent += loss;
    worker->compute_unsent_ns += worker->step_ns;
    worker->step_count++;
    worker->sample_count += worker->step_batch;
    state->result->steps++;
    state->result->samples += worker->step_batch;
    if (state->options->sample_max > 0 && state->result->samples >= state->options->sample_max)
        sync_end(state, SYNC_RUN_SAMPLES);
    go_on(state, index);
}

void sync_worker_answered(struct sync_state *state, uint32_t index)
{
    struct sync_worker *worker = &state->workers[index];
    if (worker->is_joined) {
        worker->is_in_flight = false;
        worker->answer = TAKE(worker->arriving);
    } else {
        /* The first model of a stay: there is nothing to keep on top of it. */
        worker->is_joined = true;
        worker->late_ns = 0;
        worker->local = sync_vector_hold(worker->arriving);
        worker->base = TAKE(worker->arriving);
    }
    worker->answer_ns = state->now_ns;
    go_on(state, index);
}

void sync_worker_set(struct sync_state *state, uint32_t index)
{
    struct sync_worker *worker = &state->workers[index];
    ASSERT(worker->queue_count > 0);
    worker->settings = worker->queue[worker->queue_head];
    worker->queue_head = (worker->queue_head + 1) % worker->queue_capacity;
    worker->queue_count--;
    go_on(state, index); /* who waits may be allowed to go on */
}

static void come(struct sync_state *state, uint32_t index)
{
    struct sync_worker *worker = &state->workers[index];
    worker->is_there = true;
    worker->there_since_ns = state->now_ns;
    if (state->now_ns == 0) {
        sync_server_join(state, index);
    } else {
        const int64_t at_ns = state->now_ns + sync_way_ns(state, index, SYNC_WAY_UP, 0);
        sync_schedule(state, at_ns > worker->gone_ns ? at_ns : worker->gone_ns, SYNC_EVENT_JOIN,
                      index, worker->generation);
    }
}

/* What has not arrived when the server sees it gone is lost. */
static void go(struct sync_state *state, uint32_t index)
{
    struct sync_worker *worker = &state->workers[index];
    if (worker->is_computing)
        worker->compute_ns += state->now_ns - worker->step_since_ns;
    worker->there_ns += state->now_ns - worker->there_since_ns;
    worker->gone_ns = state->now_ns + state->options->profile->machines[index].commit_ns / 2;
    sync_schedule(state, worker->gone_ns, SYNC_EVENT_GONE, index, worker->generation);
    worker->generation++;
    worker->is_there = worker->is_joined = worker->is_computing = worker->is_in_flight = false;
    worker->steps_unsent = 0;
    worker->samples_unsent = 0;
    worker->loss_unsent = 0;
    worker->compute_unsent_ns = 0;
    worker->commit_ns = worker->due_ns = 0;
    worker->queue_head = worker->queue_count = 0;
    if (worker->velocity)
        memset(worker->velocity, 0, state->vectors->count * sizeof(float));
    forget(state, worker);
}

void sync_worker_change(struct sync_state *state, uint32_t index)
{
    struct sync_worker *worker = &state->workers[index];
    if (worker->is_there)
        go(state, index);
    else
        come(state, index);
    const int64_t next_ns =
        sync_presence_change_ns(state->options->presence, index, worker->change_index++);
    if (next_ns < INT64_MAX)
        sync_schedule(state, next_ns, SYNC_EVENT_CHANGE, index, 0);
}
