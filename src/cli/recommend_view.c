#include "cli/recommend_view.h"

#include "base/units.h"
#include "cli/output.h"
#include "cli/recommend_explain.h"
#include "cli/table.h"

#include <inttypes.h>
#include <math.h>

enum { TRIAL_MS_MIN = 8000, TRIAL_MS_MAX = 120000, EXPLAINED_MAX = 8 };

/* ---- Showing --------------------------------------------------------------------------------- */

const char *recommend_view_workers(struct arena *arena, const struct api_cluster *cluster)
{
    const struct api_cluster_workers *workers = cluster->workers.items;
    const char *words = "";
    for (size_t i = 0; i < cluster->workers.count; i++)
        words = arena_format(arena, "%s%s%" PRIu64 " x %s", words, i > 0 ? " + " : "",
                             workers[i].count, output_text(arena, workers[i].type));
    return words;
}

static const char *kinds_of(struct arena *arena, const struct api_cluster *cluster)
{
    const struct api_cluster_workers *workers = cluster->workers.items;
    const char *words = "";
    for (size_t i = 0; i < cluster->workers.count; i++)
        if (i == 0 || !text_equal(workers[i].kind, workers[i - 1].kind))
            words = arena_format(arena, "%s%s%s", words, i > 0 ? "+" : "",
                                 output_text(arena, workers[i].kind));
    return words;
}

const char *recommend_view_seconds(struct arena *arena, double value)
{
    /* Nobody plans by the millisecond. */
    if (value < 60)
        return arena_format(arena, "%.*fs", value < 10 ? 1 : 0, value);
    return output_duration(arena, (int64_t)fmin(1000 * round(value), 1e15));
}

const char *recommend_view_time(struct arena *arena, const struct api_seconds_range *range)
{
    if (!(range->low > 0))
        return arena_format(arena, "%s (at most %s)",
                            recommend_view_seconds(arena, range->expected),
                            recommend_view_seconds(arena, range->high));
    return arena_format(arena, "%s (%s to %s)", recommend_view_seconds(arena, range->expected),
                        recommend_view_seconds(arena, range->low),
                        recommend_view_seconds(arena, range->high));
}

static const char *cost_range(struct arena *arena, const struct api_range *range)
{
    if (range->low == 0 && range->high > 0)
        return arena_format(arena, "%s (at most %s)", output_credits(arena, range->expected),
                            output_credits(arena, range->high));
    return arena_format(arena, "%s (%s to %s)", output_credits(arena, range->expected),
                        output_credits(arena, range->low), output_credits(arena, range->high));
}

bool recommend_view_is_bound(const struct api_recommendation *recommendation)
{
    const struct api_advice *advice = recommendation->advice.items;
    for (size_t i = 0; i < recommendation->advice.count; i++)
        if (text_is(advice[i].code, "target-unknown"))
            return true;
    return false;
}

/* The chosen one and, of many, those around it. */
static bool is_shown(const struct api_recommendation *recommendation, size_t index, bool is_all)
{
    const size_t count = recommendation->frontier.count;
    const size_t stride = (count + EXPLAINED_MAX - 1) / EXPLAINED_MAX;
    return is_all || count <= EXPLAINED_MAX || index == recommendation->chosen_index ||
           index % stride == 0 || index + 1 == count;
}

static void print_considered(const struct cli *cli, const struct api_recommendation *recommendation,
                             bool is_explained)
{
    struct arena *arena = cli->arena;
    const struct api_cluster *clusters = recommendation->frontier.items;
    struct table table;
    table_init(&table, arena,
               (const char *const[]){"", "~WORKERS", "/9FROM", "/6POLICY", ">/4COST/H", "TIME",
                                     "COST", ">/7WAITS", ">/8LINK", ">/5RISK", NULL});
    for (size_t i = 0; i < recommendation->frontier.count; i++) {
        const struct api_cluster *cluster = &clusters[i];
        if (!is_shown(recommendation, i, is_explained))
            continue;
        TABLE_ROW(&table, i == recommendation->chosen_index ? "CHOSEN" : "",
                  recommend_view_workers(arena, cluster), kinds_of(arena, cluster),
                  output_text(arena, cluster->policy),
                  output_credits(arena, cluster->cost_micro_per_hour),
                  recommend_view_time(arena, &cluster->time_s),
                  cost_range(arena, &cluster->cost_micro),
                  arena_format(arena, "%.0f%%", (double)cluster->wait_milli / 10),
                  arena_format(arena, "%.0f%%", (double)cluster->link_milli / 10),
                  arena_format(arena, "%.0f%%", (double)cluster->risk_milli / 10));
    }
    table_show(&table, cli);
}

static void print_known(const struct cli *cli, const struct api_recommendation *recommendation)
{
    if (recommendation->observations > 0)
        output_field(cli, "Known:    ", "%" PRIu64 " run%s of this model on these data",
                     recommendation->observations, recommendation->observations > 1 ? "s" : "");
    else
        output_field(cli, "Known:    ", "nothing of this job yet; the ranges are wide");
    if (recommendation->error.count > 0)
        output_field(
            cli, "Past:     ", "%" PRIu64 " prediction%s of such jobs, typically off by %.0f %%",
            recommendation->error.count, recommendation->error.count > 1 ? "s" : "",
            100 * recommendation->error.typical);
}

/* Never shorter than it takes to see steps, whatever the market thinks is enough. */
static double trial_seconds(const struct api_trial *trial)
{
    return 1e-3 * fmin(fmax(1000 * trial->seconds, TRIAL_MS_MIN), TRIAL_MS_MAX);
}

static int64_t trial_cost_micro(const struct api_trial *trial)
{
    const double times = trial->seconds > 0 ? trial_seconds(trial) / trial->seconds : 1;
    return llround(times * (double)trial->cost_micro);
}

static void print_trial(const struct cli *cli, const struct api_trial *trial,
                        const struct api_cluster *chosen)
{
    const int64_t cost_micro = trial_cost_micro(trial);
    /* Else the job itself tells as much, and leaves a model. */
    const bool is_cheap = 2 * cost_micro < chosen->cost_micro.expected;
    if (!trial->is_needed || trial->job.num_nodes == 0 || !is_cheap)
        return;
    output_field(cli, "Trial:    ", "--trial runs it for %s, for about %s",
                 recommend_view_seconds(cli->arena, trial_seconds(trial)),
                 output_amount(cli, cost_micro));
}

const char *recommend_view_limits(struct arena *arena, const struct api_job_market *market)
{
    const struct {
        const char *name;
        struct text value;
    } limits[] = {{"max_hourly_cost", market->max_hourly_cost},
                  {"max_total_cost", market->max_total_cost},
                  {"max_run_time", market->max_run_time}};
    const char *words = "";
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
        if (limits[i].value.size)
            words = arena_format(arena, "%s, market.%s: %s", words, limits[i].name,
                                 output_text(arena, limits[i].value));
    return words;
}

static void print_fields(const struct cli *cli, const struct api_job_fields *job)
{
    struct arena *arena = cli->arena;
    if (job->num_nodes == 0)
        return;
    output_field(cli, "Job file: ",
                 "num_nodes: %" PRIu64 ", resources.cpus: %s, market.min_speed: %.2f, "
                 "sync.policy: %s%s (--submit sets them)",
                 job->num_nodes, output_text(arena, job->resources.cpus), job->market.min_speed,
                 output_text(arena, job->sync.policy), recommend_view_limits(arena, &job->market));
}

void recommend_view_print(const struct cli *cli, const struct api_recommendation *recommendation,
                          bool is_explained)
{
    struct arena *arena = cli->arena;
    const struct api_cluster *chosen = &recommendation->chosen;
    const struct api_advice *advice = recommendation->advice.items;
    print_considered(cli, recommendation, is_explained);
    output_field(cli, "Chosen:   ", "%s: %s", recommend_view_workers(arena, chosen),
                 output_text(arena, chosen->why));
    output_field(cli, "Server:   ", "%s, %s an hour", output_text(arena, chosen->server.type),
                 output_amount(cli, chosen->server.price_micro_per_hour));
    output_field(cli, "Time:     ", "%s", recommend_view_time(arena, &chosen->time_s));
    output_field(cli, "Cost:     ", "%s %s; %s an hour", cost_range(arena, &chosen->cost_micro),
                 output_unit(cli)->name, output_credits(arena, chosen->cost_micro_per_hour));
    print_fields(cli, &chosen->job);
    print_known(cli, recommendation);
    const struct api_advice *old = NULL;
    for (size_t i = 0; i < recommendation->advice.count; i++)
        if (text_is(advice[i].code, "catalogue-old"))
            old = &advice[i];
        else
            output_field(cli, "Advice:   ", "%s", output_text(arena, advice[i].text));
    print_trial(cli, &recommendation->trial, chosen);
    if (old)
        output_field(cli, "Prices:   ", "%s", output_text(arena, old->text));
    else if (recommendation->catalogue_date.size)
        output_field(cli, "Prices:   ", "of clouds, as of %s",
                     output_text(arena, recommendation->catalogue_date));
    if (is_explained)
        recommend_explain_print(cli, chosen, recommend_view_is_bound(recommendation));
}

/* ---- What is asked for ----------------------------------------------------------------------- */

int recommend_budget_read(struct text text, struct recommend_budget *out_budget,
                          struct error *error)
{
    struct recommend_budget budget = {0};
    struct text amount = text;
    const bool is_hourly =
        text.size > 2 && text.data[text.size - 2] == '/' && text.data[text.size - 1] == 'h';
    if (is_hourly)
        amount.size -= 2;
    budget.is_dollars = amount.size > 0 && amount.data[0] == '$';
    if (budget.is_dollars)
        amount = (struct text){amount.data + 1, amount.size - 1};
    if (units_parse_credits(amount, is_hourly ? &budget.micro_per_hour : &budget.micro, error) < 0)
        return error_set(error, ERROR_INVALID,
                         "--budget: \"" TEXT_FORMAT "\" is no budget: 2/h, 2 or $2/h",
                         TEXT_ARGS(text));
    if (budget.micro_per_hour + budget.micro <= 0)
        return error_set(error, ERROR_INVALID, "--budget: must be more than 0");
    *out_budget = budget;
    return 0;
}

/* ---- A job made so --------------------------------------------------------------------------- */

int recommend_check_lenders(struct arena *arena, const struct api_cluster *cluster,
                            struct error *error)
{
    const struct api_cluster_workers *first = cluster->workers.items;
    if (cluster->job.num_nodes > 0 || cluster->workers.count == 0)
        return 0;
    if (text_is(first->kind, "function"))
        return error_set(error, ERROR_INVALID,
                         "--submit: nothing was submitted: functions are no lenders; souk function "
                         "train trains on them");
    return error_set(error, ERROR_INVALID,
                     "--submit: nothing was submitted: these machines are no lenders of the market "
                     "yet; \"souk cloud start %s --count %" PRIu64 "\" starts them, then submit",
                     output_text(arena, first->type), first->count);
}

int recommend_apply(struct arena *arena, const struct api_job_fields *fields, struct job_spec *spec,
                    struct error *error)
{
    struct text cpus = fields->resources.cpus;
    const bool is_at_least = cpus.size > 0 && cpus.data[cpus.size - 1] == '+';
    if (fields->num_nodes == 0)
        return error_set(error, ERROR_INVALID,
                         "these machines are no lenders of the market yet: souk cloud starts them");
    cpus.size -= is_at_least;
    if (units_parse_cores(cpus, &spec->resources.cpus_milli.value, error) < 0)
        return error_wrap(error, "resources.cpus");
    spec->resources.cpus_milli.is_at_least = is_at_least;
    spec->num_nodes = fields->num_nodes;
    spec->num_nodes_max = 0;
    spec->market.min_speed_milli = llround(1000 * fields->market.min_speed);
    if (fields->sync.policy.size)
        spec->sync.policy = arena_copy_text(arena, fields->sync.policy);
    if (fields->market.max_hourly_cost.size &&
        units_parse_credits(fields->market.max_hourly_cost, &spec->market.max_hourly_cost_micro,
                            error) < 0)
        return error_wrap(error, "market.max_hourly_cost");
    if (fields->market.max_total_cost.size &&
        units_parse_credits(fields->market.max_total_cost, &spec->market.max_total_cost_micro,
                            error) < 0)
        return error_wrap(error, "market.max_total_cost");
    if (fields->market.max_run_time.size &&
        units_parse_duration(fields->market.max_run_time, &spec->market.max_run_time_ms, error) < 0)
        return error_wrap(error, "market.max_run_time");
    if (spec->market.expected_run_time_ms > spec->market.max_run_time_ms)
        spec->market.expected_run_time_ms = 0;
    return 0;
}

void recommend_make_trial(struct arena *arena, const struct api_trial *trial, struct job_spec *spec)
{
    spec->name = text_of(
        arena_format(arena, "%.*s-trial", (int)fmin((double)spec->name.size, 50), spec->name.data));
    spec->train.target = (struct job_target){0};
    spec->market.max_run_time_ms = llround(1000 * trial_seconds(trial));
    spec->market.expected_run_time_ms = 0;
}
