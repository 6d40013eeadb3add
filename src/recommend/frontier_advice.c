/*
 * Frontier, the advice: what a person should know of the choice, as codes with a figure each.
 */
#include "base/assert.h"
#include "recommend/frontier_internal.h"
#include "recommend/predict_internal.h"

#include <math.h>

static const double link_full = 0.85, waiting_much = 0.3, risk_much = 0.1, range_wide = 4;
static const double start_much = 0.5, function_dear = 1.2, function_slow = 0.5;
static const double faster_least = 0.05; /* of the time: less is nothing */
static const double batch_doubled = 2;   /* workers at or below which more learn hardly more */

const char *advice_code_name(enum advice_code code)
{
    static const char *const names[ADVICE_COUNT] = {
        [ADVICE_ONE_MACHINE] = "one-machine",
        [ADVICE_LINK_FULL] = "link-full",
        [ADVICE_WAITING] = "waiting",
        [ADVICE_LARGE_BATCH] = "large-batch",
        [ADVICE_FUNCTION_DEAR] = "function-dear",
        [ADVICE_FUNCTION_SLOW] = "function-slow",
        [ADVICE_SPOT_RISK] = "spot-risk",
        [ADVICE_TRIAL_FIRST] = "trial-first",
        [ADVICE_DEADLINE_TIGHT] = "deadline-tight",
        [ADVICE_SHORT_JOB] = "short-job",
    };
    ASSERT(code < ADVICE_COUNT);
    return names[code];
}

static void say(struct frontier *frontier, enum advice_code code, double figure)
{
    ASSERT(frontier->advice_count < ADVICE_COUNT);
    frontier->advice[frontier->advice_count++] = (struct advice){code, figure};
}

/* The chosen cluster with another number of workers, all kinds alike. */
static struct prediction with_workers(const struct frontier_request *request,
                                      const struct choice *choice, uint32_t count)
{
    struct prediction told;
    const struct cluster_plan plan = {.parts = {{choice->plan.parts[0].candidate, count}},
                                      .part_count = 1};
    predict(choice->fit, &plan, &request->server, &told);
    return told;
}

/* Under another policy, or with other machines, more may still bring something. */
static bool is_faster_with_more(const struct frontier *frontier)
{
    const struct choice *chosen = &frontier->chosen;
    for (size_t i = 0; i < frontier->choice_count; i++) {
        const struct choice *choice = &frontier->choices[i];
        if (cluster_plan_workers(&choice->plan) > cluster_plan_workers(&chosen->plan) &&
            choice->prediction.seconds.expected <
                (1 - faster_least) * chosen->prediction.seconds.expected)
            return true;
    }
    return false;
}

static void advise_distribution(const struct frontier_request *request, struct frontier *frontier)
{
    const struct choice *chosen = &frontier->chosen;
    const struct prediction *told = &chosen->prediction;
    const uint32_t workers = cluster_plan_workers(&chosen->plan);
    const struct fit *fit = chosen->fit;
    if (workers == 1) {
        const struct prediction two = with_workers(request, chosen, 2);
        const double cost = told->cost_micro.expected;
        say(frontier, ADVICE_ONE_MACHINE, cost > 0 ? two.cost_micro.expected / cost : 1);
    }
    const struct flow_server link = rate_server(fit, &request->server);
    const double service_s = fmax(link.up_s, link.down_s);
    if (told->link_share > link_full && service_s > 0 && !is_faster_with_more(frontier))
        say(frontier, ADVICE_LINK_FULL, workers);
    if (told->wait_share > waiting_much && workers > 1)
        say(frontier, ADVICE_WAITING, told->wait_share);
    if (fit->critical_batch > 0 && fit->policy->gain_most <= 1 &&
        fit->critical_batch / fit->job.signature.batch < batch_doubled)
        say(frontier, ADVICE_LARGE_BATCH, fmax(1, fit->critical_batch / fit->job.signature.batch));
}

/* The cheapest cluster of functions alone, up to as many workers as the chosen one has. */
static void advise_functions(const struct frontier_request *request, struct frontier *frontier)
{
    const struct choice *chosen = &frontier->chosen;
    double least = HUGE_VAL, slowest = 0;
    for (size_t i = 0; i < request->candidate_count; i++) {
        const struct candidate *candidate = &request->candidates[i];
        if (candidate->source != CANDIDATE_FUNCTION)
            continue;
        struct rated rated = rate_candidate(chosen->fit, candidate);
        const struct flow_server link = rate_server(chosen->fit, &request->server);
        const struct outlook outlook = outlook_of(chosen->fit, &rated, 1, &link, &request->server);
        if (outlook.cost_micro < least) {
            const double bytes_s = rated.kind.up_s + rated.kind.down_s + rated.kind.rtt_s;
            const double work_s = chosen->fit->steps_per_push * rated.kind.step_s;
            least = outlook.cost_micro;
            slowest = bytes_s / (bytes_s + work_s);
        }
    }
    const double cost = chosen->prediction.cost_micro.expected;
    const bool has_functions = chosen->plan.parts[0].candidate->source == CANDIDATE_FUNCTION;
    if (isfinite(least) && !has_functions && cost > 0 && least > function_dear * cost)
        say(frontier, ADVICE_FUNCTION_DEAR, least / cost);
    if (slowest > function_slow)
        say(frontier, ADVICE_FUNCTION_SLOW, slowest);
}

void frontier_advise(const struct frontier_request *request, struct frontier *frontier)
{
    const struct prediction *told = &frontier->chosen.prediction;
    const double deadline_s = request->wish.deadline_s;
    double start_s = 0;
    for (uint32_t i = 0; i < frontier->chosen.plan.part_count; i++)
        start_s = fmax(start_s, frontier->chosen.plan.parts[i].candidate->start_s);
    advise_distribution(request, frontier);
    advise_functions(request, frontier);
    if (told->risk > risk_much)
        say(frontier, ADVICE_SPOT_RISK, told->risk);
    const struct fit *fit = frontier->chosen.fit;
    const bool is_wide = told->seconds.high > range_wide * told->seconds.low;
    /* What a run of the job itself left open another trial does not tell either. */
    if (!fit_has_model(fit) || (is_wide && !fit_has_job(fit)))
        say(frontier, ADVICE_TRIAL_FIRST, told->seconds.high / told->seconds.low);
    if (deadline_s > 0 && told->seconds.high > deadline_s)
        say(frontier, ADVICE_DEADLINE_TIGHT, told->seconds.high);
    if (start_s > start_much * told->seconds.expected)
        say(frontier, ADVICE_SHORT_JOB, start_s / told->seconds.expected);
}
