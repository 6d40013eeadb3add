#include "core/core_internal.h"
#include "market/pair.h"

#include <inttypes.h>

enum { FEE_BASIS_POINTS_MAX = 500 };

struct core_settings core_default_settings(void)
{
    return (struct core_settings){.karma_guarantee_basis_points = 5000,
                                  .grant_micro = 10000000,
                                  .grant_earned_micro = 40000000,
                                  .grant_daily_micro = 1000000000,
                                  .dormant_ms = 180 * CORE_DAY_MS,
                                  .dormant_step_ms = 28 * CORE_DAY_MS,
                                  .dormant_basis_points = 1000,
                                  .fee_basis_points = 0,
                                  .proving_micro = 1000000,
                                  .withheld_basis_points = 2500,
                                  .silence_ms = 6000,
                                  .lost_ms = 30000,
                                  .start_ms = 600000,
                                  .grace_ms = 30000};
}

int core_settings_check(const struct core_settings *settings, struct error *error)
{
    const int64_t day_ms = CORE_DAY_MS;
    const struct {
        const char *name;
        int64_t value, minimum, maximum;
    } ranges[] = {
        {"karma_guarantee_basis_points", settings->karma_guarantee_basis_points, 0, 10000},
        {"grant_micro", settings->grant_micro, 0, LEDGER_SUPPLY_MAX},
        {"grant_earned_micro", settings->grant_earned_micro, 0, LEDGER_SUPPLY_MAX},
        {"grant_daily_micro", settings->grant_daily_micro, 0, LEDGER_SUPPLY_MAX},
        {"dormant_ms", settings->dormant_ms, day_ms, INT64_C(36600) * day_ms},
        {"dormant_step_ms", settings->dormant_step_ms, day_ms, INT64_C(36600) * day_ms},
        {"dormant_basis_points", settings->dormant_basis_points, 0, 10000},
        {"fee_basis_points", settings->fee_basis_points, 0, FEE_BASIS_POINTS_MAX},
        {"proving_micro", settings->proving_micro, 0, LEDGER_SUPPLY_MAX},
        {"withheld_basis_points", settings->withheld_basis_points, 0, 10000},
        {"silence_ms", settings->silence_ms, 100, day_ms},
        {"lost_ms", settings->lost_ms, 100, day_ms},
        {"start_ms", settings->start_ms, 100, day_ms},
        {"grace_ms", settings->grace_ms, 100, day_ms},
        {"slot_offset_ms", settings->slot_offset_ms, -SLOT_OFFSET_MS_MAX, SLOT_OFFSET_MS_MAX},
    };
    if (settings->economy >= ECONOMY_COUNT)
        return error_set(error, ERROR_INVALID, "economy is none that exists");
    for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
        if (ranges[i].value < ranges[i].minimum || ranges[i].value > ranges[i].maximum)
            return error_set(error, ERROR_INVALID, "%s must be from %" PRId64 " to %" PRId64,
                             ranges[i].name, ranges[i].minimum, ranges[i].maximum);
    return 0;
}

static void add_own_account(struct core *core, uint64_t id, const char *name)
{
    struct account *account = calloc(1, sizeof(*account));
    ASSERT(account);
    account->id = id;
    snprintf(account->name, sizeof(account->name), "%s", name);
    map_put(&core->accounts, id, account);
    map_put_text(&core->accounts_by_name, text_of(account->name), account);
}

struct core *core_new(void)
{
    struct core *core = calloc(1, sizeof(*core));
    ASSERT(core);
    core->settings = core_default_settings();
    core_prices_init(core);
    core->ledger = ledger_new(ACCOUNT_MINT, ACCOUNT_OPERATOR);
    add_own_account(core, ACCOUNT_MINT, "mint");
    add_own_account(core, ACCOUNT_OPERATOR, "operator");
    core->last_id = ACCOUNT_OPERATOR;
    slab_init(&core->machine_slab, sizeof(struct machine));
    slab_init(&core->offer_slab, sizeof(struct offer));
    slab_init(&core->job_slab, sizeof(struct job));
    slab_init(&core->lease_slab, sizeof(struct lease));
    listing_init(&core->listing);
    waiting_init(&core->waiting);
    core->rounds = match_rounds_new();
    core->wakes = wakes_new();
    core->matcher = calloc(1, sizeof(*core->matcher));
    ASSERT(core->matcher);
    matcher_init(core->matcher, &core->listing);
    return core;
}

static void free_values(struct map *map)
{
    for (size_t i = 0; i < map->count; i++)
        free(map->entries[i].value);
    map_done(map);
}

/* The spec is the job's own copy, though `struct text` only borrows. */
static void free_spec(const struct job *job)
{
    union {
        const char *borrowed;
        char *owned;
    } spec = {job->request.spec.data};
    free(spec.owned);
}

void core_free(struct core *core)
{
    if (!core)
        return;
    for (size_t i = 0; i < core->accounts.count; i++)
        free(((struct account *)core->accounts.entries[i].value)->tokens);
    for (size_t i = 0; i < core->machines.count; i++) {
        struct machine *machine = core->machines.entries[i].value;
        free(machine->leases);
        machine_free_spare(machine);
        pair_free(machine);
        free(machine->offers);
    }
    for (size_t i = 0; i < core->jobs.count; i++) {
        struct job *job = core->jobs.entries[i].value;
        free(job->leases);
        free(job->workers);
        free_spec(job);
    }
    struct map *owners[] = {&core->accounts, &core->groups, &core->tokens, &core->codes};
    for (size_t i = 0; i < sizeof(owners) / sizeof(*owners); i++)
        free_values(owners[i]);
    for (size_t i = 0; i < core->leases.count; i++)
        free(((struct lease *)core->leases.entries[i].value)->reason);
    offer_shares_done(&core->offer_shares);
    price_locks_done(&core->price_locks);
    slab_done(&core->machine_slab);
    slab_done(&core->offer_slab);
    slab_done(&core->job_slab);
    slab_done(&core->lease_slab);
    struct map *indexes[] = {
        &core->machines,         &core->offers,          &core->jobs,
        &core->leases,           &core->groups_by_name,  &core->grants_by_block,
        &core->accounts_by_name, &core->tokens_by_hash,  &core->codes_by_hash,
        &core->machines_by_name, &core->machines_by_key, &core->jobs_by_key};
    for (size_t i = 0; i < sizeof(indexes) / sizeof(*indexes); i++)
        map_done(indexes[i]);
    id_list_done(&core->waiting_grants);
    id_list_done(&core->code_list);
    id_list_done(&core->machine_list);
    id_list_done(&core->pending);
    id_list_done(&core->active);
    id_list_done(&core->short_handed);
    id_list_done(&core->seekers);
    id_list_done(&core->spare_waiting);
    id_list_done(&core->spare_short);
    core_prices_done(core);
    free(core->forfeit.parts);
    id_list_done(&core->short_of_money);
    timers_done(&core->job_timers);
    wakes_free(core->wakes);
    line_done(&core->line);
    matcher_done(core->matcher);
    free(core->matcher);
    match_rounds_free(core->rounds);
    waiting_done(&core->waiting);
    listing_done(&core->listing);
    ledger_free(core->ledger);
    free(core);
}
