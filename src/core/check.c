/* Check: every invariant of the state, by walking all of it. */
#include "core/core_internal.h"
#include "market/pair.h"

#include <inttypes.h>
#include <stdlib.h>

static int broken(struct error *error, const char *noun, uint64_t id, const char *what)
{
    return error_set(error, ERROR_CORRUPT, "%s %" PRIu64 ": %s", noun, id, what);
}

static int check_offer(const struct core *core, const struct offer *offer,
                       const struct machine *machine, struct error *error)
{
    struct resources leased = {0};
    uint64_t count = 0;
    for (size_t i = 0; i < machine->lease_count; i++)
        if (machine->leases[i]->offer == offer->id) {
            leased = resources_add(leased, machine->leases[i]->resources);
            count++;
        }
    if (offer->machine != machine || core_offer(core, offer->id) != offer)
        return broken(error, "offer", offer->id, "its machine lists it, but it is not its own");
    if (!resources_equal(leased, offer->leased) || count != offer->lease_count)
        return broken(error, "offer", offer->id, "its leases do not add up");
    if ((offer->listing_number != 0) != (offer->is_open && machine_is_lent(machine)))
        return broken(error, "offer", offer->id, "it is open and not in the book, or the reverse");
    return 0;
}

static int check_pairs(const struct machine *machine, struct error *error)
{
    const struct machine_pairs *pairs = machine->pairs;
    if (pairs && pairs->count > 0 && machine->state == MACHINE_STATE_OFFLINE)
        return broken(error, "machine", machine->id, "it is offline and near others");
    for (size_t i = 0; pairs && i < pairs->count; i++) {
        const struct pair_peer *peer = &pairs->peers[i];
        if (i > 0 && peer[-1].machine->id >= peer->machine->id)
            return broken(error, "machine", machine->id, "its peers are out of order");
        if (peer->machine == machine || !pair_is_known(peer->machine, machine) ||
            pair_direct_us(machine, peer->machine, peer->measured_ms) !=
                pair_direct_us(peer->machine, machine, peer->measured_ms))
            return broken(error, "machine", machine->id, "a peer is not as near to it");
    }
    return 0;
}

static int check_machine(const struct core *core, const struct machine *machine,
                         struct error *error)
{
    struct resources leased = {0};
    for (size_t i = 0; i < machine->lease_count; i++) {
        const struct lease *lease = machine->leases[i];
        if (lease->machine != machine->id || !lease_is_open(lease))
            return broken(error, "machine", machine->id, "it lists a lease that is not its own");
        leased = resources_add(leased, lease->resources);
    }
    struct resources spare = {0};
    for (size_t i = 0; i < machine_spare_count(machine); i++) {
        const struct lease *lease = machine->spare->leases[i];
        if (lease->machine != machine->id || !lease_is_open(lease) || !lease->is_spare)
            return broken(error, "machine", machine->id, "it lists spare time that is none");
        spare = resources_add(spare, lease->resources);
    }
    if (!resources_equal(leased, machine->leased) ||
        (machine->spare && !resources_equal(spare, machine->spare->leased)))
        return broken(error, "machine", machine->id, "its leases do not add up");
    for (size_t i = 0; i < machine->offer_count; i++)
        if (check_offer(core, machine->offers[i], machine, error) < 0)
            return -1;
    if (check_pairs(machine, error) < 0)
        return -1;
    const struct account *owner = core_account(core, machine->owner);
    if (machine->is_barred != account_is_frozen(owner))
        return broken(error, "machine", machine->id, "it is barred without reason, or not");
    if (owner->deleted_ms && machine->state != MACHINE_STATE_OFFLINE)
        return broken(error, "machine", machine->id, "its owner is deleted and it is not offline");
    if (machine->lease_count + machine_spare_count(machine) > 0 &&
        machine->state == MACHINE_STATE_OFFLINE)
        return broken(error, "machine", machine->id, "it is offline and has leases");
    return 0;
}

static bool is_lease_sound(const struct core *core, const struct job *job,
                           const struct lease *lease)
{
    const struct machine *machine = core_machine(core, lease->machine);
    if (lease->job != job->id || !machine || !core_account(core, lease->payee))
        return false;
    if ((lease->state == LEASE_STATE_ENDED) != (lease->outcome != LEASE_OUTCOME_NONE))
        return false;
    if (lease->is_spare != job->request.is_spare || lease->is_former ||
        (lease->is_spare && lease->quote_micro > 0))
        return false;
    return lease->posted_micro <= lease->quote_micro && lease->fee_micro <= lease->posted_micro &&
           lease->wall_ms <= lease->max_run_ms && lease->max_run_ms <= job->request.max_run_ms &&
           price_bill_lock_micro(lease->units, lease->lock, lease->started_ms, lease->wall_ms) ==
               lease->posted_micro;
}

static bool is_state_sound(const struct core *core, const struct job *job)
{
    const bool was_matched = job->state != JOB_STATE_PENDING && job->state != JOB_STATE_CANCELLED;
    if ((was_matched || job->lease_count > 0) &&
        (job->worker_count < (size_t)job->request.num_nodes ||
         job->worker_count > (size_t)job_request_nodes_max(&job->request)))
        return false;
    const bool is_short_handed = decide_is_bereaved(job) || job_can_grow(job);
    const bool is_spare = job->request.is_spare;
    if (id_list_contains(&core->short_handed, job->id) != (is_short_handed && !is_spare) ||
        id_list_contains(&core->spare_short, job->id) != (is_short_handed && is_spare) ||
        id_list_contains(&core->spare_waiting, job->id) !=
            (is_spare && job->state == JOB_STATE_PENDING))
        return false;
    if (job->state == JOB_STATE_PENDING && job->lease_count != 0)
        return false;
    if (job_state_is_final(job->state) && !job_all_leases_ended(job))
        return false;
    if (job_state_has_leases(job->state) && job_all_leases_ended(job) &&
        !job_waits_for_machine(job))
        return false;
    return id_list_contains(&core->pending, job->id) == (job->state == JOB_STATE_PENDING) &&
           (job->waiting_numbers[0] != 0) ==
               (job->state == JOB_STATE_PENDING && job->start_ms == 0 && !is_spare) &&
           id_list_contains(&core->short_of_money, job->id) == job->is_short &&
           (job->line_place != 0) ==
               (job->waiting_numbers[0] != 0 && !job->is_short && !job->is_stuck) &&
           id_list_contains(&core->active, job->id) == job_state_has_leases(job->state);
}

/* Who is not wanted for the next epoch has been asked to stop. */
static bool is_schedule_kept(const struct job *job)
{
    const struct job_request *request = &job->request;
    if (request->workers_first == 0)
        return job->workers_wanted == 0;
    if (job->workers_wanted < request->num_nodes ||
        job->workers_wanted > job_request_nodes_max(request))
        return false;
    for (size_t i = (size_t)job->workers_wanted; i < job->worker_count; i++)
        if (lease_is_open(job->workers[i]) && job->workers[i]->stop_wanted_ms == 0 &&
            job->state != JOB_STATE_STOPPING)
            return false;
    return true;
}

/* The newest lease of each rank is where it belongs, and all before it have ended. */
static bool are_workers_sound(const struct job *job)
{
    size_t newest = 0;
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *lease = job->leases[i];
        if (lease->role != LEASE_ROLE_WORKER)
            continue;
        if (lease->rank >= job->worker_count)
            return false;
        const bool is_newest = job->workers[lease->rank] == lease;
        if (!is_newest && lease_is_open(lease))
            return false;
        newest += is_newest;
    }
    return newest == job->worker_count;
}

/* The first are its servers if there are any; of later ones those of successors and replicas. */
static bool is_role_sound(const struct job *job, size_t index)
{
    const struct lease *lease = job->leases[index];
    if (lease->role == LEASE_ROLE_WORKER)
        return index >= job_request_servers(&job->request);
    return lease->rank < job_request_server_ranks(&job->request) &&
           (lease == job->servers[lease->rank] || !lease_is_open(lease));
}

/* A replica that stays can take the lead: it is the younger, and elsewhere. */
static bool is_replica_sound(const struct job *job)
{
    const struct lease *lead = job_lead(job);
    const struct lease *replica =
        job->request.has_replica ? job->servers[job_request_servers(&job->request)] : NULL;
    return !lead || !replica || !lease_is_open(lead) || !lease_is_open(replica) ||
           replica->stop_wanted_ms > 0 ||
           (replica->fence > lead->fence && replica->machine != lead->machine);
}

static int check_job(const struct core *core, const struct job *job, struct error *error)
{
    if (!is_state_sound(core, job))
        return broken(error, "job", job->id, "its leases or lists do not fit its state");
    int64_t quoted = 0, posted = 0, fees = 0;
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *lease = job->leases[i];
        if (!is_lease_sound(core, job, lease) || !is_role_sound(job, i))
            return broken(error, "lease", lease->id, "it does not fit its job, machine or bill");
        quoted = price_add_micro(quoted, lease->quote_micro);
        posted = price_add_micro(posted, lease->posted_micro);
        fees = price_add_micro(fees, lease->fee_micro);
    }
    if (!is_schedule_kept(job))
        return broken(error, "job", job->id, "it has workers that it does not want");
    if (!are_workers_sound(job))
        return broken(error, "job", job->id, "its ranks do not fit its leases");
    if (!is_replica_sound(job))
        return broken(error, "job", job->id, "its replica is older than its lead, or beside it");
    if (posted + job->cancel_fee_micro != job->posted_micro || fees != job->fee_micro ||
        (job->lease_count > 0 &&
         (quoted < job->quote_micro || job_committed_micro(job) > job->quote_micro)))
        return broken(error, "job", job->id, "its leases' bills do not add up");
    if (job->request.max_total_micro > 0 && job->quote_micro > job->request.max_total_micro)
        return broken(error, "job", job->id, "its quote passes its maximum");
    if (job->request.max_hourly_micro > 0 && job_hourly_micro(job) > job->request.max_hourly_micro)
        return broken(error, "job", job->id, "its leases pass its maximum per hour");
    const int64_t expected =
        job_state_is_final(job->state) ? 0 : job->quote_micro - job->posted_micro;
    const struct ledger_hold *hold = ledger_hold(core->ledger, job->id);
    if (ledger_hold_micro(hold) != expected || (hold && hold->account != job->request.account))
        return broken(error, "job", job->id, "what is held is not what it may still cost");
    const struct job_sums *sums = &job->sums;
    if (sums->posted_micro + sums->fee_micro != job->posted_micro ||
        sums->held_micro - sums->voided_micro - job->posted_micro != expected)
        return broken(error, "job", job->id, "its entries do not add up");
    return 0;
}

/* What machines' earnings are withheld of is what their owners cannot spend. */
static int check_withheld(const struct core *core, struct error *error)
{
    struct map rests;
    map_init(&rests);
    int64_t *values = calloc(core->accounts.count + 1, sizeof(*values));
    ASSERT(values);
    for (size_t i = 0; i < core->accounts.count; i++) {
        values[i] = ledger_account(core->ledger, core->accounts.entries[i].key)->withheld_micro;
        map_put(&rests, core->accounts.entries[i].key, &values[i]);
    }
    const struct machine *unsound = NULL;
    for (size_t i = 0; i < core->machines.count; i++) {
        const struct machine *machine = core->machines.entries[i].value;
        int64_t *rest = map_get(&rests, machine->owner);
        *rest -= machine->withheld_micro;
        if (machine->withheld_micro < 0 || (machine->withheld_micro > 0 && !machine->is_unproven))
            unsound = machine;
    }
    uint64_t odd = 0;
    for (size_t i = 0; i < core->accounts.count; i++)
        if (values[i] != 0)
            odd = core->accounts.entries[i].key;
    map_done(&rests);
    free(values);
    if (unsound)
        return broken(error, "machine", unsound->id, "something is withheld of what it earned");
    return odd ? broken(error, "account", odd, "what is withheld is not what its machines earned")
               : 0;
}

static int check_counts(const struct core *core, struct error *error)
{
    size_t listed = 0, open = 0, leases = 0, offers = 0, short_handed = 0;
    for (size_t i = 0; i < core->machines.count; i++) {
        const struct machine *machine = core->machines.entries[i].value;
        listed += machine->lease_count + machine_spare_count(machine);
        offers += machine->offer_count;
    }
    if (offers != core->offers.count)
        return error_set(error, ERROR_CORRUPT, "offers are listed more than once, or not at all");
    for (size_t i = 0; i < core->leases.count; i++)
        open += lease_is_open(core->leases.entries[i].value);
    size_t spare_jobs = 0;
    for (size_t i = 0; i < core->jobs.count; i++) {
        const struct job *job = core->jobs.entries[i].value;
        leases += job->lease_count + job->former_count;
        spare_jobs += job->request.is_spare && !job_state_is_final(job->state);
    }
    if (listed != open || leases != core->leases.count)
        return error_set(error, ERROR_CORRUPT, "leases are listed more than once, or not at all");
    if (ledger_account_count(core->ledger) != core->accounts.count)
        return error_set(error, ERROR_CORRUPT, "accounts and the ledger differ");
    for (size_t i = 0; i < core->accounts.count; i++) {
        if (!ledger_account(core->ledger, core->accounts.entries[i].key))
            return broken(error, "account", core->accounts.entries[i].key, "it is in no ledger");
        const struct account *account = core->accounts.entries[i].value;
        short_handed += account->short_handed_count;
        spare_jobs -= account->spare_waiting_count + account->spare_active_count;
        if (account->spare_active_count > 1)
            return broken(error, "account", account->id, "two of its jobs have spare time");
    }
    if (short_handed != core->short_handed.count || spare_jobs != 0)
        return error_set(error, ERROR_CORRUPT, "jobs that lack workers do not add up");
    for (size_t i = 0; i < ledger_hold_count(core->ledger); i++)
        if (!core_job(core, ledger_hold_at(core->ledger, i)->job))
            return broken(error, "job", ledger_hold_at(core->ledger, i)->job,
                          "credits are held for it, but it does not exist");
    return 0;
}

static int check_account(const struct core *core, const struct account *account,
                         struct error *error)
{
    const struct ledger_account *parts = ledger_account(core->ledger, account->id);
    if (parts->is_frozen != account_is_frozen(account) ||
        parts->is_closed != (account->deleted_ms > 0))
        return broken(error, "account", account->id, "it and the ledger differ in its state");
    if (id_list_contains(&core->waiting_grants, account->id) !=
        (account->grant == GRANT_STATE_WAITING))
        return broken(error, "account", account->id, "its wait for a grant is not listed");
    if (account->deleted_ms && (account->token_count || account->code_count || account->group ||
                                account->password[0] || account->grant == GRANT_STATE_WAITING))
        return broken(error, "account", account->id, "it is deleted and has something left");
    for (size_t i = 0; i < account->token_count; i++)
        if (account->tokens[i]->account != account->id || account->tokens[i]->is_revoked)
            return broken(error, "account", account->id, "it lists a token that is not its own");
    return 0;
}

static int check_groups(const struct core *core, struct error *error)
{
    size_t members = 0, tokens = 0, codes = 0, usable = 0;
    for (size_t i = 0; i < core->accounts.count; i++) {
        const struct account *account = core->accounts.entries[i].value;
        if (account->group && !core_group(core, account->group))
            return broken(error, "account", account->id, "its group does not exist");
        members += account->group != 0;
        tokens += account->token_count;
        codes += account->code_count;
    }
    for (size_t i = 0; i < core->groups.count; i++) {
        const struct group *group = core->groups.entries[i].value;
        const struct account *owner = core_account(core, group->owner);
        if (group->member_count == 0 ? group->owner != 0 : !owner || owner->group != group->id)
            return broken(error, "group", group->id, "its owner is not one of its members");
        const struct group *named = core_group_by_name(core, text_of(group->name));
        if (group->member_count > 0 ? named != group : named == group)
            return broken(error, "group", group->id, "its name does not lead to it, or still does");
        members -= group->member_count;
    }
    for (size_t i = 0; i < core->tokens.count; i++)
        usable += !((const struct token *)core->tokens.entries[i].value)->is_revoked;
    if (members != 0 || tokens != usable || codes != core->codes.count)
        return error_set(error, ERROR_CORRUPT, "members, tokens or codes do not add up");
    return 0;
}

int core_check(const struct core *core, struct error *error)
{
    if (ledger_check(core->ledger, error) < 0 || check_counts(core, error) < 0)
        return -1;
    if (check_groups(core, error) < 0 || check_withheld(core, error) < 0)
        return -1;
    if (!core_wakes_are_sound(core))
        return broken(error, "market", core->sequence, "something is due before it wakes");
    for (size_t i = 0; i < core->accounts.count; i++)
        if (check_account(core, core->accounts.entries[i].value, error) < 0)
            return -1;
    for (size_t i = 0; i < core->machines.count; i++)
        if (check_machine(core, core->machines.entries[i].value, error) < 0)
            return -1;
    for (size_t i = 0; i < core->jobs.count; i++)
        if (check_job(core, core->jobs.entries[i].value, error) < 0)
            return -1;
    return 0;
}
