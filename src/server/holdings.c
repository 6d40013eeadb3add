#include "server/holdings.h"

#include "base/assert.h"
#include "base/log.h"
#include "server/call.h"
#include "server/holdings_internal.h"
#include "server/objects.h"
#include "server/query.h"

#include <stdlib.h>
#include <string.h>

#define ACCOUNT_QUOTA_BYTES (INT64_C(16) << 30)

struct holdings *holdings_new(struct server *server)
{
    struct holdings *holdings = calloc(1, sizeof(*holdings));
    ASSERT(holdings);
    holdings->server = server;
    map_init(&holdings->usages);
    map_init(&holdings->fresh);
    return holdings;
}

void holdings_free(struct holdings *holdings)
{
    if (!holdings)
        return;
    for (size_t i = 0; i < holdings->usages.count; i++)
        free(holdings->usages.entries[i].value);
    map_done(&holdings->usages);
    for (size_t i = 0; i < holdings->fresh.count; i++)
        ((struct holdings_change *)holdings->fresh.entries[i].value)->holdings = NULL;
    map_done(&holdings->fresh);
    free(holdings);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

struct text holdings_key(uint64_t account, const struct blob_hash *hash,
                         char out[HOLDINGS_KEY_SIZE])
{
    memcpy(out, &account, sizeof(account));
    memcpy(out + sizeof(account), hash->bytes, sizeof(hash->bytes));
    return (struct text){out, HOLDINGS_KEY_SIZE};
}

static int put_change(struct engine_request *request, const struct core *core,
                      struct store_batch *batch, struct error *error)
{
    const struct holdings_change *change = (const struct holdings_change *)request;
    (void)core, (void)error;
    for (size_t i = 0; i < change->count; i++) {
        const struct store_value row[HOLDINGS_COLUMN_COUNT] = {
            [HOLDINGS_ACCOUNT] = store_integer((int64_t)change->rows[i].account),
            [HOLDINGS_HASH] = store_blob(change->rows[i].hash.bytes, BLOB_HASH_SIZE),
            [HOLDINGS_SIZE_BYTES] = store_integer(change->rows[i].size_bytes),
            [HOLDINGS_STORED_MS] = store_integer(change->rows[i].stored_ms),
            [HOLDINGS_JOB] = store_integer((int64_t)change->rows[i].job),
        };
        if (change->rows[i].is_gone)
            store_batch_delete(batch, &tables[TABLE_HOLDINGS], row, 2);
        else
            store_batch_put(batch, &tables[TABLE_HOLDINGS], row, HOLDINGS_COLUMN_COUNT);
    }
    for (size_t i = 0; i < change->usage_count; i++) {
        const struct store_value row[USAGE_COLUMN_COUNT] = {
            [USAGE_ACCOUNT] = store_integer((int64_t)change->usages[i].account),
            [USAGE_BYTES] = store_integer(change->usages[i].bytes),
        };
        store_batch_put(batch, &tables[TABLE_USAGE], row, USAGE_COLUMN_COUNT);
    }
    return 0;
}

static void add_usage(struct holdings *holdings, uint64_t account, int64_t added_bytes)
{
    struct holdings_usage *usage = map_get(&holdings->usages, account);
    if (usage)
        usage->bytes = usage->bytes + added_bytes > 0 ? usage->bytes + added_bytes : 0;
}

/* A row that could not be written is not there: its account sends the chunk again. */
static void forget_change(struct holdings *holdings, const struct holdings_change *change,
                          bool has_failed)
{
    char key[HOLDINGS_KEY_SIZE];
    for (size_t i = 0; i < change->count; i++) {
        const struct text name = holdings_key(change->rows[i].account, &change->rows[i].hash, key);
        if (map_get_text(&holdings->fresh, name) == change)
            map_remove_text(&holdings->fresh, name);
        if (has_failed)
            add_usage(holdings, change->rows[i].account, -change->rows[i].added_bytes);
    }
    if (!change->is_expiry)
        return;
    holdings->is_expiring = false;
    if (!has_failed && change->count == HOLDINGS_CHANGE_ROWS)
        holdings_drop_old_rows(holdings); /* there may be more */
}

static void change_done(struct engine_request *request, const struct error *error)
{
    struct holdings_change *change = (struct holdings_change *)request;
    if (error)
        log_event(LOG_WARN, "holdings_not_written", "error=\"%s\"", error->message);
    if (change->holdings)
        forget_change(change->holdings, change, error != NULL);
    if (change->done)
        change->done(change->context, error);
    free(change);
}

void holdings_change_submit(struct holdings *holdings, struct holdings_change *change)
{
    struct server *server = holdings->server;
    struct error error;
    change->holdings = holdings;
    change->request = (struct engine_request){
        .loop = server->loop, .on_decided = put_change, .on_done = change_done};
    if (engine_submit(server->engine, &change->request, true, &error) < 0)
        change_done(&change->request, &error);
}

struct holdings_change *holdings_change_new(void)
{
    struct holdings_change *change = calloc(1, sizeof(*change));
    ASSERT(change);
    return change;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

struct holdings_usage *holdings_usage_of(struct holdings *holdings, uint64_t account,
                                         struct error *error)
{
    struct holdings_usage *usage = map_get(&holdings->usages, account);
    if (usage)
        return usage;
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct store_value *row = NULL;
    if (query_one(holdings->server, arena, TABLE_USAGE, "account", store_integer((int64_t)account),
                  &row, error) < 0)
        return NULL;
    usage = calloc(1, sizeof(*usage));
    ASSERT(usage);
    usage->bytes = row ? row[USAGE_BYTES].integer : 0;
    map_put(&holdings->usages, account, usage);
    return usage;
}

int holdings_bytes(struct holdings *holdings, uint64_t account, int64_t *out_bytes,
                   struct error *error)
{
    const struct holdings_usage *usage = holdings_usage_of(holdings, account, error);
    if (!usage)
        return -1;
    *out_bytes = usage->bytes;
    return 0;
}

void holdings_change_announce(struct holdings *holdings, struct holdings_change *change, size_t at)
{
    char key[HOLDINGS_KEY_SIZE];
    map_put_text(&holdings->fresh,
                 holdings_key(change->rows[at].account, &change->rows[at].hash, key), change);
}

/* The row of a key of `fresh`, in its change. */
static struct holding fresh_holding(const struct holdings_change *change, struct text key)
{
    char own[HOLDINGS_KEY_SIZE];
    for (size_t i = 0; i < change->count; i++)
        if (text_equal(holdings_key(change->rows[i].account, &change->rows[i].hash, own), key))
            return (struct holding){.exists = !change->rows[i].is_gone,
                                    .is_fresh = true,
                                    .job = change->rows[i].job,
                                    .size_bytes = change->rows[i].size_bytes,
                                    .stored_ms = change->rows[i].stored_ms};
    UNREACHABLE("a row on its way that its change does not have");
}

bool holdings_are_coming(const struct holdings *holdings, const struct blob_hash *hash)
{
    const size_t at = HOLDINGS_KEY_SIZE - sizeof(hash->bytes);
    for (size_t i = 0; i < holdings->fresh.count; i++) {
        const struct text key = holdings->fresh.names[i];
        if (memcmp(key.data + at, hash->bytes, sizeof(hash->bytes)) == 0 &&
            fresh_holding(holdings->fresh.entries[i].value, key).exists)
            return true;
    }
    return false;
}

int holdings_find(struct holdings *holdings, uint64_t account, const struct blob_hash *hash,
                  struct holding *out_holding, struct error *error)
{
    char key[HOLDINGS_KEY_SIZE];
    const struct text name = holdings_key(account, hash, key);
    const struct holdings_change *change = map_get_text(&holdings->fresh, name);
    *out_holding = (struct holding){0};
    if (change) {
        *out_holding = fresh_holding(change, name);
        return 0;
    }
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct store_filter filters[] = {
        {"account", STORE_EQUAL, store_integer((int64_t)account)},
        {"hash", STORE_EQUAL, store_blob(hash->bytes, sizeof(hash->bytes))},
    };
    const struct store_query query = {
        .table = &tables[TABLE_HOLDINGS], .filters = filters, .filter_count = 2, .limit = 1};
    struct query_rows rows;
    if (query_all(holdings->server, arena, &query, &rows, error) < 0)
        return -1;
    if (rows.count > 0)
        *out_holding = (struct holding){.exists = true,
                                        .job = (uint64_t)rows.items[0][HOLDINGS_JOB].integer,
                                        .size_bytes = rows.items[0][HOLDINGS_SIZE_BYTES].integer,
                                        .stored_ms = rows.items[0][HOLDINGS_STORED_MS].integer};
    return 0;
}

/* Its `size_bytes` count already: the chunk was gone, its row not yet; or it is sent again. */
static struct holding counted(struct holdings *holdings, uint64_t account,
                              const struct blob_hash *hash)
{
    struct holding holding;
    struct error ignored; /* as in holdings_change_usage() */
    if (holdings_find(holdings, account, hash, &holding, &ignored) < 0 || !holding.exists)
        return (struct holding){0};
    return holding;
}

int holdings_claim_file(struct holdings *holdings, struct arena *arena, uint64_t account,
                        const struct blob_hash *hash, struct manifest *out_manifest,
                        struct error *error)
{
    bool is_held = false;
    if (holdings_claim(holdings, account, hash, &is_held, error) < 0)
        return -1;
    if (!is_held)
        return error_set(error, ERROR_NOT_FOUND, "its manifest is not here, upload it first");
    if (manifest_get(arena, holdings->server->blobs, hash, out_manifest, error) < 0)
        return error_wrap(error, "its manifest is not here, upload it first");
    for (size_t i = 0; i < out_manifest->chunks.count; i++) {
        char hex[BLOB_HASH_TEXT_SIZE];
        const struct blob_hash *chunk = &manifest_chunk(out_manifest, i)->hash;
        if (holdings_claim(holdings, account, chunk, &is_held, error) < 0)
            return -1;
        if (!is_held)
            return error_set(error, ERROR_NOT_FOUND, "chunk %.16s... is not here, upload it first",
                             blob_hash_format(chunk, hex));
    }
    return 0;
}

int holdings_check_room(struct holdings *holdings, uint64_t account, const struct blob_hash *hash,
                        uint64_t bytes, struct error *error)
{
    return holdings_check_bytes(
        holdings, account, (int64_t)bytes - counted(holdings, account, hash).size_bytes, error);
}

int holdings_check_bytes(struct holdings *holdings, uint64_t account, int64_t added_bytes,
                         struct error *error)
{
    const struct server *server = holdings->server;
    const int64_t wanted = server->options.account_quota_bytes;
    const int64_t quota = wanted > 0 ? wanted : ACCOUNT_QUOTA_BYTES;
    int64_t used = 0;
    if (holdings_bytes(holdings, account, &used, error) < 0)
        return -1;
    if (server->objects)
        used += objects_bytes(server->objects, account);
    if (used + added_bytes > quota)
        return error_set(error, ERROR_EXHAUSTED,
                         "this account has used up what it may store on this market");
    return 0;
}

int holdings_check_room_of(struct holdings *holdings, uint64_t account,
                           const struct holdings_chunk *chunks, size_t count,
                           uint64_t *out_missing_bytes, struct error *error)
{
    const struct holdings_chunk *first = NULL;
    uint64_t missing_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_held = false;
        if (holdings_has(holdings, account, &chunks[i].hash, &is_held, error) < 0)
            return -1;
        if (is_held)
            continue;
        first = first ? first : &chunks[i];
        missing_bytes += chunks[i].size_bytes;
    }
    if (first && holdings_check_room(holdings, account, &first->hash, missing_bytes, error) < 0)
        return -1;
    *out_missing_bytes = missing_bytes;
    return 0;
}

/* Of the change's row `at`. */
void holdings_change_usage(struct holdings *holdings, struct holdings_change *change, size_t at,
                           int64_t added_bytes)
{
    struct error error;
    const uint64_t account = change->rows[at].account;
    const struct holdings_usage *usage = holdings_usage_of(holdings, account, &error);
    if (!usage)
        return; /* counted wrong rather than refused; the store is in trouble anyway */
    change->rows[at].added_bytes = added_bytes;
    add_usage(holdings, account, added_bytes);
    for (size_t i = 0; i < change->usage_count; i++)
        if (change->usages[i].account == account) {
            change->usages[i].bytes = usage->bytes;
            return;
        }
    change->usages[change->usage_count].account = account;
    change->usages[change->usage_count++].bytes = usage->bytes;
}

/* ---- Who has what ---------------------------------------------------------------------------- */

static int find_there(struct holdings *holdings, uint64_t account, const struct blob_hash *hash,
                      struct holding *out_holding, struct error *error)
{
    *out_holding = (struct holding){0};
    return blob_store_has(holdings->server->blobs, hash)
               ? holdings_find(holdings, account, hash, out_holding, error)
               : 0;
}

int holdings_has(struct holdings *holdings, uint64_t account, const struct blob_hash *hash,
                 bool *out_has, struct error *error)
{
    struct holding holding;
    const int result = find_there(holdings, account, hash, &holding, error);
    *out_has = holding.exists;
    return result;
}

int holdings_keeps(struct holdings *holdings, uint64_t account, const struct blob_hash *hash,
                   bool *out_keeps, struct error *error)
{
    struct holding holding;
    const int result = find_there(holdings, account, hash, &holding, error);
    *out_keeps = holding.exists && !holding.job;
    return result;
}

int holdings_claim(struct holdings *holdings, uint64_t account, const struct blob_hash *hash,
                   bool *out_has, struct error *error)
{
    struct holding holding;
    const int result = find_there(holdings, account, hash, &holding, error);
    *out_has = holding.exists;
    if (holding.exists && holding.job)
        holdings_add(holdings, (struct holder){.account = account}, hash,
                     (uint64_t)holding.size_bytes, NULL, NULL);
    return result;
}

static void add_row(struct holdings *holdings, struct holdings_change *change, struct holder holder,
                    const struct holdings_chunk *chunk)
{
    const struct holding before = counted(holdings, holder.account, &chunk->hash);
    const size_t at = change->count++;
    change->rows[at].account = holder.account;
    change->rows[at].hash = chunk->hash;
    change->rows[at].size_bytes = (int64_t)chunk->size_bytes;
    change->rows[at].stored_ms = clock_utc_ms(holdings->server->clock);
    change->rows[at].job = before.exists && before.job != holder.job ? 0 : holder.job;
    holdings_change_usage(holdings, change, at, (int64_t)chunk->size_bytes - before.size_bytes);
    holdings_change_announce(holdings, change, at);
}

void holdings_add_all(struct holdings *holdings, struct holder holder,
                      const struct holdings_chunk *chunks, size_t count, holdings_done *done,
                      void *context)
{
    struct holdings_change *change = holdings_change_new();
    ASSERT(count <= HOLDINGS_CHANGE_ROWS);
    change->done = done;
    change->context = context;
    for (size_t i = 0; i < count; i++)
        add_row(holdings, change, holder, &chunks[i]);
    holdings_change_submit(holdings, change);
}

void holdings_add(struct holdings *holdings, struct holder holder, const struct blob_hash *hash,
                  uint64_t bytes, holdings_done *done, void *context)
{
    const struct holdings_chunk chunk = {*hash, bytes};
    holdings_add_all(holdings, holder, &chunk, 1, done, context);
}
