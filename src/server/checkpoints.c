/*
 * Checkpoints: the newest that each job's parameter server, or each rank of a borrower's program,
 * has left, for its successor.
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
    struct blob_hash others[];
};

static void drop_replaced(void *context)
{
    struct drop *drop = context;
    if (drop->server->holdings)
        holdings_replace(drop->server->holdings, &drop->replaced);
    free(drop);
}

static uint64_t key_of(uint64_t job, uint64_t slot)
{
    ASSERT(slot < 1u << CHECKPOINT_SLOT_BITS);
    return job << CHECKPOINT_SLOT_BITS | slot;
}

/* Called with the mutex held. */
static struct kept_checkpoint *kept_of(struct hub *hub, const struct checkpoint_left *left)
{
    const uint64_t key = key_of(left->job, left->slot);
    struct kept_checkpoint *kept = map_get(&hub->checkpoints, key);
    if (!kept) {
        kept = calloc(1, sizeof(*kept));
        ASSERT(kept);
        map_put(&hub->checkpoints, key, kept);
    }
    return kept;
}

/* What is dropped is not among them: two ranks that leave the same keep it. */
static void add_others(struct drop *drop, const struct kept_checkpoint *kept)
{
    if (kept->has_newest && !blob_hash_equal(&kept->newest.manifest, &drop->replaced.old))
        drop->others[drop->replaced.other_count++] = kept->newest.manifest;
    if (kept->has_before && !blob_hash_equal(&kept->before.manifest, &drop->replaced.old))
        drop->others[drop->replaced.other_count++] = kept->before.manifest;
}

/* Called with the mutex held. */
static struct drop *drop_new(struct hub *hub, const struct holdings_replaced *replaced)
{
    const uint64_t job = replaced->holder.job;
    size_t count = 0;
    for (size_t i = 0; i < hub->checkpoints.count; i++)
        count += hub->checkpoints.entries[i].key >> CHECKPOINT_SLOT_BITS == job;
    struct drop *drop = calloc(1, sizeof(*drop) + 2 * count * sizeof(drop->others[0]));
    ASSERT(drop);
    drop->server = hub->server;
    drop->replaced = *replaced;
    drop->replaced.others = drop->others;
    for (size_t i = 0; i < hub->checkpoints.count; i++) {
        const struct kept_checkpoint *kept = hub->checkpoints.entries[i].value;
        if (hub->checkpoints.entries[i].key >> CHECKPOINT_SLOT_BITS == job)
            add_others(drop, kept);
    }
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
    struct kept_checkpoint *kept = kept_of(hub, left);
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
    struct drop *drop = put_newest(hub, kept_of(hub, left), left);
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

size_t checkpoints_find(struct hub *hub, uint64_t job, uint64_t slot,
                        struct native_checkpoint out_checkpoints[2])
{
    size_t count = 0;
    pthread_mutex_lock(&hub->live_mutex);
    const struct kept_checkpoint *kept = map_get(&hub->checkpoints, key_of(job, slot));
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
    for (size_t i = hub->checkpoints.count; i-- > 0;)
        if (hub->checkpoints.entries[i].key >> CHECKPOINT_SLOT_BITS == job)
            free(map_remove(&hub->checkpoints, hub->checkpoints.entries[i].key));
    pthread_mutex_unlock(&hub->live_mutex);
}

static struct lease_checkpoint newest_of(struct hub *hub, const struct hub_lease *lease,
                                         uint64_t slot)
{
    struct native_checkpoint found[2];
    struct lease_checkpoint newest = {0};
    if (lease->is_command && checkpoints_find(hub, lease->job, slot, found) > 0) {
        memcpy(newest.manifest, found[0].manifest, sizeof(newest.manifest));
        newest.size_bytes = found[0].size_bytes;
    }
    return newest;
}

void checkpoints_wanted(struct hub_machine *machine, const struct lease_fence *wanted)
{
    struct hub *hub = machine->hub;
    const struct hub_lease *lease = dispatch_find(machine, wanted->lease, wanted->fence);
    if (!lease)
        return;
    const struct lease_message message = {
        .type = LEASE_MESSAGE_CHECKPOINTS,
        .checkpoints = {.lease = lease->id,
                        .fence = lease->fence,
                        .of_job = newest_of(hub, lease, CHECKPOINT_SLOT_JOB),
                        .of_rank = newest_of(hub, lease, checkpoint_slot(lease->rank))}};
    hub_send(machine, &message);
}

static uint64_t most_ranks(const struct job *job)
{
    const int64_t most = job->request.num_nodes_max;
    return (uint64_t)(most > job->request.num_nodes ? most : job->request.num_nodes);
}

static int load_one(struct hub *hub, const struct job *job, uint64_t slot, struct error *error)
{
    char name[64];
    snprintf(name, sizeof(name), slot == CHECKPOINT_SLOT_JOB ? "%s" : "%s-rank%" PRIu64,
             LEASE_CHECKPOINT_NAME, slot - 1);
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct store_filter filters[] = {
        {"job", STORE_EQUAL, store_integer((int64_t)job->id)},
        {"name", STORE_EQUAL, store_text(text_of(name))},
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
                                   .slot = slot,
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
        const uint64_t slots = job_has_server(job) ? 1 : 1 + most_ranks(job);
        for (uint64_t slot = 0; job_state_has_leases(job->state) && slot < slots; slot++)
            if (load_one(hub, job, slot, error) < 0)
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
