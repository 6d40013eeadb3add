/* Lookups: the state, as others may see it. */
#include "core/core_internal.h"

const struct account *core_account(const struct core *core, uint64_t account)
{
    return map_get(&core->accounts, account);
}

const struct account *core_account_by_name(const struct core *core, struct text name)
{
    return map_get_text(&core->accounts_by_name, name);
}

const struct ledger_account *core_balance(const struct core *core, uint64_t account)
{
    return ledger_account(core->ledger, account);
}

const struct group *core_group(const struct core *core, uint64_t group)
{
    return map_get(&core->groups, group);
}

const struct group *core_group_by_name(const struct core *core, struct text name)
{
    return map_get_text(&core->groups_by_name, name);
}

const struct token *core_token(const struct core *core, uint64_t token)
{
    return map_get(&core->tokens, token);
}

const struct token *core_token_by_hash(const struct core *core,
                                       const uint8_t hash[MARKET_HASH_SIZE])
{
    return map_get_text(&core->tokens_by_hash, core_bytes(hash, MARKET_HASH_SIZE));
}

const struct code *core_code_by_hash(const struct core *core, const uint8_t hash[MARKET_HASH_SIZE])
{
    return map_get_text(&core->codes_by_hash, core_bytes(hash, MARKET_HASH_SIZE));
}

const struct machine *core_machine(const struct core *core, uint64_t machine)
{
    return map_get(&core->machines, machine);
}

const struct machine *core_machine_by_name(const struct core *core, struct text name)
{
    return map_get_text(&core->machines_by_name, name);
}

const struct machine *core_machine_by_key(const struct core *core,
                                          const uint8_t public_key[MACHINE_KEY_SIZE])
{
    return map_get_text(&core->machines_by_key, core_bytes(public_key, MACHINE_KEY_SIZE));
}

const struct offer *core_offer(const struct core *core, uint64_t offer)
{
    return map_get(&core->offers, offer);
}

size_t core_offer_count(const struct core *core)
{
    return core->offers.count;
}

const struct offer *core_offer_at(const struct core *core, size_t index)
{
    ASSERT(index < core->offers.count);
    return core->offers.entries[index].value;
}

const struct job *core_job(const struct core *core, uint64_t job)
{
    return map_get(&core->jobs, job);
}

const struct lease *core_lease(const struct core *core, uint64_t lease)
{
    return map_get(&core->leases, lease);
}

int64_t core_held_micro(const struct core *core, uint64_t job)
{
    return ledger_hold_micro(ledger_hold(core->ledger, job));
}

bool core_lease_is_unreachable(const struct core *core, const struct lease *lease)
{
    return lease_is_open(lease) &&
           core_machine(core, lease->machine)->state == MACHINE_STATE_UNREACHABLE;
}

size_t core_account_count(const struct core *core)
{
    return core->accounts.count;
}

const struct account *core_account_at(const struct core *core, size_t index)
{
    ASSERT(index < core->accounts.count);
    return core->accounts.entries[index].value;
}

size_t core_group_count(const struct core *core)
{
    return core->groups.count;
}

const struct group *core_group_at(const struct core *core, size_t index)
{
    ASSERT(index < core->groups.count);
    return core->groups.entries[index].value;
}

size_t core_token_count(const struct core *core)
{
    return core->tokens.count;
}

const struct token *core_token_at(const struct core *core, size_t index)
{
    ASSERT(index < core->tokens.count);
    return core->tokens.entries[index].value;
}

size_t core_machine_count(const struct core *core)
{
    return core->machines.count;
}

const struct machine *core_machine_at(const struct core *core, size_t index)
{
    ASSERT(index < core->machines.count);
    return core->machines.entries[index].value;
}

size_t core_job_count(const struct core *core)
{
    return core->jobs.count;
}

const struct job *core_job_at(const struct core *core, size_t index)
{
    ASSERT(index < core->jobs.count);
    return core->jobs.entries[index].value;
}

size_t core_lease_count(const struct core *core)
{
    return core->leases.count;
}

const struct lease *core_lease_at(const struct core *core, size_t index)
{
    ASSERT(index < core->leases.count);
    return core->leases.entries[index].value;
}

const struct core_settings *core_settings(const struct core *core)
{
    return &core->settings;
}

uint64_t core_sequence(const struct core *core)
{
    return core->sequence;
}

int64_t core_ledger_sum_micro(const struct core *core)
{
    return ledger_sum_micro(core->ledger);
}
