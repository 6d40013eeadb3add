/*
 * Lying: one member alone states another maximum, or one lender another minimum, than the truth.
 *
 * Those with the most to win try: the heaviest borrowers and the largest lenders. What they get is
 * what their finished jobs are worth less what they paid, or what they were paid less their costs.
 */
#include "sim/experiment.h"
#include "sim/pool.h"
#include "sim/replay.h"

#include <math.h>
#include <stdlib.h>

enum { LIARS = 4, LIARS_SHORT = 1, DAYS_MAX = 21, ENGINES = 4, LIES = 7, MARKETS = 2 };

static const struct {
    const char *label;
    bool is_borrower;
    double factor;
} lies[LIES] = {
    {"maximum x 0.5", true, 0.5}, {"maximum x 0.7", true, 0.7}, {"maximum x 0.9", true, 0.9},
    {"maximum x 1.3", true, 1.3}, {"minimum 0", false, 0},      {"minimum x 3", false, 3},
    {"minimum x 8", false, 8},
};

static const enum workload_kind markets[MARKETS] = {WORKLOAD_SYNTHETIC, WORKLOAD_NASA};

static struct workload *market(const struct experiment_options *options, int index)
{
    const int64_t days =
        options->day_count > 0 && options->day_count < DAYS_MAX ? options->day_count : DAYS_MAX;
    return workload_new(options->traces, &(struct workload_options){.kind = markets[index],
                                                                    .load_milli = 1200,
                                                                    .day_count = days,
                                                                    .seed = options->seed});
}

static int liar_count(const struct experiment_options *options)
{
    return options->day_count > 0 ? LIARS_SHORT : LIARS;
}

static int run(int engine, const struct workload *workload, struct outcome *out_outcome,
               struct error *error)
{
    static const enum pool_rule rules[ENGINES] = {POOL_RULE_COUNT, POOL_SOUK, POOL_KDA,
                                                  POOL_MCAFEE};
    struct replay_counts counts;
    if (engine == 0)
        return replay_run(workload, &(struct replay_options){.has_rush = true}, out_outcome,
                          &counts, error);
    pool_run(workload, &(struct pool_options){.rule = rules[engine], .has_rush = true},
             out_outcome);
    return 0;
}

static double use_of(const struct workload *workload, const struct outcome *outcome,
                     bool is_borrower, uint32_t who)
{
    if (!is_borrower)
        return outcome->lender_income_micro[who] - outcome->lender_cost_micro[who];
    double use = 0;
    for (size_t i = 0; i < workload->job_count; i++) {
        const struct sim_job *job = &workload->jobs[i];
        if (job->member != who)
            continue;
        use -= outcome->fates[i].paid_micro;
        if (outcome->fates[i].is_finished)
            use += (double)job->worth_micro * (double)job->run_s / 3600;
    }
    return use;
}

/* The nth heaviest member by what its jobs need, or the nth largest lender. */
static uint32_t nth_heaviest(const struct workload *workload, bool is_borrower, int nth)
{
    const size_t count = is_borrower ? workload->member_count : workload->lender_count;
    double *weights = calloc(count + 1, sizeof(*weights));
    if (!weights)
        abort();
    for (size_t i = 0; i < workload->job_count && is_borrower; i++)
        weights[workload->jobs[i].member] +=
            (double)workload->jobs[i].cold_micro * (double)workload->jobs[i].run_s;
    for (size_t i = 0; i < count && !is_borrower; i++)
        weights[i] = (double)sim_rate_micro(workload->lenders[i].resources, price_cold_start());
    uint32_t best = 0;
    for (int round = 0; round <= nth; round++) {
        if (round > 0)
            weights[best] = -1;
        best = 0;
        for (uint32_t i = 1; i < count; i++)
            if (weights[i] > weights[best])
                best = i;
    }
    free(weights);
    return best;
}

static void tell(struct workload *workload, int lie, uint32_t who)
{
    if (!lies[lie].is_borrower) {
        workload->lenders[who].minimum_milli =
            (int64_t)((double)workload->lenders[who].cost_milli * lies[lie].factor);
        return;
    }
    for (size_t i = 0; i < workload->job_count; i++)
        if (workload->jobs[i].member == who)
            workload->jobs[i].maximum_micro =
                (int64_t)((double)workload->jobs[i].worth_micro * lies[lie].factor);
}

struct effect {
    double before, after; /* over all liars */
    double best;
};

static int try_lies(const struct experiment_options *options, int engine, int index,
                    struct effect effects[LIES], struct error *error)
{
    AUTO(workload) struct workload *honest = market(options, index);
    struct outcome truth AUTO_OUTCOME;
    if (run(engine, honest, &truth, error) < 0)
        return -1;
    double usual[2] = {0}; /* of a liar, before: lender, borrower */
    for (int liar = 0; liar < liar_count(options); liar++)
        for (int is_borrower = 0; is_borrower < 2; is_borrower++)
            usual[is_borrower] +=
                use_of(honest, &truth, is_borrower, nth_heaviest(honest, is_borrower, liar)) /
                liar_count(options);
    for (int lie = 0; lie < LIES; lie++)
        for (int liar = 0; liar < liar_count(options); liar++) {
            const uint32_t who = nth_heaviest(honest, lies[lie].is_borrower, liar);
            AUTO(workload) struct workload *told = market(options, index);
            tell(told, lie, who);
            struct outcome outcome AUTO_OUTCOME;
            if (run(engine, told, &outcome, error) < 0)
                return -1;
            const double before = use_of(honest, &truth, lies[lie].is_borrower, who);
            const double after = use_of(told, &outcome, lies[lie].is_borrower, who);
            /* Who had next to nothing before has no share that means anything. */
            if (before < 0.1 * usual[lies[lie].is_borrower])
                continue;
            const double change = after / before - 1;
            effects[lie].before += before;
            effects[lie].after += after;
            effects[lie].best = fmax(effects[lie].best, change);
        }
    return 0;
}

static const struct report_column columns[] = {
    {">souk (core)", "souk_core_mean", REPORT_SHARE}, {">best", "souk_core_best", REPORT_SHARE},
    {">souk (pool)", "souk_pool_mean", REPORT_SHARE}, {">best", "souk_pool_best", REPORT_SHARE},
    {">k-DA (pool)", "kda_mean", REPORT_SHARE},       {">best", "kda_best", REPORT_SHARE},
    {">McAfee (pool)", "mcafee_mean", REPORT_SHARE},  {">best", "mcafee_best", REPORT_SHARE},
};

int experiment_lying(const struct experiment_options *options, struct report *report,
                     struct error *error)
{
    struct effect effects[ENGINES][LIES];
    for (int engine = 0; engine < ENGINES; engine++) {
        for (int lie = 0; lie < LIES; lie++)
            effects[engine][lie] = (struct effect){.best = -HUGE_VAL};
        for (int index = 0; index < MARKETS; index++) {
            experiment_say(options, "lying: %s, %s", columns[(size_t)2 * (size_t)engine].title + 1,
                           workload_kind_name(markets[index]));
            if (try_lies(options, engine, index, effects[engine], error) < 0)
                return -1;
        }
    }
    struct report_table *table =
        report_add_table(report, "lying", columns, sizeof(columns) / sizeof(*columns),
                         "What lying alone changes of one's own utility: over all and best of %d",
                         liar_count(options) * MARKETS);
    double best = -HUGE_VAL;
    for (int lie = 0; lie < LIES; lie++) {
        struct report_row *row = report_add_row(table, "%s", lies[lie].label);
        for (int engine = 0; engine < ENGINES; engine++) {
            const struct effect *effect = &effects[engine][lie];
            row->values[(size_t)2 * (size_t)engine] = effect->after / effect->before - 1;
            row->values[(size_t)2 * (size_t)engine + 1] = effect->best;
        }
        best = fmax(best, row->values[0]);
    }
    report_add_figure(report, "lying_best_mean", best);
    return 0;
}
