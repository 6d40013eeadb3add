/* Retention: what nobody used for long goes. */
#include "base/log.h"
#include "blob/manifest.h"
#include "runtime/job_spec.h"
#include "server/call.h"
#include "server/holdings_internal.h"
#include "server/query.h"

#include <inttypes.h>
#include <string.h>

enum { OPEN_JOBS_MAX = 10000 };

int64_t holdings_keep_ms(const struct holdings *holdings)
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
static struct holdings_change *expiry_of(struct holdings *holdings, const struct query_rows *rows,
                                         int64_t now_ms)
{
    struct server *server = holdings->server;
    struct holdings_change *change = holdings_change_new();
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
        change->rows[at].job = (uint64_t)row[HOLDINGS_JOB].integer;
        change->rows[at].is_gone = !blob_store_has(server->blobs, &change->rows[at].hash);
        if (change->rows[at].is_gone)
            holdings_change_usage(holdings, change, at, -change->rows[at].size_bytes);
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
                                        store_integer(now_ms - holdings_keep_ms(holdings))};
    const struct store_query query = {.table = &tables[TABLE_HOLDINGS],
                                      .filters = &filter,
                                      .filter_count = 1,
                                      .limit = HOLDINGS_CHANGE_ROWS};
    struct query_rows rows;
    if (holdings->is_expiring)
        return 0;
    if (query_all(server, arena, &query, &rows, error) < 0)
        return -1;
    if (rows.count == 0)
        return 0;
    holdings->is_expiring = true;
    holdings_change_submit(holdings, expiry_of(holdings, &rows, now_ms));
    return 0;
}

void holdings_drop_old_rows(struct holdings *holdings)
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
                                         clock_utc_ms(server->clock) - holdings_keep_ms(holdings)};
    if (use_open_jobs(server, &error) < 0 ||
        blob_store_evict(server->blobs, &evict, &freed_bytes, &error) < 0)
        log_event(LOG_WARN, "chunks_not_expired", "error=\"%s\"", error.message);
    else
        holdings_drop_old_rows(holdings);
    if (freed_bytes > 0)
        log_event(LOG_INFO, "chunks_expired", "bytes=%" PRIu64, freed_bytes);
}
