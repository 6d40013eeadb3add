/*
 * Checkpoints: the newest that each job's parameter server has left, for its successor.
 *
 * They are artifacts like others, and the rows of those say where they are after a restart. The hub
 * notes them, the core thread asks for them when it writes a START. The one before the newest is
 * kept, too: a START that names it may be on its way. Those before go.
 */
#include "base/assert.h"
#include "server/holdings.h"
#include "server/hub_internal.h"
#include "server/query.h"

#include <stdlib.h>

struct kept_checkpoint {
    struct native_checkpoint newest;
    struct blob_hash before;
    bool has_before;
};

struct drop {
    struct server *server;
    struct holdings_replaced replaced;
};

static struct blob_hash hash_of(const uint8_t manifest[LEASE_HASH_SIZE])
{
    struct blob_hash hash;
    memcpy(hash.bytes, manifest, sizeof(hash.bytes));
    return hash;
}

static void drop_replaced(void *context)
{
    struct drop *drop = context;
    if (drop->server->holdings)
        holdings_replace(drop->server->holdings, &drop->replaced);
    free(drop);
}

/* Called with the mutex held. */
static struct kept_checkpoint *kept_of(struct hub *hub, uint64_t job)
{
    struct kept_checkpoint *kept = map_get(&hub->checkpoints, job);
    if (!kept) {
        kept = calloc(1, sizeof(*kept));
        ASSERT(kept);
        map_put(&hub->checkpoints, job, kept);
    }
    return kept;
}

void checkpoints_note(struct hub *hub, uint64_t job, uint64_t account,
                      const uint8_t manifest[LEASE_HASH_SIZE], uint64_t size_bytes)
{
    struct drop *drop = NULL;
    pthread_mutex_lock(&hub->live_mutex);
    struct kept_checkpoint *kept = kept_of(hub, job);
    const struct blob_hash newest = hash_of(manifest), last = hash_of(kept->newest.manifest);
    if (kept->newest.size_bytes > 0 && !blob_hash_equal(&newest, &last)) {
        if (kept->has_before && !blob_hash_equal(&kept->before, &newest)) {
            drop = calloc(1, sizeof(*drop));
            ASSERT(drop);
            *drop = (struct drop){hub->server, {account, job, kept->before, {last, newest}}};
        }
        kept->before = last;
        kept->has_before = true;
    }
    memcpy(kept->newest.manifest, manifest, sizeof(kept->newest.manifest));
    kept->newest.size_bytes = size_bytes;
    pthread_mutex_unlock(&hub->live_mutex);
    if (drop)
        loop_post(hub->server->loop, drop_replaced, drop);
}

bool checkpoints_find(struct hub *hub, uint64_t job, struct native_checkpoint *out_checkpoint)
{
    pthread_mutex_lock(&hub->live_mutex);
    const struct kept_checkpoint *kept = map_get(&hub->checkpoints, job);
    if (kept)
        *out_checkpoint = kept->newest;
    pthread_mutex_unlock(&hub->live_mutex);
    return kept != NULL;
}

void checkpoints_forget(struct hub *hub, uint64_t job)
{
    pthread_mutex_lock(&hub->live_mutex);
    free(map_remove(&hub->checkpoints, job));
    pthread_mutex_unlock(&hub->live_mutex);
}

static int load_one(struct hub *hub, const struct job *job, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct store_filter filters[] = {
        {"job", STORE_EQUAL, store_integer((int64_t)job->id)},
        {"name", STORE_EQUAL, store_text(TEXT(LEASE_CHECKPOINT_NAME))},
    };
    const struct store_query query = {
        .table = &tables[TABLE_ARTIFACTS], .filters = filters, .filter_count = 2, .limit = 1};
    struct query_rows rows;
    if (query_all(hub->server, arena, &query, &rows, error) < 0)
        return -1;
    if (rows.count > 0 && rows.items[0][ARTIFACTS_MANIFEST].bytes.size == LEASE_HASH_SIZE)
        checkpoints_note(hub, job->id, job->request.account,
                         (const uint8_t *)rows.items[0][ARTIFACTS_MANIFEST].bytes.data,
                         (uint64_t)rows.items[0][ARTIFACTS_SIZE_BYTES].integer);
    return 0;
}

int checkpoints_load(struct hub *hub, const struct core *core, struct error *error)
{
    for (size_t i = 0; i < core_job_count(core); i++) {
        const struct job *job = core_job_at(core, i);
        if (job_state_has_leases(job->state) && job_has_server(job) &&
            load_one(hub, job, error) < 0)
            return error_wrap(error, "look for checkpoints");
    }
    return 0;
}

void checkpoints_done(struct hub *hub)
{
    for (size_t i = 0; i < hub->checkpoints.count; i++)
        free(hub->checkpoints.entries[i].value);
    map_done(&hub->checkpoints);
}
