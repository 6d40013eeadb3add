/*
 * Step: demand doubles or halves at the beginning of a slot.
 *
 * In the smooth market n equal borrowers want W = 0.9 O k (p / cold)^-elasticity, so that the price
 * that clears is known and the slots until it is reached can be counted. In the noisy one the same
 * happens to the synthetic workload in the real core.
 */
#include "market/price_rule.h"
#include "sim/experiment.h"
#include "sim/replay.h"

#include <math.h>

enum { SLOTS = 400, ELASTICITIES = 5, SIZES = 5, SEEDS = 6, SEEDS_SHORT = 1 };

static const double elasticities[ELASTICITIES] = {0.5, 0.75, 1, 1.5, 2};
static const int64_t sizes[SIZES] = {5, 10, 20, 50, 200};

/* prices.md, section 6: slots until within 10 % for good. */
static const double predicted_by_elasticity[ELASTICITIES] = {8, 4, 3, 1, 1};
static const double predicted_by_size[SIZES] = {11, 7, 4, 4, 3};

struct settling {
    double slots;
    double overshoot;
};

static struct settling settle(int64_t borrowers, double elasticity, double step)
{
    const double offered_milli_s = 1e9;
    const double cold = (double)price_cold_start().core_micro;
    const double target = cold * pow(step, 1 / elasticity);
    struct price_board board;
    price_board_init(&board);
    const struct price_vector no_floor = {0};
    struct settling settling = {0};
    for (int slot = 0; slot < SLOTS; slot++) {
        const int of_day = slot % SLOT_PER_DAY;
        const double price = (double)price_board_price(&board, of_day, &no_floor).core_micro;
        if (fabs(price / target - 1) > 0.1)
            settling.slots = slot + 1;
        const double beyond = step > 1 ? price / target - 1 : target / price - 1;
        settling.overshoot = fmax(settling.overshoot, beyond);
        const double wanted = 0.9 * offered_milli_s * step * pow(price / cold, -elasticity);
        struct price_inputs inputs[PRICE_RESOURCE_COUNT];
        for (int i = 0; i < PRICE_RESOURCE_COUNT; i++)
            inputs[i] = (struct price_inputs){.effective_q16 = 1 << 16};
        inputs[PRICE_CORE] = (struct price_inputs){.wanted_milli_s = (int64_t)wanted,
                                                   .offered_milli_s = (int64_t)offered_milli_s,
                                                   .borrower_count = borrowers,
                                                   .effective_q16 = borrowers << 16};
        price_board_close(&board, of_day, inputs);
    }
    return settling;
}

/* The worse of twice and half the demand. */
static struct settling settle_both(int64_t borrowers, double elasticity)
{
    const struct settling up = settle(borrowers, elasticity, 2);
    const struct settling down = settle(borrowers, elasticity, 0.5);
    return (struct settling){fmax(up.slots, down.slots), fmax(up.overshoot, down.overshoot)};
}

static const struct report_column smooth_columns[] = {
    {">slots", "slots", REPORT_COUNT},
    {">predicted", "predicted_slots", REPORT_COUNT},
    {">overshoot", "overshoot", REPORT_SHARE},
};

static void add_smooth(struct report *report)
{
    struct report_table *table = report_add_table(
        report, "step", smooth_columns, sizeof(smooth_columns) / sizeof(*smooth_columns),
        "Slots until the price is within 10 %% for good after demand x 2 or x 0.5");
    double worst = 0;
    for (int i = 0; i < ELASTICITIES; i++) {
        const struct settling seen = settle_both(200, elasticities[i]);
        struct report_row *row =
            report_add_row(table, "200 borrowers, elasticity %.2f", elasticities[i]);
        row->values[0] = seen.slots;
        row->values[1] = predicted_by_elasticity[i];
        row->values[2] = seen.overshoot;
        worst = fmax(worst, seen.slots - predicted_by_elasticity[i]);
    }
    for (int i = 0; i < SIZES; i++) {
        const struct settling seen = settle_both(sizes[i], 1);
        struct report_row *row = report_add_row(table, "%d borrowers, elasticity 1", (int)sizes[i]);
        row->values[0] = seen.slots;
        row->values[1] = predicted_by_size[i];
        row->values[2] = seen.overshoot;
        worst = fmax(worst, seen.slots - predicted_by_size[i]);
    }
    report_add_figure(report, "settle_slots", settle_both(200, 1).slots);
    report_add_goal(report, "settle_slots_beyond_predicted", worst, true, 0);
}

/* ---- The real core --------------------------------------------------------------------------- */

/* Whole weeks, so that a slot and the same one of the next week are alike. */
enum { STEP_DAY = 14, DAYS = 28, STEP_DAY_SHORT = 7, DAYS_SHORT = 21, SHOWN = 10 };

/* The level of a slot, free of the time of day: its price over the mean of that time's prices. */
static double mean_over(const double *prices, size_t begin, size_t end)
{
    double sum = 0;
    for (size_t i = begin; i < end; i++)
        sum += log(prices[i]);
    return exp(sum / (double)(end - begin));
}

static int run_noisy(const struct experiment_options *options, uint64_t seed,
                     double out_path[SHOWN], double *out_rise, struct error *error)
{
    const bool is_short = options->day_count > 0;
    const int64_t step_day = is_short ? STEP_DAY_SHORT : STEP_DAY;
    /* 0.8 before, 1.6 after. */
    AUTO(workload)
    struct workload *workload = workload_new(
        options->traces, &(struct workload_options){.kind = WORKLOAD_SYNTHETIC,
                                                    .load_milli = 1200,
                                                    .day_count = is_short ? DAYS_SHORT : DAYS,
                                                    .seed = seed,
                                                    .step_day = step_day,
                                                    .step_milli = 2000});
    struct outcome outcome AUTO_OUTCOME;
    struct replay_counts counts;
    if (replay_run(workload, &(struct replay_options){.has_rush = true}, &outcome, &counts, error) <
        0)
        return -1;
    /* Weekends differ: the level before is the week before, that after the second week after. */
    const size_t step = (size_t)step_day * SLOT_PER_DAY, week = (size_t)7 * SLOT_PER_DAY;
    const double before = mean_over(outcome.slot_price, step - week, step);
    const double after = mean_over(outcome.slot_price, step + week, step + 2 * week);
    for (size_t i = 0; i < SHOWN; i++) {
        /* Against what the same slot of the week has at the new level. */
        out_path[i] += outcome.slot_price[step + i + 1] / outcome.slot_price[step + i + 1 + week];
    }
    *out_rise += after / before;
    return 0;
}

static const struct report_column noisy_columns[] = {
    {">share of new level", "share", REPORT_NUMBER},
};

static int add_noisy(const struct experiment_options *options, struct report *report,
                     struct error *error)
{
    double path[SHOWN] = {0}, rise = 0;
    const int seeds = options->day_count > 0 ? SEEDS_SHORT : SEEDS;
    for (int seed = 0; seed < seeds; seed++) {
        experiment_say(options, "step: core, seed %d of %d", seed + 1, seeds);
        if (run_noisy(options, options->seed + (uint64_t)seed, path, &rise, error) < 0)
            return -1;
    }
    struct report_table *table = report_add_table(
        report, "step_core", noisy_columns, 1,
        "Through the core: synthetic demand x 2 on a Monday, mean of %d seeds; new level x %.2f",
        seeds, rise / seeds);
    for (int i = 0; i < SHOWN; i++)
        report_add_row(table, "after %d slots", i + 1)->values[0] = path[i] / seeds;
    report_add_figure(report, "step_core_after_4", path[3] / seeds);
    report_add_figure(report, "step_core_after_6", path[5] / seeds);
    return 0;
}

int experiment_step(const struct experiment_options *options, struct report *report,
                    struct error *error)
{
    add_smooth(report);
    return add_noisy(options, report, error);
}
