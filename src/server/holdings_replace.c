/* What a checkpoint takes the place of: without this each would count, and lie on the disk, for the
 * market's retention. */
#include "base/assert.h"
#include "base/log.h"
#include "blob/manifest.h"
#include "server/call.h"
#include "server/holdings_internal.h"
#include "server/query.h"

#include <stdlib.h>

/* `kept` has what later checkpoints have, too, and what was looked at already. */
struct replacement {
    struct holdings *holdings;
    struct map kept; /* by hash */
    size_t count;
    struct blob_hash hashes[HOLDINGS_CHANGE_ROWS];
};

static struct text name_of(const struct blob_hash *hash)
{
    return (struct text){(const char *)hash->bytes, sizeof(hash->bytes)};
}

static void replacement_free(struct replacement *replacement)
{
    map_done(&replacement->kept);
    free(replacement);
}

static void keep(struct replacement *replacement, const struct blob_hash *hash)
{
    map_put_text(&replacement->kept, name_of(hash), replacement);
}

/* Much of two checkpoints may be the same. */
static int keep_manifest(struct replacement *replacement, const struct blob_hash *hash,
                         struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct manifest manifest;
    if (manifest_get(arena, replacement->holdings->server->blobs, hash, &manifest, error) < 0)
        return -1;
    keep(replacement, hash);
    for (size_t i = 0; i < manifest.chunks.count; i++)
        keep(replacement, &manifest_chunk(&manifest, i)->hash);
    return 0;
}

/* The rows are gone: what nobody else holds, or is about to, goes, too. */
static void delete_chunks(void *context, const struct error *failure)
{
    struct replacement *replacement = context;
    struct server *server = replacement->holdings->server;
    struct error error;
    for (size_t i = 0; i < replacement->count && !failure; i++) {
        AUTO(arena) struct arena *arena = arena_new(0);
        const struct blob_hash *hash = &replacement->hashes[i];
        const struct store_value *row = NULL;
        if (holdings_are_coming(replacement->holdings, hash))
            continue;
        if (query_one(server, arena, TABLE_HOLDINGS, "hash",
                      store_blob(hash->bytes, sizeof(hash->bytes)), &row, &error) < 0 ||
            (!row && blob_store_delete(server->blobs, hash, &error) < 0 &&
             error.code != ERROR_NOT_FOUND))
            log_event(LOG_WARN, "chunk_not_deleted", "error=\"%s\"", error.message);
    }
    replacement_free(replacement);
}

static int drop_row(struct replacement *replacement, struct holdings_change *change,
                    const struct holdings_replaced *replaced, const struct blob_hash *hash,
                    struct error *error)
{
    struct holdings *holdings = replacement->holdings;
    struct holding holding;
    if (change->count == HOLDINGS_CHANGE_ROWS || map_get_text(&replacement->kept, name_of(hash)))
        return 0;            /* what is too much goes with the retention */
    keep(replacement, hash); /* a checkpoint may have it several times, and it counts once */
    if (holdings_find(holdings, replaced->holder.account, hash, &holding, error) < 0)
        return -1;
    if (!holding.exists || holding.is_fresh || holding.job != replaced->holder.job ||
        holding.stored_ms > replaced->left_ms)
        return 0;
    const size_t at = change->count++;
    change->rows[at].account = replaced->holder.account;
    change->rows[at].hash = replacement->hashes[replacement->count++] = *hash;
    change->rows[at].is_gone = true;
    holdings_change_usage(holdings, change, at, -holding.size_bytes);
    holdings_change_announce(holdings, change, at);
    return 0;
}

static int drop_manifest(struct replacement *replacement, struct holdings_change *change,
                         const struct holdings_replaced *replaced, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct manifest old;
    if (manifest_get(arena, replacement->holdings->server->blobs, &replaced->old, &old, error) < 0)
        return -1;
    for (size_t i = 0; i < old.chunks.count; i++)
        if (drop_row(replacement, change, replaced, &manifest_chunk(&old, i)->hash, error) < 0)
            return -1;
    return drop_row(replacement, change, replaced, &replaced->old, error);
}

static int replace_take(struct replacement *replacement, const struct holdings_replaced *replaced,
                        struct error *error)
{
    for (size_t i = 0; i < HOLDINGS_LATER + replaced->other_count; i++)
        if (keep_manifest(replacement,
                          i < HOLDINGS_LATER ? &replaced->later[i]
                                             : &replaced->others[i - HOLDINGS_LATER],
                          error) < 0) {
            replacement_free(replacement);
            return -1;
        }
    struct holdings_change *change = holdings_change_new();
    const int result = drop_manifest(replacement, change, replaced, error);
    change->done = delete_chunks;
    change->context = replacement;
    holdings_change_submit(replacement->holdings, change); /* what was taken off so far, too */
    return result;
}

void holdings_replace(struct holdings *holdings, const struct holdings_replaced *replaced)
{
    ASSERT(replaced->holder.job);
    struct error error;
    struct replacement *replacement = calloc(1, sizeof(*replacement));
    ASSERT(replacement);
    replacement->holdings = holdings;
    map_init(&replacement->kept);
    if (replace_take(replacement, replaced, &error) < 0)
        log_event(LOG_WARN, "checkpoint_not_dropped", "error=\"%s\"", error.message);
}
