/* Chunks from before there were holdings. */
#include "base/log.h"
#include "blob/manifest.h"
#include "runtime/job_spec.h"
#include "server/call.h"
#include "server/holdings_internal.h"
#include "server/query.h"

#include <string.h>

enum { ADOPT_JOBS = 1000 };

struct adoption {
    struct holdings *holdings;
    struct holdings_change *change; /* the next */
    uint64_t account;
    int64_t now_ms;
};

static void adoption_submit(struct adoption *adoption)
{
    holdings_change_submit(adoption->holdings, adoption->change);
    adoption->change = holdings_change_new();
}

/* What is fresh stays so until this thread is back in its loop: nothing is counted twice. */
static void adopt_chunk(struct adoption *adoption, const struct blob_hash *hash)
{
    struct holdings *holdings = adoption->holdings;
    struct holdings_change *change = adoption->change;
    const size_t at = change->count;
    char key[HOLDINGS_KEY_SIZE];
    uint64_t bytes = 0;
    struct error ignored; /* it is gone */
    const struct text name = holdings_key(adoption->account, hash, key);
    if (blob_store_size(holdings->server->blobs, hash, &bytes, &ignored) < 0 ||
        map_get_text(&holdings->fresh, name))
        return;
    change->rows[at].account = adoption->account;
    change->rows[at].hash = *hash;
    change->rows[at].size_bytes = (int64_t)bytes;
    change->rows[at].stored_ms = adoption->now_ms;
    change->count++;
    holdings_change_usage(holdings, change, at, (int64_t)bytes);
    holdings_change_announce(holdings, change, at);
    if (change->count == HOLDINGS_CHANGE_ROWS)
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
        struct holdings_usage *usage = holdings_usage_of(adoption->holdings, account, error);
        if (!usage)
            return -1;
        usage->bytes = 0;
        adoption->change->usages[adoption->change->usage_count++].account = account;
        if (adoption->change->usage_count == HOLDINGS_CHANGE_ROWS)
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
                                .change = holdings_change_new(),
                                .now_ms = clock_utc_ms(holdings->server->clock)};
    const int result = forget_usages(&adoption, error) < 0 ? -1 : adopt_jobs(&adoption, error);
    if (holdings->fresh.count > 0)
        log_event(LOG_INFO, "chunks_adopted", "count=%zu", holdings->fresh.count);
    holdings_change_submit(holdings, adoption.change);
    return result;
}
