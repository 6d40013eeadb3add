/*
 * Workers of jobs that are under way: successors of those that were lost, and growth.
 *
 * A successor takes its predecessor's rank under a lease and fence of its own. What its job was
 * quoted and has not spent pays for it first, the borrower's balance for the rest, and neither the
 * job's maximum nor its maximum per hour is passed. It runs for what is left of the job's time.
 *
 * Successors come before jobs that wait: theirs have begun. Growth comes when nobody waits
 * for room that will be there some day.
 */
#include "core/core_internal.h"

enum { TRIES_MAX = 8 }; /* jobs, after one event */

/* What one more worker may cost over its whole run. */
static int64_t budget_micro(const struct core *core, const struct job *job)
{
    int64_t more_micro = ledger_holdable_micro(core_balance(core, job->request.account));
    if (job->request.max_total_micro > 0 &&
        job->request.max_total_micro - job->quote_micro < more_micro)
        more_micro = job->request.max_total_micro - job->quote_micro;
    return job->quote_micro - job_committed_micro(job) + more_micro;
}

/* How near the next worker must be for the longest RTT to hold between it and any other. */
static int64_t rtt_left_us(const struct core *core, const struct job *job)
{
    int64_t farthest_us = 0;
    for (size_t i = 0; i < job->worker_count; i++) {
        const int64_t rtt_us = core_machine(core, job->workers[i]->machine)->probe.rtt_us;
        if (lease_is_open(job->workers[i]) && rtt_us > farthest_us)
            farthest_us = rtt_us;
    }
    return job->request.wishes.max_rtt_us - farthest_us;
}

/* A request for one worker of the job. False: nothing is left of its time, money or RTT. */
static bool ask_for_one(const struct decision *decision, const struct job *job,
                        struct job_request *out_request)
{
    struct job_request request = job->request;
    request.num_nodes = 1;
    request.num_nodes_max = 0;
    request.server = (struct resources){0};
    request.is_rush = false; /* that was for its place in the queue */
    request.max_run_ms = job_run_left_ms(job, decision->now_ms);
    if (request.max_hourly_micro > 0) {
        request.max_hourly_micro -= job_hourly_micro(job);
        if (request.max_hourly_micro <= 0)
            return false;
    }
    if (request.wishes.max_rtt_us > 0) {
        request.wishes.max_rtt_us = rtt_left_us(decision->core, job);
        if (request.wishes.max_rtt_us <= 0)
            return false;
    }
    *out_request = request;
    return request.max_run_ms >= 1000 && request.max_run_ms >= request.tick_ms;
}

static bool add_worker(struct decision *decision, const struct job *job, size_t rank)
{
    const struct core *core = decision->core;
    struct job_request request;
    if (account_is_frozen(core_account(core, job->request.account)) ||
        !ask_for_one(decision, job, &request))
        return false;
    decide_close_slots(decision); /* its price is of the slot that runs */
    struct match_wish wish =
        core_wish(core, &request, core_held_micro(core, job->id), decision->now_ms);
    wish.budget_micro = budget_micro(core, job);
    wish.beside = job;
    struct match_placement placement;
    if (match_place(core->matcher, &wish, NULL, &placement) != MATCH_PLACED)
        return false;
    struct match_part *part = &placement.parts[0];
    part->rank = rank;
    const int64_t wanted_micro = job_committed_micro(job) + part->quote_micro;
    if (wanted_micro > job->quote_micro)
        decision_hold_more(decision, job, wanted_micro - job->quote_micro);
    decision_offer_lease(decision, job, part, &wish);
    return true;
}

void decision_replace_workers(struct decision *decision, const struct job *job)
{
    size_t rank = job_lost_rank(job, 0);
    while (rank < job->worker_count && add_worker(decision, job, rank))
        rank = job_lost_rank(job, rank + 1);
}

static void grow(struct decision *decision, const struct job *job)
{
    while (job_can_grow(job) && add_worker(decision, job, job->worker_count))
        continue;
}

/* The jobs that want workers, beginning after the one that was tried last, a few at a time. */
static void each_short_handed(struct decision *decision,
                              void (*function)(struct decision *, const struct job *))
{
    struct core *core = decision->core;
    const struct id_list *jobs = &core->short_handed;
    size_t at = 0;
    while (at < jobs->count && jobs->items[at].id <= core->growth_turn)
        at++;
    const size_t tries = jobs->count < TRIES_MAX ? jobs->count : TRIES_MAX;
    for (size_t i = 0; i < tries && jobs->count > 0; i++) {
        if (at >= jobs->count)
            at = 0;
        const struct job *job = jobs->items[at].value;
        core->growth_turn = job->id;
        function(decision, job);
        /* One that got all it wants left the list. */
        if (at < jobs->count && jobs->items[at].id == job->id)
            at++;
    }
}

void decide_successors(struct decision *decision)
{
    each_short_handed(decision, decision_replace_workers);
}

void decide_growth(struct decision *decision)
{
    if (decision->core->short_handed.count > 0 && !decide_has_line(decision))
        each_short_handed(decision, grow);
}
