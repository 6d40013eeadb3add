#include "worker/epoch_schedule.h"

#include "base/assert.h"
#include "base/memory.h"
#include "learn/scheduler.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct epoch_schedule {
    struct epoch_schedule_options options;
    bool is_growing;
    struct scheduler *scheduler; /* made at the first barrier, when the epochs can be counted */
    uint64_t epoch_count;
    struct epoch_seen last;
    double loss;        /* as known at the last barrier; 0: not */
    int64_t elapsed_ms; /* then */
    char reason[EPOCH_SCHEDULE_REASON_SIZE];
};

struct epoch_schedule *epoch_schedule_new(const struct epoch_schedule_options *options)
{
    const bool is_growing = text_is(options->name, "grow");
    if (!is_growing && !text_is(options->name, "decay"))
        return NULL;
    ASSERT(options->workers_min >= 1 && options->workers_max >= options->workers_min);
    struct epoch_schedule *schedule = memory_zeroed(1, sizeof(*schedule));
    schedule->options = *options;
    schedule->is_growing = is_growing;
    return schedule;
}

void epoch_schedule_free(struct epoch_schedule *schedule)
{
    if (!schedule)
        return;
    scheduler_free(schedule->scheduler);
    free(schedule);
}

/* Where epochs are of steps, how many there are follows from how far those went that are over. */
static uint64_t count_epochs(const struct epoch_schedule *schedule,
                             const struct exchange_epoch *epoch)
{
    const double passes = (double)schedule->options.epochs;
    if (!schedule->options.is_by_steps || !(epoch->passes > 0))
        return schedule->options.epochs;
    const double count = ceil(passes * (double)epoch->index / epoch->passes - 0.5);
    return count < 1 ? 1 : count < EPOCH_COUNT_MAX ? (uint64_t)count : EPOCH_COUNT_MAX;
}

static void open_scheduler(struct epoch_schedule *schedule, const struct exchange_epoch *epoch)
{
    const struct epoch_schedule_options *options = &schedule->options;
    schedule->epoch_count = count_epochs(schedule, epoch);
    const struct scheduler_decay decay = {
        .function_first = options->workers_max,
        .function_last = options->workers_min,
        .epoch_count = schedule->epoch_count > 1 ? (uint32_t)(schedule->epoch_count - 1) : 1,
    };
    schedule->scheduler =
        schedule->is_growing
            ? scheduler_new_grow((struct epoch_choice){.function_count = options->workers_min},
                                 (struct epoch_choice){.function_count = options->workers_max})
            : scheduler_new_decay(&decay);
}

static void see(struct epoch_schedule *schedule, const struct exchange_epoch *epoch)
{
    schedule->last = (struct epoch_seen){
        .choice = {.function_count = epoch->workers},
        .loss_before = schedule->loss,
        .loss_after = epoch->has_loss ? epoch->loss : 0,
        .total_s = 1e-3 * (double)(epoch->elapsed_ms - schedule->elapsed_ms),
    };
    schedule->loss = schedule->last.loss_after;
    schedule->elapsed_ms = epoch->elapsed_ms;
    scheduler_see(schedule->scheduler, &schedule->last);
}

uint32_t epoch_schedule_next(struct epoch_schedule *schedule, const struct exchange_epoch *epoch)
{
    const struct epoch_schedule_options *options = &schedule->options;
    if (!schedule->scheduler)
        open_scheduler(schedule, epoch);
    see(schedule, epoch);
    const struct epoch_state state = {
        .epoch = (uint32_t)(epoch->index < EPOCH_COUNT_MAX ? epoch->index : EPOCH_COUNT_MAX),
        .loss = schedule->loss,
        .elapsed_s = 1e-3 * (double)epoch->elapsed_ms,
        .last = schedule->last,
    };
    uint32_t workers = scheduler_choose(schedule->scheduler, &state).function_count;
    workers = workers < options->workers_min   ? options->workers_min
              : workers > options->workers_max ? options->workers_max
                                               : workers;
    const uint64_t next = epoch->index + 1;
    snprintf(schedule->reason, sizeof(schedule->reason),
             TEXT_FORMAT ": %" PRIu32 " of %" PRIu32 " to %" PRIu32
                         " workers wanted in epoch %" PRIu64 " of %" PRIu64,
             TEXT_ARGS(options->name), workers, options->workers_min, options->workers_max,
             next < schedule->epoch_count ? next : schedule->epoch_count, schedule->epoch_count);
    return workers;
}

const char *epoch_schedule_reason(const struct epoch_schedule *schedule)
{
    return schedule->reason;
}
