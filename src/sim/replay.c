#include "base/assert.h"
#include "base/memory.h"
#include "sim/replay_internal.h"

#include <stdlib.h>

int replay_do(struct replay *replay, const struct command *command, struct error *error)
{
    replay->counts.commands++;
    return core_decide(replay->core, command, replay->now_ms, &replay->events, error);
}

void replay_schedule(struct replay *replay, int64_t at_ms, enum replay_kind kind, uint32_t job)
{
    agenda_put(&replay->agenda,
               &(struct agenda_item){.at = at_ms,
                                     .kind = (int)kind,
                                     .index = job,
                                     .generation =
                                         kind == REPLAY_HOUR ? 0 : replay->jobs[job].generation});
}

/* What the core said may lead to commands, and those to more. */
static int drain(struct replay *replay, struct error *error)
{
    while (replay->handled < replay->events.count) {
        const struct event event = replay->events.items[replay->handled++];
        if (replay_handle(replay, &event, error) < 0)
            return -1;
    }
    replay->counts.events += replay->events.count;
    event_list_clear(&replay->events);
    replay->handled = 0;
    return 0;
}

static int act(struct replay *replay, const struct agenda_item *item, struct error *error)
{
    if (item->kind == REPLAY_HOUR)
        return replay_pass_hour(replay, error);
    if (item->generation != replay->jobs[item->index].generation)
        return 0;
    switch ((enum replay_kind)item->kind) {
    case REPLAY_SUBMIT:
        return replay_submit(replay, item->index, error);
    case REPLAY_FINISH:
        return replay_finish(replay, item->index, error);
    case REPLAY_GIVE_UP:
        return replay_give_up(replay, item->index, error);
    case REPLAY_HOUR:
        break;
    }
    UNREACHABLE("a kind that is not handled");
}

/* The core's own instants come before ours of the same millisecond: a slot closes, then owners
 * and members act in the new one. */
static int pass_time(struct replay *replay, struct error *error)
{
    const int64_t end_ms = REPLAY_START + replay->workload->hour_count * HOUR_MS;
    int64_t wakes_at_once = 0;
    for (;;) {
        const int64_t wake_ms = core_next_wake_ms(replay->core);
        const int64_t next_ms = agenda_next(&replay->agenda);
        if ((wake_ms < next_ms ? wake_ms : next_ms) >= end_ms)
            return 0;
        if (wake_ms <= next_ms) {
            wakes_at_once = wake_ms <= replay->now_ms ? wakes_at_once + 1 : 0;
            if (wakes_at_once > 1000)
                return error_set(error, ERROR_CORRUPT, "the core keeps waking at one instant");
            if (wake_ms > replay->now_ms)
                replay->now_ms = wake_ms;
            if (replay_do(replay, &(struct command){.kind = COMMAND_TIME_PASSED}, error) < 0)
                return -1;
        } else {
            struct agenda_item item;
            const bool is_there = agenda_take(&replay->agenda, &item);
            ASSERT(is_there);
            replay->now_ms = item.at;
            if (act(replay, &item, error) < 0)
                return -1;
        }
        if (drain(replay, error) < 0)
            return -1;
    }
}

int replay_run(const struct workload *workload, const struct replay_options *options,
               struct outcome *out_outcome, struct replay_counts *out_counts, struct error *error)
{
    outcome_init(out_outcome, workload);
    struct replay replay = {.workload = workload,
                            .options = *options,
                            .outcome = out_outcome,
                            .core = core_new(),
                            .now_ms = REPLAY_START};
    event_list_init(&replay.events);
    agenda_init(&replay.agenda);
    map_init(&replay.job_index);
    map_init(&replay.lender_index);
    replay.jobs = memory_zeroed(workload->job_count, sizeof(*replay.jobs));
    replay.accounts = memory_zeroed(workload->member_count, sizeof(*replay.accounts));
    replay.machines = memory_zeroed(workload->lender_count, sizeof(*replay.machines));
    replay.washes = memory_zeroed(workload->lender_count, sizeof(*replay.washes));
    int result = replay_open(&replay, error);
    for (size_t i = 0; i < workload->job_count && result == 0; i++) {
        replay.jobs[i].left_ms = workload->jobs[i].run_s * 1000;
        replay_schedule(&replay, REPLAY_START + workload->jobs[i].arrival_s * 1000, REPLAY_SUBMIT,
                        (uint32_t)i);
    }
    replay_schedule(&replay, REPLAY_START, REPLAY_HOUR, 0);
    if (result == 0)
        result = pass_time(&replay, error);
    if (result == 0)
        result = core_check(replay.core, error);
    if (result == 0 && core_ledger_sum_micro(replay.core) != 0)
        result = error_set(error, ERROR_CORRUPT, "the ledger does not sum to zero");
    *out_counts = replay.counts;
    free(replay.jobs);
    free(replay.accounts);
    free(replay.machines);
    free(replay.washes);
    map_done(&replay.job_index);
    map_done(&replay.lender_index);
    agenda_done(&replay.agenda);
    event_list_done(&replay.events);
    core_free(replay.core);
    return result;
}
