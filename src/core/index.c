/*
 * Indexes: keeps every list, and what follows from other parts of the state, in step with it.
 */
#include "core/core_internal.h"

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

static void list_leases(struct core *core, struct machine *machine, int64_t now_ms)
{
    for (size_t i = 0; i < machine->offer_count; i++)
        listing_update_leased(&core->listing, machine->offers[i], now_ms);
}

void core_list_price(struct core *core, int64_t now_ms)
{
    const struct price_vector before = core->listing.price;
    core->listing.price = core->price;
    core_unstick_all(core);
    for (size_t i = 0; i < core->offers.count; i++) {
        struct offer *offer = core->offers.entries[i].value;
        const bool was_dear = listing_is_dear(&before, offer);
        if (listing_is_dear(&core->listing.price, offer) == was_dear)
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
    core_unstick_by(core, machine, now_ms);
    match_rounds_touch(core->rounds, machine);
    core_wake_machine(core, machine);
}

static void index_seeker(struct core *core, struct job *job, bool wants_workers)
{
    if (job->request.wishes.max_rtt_us > 0 && job_request_nodes_max(&job->request) > 1 &&
        (job->state == JOB_STATE_PENDING || wants_workers))
        id_list_add(&core->seekers, job->id, job);
    else
        id_list_remove(&core->seekers, job->id);
}

void core_index_workers(struct core *core, struct job *job)
{
    struct account *account = map_get(&core->accounts, job->request.account);
    const bool is_short_handed = decide_is_bereaved(job) || job_can_grow(job);
    index_seeker(core, job, job_lost_rank(job, 0) < job->worker_count || job_can_grow(job));
    if (job->request.is_spare) {
        if (is_short_handed)
            id_list_add(&core->spare_short, job->id, job);
        else
            id_list_remove(&core->spare_short, job->id);
        return;
    }
    account->short_handed_count -= id_list_contains(&core->short_handed, job->id);
    if (is_short_handed) {
        id_list_add(&core->short_handed, job->id, job);
        account->short_handed_count++;
    } else {
        id_list_remove(&core->short_handed, job->id);
    }
}

static void index_line(struct core *core, struct job *job)
{
    if (job->waiting_numbers[0] && !job->is_short && !job->is_stuck) {
        line_add(&core->line, job);
    } else {
        line_remove(&core->line, job);
        match_rounds_forget_job(core->rounds, job);
    }
}

void core_mark_stuck(struct core *core, struct job *job, bool is_stuck)
{
    waiting_set_stuck(&core->waiting, &core->listing, job, is_stuck);
    index_line(core, job);
}

void core_set_unhurried(struct core *core, struct job *job, bool is_unhurried)
{
    const bool is_stuck = job->is_stuck;
    if (job->is_unhurried == is_unhurried || !job->waiting_numbers[0])
        return;
    line_remove(&core->line, job);
    waiting_remove(&core->waiting, job);
    job->is_unhurried = is_unhurried;
    waiting_add(&core->waiting, &core->listing, job);
    core_mark_stuck(core, job, is_stuck);
}

void core_mark_short(struct core *core, struct job *job, bool is_short)
{
    const bool has_changed = job->is_short != is_short;
    job->is_short = is_short;
    index_line(core, job);
    if (!has_changed)
        return;
    struct account *account = map_get(&core->accounts, job->request.account);
    if (is_short) {
        id_list_add(&core->short_of_money, job->id, job);
        account->short_count++;
    } else {
        id_list_remove(&core->short_of_money, job->id);
        account->short_count--;
    }
}

void core_let_wait(struct core *core, struct job *job)
{
    waiting_add(&core->waiting, &core->listing, job);
    core_mark_short(core, job, job->is_short); /* events say when it is */
}

void core_let_wait_for_spare(struct core *core, struct job *job, bool waits)
{
    struct account *account = map_get(&core->accounts, job->request.account);
    if (id_list_contains(&core->spare_waiting, job->id) == waits)
        return;
    if (waits)
        id_list_add(&core->spare_waiting, job->id, job);
    else
        id_list_remove(&core->spare_waiting, job->id);
    account->spare_waiting_count += waits ? 1 : (size_t)-1;
    if (waits)
        match_rounds_spare(core->rounds);
}

static void index_active(struct core *core, struct job *job)
{
    const bool was_active = id_list_contains(&core->active, job->id);
    const bool is_active = job_state_has_leases(job->state);
    if (is_active)
        id_list_add(&core->active, job->id, job);
    else
        id_list_remove(&core->active, job->id);
    if (!job->request.is_spare || is_active == was_active)
        return;
    struct account *account = map_get(&core->accounts, job->request.account);
    account->spare_active_count += is_active ? 1 : (size_t)-1;
    if (!is_active)
        match_rounds_spare(core->rounds); /* its account's next */
}

void core_index_job(struct core *core, struct job *job)
{
    if (job->state == JOB_STATE_PENDING)
        id_list_add(&core->pending, job->id, job);
    else
        id_list_remove(&core->pending, job->id);
    if (job->request.is_spare) {
        core_let_wait_for_spare(core, job, job->state == JOB_STATE_PENDING);
    } else if (job->state == JOB_STATE_PENDING && job->start_ms == 0) {
        if (!match_rounds_expects(core->rounds, job))
            core_let_wait(core, job);
    } else {
        waiting_remove(&core->waiting, job);
        core_mark_short(core, job, false);
    }
    index_active(core, job);
    core_index_workers(core, job);
    core_wake_job(core, job);
    core_skip_job_timers(core);
}

void core_index_offer(struct core *core, struct offer *offer, int64_t now_ms)
{
    offer->is_open = offer_is_open(offer, now_ms);
    const int64_t turns_ms = offer_next_change_ms(offer, now_ms);
    offer->turns_ms = turns_ms == INT64_MAX ? 0 : turns_ms;
    core_wake_offer(core, offer);
    listing_update(&core->listing, offer, now_ms);
    core_unstick_by(core, offer->machine, now_ms);
    match_rounds_touch(core->rounds, offer->machine);
}

static int64_t latest_end_ms(const struct core *core, const struct job *job,
                             const struct lease *lease)
{
    const int64_t latest_start_ms = job->started_ms > 0 ? job->started_ms : lease->start_by_ms;
    return latest_start_ms + job->request.max_run_ms + core->settings.grace_ms;
}

void core_set_lease_ends(struct core *core, struct job *job)
{
    core_wake_job(core, job);
    for (size_t i = 0; i < job->lease_count; i++) {
        struct lease *lease = job->leases[i];
        const int64_t before_ms = lease->ends_ms;
        lease->ends_ms = latest_end_ms(core, job, lease);
        if (lease->ends_ms < before_ms && lease_is_open(lease))
            match_rounds_ends_sooner(core->rounds, map_get(&core->machines, lease->machine));
    }
}

char *core_copy_reason(const char *reason)
{
    if (!reason[0])
        return NULL;
    char *copy = strdup(reason);
    ASSERT(copy);
    return copy;
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
    else
        job->servers[lease->rank] = lease;
    if (!lease_is_open(lease))
        return;
    core_wake_lease(core, lease);
    if (lease->is_spare) {
        machine_add_spare(machine, lease);
        return;
    }
    if (machine->lease_count == machine->lease_capacity) {
        machine->lease_capacity = machine->lease_capacity ? machine->lease_capacity * 2 : 4;
        machine->leases =
            realloc(machine->leases, machine->lease_capacity * sizeof(struct lease *));
        ASSERT(machine->leases);
    }
    machine->leases[machine->lease_count++] = lease;
    machine->leased = resources_add(machine->leased, lease->resources);
    struct offer *offer = machine_offer(machine, lease->offer);
    if (offer) {
        offer->leased = resources_add(offer->leased, lease->resources);
        offer->lease_count++;
        if (lease->id > offer->last_lease)
            offer->last_lease = lease->id;
    }
    list_leases(core, machine, now_ms);
}

void core_detach_lease(struct core *core, struct machine *machine, const struct lease *lease,
                       int64_t now_ms)
{
    if (lease->is_spare) {
        machine_remove_spare(machine, lease);
        match_rounds_spare(core->rounds);
        return;
    }
    size_t at = 0;
    while (at < machine->lease_count && machine->leases[at] != lease)
        at++;
    ASSERT(at < machine->lease_count);
    machine->lease_count--;
    memmove(machine->leases + at, machine->leases + at + 1,
            (machine->lease_count - at) * sizeof(struct lease *));
    machine->leased = resources_subtract(machine->leased, lease->resources);
    struct offer *offer = machine_offer(machine, lease->offer);
    if (offer) {
        offer->leased = resources_subtract(offer->leased, lease->resources);
        offer->lease_count--;
    }
    list_leases(core, machine, now_ms);
    core_unstick_by(core, machine, now_ms); /* it may be more reliable now */
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
