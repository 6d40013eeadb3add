/*
 * Gangs: lenders who agree to lend less, or to rent from themselves, to lift the price.
 *
 * A gang gives up a fifth of its machine-days: machine m on the days on which m + day is divisible
 * by five. Withheld, they are simply not there. Self-rented, they count as lent and as wanted, in
 * the name of a borrower nobody connects with the gang, and serve nobody.
 */
#include "sim/experiment.h"
#include "sim/pool.h"
#include "sim/replay.h"

#include <math.h>

enum { SIZES = 4, EVERY = 5 };

static const double sizes[SIZES] = {0.05, 0.1, 0.3, 0.5};

enum engine { ENGINE_POOL, ENGINE_CORE };

static struct workload *market(const struct experiment_options *options, enum workload_kind kind)
{
    return workload_new(options->traces, &(struct workload_options){.kind = kind,
                                                                    .load_milli = 1200,
                                                                    .day_count = options->day_count,
                                                                    .seed = options->seed});
}

static size_t gang_size(const struct workload *workload, double share)
{
    const size_t count = (size_t)ceil(share * (double)workload->lender_count - 0.5);
    return count > 0 ? count : 1;
}

static void conspire(struct workload *workload, size_t gang, enum lender_hour instead)
{
    for (size_t i = 0; i < gang; i++) {
        struct sim_lender *lender = &workload->lenders[i];
        lender->washed_by = workload->member_count;
        for (int64_t hour = 0; hour < workload->hour_count; hour++)
            if ((hour / 24 + (int64_t)i) % EVERY == 0 && lender->hours[hour] == LENDER_LENDS)
                lender->hours[hour] = (uint8_t)instead;
    }
    /* The borrower nobody knows. */
    workload->member_count += instead == LENDER_WASHES;
}

struct takings {
    double income; /* what others paid the gang */
    double profit; /* less its costs */
    double price;  /* mean, over the cold start */
};

static int run(enum engine engine, const struct workload *workload, size_t gang,
               struct takings *out_takings, struct error *error)
{
    struct outcome outcome AUTO_OUTCOME;
    struct replay_counts counts;
    if (engine == ENGINE_POOL)
        pool_run(workload, &(struct pool_options){.rule = POOL_SOUK, .has_rush = true}, &outcome);
    else if (replay_run(workload, &(struct replay_options){.has_rush = true}, &outcome, &counts,
                        error) < 0)
        return -1;
    *out_takings = (struct takings){0};
    for (size_t i = 0; i < gang; i++) {
        out_takings->income += outcome.lender_income_micro[i];
        out_takings->profit += outcome.lender_income_micro[i] - outcome.lender_cost_micro[i];
    }
    for (size_t i = 0; i < outcome.slot_count; i++)
        out_takings->price += outcome.slot_price[i] / (double)outcome.slot_count;
    return 0;
}

static const struct report_column columns[] = {
    {">machines", "machines", REPORT_COUNT},
    {">income", "income", REPORT_SHARE},
    {">less costs", "profit", REPORT_SHARE},
    {">price", "price", REPORT_SHARE},
};

static int add_rows(const struct experiment_options *options, struct report_table *table,
                    enum engine engine, enum workload_kind kind, enum lender_hour instead,
                    double *worst, struct error *error)
{
    for (int i = 0; i < SIZES; i++) {
        AUTO(workload) struct workload *honest = market(options, kind);
        AUTO(workload) struct workload *rigged = market(options, kind);
        const size_t gang = gang_size(honest, sizes[i]);
        conspire(rigged, gang, instead);
        struct takings before, after;
        if (run(engine, honest, gang, &before, error) < 0 ||
            run(engine, rigged, gang, &after, error) < 0)
            return -1;
        struct report_row *row =
            report_add_row(table, "%s, %.0f %% of lenders (%s)", workload_kind_name(kind),
                           100 * sizes[i], engine == ENGINE_POOL ? "pool" : "core");
        row->values[0] = (double)gang;
        row->values[1] = after.income / before.income - 1;
        row->values[2] = after.profit / before.profit - 1;
        row->values[3] = after.price / before.price - 1;
        *worst = fmax(*worst, row->values[1]);
    }
    return 0;
}

static int add_table(const struct experiment_options *options, struct report *report,
                     const char *name, const char *words, enum lender_hour instead, double *worst,
                     struct error *error)
{
    struct report_table *table =
        report_add_table(report, name, columns, sizeof(columns) / sizeof(*columns),
                         "A gang of lenders that %s a fifth: what changes", words);
    static const enum workload_kind kinds[] = {WORKLOAD_SYNTHETIC, WORKLOAD_NASA};
    *worst = -HUGE_VAL;
    for (int engine = ENGINE_POOL; engine <= ENGINE_CORE; engine++)
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
            experiment_say(options, "%s: %s", name, workload_kind_name(kinds[i]));
            if (add_rows(options, table, (enum engine)engine, kinds[i], instead, worst, error) < 0)
                return -1;
        }
    return 0;
}

int experiment_withholding(const struct experiment_options *options, struct report *report,
                           struct error *error)
{
    double worst;
    if (add_table(options, report, "withholding", "hides", LENDER_AWAY, &worst, error) < 0)
        return -1;
    report_add_goal(report, "withholding_change", worst, true, 0);
    return 0;
}

int experiment_self_rent(const struct experiment_options *options, struct report *report,
                         struct error *error)
{
    double worst;
    if (add_table(options, report, "self_rent", "rents from itself, unnoticed,", LENDER_WASHES,
                  &worst, error) < 0)
        return -1;
    report_add_goal(report, "self_rent_change", worst, true, 0);
    return 0;
}
