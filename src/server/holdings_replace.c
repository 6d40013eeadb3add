/* What a checkpoint takes the place of: without this each would count, and lie on the disk, for the
 * market's retention. */
#include "base/assert.h"
#include "base/log.h"
#include "blob/manifest.h"
#include "runtime/job_spec.h"
#include "runtime/native.h"
#include "server/call.h"
#include "server/holdings_internal.h"
#include "server/query.h"

#include <stdlib.h>
#include <string.h>

enum { OPEN_JOBS_MAX = 1000 };

struct replacement {
    struct holdings *holdings;
    int64_t since_ms; /* the job's: what was stored before is not its checkpoint's */
    size_t count;
    struct blob_hash hashes[HOLDINGS_CHANGE_ROWS];
};

static bool names(const struct manifest *manifest, const struct blob_hash *own,
                  const struct blob_hash *hash)
{
    if (blob_hash_equal(own, hash))
        return true;
    for (size_t i = 0; i < manifest->chunks.count; i++)
        if (blob_hash_equal(&manifest_chunk(manifest, i)->hash, hash))
            return true;
    return false;
}

/* A job that goes on from a checkpoint may have sent the same bytes; and what a machine calls a
 * checkpoint may be anything. */
static int is_input(struct server *server, uint64_t account, const struct manifest *old,
                    const struct blob_hash *old_hash, bool *out_is_input, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct store_filter filters[] = {
        {"account", STORE_EQUAL, store_integer((int64_t)account)},
        {"state", STORE_LESS, store_integer(JOB_STATE_SUCCEEDED)},
    };
    const struct store_query query = {.table = &tables[TABLE_JOBS],
                                      .filters = filters,
                                      .filter_count = 2,
                                      .limit = OPEN_JOBS_MAX};
    struct query_rows jobs;
    *out_is_input = true; /* unless all were looked at */
    if (query_all(server, arena, &query, &jobs, error) < 0)
        return -1;
    for (size_t i = 0; i < jobs.count; i++) {
        const struct store_value *row = NULL;
        struct job_spec spec;
        if (query_one(server, arena, TABLE_JOB_SPECS, "job", jobs.items[i][JOBS_ID], &row, error) <
            0)
            return -1;
        if (!row || job_spec_read(arena, row[JOB_SPECS_SPEC].bytes, &spec, error) < 0)
            continue;
        for (size_t k = 0; k < spec.input_count; k++) {
            struct manifest input;
            struct blob_hash hash;
            struct error ignored; /* what is not here shares nothing */
            memcpy(hash.bytes, spec.inputs[k].manifest, sizeof(hash.bytes));
            if (manifest_get(arena, server->blobs, &hash, &input, &ignored) < 0)
                continue;
            if (names(old, old_hash, &hash))
                return 0;
            for (size_t j = 0; j < input.chunks.count; j++)
                if (names(old, old_hash, &manifest_chunk(&input, j)->hash))
                    return 0;
        }
    }
    *out_is_input = jobs.count == OPEN_JOBS_MAX;
    return 0;
}

/* The rows are gone: what nobody else holds goes, too. */
static void delete_chunks(void *context, const struct error *failure)
{
    struct replacement *replacement = context;
    struct server *server = replacement->holdings->server;
    struct error error;
    for (size_t i = 0; i < replacement->count && !failure; i++) {
        AUTO(arena) struct arena *arena = arena_new(0);
        const struct blob_hash *hash = &replacement->hashes[i];
        const struct store_value *row = NULL;
        if (query_one(server, arena, TABLE_HOLDINGS, "hash",
                      store_blob(hash->bytes, sizeof(hash->bytes)), &row, &error) < 0 ||
            (!row && blob_store_delete(server->blobs, hash, &error) < 0 &&
             error.code != ERROR_NOT_FOUND))
            log_event(LOG_WARN, "chunk_not_deleted", "error=\"%s\"", error.message);
    }
    free(replacement);
}

static int drop_row(struct holdings *holdings, struct holdings_change *change, uint64_t account,
                    const struct blob_hash *hash, struct replacement *replacement,
                    struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct store_value *row = NULL;
    if (change->count == HOLDINGS_CHANGE_ROWS)
        return 0; /* the rest goes with the retention */
    for (size_t i = 0; i < replacement->count; i++)
        if (blob_hash_equal(&replacement->hashes[i], hash))
            return 0; /* a checkpoint may have it several times, and it counts once */
    if (holdings_find_row(holdings, arena, account, hash, &row, error) < 0)
        return -1;
    if (!row || row[HOLDINGS_STORED_MS].integer < replacement->since_ms)
        return 0;
    const size_t at = change->count++;
    change->rows[at].account = account;
    change->rows[at].hash = replacement->hashes[replacement->count++] = *hash;
    change->rows[at].is_gone = true;
    holdings_change_usage(holdings, change, at, -row[HOLDINGS_SIZE_BYTES].integer);
    return 0;
}

/* Whether a later checkpoint has it, too: much of two may be the same. */
static int is_kept(struct server *server, const struct blob_hash *later, size_t later_count,
                   const struct blob_hash *hash, bool *out_is_kept, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    *out_is_kept = false;
    for (size_t i = 0; i < later_count && !*out_is_kept; i++) {
        struct manifest manifest;
        if (manifest_get(arena, server->blobs, &later[i], &manifest, error) < 0)
            return -1;
        *out_is_kept = names(&manifest, &later[i], hash);
    }
    return 0;
}

static int drop_unless_kept(struct holdings *holdings, struct holdings_change *change,
                            const struct holdings_replaced *replaced, const struct blob_hash *hash,
                            struct replacement *replacement, struct error *error)
{
    bool is_kept_later;
    if (is_kept(holdings->server, replaced->later, HOLDINGS_LATER, hash, &is_kept_later, error) < 0)
        return -1;
    return is_kept_later ? 0
                         : drop_row(holdings, change, replaced->account, hash, replacement, error);
}

static int replace(struct holdings *holdings, const struct holdings_replaced *replaced,
                   struct error *error)
{
    struct server *server = holdings->server;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct manifest old;
    const struct store_value *job = NULL;
    bool is_input_too;
    if (manifest_get(arena, server->blobs, &replaced->old, &old, error) < 0 ||
        query_one(server, arena, TABLE_JOBS, "id", store_integer((int64_t)replaced->job), &job,
                  error) < 0 ||
        is_input(server, replaced->account, &old, &replaced->old, &is_input_too, error) < 0)
        return -1;
    if (!job || is_input_too)
        return 0;
    struct replacement *replacement = calloc(1, sizeof(*replacement));
    ASSERT(replacement);
    replacement->holdings = holdings;
    replacement->since_ms = job[JOBS_SUBMITTED_MS].integer;
    struct holdings_change *change = holdings_change_new();
    int result = 0;
    for (size_t i = 0; i < old.chunks.count && result == 0; i++)
        result = drop_unless_kept(holdings, change, replaced, &manifest_chunk(&old, i)->hash,
                                  replacement, error);
    if (result == 0)
        result = drop_unless_kept(holdings, change, replaced, &replaced->old, replacement, error);
    change->done = delete_chunks;
    change->context = replacement;
    holdings_change_submit(holdings, change); /* what was taken off so far, too */
    return result;
}

void holdings_replace(struct holdings *holdings, const struct holdings_replaced *replaced)
{
    struct error error;
    if (replace(holdings, replaced, &error) < 0)
        log_event(LOG_WARN, "checkpoint_not_dropped", "error=\"%s\"", error.message);
}
