#include "server/tables.h"

#include "core/event.h"

#define PLAIN(name_, type_)                                                                        \
    {                                                                                              \
        .name = #name_, .type = (type_)                                                            \
    }
#define KEY(name_, type_)                                                                          \
    {                                                                                              \
        .name = #name_, .type = (type_), .is_key = true                                            \
    }
#define INDEXED(name_, type_)                                                                      \
    {                                                                                              \
        .name = #name_, .type = (type_), .is_indexed = true                                        \
    }

#define TABLE(name_)                                                                               \
    {                                                                                              \
        .name = #name_, .columns = name_##_columns,                                                \
        .column_count = sizeof(name_##_columns) / sizeof(*name_##_columns)                         \
    }

static const struct store_column accounts_columns[] = {
    KEY(id, STORE_INTEGER),
    INDEXED(name, STORE_TEXT),
    PLAIN(opened_ms, STORE_INTEGER),
    PLAIN(granted_micro, STORE_INTEGER),
    PLAIN(earned_micro, STORE_INTEGER),
    PLAIN(withheld_micro, STORE_INTEGER),
    PLAIN(held_micro, STORE_INTEGER),
    PLAIN(earned_total_micro, STORE_INTEGER),
    PLAIN(spent_total_micro, STORE_INTEGER),
    PLAIN(password, STORE_TEXT),
    PLAIN(freeze_reason, STORE_TEXT),
    PLAIN(deleted_ms, STORE_INTEGER),
    INDEXED(group_id, STORE_INTEGER),
    PLAIN(grant_state, STORE_INTEGER),
    PLAIN(to_earn_micro, STORE_INTEGER),
    PLAIN(dormant_steps, STORE_INTEGER),
    PLAIN(dormant_step_ms, STORE_INTEGER),
};

static const struct store_column groups_columns[] = {
    KEY(id, STORE_INTEGER),
    INDEXED(name, STORE_TEXT),
    PLAIN(owner, STORE_INTEGER),
    PLAIN(created_ms, STORE_INTEGER),
    PLAIN(member_count, STORE_INTEGER),
};

static const struct store_column tokens_columns[] = {
    KEY(id, STORE_INTEGER),           INDEXED(account, STORE_INTEGER),
    INDEXED(hash, STORE_BLOB),        PLAIN(scopes, STORE_INTEGER),
    PLAIN(expires_ms, STORE_INTEGER), PLAIN(added_ms, STORE_INTEGER),
    PLAIN(is_revoked, STORE_INTEGER), PLAIN(label, STORE_TEXT),
    PLAIN(is_session, STORE_INTEGER),
};

static const struct store_column machines_columns[] = {
    KEY(id, STORE_INTEGER),
    INDEXED(owner, STORE_INTEGER),
    INDEXED(name, STORE_TEXT),
    PLAIN(generation, STORE_INTEGER),
    PLAIN(state, STORE_INTEGER),
    PLAIN(state_changed_ms, STORE_INTEGER),
    PLAIN(yield, STORE_INTEGER),
    PLAIN(enrolled_ms, STORE_INTEGER),
    PLAIN(cores_milli, STORE_INTEGER),
    PLAIN(ram_bytes, STORE_INTEGER),
    PLAIN(gpus_milli, STORE_INTEGER),
    PLAIN(disk_bytes, STORE_INTEGER),
    INDEXED(speed_weight_milli, STORE_INTEGER),
    PLAIN(cpu_model, STORE_TEXT),
    PLAIN(labels, STORE_TEXT),
    PLAIN(offer_cores_milli, STORE_INTEGER),
    PLAIN(offer_ram_bytes, STORE_INTEGER),
    PLAIN(offer_gpus_milli, STORE_INTEGER),
    PLAIN(offer_disk_bytes, STORE_INTEGER),
    PLAIN(offer_roles, STORE_INTEGER),
    PLAIN(offer_is_paused, STORE_INTEGER),
    INDEXED(minimum_core_micro, STORE_INTEGER),
    PLAIN(minimum_ram_micro, STORE_INTEGER),
    PLAIN(minimum_gpu_micro, STORE_INTEGER),
    PLAIN(minimum_disk_micro, STORE_INTEGER),
    PLAIN(leased_cores_milli, STORE_INTEGER),
    PLAIN(leased_ram_bytes, STORE_INTEGER),
    PLAIN(lease_count, STORE_INTEGER),
    PLAIN(earned_micro, STORE_INTEGER),
    PLAIN(offer_count, STORE_INTEGER),
    PLAIN(offer_state, STORE_INTEGER),
    PLAIN(offer_turns_ms, STORE_INTEGER),
    INDEXED(reliability_milli, STORE_INTEGER),
    PLAIN(completed, STORE_INTEGER),
    PLAIN(lost, STORE_INTEGER),
    PLAIN(reclaimed, STORE_INTEGER),
    PLAIN(failed, STORE_INTEGER),
    PLAIN(completed_milli, STORE_INTEGER),
    PLAIN(lost_milli, STORE_INTEGER),
    PLAIN(reclaimed_milli, STORE_INTEGER),
    PLAIN(leased_ms, STORE_INTEGER),
    PLAIN(delivered_ms, STORE_INTEGER),
    PLAIN(ticks, STORE_INTEGER),
    PLAIN(is_unproven, STORE_INTEGER),
    PLAIN(verified_micro, STORE_INTEGER),
    PLAIN(withheld_micro, STORE_INTEGER),
    PLAIN(fee_micro, STORE_INTEGER),
    PLAIN(gpu_model, STORE_TEXT),
    PLAIN(gpu_ram_bytes, STORE_INTEGER),
    PLAIN(bandwidth_kbit, STORE_INTEGER),
    INDEXED(rtt_us, STORE_INTEGER),
    PLAIN(ram_bytes_per_s, STORE_INTEGER),
    PLAIN(availability, STORE_INTEGER),
    INDEXED(free_cores_milli, STORE_INTEGER),
    PLAIN(free_ram_bytes, STORE_INTEGER),
    PLAIN(free_gpus_milli, STORE_INTEGER),
    PLAIN(free_disk_bytes, STORE_INTEGER),
    PLAIN(offer_labels, STORE_TEXT),
    PLAIN(network, STORE_INTEGER),
    PLAIN(images, STORE_INTEGER),
};

static const struct store_column offers_columns[] = {
    KEY(id, STORE_INTEGER),
    INDEXED(machine, STORE_INTEGER),
    INDEXED(owner, STORE_INTEGER),
    PLAIN(state, STORE_INTEGER),
    PLAIN(turns_ms, STORE_INTEGER),
    INDEXED(renew_ms, STORE_INTEGER),
    PLAIN(cores_milli, STORE_INTEGER),
    PLAIN(ram_bytes, STORE_INTEGER),
    PLAIN(gpus_milli, STORE_INTEGER),
    PLAIN(disk_bytes, STORE_INTEGER),
    PLAIN(bandwidth_kbit, STORE_INTEGER),
    PLAIN(gpu_model, STORE_TEXT),
    PLAIN(gpu_ram_bytes, STORE_INTEGER),
    PLAIN(roles, STORE_INTEGER),
    PLAIN(minimum_core_micro, STORE_INTEGER),
    PLAIN(minimum_ram_micro, STORE_INTEGER),
    PLAIN(minimum_gpu_micro, STORE_INTEGER),
    PLAIN(minimum_disk_micro, STORE_INTEGER),
    PLAIN(max_lease_ms, STORE_INTEGER),
    PLAIN(spare, STORE_INTEGER),
    PLAIN(paused_until_ms, STORE_INTEGER),
    PLAIN(network, STORE_INTEGER),
    PLAIN(install, STORE_INTEGER),
    PLAIN(labels, STORE_TEXT),
    PLAIN(audience, STORE_INTEGER),
    PLAIN(audience_group, STORE_INTEGER),
    PLAIN(accounts, STORE_TEXT),
    PLAIN(schedule, STORE_TEXT),
    PLAIN(leased_cores_milli, STORE_INTEGER),
    PLAIN(lease_count, STORE_INTEGER),
};

static const struct store_column jobs_columns[] = {
    KEY(id, STORE_INTEGER),
    {.name = "account", .type = STORE_INTEGER, .is_indexed = true, .indexed_with = "state"},
    PLAIN(name, STORE_TEXT),
    PLAIN(state, STORE_INTEGER),
    PLAIN(reason, STORE_TEXT),
    PLAIN(num_nodes, STORE_INTEGER),
    PLAIN(quote_micro, STORE_INTEGER),
    PLAIN(held_micro, STORE_INTEGER),
    PLAIN(posted_micro, STORE_INTEGER),
    PLAIN(fee_micro, STORE_INTEGER),
    PLAIN(submitted_ms, STORE_INTEGER),
    PLAIN(started_ms, STORE_INTEGER),
    PLAIN(ended_ms, STORE_INTEGER),
    PLAIN(ticks, STORE_INTEGER),
    PLAIN(runtime, STORE_TEXT),
    PLAIN(policy, STORE_TEXT),
    PLAIN(model, STORE_TEXT),
    PLAIN(num_nodes_max, STORE_INTEGER),
    PLAIN(worker_count, STORE_INTEGER),
    PLAIN(max_total_micro, STORE_INTEGER),
    PLAIN(sum_held_micro, STORE_INTEGER),
    PLAIN(sum_posted_micro, STORE_INTEGER),
    PLAIN(sum_fee_micro, STORE_INTEGER),
    PLAIN(sum_voided_micro, STORE_INTEGER),
    PLAIN(not_before_ms, STORE_INTEGER),
    PLAIN(predict, STORE_TEXT),
    PLAIN(workers_wanted, STORE_INTEGER),
};

static const struct store_column job_specs_columns[] = {
    KEY(job, STORE_INTEGER),
    PLAIN(spec, STORE_TEXT),
};

static const struct store_column leases_columns[] = {
    KEY(id, STORE_INTEGER),
    INDEXED(job, STORE_INTEGER),
    INDEXED(machine, STORE_INTEGER),
    PLAIN(payee, STORE_INTEGER),
    PLAIN(fence, STORE_INTEGER),
    PLAIN(role, STORE_INTEGER),
    PLAIN(rank, STORE_INTEGER),
    PLAIN(state, STORE_INTEGER),
    PLAIN(outcome, STORE_INTEGER),
    PLAIN(reason, STORE_TEXT),
    PLAIN(is_unreachable, STORE_INTEGER),
    PLAIN(cores_milli, STORE_INTEGER),
    PLAIN(ram_bytes, STORE_INTEGER),
    PLAIN(disk_bytes, STORE_INTEGER),
    PLAIN(tick_ms, STORE_INTEGER),
    PLAIN(offered_ms, STORE_INTEGER),
    PLAIN(started_ms, STORE_INTEGER),
    PLAIN(ended_ms, STORE_INTEGER),
    PLAIN(expires_ms, STORE_INTEGER),
    PLAIN(ticks, STORE_INTEGER),
    PLAIN(wall_ms, STORE_INTEGER),
    PLAIN(posted_micro, STORE_INTEGER),
    PLAIN(fee_micro, STORE_INTEGER),
    PLAIN(exit_code, STORE_INTEGER),
    PLAIN(is_replica, STORE_INTEGER),
};

static const struct store_column statements_columns[] = {
    KEY(subject, STORE_INTEGER),
    KEY(first, STORE_INTEGER),
    PLAIN(more, STORE_BLOB),
};

static const struct store_column answers_columns[] = {
    KEY(key, STORE_BLOB),
    PLAIN(request, STORE_BLOB),
    PLAIN(subject, STORE_INTEGER),
    INDEXED(created_ms, STORE_INTEGER),
};

static const struct store_column artifacts_columns[] = {
    KEY(job, STORE_INTEGER),          KEY(name, STORE_TEXT),
    PLAIN(lease, STORE_INTEGER),      PLAIN(manifest, STORE_BLOB),
    PLAIN(size_bytes, STORE_INTEGER), PLAIN(created_ms, STORE_INTEGER),
};

static const struct store_column logs_columns[] = {
    KEY(lease, STORE_INTEGER),
    KEY(offset, STORE_INTEGER),
    PLAIN(size, STORE_INTEGER),
    PLAIN(hash, STORE_BLOB),
};

static const struct store_column holdings_columns[] = {
    KEY(account, STORE_INTEGER),
    {.name = "hash", .type = STORE_BLOB, .is_key = true, .is_indexed = true},
    PLAIN(size_bytes, STORE_INTEGER),
    INDEXED(stored_ms, STORE_INTEGER),
    PLAIN(job, STORE_INTEGER),
};

static const struct store_column metrics_columns[] = {
    KEY(job, STORE_INTEGER),
    PLAIN(account, STORE_INTEGER),
    PLAIN(updated_ms, STORE_INTEGER),
    PLAIN(first_step_ms, STORE_INTEGER),
    PLAIN(has_loss, STORE_INTEGER),
    PLAIN(loss, STORE_REAL),
    PLAIN(has_accuracy, STORE_INTEGER),
    PLAIN(test_accuracy, STORE_REAL),
    PLAIN(samples, STORE_INTEGER),
    PLAIN(gamma_ms, STORE_INTEGER),
    PLAIN(workers, STORE_TEXT),
};

static const struct store_column curves_columns[] = {
    KEY(job, STORE_INTEGER),
    PLAIN(json, STORE_TEXT),
};

static const struct store_column usage_columns[] = {
    KEY(account, STORE_INTEGER),
    PLAIN(bytes, STORE_INTEGER),
};

static const struct store_column token_uses_columns[] = {
    KEY(token, STORE_INTEGER),
    PLAIN(used_ms, STORE_INTEGER),
};

static const struct store_column profiles_columns[] = {
    KEY(job, STORE_INTEGER),   INDEXED(account, STORE_INTEGER),    INDEXED(signature, STORE_TEXT),
    INDEXED(task, STORE_TEXT), INDEXED(updated_ms, STORE_INTEGER), PLAIN(is_final, STORE_INTEGER),
    PLAIN(json, STORE_TEXT),
};

static const struct store_column predictions_columns[] = {
    KEY(job, STORE_INTEGER),   INDEXED(account, STORE_INTEGER),
    INDEXED(task, STORE_TEXT), INDEXED(created_ms, STORE_INTEGER),
    PLAIN(json, STORE_TEXT),
};

static const struct store_column profile_choices_columns[] = {
    KEY(account, STORE_INTEGER),
    PLAIN(is_shared, STORE_INTEGER),
};

static const struct store_column objects_columns[] = {
    KEY(account, STORE_INTEGER),       KEY(name, STORE_TEXT),    PLAIN(size_bytes, STORE_INTEGER),
    INDEXED(stored_ms, STORE_INTEGER), PLAIN(blobs, STORE_BLOB),
};

const struct store_table tables[TABLE_COUNT] = {
    [TABLE_OFFERS] = TABLE(offers),
    [TABLE_GROUPS] = TABLE(groups),
    [TABLE_TOKEN_USES] = TABLE(token_uses),
    [TABLE_ACCOUNTS] = TABLE(accounts),
    [TABLE_TOKENS] = TABLE(tokens),
    [TABLE_MACHINES] = TABLE(machines),
    [TABLE_JOBS] = TABLE(jobs),
    [TABLE_JOB_SPECS] = TABLE(job_specs),
    [TABLE_LEASES] = TABLE(leases),
    [TABLE_STATEMENTS] = TABLE(statements),
    [TABLE_ANSWERS] = TABLE(answers),
    [TABLE_ARTIFACTS] = TABLE(artifacts),
    [TABLE_LOGS] = TABLE(logs),
    [TABLE_METRICS] = TABLE(metrics),
    [TABLE_CURVES] = TABLE(curves),
    [TABLE_USAGE] = TABLE(usage),
    [TABLE_HOLDINGS] = TABLE(holdings),
    [TABLE_PROFILES] = TABLE(profiles),
    [TABLE_PREDICTIONS] = TABLE(predictions),
    [TABLE_PROFILE_CHOICES] = TABLE(profile_choices),
    [TABLE_OBJECTS] = TABLE(objects),
};

const struct store_schema tables_schema = {
    .version = 7,
    .tables = tables,
    .table_count = TABLE_COUNT,
    .log_version = EVENT_LOG_VERSION,
};
