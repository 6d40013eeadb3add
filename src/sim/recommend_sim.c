#include "sim/recommend_sim.h"

#include "base/assert.h"
#include "base/memory.h"
#include "recommend/trial.h"
#include "sim/recommend_draw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CASES_EACH = 8, STRANGERS = 4, FAMILY_RUNS = 1 + CASE_EARLIER };
enum { SEEN_MAX = FAMILY_RUNS + STRANGERS + 1 };
static const double trial_share_most = 0.03; /* a twentieth, less what is not known of it yet */
static const double target_left = 0.15;      /* of what the first run took off the loss */
static const double over_most = 1.1;

struct sim {
    const struct recommend_sim_options *options;
    struct world *world;
    struct world_outcome *earlier; /* [family_count][FAMILY_RUNS] */
    struct recommend_case *cases;
    struct predict_error errors;
};

static void say(const struct sim *sim, const char *words)
{
    if (sim->options->on_progress)
        sim->options->on_progress(sim->options->context, words);
}

void recommend_sim_result_done(struct recommend_sim_result *result)
{
    free(result->cases);
    *result = (struct recommend_sim_result){0};
}

/* ---- What really happens --------------------------------------------------------------------- */

/* A loss that the first run reached well before its end. */
static double target_of(const struct observation *seen)
{
    const double first = seen->points[0].loss, last = seen->points[seen->point_count - 1].loss;
    return last + target_left * (first - last);
}

static int run_families(struct sim *sim, struct error *error)
{
    struct world *world = sim->world;
    const uint32_t count = world->family_count;
    struct world_run *runs = memory_zeroed((size_t)count * CASE_EARLIER, sizeof(*runs));
    struct world_outcome *outcomes = memory_zeroed((size_t)count * CASE_EARLIER, sizeof(*outcomes));
    for (uint32_t i = 0; i < count; i++)
        runs[i] = draw_first(world, i);
    int result = world_run_all(world, runs, count, sim->options->thread_count, outcomes, error);
    for (uint32_t i = 0; result == 0 && i < count; i++) {
        sim->earlier[(size_t)i * FAMILY_RUNS] = outcomes[i];
        world->families[i].target_loss = target_of(&outcomes[i].observation);
    }
    for (uint32_t i = 0; result == 0 && i < count * CASE_EARLIER; i++)
        runs[i] = draw_earlier(world, i / CASE_EARLIER, i % CASE_EARLIER);
    if (result == 0)
        result = world_run_all(world, runs, (size_t)count * CASE_EARLIER,
                               sim->options->thread_count, outcomes, error);
    for (uint32_t i = 0; result == 0 && i < count * CASE_EARLIER; i++)
        sim->earlier[i / CASE_EARLIER * FAMILY_RUNS + 1 + i % CASE_EARLIER] = outcomes[i];
    free(outcomes);
    free(runs);
    return result;
}

static int run_cases(struct sim *sim, struct error *error)
{
    const uint32_t count = sim->options->case_count;
    struct world_run *runs = memory_zeroed((size_t)count * CASE_CLUSTERS_MAX, sizeof(*runs));
    struct world_outcome *outcomes =
        memory_zeroed((size_t)count * CASE_CLUSTERS_MAX, sizeof(*outcomes));
    size_t run_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        draw_case(sim->world, i, &sim->cases[i]);
        for (uint32_t n = 0; n < sim->cases[i].cluster_count; n++)
            runs[run_count++] = sim->cases[i].clusters[n].run;
    }
    const int result =
        world_run_all(sim->world, runs, run_count, sim->options->thread_count, outcomes, error);
    for (uint32_t i = 0, next = 0; result == 0 && i < count; i++) {
        for (uint32_t n = 0; n < sim->cases[i].cluster_count; n++)
            sim->cases[i].clusters[n].outcome = outcomes[next++];
        draw_limits(sim->world, &sim->cases[i]);
    }
    free(outcomes);
    free(runs);
    return result;
}

/* ---- What is recommended --------------------------------------------------------------------- */

/* One recommendation while it is made. */
struct advising {
    struct sim *sim;
    struct recommend_case *about;
    struct recommend_job job;
    struct observation seen[SEEN_MAX];
    size_t seen_count;
    struct candidate offers[CASE_TRIAL_KINDS];
    struct fit fit;
    struct choice choices[CASE_CLUSTERS_MAX];
};

static void see(struct advising *advising)
{
    const struct sim *sim = advising->sim;
    const uint32_t family = advising->about->job.family;
    for (uint32_t i = 0; i < FAMILY_RUNS; i++)
        advising->seen[advising->seen_count++] = sim->earlier[family * FAMILY_RUNS + i].observation;
    for (uint32_t i = 1; i <= STRANGERS && i < sim->world->family_count; i++) {
        const uint32_t other = (family + i) % sim->world->family_count;
        advising->seen[advising->seen_count++] =
            sim->earlier[other * FAMILY_RUNS + 1 + i % CASE_EARLIER].observation;
    }
}

static struct cluster_plan plan_of(const struct advising *advising, const struct world_run *run)
{
    struct cluster_plan plan = {.part_count = 0};
    for (uint32_t i = 0; i < CASE_TRIAL_KINDS; i++) {
        const uint32_t count = run->counts[advising->about->kinds[i]];
        if (count > 0)
            plan.parts[plan.part_count++] = (struct cluster_part){&advising->offers[i], count};
    }
    return plan;
}

static void foresee(struct advising *advising)
{
    struct recommend_case *about = advising->about;
    fit_observations(&advising->job, advising->seen, advising->seen_count, &advising->sim->errors,
                     &advising->fit);
    for (uint32_t i = 0; i < about->cluster_count; i++) {
        struct choice *choice = &advising->choices[i];
        *choice = (struct choice){.plan = plan_of(advising, &about->clusters[i].run),
                                  .fit = &advising->fit};
        choice->price_micro_per_hour = cluster_plan_price_micro_per_hour(&choice->plan) +
                                       about->job.server.price_micro_per_hour;
        predict(&advising->fit, &choice->plan, &about->job.server, &choice->prediction);
        about->clusters[i].prediction = choice->prediction;
    }
}

static void pick(struct advising *advising)
{
    struct recommend_case *about = advising->about;
    struct error ignored; /* that nothing suits is an outcome */
    size_t index = 0;
    about->is_chosen =
        frontier_pick(advising->choices, about->cluster_count, &about->wish, &index, &ignored) == 0;
    about->chosen = (uint32_t)index;
}

static int try_out(struct advising *advising, struct error *error)
{
    struct recommend_case *about = advising->about;
    struct trial_plan trial;
    struct world_outcome outcome;
    const struct frontier_request request = {.candidates = advising->offers,
                                             .candidate_count = CASE_TRIAL_KINDS,
                                             .fits = &advising->fit,
                                             .fit_count = 1,
                                             .server = about->job.server};
    const struct frontier frontier = {.chosen = advising->choices[about->chosen]};
    trial_plan_of(&request, &frontier, trial_share_most, &trial);
    if (trial.steps == 0)
        return 0;
    struct world_run run = about->job;
    run.target_loss = 0;
    run.has_curve = false;
    run.samples = (double)trial.steps * run.batch * trial.plan.part_count;
    run.seed = ~about->job.seed;
    for (uint32_t i = 0; i < trial.plan.part_count; i++)
        run.counts[about->kinds[trial.plan.parts[i].candidate - advising->offers]] = 1;
    if (world_run(advising->sim->world, &run, &outcome, error) < 0)
        return -1;
    outcome.observation.end = OBSERVATION_CUT;
    advising->seen[advising->seen_count++] = outcome.observation;
    about->trial_share = outcome.cost_micro; /* of what is chosen, once that is known */
    return 0;
}

/* What a wish asks to be small; infinite where it is not kept to. */
static double score_of(const struct recommend_case *about, uint32_t index)
{
    const struct world_outcome *outcome = &about->clusters[index].outcome;
    int64_t price = 0;
    if (!outcome->is_done)
        return (double)HUGE_VAL;
    if (about->wish.deadline_s > 0 && outcome->seconds > about->wish.deadline_s)
        return (double)HUGE_VAL;
    price = llround(outcome->cost_micro / outcome->seconds * 3600);
    if (about->wish.budget_micro_per_hour > 0 && price > about->wish.budget_micro_per_hour + 1)
        return (double)HUGE_VAL;
    return about->wish.kind == WISH_FASTEST ? outcome->seconds : outcome->cost_micro;
}

static void judge(struct advising *advising)
{
    struct recommend_case *about = advising->about;
    const struct recommend_cluster_result *chosen = &about->clusters[about->chosen];
    double best = (double)HUGE_VAL;
    for (uint32_t i = 0; i < about->cluster_count; i++)
        best = fmin(best, score_of(about, i));
    about->over_best = about->is_chosen ? score_of(about, about->chosen) / best : (double)HUGE_VAL;
    if (!chosen->outcome.is_done)
        return;
    about->trial_share /= chosen->outcome.cost_micro;
    predict_error_add(&advising->sim->errors, chosen->prediction.seconds.expected,
                      chosen->prediction.deviation, chosen->outcome.seconds);
}

static int recommend(struct sim *sim, struct recommend_case *about, struct error *error)
{
    struct advising *advising = memory_zeroed(1, sizeof(*advising));
    advising->sim = sim;
    advising->about = about;
    advising->job = (struct recommend_job){world_signature(sim->world, &about->job),
                                           about->job.samples, about->job.target_loss};
    for (uint32_t i = 0; i < CASE_TRIAL_KINDS; i++)
        advising->offers[i] = sim->world->kinds[about->kinds[i]];
    see(advising);
    foresee(advising);
    pick(advising);
    int result = sim->options->has_trial ? try_out(advising, error) : 0;
    if (result == 0) {
        foresee(advising);
        pick(advising);
        judge(advising);
    }
    free(advising);
    return result;
}

/* ---- Figures --------------------------------------------------------------------------------- */

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double recommend_sim_error(const struct recommend_sim_result *result, double q,
                           bool (*is_wanted)(const struct recommend_case *, const void *),
                           const void *context)
{
    double *errors = memory_zeroed((size_t)result->case_count * CASE_CLUSTERS_MAX, sizeof(*errors));
    size_t count = 0;
    for (uint32_t i = 0; i < result->case_count; i++) {
        const struct recommend_case *one = &result->cases[i];
        for (uint32_t n = 0; n < one->cluster_count; n++)
            if (one->clusters[n].outcome.is_done && (!is_wanted || is_wanted(one, context)))
                errors[count++] = fabs(one->clusters[n].prediction.seconds.expected /
                                           one->clusters[n].outcome.seconds -
                                       1);
    }
    qsort(errors, count, sizeof(*errors), compare_doubles);
    const double found = count > 0 ? errors[(size_t)(q * (double)(count - 1) + 0.5)] : (double)NAN;
    free(errors);
    return found;
}

static void figure(struct recommend_sim_result *result)
{
    uint32_t within = 0, covered = 0;
    result->median_error = recommend_sim_error(result, 0.5, NULL, NULL);
    result->p90_error = recommend_sim_error(result, 0.9, NULL, NULL);
    for (uint32_t i = 0; i < result->case_count; i++) {
        const struct recommend_case *one = &result->cases[i];
        within += one->over_best <= over_most;
        result->trial_share += one->trial_share / result->case_count;
        result->trial_share_most = fmax(result->trial_share_most, one->trial_share);
        for (uint32_t n = 0; n < one->cluster_count; n++) {
            const struct world_outcome *outcome = &one->clusters[n].outcome;
            const struct range *told = &one->clusters[n].prediction.seconds;
            result->outcomes += outcome->is_done;
            result->undone += !outcome->is_done;
            covered +=
                outcome->is_done && outcome->seconds >= told->low && outcome->seconds <= told->high;
        }
    }
    result->within_1_1 = (double)within / result->case_count;
    result->covered = result->outcomes > 0 ? (double)covered / result->outcomes : 0;
}

int recommend_sim(const struct recommend_sim_options *options,
                  struct recommend_sim_result *out_result, struct error *error)
{
    ASSERT(options->case_count > 0);
    const uint32_t wanted = (options->case_count + CASES_EACH - 1) / CASES_EACH;
    const uint32_t families = wanted < WORLD_FAMILIES_MAX ? wanted : WORLD_FAMILIES_MAX;
    AUTO(world) struct world *world = NULL;
    if (world_open(options->seed, families, &world, error) < 0)
        return -1;
    struct sim sim = {
        .options = options,
        .world = world,
        .earlier = memory_zeroed((size_t)families * FAMILY_RUNS, sizeof(*sim.earlier)),
        .cases = memory_zeroed(options->case_count, sizeof(*sim.cases)),
    };
    struct recommend_sim_result result = {.cases = sim.cases, .case_count = options->case_count};
    say(&sim, "earlier runs");
    int outcome = run_families(&sim, error);
    say(&sim, "every cluster of every case");
    if (outcome == 0)
        outcome = run_cases(&sim, error);
    say(&sim, "recommendations");
    for (uint32_t i = 0; outcome == 0 && i < options->case_count; i++)
        outcome = recommend(&sim, &sim.cases[i], error);
    free(sim.earlier);
    if (outcome < 0) {
        recommend_sim_result_done(&result);
        return -1;
    }
    figure(&result);
    *out_result = result;
    return 0;
}
