/*
 * Workers of jobs that are under way: successors of those that were lost, and growth.
 *
 * A successor takes its predecessor's rank under a lease and fence of its own. What its job was
 * quoted and has not spent pays for it first, the borrower's balance for the rest, and neither the
 * job's maximum nor its maximum per hour is passed. It runs for what is left of the job's time.
 *
 * When there is none, the job says why, until there is or nobody is missing any more.
 *
 * Successors come before jobs that wait: theirs have begun. Growth comes when nobody waits
 * for room that will be there some day.
 */
#include "core/match_rounds.h"

#include <stdlib.h>

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

/* A request for one worker of the job. NULL; or why there can be none. */
static const char *ask_for_one(const struct decision *decision, const struct job *job,
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
            return "the job's maximum per hour leaves nothing for one";
    }
    *out_request = request;
    return request.max_run_ms >= 1000 && request.max_run_ms >= request.tick_ms
               ? NULL
               : "too little of the job's time is left";
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

/* NULL; or why there is none. */
static const char *add_worker(struct decision *decision, const struct job *job, size_t rank)
{
    const struct core *core = decision->core;
    struct job_request request;
    if (account_is_frozen(core_account(core, job->request.account)))
        return "the account is frozen";
    if (job->request.is_spare && !core_may_have_spare(core, job->request.account))
        return "the account has credits again, and spare time is for those who have none";
    const char *why = ask_for_one(decision, job, &request);
    if (why)
        return why;
    decide_close_slots(decision); /* its price is of the slot that runs */
    struct match_wish wish =
        core_wish(core, &request, core_held_micro(core, job->id), decision->now_ms);
    wish.budget_micro = budget_micro(core, job);
    wish.beside = job;
    struct match_placement placement;
    const struct match_reservation *ahead =
        request.is_spare ? decide_ahead(decision, /* job= */ NULL) : NULL;
    const struct machine **others = NULL;
    if (wish_max_rtt_us(&wish, MACHINE_ROLE_WORKER) > 0)
        wish.others = others = find_others(core, job, &wish.other_count);
    const enum match_result result = match_place(core->matcher, &wish, ahead, &placement);
    free(others);
    wish.others = NULL;
    if (result != MATCH_PLACED)
        return why_not(result, request.wishes.max_rtt_us > 0);
    struct match_part *part = &placement.parts[0];
    part->rank = rank;
    const int64_t wanted_micro = job_committed_micro(job) + part->quote_micro;
    if (wanted_micro > job->quote_micro)
        decision_hold_more(decision, job, wanted_micro - job->quote_micro);
    decision_offer_lease(decision, job, part, &wish);
    return NULL;
}

/* Tells the borrower of a worker without a successor, once for each reason. */
static void note_lost(struct decision *decision, const struct job *job, const char *why)
{
    struct event event = {.kind = EVENT_JOB_NOTED, .job_noted = {.job = job->id}};
    const size_t rank = job_lost_rank(job, 0);
    if (why && rank < job->worker_count)
        snprintf(event.job_noted.reason, JOB_REASON_SIZE,
                 "worker %zu is gone and has no successor yet: %s", rank, why);
    if (strcmp(event.job_noted.reason, job->reason) != 0)
        decision_emit(decision, &event);
}

void decision_replace_workers(struct decision *decision, const struct job *job)
{
    const char *why = NULL;
    size_t rank = job_lost_rank(job, 0);
    while (rank < job->worker_count && !(why = add_worker(decision, job, rank)))
        rank = job_lost_rank(job, rank + 1);
    note_lost(decision, job, why);
}

void decision_grow(struct decision *decision, const struct job *job)
{
    while (job_can_grow(job) && !add_worker(decision, job, job->worker_count))
        continue;
}

bool decide_is_bereaved(const struct job *job)
{
    return job_lost_rank(job, 0) < job->worker_count;
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
                    decide_is_bereaved, decision_replace_workers);
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
