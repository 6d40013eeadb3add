#include "server/recommendation.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a budget in all: a kind's price is of its rounded speed, and a lease's of its own. */
static const double paid_share = 0.9;
static const double trial_share_most = 0.05; /* of the chosen cluster's cost */

const char *const recommend_rule_names[] = {
    [RULE_AUTO] = "auto",
    [RULE_COST_OPT] = "cost-opt",
    [RULE_TIME_OPT] = "time-opt",
    [RULE_SCALA_OPT] = "scala-opt",
    [RULE_SCALA_OPT_M] = "scala-opt-m",
    [RULE_COUNT] = NULL,
};

const char *recommend_rule_name(enum recommend_rule rule)
{
    ASSERT(rule < RULE_COUNT);
    return recommend_rule_names[rule];
}

void recommendation_advise(struct recommendation *recommendation, const char *code,
                           const char *text)
{
    ASSERT(recommendation->advice_count < RECOMMENDATION_ADVICE_MAX);
    recommendation->advice[recommendation->advice_count++] =
        (struct recommendation_advice){code, text};
}

static int64_t lesser(int64_t left, int64_t right)
{
    return left > 0 && (right <= 0 || left < right) ? left : right;
}

/* What the market quotes an hour of it at: machines that are slower than the reference count as
 * that until it is known which they are. */
static double quoted_price(const struct choice *choice)
{
    double times = 1;
    for (uint32_t i = 0; i < choice->plan.part_count; i++)
        times = fmax(times, 1000.0 / choice->plan.parts[i].candidate->speed_weight);
    return times * (double)choice->price_micro_per_hour;
}

struct recommendation_limits recommendation_limits_of(const struct recommendation_request *request,
                                                      const struct choice *choice)
{
    const struct wish *wish = &request->wish;
    struct recommendation_limits limits = {.max_hourly_micro = wish->budget_micro_per_hour};
    const double price = quoted_price(choice);
    if (wish->budget_micro > 0)
        limits.max_total_micro = lesser(wish->budget_micro, request->own.max_total_micro);
    if (wish->deadline_s > 0)
        limits.max_run_ms = lesser(llround(1000 * wish->deadline_s), request->own.max_run_ms);
    if (limits.max_total_micro > 0 && price > 0) {
        const double paid_ms = paid_share * (double)limits.max_total_micro / price * 3600e3;
        const int64_t most_ms = lesser(request->own.max_run_ms, limits.max_run_ms);
        if (most_ms == 0 || paid_ms < (double)most_ms)
            limits.max_run_ms = paid_ms > 1000 ? 1000 * (int64_t)(paid_ms / 1000) : 1000;
    }
    return limits;
}

/* Evenly thinned out; the chosen one and both ends are kept. */
static void show_some(struct arena *arena, const struct choice *choices, size_t count,
                      size_t chosen, struct recommendation *out)
{
    const size_t stride = (count + RECOMMENDATION_SHOWN_MAX - 3) / (RECOMMENDATION_SHOWN_MAX - 2);
    out->choices = arena_alloc(arena, (RECOMMENDATION_SHOWN_MAX + 1) * sizeof(*out->choices));
    for (size_t i = 0; i < count; i++) {
        if (i % (stride > 0 ? stride : 1) != 0 && i != chosen && i + 1 != count)
            continue;
        if (i == chosen)
            out->chosen = out->choice_count;
        out->choices[out->choice_count++] = choices[i];
    }
}

/* ---- What is known ----------------------------------------------------------------------------
 */

/* Policies that `auto` may stand for; a job that names another keeps it. */
static const char *const weighed_policies[] = {"pace", "bsp", "adsp", "async-local", "diloco"};
enum { POLICIES_MAX = sizeof(weighed_policies) / sizeof(*weighed_policies) };

static size_t make_fits(struct arena *arena, const struct recommendation_request *request,
                        struct fit **out_fits)
{
    const bool is_any =
        strcmp(request->job.signature.policy, "auto") == 0 && request->rule == RULE_AUTO;
    const size_t count = is_any ? POLICIES_MAX : 1;
    struct fit *fits = arena_alloc(arena, count * sizeof(*fits));
    for (size_t i = 0; i < count; i++) {
        struct recommend_job job = request->job;
        if (is_any)
            snprintf(job.signature.policy, sizeof(job.signature.policy), "%s", weighed_policies[i]);
        fit_observations(&job, request->observations, request->observation_count, &request->errors,
                         &fits[i]);
    }
    *out_fits = fits;
    return count;
}

/* ---- The paper's rules ------------------------------------------------------------------------
 */

/* What one worker's pushes take of the server's link. */
static int64_t used_kbps(const struct fit *fit, const struct candidate *candidate,
                         const struct server_place *server)
{
    const struct cluster_plan alone = {.parts = {{candidate, 1}}, .part_count = 1};
    struct prediction told;
    predict(fit, &alone, server, &told);
    const double pushes_per_s = told.steps_per_s / fmax(1, fit->steps_per_push);
    return llround(pushes_per_s * fmax(fit->bytes_up, fit->bytes_down) * 8 / 1000);
}

static struct recommend_type *
make_types(struct arena *arena, const struct recommendation_request *request, const struct fit *fit)
{
    struct recommend_type *types =
        arena_alloc(arena, (request->candidate_count + 1) * sizeof(*types));
    for (size_t i = 0; i < request->candidate_count; i++) {
        const struct candidate *candidate = &request->candidates[i];
        types[i] = (struct recommend_type){
            .name = candidate->name,
            .cost = candidate->price_micro_per_hour > 0 ? candidate->price_micro_per_hour : 1,
            .bandwidth_kbps = llround(candidate->bytes_per_s * 8 / 1000),
            .used_kbps = used_kbps(fit, candidate, &request->server),
        };
    }
    return types;
}

static int apply_rule(enum recommend_rule rule, struct recommend_types types,
                      const struct recommend_type *server, const struct recommend_wish *wish,
                      struct recommend_cluster *out_cluster, struct error *error)
{
    switch (rule) {
    case RULE_COST_OPT:
        return recommend_cost_opt(types, server, wish, out_cluster, error);
    case RULE_TIME_OPT:
        return recommend_time_opt(types, server, wish, out_cluster, error);
    case RULE_SCALA_OPT:
        return recommend_scala_opt(types, server, wish, out_cluster, error);
    case RULE_SCALA_OPT_M:
        return recommend_scala_opt_m(types.all, server, wish, out_cluster, error);
    case RULE_AUTO:
    case RULE_COUNT:
        break;
    }
    UNREACHABLE("a rule that is not the paper's");
}

/* The rule's cluster as far as there are machines for it. */
static struct choice choice_of(const struct recommendation_request *request, const struct fit *fit,
                               const struct recommend_type *types,
                               const struct recommend_cluster *cluster)
{
    const struct candidate *candidate = &request->candidates[cluster->worker - types];
    uint32_t count = cluster->worker_count;
    if (candidate->count_max > 0 && count > candidate->count_max)
        count = candidate->count_max;
    if (count > CLUSTER_WORKERS_MAX)
        count = CLUSTER_WORKERS_MAX;
    struct choice choice = {.plan = {.parts = {{candidate, count}}, .part_count = 1}, .fit = fit};
    choice.price_micro_per_hour =
        cluster_plan_price_micro_per_hour(&choice.plan) + request->server.price_micro_per_hour;
    predict(fit, &choice.plan, &request->server, &choice.prediction);
    return choice;
}

static int compare_times(const void *left, const void *right)
{
    const double a = ((const struct choice *)left)->prediction.seconds.expected;
    const double b = ((const struct choice *)right)->prediction.seconds.expected;
    return (a > b) - (a < b);
}

static size_t find_choice(const struct choice *choices, size_t count,
                          const struct candidate *candidate)
{
    for (size_t i = 0; i < count; i++)
        if (choices[i].plan.parts[0].candidate == candidate)
            return i;
    UNREACHABLE("the chosen type is one of the types");
}

static const char *rule_words(enum recommend_rule rule)
{
    static const char *const words[RULE_COUNT] = {
        [RULE_AUTO] = "",
        [RULE_COST_OPT] = "the cheapest type, as many of it as the limits allow",
        [RULE_TIME_OPT] = "the most expensive type, as many of it as the limits allow",
        [RULE_SCALA_OPT] = "the fewest workers that fill the server's link or the budget",
        [RULE_SCALA_OPT_M] = "as many of the named type as fill the server's link or the budget",
    };
    return words[rule];
}

static void plan_trial(const struct recommendation_request *request, const struct fit *fit,
                       struct recommendation *out)
{
    const struct frontier_request asked = {.candidates = request->candidates,
                                           .candidate_count = request->candidate_count,
                                           .fits = fit,
                                           .fit_count = 1,
                                           .server = request->server,
                                           .wish = request->wish};
    const struct frontier frontier = {.choices = out->choices,
                                      .choice_count = out->choice_count,
                                      .chosen = out->choices[out->chosen]};
    trial_plan_of(&asked, &frontier, trial_share_most, &out->trial);
}

static int make_by_rule(struct arena *arena, const struct recommendation_request *request,
                        struct recommendation *out, struct error *error)
{
    const struct recommend_wish wish = {.budget = request->wish.budget_micro_per_hour,
                                        .worker_max = request->wish.worker_max,
                                        .share_milli = request->share_milli};
    const struct recommend_type server = {.name = request->server.name,
                                          .cost = request->server.price_micro_per_hour,
                                          .bandwidth_kbps =
                                              llround(request->server.bytes_per_s * 8 / 1000)};
    struct recommend_cluster cluster;
    struct fit *fit = NULL;
    if (request->candidate_count == 0)
        return error_set(error, ERROR_NOT_FOUND, "no machine is on offer");
    make_fits(arena, request, &fit);
    const struct recommend_type *types = make_types(arena, request, fit);
    const struct recommend_types all = {types, request->candidate_count};
    if (apply_rule(request->rule, all, &server, &wish, &cluster, error) < 0)
        return -1;
    struct choice *choices = arena_alloc(arena, request->candidate_count * sizeof(*choices));
    size_t count = 0;
    for (size_t i = 0; i < request->candidate_count; i++) {
        struct recommend_cluster own;
        struct error too_dear;
        if (apply_rule(request->rule, (struct recommend_types){&types[i], 1}, &server, &wish, &own,
                       &too_dear) == 0)
            choices[count++] = choice_of(request, fit, types, &own);
    }
    out->considered = count;
    qsort(choices, count, sizeof(*choices), compare_times);
    show_some(arena, choices, count,
              find_choice(choices, count, &request->candidates[cluster.worker - types]), out);
    out->why = rule_words(request->rule);
    const uint32_t had = out->choices[out->chosen].plan.parts[0].count;
    if (had < cluster.worker_count)
        recommendation_advise(
            out, "few-machines",
            arena_format(arena,
                         "the rule asks for %" PRIu32 " workers of %s; %" PRIu32 " %s on offer",
                         cluster.worker_count, cluster.worker->name, had, had == 1 ? "is" : "are"));
    out->observation_count =
        fit->observation_count[LIKENESS_SAME] + fit->observation_count[LIKENESS_VARIED];
    if (out->observation_count == 0)
        recommendation_advise(
            out, advice_code_name(ADVICE_TRIAL_FIRST),
            "no run has shown yet how much of the server's link a worker uses: it is guessed");
    plan_trial(request, fit, out);
    return 0;
}

/* ---- By what runs showed ----------------------------------------------------------------------
 */

static const char *wish_words(struct arena *arena, const struct wish *wish, size_t considered)
{
    struct buffer words AUTO_BUFFER;
    char amount[UNITS_TEXT_SIZE];
    buffer_init(&words, 512);
    buffer_append_format(&words, "the %s of %zu clusters", wish_kind_name(wish->kind), considered);
    if (wish->budget_micro_per_hour > 0)
        buffer_append_format(&words, " for at most %s an hour",
                             units_format_credits(wish->budget_micro_per_hour, amount));
    if (wish->budget_micro > 0)
        buffer_append_format(&words, " for at most %s in all",
                             units_format_credits(wish->budget_micro, amount));
    if (wish->deadline_s > 0)
        buffer_append_format(&words, " within %s",
                             units_format_duration(llround(1000 * wish->deadline_s), amount));
    return arena_copy_string(arena, buffer_text(&words));
}

static bool is_same(const struct choice *left, const struct choice *right)
{
    bool is_same = left->fit == right->fit && left->plan.part_count == right->plan.part_count;
    for (uint32_t i = 0; i < left->plan.part_count && is_same; i++)
        is_same = left->plan.parts[i].candidate == right->plan.parts[i].candidate &&
                  left->plan.parts[i].count == right->plan.parts[i].count;
    return is_same;
}

/* However soon the target is reached, machines have to start. */
static int check_deadline(const struct recommendation_request *request, struct error *error)
{
    double start_s = HUGE_VAL;
    char time[UNITS_TEXT_SIZE];
    for (size_t i = 0; i < request->candidate_count; i++)
        start_s = fmin(start_s, request->candidates[i].start_s);
    const double least_s = start_s + request->least_s;
    if (request->wish.deadline_s == 0 || least_s <= request->wish.deadline_s)
        return 0;
    return error_set(
        error, ERROR_EXHAUSTED, "no cluster is done by then: %s %s, whatever it learns",
        request->least_s > 0 ? "the start and the file's min_time take" : "the start takes",
        units_format_duration(llround(1000 * least_s), time));
}

/* All epochs are the most that a target takes which no run has reached: a job that may be done in
 * time and within the budget is not refused for them. */
static int find_choices(struct arena *arena, const struct recommendation_request *request,
                        struct frontier_request *asked, struct frontier *out_frontier,
                        struct recommendation *out, struct error *error)
{
    struct wish *wish = &asked->wish;
    const int result = frontier_find(arena, asked, out_frontier, error);
    if (result == 0 || request->is_target_known || error->code != ERROR_EXHAUSTED ||
        (wish->deadline_s == 0 && wish->budget_micro == 0))
        return result;
    if (check_deadline(request, error) < 0)
        return -1;
    if (wish->budget_micro > 0 && wish->kind == WISH_FASTEST)
        wish->kind = WISH_CHEAPEST;
    wish->deadline_s = 0;
    wish->budget_micro = 0;
    if (frontier_find(arena, asked, out_frontier, error) < 0)
        return -1;
    if (request->wish.deadline_s > 0)
        recommendation_advise(out, "deadline-unknown",
                              "whether it is done by then is not known: all epochs would not be");
    if (request->wish.budget_micro > 0)
        recommendation_advise(
            out, "budget-unknown",
            "whether the budget does is not known: it does not pay for all epochs");
    return 0;
}

static int make_auto(struct arena *arena, const struct recommendation_request *request,
                     struct recommendation *out, struct error *error)
{
    struct fit *fits = NULL;
    struct frontier frontier;
    const size_t fit_count = make_fits(arena, request, &fits);
    struct frontier_request asked = {.candidates = request->candidates,
                                     .candidate_count = request->candidate_count,
                                     .fits = fits,
                                     .fit_count = fit_count,
                                     .server = request->server,
                                     .wish = request->wish};
    if (find_choices(arena, request, &asked, &frontier, out, error) < 0)
        return -1;
    size_t chosen = 0;
    for (size_t i = 0; i < frontier.choice_count; i++)
        if (is_same(&frontier.choices[i], &frontier.chosen))
            chosen = i;
    show_some(arena, frontier.choices, frontier.choice_count, chosen, out);
    out->considered = frontier.considered;
    out->why = wish_words(arena, &asked.wish, frontier.considered);
    for (size_t i = 0; i < frontier.advice_count; i++)
        recommendation_advise(out, advice_code_name(frontier.advice[i].code),
                              recommendation_advice_text(arena, &frontier.advice[i]));
    trial_plan_of(&asked, &frontier, trial_share_most, &out->trial);
    out->observation_count = frontier.chosen.fit->observation_count[LIKENESS_SAME] +
                             frontier.chosen.fit->observation_count[LIKENESS_VARIED];
    return 0;
}

/* The job file's own end, which comes before what was foretold. */
static void advise_run_time(struct arena *arena, const struct recommendation_request *request,
                            struct recommendation *out)
{
    const double expected_ms = 1000 * out->choices[out->chosen].prediction.seconds.expected;
    const double most_ms = (double)request->own.max_run_ms;
    char time[UNITS_TEXT_SIZE];
    if (request->own.max_run_ms == 0 || expected_ms <= most_ms)
        return;
    recommendation_advise(
        out, "run-time-short",
        arena_format(arena, "the job file ends it after %s: %s cut off at about %.0f %%",
                     units_format_duration(request->own.max_run_ms, time),
                     request->is_target_known ? "it would be" : "all epochs would be",
                     100 * most_ms / expected_ms));
}

/* What is told is the most: nothing is known of the least. */
static void make_bound(struct recommendation *recommendation)
{
    for (size_t i = 0; i < recommendation->choice_count; i++)
        recommendation->choices[i].prediction.seconds.low =
            recommendation->choices[i].prediction.cost_micro.low = 0;
    recommendation_advise(
        recommendation, "target-unknown",
        "no run has reached this accuracy yet: it is counted as if all epochs were needed");
}

int recommendation_make(struct arena *arena, const struct recommendation_request *request,
                        struct recommendation *out_recommendation, struct error *error)
{
    struct recommendation recommendation = {0};
    const int result = request->rule == RULE_AUTO
                           ? make_auto(arena, request, &recommendation, error)
                           : make_by_rule(arena, request, &recommendation, error);
    if (result < 0)
        return -1;
    if (!request->is_target_known)
        make_bound(&recommendation);
    advise_run_time(arena, request, &recommendation);
    recommendation_advise_busy(arena, request, &recommendation);
    *out_recommendation = recommendation;
    return 0;
}
