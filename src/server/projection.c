#include "server/projection.h"

#include "base/assert.h"
#include "base/map.h"
#include "server/projection_internal.h"
#include "server/statement.h"
#include "server/tables.h"

#include <stdlib.h>

/* Of a rebuild: even with the longest specs they fit into a batch. */
enum { ROWS_PER_COMMIT = 500 };

/* Ids marked in this batch, each once. */
struct mark_set {
    struct map map;
};

struct projection {
    struct mark_set accounts, groups, tokens, machines, offers, jobs, leases, specs;
    struct map paid; /* machine -> struct machine_sums, owned */
    struct statement_pages *pages;
    uint64_t proven_machine; /* whose withheld credits the next entry releases */
};

static void mark(struct mark_set *set, uint64_t id)
{
    if (id)
        map_put(&set->map, id, set); /* any pointer will do */
}

static void mark_set_clear(struct mark_set *set)
{
    map_clear(&set->map);
}

static void each_mark_set(struct projection *projection, void (*function)(struct mark_set *))
{
    function(&projection->accounts);
    function(&projection->groups);
    function(&projection->tokens);
    function(&projection->machines);
    function(&projection->offers);
    function(&projection->jobs);
    function(&projection->leases);
    function(&projection->specs);
}

static void mark_set_init(struct mark_set *set)
{
    map_init(&set->map);
}

static void mark_set_done(struct mark_set *set)
{
    map_done(&set->map);
}

struct projection *projection_new(void)
{
    struct projection *projection = calloc(1, sizeof(*projection));
    ASSERT(projection);
    each_mark_set(projection, mark_set_init);
    map_init(&projection->paid);
    projection->pages = statement_pages_new();
    return projection;
}

static void forget_paid(struct projection *projection)
{
    for (size_t i = 0; i < projection->paid.count; i++)
        free(projection->paid.entries[i].value);
    map_done(&projection->paid);
    map_init(&projection->paid);
}

void projection_free(struct projection *projection)
{
    if (!projection)
        return;
    each_mark_set(projection, mark_set_done);
    forget_paid(projection);
    map_done(&projection->paid);
    statement_pages_free(projection->pages);
    free(projection);
}

static void add_paid(struct projection *projection, uint64_t machine, int64_t amount_micro,
                     int64_t fee_micro)
{
    struct machine_sums *paid = map_get(&projection->paid, machine);
    if (!paid) {
        paid = calloc(1, sizeof(*paid));
        ASSERT(paid);
        map_put(&projection->paid, machine, paid);
    }
    paid->earned_micro += amount_micro - fee_micro;
    paid->fee_micro += fee_micro;
}

struct machine_sums projection_paid(const struct projection *projection, uint64_t machine)
{
    const struct machine_sums *paid = map_get(&projection->paid, machine);
    return paid ? *paid : (struct machine_sums){0};
}

void projection_reset(struct projection *projection, const struct core *core)
{
    each_mark_set(projection, mark_set_clear);
    statement_pages_clear(projection->pages);
    forget_paid(projection);
    /* These two no event opens. */
    mark(&projection->accounts, ACCOUNT_MINT);
    mark(&projection->accounts, ACCOUNT_OPERATOR);
    for (size_t i = 0; i < core_lease_count(core); i++) {
        const struct lease *lease = core_lease_at(core, i);
        add_paid(projection, lease->machine, lease->posted_micro, lease->fee_micro);
    }
}

static void project_entry(struct projection *projection, const struct core *core,
                          const struct event *event, struct store_batch *batch)
{
    const struct ledger_entry *entry = &event->entry_posted;
    const struct lease *lease = entry->lease ? core_lease(core, entry->lease) : NULL;
    const uint64_t subjects[] = {
        entry->from_account,
        entry->to_account != entry->from_account ? entry->to_account : 0,
        entry->job,
        lease                                 ? lease->machine
        : entry->kind == LEDGER_ENTRY_RELEASE ? projection->proven_machine
                                              : 0,
    };
    for (size_t i = 0; i < sizeof(subjects) / sizeof(*subjects); i++)
        if (subjects[i])
            statement_pages_add(projection->pages, subjects[i], event->sequence, batch);
    mark(&projection->accounts, entry->from_account);
    mark(&projection->accounts, entry->to_account);
    mark(&projection->jobs, entry->job);
    mark(&projection->leases, entry->lease);
}

static void mark_lease(struct projection *projection, const struct core *core, uint64_t id)
{
    const struct lease *lease = core_lease(core, id);
    if (!lease)
        return;
    mark(&projection->leases, id);
    mark(&projection->jobs, lease->job);
    mark(&projection->machines, lease->machine);
}

/* As one that an event made a lease of, or ended one of. */
static void mark_lease_and_offer(struct projection *projection, const struct core *core,
                                 uint64_t id)
{
    const struct lease *lease = core_lease(core, id);
    mark_lease(projection, core, id);
    mark(&projection->offers, lease ? lease->offer : 0);
}

static void mark_machine(struct projection *projection, const struct core *core, uint64_t id)
{
    mark(&projection->machines, id);
    const struct machine *machine = core_machine(core, id);
    for (size_t i = 0; machine && i < machine->lease_count; i++)
        mark(&projection->leases, machine->leases[i]->id); /* whether it is reachable changed */
    for (size_t i = 0; machine && i < machine_spare_count(machine); i++)
        mark(&projection->leases, machine->spare->leases[i]->id);
}

static void mark_offer(struct projection *projection, const struct core *core, uint64_t offer,
                       uint64_t machine)
{
    mark(&projection->offers, offer);
    mark_machine(projection, core, machine);
}

static void mark_job(struct projection *projection, const struct core *core, uint64_t id)
{
    mark(&projection->jobs, id);
    const struct job *job = core_job(core, id);
    for (size_t i = 0; job && i < job->lease_count; i++)
        mark(&projection->leases, job->leases[i]->id);
}

/* When they expire follows from the settings. */
static void mark_open_leases(struct projection *projection, const struct core *core)
{
    for (size_t i = 0; i < core_lease_count(core); i++)
        if (lease_is_open(core_lease_at(core, i)))
            mark(&projection->leases, core_lease_at(core, i)->id);
}

static void mark_machines_of(struct projection *projection, const struct core *core,
                             uint64_t account)
{
    for (size_t i = 0; i < core_machine_count(core); i++)
        if (core_machine_at(core, i)->owner == account)
            mark(&projection->machines, core_machine_at(core, i)->id);
}

/* With one that is deleted goes what was withheld of its machines' earnings. */
static void mark_account(struct projection *projection, const struct core *core, uint64_t id)
{
    mark(&projection->accounts, id);
    const struct account *account = core_account(core, id);
    if (account && account->deleted_ms)
        mark_machines_of(projection, core, id);
}

static void mark_group(struct projection *projection, uint64_t group, uint64_t account)
{
    mark(&projection->groups, group);
    mark(&projection->accounts, account);
}

static void project_tick(struct projection *projection, const struct core *core,
                         const struct event *event)
{
    const struct lease *lease = core_lease(core, event->lease_ticked.lease);
    if (lease)
        add_paid(projection, lease->machine, event->lease_ticked.amount_micro,
                 event->lease_ticked.fee_micro);
    mark_lease(projection, core, event->lease_ticked.lease);
}

void projection_event(struct projection *projection, const struct core *core,
                      const struct event *event, struct store_batch *batch)
{
    switch (event->kind) {
    /* Events of one kind of thing begin with the same fields, so any of them reads these. */
    case EVENT_ACCOUNT_OPENED:
    case EVENT_PASSWORD_SET:
    case EVENT_ACCOUNT_DELETED:
    case EVENT_ACCOUNT_SEEN:
    case EVENT_GRANT_GIVEN:
    case EVENT_GRANT_RELEASED:
    case EVENT_DORMANCY_ADVANCED:
    case EVENT_COST_BILLED:
        mark_account(projection, core, event->account_seen.account);
        return;
    case EVENT_ACCOUNT_FROZEN: /* its machines take no leases meanwhile */
    case EVENT_ACCOUNT_UNFROZEN:
        mark_account(projection, core, event->account_frozen.account);
        mark_machines_of(projection, core, event->account_frozen.account);
        return;
    case EVENT_GROUP_CREATED:
    case EVENT_GROUP_JOINED:
    case EVENT_GROUP_LEFT:
        mark_group(projection, event->group_joined.group, event->group_joined.account);
        return;
    case EVENT_TOKEN_ADDED:
        mark(&projection->tokens, event->token_added.token);
        return;
    case EVENT_TOKEN_REVOKED:
        mark(&projection->tokens, event->token_revoked.token);
        return;
    case EVENT_MACHINE_ENROLLED:
        mark_machine(projection, core, event->machine_enrolled.machine);
        return;
    case EVENT_MACHINE_PROBED:
    case EVENT_MACHINE_STATE_CHANGED:
    case EVENT_MACHINE_YIELDED:
        mark_machine(projection, core, event->machine_probed.machine);
        return;
    case EVENT_MACHINE_PROVEN:
        projection->proven_machine = event->machine_proven.machine;
        mark_machine(projection, core, event->machine_proven.machine);
        return;
    case EVENT_OFFER_SET:
    case EVENT_OFFER_PAUSED:
    case EVENT_OFFER_RENEWED:
    case EVENT_OFFER_TURNED:
    case EVENT_OFFER_WITHDRAWN:
        mark_offer(projection, core, event->offer_set.offer, event->offer_set.machine);
        return;
    case EVENT_JOB_SUBMITTED:
        mark(&projection->jobs, event->job_submitted.job);
        mark(&projection->specs, event->job_submitted.job);
        return;
    case EVENT_JOB_WAITS: /* no table says it */
        return;
    case EVENT_JOB_NOTED:
    case EVENT_JOB_DUE:
    case EVENT_JOB_STATE_CHANGED:
        mark_job(projection, core, event->job_due.job);
        return;
    case EVENT_LEASE_OFFERED:
        mark_lease_and_offer(projection, core, event->lease_offered.lease);
        return;
    case EVENT_LEASE_STARTED:
    case EVENT_LEASE_STOP_WANTED:
    case EVENT_LEASE_PROMOTED:
    case EVENT_LEASE_RENEWED:
    case EVENT_LEASE_EXTENDED:
        mark_lease(projection, core, event->lease_started.lease);
        return;
    case EVENT_LEASE_TICKED:
        project_tick(projection, core, event);
        return;
    case EVENT_JOB_EXTENDED:
    case EVENT_JOB_RESIZED:
        mark(&projection->jobs, event->job_extended.job);
        return;
    case EVENT_LEASE_ENDED:
        mark_lease_and_offer(projection, core, event->lease_ended.lease);
        return;
    case EVENT_BOOKING_FORFEITED:
        if (event->booking_forfeited.machine) /* of which something may be withheld */
            mark_machine(projection, core, event->booking_forfeited.machine);
        return;
    case EVENT_ENTRY_POSTED:
        project_entry(projection, core, event, batch);
        return;
    case EVENT_SETTINGS_CHANGED:
        mark_open_leases(projection, core);
        return;
    case EVENT_KARMA_SHARED: /* in no table */
    case EVENT_DAY_BEGAN:
    case EVENT_RULES_CHANGED:
    case EVENT_SLOT_CLOSED:
    case EVENT_CODE_ADDED:
    case EVENT_CODE_REMOVED:
    case EVENT_PAIR_MEASURED:
    case EVENT_KIND_COUNT:
        return;
    }
}

int projection_write_all(struct projection *projection, const struct core *core,
                         struct store_batch *batch,
                         int (*commit)(void *context, struct error *error), void *context,
                         struct error *error)
{
    size_t marked = 0;
#define WRITE_EACH(set_, noun_)                                                                    \
    for (size_t i = 0; i < core_##noun_##_count(core); i++) {                                      \
        mark(&projection->set_, core_##noun_##_at(core, i)->id);                                   \
        if (++marked % ROWS_PER_COMMIT)                                                            \
            continue;                                                                              \
        projection_flush(projection, core, batch);                                                 \
        if (commit(context, error) < 0)                                                            \
            return -1;                                                                             \
    }
    WRITE_EACH(accounts, account)
    WRITE_EACH(groups, group)
    WRITE_EACH(tokens, token)
    WRITE_EACH(machines, machine)
    WRITE_EACH(offers, offer)
    WRITE_EACH(jobs, job)
    WRITE_EACH(specs, job)
    WRITE_EACH(leases, lease)
#undef WRITE_EACH
    projection_flush(projection, core, batch);
    return commit(context, error);
}

static void flush_machines(struct projection *projection, const struct core *core,
                           struct store_batch *batch)
{
    struct store_value row[STORE_COLUMN_MAX];
    char labels[PROJECTION_LABELS_SIZE];
    for (size_t i = 0; i < projection->machines.map.count; i++) {
        const struct machine *machine = core_machine(core, projection->machines.map.entries[i].key);
        if (!machine)
            continue;
        projection_machine_row(projection, machine, labels, row);
        store_batch_put(batch, &tables[TABLE_MACHINES], row, MACHINES_COLUMN_COUNT);
    }
}

/* One that is gone leaves the table too. */
static void flush_offers(struct projection *projection, const struct core *core,
                         struct store_batch *batch)
{
    struct store_value row[STORE_COLUMN_MAX];
    char accounts[PROJECTION_ACCOUNTS_SIZE];
    for (size_t i = 0; i < projection->offers.map.count; i++) {
        const uint64_t id = projection->offers.map.entries[i].key;
        const struct offer *offer = core_offer(core, id);
        if (offer) {
            projection_offer_row(offer, accounts, row);
            store_batch_put(batch, &tables[TABLE_OFFERS], row, OFFERS_COLUMN_COUNT);
        } else {
            const struct store_value key = store_integer((int64_t)id);
            store_batch_delete(batch, &tables[TABLE_OFFERS], &key, 1);
        }
    }
}

void projection_flush_statements(struct projection *projection, struct store_batch *batch)
{
    statement_pages_flush(projection->pages, batch);
}

static void flush_jobs(struct projection *projection, const struct core *core,
                       struct store_batch *batch)
{
    struct store_value row[STORE_COLUMN_MAX];
    for (size_t i = 0; i < projection->specs.map.count; i++) {
        const struct job *job = core_job(core, projection->specs.map.entries[i].key);
        if (!job)
            continue;
        row[JOB_SPECS_JOB] = store_integer((int64_t)job->id);
        row[JOB_SPECS_SPEC] = store_text(job->request.spec);
        store_batch_put(batch, &tables[TABLE_JOB_SPECS], row, JOB_SPECS_COLUMN_COUNT);
    }
    for (size_t i = 0; i < projection->jobs.map.count; i++) {
        const struct job *job = core_job(core, projection->jobs.map.entries[i].key);
        if (!job)
            continue;
        projection_job_row(core, job, row);
        store_batch_put(batch, &tables[TABLE_JOBS], row, JOBS_COLUMN_COUNT);
    }
    for (size_t i = 0; i < projection->leases.map.count; i++) {
        const struct lease *lease = core_lease(core, projection->leases.map.entries[i].key);
        if (!lease)
            continue;
        projection_lease_row(core, lease, row);
        store_batch_put(batch, &tables[TABLE_LEASES], row, LEASES_COLUMN_COUNT);
    }
}

void projection_flush(struct projection *projection, const struct core *core,
                      struct store_batch *batch)
{
    struct store_value row[STORE_COLUMN_MAX];
    for (size_t i = 0; i < projection->accounts.map.count; i++) {
        const struct account *account = core_account(core, projection->accounts.map.entries[i].key);
        if (!account)
            continue;
        projection_account_row(core, account, row);
        store_batch_put(batch, &tables[TABLE_ACCOUNTS], row, ACCOUNTS_COLUMN_COUNT);
    }
    for (size_t i = 0; i < projection->groups.map.count; i++) {
        const struct group *group = core_group(core, projection->groups.map.entries[i].key);
        if (!group)
            continue;
        projection_group_row(group, row);
        store_batch_put(batch, &tables[TABLE_GROUPS], row, GROUPS_COLUMN_COUNT);
    }
    for (size_t i = 0; i < projection->tokens.map.count; i++) {
        const struct token *token = core_token(core, projection->tokens.map.entries[i].key);
        if (!token)
            continue;
        projection_token_row(token, row);
        store_batch_put(batch, &tables[TABLE_TOKENS], row, TOKENS_COLUMN_COUNT);
    }
    flush_machines(projection, core, batch);
    flush_offers(projection, core, batch);
    flush_jobs(projection, core, batch);
    projection_flush_statements(projection, batch);
    each_mark_set(projection, mark_set_clear);
}
