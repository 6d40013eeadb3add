#include "recommend/trial.h"

#include "recommend/predict_internal.h"

#include <math.h>

enum { STEPS_LEAST = 5, STEPS_MOST = 50 };
static const double range_wide = 2; /* high over low: more is too little known */

/* The cheapest to run a step on. */
static const struct candidate *cheapest(const struct frontier_request *request,
                                        const struct fit *fit, const struct candidate *but)
{
    const struct candidate *best = NULL;
    double least = HUGE_VAL;
    for (size_t i = 0; i < request->candidate_count; i++) {
        const struct candidate *candidate = &request->candidates[i];
        const struct rated rated = rate_candidate(fit, candidate);
        const double cost = (double)candidate->price_micro_per_hour *
                            (candidate->start_s + STEPS_LEAST * rated.kind.step_s);
        if (candidate != but && cost < least) {
            least = cost;
            best = candidate;
        }
    }
    return best;
}

struct cost_of_steps {
    double fixed_micro, step_micro, start_s, step_s;
};

static struct cost_of_steps steps_cost(const struct frontier_request *request,
                                       const struct fit *fit, const struct cluster_plan *plan)
{
    struct cost_of_steps cost = {0};
    const double price =
        (double)(cluster_plan_price_micro_per_hour(plan) + request->server.price_micro_per_hour) /
        3600;
    for (uint32_t i = 0; i < plan->part_count; i++) {
        const struct rated rated = rate_candidate(fit, plan->parts[i].candidate);
        const double commit_s = rated.kind.rtt_s + rated.kind.up_s + rated.kind.down_s;
        cost.start_s = fmax(cost.start_s, plan->parts[i].candidate->start_s);
        cost.step_s = fmax(cost.step_s, rated.kind.step_s + commit_s);
    }
    cost.fixed_micro = price * cost.start_s;
    cost.step_micro = price * cost.step_s;
    return cost;
}

static void plan_with(struct trial_plan *trial, const struct frontier_request *request,
                      const struct fit *fit, double chosen_micro, double most_micro)
{
    const struct cost_of_steps cost = steps_cost(request, fit, &trial->plan);
    const double steps = floor((most_micro - cost.fixed_micro) / cost.step_micro);
    trial->steps = steps < STEPS_LEAST ? 0 : steps > STEPS_MOST ? STEPS_MOST : (uint32_t)steps;
    trial->seconds = cost.start_s + trial->steps * cost.step_s;
    trial->cost_micro = cost.fixed_micro + trial->steps * cost.step_micro;
    trial->share = chosen_micro > 0 ? trial->cost_micro / chosen_micro : 0;
}

void trial_plan_of(const struct frontier_request *request, const struct frontier *frontier,
                   double share_max, struct trial_plan *out_trial)
{
    const struct choice *chosen = &frontier->chosen;
    const double cost = chosen->prediction.cost_micro.expected;
    const struct candidate *first = cheapest(request, chosen->fit, NULL);
    const struct candidate *own = chosen->plan.parts[0].candidate;
    *out_trial = (struct trial_plan){
        .is_needed = !fit_has_model(chosen->fit) ||
                     chosen->prediction.seconds.high > range_wide * chosen->prediction.seconds.low,
        .plan = {.parts = {{first, 1}}, .part_count = 1},
    };
    /* The kind that would be taken, too, where that is within the share. */
    if (own != first) {
        out_trial->plan.parts[out_trial->plan.part_count++] = (struct cluster_part){own, 1};
        plan_with(out_trial, request, chosen->fit, cost, share_max * cost);
        if (out_trial->steps > 0)
            return;
        out_trial->plan.part_count = 1;
    }
    plan_with(out_trial, request, chosen->fit, cost, share_max * cost);
}
