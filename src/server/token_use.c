#include "server/token_use.h"

#include "base/assert.h"
#include "base/log.h"
#include "server/call.h"
#include "server/tables.h"

#include <stdlib.h>

enum { USES_MAX = 100000, DAY_MS = 24 * 3600 * 1000 };

struct token_use {
    uint64_t token;
    int64_t used_ms;
};

struct token_uses {
    struct server *server;
    struct map uses;  /* token -> struct token_use, owned; since the last flush */
    struct map seen;  /* accounts that the core was told of today */
    int64_t seen_day; /* which day that is */
};

struct token_uses *token_uses_new(struct server *server)
{
    struct token_uses *uses = calloc(1, sizeof(*uses));
    ASSERT(uses);
    uses->server = server;
    map_init(&uses->uses);
    map_init(&uses->seen);
    return uses;
}

static void clear(struct map *map)
{
    map_done(map);
    map_init(map);
}

void token_uses_free(struct token_uses *uses)
{
    if (!uses)
        return;
    for (size_t i = 0; i < uses->uses.count; i++)
        free(uses->uses.entries[i].value);
    map_done(&uses->uses);
    map_done(&uses->seen);
    free(uses);
}

/* ---- Accounts -------------------------------------------------------------------------------- */

static void seen_done(struct engine_request *request, const struct error *error)
{
    if (error)
        log_event(LOG_DEBUG, "account_not_seen", "error=\"%s\"", error->message);
    free(request);
}

static void see_account(struct token_uses *uses, uint64_t account, int64_t now_ms)
{
    if (uses->seen_day != now_ms / DAY_MS) {
        uses->seen_day = now_ms / DAY_MS;
        clear(&uses->seen);
    }
    if (map_get(&uses->seen, account) || uses->seen.count >= USES_MAX)
        return;
    struct engine_request *request = calloc(1, sizeof(*request));
    ASSERT(request);
    *request = (struct engine_request){
        .has_command = true,
        .command = {.kind = COMMAND_SEE_ACCOUNT, .see_account = {.account = account}},
        .on_done = seen_done,
    };
    struct error error;
    if (engine_submit(uses->server->engine, request, false, &error) < 0) {
        seen_done(request, &error); /* the next use tries again */
        return;
    }
    map_put(&uses->seen, account, uses); /* any pointer will do */
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

void token_uses_note(struct token_uses *uses, const struct caller *caller)
{
    if (!caller->token)
        return;
    const int64_t now_ms = clock_utc_ms(uses->server->clock);
    struct token_use *use = map_get(&uses->uses, caller->token);
    if (!use && uses->uses.count < USES_MAX) {
        use = calloc(1, sizeof(*use));
        ASSERT(use);
        use->token = caller->token;
        map_put(&uses->uses, use->token, use);
    }
    if (use)
        use->used_ms = now_ms;
    see_account(uses, caller->account, now_ms);
}

int64_t token_uses_recent_ms(const struct token_uses *uses, uint64_t token)
{
    const struct token_use *use = map_get(&uses->uses, token);
    return use ? use->used_ms : 0;
}

struct use_rows {
    size_t count;
    struct token_use items[];
};

static void put_uses(void *context, struct store_batch *batch)
{
    const struct use_rows *rows = context;
    for (size_t i = 0; i < rows->count; i++) {
        const struct store_value row[TOKEN_USES_COLUMN_COUNT] = {
            [TOKEN_USES_TOKEN] = store_integer((int64_t)rows->items[i].token),
            [TOKEN_USES_USED_MS] = store_integer(rows->items[i].used_ms),
        };
        store_batch_put(batch, &tables[TABLE_TOKEN_USES], row, TOKEN_USES_COLUMN_COUNT);
    }
}

void token_uses_flush(struct token_uses *uses)
{
    if (!uses->uses.count)
        return;
    struct use_rows *rows = calloc(1, sizeof(*rows) + uses->uses.count * sizeof(struct token_use));
    ASSERT(rows);
    for (size_t i = 0; i < uses->uses.count; i++) {
        struct token_use *use = uses->uses.entries[i].value;
        rows->items[rows->count++] = *use;
        free(use);
    }
    clear(&uses->uses);
    server_put_rows(uses->server, put_uses, rows, free);
}
