/* souk bench ledger: durable transfers through the engine, beside SQLite alone. */
#include "base/log.h"
#include "cli/bench.h"
#include "server/bench_ledger.h"

enum { ROUNDS_MAX = 100 };

struct bench_options {
    const char *dir;
    uint64_t clients;
    uint64_t in_flight;
    int64_t round_ms;
    uint64_t rounds;
};

static const struct option bench_options[] = {
    {"dir", OPTION_PATH, offsetof(struct bench_options, dir), "DIR", "/var/tmp",
     "A folder on the disk to measure."},
    {"clients", OPTION_U64, offsetof(struct bench_options, clients), "COUNT", "64",
     "Clients that transfer at the same time.", .minimum = 2, .maximum = 4096},
    {"in_flight", OPTION_U64, offsetof(struct bench_options, in_flight), "COUNT", "16",
     "Transfers each client waits for at a time.", .minimum = 1, .maximum = 64},
    {"round", OPTION_DURATION, offsetof(struct bench_options, round_ms), "TIME", "3s",
     "How long a round lasts."},
    {"rounds", OPTION_U64, offsetof(struct bench_options, rounds), "COUNT", "3",
     "Rounds, of which the median counts.", .minimum = 1, .maximum = ROUNDS_MAX},
};

struct rounds {
    struct bench_ledger_result items[ROUNDS_MAX];
    size_t count;
};

static void add_round(void *context, const struct bench_ledger_result *result)
{
    struct rounds *rounds = context;
    rounds->items[rounds->count++] = *result;
}

static double median(const struct rounds *rounds, size_t offset)
{
    double values[ROUNDS_MAX];
    for (size_t i = 0; i < rounds->count; i++)
        values[i] = *(const double *)((const char *)&rounds->items[i] + offset);
    return bench_median(values, rounds->count);
}

#define FIGURE(member, digits, goal)                                                               \
    {                                                                                              \
#member, median(rounds, offsetof(struct bench_ledger_result, member)), digits, goal        \
    }

static int run_bench(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct bench_options *wanted = options;
    const struct bench_ledger_options bench = {.dir = wanted->dir,
                                               .client_count = wanted->clients,
                                               .in_flight = wanted->in_flight,
                                               .round_ms = wanted->round_ms,
                                               .round_count = wanted->rounds};
    log_set_level(LOG_WARN); /* snapshots are saved all the time */
    struct rounds *rounds = arena_alloc(cli->arena, sizeof(*rounds));
    if (bench_ledger_run(&bench, add_round, rounds, error) < 0)
        return -1;
    const struct bench_figure figures[] = {
        FIGURE(cpu_us_per_transfer, 2, "<= 8"),
        FIGURE(ratio_to_raw_sqlite, 2, ">= 0.5"),
        FIGURE(transfers_per_s, 0, NULL),
        FIGURE(p50_ms, 1, NULL),
        FIGURE(p99_ms, 1, "<= 20"),
        FIGURE(batch_mean, 0, NULL),
        FIGURE(raw_transfers_per_s, 0, NULL),
        FIGURE(raw_cpu_us_per_transfer, 2, NULL),
        FIGURE(audit_entries_per_s, 0, ">= 1000000"),
        FIGURE(audit_cpu_us_per_entry, 2, NULL),
    };
    bench_print(cli, figures, sizeof(figures) / sizeof(*figures));
    return 0;
}

const struct command command_bench_ledger = {
    .name = "bench ledger",
    .summary = "Measures durable transfers, and SQLite alone beside them.",
    .details = "Clients keep transfers in flight through the market's own engine, onto a store "
               "with full sync. Then SQLite alone inserts the same rows in batches of the same "
               "size, and the store is audited. CPU is the process's less the clients' thread's.",
    .example = "souk bench ledger --dir /var/tmp --json",
    COMMAND_OPTIONS(bench_options, bench_options),
    .run = run_bench,
};
