#include "library/sync_rounds.h"

#include "base/assert.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BARRIERS_KEPT = 4096 }; /* rounds at most, of whatever kind */

struct sync_rounds {
    uint32_t world;
    bool is_awaited[SYNC_WORLD_MAX];
    uint64_t done[SYNC_WORLD_MAX];
    struct sync_round **items; /* of numbers first, first + 1, ...; NULL: nobody called yet */
    size_t count, capacity;
    uint64_t first;
    size_t kept_bytes, kept_max_bytes;
};

struct sync_rounds *sync_rounds_new(uint32_t world, size_t kept_max_bytes)
{
    ASSERT(world > 0 && world <= SYNC_WORLD_MAX);
    struct sync_rounds *rounds = memory_zeroed(1, sizeof *rounds);
    rounds->world = world;
    rounds->first = 1;
    rounds->kept_max_bytes = kept_max_bytes;
    return rounds;
}

static void round_free(struct sync_round *round)
{
    if (round)
        free(round->bytes);
    free(round);
}

void sync_rounds_free(struct sync_rounds *rounds)
{
    if (!rounds)
        return;
    for (size_t i = 0; i < rounds->count; i++)
        round_free(rounds->items[i]);
    free(rounds->items);
    free(rounds);
}

static struct sync_round *round_at(const struct sync_rounds *rounds, uint64_t number)
{
    return number >= rounds->first && number - rounds->first < rounds->count
               ? rounds->items[number - rounds->first]
               : NULL;
}

/* Whether the round can only end once this rank has called. */
static bool is_missing(const struct sync_rounds *rounds, const struct sync_round *round,
                       uint32_t rank)
{
    return rounds->is_awaited[rank] && !round->has_called[rank] &&
           rounds->done[rank] < round->call.round;
}

static void round_settle(const struct sync_rounds *rounds, struct sync_round *round)
{
    if (round->is_done)
        return;
    if (round->call.kind == SYNC_CALL_BROADCAST) {
        round->is_done = round->contributors > 0;
        return;
    }
    for (uint32_t rank = 0; rank < rounds->world; rank++)
        if (is_missing(rounds, round, rank))
            return;
    round->is_done = true;
}

void sync_rounds_await(struct sync_rounds *rounds, uint32_t rank, uint64_t done)
{
    rounds->is_awaited[rank] = true;
    rounds->done[rank] = done;
}

void sync_rounds_excuse(struct sync_rounds *rounds, uint32_t rank)
{
    rounds->is_awaited[rank] = false;
    for (size_t i = 0; i < rounds->count; i++)
        if (rounds->items[i])
            round_settle(rounds, rounds->items[i]);
}

static void forget_oldest(struct sync_rounds *rounds)
{
    const size_t kept = rounds->count - 1;
    if (rounds->items[0])
        rounds->kept_bytes -= rounds->items[0]->call.size;
    round_free(rounds->items[0]);
    memmove(rounds->items, rounds->items + 1, kept * sizeof(*rounds->items));
    rounds->count = kept;
    rounds->first++;
}

static bool is_too_much(const struct sync_rounds *rounds)
{
    return rounds->kept_bytes > rounds->kept_max_bytes || rounds->count > BARRIERS_KEPT;
}

/* The last round that all who are waited for have behind them. */
static uint64_t done_by_all(const struct sync_rounds *rounds)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t rank = 0; rank < rounds->world; rank++)
        if (rounds->is_awaited[rank] && rounds->done[rank] < least)
            least = rounds->done[rank];
    return least;
}

/* What is over for all goes, where there is too much of it; what is not stays. */
static void make_room(struct sync_rounds *rounds)
{
    if (!is_too_much(rounds))
        return;
    const uint64_t done = done_by_all(rounds);
    while (rounds->count > 0 && is_too_much(rounds) && rounds->first <= done &&
           (!rounds->items[0] || rounds->items[0]->is_done))
        forget_oldest(rounds);
}

bool sync_rounds_is_full(struct sync_rounds *rounds)
{
    make_room(rounds);
    return is_too_much(rounds);
}

static struct sync_round *round_begin(struct sync_rounds *rounds, const struct sync_call *call)
{
    const size_t place = call->round - rounds->first;
    if (place >= rounds->capacity) {
        const size_t capacity = place + 64;
        rounds->items = reallocarray(rounds->items, capacity, sizeof(struct sync_round *));
        ASSERT(rounds->items);
        rounds->capacity = capacity;
    }
    while (rounds->count <= place)
        rounds->items[rounds->count++] = NULL;
    struct sync_round *round = memory_zeroed(1, sizeof *round);
    round->call = *call;
    if (call->size > 0)
        round->bytes = memory_zeroed(1, call->size);
    rounds->kept_bytes += call->size;
    rounds->items[place] = round;
    return round;
}

int sync_rounds_check(const struct sync_rounds *rounds, uint64_t number, struct error *error)
{
    const struct sync_round *round = round_at(rounds, number);
    if (!round || round->is_done || round->call.kind != SYNC_CALL_BROADCAST ||
        rounds->is_awaited[round->call.root])
        return 0;
    return error_set(error, ERROR_UNAVAILABLE, "rank %" PRIu32 ", which broadcasts, has left",
                     round->call.root);
}

int sync_rounds_call(struct sync_rounds *rounds, uint32_t rank, const struct sync_call *call,
                     bool *out_is_wanted, struct error *error)
{
    if (call->round < rounds->first)
        return error_set(error, ERROR_UNAVAILABLE,
                         "round %" PRIu64 " is over, and what came of it no longer kept",
                         call->round);
    if (call->root >= rounds->world)
        return error_set(error, ERROR_INVALID, "there is no rank %" PRIu32, call->root);
    /* What a rank asks for must not make us remember millions of rounds. */
    if (call->round - rounds->first > rounds->count + BARRIERS_KEPT)
        return error_set(error, ERROR_CONFLICT, "round %" PRIu64 " is far ahead", call->round);
    if (rounds->done[rank] < call->round - 1)
        rounds->done[rank] = call->round - 1;
    make_room(rounds);
    struct sync_round *round = round_at(rounds, call->round);
    if (!round)
        round = round_begin(rounds, call);
    if (round->call.kind != call->kind || round->call.size != call->size ||
        round->call.root != call->root)
        return error_set(error, ERROR_CONFLICT,
                         "in round %" PRIu64 " rank %" PRIu32 " calls %s of %" PRIu32
                         " bytes where others call %s of %" PRIu32,
                         call->round, rank, sync_call_name(call->kind), call->size,
                         sync_call_name(round->call.kind), round->call.size);
    *out_is_wanted = !round->is_done && !round->has_called[rank] &&
                     (call->kind == SYNC_CALL_ALLREDUCE ||
                      (call->kind == SYNC_CALL_BROADCAST && call->root == rank));
    if (call->kind == SYNC_CALL_BROADCAST && !round->is_done && call->root != rank &&
        rounds->done[call->root] >= call->round)
        return error_set(error, ERROR_UNAVAILABLE,
                         "round %" PRIu64 " is over, and rank %" PRIu32 " began anew since",
                         call->round, call->root);
    return sync_rounds_check(rounds, call->round, error);
}

void sync_rounds_give(struct sync_rounds *rounds, uint32_t rank, uint64_t number,
                      const uint8_t *bytes)
{
    struct sync_round *round = round_at(rounds, number);
    if (!round || round->is_done || round->has_called[rank])
        return;
    round->has_called[rank] = true;
    if (bytes && round->call.kind == SYNC_CALL_BROADCAST && rank == round->call.root) {
        memcpy(round->bytes, bytes, round->call.size);
        round->contributors = 1;
    } else if (bytes && round->call.kind == SYNC_CALL_ALLREDUCE) {
        float *sum = (float *)(void *)round->bytes;
        const float *given = (const float *)(const void *)bytes;
        for (size_t i = 0; i < round->call.size / sizeof(float); i++)
            sum[i] += given[i];
        round->contributors++;
    }
    round_settle(rounds, round);
}

const struct sync_round *sync_rounds_result(struct sync_rounds *rounds, uint64_t number)
{
    const struct sync_round *round = round_at(rounds, number);
    return round && round->is_done ? round : NULL;
}
