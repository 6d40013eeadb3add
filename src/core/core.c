#include "core/core_internal.h"

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
    listing_init(&core->listing);
    waiting_init(&core->waiting);
    core->rounds = match_rounds_new();
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
        free(machine->offers);
    }
    for (size_t i = 0; i < core->offers.count; i++)
        offer_terms_done(&((struct offer *)core->offers.entries[i].value)->terms);
    for (size_t i = 0; i < core->jobs.count; i++) {
        struct job *job = core->jobs.entries[i].value;
        free(job->leases);
        free(job->workers);
        free_spec(job);
    }
    struct map *owners[] = {&core->accounts, &core->groups, &core->tokens, &core->codes,
                            &core->machines, &core->offers, &core->jobs,   &core->leases};
    for (size_t i = 0; i < sizeof(owners) / sizeof(*owners); i++)
        free_values(owners[i]);
    struct map *indexes[] = {&core->groups_by_name,   &core->grants_by_block,
                             &core->accounts_by_name, &core->tokens_by_hash,
                             &core->codes_by_hash,    &core->machines_by_name,
                             &core->machines_by_key,  &core->jobs_by_key};
    for (size_t i = 0; i < sizeof(indexes) / sizeof(*indexes); i++)
        map_done(indexes[i]);
    id_list_done(&core->waiting_grants);
    id_list_done(&core->code_list);
    id_list_done(&core->machine_list);
    id_list_done(&core->unreachable);
    id_list_done(&core->turning);
    id_list_done(&core->pending);
    id_list_done(&core->active);
    id_list_done(&core->short_handed);
    core_prices_done(core);
    id_list_done(&core->short_of_money);
    timers_done(&core->job_timers);
    matcher_done(core->matcher);
    free(core->matcher);
    match_rounds_free(core->rounds);
    waiting_done(&core->waiting);
    listing_done(&core->listing);
    ledger_free(core->ledger);
    free(core);
}

/* ---- Indexes --------------------------------------------------------------------------------- */

bool core_job_key(const struct job_request *request, uint8_t out_key[CORE_JOB_KEY_SIZE])
{
    static const uint8_t none[MARKET_HASH_SIZE];
    memcpy(out_key, &request->account, 8);
    memcpy(out_key + 8, request->idempotency_hash, MARKET_HASH_SIZE);
    return memcmp(request->idempotency_hash, none, MARKET_HASH_SIZE) != 0;
}

void core_index_account(struct core *core, struct account *account)
{
    if (account->grant == GRANT_STATE_WAITING)
        id_list_add(&core->waiting_grants, account->id, account);
    else
        id_list_remove(&core->waiting_grants, account->id);
    if (account->grant != GRANT_STATE_GIVEN || !account->address_block)
        return;
    const struct account *last = map_get(&core->grants_by_block, account->address_block);
    if (!last || last->granted_ms <= account->granted_ms)
        map_put(&core->grants_by_block, account->address_block, account);
}

void core_attach_token(struct account *account, struct token *token)
{
    if (account->token_count == account->token_capacity) {
        account->token_capacity = account->token_capacity ? account->token_capacity * 2 : 4;
        account->tokens = realloc(account->tokens, account->token_capacity * sizeof(token));
        ASSERT(account->tokens);
    }
    account->tokens[account->token_count++] = token;
}

void core_detach_token(struct account *account, const struct token *token)
{
    size_t at = 0;
    while (at < account->token_count && account->tokens[at] != token)
        at++;
    ASSERT(at < account->token_count);
    account->token_count--;
    memmove(account->tokens + at, account->tokens + at + 1,
            (account->token_count - at) * sizeof(token));
}

void core_list_offers(struct core *core, struct machine *machine, int64_t now_ms)
{
    for (size_t i = 0; i < machine->offer_count; i++)
        listing_update(&core->listing, machine->offers[i], now_ms);
}

void core_list_price(struct core *core, int64_t now_ms)
{
    const struct listing before = core->listing;
    core->listing.price = core->price;
    for (size_t i = 0; i < core->offers.count; i++) {
        struct offer *offer = core->offers.entries[i].value;
        const bool was_dear = listing_is_dear(&before, offer);
        if (listing_is_dear(&core->listing, offer) == was_dear)
            continue;
        listing_update(&core->listing, offer, now_ms);
        if (was_dear)
            match_rounds_touch(core->rounds, offer->machine);
    }
}

void core_index_machine(struct core *core, struct machine *machine, int64_t now_ms)
{
    id_list_add(&core->machine_list, machine->id, machine);
    core_list_offers(core, machine, now_ms);
    core->listing_version++;
    match_rounds_touch(core->rounds, machine);
    if (machine->state == MACHINE_STATE_UNREACHABLE)
        id_list_add(&core->unreachable, machine->id, machine);
    else
        id_list_remove(&core->unreachable, machine->id);
}

void core_index_workers(struct core *core, struct job *job)
{
    if (job_lost_rank(job, 0) < job->worker_count || job_can_grow(job))
        id_list_add(&core->short_handed, job->id, job);
    else
        id_list_remove(&core->short_handed, job->id);
}

void core_mark_short(struct core *core, struct job *job, bool is_short)
{
    struct account *account = map_get(&core->accounts, job->request.account);
    if (id_list_contains(&core->short_of_money, job->id) == is_short)
        return;
    if (is_short) {
        id_list_add(&core->short_of_money, job->id, job);
        account->short_count++;
    } else {
        id_list_remove(&core->short_of_money, job->id);
        account->short_count--;
    }
}

void core_index_job(struct core *core, struct job *job)
{
    if (job->state == JOB_STATE_PENDING)
        id_list_add(&core->pending, job->id, job);
    else
        id_list_remove(&core->pending, job->id);
    if (job->state == JOB_STATE_PENDING && job->start_ms == 0) {
        waiting_add(&core->waiting, &core->listing, job);
        core_mark_short(core, job, true); /* until it was tried and only room was missing */
    } else {
        waiting_remove(&core->waiting, job);
        match_rounds_forget_job(core->rounds, job);
        core_mark_short(core, job, false);
    }
    if (job_state_has_leases(job->state))
        id_list_add(&core->active, job->id, job);
    else
        id_list_remove(&core->active, job->id);
    core_index_workers(core, job);
    core_skip_job_timers(core);
}

void core_index_offer(struct core *core, struct offer *offer, int64_t now_ms)
{
    offer->is_open = offer_is_open(offer, now_ms);
    const int64_t turns_ms = offer_next_change_ms(offer, now_ms);
    offer->turns_ms = turns_ms == INT64_MAX ? 0 : turns_ms;
    if (offer->turns_ms > 0)
        id_list_add(&core->turning, offer->id, offer);
    else
        id_list_remove(&core->turning, offer->id);
    listing_update(&core->listing, offer, now_ms);
    core->listing_version++;
    match_rounds_touch(core->rounds, offer->machine);
}

static int64_t latest_end_ms(const struct core *core, const struct job *job,
                             const struct lease *lease)
{
    const int64_t latest_start_ms = job->started_ms > 0 ? job->started_ms : lease->start_by_ms;
    return latest_start_ms + job->request.max_run_ms + core->settings.grace_ms;
}

void core_set_lease_ends(const struct core *core, struct job *job)
{
    for (size_t i = 0; i < job->lease_count; i++)
        job->leases[i]->ends_ms = latest_end_ms(core, job, job->leases[i]);
}

static void attach_worker(struct job *job, struct lease *lease)
{
    if (lease->rank == job->worker_count) {
        job->workers = realloc(job->workers, (job->worker_count + 1) * sizeof(struct lease *));
        ASSERT(job->workers);
        job->worker_count++;
    }
    ASSERT(lease->rank < job->worker_count);
    job->workers[lease->rank] = lease;
}

void core_attach_lease(struct core *core, struct job *job, struct machine *machine,
                       struct lease *lease, int64_t now_ms)
{
    job->leases = realloc(job->leases, (job->lease_count + 1) * sizeof(struct lease *));
    ASSERT(job->leases);
    job->leases[job->lease_count++] = lease;
    lease->ends_ms = latest_end_ms(core, job, lease);
    if (lease->role == LEASE_ROLE_WORKER)
        attach_worker(job, lease);
    if (!lease_is_open(lease))
        return;
    if (machine->lease_count == machine->lease_capacity) {
        machine->lease_capacity = machine->lease_capacity ? machine->lease_capacity * 2 : 4;
        machine->leases =
            realloc(machine->leases, machine->lease_capacity * sizeof(struct lease *));
        ASSERT(machine->leases);
    }
    machine->leases[machine->lease_count++] = lease;
    machine->leased = resources_add(machine->leased, lease->resources);
    struct offer *offer = map_get(&core->offers, lease->offer);
    if (offer) {
        offer->leased = resources_add(offer->leased, lease->resources);
        offer->lease_count++;
        if (lease->id > offer->last_lease)
            offer->last_lease = lease->id;
    }
    core_list_offers(core, machine, now_ms);
}

void core_detach_lease(struct core *core, struct machine *machine, const struct lease *lease,
                       int64_t now_ms)
{
    size_t at = 0;
    while (at < machine->lease_count && machine->leases[at] != lease)
        at++;
    ASSERT(at < machine->lease_count);
    machine->lease_count--;
    memmove(machine->leases + at, machine->leases + at + 1,
            (machine->lease_count - at) * sizeof(struct lease *));
    machine->leased = resources_subtract(machine->leased, lease->resources);
    struct offer *offer = map_get(&core->offers, lease->offer);
    if (offer) {
        offer->leased = resources_subtract(offer->leased, lease->resources);
        offer->lease_count--;
    }
    core_list_offers(core, machine, now_ms);
    match_rounds_touch(core->rounds, machine);
}

struct machine **core_machine_pointers(const struct core *core, struct arena *arena)
{
    struct machine **machines =
        arena_alloc(arena, core->machine_list.count * sizeof(struct machine *));
    for (size_t i = 0; i < core->machine_list.count; i++)
        machines[i] = core->machine_list.items[i].value;
    return machines;
}

/* ---- Time ------------------------------------------------------------------------------------ */

static void earlier(int64_t *wake_ms, int64_t candidate_ms)
{
    if (candidate_ms < *wake_ms)
        *wake_ms = candidate_ms;
}

static void wake_for_job(const struct core *core, const struct job *job, int64_t *wake_ms)
{
    if (job->state != JOB_STATE_STOPPING && job->started_ms > 0)
        earlier(wake_ms, job->started_ms + job->request.max_run_ms);
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *lease = job->leases[i];
        if (lease_is_open(lease) && lease->stop_wanted_ms > 0)
            earlier(wake_ms, lease->stop_wanted_ms + core->settings.grace_ms);
        else if (lease->state == LEASE_STATE_OFFERED)
            earlier(wake_ms, lease->start_by_ms);
    }
}

int64_t core_next_wake_ms(const struct core *core)
{
    int64_t wake_ms = core_day_wake_ms(core);
    earlier(&wake_ms, decide_price_wake_ms(core));
    earlier(&wake_ms, core_karma_wake_ms(core));
    for (size_t i = 0; i < core->code_list.count; i++)
        earlier(&wake_ms, ((const struct code *)core->code_list.items[i].value)->expires_ms);
    for (size_t i = 0; i < core->unreachable.count; i++) {
        const struct machine *machine = core->unreachable.items[i].value;
        earlier(&wake_ms, machine->state_changed_ms + core->settings.lost_ms);
    }
    for (size_t i = 0; i < core->turning.count; i++)
        earlier(&wake_ms, ((const struct offer *)core->turning.items[i].value)->turns_ms);
    struct timer timer;
    if (timers_first(&core->job_timers, &timer))
        earlier(&wake_ms, timer.at_ms);
    for (size_t i = 0; i < core->active.count; i++)
        wake_for_job(core, core->active.items[i].value, &wake_ms);
    return wake_ms;
}

/* ---- Quotes and words ------------------------------------------------------------------------ */

int64_t core_budget_micro(const struct core *core, const struct job_request *request,
                          int64_t held_micro)
{
    int64_t budget_micro = PRICE_MICRO_MAX;
    const struct ledger_account *account = ledger_account(core->ledger, request->account);
    if (account)
        budget_micro = held_micro + ledger_holdable_micro(account);
    if (request->max_total_micro > 0 && request->max_total_micro < budget_micro)
        budget_micro = request->max_total_micro;
    return budget_micro;
}

struct match_wish core_wish(const struct core *core, const struct job_request *request,
                            int64_t held_micro, int64_t now_ms)
{
    const struct account *account = core_account(core, request->account);
    struct match_wish wish = {
        .request = request,
        .group = account ? account->group : 0,
        .now_ms = now_ms,
        .lock =
            core_price_lock(core, now_ms, now_ms + core->settings.start_ms + request->max_run_ms),
        .latest_start_ms = now_ms + core->settings.start_ms,
        .latest_end_ms =
            now_ms + core->settings.start_ms + request->max_run_ms + core->settings.grace_ms,
        .budget_micro = core_budget_micro(core, request, held_micro),
    };
    wish.lock.rush_ms = request->is_rush ? CORE_RUSH_MS : 0;
    return wish;
}

int core_quote(const struct core *core, const struct job_request *request,
               struct core_quote *out_quote, struct error *error)
{
    if (job_request_check(request, error) < 0)
        return -1;
    if (request->account != 0 && !core_account(core, request->account))
        return error_set(error, ERROR_NOT_FOUND, "account %" PRIu64 " does not exist",
                         request->account);
    const struct match_wish wish = core_wish(core, request, 0, core->time_ms);
    struct match_placement placement = {0};
    struct core_quote quote = {.wish = match_quote_wish(&wish)};
    quote.result = match_place(core->matcher, &wish, NULL, &placement);
    quote.placed = (struct match_quote){placement.quote_micro, placement.hourly_micro};
    *out_quote = quote;
    return 0;
}

static void explain_pending(const struct core *core, const struct job *job, struct buffer *out)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct machine **machines = core_machine_pointers(core, arena);
    const struct match_wish wish =
        core_wish(core, &job->request, core_held_micro(core, job->id), core->time_ms);
    struct match_placement placement;
    const enum match_result result = match_place(core->matcher, &wish, NULL, &placement);
    if (job->start_ms > 0)
        buffer_append_string(out, "waits for the cheapest slot before its deadline");
    else if (result == MATCH_PLACED)
        buffer_append_string(out, "there is room, but it would put off a job that goes first");
    else
        match_explain_words(machines, core->machine_list.count, &wish, result, out);
}

bool core_explain_wait(const struct core *core, const struct job *job,
                       struct match_explanation *out_explanation)
{
    if (job->state != JOB_STATE_PENDING)
        return false;
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct match_wish wish =
        core_wish(core, &job->request, core_held_micro(core, job->id), core->time_ms);
    struct match_placement placement;
    const enum match_result result = match_place(core->matcher, &wish, NULL, &placement);
    match_explain(core->matcher, core_machine_pointers(core, arena), core->machine_list.count,
                  &wish, result, out_explanation);
    if (job->start_ms > out_explanation->expected_start_ms)
        out_explanation->expected_start_ms = job->start_ms;
    return true;
}

static void explain_leases(const struct core *core, const struct job *job, enum lease_state state,
                           struct buffer *out)
{
    size_t count = 0;
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *lease = job->leases[i];
        if (lease->state == state)
            buffer_append_format(out, "%s%s (%s%s)", count++ ? ", " : "",
                                 core_machine(core, lease->machine)->name,
                                 lease_role_name(lease->role),
                                 core_lease_is_unreachable(core, lease) ? ", unreachable" : "");
    }
    if (count == 0)
        buffer_append_string(out, "no machine");
}

void core_explain(const struct core *core, const struct job *job, struct buffer *out)
{
    switch (job->state) {
    case JOB_STATE_PENDING:
        explain_pending(core, job, out);
        return;
    case JOB_STATE_STARTING:
        buffer_append_string(out, "waiting for its leases to start at ");
        explain_leases(core, job, LEASE_STATE_OFFERED, out);
        return;
    case JOB_STATE_RUNNING:
        buffer_append_string(out, "running at ");
        explain_leases(core, job, LEASE_STATE_RUNNING, out);
        return;
    case JOB_STATE_STOPPING:
    case JOB_STATE_SUCCEEDED:
    case JOB_STATE_FAILED:
    case JOB_STATE_CANCELLED:
        buffer_append_string(out, job_state_name(job->state));
        if (job->reason[0])
            buffer_append_format(out, ": %s", job->reason);
        return;
    case JOB_STATE_COUNT:
        break;
    }
    UNREACHABLE("a job state without an explanation");
}

/* ---- Lookups --------------------------------------------------------------------------------- */

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
