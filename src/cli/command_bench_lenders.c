/* souk bench lenders: many machines for a market, from one process. */
#include "base/log.h"
#include "cli/bench.h"
#include "cli/connect.h"
#include "client/api.h"
#include "peer/bench_lenders.h"
#include "sandbox/folder.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { LENDERS_MAX = 15000 }; /* within the descriptors that a process may have */

struct bench_options {
    uint64_t lenders;
    uint64_t reports;
    int64_t ready_fd;
};

static const struct option bench_options[] = {
    {"lenders", OPTION_U64, offsetof(struct bench_options, lenders), "COUNT", "1000",
     "How many machines.", .minimum = 1, .maximum = LENDERS_MAX},
    {"reports", OPTION_U64, offsetof(struct bench_options, reports), "COUNT", "0",
     "How often a second each lease reports as if it trained.", .maximum = 1000},
    {"ready_fd", OPTION_I64, offsetof(struct bench_options, ready_fd), "FD", "-1",
     "Write a line here when all are linked.", .minimum = -1, .maximum = INT32_MAX},
};

struct lenders_bench {
    struct client *client;
    struct arena *arena; /* for one code at a time */
    int ready_fd;
};

static int new_code(void *context, const char **out_code, struct error *error)
{
    struct lenders_bench *bench = context;
    struct api_machine_code code = {0};
    struct client_answer answer = {&api_machine_code_schema, &code, {0}};
    arena_clear(bench->arena);
    if (client_post(bench->client, bench->arena, "/v1/machines/codes", (struct text){0}, &answer,
                    error) < 0)
        return -1;
    *out_code = arena_format(bench->arena, TEXT_FORMAT, TEXT_ARGS(code.code));
    return 0;
}

static void on_ready(void *context)
{
    const struct lenders_bench *bench = context;
    static const char line[] = "{\"ready\":true}\n";
    if (bench->ready_fd >= 0 && write(bench->ready_fd, line, strlen(line)) < 0)
        log_event(LOG_WARN, "ready_not_told", "errno=%d", errno);
}

static int run_bench(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct bench_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    AUTO(arena) struct arena *arena = arena_new(0);
    if (cli_connect(cli, /* needs_token= */ true, &client, error) < 0)
        return -1;
    char folder[] = "/tmp/souk-bench-lenders-XXXXXX";
    if (!mkdtemp(folder))
        return error_set_errno(error, errno, "make a folder");
    struct lenders_bench bench = {client, arena, (int)wanted->ready_fd};
    const struct bench_lenders_options lenders = {.state_dir = folder,
                                                  .server_url = client_server(client),
                                                  .fingerprint = cli->common.fingerprint,
                                                  .lender_count = wanted->lenders,
                                                  .reports_per_second = wanted->reports,
                                                  .cores_milli = 1000,
                                                  .ram_bytes = INT64_C(1) << 30,
                                                  .disk_bytes = INT64_C(1) << 30,
                                                  .new_code = new_code,
                                                  .on_ready = on_ready,
                                                  .context = &bench};
    struct bench_lenders_result result;
    const int status = bench_lenders_run(&lenders, &result, error);
    struct error ignored; /* what failed first says more */
    if (folder_remove(folder, status < 0 ? &ignored : error) < 0 || status < 0)
        return -1;
    const struct bench_figure figures[] = {
        {"lenders", (double)wanted->lenders, 0, NULL},
        {"leases", (double)result.leases, 0, NULL},
        {"heartbeats", (double)result.heartbeats, 0, NULL},
        {"meters", (double)result.meters, 0, NULL},
        {"pings", (double)result.pings, 0, NULL},
        {"reports", (double)result.reports, 0, NULL},
    };
    bench_print(cli, figures, sizeof(figures) / sizeof(*figures));
    return 0;
}

const struct command command_bench_lenders = {
    .name = "bench lenders",
    .summary = "Lends a market many machines that do nothing, to see what it costs the market.",
    .details =
        "They enrol with your account, link, beat and take leases as \"souk lend\" does, each "
        "with its own key; nothing runs under the leases, which are metered all the same and "
        "paid for. Ends with Ctrl-C. For a market of your own: bench/lender.py has one.",
    .example = "souk bench lenders --lenders 1000 --server http://127.0.0.1:7600",
    COMMAND_OPTIONS(bench_options, bench_options),
    .run = run_bench,
};
