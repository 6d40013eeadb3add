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
    bool is_expiry;
    size_t count;
    struct {
        uint64_t account;
        struct blob_hash hash;
        int64_t size_bytes;
        int64_t stored_ms;
        int64_t added_bytes; /* to what its account uses */
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
    bool is_expiring;  /* old rows are on their way: none is dropped twice */
};

static void drop_old_rows(struct holdings *holdings);

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

static void add_usage(struct holdings *holdings, uint64_t account, int64_t added_bytes)
{
    struct usage *usage = map_get(&holdings->usages, account);
    if (usage)
        usage->bytes = usage->bytes + added_bytes > 0 ? usage->bytes + added_bytes : 0;
}

/* A row that could not be written is not there: its account sends the chunk again. */
static void forget_change(struct holdings *holdings, const struct change *change, bool has_failed)
{
    char key[KEY_SIZE];
    for (size_t i = 0; i < change->count; i++) {
        const struct text name = key_of(change->rows[i].account, &change->rows[i].hash, key);
        if (map_get_text(&holdings->fresh, name) == change)
            map_remove_text(&holdings->fresh, name);
        if (has_failed)
            add_usage(holdings, change->rows[i].account, -change->rows[i].added_bytes);
    }
    if (!change->is_expiry)
        return;
    holdings->is_expiring = false;
    if (!has_failed && change->count == EXPIRE_ROWS)
        drop_old_rows(holdings); /* there may be more */
}

static void change_done(struct engine_request *request, const struct error *error)
{
    struct change *change = (struct change *)request;
    if (error)
        log_event(LOG_WARN, "holdings_not_written", "error=\"%s\"", error->message);
    if (change->holdings)
        forget_change(change->holdings, change, error != NULL);
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

/* NULL: there is none. */
static int find_row(struct holdings *holdings, struct arena *arena, uint64_t account,
                    const struct blob_hash *hash, const struct store_value **out_row,
                    struct error *error)
{
    const struct store_filter filters[] = {
        {"account", STORE_EQUAL, store_integer((int64_t)account)},
        {"hash", STORE_EQUAL, store_blob(hash->bytes, sizeof(hash->bytes))},
    };
    const struct store_query query = {
        .table = &tables[TABLE_HOLDINGS], .filters = filters, .filter_count = 2, .limit = 1};
    struct query_rows rows;
    if (query_all(holdings->server, arena, &query, &rows, error) < 0)
        return -1;
    *out_row = rows.count ? rows.items[0] : NULL;
    return 0;
}

/* What the account's row of the chunk counts already: the chunk was gone, its row not yet. */
static int64_t counted_bytes(struct holdings *holdings, uint64_t account,
                             const struct blob_hash *hash)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct store_value *row = NULL;
    struct error ignored; /* as in change_usage() */
    if (find_row(holdings, arena, account, hash, &row, &ignored) < 0 || !row)
        return 0;
    return row[HOLDINGS_SIZE_BYTES].integer;
}

int holdings_check_room(struct holdings *holdings, uint64_t account, const struct blob_hash *hash,
                        uint64_t bytes, struct error *error)
{
    const int64_t wanted = holdings->server->options.account_quota_bytes;
    const int64_t quota = wanted > 0 ? wanted : ACCOUNT_QUOTA_BYTES;
    int64_t used = 0;
    if (holdings_bytes(holdings, account, &used, error) < 0)
        return -1;
    if (used - counted_bytes(holdings, account, hash) + (int64_t)bytes > quota)
        return error_set(error, ERROR_EXHAUSTED,
                         "this account has used up what it may store on this market");
    return 0;
}

/* Of the change's row `at`. */
static void change_usage(struct holdings *holdings, struct change *change, size_t at,
                         int64_t added_bytes)
{
    struct error error;
    const uint64_t account = change->rows[at].account;
    const struct usage *usage = usage_of(holdings, account, &error);
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
    const struct store_value *row = NULL;
    if (find_row(holdings, arena, account, hash, &row, error) < 0)
        return -1;
    *out_has = row != NULL;
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
    change_usage(holdings, change, 0, (int64_t)bytes - counted_bytes(holdings, account, hash));
    map_put_text(&holdings->fresh, key_of(account, hash, key), change);
    change_submit(holdings, change);
}

/* ---- From before there were holdings ----------------------------------------------------------
 */

enum { ADOPT_JOBS = 1000 };

struct adoption {
    struct holdings *holdings;
    struct change *change; /* the next */
    uint64_t account;
    int64_t now_ms;
};

static void adoption_submit(struct adoption *adoption)
{
    change_submit(adoption->holdings, adoption->change);
    adoption->change = change_new();
}

/* What is fresh stays so until this thread is back in its loop: nothing is counted twice. */
static void adopt_chunk(struct adoption *adoption, const struct blob_hash *hash)
{
    struct holdings *holdings = adoption->holdings;
    struct change *change = adoption->change;
    const size_t at = change->count;
    char key[KEY_SIZE];
    uint64_t bytes = 0;
    struct error ignored; /* it is gone */
    const struct text name = key_of(adoption->account, hash, key);
    if (blob_store_size(holdings->server->blobs, hash, &bytes, &ignored) < 0 ||
        map_get_text(&holdings->fresh, name))
        return;
    change->rows[at].account = adoption->account;
    change->rows[at].hash = *hash;
    change->rows[at].size_bytes = (int64_t)bytes;
    change->rows[at].stored_ms = adoption->now_ms;
    change->count++;
    change_usage(holdings, change, at, (int64_t)bytes);
    map_put_text(&holdings->fresh, name, change);
    if (change->count == EXPIRE_ROWS)
        adoption_submit(adoption);
}

static void adopt_manifest(struct adoption *adoption, struct arena *arena, const void *bytes)
{
    struct manifest manifest;
    struct blob_hash hash;
    struct error ignored; /* it is gone */
    memcpy(hash.bytes, bytes, sizeof(hash.bytes));
    if (manifest_get(arena, adoption->holdings->server->blobs, &hash, &manifest, &ignored) < 0)
        return;
    adopt_chunk(adoption, &hash);
    for (size_t i = 0; i < manifest.chunks.count; i++)
        adopt_chunk(adoption, &manifest_chunk(&manifest, i)->hash);
}

/* Its inputs, and what it left. */
static int adopt_job(struct adoption *adoption, struct store_value job, struct error *error)
{
    struct server *server = adoption->holdings->server;
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct store_value *row = NULL;
    struct job_spec spec;
    struct error ignored; /* a job of another time has nothing to adopt */
    if (query_one(server, arena, TABLE_JOB_SPECS, "job", job, &row, error) < 0)
        return -1;
    if (row && job_spec_read(arena, row[JOB_SPECS_SPEC].bytes, &spec, &ignored) == 0)
        for (size_t i = 0; i < spec.input_count; i++)
            adopt_manifest(adoption, arena, spec.inputs[i].manifest);
    const struct store_filter filter = {"job", STORE_EQUAL, job};
    const struct store_query query = {
        .table = &tables[TABLE_ARTIFACTS], .filters = &filter, .filter_count = 1};
    struct query_rows rows;
    if (query_all(server, arena, &query, &rows, error) < 0)
        return -1;
    for (size_t i = 0; i < rows.count; i++)
        if (rows.items[i][ARTIFACTS_MANIFEST].bytes.size == BLOB_HASH_SIZE)
            adopt_manifest(adoption, arena, rows.items[i][ARTIFACTS_MANIFEST].bytes.data);
    return 0;
}

/* What was counted until now was never taken off again. */
static int forget_usages(struct adoption *adoption, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct store_query query = {.table = &tables[TABLE_USAGE]};
    struct query_rows rows;
    if (query_all(adoption->holdings->server, arena, &query, &rows, error) < 0)
        return -1;
    for (size_t i = 0; i < rows.count; i++) {
        const uint64_t account = (uint64_t)rows.items[i][USAGE_ACCOUNT].integer;
        struct usage *usage = usage_of(adoption->holdings, account, error);
        if (!usage)
            return -1;
        usage->bytes = 0;
        adoption->change->usages[adoption->change->usage_count++].account = account;
        if (adoption->change->usage_count == EXPIRE_ROWS)
            adoption_submit(adoption);
    }
    adoption_submit(adoption);
    return 0;
}

static int adopt_jobs(struct adoption *adoption, struct error *error)
{
    uint64_t last = 0;
    struct query_rows rows;
    do {
        AUTO(arena) struct arena *arena = arena_new(0);
        const struct store_filter filter = {"id", STORE_GREATER, store_integer((int64_t)last)};
        const struct store_query query = {.table = &tables[TABLE_JOBS],
                                          .filters = &filter,
                                          .filter_count = 1,
                                          .limit = ADOPT_JOBS};
        if (query_all(adoption->holdings->server, arena, &query, &rows, error) < 0)
            return -1;
        for (size_t i = 0; i < rows.count; i++) {
            adoption->account = (uint64_t)rows.items[i][JOBS_ACCOUNT].integer;
            if (adopt_job(adoption, rows.items[i][JOBS_ID], error) < 0)
                return -1;
            last = (uint64_t)rows.items[i][JOBS_ID].integer;
        }
    } while (rows.count == ADOPT_JOBS);
    return 0;
}

int holdings_adopt(struct holdings *holdings, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct store_query query = {.table = &tables[TABLE_HOLDINGS], .limit = 1};
    struct query_rows rows;
    if (query_all(holdings->server, arena, &query, &rows, error) < 0)
        return -1;
    if (rows.count > 0)
        return 0;
    struct adoption adoption = {.holdings = holdings,
                                .change = change_new(),
                                .now_ms = clock_utc_ms(holdings->server->clock)};
    const int result = forget_usages(&adoption, error) < 0 ? -1 : adopt_jobs(&adoption, error);
    if (holdings->fresh.count > 0)
        log_event(LOG_INFO, "chunks_adopted", "count=%zu", holdings->fresh.count);
    change_submit(holdings, adoption.change);
    return result;
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
static struct change *expiry_of(struct holdings *holdings, const struct query_rows *rows,
                                int64_t now_ms)
{
    struct server *server = holdings->server;
    struct change *change = change_new();
    change->is_expiry = true;
    for (size_t i = 0; i < rows->count; i++) {
        const struct store_value *row = rows->items[i];
        const size_t at = change->count;
        if (row[HOLDINGS_HASH].bytes.size != BLOB_HASH_SIZE)
            continue;
        memcpy(change->rows[at].hash.bytes, row[HOLDINGS_HASH].bytes.data, BLOB_HASH_SIZE);
        change->rows[at].account = (uint64_t)row[HOLDINGS_ACCOUNT].integer;
        change->rows[at].size_bytes = row[HOLDINGS_SIZE_BYTES].integer;
        change->rows[at].stored_ms = now_ms;
        change->rows[at].is_gone = !blob_store_has(server->blobs, &change->rows[at].hash);
        if (change->rows[at].is_gone)
            change_usage(holdings, change, at, -change->rows[at].size_bytes);
        change->count++;
    }
    return change;
}

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
    if (holdings->is_expiring)
        return 0;
    if (query_all(server, arena, &query, &rows, error) < 0)
        return -1;
    if (rows.count == 0)
        return 0;
    holdings->is_expiring = true;
    change_submit(holdings, expiry_of(holdings, &rows, now_ms));
    return 0;
}

static void drop_old_rows(struct holdings *holdings)
{
    struct error error;
    if (drop_rows(holdings, &error) < 0)
        log_event(LOG_WARN, "chunks_not_expired", "error=\"%s\"", error.message);
}

void holdings_expire(struct holdings *holdings)
{
    struct server *server = holdings->server;
    struct error error;
    uint64_t freed_bytes = 0;
    const struct blob_evict evict = {.used_before_ms =
                                         clock_utc_ms(server->clock) - keep_ms(holdings)};
    if (use_open_jobs(server, &error) < 0 ||
        blob_store_evict(server->blobs, &evict, &freed_bytes, &error) < 0)
        log_event(LOG_WARN, "chunks_not_expired", "error=\"%s\"", error.message);
    else
        drop_old_rows(holdings);
    if (freed_bytes > 0)
        log_event(LOG_INFO, "chunks_expired", "bytes=%" PRIu64, freed_bytes);
}
