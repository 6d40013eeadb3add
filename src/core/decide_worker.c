/*
 * Leases of jobs that are under way: successors of those that were lost, and growth.
 *
 * A successor takes its predecessor's rank under a lease and fence of its own. What its job was
 * quoted and has not spent pays for it first, the borrower's balance for the rest, and neither the
 * job's maximum nor its maximum per hour is passed. It runs for what is left of the job's time. A
 * lead that has a replica needs none: the replica takes its rank, and gets a successor itself.
 *
 * When there is none, the job says why, until there is or nobody is missing any more.
 *
 * A server whose machine is silent stops all of its job: it is moved at once where there is room,
 * and fences keep the old one out. A worker is waited for.
 *
 * Successors come before jobs that wait: theirs have begun. Growth comes when nobody waits
 * for room that will be there some day.
 */
#include "core/match_rounds.h"

#include <inttypes.h>
#include <stdlib.h>

enum { TRIES_MAX = 8 }; /* jobs, after one event */

/* What one more lease may cost over its whole run. */
static int64_t budget_micro(const struct core *core, const struct job *job)
{
    int64_t more_micro = ledger_holdable_micro(core_balance(core, job->request.account));
    if (job->request.max_total_micro > 0 &&
        job->request.max_total_micro - job->quote_micro < more_micro)
        more_micro = job->request.max_total_micro - job->quote_micro;
    return job->quote_micro - job_committed_micro(job) + more_micro;
}

/* Where its workers are, whom one more must be near; free() it. */
static const struct machine **find_others(const struct core *core, const struct job *job,
                                          size_t *out_count)
{
    const struct machine **others = calloc(job->worker_count + 1, sizeof(*others));
    ASSERT(others);
    *out_count = 0;
    for (size_t i = 0; i < job->worker_count; i++)
        if (lease_is_open(job->workers[i]))
            others[(*out_count)++] = core_machine(core, job->workers[i]->machine);
    return others;
}

/* One more lease of a job that is under way. */
struct addition {
    const struct job *job;
    enum lease_role role;
    size_t rank;
    const struct lease *instead_of; /* which will cost nothing more; NULL: of none that is open */
};

/* A request for one worker of the job, or for one server alone. NULL; or why there can be none. */
static const char *ask_for_one(const struct decision *decision, const struct addition *addition,
                               struct job_request *out_request)
{
    const struct job *job = addition->job;
    const struct lease *old = addition->instead_of;
    struct job_request request = job->request;
    const bool is_worker = addition->role == LEASE_ROLE_WORKER;
    request.num_nodes = is_worker;
    request.num_nodes_max = request.workers_first = 0;
    request.server_count = 0;
    request.has_replica = false;
    if (is_worker)
        request.server = (struct resources){0};
    request.is_rush = false; /* that was for its place in the queue */
    request.max_run_ms = job_run_left_ms(job, decision->now_ms);
    if (request.max_hourly_micro > 0) {
        request.max_hourly_micro -= job_hourly_micro(job);
        if (old)
            request.max_hourly_micro += price_hourly_lock_micro(old->units, old->lock);
        if (request.max_hourly_micro <= 0)
            return "the job's maximum per hour leaves nothing for one";
    }
    *out_request = request;
    return request.max_run_ms >= 1000 && request.max_run_ms >= request.tick_ms
               ? NULL
               : "too little of the job's time is left";
}

static bool is_replica(const struct addition *addition)
{
    return addition->role == LEASE_ROLE_SERVER &&
           addition->rank == job_request_servers(&addition->job->request);
}

static const char *why_not(enum match_result result, bool has_max_rtt)
{
    switch (result) {
    case MATCH_OVER_BUDGET:
        return "what is left of the job's budget does not reach";
    case MATCH_OVER_HOURLY:
        return "the job's maximum per hour does not reach";
    case MATCH_FEW_MACHINES:
    case MATCH_NO_SERVER:
        return has_max_rtt ? "no other machine with room for it is near enough to the others"
                           : "no other machine has room for it";
    case MATCH_PLACED:
    case MATCH_RESULT_COUNT:
        break;
    }
    UNREACHABLE("a placement that is no failure");
}

static enum match_result place(struct decision *decision, const struct addition *addition,
                               struct match_wish *wish, struct match_placement *out_placement)
{
    const struct core *core = decision->core;
    const struct job *job = addition->job;
    const struct match_reservation *ahead =
        job->request.is_spare ? decide_ahead(decision, /* job= */ NULL) : NULL;
    wish->beside = job;
    if (is_replica(addition))
        wish->apart_from = job_lead(job)->machine;
    if (addition->role == LEASE_ROLE_SERVER)
        return match_place_server(core->matcher, wish, ahead, out_placement);
    const struct machine **others = NULL;
    if (wish_max_rtt_us(wish, MACHINE_ROLE_WORKER) > 0)
        wish->others = others = find_others(core, job, &wish->other_count);
    const enum match_result result = match_place(core->matcher, wish, ahead, out_placement);
    free(others);
    wish->others = NULL;
    return result;
}

/* What one more lease is to be, and what it may cost. NULL; or why there can be none. */
static const char *wish_for_one(struct decision *decision, const struct addition *addition,
                                struct job_request *out_request, struct match_wish *out_wish)
{
    const struct core *core = decision->core;
    const struct job *job = addition->job;
    const struct lease *old = addition->instead_of;
    if (account_is_frozen(core_account(core, job->request.account)))
        return "the account is frozen";
    if (job->request.is_spare && !core_may_have_spare(core, job->request.account))
        return "the account has credits again, and spare time is for those who have none";
    const char *why = ask_for_one(decision, addition, out_request);
    if (why)
        return why;
    decide_close_slots(decision); /* its price is of the slot that runs */
    *out_wish = core_wish(core, out_request, core_held_micro(core, job->id), decision->now_ms);
    out_wish->budget_micro =
        budget_micro(core, job) + (old ? old->quote_micro - old->posted_micro : 0);
    return NULL;
}

/* NULL; or why there is none. */
static const char *add_lease(struct decision *decision, const struct job *job, enum lease_role role,
                             size_t rank)
{
    const struct addition addition = {.job = job, .role = role, .rank = rank};
    struct job_request request;
    struct match_wish wish;
    const char *why = wish_for_one(decision, &addition, &request, &wish);
    if (why)
        return why;
    struct match_placement placement;
    const enum match_result result = place(decision, &addition, &wish, &placement);
    if (result != MATCH_PLACED)
        return why_not(result, role == LEASE_ROLE_WORKER && request.wishes.max_rtt_us > 0);
    struct match_part *part = &placement.parts[0];
    part->rank = rank;
    const int64_t wanted_micro = job_committed_micro(job) + part->quote_micro;
    if (wanted_micro > job->quote_micro)
        decision_hold_more(decision, job, wanted_micro - job->quote_micro);
    decision_offer_lease(decision, job, part, &wish);
    return NULL;
}

/* NULL: all of its workers are heard. */
static const struct lease *find_silent(const struct core *core, const struct job *job)
{
    for (size_t i = 0; i < job->worker_count; i++)
        if (core_lease_is_unreachable(core, job->workers[i]))
            return job->workers[i];
    return NULL;
}

/* Tells the borrower of who has no successor, or is not heard, once for each reason. */
static void note_lost(struct decision *decision, const struct job *job, const char *why)
{
    const struct core *core = decision->core;
    const struct lease *silent = find_silent(core, job);
    struct event event = {.kind = EVENT_JOB_NOTED, .job_noted = {.job = job->id}};
    const size_t rank = job_lost_rank(job, 0);
    const size_t server = job_lost_server(job, 0), servers = job_request_servers(&job->request);
    if (why && server < servers)
        snprintf(event.job_noted.reason, JOB_REASON_SIZE,
                 "the parameter server is gone and has no successor yet: %s", why);
    else if (why && rank < job->worker_count)
        snprintf(event.job_noted.reason, JOB_REASON_SIZE,
                 "%s %zu is gone and has no successor yet: %s",
                 job_has_server(job) ? "worker" : "rank", rank, why);
    else if (why && server == servers && job->request.has_replica)
        snprintf(event.job_noted.reason, JOB_REASON_SIZE,
                 "the parameter server has no replica yet: %s", why);
    else if (silent)
        snprintf(event.job_noted.reason, JOB_REASON_SIZE,
                 "%s %" PRIu64 " on %s: not heard for %" PRId64 " s",
                 job_has_server(job) ? "worker" : "rank", silent->rank,
                 core_machine(core, silent->machine)->name,
                 (core->settings.silence_ms + 999) / 1000);
    if (strcmp(event.job_noted.reason, job->reason) != 0)
        decision_emit(decision, &event);
}

/* A replica that outlived its lead takes its place, unless it cannot: then it goes, for one that is
 * older than the next lead could never follow it. */
static void settle_orphan(struct decision *decision, const struct job *job)
{
    const struct lease *orphan = job_orphan(job);
    if (!orphan || !lease_wants_successor(job_lead(job)))
        return;
    if (!job_can_promote(job) ||
        core_machine(decision->core, orphan->machine)->state != MACHINE_STATE_ONLINE) {
        decision_want_stop(decision, orphan, "the parameter server it followed is gone");
        return;
    }
    struct event event = {
        .kind = EVENT_LEASE_PROMOTED,
        .lease_promoted = {.lease = orphan->id, .job = job->id, .fence = orphan->fence}};
    decision_emit(decision, &event);
}

static const char *replace_servers(struct decision *decision, const struct job *job, size_t from,
                                   size_t before)
{
    const char *why = NULL;
    size_t rank = job_lost_server(job, from);
    while (rank < before && !(why = add_lease(decision, job, LEASE_ROLE_SERVER, rank)))
        rank = job_lost_server(job, rank + 1);
    return why;
}

static const char *replace_workers(struct decision *decision, const struct job *job)
{
    const char *why = NULL;
    size_t rank = job_lost_rank(job, 0);
    while (rank < job->worker_count && !(why = add_lease(decision, job, LEASE_ROLE_WORKER, rank)))
        rank = job_lost_rank(job, rank + 1);
    return why;
}

/* The replica comes last: it must not have the room that its job needs to go on. */
void decision_replace_lost(struct decision *decision, const struct job *job)
{
    const size_t servers = job_request_servers(&job->request);
    settle_orphan(decision, job);
    const char *why = replace_servers(decision, job, 0, servers);
    const char *why_workers = replace_workers(decision, job);
    if (!why)
        why = why_workers;
    if (!why)
        why = replace_servers(decision, job, servers, servers + job->request.has_replica);
    note_lost(decision, job, why);
}

void decision_grow(struct decision *decision, const struct job *job)
{
    while (job_can_grow(job) && !add_lease(decision, job, LEASE_ROLE_WORKER, job_growth_rank(job)))
        continue;
}

/* Whether somebody could take its place at once. */
static bool has_heir(const struct decision *decision, const struct job *job,
                     const struct lease *server)
{
    const struct lease *replica =
        job->request.has_replica ? job->servers[job_request_servers(&job->request)] : NULL;
    return server == job_lead(job) && replica && replica->state == LEASE_STATE_RUNNING &&
           replica->stop_wanted_ms == 0 &&
           core_machine(decision->core, replica->machine)->state == MACHINE_STATE_ONLINE;
}

/* A replica is waited for, as workers are. */
static bool could_move_server(struct decision *decision, const struct job *job,
                              const struct lease *server)
{
    struct job_request request;
    struct match_wish wish;
    struct match_placement placement;
    const struct addition addition = {job, LEASE_ROLE_SERVER, server->rank, server};
    if (server->rank >= job_request_servers(&job->request) || job->state == JOB_STATE_STOPPING)
        return false;
    if (has_heir(decision, job, server))
        return true;
    if (!job->request.replaces_lost || wish_for_one(decision, &addition, &request, &wish))
        return false;
    return place(decision, &addition, &wish, &placement) == MATCH_PLACED;
}

/* Those that are paid for, then those of spare time; NULL: there are no more. */
static const struct lease *lease_at(const struct machine *machine, size_t at)
{
    if (at < machine->lease_count)
        return machine->leases[at];
    at -= machine->lease_count;
    return at < machine_spare_count(machine) ? machine->spare->leases[at] : NULL;
}

void decide_move_servers(struct decision *decision, const struct machine *machine)
{
    const struct lease *lease;
    for (size_t i = 0; (lease = lease_at(machine, i));) {
        const struct job *job = core_job(decision->core, lease->job);
        if (lease->role != LEASE_ROLE_SERVER || !could_move_server(decision, job, lease)) {
            i++;
            continue;
        }
        decision_end_lease(decision, lease, LEASE_OUTCOME_LOST, "its machine is unreachable");
        decision_settle_job(decision, job);
        i = 0; /* its leases are others now */
    }
}

void decide_note_silence(struct decision *decision, const struct machine *machine)
{
    const struct lease *lease;
    for (size_t i = 0; (lease = lease_at(machine, i)); i++)
        if (lease->role == LEASE_ROLE_WORKER)
            decision_settle_job(decision, core_job(decision->core, lease->job));
}

bool decide_is_bereaved(const struct job *job)
{
    return job_lost_server(job, 0) < job_request_server_ranks(&job->request) ||
           job_lost_rank(job, 0) < job->worker_count;
}

void decide_each(struct decision *decision, const struct id_list *jobs, struct worker_turns *turns,
                 int tries_max, bool (*wants)(const struct job *),
                 void (*function)(struct decision *, const struct job *))
{
    size_t at = 0;
    if (turns->left > jobs->count)
        turns->left = jobs->count;
    while (at < jobs->count && jobs->items[at].id <= turns->last)
        at++;
    for (int tries = 0; turns->left > 0 && jobs->count > 0 && tries < tries_max; turns->left--) {
        if (at >= jobs->count)
            at = 0;
        const struct job *job = jobs->items[at].value;
        turns->last = job->id;
        if (wants(job)) {
            function(decision, job);
            tries++;
        }
        /* One that got all it wants left the list. */
        if (at < jobs->count && jobs->items[at].id == job->id)
            at++;
    }
    if (jobs->count == 0)
        turns->left = 0;
}

void decide_successors(struct decision *decision, bool is_better)
{
    struct core *core = decision->core;
    if (is_better)
        core->successor_turns.left = core->short_handed.count;
    if (core->successor_turns.left > 0)
        decide_each(decision, &core->short_handed, &core->successor_turns, TRIES_MAX,
                    decide_is_bereaved, decision_replace_lost);
}

void decide_growth(struct decision *decision, bool is_better)
{
    struct core *core = decision->core;
    if (is_better)
        core->growth_turns.left = core->short_handed.count;
    if (core->growth_turns.left == 0)
        return;
    if (decide_has_line(decision))
        core->growth_turns.left = 0; /* who leaves the line is an event */
    else
        decide_each(decision, &core->short_handed, &core->growth_turns, TRIES_MAX, job_can_grow,
                    decision_grow);
}

/* A market that was loaded has tried nobody yet: what was left to try when it stopped is not known.
 */
static bool is_new_to_who_waits(const struct core *core)
{
    return core->rounds->sweep == MATCH_SWEEP_ALL && book_count(core->waiting.book) > 0;
}

static bool is_spare_open(const struct core *core)
{
    return core->spare_turns[0].left > 0 || core->spare_turns[1].left > 0 ||
           (core->rounds->is_spare_due && core->spare_waiting.count + core->spare_short.count > 0);
}

bool core_tries_are_open(const struct core *core)
{
    return match_rounds_are_open(core->rounds) || is_new_to_who_waits(core) ||
           is_spare_open(core) || core->successor_turns.left > 0 || core->growth_turns.left > 0;
}
