/* souk bench jobnet: TCP between two sandboxes, beside plainer ways. */
#include "cli/bench.h"
#include "peer/bench_jobnet.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS_MAX = 100 };

struct bench_options {
    const char *end;
    int64_t round_ms;
    uint64_t rounds;
    uint64_t mtu;
    bool has_offload;
};

static const struct option bench_options[] = {
    {"round", OPTION_DURATION, offsetof(struct bench_options, round_ms), "TIME", "2s",
     "How long a round sends."},
    {"rounds", OPTION_U64, offsetof(struct bench_options, rounds), "COUNT", "5",
     "Rounds, of which the median counts.", .minimum = 1, .maximum = ROUNDS_MAX},
    {"mtu", OPTION_U64, offsetof(struct bench_options, mtu), "BYTES", "16384",
     "The largest packet of both networks.", .minimum = 1280, .maximum = 65535},
    {"offload", OPTION_FLAG, offsetof(struct bench_options, has_offload), NULL, "true",
     "Hand TCP over in large packets, in both networks."},
    {"end", OPTION_TEXT, offsetof(struct bench_options, end), "WHICH", NULL,
     "Be the sink or the source in a sandbox; what the bench itself starts."},
};

struct rounds {
    struct bench_jobnet_result items[ROUNDS_MAX];
    size_t count;
};

static void add_round(void *context, const struct bench_jobnet_result *result)
{
    struct rounds *rounds = context;
    rounds->items[rounds->count++] = *result;
}

typedef double figure_of(const struct bench_jobnet_result *result);

static double median(const struct rounds *rounds, figure_of *of)
{
    double values[ROUNDS_MAX];
    for (size_t i = 0; i < rounds->count; i++)
        values[i] = of(&rounds->items[i]);
    return bench_median(values, rounds->count);
}

/* Of the job network to another way, in the same round. */
#define RATIO(name, way)                                                                           \
    static double name(const struct bench_jobnet_result *result)                                   \
    {                                                                                              \
        return result->ways[BENCH_JOBNET_JOBNET].bytes_per_s / result->ways[way].bytes_per_s;      \
    }
RATIO(ratio, BENCH_JOBNET_BARE)
RATIO(copy_ratio, BENCH_JOBNET_COPY)
RATIO(plain_ratio, BENCH_JOBNET_PLAIN)

static double rtt_added_ms(const struct bench_jobnet_result *result)
{
    return (result->ways[BENCH_JOBNET_JOBNET].rtt_us - result->ways[BENCH_JOBNET_COPY].rtt_us) /
           1e3;
}

#define FIGURES(name, way)                                                                         \
    static double name##_mb(const struct bench_jobnet_result *result)                              \
    {                                                                                              \
        return result->ways[way].bytes_per_s / 1e6;                                                \
    }                                                                                              \
    static double name##_rtt_ms(const struct bench_jobnet_result *result)                          \
    {                                                                                              \
        return result->ways[way].rtt_us / 1e3;                                                     \
    }                                                                                              \
    static double name##_cpu(const struct bench_jobnet_result *result)                             \
    {                                                                                              \
        return result->ways[way].carrier_cpu_s_per_gb;                                             \
    }                                                                                              \
    static double name##_end_cpu(const struct bench_jobnet_result *result)                         \
    {                                                                                              \
        return result->ways[way].end_cpu_s_per_gb;                                                 \
    }
FIGURES(jobnet, BENCH_JOBNET_JOBNET)
FIGURES(bare, BENCH_JOBNET_BARE)
FIGURES(copy, BENCH_JOBNET_COPY)
FIGURES(plain, BENCH_JOBNET_PLAIN)

#define FIGURES_OF(name)                                                                           \
    {#name "_mb_per_s", median(rounds, name##_mb), 0, NULL},                                       \
        {#name "_rtt_ms", median(rounds, name##_rtt_ms), 3, NULL},                                 \
        {#name "_cpu_s_per_gb", median(rounds, name##_cpu), 2, NULL},                              \
    {                                                                                              \
#name "_end_cpu_s_per_gb", median(rounds, name##_end_cpu), 2, NULL                         \
    }

static int measure(const struct bench_options *wanted, struct rounds *rounds, struct error *error)
{
    char folder[] = "/tmp/souk-bench-jobnet-XXXXXX";
    if (!mkdtemp(folder))
        return error_set_errno(error, errno, "make a folder");
    const struct bench_jobnet_options options = {.state_dir = folder,
                                                 .round_ms = wanted->round_ms,
                                                 .rounds = wanted->rounds,
                                                 .mtu = (int)wanted->mtu,
                                                 .has_offload = wanted->has_offload};
    const int result = bench_jobnet_run(&options, add_round, rounds, error);
    if (rmdir(folder) < 0 && result == 0)
        return error_set_errno(error, errno, "remove \"%s\"", folder);
    return result;
}

static int run_bench(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct bench_options *wanted = options;
    if (wanted->end)
        return bench_jobnet_end(wanted->end, wanted->round_ms, error);
    struct rounds *rounds = arena_alloc(cli->arena, sizeof(*rounds));
    rounds->count = 0;
    if (measure(wanted, rounds, error) < 0)
        return -1;
    const struct bench_figure figures[] = {
        {"jobnet_ratio", median(rounds, ratio), 2, ">= 0.6"},
        {"jobnet_rtt_added_ms", median(rounds, rtt_added_ms), 3, "<= 0.3"},
        {"jobnet_ratio_to_copy", median(rounds, copy_ratio), 2, NULL},
        {"jobnet_ratio_to_plain", median(rounds, plain_ratio), 2, NULL},
        FIGURES_OF(jobnet),
        FIGURES_OF(bare),
        FIGURES_OF(copy),
        FIGURES_OF(plain),
    };
    bench_print(cli, figures, sizeof(figures) / sizeof(*figures));
    return 0;
}

const struct command command_bench_jobnet = {
    .name = "bench jobnet",
    .summary = "Measures the job network between two sandboxes, and a bare relay beside it.",
    .details =
        "Two sandboxes send one another one byte and then as much as goes, by TCP. Their "
        "packets are carried in turn by the job network, with one process at each end and "
        "an encrypted link; by the same without encryption, checks and gathering (bare); by one "
        "process that copies from device to device (copy); and by that on devices of 1500 "
        "bytes without offload (plain). Figures are medians of the rounds.",
    .example = "souk bench jobnet --json",
    COMMAND_OPTIONS(bench_options, bench_options),
    .run = run_bench,
};
