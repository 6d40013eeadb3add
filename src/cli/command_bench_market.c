/* souk bench market: placements per second, and how their time grows with the market. */
#include "cli/bench.h"
#include "server/bench_market.h"

#include <math.h>

enum { SIZES = 3 };

struct bench_options {
    uint64_t offers;
    uint64_t jobs;
    uint64_t seed;
};

static const struct option bench_options[] = {
    {"offers", OPTION_U64, offsetof(struct bench_options, offers), "COUNT", "1000000",
     "Offers of the largest market; the others have a tenth and a hundredth.", .minimum = 1000,
     .maximum = 10000000},
    {"jobs", OPTION_U64, offsetof(struct bench_options, jobs), "COUNT", "100000",
     "Jobs submitted to the largest market; in the others as few.", .minimum = 100,
     .maximum = 10000000},
    {"seed", OPTION_U64, offsetof(struct bench_options, seed), "NUMBER", "1",
     "What machines and jobs are drawn from."},
};

/* Below 1: slower than the square of the logarithm. */
static double growth(const struct bench_market_result *small, uint64_t small_count,
                     const struct bench_market_result *large, uint64_t large_count)
{
    const double squares = pow(log((double)large_count) / log((double)small_count), 2);
    return large->decision_mean_us / small->decision_mean_us / squares;
}

static int run_bench(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct bench_options *wanted = options;
    static const uint64_t parts[SIZES] = {100, 10, 1};
    struct bench_market_result results[SIZES];
    for (int i = 0; i < SIZES; i++) {
        const struct bench_market_options bench = {.offer_count = wanted->offers / parts[i],
                                                   .job_count = wanted->jobs / parts[i],
                                                   .seed = wanted->seed};
        if (bench_market_run(&bench, &results[i], error) < 0)
            return -1;
    }
    const struct bench_market_result *small = &results[0], *middle = &results[1],
                                     *large = &results[2];
    const struct bench_figure figures[] = {
        {"placements_per_s", large->placements_per_s, 0, ">= 50000"},
        {"decision_p99_us", large->decision_p99_us, 1, "<= 1000"},
        {"bytes_per_offer", large->bytes_per_offer, 0, "<= 400"},
        {"growth", growth(small, wanted->offers / 100, large, wanted->offers), 2, "<= 1"},
        {"decision_mean_us", large->decision_mean_us, 1, NULL},
        {"decision_p50_us", large->decision_p50_us, 1, NULL},
        {"decision_max_us", large->decision_max_us, 1, NULL},
        {"tenth_mean_us", middle->decision_mean_us, 1, NULL},
        {"hundredth_mean_us", small->decision_mean_us, 1, NULL},
        {"placed_share", (double)large->placed_count / (double)wanted->jobs, 3, NULL},
        {"leases_per_job", (double)large->lease_count / (double)wanted->jobs, 2, NULL},
        {"bytes_per_machine", large->bytes_per_machine, 0, NULL},
    };
    bench_print(cli, figures, sizeof(figures) / sizeof(*figures));
    return 0;
}

const struct command command_bench_market = {
    .name = "bench market",
    .summary = "Measures how fast jobs with mixed wishes are matched.",
    .details =
        "Three markets, of the offers named, a tenth and a hundredth of them, one offer to "
        "a machine, are made in memory; jobs are submitted to each. A decision is one "
        "submit: check, quote, hold, match and leases; a placement is a job that got all "
        "its leases in it. One machine in ten is new, the others have a record of leases; one "
        "job in fifty asks for what no machine has. Times are CPU time of the one thread. growth "
        "compares the mean "
        "decision of the largest and the smallest with the squares of the logarithms of "
        "their offers: below 1 it grows slower.",
    .example = "souk bench market --json",
    COMMAND_OPTIONS(bench_options, bench_options),
    .run = run_bench,
};
