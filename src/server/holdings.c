#include "server/holdings.h"

#include "base/assert.h"
#include "base/log.h"
#include "blob/manifest.h"
#include "runtime/job_spec.h"
#include "server/call.h"
#include "server/query.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ACCOUNT_QUOTA_BYTES (INT64_C(16) << 30)

enum { EXPIRE_ROWS = 500, OPEN_JOBS_MAX = 10000, KEY_SIZE = 8 + BLOB_HASH_SIZE };

struct usage {
    int64_t bytes;
};

/* Rows on their way to the store. */
struct change {
    struct engine_request request;
    struct holdings *holdings;
    holdings_done *done; /* NULL: nobody waits */
    void *context;
    size_t count;
    struct {
        uint64_t account;
        struct blob_hash hash;
        int64_t size_bytes;
        int64_t stored_ms;
        bool is_gone;
    } rows[EXPIRE_ROWS];
    size_t usage_count;
    struct {
        uint64_t account;
        int64_t bytes;
    } usages[EXPIRE_ROWS];
};

struct holdings {
    struct server *server;
    struct map usages; /* account -> struct usage, owned */
    struct map fresh;  /* account and hash -> the change that writes it */
};

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
        ((struct change *)holdings->fresh.entries[i].value)->holdings = NULL;
    map_done(&holdings->fresh);
    free(holdings);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static struct text key_of(uint64_t account, const struct blob_hash *hash, char out[KEY_SIZE])
{
    memcpy(out, &account, sizeof(account));
    memcpy(out + sizeof(account), hash->bytes, sizeof(hash->bytes));
    return (struct text){out, KEY_SIZE};
}

static int put_change(struct engine_request *request, const struct core *core,
                      struct store_batch *batch, struct error *error)
{
    const struct change *change = (const struct change *)request;
    (void)core, (void)error;
    for (size_t i = 0; i < change->count; i++) {
        const struct store_value row[HOLDINGS_COLUMN_COUNT] = {
            [HOLDINGS_ACCOUNT] = store_integer((int64_t)change->rows[i].account),
            [HOLDINGS_HASH] = store_blob(change->rows[i].hash.bytes, BLOB_HASH_SIZE),
            [HOLDINGS_SIZE_BYTES] = store_integer(change->rows[i].size_bytes),
            [HOLDINGS_STORED_MS] = store_integer(change->rows[i].stored_ms),
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

/* A row that could not be written is not there: its account sends the chunk again. */
static void change_done(struct engine_request *request, const struct error *error)
{
    struct change *change = (struct change *)request;
    char key[KEY_SIZE];
    if (error)
        log_event(LOG_WARN, "holdings_not_written", "error=\"%s\"", error->message);
    for (size_t i = 0; change->holdings && i < change->count; i++) {
        const struct text name = key_of(change->rows[i].account, &change->rows[i].hash, key);
        if (map_get_text(&change->holdings->fresh, name) == change)
            map_remove_text(&change->holdings->fresh, name);
    }
    if (change->done)
        change->done(change->context, error);
    free(change);
}

static void change_submit(struct holdings *holdings, struct change *change)
{
    struct server *server = holdings->server;
    struct error error;
    change->holdings = holdings;
    change->request = (struct engine_request){
        .loop = server->loop, .on_decided = put_change, .on_done = change_done};
    if (engine_submit(server->engine, &change->request, true, &error) < 0)
        change_done(&change->request, &error);
}

static struct change *change_new(void)
{
    struct change *change = calloc(1, sizeof(*change));
    ASSERT(change);
    return change;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* From its row at first use. */
static struct usage *usage_of(struct holdings *holdings, uint64_t account, struct error *error)
{
    struct usage *usage = map_get(&holdings->usages, account);
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
    const struct usage *usage = usage_of(holdings, account, error);
    if (!usage)
        return -1;
    *out_bytes = usage->bytes;
    return 0;
}

int holdings_check_room(struct holdings *holdings, uint64_t account, uint64_t bytes,
                        struct error *error)
{
    const int64_t wanted = holdings->server->options.account_quota_bytes;
    const int64_t quota = wanted > 0 ? wanted : ACCOUNT_QUOTA_BYTES;
    int64_t used = 0;
    if (holdings_bytes(holdings, account, &used, error) < 0)
        return -1;
    if (used + (int64_t)bytes > quota)
        return error_set(error, ERROR_EXHAUSTED,
                         "this account has used up what it may store on this market");
    return 0;
}

static void change_usage(struct holdings *holdings, struct change *change, uint64_t account,
                         int64_t added_bytes)
{
    struct error error;
    struct usage *usage = usage_of(holdings, account, &error);
    if (!usage)
        return; /* counted wrong rather than refused; the store is in trouble anyway */
    usage->bytes = usage->bytes + added_bytes > 0 ? usage->bytes + added_bytes : 0;
    for (size_t i = 0; i < change->usage_count; i++)
        if (change->usages[i].account == account) {
            change->usages[i].bytes = usage->bytes;
            return;
        }
    change->usages[change->usage_count].account = account;
    change->usages[change->usage_count++].bytes = usage->bytes;
}

/* ---- Who has what ---------------------------------------------------------------------------- */

int holdings_has(struct holdings *holdings, uint64_t account, const struct blob_hash *hash,
                 bool *out_has, struct error *error)
{
    char key[KEY_SIZE];
    *out_has = false;
    if (!blob_store_has(holdings->server->blobs, hash))
        return 0;
    if (map_get_text(&holdings->fresh, key_of(account, hash, key))) {
        *out_has = true;
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
    *out_has = rows.count > 0;
    return 0;
}

void holdings_add(struct holdings *holdings, uint64_t account, const struct blob_hash *hash,
                  uint64_t bytes, holdings_done *done, void *context)
{
    char key[KEY_SIZE];
    struct change *change = change_new();
    change->done = done;
    change->context = context;
    change->count = 1;
    change->rows[0].account = account;
    change->rows[0].hash = *hash;
    change->rows[0].size_bytes = (int64_t)bytes;
    change->rows[0].stored_ms = clock_utc_ms(holdings->server->clock);
    change_usage(holdings, change, account, (int64_t)bytes);
    map_put_text(&holdings->fresh, key_of(account, hash, key), change);
    change_submit(holdings, change);
}

/* ---- Retention ------------------------------------------------------------------------------- */

static int64_t keep_ms(const struct holdings *holdings)
{
    const int64_t wanted = holdings->server->options.keep_ms;
    return wanted > 0 ? wanted : HOLDINGS_KEEP_MS;
}

static void use_manifest(struct server *server, struct arena *arena, const struct blob_hash *hash)
{
    struct manifest manifest;
    struct error ignored; /* one that is not there has nothing to keep */
    if (!blob_store_use(server->blobs, hash) ||
        manifest_get(arena, server->blobs, hash, &manifest, &ignored) < 0)
        return;
    for (size_t i = 0; i < manifest.chunks.count; i++)
        blob_store_use(server->blobs, &manifest_chunk(&manifest, i)->hash);
}

/* A job that has not ended uses its inputs, however long it waits. */
static int use_open_jobs(struct server *server, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct store_filter filter = {"state", STORE_LESS, store_integer(JOB_STATE_SUCCEEDED)};
    const struct store_query query = {.table = &tables[TABLE_JOBS],
                                      .filters = &filter,
                                      .filter_count = 1,
                                      .limit = OPEN_JOBS_MAX};
    struct query_rows jobs;
    if (query_all(server, arena, &query, &jobs, error) < 0)
        return -1;
    if (jobs.count == OPEN_JOBS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "too many jobs are open");
    for (size_t i = 0; i < jobs.count; i++) {
        AUTO(arena) struct arena *own = arena_new(0);
        const struct store_value *row = NULL;
        struct job_spec spec;
        if (query_one(server, own, TABLE_JOB_SPECS, "job", jobs.items[i][JOBS_ID], &row, error) < 0)
            return -1;
        if (!row || job_spec_read(own, row[JOB_SPECS_SPEC].bytes, &spec, error) < 0)
            continue;
        for (size_t k = 0; k < spec.input_count; k++) {
            struct blob_hash hash;
            memcpy(hash.bytes, spec.inputs[k].manifest, sizeof(hash.bytes));
            use_manifest(server, own, &hash);
        }
    }
    return 0;
}

/* Old rows whose chunk is gone go too; one whose chunk is still used is looked at again after
 * another retention. */
static int drop_rows(struct holdings *holdings, struct error *error)
{
    struct server *server = holdings->server;
    AUTO(arena) struct arena *arena = arena_new(0);
    const int64_t now_ms = clock_utc_ms(server->clock);
    const struct store_filter filter = {"stored_ms", STORE_LESS,
                                        store_integer(now_ms - keep_ms(holdings))};
    const struct store_query query = {.table = &tables[TABLE_HOLDINGS],
                                      .filters = &filter,
                                      .filter_count = 1,
                                      .limit = EXPIRE_ROWS};
    struct query_rows rows;
    if (query_all(server, arena, &query, &rows, error) < 0)
        return -1;
    if (rows.count == 0)
        return 0;
    struct change *change = change_new();
    for (size_t i = 0; i < rows.count; i++) {
        const struct store_value *row = rows.items[i];
        const size_t at = change->count;
        if (row[HOLDINGS_HASH].bytes.size != BLOB_HASH_SIZE)
            continue;
        memcpy(change->rows[at].hash.bytes, row[HOLDINGS_HASH].bytes.data, BLOB_HASH_SIZE);
        change->rows[at].account = (uint64_t)row[HOLDINGS_ACCOUNT].integer;
        change->rows[at].size_bytes = row[HOLDINGS_SIZE_BYTES].integer;
        change->rows[at].stored_ms = now_ms;
        change->rows[at].is_gone = !blob_store_has(server->blobs, &change->rows[at].hash);
        if (change->rows[at].is_gone)
            change_usage(holdings, change, change->rows[at].account, -change->rows[at].size_bytes);
        change->count++;
    }
    change_submit(holdings, change);
    return 0;
}

void holdings_expire(struct holdings *holdings)
{
    struct server *server = holdings->server;
    struct error error;
    uint64_t freed_bytes = 0;
    const struct blob_evict evict = {.used_before_ms =
                                         clock_utc_ms(server->clock) - keep_ms(holdings)};
    if (use_open_jobs(server, &error) < 0 ||
        blob_store_evict(server->blobs, &evict, &freed_bytes, &error) < 0 ||
        drop_rows(holdings, &error) < 0)
        log_event(LOG_WARN, "chunks_not_expired", "error=\"%s\"", error.message);
    if (freed_bytes > 0)
        log_event(LOG_INFO, "chunks_expired", "bytes=%" PRIu64, freed_bytes);
}
