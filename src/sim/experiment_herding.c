/*
 * Herding: a part of all demand waits for the slot of the day with the lowest forecast.
 *
 * Forty members want a little more or less each slot; what they want falls as the price rises. The
 * flexible part of a day moves as one into the cheapest slot. Counted where it runs it makes that
 * slot dear, and the next day another one cheap; counted evenly over the slots it could use, as the
 * market does, it moves nothing.
 */
#include "base/random.h"
#include "market/price_meter.h"
#include "sim/experiment.h"
#include "sim/outcome.h"
#include "sim/replay.h"

#include <math.h>

enum { MEMBERS = 40, DAYS = 200, FIRST_DAY = 40, SHARES = 3 };

static const double shares[SHARES] = {0.1, 0.3, 0.5};
static const double profile[SLOT_PER_DAY] = {0.7, 1.0, 1.2, 1.1};

static int cheapest_slot(const struct price_board *board)
{
    const struct price_vector no_floor = {0};
    int best = 0;
    for (int i = 1; i < SLOT_PER_DAY; i++)
        if (price_board_price(board, i, &no_floor).core_micro <
            price_board_price(board, best, &no_floor).core_micro)
            best = i;
    return best;
}

static struct price_usage core_usage(double core_s)
{
    return (struct price_usage){.milli_s = {[PRICE_CORE] = (int64_t)(1000 * core_s)}};
}

struct herd {
    struct price_board board;
    struct price_meter meter;
    struct random random;
    double share;
    bool is_spread;
    uint64_t next_job;
};

/* One member's wish in a slot, with 30 % of noise, at elasticity 1. */
static double wish(struct herd *herd, double price_ratio)
{
    return 1000 * exp(0.3 * random_normal(&herd->random)) / price_ratio;
}

static double pass_slot(struct herd *herd, int of_day, int chosen)
{
    const struct price_vector no_floor = {0};
    const double ratio = (double)price_board_price(&herd->board, of_day, &no_floor).core_micro /
                         (double)price_cold_start().core_micro;
    for (uint64_t member = 1; member <= MEMBERS; member++) {
        price_meter_want(&herd->meter, member,
                         core_usage((1 - herd->share) * profile[of_day] * wish(herd, ratio)));
        const double flexible = SLOT_PER_DAY * herd->share * wish(herd, ratio);
        /* At the day's start its jobs are known; they run in the chosen slot. */
        if (herd->is_spread && of_day == 0)
            price_meter_spread(&herd->meter, ++herd->next_job, member, core_usage(flexible),
                               SLOT_PER_DAY, true);
        else if (!herd->is_spread && of_day == chosen)
            price_meter_want(&herd->meter, member, core_usage(flexible));
    }
    price_meter_offer(&herd->meter, core_usage(MEMBERS * 1000 / 0.9));
    struct price_inputs inputs[PRICE_RESOURCE_COUNT];
    price_meter_inputs(&herd->meter, inputs);
    price_meter_next_slot(&herd->meter, NULL, NULL);
    price_board_close(&herd->board, of_day, inputs);
    return ratio;
}

static double run_herd(double share, bool is_spread, uint64_t seed)
{
    struct herd herd = {.share = share, .is_spread = is_spread};
    price_board_init(&herd.board);
    price_meter_init(&herd.meter);
    random_init(&herd.random, seed);
    double prices[DAYS * SLOT_PER_DAY];
    for (int day = 0; day < DAYS; day++) {
        const int chosen = cheapest_slot(&herd.board);
        for (int slot = 0; slot < SLOT_PER_DAY; slot++)
            prices[day * SLOT_PER_DAY + slot] = pass_slot(&herd, slot, chosen);
    }
    price_meter_done(&herd.meter);
    return outcome_day_move(prices + (size_t)FIRST_DAY * SLOT_PER_DAY,
                            (size_t)(DAYS - FIRST_DAY) * SLOT_PER_DAY);
}

static const struct report_column columns[] = {
    {">10 %", "share_10", REPORT_SHARE},
    {">30 %", "share_30", REPORT_SHARE},
    {">50 %", "share_50", REPORT_SHARE},
};

static int run_core(const struct experiment_options *options, double share, double *out_move,
                    struct error *error)
{
    AUTO(workload)
    struct workload *workload = workload_new(
        options->traces, &(struct workload_options){.kind = WORKLOAD_SYNTHETIC,
                                                    .load_milli = 1200,
                                                    .day_count = options->day_count,
                                                    .seed = options->seed,
                                                    .cheapest_milli = (int64_t)(1000 * share)});
    struct outcome outcome AUTO_OUTCOME;
    struct replay_counts counts;
    if (replay_run(workload, &(struct replay_options){.has_rush = true}, &outcome, &counts, error) <
        0)
        return -1;
    *out_move = outcome_day_move(outcome.slot_price, outcome.slot_count);
    return 0;
}

int experiment_herding(const struct experiment_options *options, struct report *report,
                       struct error *error)
{
    struct report_table *table =
        report_add_table(report, "herding", columns, SHARES,
                         "Median day-to-day move by the share that chases the cheapest slot");
    struct report_row *naive = report_add_row(table, "counted where it runs");
    struct report_row *even = report_add_row(table, "counted evenly (souk)");
    struct report_row *core = report_add_row(table, "noisy synthetic market (core)");
    double worst = 0;
    for (int i = 0; i < SHARES; i++) {
        experiment_say(options, "herding: %.0f %%", 100 * shares[i]);
        naive->values[i] = run_herd(shares[i], false, options->seed);
        even->values[i] = run_herd(shares[i], true, options->seed);
        worst = fmax(worst, even->values[i]);
        if (run_core(options, shares[i], &core->values[i], error) < 0)
            return -1;
    }
    report_add_goal(report, "herding_move", worst, true, 0.06);
    report_add_figure(report, "herding_move_naive", naive->values[SHARES - 1]);
    return 0;
}
