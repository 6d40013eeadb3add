/*
 * Checkpoints: the newest that each job's parameter server has left, for its successor.
 *
 * They are artifacts like others, and the rows of those say where they are after a restart. The hub
 * notes them, the core thread asks for them when it writes a START.
 */
#include "base/assert.h"
#include "server/hub_internal.h"
#include "server/query.h"

#include <stdlib.h>

void checkpoints_note(struct hub *hub, uint64_t job, const uint8_t manifest[LEASE_HASH_SIZE],
                      uint64_t size_bytes)
{
    struct native_checkpoint *noted = calloc(1, sizeof(*noted));
    ASSERT(noted);
    memcpy(noted->manifest, manifest, sizeof(noted->manifest));
    noted->size_bytes = size_bytes;
    pthread_mutex_lock(&hub->live_mutex);
    free(map_remove(&hub->checkpoints, job));
    map_put(&hub->checkpoints, job, noted);
    pthread_mutex_unlock(&hub->live_mutex);
}

bool checkpoints_find(struct hub *hub, uint64_t job, struct native_checkpoint *out_checkpoint)
{
    pthread_mutex_lock(&hub->live_mutex);
    const struct native_checkpoint *noted = map_get(&hub->checkpoints, job);
    if (noted)
        *out_checkpoint = *noted;
    pthread_mutex_unlock(&hub->live_mutex);
    return noted != NULL;
}

void checkpoints_forget(struct hub *hub, uint64_t job)
{
    pthread_mutex_lock(&hub->live_mutex);
    free(map_remove(&hub->checkpoints, job));
    pthread_mutex_unlock(&hub->live_mutex);
}

static int load_one(struct hub *hub, uint64_t job, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct store_filter filters[] = {
        {"job", STORE_EQUAL, store_integer((int64_t)job)},
        {"name", STORE_EQUAL, store_text(TEXT(LEASE_CHECKPOINT_NAME))},
    };
    const struct store_query query = {
        .table = &tables[TABLE_ARTIFACTS], .filters = filters, .filter_count = 2, .limit = 1};
    struct query_rows rows;
    if (query_all(hub->server, arena, &query, &rows, error) < 0)
        return -1;
    if (rows.count > 0 && rows.items[0][ARTIFACTS_MANIFEST].bytes.size == LEASE_HASH_SIZE)
        checkpoints_note(hub, job, (const uint8_t *)rows.items[0][ARTIFACTS_MANIFEST].bytes.data,
                         (uint64_t)rows.items[0][ARTIFACTS_SIZE_BYTES].integer);
    return 0;
}

int checkpoints_load(struct hub *hub, const struct core *core, struct error *error)
{
    for (size_t i = 0; i < core_job_count(core); i++) {
        const struct job *job = core_job_at(core, i);
        if (job_state_has_leases(job->state) && job_has_server(job) &&
            load_one(hub, job->id, error) < 0)
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
