#include "sim/experiment.h"
#include "sim/pool.h"
#include "sim/replay.h"

#include <math.h>
#include <stdlib.h>

enum engine { ENGINE_POOL, ENGINE_OFFLINE, ENGINE_CORE };

struct contender {
    const char *label;
    enum engine engine;
    struct pool_options pool;
    struct replay_options core;
};

/* The auction comes first: the others are measured by it. */
static const struct contender contenders[] = {
    {"k-DA per hour, truthful (pool)", ENGINE_POOL, .pool = {.rule = POOL_KDA}},
    {"McAfee per hour (pool)", ENGINE_POOL, .pool = {.rule = POOL_MCAFEE}},
    {"offline greedy (pool)", ENGINE_OFFLINE},
    {"fixed, 3 x too low (pool)", ENGINE_POOL,
     .pool = {.rule = POOL_FIXED, .price_factor = 1.0 / 3}},
    {"fixed, 3 x too high (pool)", ENGINE_POOL, .pool = {.rule = POOL_FIXED, .price_factor = 3}},
    {"fixed at cold start (pool)", ENGINE_POOL, .pool = {.rule = POOL_FIXED}},
    {"fixed at cold start, rush (pool)", ENGINE_POOL,
     .pool = {.rule = POOL_FIXED, .has_rush = true}},
    {"random, DeepMarket's (pool)", ENGINE_POOL, .pool = {.rule = POOL_RANDOM}},
    {"no price, first come (pool)", ENGINE_POOL, .pool = {.rule = POOL_FIRST_COME}},
    {"karma (pool)", ENGINE_POOL, .pool = {.rule = POOL_KARMA}},
    {"souk's rule without rush (pool)", ENGINE_POOL, .pool = {.rule = POOL_SOUK}},
    {"souk's rule (pool)", ENGINE_POOL, .pool = {.rule = POOL_SOUK, .has_rush = true}},
    {"karma (core)", ENGINE_CORE, .core = {.is_karma = true}},
    {"souk without rush (core)", ENGINE_CORE},
    {"souk (core)", ENGINE_CORE, .core = {.has_rush = true}},
};
enum { CONTENDERS = sizeof(contenders) / sizeof(*contenders), SOUK_CORE = CONTENDERS - 1 };

/* What stands behind a line of the table. */
struct standing {
    double gain[EXPERIMENT_ROWS];
    double utilisation, wait_h, unserved, day_move;
};

static int run(const struct contender *contender, const struct workload *workload, uint64_t seed,
               struct outcome *out_outcome, struct error *error)
{
    struct pool_options pool = contender->pool;
    struct replay_counts counts;
    switch (contender->engine) {
    case ENGINE_POOL:
        pool.seed = seed;
        pool_run(workload, &pool, out_outcome);
        return 0;
    case ENGINE_OFFLINE:
        pool_run_offline(workload, out_outcome);
        return 0;
    case ENGINE_CORE:
        break;
    }
    return replay_run(workload, &contender->core, out_outcome, &counts, error);
}

/* Who lent how much against what it borrowed. Gini over all who did either, ratios over those who
 * did both. */
static void add_distribution(struct report_table *table, const char *label,
                             const struct outcome *outcome)
{
    double *ratios = calloc(outcome->member_count + 1, sizeof(*ratios));
    double *lent = calloc(outcome->member_count + 1, sizeof(*lent));
    double *spent = calloc(outcome->member_count + 1, sizeof(*spent));
    size_t both = 0, active = 0;
    if (!ratios || !lent || !spent)
        abort();
    for (size_t i = 0; i < outcome->member_count; i++) {
        if (outcome->lent_micro[i] <= 0 && outcome->spent_micro[i] <= 0)
            continue;
        lent[active] = outcome->lent_micro[i];
        spent[active++] = outcome->spent_micro[i];
        if (outcome->spent_micro[i] > 0 && outcome->lent_micro[i] > 0)
            ratios[both++] = outcome->lent_micro[i] / outcome->spent_micro[i];
    }
    struct report_row *row = report_add_row(table, "%s", label);
    double sum_lent = 0, sum_spent = 0;
    for (size_t i = 0; i < active; i++) {
        sum_lent += lent[i];
        sum_spent += spent[i];
    }
    row->values[0] = (double)active;
    row->values[8] = (double)both;
    row->values[1] = sum_lent / 1e6;
    row->values[2] = sum_spent / 1e6;
    row->values[3] = outcome_gini(lent, active);
    row->values[4] = outcome_gini(spent, active);
    row->values[5] = outcome_quantile(ratios, both, 0.1);
    row->values[6] = outcome_quantile(ratios, both, 0.5);
    row->values[7] = outcome_quantile(ratios, both, 0.9);
    free(ratios);
    free(lent);
    free(spent);
}

static const struct report_column distribution_columns[] = {
    {">members", "members", REPORT_COUNT},        {">lent", "lent_credits", REPORT_NUMBER},
    {">spent", "spent_credits", REPORT_NUMBER},   {">Gini lent", "gini_lent", REPORT_NUMBER},
    {">Gini spent", "gini_spent", REPORT_NUMBER}, {">lent/spent p10", "ratio_p10", REPORT_NUMBER},
    {">p50", "ratio_p50", REPORT_NUMBER},         {">p90", "ratio_p90", REPORT_NUMBER},
    {">who did both", "both", REPORT_COUNT},
};

static const struct report_column gain_columns[] = {
    {">NASA .8", "nasa_0_8", REPORT_NUMBER},
    {">1.5", "nasa_1_5", REPORT_NUMBER},
    {">Alibaba .8", "alibaba_0_8", REPORT_NUMBER},
    {">1.5", "alibaba_1_5", REPORT_NUMBER},
    {">synth. .8", "synthetic_0_8", REPORT_NUMBER},
    {">1.5", "synthetic_1_5", REPORT_NUMBER},
    {">mean", "mean", REPORT_NUMBER},
    {">used", "utilisation", REPORT_NUMBER},
    {">wait h", "wait_now_h", REPORT_NUMBER},
    {">top unserved", "top_unserved", REPORT_SHARE},
    {">day move", "day_move", REPORT_SHARE},
};

static void add_gains(struct report *report, const struct standing standings[CONTENDERS],
                      const struct experiment_options *options)
{
    struct report_table *table = report_add_table(
        report, "gain", gain_columns, sizeof(gain_columns) / sizeof(*gain_columns),
        "Gain over the truthful hourly auction's (seed %llu)", (unsigned long long)options->seed);
    double worst = (double)INFINITY, ours = 0;
    for (size_t i = 0; i < CONTENDERS; i++) {
        struct report_row *line = report_add_row(table, "%s", contenders[i].label);
        double sum = 0, count = 0;
        for (int row = 0; row < EXPERIMENT_ROWS; row++) {
            if (!(options->row_mask >> row & 1))
                continue;
            const double gain = standings[i].gain[row] / standings[0].gain[row];
            line->values[row] = gain;
            sum += gain;
            count++;
            if (i == SOUK_CORE && gain < worst)
                worst = gain;
        }
        line->values[6] = sum / count;
        line->values[7] = standings[i].utilisation / count;
        line->values[8] = standings[i].wait_h / count;
        line->values[9] = standings[i].unserved / count;
        line->values[10] = standings[i].day_move / count;
        if (i == SOUK_CORE)
            ours = sum / count;
    }
    report_add_goal(report, "mean_gain", ours, false, 0.90);
    report_add_goal(report, "worst_gain", worst, false, 0.80);
}

int experiment_gain(const struct experiment_options *options, struct report *report,
                    struct error *error)
{
    struct standing standings[CONTENDERS] = {0};
    struct report_table *distribution =
        report_add_table(report, "distribution", distribution_columns,
                         sizeof(distribution_columns) / sizeof(*distribution_columns),
                         "Lent against borrowed value by member, in credits, through the core");
    for (int row = 0; row < EXPERIMENT_ROWS; row++) {
        if (!(options->row_mask >> row & 1))
            continue;
        AUTO(workload) struct workload *workload = experiment_row_workload(options, row);
        for (size_t i = 0; i < CONTENDERS; i++) {
            experiment_say(options, "%s: %s", experiment_row_name(row), contenders[i].label);
            struct outcome outcome AUTO_OUTCOME;
            if (run(&contenders[i], workload, options->seed, &outcome, error) < 0)
                return error_wrap(error, "%s", experiment_row_name(row));
            struct standing *standing = &standings[i];
            standing->gain[row] = outcome_gain_micro(&outcome);
            standing->utilisation += outcome_utilisation(&outcome, workload);
            standing->wait_h += outcome_wait_now_h(&outcome, workload);
            standing->unserved += outcome_top_unserved(&outcome, workload);
            standing->day_move += outcome_day_move(outcome.slot_price, outcome.slot_count);
            if (i == SOUK_CORE)
                add_distribution(distribution, experiment_row_name(row), &outcome);
        }
    }
    add_gains(report, standings, options);
    return 0;
}
