#include "base/json.h"
#include "server/projection.h"
#include "server/projection_internal.h"
#include "server/tables.h"

static struct store_value id_value(uint64_t id)
{
    return store_integer((int64_t)id);
}

static struct store_value string_value(const char *string)
{
    return store_text(text_of(string));
}

int64_t projection_lease_expires_ms(const struct core *core, const struct lease *lease)
{
    if (lease->state == LEASE_STATE_ENDED)
        return lease->ended_ms;
    const struct core_settings *settings = core_settings(core);
    const int64_t from_ms = lease->started_ms ? lease->started_ms : lease->start_by_ms;
    return from_ms + lease->max_run_ms + settings->grace_ms;
}

void projection_account_row(const struct core *core, const struct account *account,
                            struct store_value *out)
{
    static const struct ledger_account nothing;
    const struct ledger_account *balance = core_balance(core, account->id);
    if (!balance)
        balance = &nothing;
    out[ACCOUNTS_ID] = id_value(account->id);
    out[ACCOUNTS_NAME] = string_value(account->name);
    out[ACCOUNTS_OPENED_MS] = store_integer(account->opened_ms);
    out[ACCOUNTS_GRANTED_MICRO] = store_integer(balance->granted_micro);
    out[ACCOUNTS_EARNED_MICRO] = store_integer(balance->earned_micro);
    out[ACCOUNTS_WITHHELD_MICRO] = store_integer(balance->withheld_micro);
    out[ACCOUNTS_HELD_MICRO] = store_integer(balance->held_micro);
    out[ACCOUNTS_EARNED_TOTAL_MICRO] = store_integer(balance->earned_total_micro);
    out[ACCOUNTS_SPENT_TOTAL_MICRO] = store_integer(balance->spent_total_micro);
    out[ACCOUNTS_PASSWORD] = string_value(account->password);
    out[ACCOUNTS_FREEZE_REASON] = string_value(account->freeze_reason);
    out[ACCOUNTS_DELETED_MS] = store_integer(account->deleted_ms);
    out[ACCOUNTS_GROUP_ID] = id_value(account->group);
    out[ACCOUNTS_GRANT_STATE] = store_integer(account->grant);
    out[ACCOUNTS_TO_EARN_MICRO] = store_integer(account->to_earn_micro);
    out[ACCOUNTS_DORMANT_STEPS] = store_integer(account->dormant_steps);
    out[ACCOUNTS_DORMANT_STEP_MS] = store_integer(account->dormant_step_ms);
}

void projection_group_row(const struct group *group, struct store_value *out)
{
    out[GROUPS_ID] = id_value(group->id);
    out[GROUPS_NAME] = string_value(group->name);
    out[GROUPS_OWNER] = id_value(group->owner);
    out[GROUPS_CREATED_MS] = store_integer(group->created_ms);
    out[GROUPS_MEMBER_COUNT] = id_value(group->member_count);
}

void projection_token_row(const struct token *token, struct store_value *out)
{
    out[TOKENS_ID] = id_value(token->id);
    out[TOKENS_ACCOUNT] = id_value(token->account);
    out[TOKENS_HASH] = store_blob(token->hash, sizeof(token->hash));
    out[TOKENS_SCOPES] = id_value(token->scopes);
    out[TOKENS_EXPIRES_MS] = store_integer(token->expires_ms);
    out[TOKENS_ADDED_MS] = store_integer(token->added_ms);
    out[TOKENS_IS_REVOKED] = store_integer(token->is_revoked);
    out[TOKENS_LABEL] = string_value(token->label);
    out[TOKENS_IS_SESSION] = store_integer(token->is_session);
}

void projection_machine_row(const struct projection *projection, const struct machine *machine,
                            char labels[PROJECTION_LABELS_SIZE], struct store_value *out)
{
    const struct probe *probe = &machine->probe;
    out[MACHINES_ID] = id_value(machine->id);
    out[MACHINES_OWNER] = id_value(machine->owner);
    out[MACHINES_NAME] = string_value(machine->name);
    out[MACHINES_GENERATION] = id_value(machine->generation);
    out[MACHINES_STATE] = store_integer(machine->state);
    out[MACHINES_STATE_CHANGED_MS] = store_integer(machine->state_changed_ms);
    out[MACHINES_YIELD] = store_integer(machine->yield);
    out[MACHINES_ENROLLED_MS] = store_integer(machine->enrolled_ms);
    out[MACHINES_CORES_MILLI] = store_integer(probe->resources.cores_milli);
    out[MACHINES_RAM_BYTES] = store_integer(probe->resources.ram_bytes);
    out[MACHINES_GPUS_MILLI] = store_integer(probe->resources.gpus_milli);
    out[MACHINES_DISK_BYTES] = store_integer(probe->resources.disk_bytes);
    out[MACHINES_SPEED_WEIGHT_MILLI] = store_integer(probe->speed_weight_milli);
    out[MACHINES_CPU_MODEL] = string_value(probe->cpu_model);
    out[MACHINES_LABELS] = string_value(probe->labels);
    out[MACHINES_GPU_MODEL] = string_value(probe->gpu_model);
    out[MACHINES_GPU_RAM_BYTES] = store_integer(probe->gpu_ram_bytes);
    out[MACHINES_BANDWIDTH_KBIT] = store_integer(probe->resources.bandwidth_kbit);
    out[MACHINES_RTT_US] = store_integer(probe->rtt_us);
    out[MACHINES_RAM_BYTES_PER_S] = store_integer(probe->ram_bytes_per_s);
    out[MACHINES_NETWORK] = store_integer(probe_network(probe));
    out[MACHINES_IMAGES] = store_integer(probe->allows_images);
    projection_machine_offers(machine, labels, out);
    const struct reputation *reputation = &machine->reputation;
    out[MACHINES_RELIABILITY_MILLI] = store_integer(reputation_reliability_milli(reputation));
    out[MACHINES_COMPLETED] = store_integer(reputation->completed);
    out[MACHINES_LOST] = store_integer(reputation->lost);
    out[MACHINES_RECLAIMED] = store_integer(reputation->reclaimed);
    out[MACHINES_FAILED] = store_integer(reputation->failed);
    out[MACHINES_COMPLETED_MILLI] = store_integer(reputation->completed_milli);
    out[MACHINES_LOST_MILLI] = store_integer(reputation->lost_milli);
    out[MACHINES_RECLAIMED_MILLI] = store_integer(reputation->reclaimed_milli);
    out[MACHINES_LEASED_MS] = store_integer(reputation->leased_ms);
    out[MACHINES_DELIVERED_MS] = store_integer(reputation->delivered_ms);
    out[MACHINES_TICKS] = store_integer(reputation->ticks);
    out[MACHINES_IS_UNPROVEN] = store_integer(machine->is_unproven);
    out[MACHINES_VERIFIED_MICRO] = store_integer(reputation->earned_micro);
    out[MACHINES_WITHHELD_MICRO] = store_integer(machine->withheld_micro);
    out[MACHINES_LEASED_CORES_MILLI] = store_integer(machine->leased.cores_milli);
    out[MACHINES_LEASED_RAM_BYTES] = store_integer(machine->leased.ram_bytes);
    out[MACHINES_LEASE_COUNT] = store_integer((int64_t)machine->lease_count);
    const struct machine_sums paid = projection_paid(projection, machine->id);
    out[MACHINES_EARNED_MICRO] = store_integer(paid.earned_micro);
    out[MACHINES_FEE_MICRO] = store_integer(paid.fee_micro);
}

/* The core does not know what a spec says; lists show these without reading it. */
static struct store_value spec_value(struct text spec, const char *const *path, size_t path_size)
{
    return store_text(json_find_text(spec, path, path_size));
}

void projection_job_row(const struct core *core, const struct job *job, struct store_value *out)
{
    int64_t ticks = 0, workers = 0;
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *lease = job->leases[i];
        ticks += (int64_t)lease->tick_index;
        workers += lease->role == LEASE_ROLE_WORKER && lease->state != LEASE_STATE_ENDED;
    }
    out[JOBS_ID] = id_value(job->id);
    out[JOBS_ACCOUNT] = id_value(job->request.account);
    out[JOBS_NAME] = string_value(job->request.name);
    out[JOBS_STATE] = store_integer(job->state);
    out[JOBS_REASON] = string_value(job->reason);
    out[JOBS_NUM_NODES] = store_integer(job->request.num_nodes);
    out[JOBS_QUOTE_MICRO] = store_integer(job->quote_micro);
    out[JOBS_HELD_MICRO] = store_integer(core_held_micro(core, job->id));
    out[JOBS_POSTED_MICRO] = store_integer(job->posted_micro);
    out[JOBS_FEE_MICRO] = store_integer(job->fee_micro);
    out[JOBS_SUBMITTED_MS] = store_integer(job->submitted_ms);
    out[JOBS_STARTED_MS] = store_integer(job->started_ms);
    out[JOBS_ENDED_MS] = store_integer(job->ended_ms);
    out[JOBS_TICKS] = store_integer(ticks);
    const struct text spec = job->request.spec;
    out[JOBS_RUNTIME] = spec_value(spec, (const char *const[]){"runtime"}, 1);
    out[JOBS_POLICY] = spec_value(spec, (const char *const[]){"sync", "policy"}, 2);
    out[JOBS_MODEL] = spec_value(spec, (const char *const[]){"train", "model"}, 2);
    out[JOBS_PREDICT] = spec_value(spec, (const char *const[]){"train", "predict"}, 2);
    out[JOBS_NUM_NODES_MAX] = store_integer(job_request_nodes_max(&job->request));
    out[JOBS_WORKER_COUNT] = store_integer(workers);
    out[JOBS_WORKERS_WANTED] = store_integer(job->workers_wanted);
    out[JOBS_MAX_TOTAL_MICRO] = store_integer(job->request.max_total_micro);
    out[JOBS_SUM_HELD_MICRO] = store_integer(job->sums.held_micro);
    out[JOBS_SUM_POSTED_MICRO] = store_integer(job->sums.posted_micro);
    out[JOBS_SUM_FEE_MICRO] = store_integer(job->sums.fee_micro);
    out[JOBS_SUM_VOIDED_MICRO] = store_integer(job->sums.voided_micro);
    out[JOBS_NOT_BEFORE_MS] = store_integer(job->state == JOB_STATE_PENDING ? job->start_ms : 0);
}

void projection_lease_row(const struct core *core, const struct lease *lease,
                          struct store_value *out)
{
    const struct job *job = core_job(core, lease->job);
    out[LEASES_ID] = id_value(lease->id);
    out[LEASES_JOB] = id_value(lease->job);
    out[LEASES_MACHINE] = id_value(lease->machine);
    out[LEASES_PAYEE] = id_value(lease->payee);
    out[LEASES_FENCE] = id_value(lease->fence);
    out[LEASES_ROLE] = store_integer(lease->role);
    out[LEASES_RANK] = id_value(lease->rank);
    out[LEASES_STATE] = store_integer(lease->state);
    out[LEASES_OUTCOME] = store_integer(lease->outcome);
    out[LEASES_REASON] = string_value(lease_reason(lease));
    out[LEASES_IS_UNREACHABLE] = store_integer(core_lease_is_unreachable(core, lease));
    out[LEASES_CORES_MILLI] = store_integer(lease->resources.cores_milli);
    out[LEASES_RAM_BYTES] = store_integer(lease->resources.ram_bytes);
    out[LEASES_DISK_BYTES] = store_integer(lease->resources.disk_bytes);
    out[LEASES_TICK_MS] = store_integer(job ? job->request.tick_ms : 0);
    out[LEASES_OFFERED_MS] = store_integer(lease->offered_ms);
    out[LEASES_STARTED_MS] = store_integer(lease->started_ms);
    out[LEASES_ENDED_MS] = store_integer(lease->ended_ms);
    out[LEASES_EXPIRES_MS] = store_integer(projection_lease_expires_ms(core, lease));
    out[LEASES_TICKS] = id_value(lease->tick_index);
    out[LEASES_WALL_MS] = store_integer(lease->wall_ms);
    out[LEASES_POSTED_MICRO] = store_integer(lease->posted_micro);
    out[LEASES_FEE_MICRO] = store_integer(lease->fee_micro);
    out[LEASES_EXIT_CODE] = store_integer(lease->exit_code);
    out[LEASES_IS_REPLICA] = store_integer(job && job_is_replica(job, lease));
}
