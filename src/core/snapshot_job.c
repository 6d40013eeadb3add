/* Jobs, what is held for them, and their leases in snapshots. */
#include "core/snapshot_internal.h"

static const struct json_field job_fields[] = {
    SCHEMA_ID("id", struct job, id),
    SCHEMA_OBJECT("request", struct job, request, schema_job_request),
    SCHEMA_CHOICE("state", struct job, state, schema_job_states),
    SCHEMA_RANGE("queue_tag", struct job, turn.tag, 0, QUEUE_TAG_MAX),
    SCHEMA_RANGE("queue_finish_tag", struct job, turn.finish_tag, 0, QUEUE_TAG_MAX),
    SCHEMA_CHOICE("outcome", struct job, outcome, schema_job_states),
    SCHEMA_CHARS("reason", struct job, reason),
    SCHEMA_MICRO("quote_micro", struct job, quote_micro),
    SCHEMA_TIME("submitted_ms", struct job, submitted_ms),
    SCHEMA_TIME("start_ms", struct job, start_ms),
    SCHEMA_OBJECT("booked", struct job, booked, schema_lock),
    SCHEMA_TIME("matched_ms", struct job, matched_ms),
    SCHEMA_TIME("started_ms", struct job, started_ms),
    SCHEMA_TIME("stopping_ms", struct job, stopping_ms),
    SCHEMA_TIME("ended_ms", struct job, ended_ms),
    SCHEMA_BOOL("is_short", struct job, is_short),
    SCHEMA_BOOL("is_unhurried", struct job, is_unhurried),
    SCHEMA_MICRO("posted_micro", struct job, posted_micro),
    SCHEMA_MICRO("cancel_fee_micro", struct job, cancel_fee_micro),
    SCHEMA_MICRO("fee_micro", struct job, fee_micro),
    SCHEMA_MICRO("sum_held_micro", struct job, sums.held_micro),
    SCHEMA_MICRO("sum_posted_micro", struct job, sums.posted_micro),
    SCHEMA_MICRO("sum_fee_micro", struct job, sums.fee_micro),
    SCHEMA_MICRO("sum_voided_micro", struct job, sums.voided_micro),
};
const struct json_schema snapshot_job_schema = JSON_SCHEMA("job", job_fields, struct job);

static const struct json_field hold_fields[] = {
    SCHEMA_ID("job", struct ledger_hold, job),
    SCHEMA_ID("account", struct ledger_hold, account),
    SCHEMA_MICRO("granted_micro", struct ledger_hold, granted_micro),
    SCHEMA_MICRO("earned_micro", struct ledger_hold, earned_micro),
};
const struct json_schema snapshot_hold_schema =
    JSON_SCHEMA("hold", hold_fields, struct ledger_hold);

static const struct json_field lease_fields[] = {
    SCHEMA_ID("id", struct lease, id),
    SCHEMA_ID("job", struct lease, job),
    SCHEMA_ID("machine", struct lease, machine),
    SCHEMA_ID("offer", struct lease, offer),
    SCHEMA_ID("payee", struct lease, payee),
    SCHEMA_ID("fence", struct lease, fence),
    SCHEMA_CHOICE("role", struct lease, role, schema_lease_roles),
    SCHEMA_ID("rank", struct lease, rank),
    SCHEMA_CHOICE("state", struct lease, state, schema_lease_states),
    SCHEMA_CHOICE("outcome", struct lease, outcome, schema_lease_outcomes),
    SCHEMA_CHARS("reason", struct lease, reason),
    SCHEMA_TIME("stop_wanted_ms", struct lease, stop_wanted_ms),
    SCHEMA_BOOL("is_reclaimed", struct lease, is_reclaimed),
    SCHEMA_BOOL("is_self_trade", struct lease, is_self_trade),
    SCHEMA_FLAG("is_former", struct lease, is_former),
    SCHEMA_RANGE("max_run_ms", struct lease, max_run_ms, 1, PRICE_RUN_MS_MAX),
    SCHEMA_OBJECT("resources", struct lease, resources, schema_resources),
    SCHEMA_OBJECT("units", struct lease, units, schema_units),
    SCHEMA_OBJECT("lock", struct lease, lock, schema_lock),
    SCHEMA_MICRO("quote_micro", struct lease, quote_micro),
    SCHEMA_RANGE("fee_basis_points", struct lease, fee_basis_points, 0, 10000),
    SCHEMA_RANGE("withheld_basis_points", struct lease, withheld_basis_points, 0, 10000),
    SCHEMA_TIME("offered_ms", struct lease, offered_ms),
    SCHEMA_TIME("start_by_ms", struct lease, start_by_ms),
    SCHEMA_TIME("started_ms", struct lease, started_ms),
    SCHEMA_TIME("ended_ms", struct lease, ended_ms),
    SCHEMA_ID("tick_index", struct lease, tick_index),
    SCHEMA_TIME("wall_ms", struct lease, wall_ms),
    SCHEMA_MICRO("posted_micro", struct lease, posted_micro),
    SCHEMA_MICRO("fee_micro", struct lease, fee_micro),
    SCHEMA_MICRO("withheld_micro", struct lease, withheld_micro),
};
const struct json_schema snapshot_lease_schema = JSON_SCHEMA("lease", lease_fields, struct lease);

int snapshot_restore_job(struct core *core, const void *record, struct error *error)
{
    const struct job *stored = record;
    uint8_t key[CORE_JOB_KEY_SIZE];
    const bool has_key = core_job_key(&stored->request, key);
    if (!snapshot_follows(core, &core->jobs, stored->id) ||
        !core_account(core, stored->request.account) ||
        job_request_check(&stored->request, error) < 0 ||
        (has_key && map_get_text(&core->jobs_by_key, core_bytes(key, sizeof(key)))))
        return snapshot_misfit(error, "job", stored->id);
    struct job *job = snapshot_copy(stored, sizeof(*stored));
    char *spec = calloc(1, stored->request.spec.size + 1);
    ASSERT(spec);
    if (stored->request.spec.size)
        memcpy(spec, stored->request.spec.data, stored->request.spec.size);
    job->request.spec.data = spec;
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
    const struct lease *stored = record;
    struct job *job = map_get(&core->jobs, stored->job);
    struct machine *machine = map_get(&core->machines, stored->machine);
    if (!snapshot_follows(core, &core->leases, stored->id) || !job || !machine ||
        stored->fence == 0 || stored->fence > core->last_fence ||
        job->lease_count >= JOB_LEASES_MAX ||
        (stored->role == LEASE_ROLE_WORKER && !stored->is_former &&
         stored->rank > job->worker_count) ||
        (stored->is_former && (lease_is_open(stored) || !job->request.is_spare)))
        return snapshot_misfit(error, "lease", stored->id);
    struct lease *lease = slab_take(&core->lease_slab);
    *lease = *stored;
    lease->is_spare = job->request.is_spare;
    map_put(&core->leases, lease->id, lease);
    if (lease->is_former) {
        job->former_count++;
        return 0;
    }
    core_attach_lease(core, job, machine, lease, core->time_ms);
    core_index_workers(core, job);
    return 0;
}
