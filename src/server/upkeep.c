#include "server/upkeep.h"

#include "base/assert.h"
#include "base/log.h"
#include "server/call.h"
#include "server/holdings.h"
#include "server/live.h"
#include "server/logs.h"
#include "server/objects.h"
#include "server/profiles.h"
#include "server/query.h"
#include "server/token_use.h"

#include <stdlib.h>

enum {
    TURN_MS = 1000,
    SAVE_TURNS = 3,
    FORGET_TURNS = 600,
    EXPIRE_TURNS_MAX = 3600,
    USES_TURNS = 60,
    FORGET_MAX = 1000,
    ANSWER_KEPT_MS = 24 * 3600 * 1000,
};

struct upkeep {
    struct server *server;
    struct loop_timer *timer;
    uint64_t turn;
    uint64_t expire_turns, sweep_turns;
    uint64_t swept_account; /* of profiles_sweep */
};

struct old_answers {
    size_t count;
    uint8_t keys[FORGET_MAX][KEYS_HASH_SIZE];
};

static void delete_answers(void *context, struct store_batch *batch)
{
    const struct old_answers *old = context;
    for (size_t i = 0; i < old->count; i++) {
        const struct store_value key = store_blob(old->keys[i], KEYS_HASH_SIZE);
        store_batch_delete(batch, &tables[TABLE_ANSWERS], &key, 1);
    }
}

static void forget_answers(struct server *server)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const int64_t before_ms = clock_utc_ms(server->clock) - ANSWER_KEPT_MS;
    const struct store_filter filter = {"created_ms", STORE_LESS, store_integer(before_ms)};
    const struct store_query query = {.table = &tables[TABLE_ANSWERS],
                                      .filters = &filter,
                                      .filter_count = 1,
                                      .limit = FORGET_MAX};
    struct query_rows rows;
    struct error error;
    if (query_all(server, arena, &query, &rows, &error) < 0) {
        log_event(LOG_WARN, "answers_not_forgotten", "error=\"%s\"", error.message);
        return;
    }
    if (!rows.count)
        return;
    struct old_answers *old = calloc(1, sizeof(*old));
    ASSERT(old);
    for (size_t i = 0; i < rows.count; i++) {
        const struct text key = rows.items[i][ANSWERS_KEY].bytes;
        if (key.size == KEYS_HASH_SIZE)
            memcpy(old->keys[old->count++], key.data, KEYS_HASH_SIZE);
    }
    server_put_rows(server, delete_answers, old, free);
}

static void turn(void *context)
{
    struct upkeep *upkeep = context;
    upkeep->turn++;
    logs_flush(upkeep->server->logs, false);
    if (upkeep->turn % SAVE_TURNS == 0)
        live_save(upkeep->server->live);
    if (upkeep->turn % USES_TURNS == 0)
        token_uses_flush(upkeep->server->token_uses);
    if (upkeep->turn % upkeep->expire_turns == 0) {
        holdings_expire(upkeep->server->holdings);
        objects_expire(upkeep->server->objects);
    }
    if (upkeep->turn % FORGET_TURNS == 1)
        forget_answers(upkeep->server);
    if (upkeep->turn % upkeep->sweep_turns == 1 % upkeep->sweep_turns)
        profiles_sweep(upkeep->server, &upkeep->swept_account);
    loop_timer_start(upkeep->timer, TURN_MS);
}

/* Four times within what is kept, after `most` turns at the latest, once a turn at most. */
static uint64_t turns_within(int64_t keep_ms, uint64_t most)
{
    const int64_t quarter_turns = keep_ms / 4 / TURN_MS;
    if (keep_ms <= 0 || quarter_turns >= (int64_t)most)
        return most;
    return quarter_turns > 0 ? (uint64_t)quarter_turns : 1;
}

struct upkeep *upkeep_new(struct server *server)
{
    struct upkeep *upkeep = calloc(1, sizeof(*upkeep));
    ASSERT(upkeep);
    upkeep->server = server;
    upkeep->expire_turns = turns_within(server->options.keep_ms, EXPIRE_TURNS_MAX);
    upkeep->sweep_turns = turns_within(server->options.profile_keep_ms, FORGET_TURNS);
    upkeep->timer = loop_timer_new(server->loop, turn, upkeep);
    loop_timer_start(upkeep->timer, TURN_MS);
    return upkeep;
}

void upkeep_free(struct upkeep *upkeep)
{
    if (!upkeep)
        return;
    loop_timer_free(upkeep->timer);
    free(upkeep);
}
