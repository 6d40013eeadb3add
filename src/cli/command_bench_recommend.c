/* souk bench recommend: what one recommendation over a cloud's list of types costs. */
#include "cli/bench.h"
#include "sim/recommend_bench.h"

struct bench_options {
    uint64_t types, workers, policies, rounds;
};

#define FIELD(name) offsetof(struct bench_options, name)
static const struct option bench_options[] = {
    {"types", OPTION_U64, FIELD(types), "COUNT", "1354", "Kinds of machines.", .minimum = 8,
     .maximum = 100000},
    {"workers", OPTION_U64, FIELD(workers), "COUNT", "256", "Of one kind at most.", .minimum = 1,
     .maximum = 256},
    {"policies", OPTION_U64, FIELD(policies), "COUNT", "1", "Weighed at once.", .minimum = 1,
     .maximum = RECOMMEND_BENCH_POLICIES},
    {"rounds", OPTION_U64, FIELD(rounds), "COUNT", "15", "Of which the median counts.",
     .minimum = 1, .maximum = RECOMMEND_BENCH_ROUNDS_MAX},
};

static int run_bench(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct bench_options *wanted = options;
    const struct recommend_bench_options bench = {.type_count = (uint32_t)wanted->types,
                                                  .worker_max = (uint32_t)wanted->workers,
                                                  .policy_count = (uint32_t)wanted->policies,
                                                  .rounds = (uint32_t)wanted->rounds};
    struct recommend_bench_result result;
    if (recommend_bench(&bench, &result, error) < 0)
        return -1;
    const struct bench_figure figures[] = {
        {"search_cpu_ms", result.search_cpu_ms, 2, "<= 50"},
        {"fit_cpu_ms", result.fit_cpu_ms, 2, NULL},
        {"clusters_considered", (double)result.considered, 0, NULL},
        {"frontier", result.frontier, 0, NULL},
    };
    bench_print(cli, figures, sizeof(figures) / sizeof(*figures));
    return 0;
}

const struct command command_bench_recommend = {
    .name = "bench recommend",
    .summary = "Measures the CPU time of one recommendation over a whole list of machine types.",
    .details = "Types are made up in ladders of sizes, speeds, links and prices, as clouds have "
               "them; the fit is made from forty observed runs.",
    .example = "souk bench recommend --types 1354 --workers 256 --json",
    COMMAND_OPTIONS(bench_options, bench_options),
    .run = run_bench,
};
