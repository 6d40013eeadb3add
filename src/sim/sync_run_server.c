/*
 * Sync run, the server: exchange/server.c in virtual time: tells the policy what happened and
 * carries out its actions.
 */
#include "base/assert.h"
#include "sim/sync_run_internal.h"

#include <math.h>
#include <stdlib.h>

/* Policies may take the time 0 for none, as real clocks never show it. */
static const int64_t clock_start_ns = 1000000000;

static int64_t policy_now_ns(const struct sync_state *state)
{
    return state->now_ns + clock_start_ns;
}

/* When something sent to the worker now is there. */
static int64_t arrival_ns(struct sync_state *state, uint32_t index, uint64_t bytes)
{
    struct sync_worker *worker = &state->workers[index];
    const int64_t at_ns =
        state->now_ns + (state->now_ns > 0 ? sync_way_ns(state, index, SYNC_WAY_DOWN, bytes) : 0);
    if (at_ns > worker->arrival_ns)
        worker->arrival_ns = at_ns;
    return worker->arrival_ns;
}

static void queue_grow(struct sync_worker *worker)
{
    const uint32_t capacity = worker->queue_capacity ? 2 * worker->queue_capacity : 4;
    struct worker_settings *queue = calloc(capacity, sizeof(*queue));
    ASSERT(queue);
    for (uint32_t i = 0; i < worker->queue_count; i++)
        queue[i] = worker->queue[(worker->queue_head + i) % worker->queue_capacity];
    free(worker->queue);
    worker->queue = queue;
    worker->queue_head = 0;
    worker->queue_capacity = capacity;
}

static void settings_send(struct sync_state *state, const struct sync_action *action)
{
    struct sync_worker *worker = &state->workers[action->worker];
    struct worker_settings *settings = &worker->sent_settings;
    if (action->kind == SYNC_SET_BATCH) {
        settings->batch = action->batch;
    } else {
        const bool by_steps = action->kind == SYNC_SET_STEPS;
        settings->local_steps = by_steps ? action->steps : 0;
        settings->period_ns = by_steps ? 0 : action->period_ns;
        settings->overlap = action->overlap;
        settings->is_plain = action->is_plain;
    }
    if (worker->connection != worker->generation)
        return; /* it has gone, which the server has yet to see */
    if (worker->queue_count == worker->queue_capacity)
        queue_grow(worker);
    worker->queue[(worker->queue_head + worker->queue_count++) % worker->queue_capacity] =
        *settings;
    sync_schedule(state, arrival_ns(state, action->worker, 0), SYNC_EVENT_SETTING, action->worker,
                  worker->connection);
}

static void model_send(struct sync_state *state, uint32_t index)
{
    struct sync_worker *worker = &state->workers[index];
    const uint64_t version = global_model_version(state->model);
    if (!state->snapshot || state->snapshot_version != version) {
        sync_vector_release(state->vectors, &state->snapshot);
        state->snapshot = sync_vector_copy(state->vectors, global_model_parameters(state->model));
        state->snapshot_version = version;
    }
    state->result->bytes += state->message_bytes;
    if (worker->connection != worker->generation)
        return;
    ASSERT(!worker->arriving);
    worker->arriving = sync_vector_hold(state->snapshot);
    sync_schedule(state, arrival_ns(state, index, state->message_bytes), SYNC_EVENT_ANSWER, index,
                  worker->connection);
}

static void answer(struct sync_state *state, uint32_t index)
{
    struct sync_worker *worker = &state->workers[index];
    if (!worker->is_waiting)
        return;
    worker->is_waiting = false;
    model_send(state, index);
    /* Real clocks never measure 0. The time it was held is not the link's. */
    const int64_t commit_ns = worker->up_ns + (worker->arrival_ns - state->now_ns);
    worker->commit_ns = commit_ns > 0 ? commit_ns : 1;
    worker->commit_sum_ns += worker->commit_ns;
    worker->commit_count++;
}

static void action_do(struct sync_state *state, const struct sync_action *action)
{
    const struct sync_vector *update = state->workers[action->worker].update;
    if (global_model_act(state->model, action, update ? update->values : NULL))
        return;
    switch (action->kind) {
    case SYNC_REPLY:
    case SYNC_RELEASE:
        answer(state, action->worker);
        return;
    case SYNC_HOLD:
        return;
    case SYNC_SET_STEPS:
    case SYNC_SET_PERIOD:
    case SYNC_SET_BATCH:
        settings_send(state, action);
        return;
    case SYNC_EVALUATE:
        sync_schedule(state, state->now_ns, SYNC_EVENT_LOSS, 0, 0);
        return;
    case SYNC_BARRIER:
        state->is_at_barrier = true;
        return;
    case SYNC_STOP:
        sync_end(state, SYNC_RUN_STOPPED);
        return;
    case SYNC_APPLY:
    case SYNC_GATHER:
    case SYNC_FOLD:
    case SYNC_KEEP:
    case SYNC_RETURN: /* done above */
    case SYNC_ACTION_KIND_COUNT:
        break;
    }
    ASSERT(action->kind < SYNC_ACTION_KIND_COUNT);
}

static void actions_do(struct sync_state *state)
{
    for (uint32_t i = 0; i < state->actions->count; i++)
        action_do(state, &state->actions->items[i]);
    state->actions->count = 0;
    if (state->is_at_barrier) {
        state->is_at_barrier = false;
        sync_policy_go_on(state->policy, policy_now_ns(state), state->actions);
        actions_do(state);
        return;
    }
    const int64_t wake_ns = sync_policy_wake_ns(state->policy);
    state->tick_generation++;
    if (wake_ns == INT64_MAX)
        return;
    /* A wish for the past is one for the next moment: time must go on. */
    const int64_t at_ns = wake_ns - clock_start_ns;
    sync_schedule(state, at_ns > state->now_ns ? at_ns : state->now_ns + 1, SYNC_EVENT_TICK, 0,
                  state->tick_generation);
}

void sync_server_join(struct sync_state *state, uint32_t index)
{
    struct sync_worker *worker = &state->workers[index];
    ASSERT(!worker->is_member);
    worker->is_member = true;
    worker->is_waiting = false;
    worker->connection = worker->generation;
    worker->sent_settings = (struct worker_settings){0};
    worker->arrival_ns = state->now_ns;
    state->result->joins++;
    sync_policy_join(state->policy, policy_now_ns(state), index, state->actions);
    actions_do(state);
    model_send(state, index);
}

void sync_server_leave(struct sync_state *state, uint32_t index)
{
    struct sync_worker *worker = &state->workers[index];
    ASSERT(worker->is_member);
    worker->is_member = worker->is_waiting = false;
    state->result->leaves++;
    robust_norms_forget(&state->norms, index);
    sync_policy_leave(state->policy, policy_now_ns(state), index, state->actions);
    actions_do(state);
}

/* As exchange/server_member.c does. */
static void push_bound(struct sync_state *state, uint32_t index)
{
    struct sync_worker *worker = &state->workers[index];
    const size_t count = state->vectors->count;
    float *values = worker->update->values;
    if (index < state->options->liar_count)
        for (size_t i = 0; i < count; i++)
            values[i] = (float)random_normal(&worker->random);
    if (state->options->robust.kind == ROBUST_NONE)
        return;
    const double factor = robust_norms_take(&state->norms, index, worker->push.steps,
                                            sqrt(robust_square_sum(values, count)),
                                            global_model_parameters(state->model), count);
    if (factor >= 1)
        return;
    for (size_t i = 0; i < count; i++)
        values[i] *= (float)factor;
    state->result->clipped++;
    state->result->honest_clipped += index >= state->options->liar_count;
}

void sync_server_push(struct sync_state *state, uint32_t index)
{
    struct sync_worker *worker = &state->workers[index];
    worker->is_waiting = true;
    push_bound(state, index);
    state->result->commits++;
    sync_policy_push(state->policy, policy_now_ns(state), &worker->push, state->actions);
    actions_do(state);
}

void sync_server_tick(struct sync_state *state, const struct sync_loss *loss)
{
    struct sync_loss told;
    if (loss)
        told = (struct sync_loss){loss->at_ns + clock_start_ns, loss->loss};
    sync_policy_tick(state->policy, policy_now_ns(state), loss ? &told : NULL, state->actions);
    actions_do(state);
}
