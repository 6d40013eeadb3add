/*
 * Checkpoints: the newest that each job's parameter server has left, for its successor.
 *
 * They are artifacts like others, and the rows of those say where they are after a restart. The hub
 * notes them, the core thread asks for them when it writes a START. The one before the newest is
 * kept, too: a START that names it may be on its way, and a successor that cannot read the newest
 * goes on from it. Those before go.
 */
#include "base/assert.h"
#include "server/holdings.h"
#include "server/hub_internal.h"
#include "server/query.h"

#include <inttypes.h>
#include <stdlib.h>

/* At once: uploads take unequally long, and one that hands over leaves one more. */
enum { BURST = 3 };

struct kept_checkpoint {
    int64_t paced_ns; /* one after the other, the next would be due then; monotonic */
    int64_t swept_ns; /* a refused one was dropped last */
    struct checkpoint_left newest, before;
    bool has_newest, has_before;
};

struct drop {
    struct server *server;
    struct holdings_replaced replaced;
};

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

static struct drop *drop_new(struct hub *hub, const struct holdings_replaced *replaced)
{
    struct drop *drop = calloc(1, sizeof(*drop));
    ASSERT(drop);
    drop->server = hub->server;
    drop->replaced = *replaced;
    return drop;
}

/* Called with the mutex held. What was sent for a refused one goes, too; seldom, for it is work
 * that a machine could have done again and again. NULL: it stays, for the market's retention. */
static struct drop *sweep_refused(struct hub *hub, struct kept_checkpoint *kept,
                                  const struct checkpoint_left *left, int64_t apart_ns)
{
    const int64_t now_ns = hub_now_ns(hub);
    if (!kept->has_newest || (kept->swept_ns > 0 && now_ns - kept->swept_ns < apart_ns))
        return NULL;
    const struct blob_hash *before =
        kept->has_before ? &kept->before.manifest : &kept->newest.manifest;
    if (blob_hash_equal(&left->manifest, &kept->newest.manifest) ||
        blob_hash_equal(&left->manifest, before))
        return NULL;
    kept->swept_ns = now_ns;
    return drop_new(
        hub, &(struct holdings_replaced){.holder = {.account = left->account, .job = left->job},
                                         .left_ms = left->left_ms,
                                         .old = left->manifest,
                                         .later = {kept->newest.manifest, *before}});
}

int checkpoints_pace(struct hub *hub, const struct checkpoint_left *left, int64_t interval_ms,
                     struct error *error)
{
    const int64_t now_ns = hub_now_ns(hub), half_ns = interval_ms * 500000;
    struct drop *drop = NULL;
    pthread_mutex_lock(&hub->live_mutex);
    struct kept_checkpoint *kept = kept_of(hub, left->job);
    const int64_t due_ns = kept->paced_ns > now_ns ? kept->paced_ns : now_ns;
    const bool is_early = due_ns - now_ns > (BURST - 1) * half_ns;
    if (is_early)
        drop = sweep_refused(hub, kept, left, half_ns / 4);
    else
        kept->paced_ns = due_ns + half_ns;
    pthread_mutex_unlock(&hub->live_mutex);
    if (drop)
        loop_post(hub->server->loop, drop_replaced, drop);
    return is_early ? error_set(error, ERROR_EXHAUSTED,
                                "checkpoints come more often than twice in its job's interval of "
                                "%" PRId64 " ms",
                                interval_ms)
                    : 0;
}

/* Called with the mutex held. NULL: there is nothing to drop. */
static struct drop *put_newest(struct hub *hub, struct kept_checkpoint *kept,
                               const struct checkpoint_left *left)
{
    struct drop *drop = NULL;
    if (kept->has_newest && !blob_hash_equal(&left->manifest, &kept->newest.manifest)) {
        if (kept->has_before && !blob_hash_equal(&kept->before.manifest, &left->manifest))
            drop = drop_new(hub, &(struct holdings_replaced){
                                     .holder = {.account = left->account, .job = left->job},
                                     .left_ms = kept->before.left_ms,
                                     .old = kept->before.manifest,
                                     .later = {kept->newest.manifest, left->manifest}});
        kept->before = kept->newest;
        kept->has_before = true;
    }
    kept->newest = *left;
    kept->has_newest = true;
    return drop;
}

void checkpoints_note(struct hub *hub, const struct checkpoint_left *left)
{
    pthread_mutex_lock(&hub->live_mutex);
    struct drop *drop = put_newest(hub, kept_of(hub, left->job), left);
    pthread_mutex_unlock(&hub->live_mutex);
    if (drop)
        loop_post(hub->server->loop, drop_replaced, drop);
}

static struct native_checkpoint native_of(const struct checkpoint_left *left)
{
    struct native_checkpoint checkpoint = {.size_bytes = left->size_bytes};
    memcpy(checkpoint.manifest, left->manifest.bytes, sizeof(checkpoint.manifest));
    return checkpoint;
}

size_t checkpoints_find(struct hub *hub, uint64_t job, struct native_checkpoint out_checkpoints[2])
{
    size_t count = 0;
    pthread_mutex_lock(&hub->live_mutex);
    const struct kept_checkpoint *kept = map_get(&hub->checkpoints, job);
    if (kept && kept->has_newest)
        out_checkpoints[count++] = native_of(&kept->newest);
    if (kept && kept->has_before)
        out_checkpoints[count++] = native_of(&kept->before);
    pthread_mutex_unlock(&hub->live_mutex);
    return count;
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
    if (rows.count == 0 || rows.items[0][ARTIFACTS_MANIFEST].bytes.size != BLOB_HASH_SIZE)
        return 0;
    const struct store_value *row = rows.items[0];
    struct checkpoint_left left = {.job = job->id,
                                   .account = job->request.account,
                                   .size_bytes = (uint64_t)row[ARTIFACTS_SIZE_BYTES].integer,
                                   .left_ms = row[ARTIFACTS_CREATED_MS].integer};
    memcpy(left.manifest.bytes, row[ARTIFACTS_MANIFEST].bytes.data, sizeof(left.manifest.bytes));
    checkpoints_note(hub, &left);
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
