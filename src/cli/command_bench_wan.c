/* souk bench wan: what workers keep of their computing behind slow, long lines. */
#include "base/assert.h"
#include "cli/bench.h"
#include "exchange/bench_wan.h"
#include "exchange/message.h"

enum { PARAMETERS_MAX = 64 << 20, MBIT_MAX = 100000 };

struct bench_options {
    uint64_t workers, servers;
    uint64_t parameters;
    uint64_t mbit, server_mbit;
    int64_t rtt_ms, step_ms, alone_ms, round_ms;
    const char *policy;
    const char *compress;
};

#define FIELD(name) offsetof(struct bench_options, name)
static const struct option bench_options[] = {
    {"workers", OPTION_U64, FIELD(workers), "COUNT", "8", "Workers of one model.", .minimum = 1,
     .maximum = BENCH_WAN_WORKERS_MAX},
    {"servers", OPTION_U64, FIELD(servers), "COUNT", "1",
     "Parameter servers, each with a range of it and a line of its own.", .minimum = 1,
     .maximum = EXCHANGE_SERVERS_MAX},
    {"parameters", OPTION_U64, FIELD(parameters), "COUNT", "10000000", "Of the model.",
     .minimum = 16, .maximum = PARAMETERS_MAX},
    {"mbit", OPTION_U64, FIELD(mbit), "MBIT", "100", "Of each worker's line, each way.",
     .minimum = 1, .maximum = MBIT_MAX},
    {"server-mbit", OPTION_U64, FIELD(server_mbit), "MBIT", "0",
     "Of a parameter server's line, each way; 0: no limit.", .minimum = 0, .maximum = MBIT_MAX},
    {"rtt", OPTION_DURATION, FIELD(rtt_ms), "TIME", "100ms", "There and back."},
    {"step", OPTION_DURATION, FIELD(step_ms), "TIME", "200ms", "That a training step takes."},
    {"alone", OPTION_DURATION, FIELD(alone_ms), "TIME", "5s", "Computing without the exchange."},
    {"round", OPTION_DURATION, FIELD(round_ms), "TIME", "60s", "Computing with it."},
    {"policy", OPTION_TEXT, FIELD(policy), "NAME", "auto", "How the workers keep in step."},
    {"compress", OPTION_TEXT, FIELD(compress), "CODEC", "auto", "How updates and models travel."},
};

static int run_bench(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct bench_options *wanted = options;
    struct bench_wan_options bench = {
        .worker_count = (uint32_t)wanted->workers,
        .server_count = (uint32_t)wanted->servers,
        .float_count = wanted->parameters,
        .line_bytes_per_s = 1e6 / 8 * (double)wanted->mbit,
        .server_bytes_per_s = 1e6 / 8 * (double)wanted->server_mbit,
        .rtt_ms = wanted->rtt_ms,
        .step_ms = wanted->step_ms,
        .alone_ms = wanted->alone_ms,
        .round_ms = wanted->round_ms,
        .policy = text_of(wanted->policy),
        .is_compress_auto = text_equal(text_of(wanted->compress), TEXT("auto")),
    };
    struct bench_wan_result result;
    if ((!bench.is_compress_auto &&
         codec_parse(text_of(wanted->compress), &bench.codec, error) < 0) ||
        bench_wan_run(&bench, &result, error) < 0)
        return -1;
    const struct bench_figure figures[] = {
        {"compute_kept", result.compute_kept, 3, ">= 0.85"},
        {"compute_kept_settled", result.compute_kept_settled, 3, NULL},
        {"steps_kept", result.steps_kept, 3, NULL},
        {"waiting_share", result.waiting_share, 3, NULL},
        {"link_cpu_share", result.link_cpu_share, 3, NULL},
        {"server_cpu_share", result.server_cpu_share, 3, NULL},
        {"pushes_per_worker", result.pushes, 1, NULL},
        {"steps_per_push", result.steps_per_push, 1, NULL},
        {"commit_ms", result.commit_ms, 0, NULL},
        {"bytes_per_parameter", result.bytes_per_float, 3, NULL},
        {"last_bytes_per_parameter", result.last_bytes_per_float, 3, NULL},
        {"line_share", result.line_share, 3, NULL},
        {"packets_lost", result.packets_lost, 4, NULL},
    };
    bench_print(cli, figures, sizeof(figures) / sizeof(*figures));
    return 0;
}

const struct command command_bench_wan = {
    .name = "bench wan",
    .summary = "Measures what workers keep of their computing behind slow, long lines.",
    .details =
        "Parameter servers and their workers, each in a network namespace of its own, train "
        "over lines of a given speed and delay, which a relay between their TUN devices "
        "makes. A step takes a given time, most of it on a timer; the link's CPU is taken off "
        "as if it had been taken from the training. Figures are shares of what the workers "
        "compute without any exchange. Needs root, or user namespaces and /dev/net/tun.",
    .example = "souk bench wan --mbit 100 --rtt 100ms --json",
    COMMAND_OPTIONS(bench_options, bench_options),
    .run = run_bench,
};
