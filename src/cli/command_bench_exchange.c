/* souk bench exchange: push and pull between a parameter server and its workers. */
#include "base/assert.h"
#include "cli/bench.h"
#include "exchange/bench_exchange.h"

enum { ROUNDS_MAX = 100, MB_MAX = 256 };

struct bench_options {
    uint64_t mb;
    uint64_t workers;
    uint64_t rounds;
    int64_t round_ms;
};

static const struct option bench_options[] = {
    {"mb", OPTION_U64, offsetof(struct bench_options, mb), "MB", "16",
     "Size of the vector, in millions of bytes.", .minimum = 1, .maximum = MB_MAX},
    {"workers", OPTION_U64, offsetof(struct bench_options, workers), "COUNT", "1",
     "Workers at one parameter server.", .minimum = 1, .maximum = BENCH_EXCHANGE_WORKERS_MAX},
    {"round", OPTION_DURATION, offsetof(struct bench_options, round_ms), "TIME", "1s",
     "How long a round lasts, each way."},
    {"rounds", OPTION_U64, offsetof(struct bench_options, rounds), "COUNT", "5",
     "Rounds, of which the median counts.", .minimum = 1, .maximum = ROUNDS_MAX},
};

struct rounds {
    double mb_per_s[ROUNDS_MAX];
    double cpu_s_per_gb[ROUNDS_MAX];
    double ratio[ROUNDS_MAX]; /* to plain, in the same round */
};

static int measure(const struct bench_options *wanted, uint64_t round, struct rounds *ways,
                   struct error *error)
{
    for (int way = 0; way < BENCH_EXCHANGE_WAY_COUNT; way++) {
        const struct bench_exchange_options options = {
            .way = (enum bench_exchange_way)way,
            .float_count = wanted->mb * 1000000 / sizeof(float),
            .worker_count = (uint32_t)wanted->workers,
            .round_ms = wanted->round_ms,
        };
        struct bench_exchange_result result;
        if (bench_exchange_run(&options, &result, error) < 0)
            return -1;
        ways[way].mb_per_s[round] = result.bytes_per_s / 1e6;
        ways[way].cpu_s_per_gb[round] = result.cpu_s_per_gb;
    }
    const double plain = ways[BENCH_EXCHANGE_PLAIN].mb_per_s[round];
    for (int way = 0; way < BENCH_EXCHANGE_WAY_COUNT; way++)
        ways[way].ratio[round] = ways[way].mb_per_s[round] / plain;
    return 0;
}

#define FIGURES_OF(name, way)                                                                      \
    {#name "_mb_per_s", bench_median(ways[way].mb_per_s, wanted->rounds), 0, NULL},                \
    {                                                                                              \
#name "_cpu_s_per_gb", bench_median(ways[way].cpu_s_per_gb, wanted->rounds), 3, NULL       \
    }

static int run_bench(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct bench_options *wanted = options;
    struct rounds *ways = arena_alloc(cli->arena, BENCH_EXCHANGE_WAY_COUNT * sizeof(*ways));
    for (uint64_t round = 0; round < wanted->rounds; round++)
        if (measure(wanted, round, ways, error) < 0)
            return -1;
    const struct bench_figure figures[] = {
        FIGURES_OF(sealed, BENCH_EXCHANGE_SEALED),
        FIGURES_OF(tls, BENCH_EXCHANGE_TLS),
        FIGURES_OF(plain, BENCH_EXCHANGE_PLAIN),
        {"sealed_ratio_to_plain", bench_median(ways[BENCH_EXCHANGE_SEALED].ratio, wanted->rounds),
         2, NULL},
        {"tls_ratio_to_plain", bench_median(ways[BENCH_EXCHANGE_TLS].ratio, wanted->rounds), 2,
         NULL},
    };
    bench_print(cli, figures, sizeof(figures) / sizeof(*figures));
    return 0;
}

const struct command command_bench_exchange = {
    .name = "bench exchange",
    .summary = "Measures push and pull between a parameter server and its workers.",
    .details =
        "A parameter server and its workers, in this process, push and pull a vector of floats "
        "over TCP on loopback, whole and uncompressed, by the policy tap: over links as jobs "
        "have them (sealed), over links in TLS records (tls), and over links that encrypt "
        "nothing, which exist for this measurement alone (plain). Speeds count the floats of "
        "both directions; CPU is that of both ends. Figures are medians of the rounds.",
    .example = "souk bench exchange --mb 64 --json",
    COMMAND_OPTIONS(bench_options, bench_options),
    .run = run_bench,
};
