/* Jobs, what is held for them, and their leases in snapshots. */
#include "core/snapshot_internal.h"

/* With what is kept elsewhere. */
struct job_record {
    struct job job;
    struct price_lock booked;
};

static const struct json_field job_fields[] = {
    SCHEMA_ID("id", struct job_record, job.id),
    SCHEMA_OBJECT("request", struct job_record, job.request, schema_job_request),
    SCHEMA_CHOICE("state", struct job_record, job.state, schema_job_states),
    SCHEMA_RANGE("queue_tag", struct job_record, job.turn.tag, 0, QUEUE_TAG_MAX),
    SCHEMA_RANGE("queue_finish_tag", struct job_record, job.turn.finish_tag, 0, QUEUE_TAG_MAX),
    SCHEMA_CHOICE("outcome", struct job_record, job.outcome, schema_job_states),
    SCHEMA_CHARS("reason", struct job_record, job.reason),
    SCHEMA_MICRO("quote_micro", struct job_record, job.quote_micro),
    SCHEMA_TIME("submitted_ms", struct job_record, job.submitted_ms),
    SCHEMA_TIME("start_ms", struct job_record, job.start_ms),
    SCHEMA_OBJECT("booked", struct job_record, booked, schema_lock),
    SCHEMA_TIME("matched_ms", struct job_record, job.matched_ms),
    SCHEMA_TIME("started_ms", struct job_record, job.started_ms),
    SCHEMA_TIME("stopping_ms", struct job_record, job.stopping_ms),
    SCHEMA_TIME("ended_ms", struct job_record, job.ended_ms),
    SCHEMA_BOOL("is_short", struct job_record, job.is_short),
    SCHEMA_BOOL("is_unhurried", struct job_record, job.is_unhurried),
    SCHEMA_MICRO("posted_micro", struct job_record, job.posted_micro),
    SCHEMA_MICRO("cancel_fee_micro", struct job_record, job.cancel_fee_micro),
    SCHEMA_MICRO("fee_micro", struct job_record, job.fee_micro),
    SCHEMA_MICRO("sum_held_micro", struct job_record, job.sums.held_micro),
    SCHEMA_MICRO("sum_posted_micro", struct job_record, job.sums.posted_micro),
    SCHEMA_MICRO("sum_fee_micro", struct job_record, job.sums.fee_micro),
    SCHEMA_MICRO("sum_voided_micro", struct job_record, job.sums.voided_micro),
    SCHEMA_OR_NONE("workers_wanted", struct job_record, job.workers_wanted, JOB_NODES_MAX),
};
const struct json_schema snapshot_job_schema = JSON_SCHEMA("job", job_fields, struct job_record);

void snapshot_write_job(struct buffer *out, const struct job *job)
{
    struct job_record record = {.job = *job};
    if (job->booked)
        record.booked = *job->booked;
    snapshot_write_line(out, &snapshot_job_schema, &record);
}

static const struct json_field hold_fields[] = {
    SCHEMA_ID("job", struct ledger_hold, job),
    SCHEMA_ID("account", struct ledger_hold, account),
    SCHEMA_MICRO("granted_micro", struct ledger_hold, granted_micro),
    SCHEMA_MICRO("earned_micro", struct ledger_hold, earned_micro),
};
const struct json_schema snapshot_hold_schema =
    JSON_SCHEMA("hold", hold_fields, struct ledger_hold);

struct lease_record {
    struct lease lease;
    char reason[LEASE_REASON_SIZE];
    struct price_lock lock;
};

static const struct json_field lease_fields[] = {
    SCHEMA_ID("id", struct lease_record, lease.id),
    SCHEMA_ID("job", struct lease_record, lease.job),
    SCHEMA_ID("machine", struct lease_record, lease.machine),
    SCHEMA_ID("offer", struct lease_record, lease.offer),
    SCHEMA_ID("payee", struct lease_record, lease.payee),
    SCHEMA_ID("fence", struct lease_record, lease.fence),
    SCHEMA_CHOICE("role", struct lease_record, lease.role, schema_lease_roles),
    SCHEMA_ID("rank", struct lease_record, lease.rank),
    SCHEMA_CHOICE("state", struct lease_record, lease.state, schema_lease_states),
    SCHEMA_CHOICE("outcome", struct lease_record, lease.outcome, schema_lease_outcomes),
    SCHEMA_OR_NONE("exit_code", struct lease_record, lease.exit_code, LEASE_EXIT_CODE_MAX),
    SCHEMA_CHARS("reason", struct lease_record, reason),
    SCHEMA_TIME("stop_wanted_ms", struct lease_record, lease.stop_wanted_ms),
    SCHEMA_BOOL("is_reclaimed", struct lease_record, lease.is_reclaimed),
    SCHEMA_BOOL("is_self_trade", struct lease_record, lease.is_self_trade),
    SCHEMA_FLAG("is_former", struct lease_record, lease.is_former),
    SCHEMA_FLAG("is_surplus", struct lease_record, lease.is_surplus),
    SCHEMA_RANGE("max_run_ms", struct lease_record, lease.max_run_ms, 1, PRICE_RUN_MS_MAX),
    SCHEMA_OBJECT("resources", struct lease_record, lease.resources, schema_resources),
    SCHEMA_OBJECT("units", struct lease_record, lease.units, schema_units),
    SCHEMA_OBJECT("lock", struct lease_record, lock, schema_lock),
    SCHEMA_MICRO("quote_micro", struct lease_record, lease.quote_micro),
    SCHEMA_RANGE("fee_basis_points", struct lease_record, lease.fee_basis_points, 0, 10000),
    SCHEMA_RANGE("withheld_basis_points", struct lease_record, lease.withheld_basis_points, 0,
                 10000),
    SCHEMA_TIME("offered_ms", struct lease_record, lease.offered_ms),
    SCHEMA_TIME("start_by_ms", struct lease_record, lease.start_by_ms),
    SCHEMA_TIME("started_ms", struct lease_record, lease.started_ms),
    SCHEMA_TIME("ended_ms", struct lease_record, lease.ended_ms),
    SCHEMA_ID("tick_index", struct lease_record, lease.tick_index),
    SCHEMA_TIME("wall_ms", struct lease_record, lease.wall_ms),
    SCHEMA_MICRO("posted_micro", struct lease_record, lease.posted_micro),
    SCHEMA_MICRO("fee_micro", struct lease_record, lease.fee_micro),
    SCHEMA_MICRO("withheld_micro", struct lease_record, lease.withheld_micro),
};
const struct json_schema snapshot_lease_schema =
    JSON_SCHEMA("lease", lease_fields, struct lease_record);

void snapshot_write_lease(struct buffer *out, const struct lease *lease)
{
    struct lease_record record = {.lease = *lease, .lock = *lease->lock};
    snprintf(record.reason, sizeof(record.reason), "%s", lease_reason(lease));
    snapshot_write_line(out, &snapshot_lease_schema, &record);
}

int snapshot_restore_job(struct core *core, const void *record, struct error *error)
{
    const struct job_record *read = record;
    const struct job *stored = &read->job;
    uint8_t key[CORE_JOB_KEY_SIZE];
    const bool has_key = core_job_key(&stored->request, key);
    if (!snapshot_follows(core, &core->jobs, stored->id) ||
        !core_account(core, stored->request.account) ||
        job_request_check(&stored->request, error) < 0 ||
        (stored->workers_wanted > 0) != (stored->request.workers_first > 0) ||
        (has_key && map_get_text(&core->jobs_by_key, core_bytes(key, sizeof(key)))))
        return snapshot_misfit(error, "job", stored->id);
    struct job *job = slab_take(&core->job_slab);
    *job = *stored;
    char *spec = calloc(1, stored->request.spec.size + 1);
    ASSERT(spec);
    if (stored->request.spec.size)
        memcpy(spec, stored->request.spec.data, stored->request.spec.size);
    job->request.spec.data = spec;
    if (read->booked.slot_count > 0)
        job->booked = price_locks_take(&core->price_locks, &read->booked);
    map_put(&core->jobs, job->id, job);
    if (has_key)
        map_put_text(&core->jobs_by_key, core_bytes(key, sizeof(key)), job);
    core_set_job_timers(core, job);
    job->is_short = false;
    core_index_job(core, job);
    if (stored->is_short && !job->waiting_numbers[0])
        return snapshot_misfit(error, "job", stored->id);
    core_mark_short(core, job, stored->is_short);
    return 0;
}

int snapshot_restore_hold(struct core *core, const void *record, struct error *error)
{
    return ledger_restore_hold(core->ledger, record, error);
}

int snapshot_restore_lease(struct core *core, const void *record, struct error *error)
{
    const struct lease_record *read = record;
    const struct lease *stored = &read->lease;
    struct job *job = map_get(&core->jobs, stored->job);
    struct machine *machine = map_get(&core->machines, stored->machine);
    if (!snapshot_follows(core, &core->leases, stored->id) || !job || !machine ||
        stored->fence == 0 || stored->fence > core->last_fence ||
        job->lease_count >= JOB_LEASES_MAX ||
        (stored->role == LEASE_ROLE_WORKER && !stored->is_former &&
         stored->rank > job->worker_count) ||
        (stored->role == LEASE_ROLE_SERVER &&
         stored->rank >= job_request_server_ranks(&job->request)) ||
        (stored->is_former && (lease_is_open(stored) || !job->request.is_spare)))
        return snapshot_misfit(error, "lease", stored->id);
    struct lease *lease = slab_take(&core->lease_slab);
    *lease = *stored;
    lease->is_spare = job->request.is_spare;
    lease->reason = core_copy_reason(read->reason);
    lease->lock = price_locks_take(&core->price_locks, &read->lock);
    map_put(&core->leases, lease->id, lease);
    if (lease->is_former) {
        job->former_count++;
        return 0;
    }
    core_attach_lease(core, job, machine, lease, core->time_ms);
    core_index_workers(core, job);
    return 0;
}
