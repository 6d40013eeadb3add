/* Profiles, their end: by retention, by their account's wish, and with the account. */
#include "base/assert.h"
#include "base/log.h"
#include "server/call.h"
#include "server/profiles.h"
#include "server/query.h"

#include <stdlib.h>

enum { SWEEP_ROWS = 1000, SWEEP_ACCOUNTS = 100 };
#define DAY_MS INT64_C(86400000)

void profiles_put_shared(struct store_batch *batch, uint64_t account, bool is_shared)
{
    const struct store_value values[PROFILE_CHOICES_COLUMN_COUNT] = {
        [PROFILE_CHOICES_ACCOUNT] = store_integer((int64_t)account),
        [PROFILE_CHOICES_IS_SHARED] = store_integer(is_shared),
    };
    store_batch_put(batch, &tables[TABLE_PROFILE_CHOICES], values, PROFILE_CHOICES_COLUMN_COUNT);
}

/* The jobs of the rows that the filter finds: the first column is theirs in both tables. */
static int find_jobs(struct server *server, struct arena *arena, enum table table,
                     const struct store_filter *filter, uint32_t limit, const uint64_t **out_jobs,
                     size_t *out_count, struct error *error)
{
    const struct store_query query = {
        .table = &tables[table], .filters = filter, .filter_count = 1, .limit = limit};
    struct query_rows rows;
    if (query_all(server, arena, &query, &rows, error) < 0)
        return -1;
    uint64_t *jobs = arena_alloc(arena, (rows.count + 1) * sizeof(*jobs));
    for (size_t i = 0; i < rows.count; i++)
        jobs[i] = (uint64_t)rows.items[i][0].integer;
    *out_jobs = jobs;
    *out_count = rows.count;
    return 0;
}

int profiles_of_account(struct server *server, struct arena *arena, uint64_t account,
                        struct profiles_doomed *out_doomed, struct error *error)
{
    const struct store_filter filter = {"account", STORE_EQUAL, store_integer((int64_t)account)};
    struct profiles_doomed doomed = {0};
    if (find_jobs(server, arena, TABLE_PROFILES, &filter, PROFILES_DOOMED_MAX, &doomed.profiles,
                  &doomed.profile_count, error) < 0 ||
        find_jobs(server, arena, TABLE_PREDICTIONS, &filter, PROFILES_DOOMED_MAX,
                  &doomed.predictions, &doomed.prediction_count, error) < 0)
        return -1;
    *out_doomed = doomed;
    return 0;
}

static void delete_rows(struct store_batch *batch, enum table table, const uint64_t *keys,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct store_value key = store_integer((int64_t)keys[i]);
        store_batch_delete(batch, &tables[table], &key, 1);
    }
}

void profiles_delete(struct store_batch *batch, const struct profiles_doomed *doomed)
{
    delete_rows(batch, TABLE_PROFILES, doomed->profiles, doomed->profile_count);
    delete_rows(batch, TABLE_PREDICTIONS, doomed->predictions, doomed->prediction_count);
    delete_rows(batch, TABLE_PROFILE_CHOICES, &doomed->choice, doomed->choice > 0);
}

/* ---- By the market itself -------------------------------------------------------------------- */

struct doomed_rows {
    struct arena *arena;
    struct profiles_doomed doomed;
};

static void delete_doomed(void *context, struct store_batch *batch)
{
    const struct doomed_rows *rows = context;
    profiles_delete(batch, &rows->doomed);
}

static void release_doomed(void *context)
{
    struct doomed_rows *rows = context;
    arena_free(rows->arena);
    free(rows);
}

static struct doomed_rows *doomed_new(void)
{
    struct doomed_rows *rows = calloc(1, sizeof(*rows));
    ASSERT(rows);
    rows->arena = arena_new(0);
    return rows;
}

static void submit_doomed(struct server *server, struct doomed_rows *rows)
{
    if (rows->doomed.profile_count + rows->doomed.prediction_count > 0 || rows->doomed.choice > 0)
        server_put_rows(server, delete_doomed, rows, release_doomed);
    else
        release_doomed(rows);
}

static void tell_not_deleted(struct doomed_rows *rows, const struct error *error)
{
    log_event(LOG_WARN, "profiles_not_deleted", "error=\"%s\"", error->message);
    release_doomed(rows);
}

void profiles_forget(struct server *server, uint64_t account)
{
    struct doomed_rows *rows = doomed_new();
    struct error error;
    if (profiles_of_account(server, rows->arena, account, &rows->doomed, &error) < 0) {
        tell_not_deleted(rows, &error);
        return;
    }
    rows->doomed.choice = account;
    submit_doomed(server, rows);
}

static void sweep_old(struct server *server)
{
    const int64_t keep_ms = server->options.profile_keep_ms > 0 ? server->options.profile_keep_ms
                                                                : PROFILES_KEEP_DAYS * DAY_MS;
    const struct store_value before = store_integer(clock_utc_ms(server->clock) - keep_ms);
    const struct store_filter updated = {"updated_ms", STORE_LESS, before};
    const struct store_filter created = {"created_ms", STORE_LESS, before};
    struct doomed_rows *rows = doomed_new();
    struct profiles_doomed *doomed = &rows->doomed;
    struct error error;
    if (find_jobs(server, rows->arena, TABLE_PROFILES, &updated, SWEEP_ROWS, &doomed->profiles,
                  &doomed->profile_count, &error) < 0 ||
        find_jobs(server, rows->arena, TABLE_PREDICTIONS, &created, SWEEP_ROWS,
                  &doomed->predictions, &doomed->prediction_count, &error) < 0)
        tell_not_deleted(rows, &error);
    else
        submit_doomed(server, rows);
}

/* The account after `last` that has a profile; 0: none. */
static int next_account(struct server *server, struct arena *arena, uint64_t last,
                        uint64_t *out_account, struct error *error)
{
    const struct store_filter filter = {"account", STORE_GREATER, store_integer((int64_t)last)};
    const struct store_query query = {.table = &tables[TABLE_PROFILES],
                                      .filters = &filter,
                                      .filter_count = 1,
                                      .order_column = "account",
                                      .limit = 1};
    struct query_rows rows;
    if (query_all(server, arena, &query, &rows, error) < 0)
        return -1;
    *out_account = rows.count > 0 ? (uint64_t)rows.items[0][PROFILES_ACCOUNT].integer : 0;
    return 0;
}

/* A market that was killed between an account's end and its profiles' makes up for it. */
static int sweep_accounts(struct server *server, uint64_t *cursor, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    for (int i = 0; i < SWEEP_ACCOUNTS; i++) {
        const struct store_value *row = NULL;
        if (next_account(server, arena, *cursor, cursor, error) < 0)
            return -1;
        if (*cursor == 0)
            return 0;
        if (query_one(server, arena, TABLE_ACCOUNTS, "id", store_integer((int64_t)*cursor), &row,
                      error) < 0)
            return -1;
        if (!row || row[ACCOUNTS_DELETED_MS].integer > 0)
            profiles_forget(server, *cursor);
    }
    return 0;
}

void profiles_sweep(struct server *server, uint64_t *cursor)
{
    struct error error;
    sweep_old(server);
    if (sweep_accounts(server, cursor, &error) < 0)
        log_event(LOG_WARN, "profiles_not_deleted", "error=\"%s\"", error.message);
}
