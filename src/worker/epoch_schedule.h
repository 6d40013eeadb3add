/*
 * Epoch schedule: how many workers a job wants in each of its epochs (sync.schedule).
 *
 *     grow   num_nodes in the first epoch, twice as many in every next, num_nodes_max at most
 *     decay  evenly from num_nodes_max in the first to num_nodes in the last
 *
 * A scheduler of learn/ chooses; this tells it what was seen of the epochs, and keeps what it
 * chooses within the job's range. It holds no clock: the same epochs give the same choices.
 */
#pragma once

#include "base/text.h"
#include "exchange/server.h"

enum { EPOCH_SCHEDULE_REASON_SIZE = 128 };

struct epoch_schedule_options {
    struct text name; /* "grow" or "decay" */
    uint32_t workers_min, workers_max;
    uint64_t epochs;  /* passes over the data that the job makes at most */
    bool is_by_steps; /* an epoch is so many steps, not a pass */
};

struct epoch_schedule;

/* NULL where there is no name: it has no schedule. */
struct epoch_schedule *epoch_schedule_new(const struct epoch_schedule_options *options);
void epoch_schedule_free(struct epoch_schedule *schedule); /* NULL is fine */
DEFINE_AUTO(epoch_schedule);

/* An epoch is over: how many workers the next wants. */
uint32_t epoch_schedule_next(struct epoch_schedule *schedule, const struct exchange_epoch *epoch);
/* "grow: 3 of 1 to 4 workers wanted in epoch 5 of 8"; empty before the first epoch is over. */
const char *epoch_schedule_reason(const struct epoch_schedule *schedule);
