#include "market/queue.h"

#include "base/assert.h"

enum { SERVED_PARTS = 1024 }; /* of a cost served, by one of which the clock moves on */

struct queue_turn queue_take_turn(const struct queue_clock *clock, int64_t account_finish_tag,
                                  int64_t cost_micro)
{
    ASSERT(clock->now_tag >= 0 && account_finish_tag >= 0 && cost_micro >= 0);
    const int64_t tag = clock->now_tag > account_finish_tag ? clock->now_tag : account_finish_tag;
    /* What is free still takes its turn. */
    const int64_t cost = cost_micro > 0 ? cost_micro : 1;
    return (struct queue_turn){
        .tag = tag, .finish_tag = cost < QUEUE_TAG_MAX - tag ? tag + cost : QUEUE_TAG_MAX};
}

void queue_serve(struct queue_clock *clock, struct queue_turn turn)
{
    if (turn.tag > clock->now_tag)
        clock->now_tag = turn.tag;
    const int64_t step = (turn.finish_tag - turn.tag) / SERVED_PARTS + 1;
    clock->now_tag = step < QUEUE_TAG_MAX - clock->now_tag ? clock->now_tag + step : QUEUE_TAG_MAX;
}

int64_t queue_score(bool is_rush, int64_t tag)
{
    ASSERT(tag >= 0 && tag <= QUEUE_TAG_MAX);
    return (is_rush ? QUEUE_TAG_MAX + 1 : 0) + (QUEUE_TAG_MAX - tag);
}
