#include "server/bench_market.h"

#include "base/assert.h"
#include "base/random.h"
#include "core/core.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GIB    (INT64_C(1) << 30)
#define MINUTE INT64_C(60000)
#define NOW_MS INT64_C(1800000000000)

enum { ACCOUNTS = 1000, NEWCOMERS = 10, RECORD_OCTAVES = 8, IMPOSSIBLE = 50 };

struct bench {
    const struct bench_market_options *options;
    struct random random;
    struct core *core;
    struct event_list events;
    uint64_t accounts[ACCOUNTS]; /* the first half lends, the second borrows */
    uint64_t *machines;
    double *decision_us;
};

static double cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static double heap_bytes(void)
{
    const struct mallinfo2 info = mallinfo2();
    return (double)(info.uordblks + info.hblkhd);
}

static int decide(struct bench *bench, const struct command *command, struct error *error)
{
    event_list_clear(&bench->events);
    return core_decide(bench->core, command, NOW_MS, &bench->events, error);
}

static uint64_t pick(struct bench *bench, uint64_t count)
{
    return random_below(&bench->random, count);
}

static bool one_in(struct bench *bench, uint64_t count)
{
    return pick(bench, count) == 0;
}

/* ---- The market ------------------------------------------------------------------------------ */

static int open_accounts(struct bench *bench, struct error *error)
{
    struct command settings = {.kind = COMMAND_CHANGE_SETTINGS,
                               .change_settings = core_default_settings()};
    settings.change_settings.grant_micro = INT64_C(1000000000000);
    settings.change_settings.grant_daily_micro = INT64_C(1000000000000) * ACCOUNTS;
    settings.change_settings.proving_micro = 0; /* their speeds count */
    if (decide(bench, &settings, error) < 0)
        return -1;
    for (int i = 0; i < ACCOUNTS; i++) {
        char name[32];
        snprintf(name, sizeof(name), "account-%d", i);
        const struct command open = {.kind = COMMAND_OPEN_ACCOUNT,
                                     .open_account = {.name = text_of(name)}};
        if (decide(bench, &open, error) < 0)
            return -1;
        bench->accounts[i] = bench->events.subject;
    }
    return 0;
}

static const char *const gpu_models[] = {"T4", "V100", "A10",      "A100",
                                         "L4", "H100", "RTX-3090", "RTX-4090"};
static const int64_t gpu_gib[] = {16, 32, 24, 80, 24, 80, 24, 24};
static const char *const label_words[] = {"python3-torch", "cuda-12", "avx2",    "avx512",
                                          "tensorflow",    "jax",     "mpi",     "spark",
                                          "rocm",          "onnx",    "cuda-11", "arm64"};

enum { GPU_MODELS = 8, LABEL_WORDS = 12 };

/* Home computers mostly, some workstations, few servers. */
static struct probe some_probe(struct bench *bench)
{
    const int64_t cores = INT64_C(1) << (1 + pick(bench, 3) + pick(bench, 2) * pick(bench, 4));
    struct probe probe = {
        .resources = {.cores_milli = cores * 1000,
                      .ram_bytes = cores * GIB * (INT64_C(1) << pick(bench, 3)),
                      .disk_bytes = (10 + (int64_t)pick(bench, 500)) * GIB,
                      .bandwidth_kbit = 1000 * (1 + (int64_t)pick(bench, 1000))},
        .speed_weight_milli = 300 + (int64_t)pick(bench, 1700) + (int64_t)pick(bench, 1000),
        .rtt_us = 1000 + (int64_t)pick(bench, 100000),
    };
    if (one_in(bench, 4)) {
        const uint64_t model = pick(bench, GPU_MODELS);
        probe.resources.gpus_milli = 1000 << (one_in(bench, 4) ? pick(bench, 4) : 0);
        probe.gpu_ram_bytes = gpu_gib[model] * GIB;
        snprintf(probe.gpu_model, sizeof(probe.gpu_model), "%s", gpu_models[model]);
    }
    snprintf(probe.cpu_model, sizeof(probe.cpu_model), "bench");
    return probe;
}

/*
 * One machine in NEWCOMERS has no past. The others have 1 to 255 leases behind them, as often few
 * as many, of which they lost one in 200, 50 or 10. Drawn, not lived: a million machines' pasts
 * would be a hundred million leases.
 */
static struct reputation some_reputation(struct bench *bench)
{
    static const uint64_t loses_one_in[] = {200, 200, 50, 10};
    struct reputation reputation = {0};
    if (one_in(bench, NEWCOMERS))
        return reputation;
    const uint64_t octave = UINT64_C(1) << pick(bench, RECORD_OCTAVES);
    const uint64_t lease_count = octave + pick(bench, octave);
    const uint64_t one = loses_one_in[pick(bench, 4)];
    for (uint64_t i = 0; i < lease_count; i++) {
        struct reputation_lease lease = {.outcome = LEASE_OUTCOME_SUCCEEDED,
                                         .has_started = true,
                                         .leased_ms = 30 * MINUTE,
                                         .delivered_ms = 30 * MINUTE,
                                         .ticks = 180};
        if (one_in(bench, one))
            lease.outcome = LEASE_OUTCOME_LOST;
        reputation_count(&reputation, &lease);
        reputation.earned_micro += 20000; /* of two cores */
    }
    return reputation;
}

/* The core shows its machines to be read only. */
static void set_reputation(struct bench *bench, uint64_t machine)
{
    union {
        const struct machine *shown;
        struct machine *kept;
    } found = {core_machine(bench->core, machine)};
    found.kept->reputation = some_reputation(bench);
    found.kept->is_unproven =
        found.kept->reputation.earned_micro < core_settings(bench->core)->proving_micro;
}

static int enrol(struct bench *bench, uint64_t index, struct error *error)
{
    const uint64_t owner = bench->accounts[pick(bench, ACCOUNTS / 2)];
    struct command code = {
        .kind = COMMAND_ADD_CODE,
        .add_code = {.kind = CODE_KIND_ENROL, .account = owner, .expires_ms = NOW_MS + MINUTE}};
    memcpy(code.add_code.hash, &index, sizeof(index));
    code.add_code.hash[31] = 1;
    if (decide(bench, &code, error) < 0)
        return -1;
    char name[32];
    snprintf(name, sizeof(name), "machine-%" PRIu64, index);
    struct command enrolment = {
        .kind = COMMAND_ENROL_MACHINE,
        .enrol_machine = {.name = text_of(name), .probe = some_probe(bench)}};
    enrolment.enrol_machine.offer = (struct offer_terms){
        .resources = enrolment.enrol_machine.probe.resources, .roles = MACHINE_ROLE_WORKER};
    memcpy(enrolment.enrol_machine.code_hash, code.add_code.hash, MARKET_HASH_SIZE);
    memcpy(enrolment.enrol_machine.public_key, code.add_code.hash, MACHINE_KEY_SIZE);
    if (decide(bench, &enrolment, error) < 0)
        return -1;
    const uint64_t machine = bench->machines[index] = bench->events.subject;
    set_reputation(bench, machine);
    const struct command withdrawal = {
        .kind = COMMAND_WITHDRAW_OFFER,
        .withdraw_offer = {.account = owner,
                           .offer = core_machine(bench->core, machine)->offers[0]->id}};
    if (decide(bench, &withdrawal, error) < 0)
        return -1;
    const struct command connection = {.kind = COMMAND_MACHINE_CONNECTED,
                                       .machine_connected = {.machine = machine, .generation = 1}};
    return decide(bench, &connection, error);
}

static int offer(struct bench *bench, uint64_t index, struct error *error)
{
    const struct machine *machine = core_machine(bench->core, bench->machines[index]);
    char labels[128] = "";
    size_t used = 0;
    for (uint64_t i = pick(bench, 4); i > 0; i--)
        used += (size_t)snprintf(labels + used, sizeof(labels) - used, "%s%s", used ? "," : "",
                                 label_words[pick(bench, 1 + pick(bench, LABEL_WORDS))]);
    struct command command = {
        .kind = COMMAND_SET_OFFER,
        .set_offer = {.account = machine->owner,
                      .machine = machine->id,
                      .terms = {.resources = machine->probe.resources,
                                .roles = one_in(bench, 4) ? MACHINE_ROLE_ALL : MACHINE_ROLE_WORKER,
                                .network = (enum offer_network)pick(bench, OFFER_NETWORK_COUNT),
                                .install = (enum offer_install)pick(bench, OFFER_INSTALL_COUNT),
                                .labels = text_of(labels)}}};
    struct offer_terms *terms = &command.set_offer.terms;
    if (one_in(bench, 4))
        terms->minimum.core_micro = 5000 + (int64_t)pick(bench, 30000);
    if (one_in(bench, 4))
        terms->max_lease_ms = (60 + (int64_t)pick(bench, 2880)) * MINUTE;
    if (one_in(bench, 2))
        terms->resources.cores_milli /= 2;
    return decide(bench, &command, error);
}

/* ---- The jobs -------------------------------------------------------------------------------- */

/* What no machine has, so that the job waits for ever, at any price. */
static void ask_too_much(struct bench *bench, struct job_request *request)
{
    request->max_hourly_micro = 0;
    switch (pick(bench, 4)) {
    case 0:
        request->wishes.min_reliability_milli = 995;
        return;
    case 1:
        snprintf(request->wishes.labels, sizeof(request->wishes.labels), "quantum");
        return;
    case 2:
        request->worker.cores_milli = 512000;
        return;
    default:
        request->worker.gpus_milli = 16000;
    }
}

static struct command some_job(struct bench *bench)
{
    struct command command = {
        .kind = COMMAND_SUBMIT_JOB,
        .submit_job = {.account = bench->accounts[ACCOUNTS / 2 + pick(bench, ACCOUNTS / 2)],
                       .name = "bench",
                       .spec = TEXT("{}"),
                       .num_nodes = 1,
                       .max_run_ms = (1 + (int64_t)pick(bench, 240)) * MINUTE,
                       .expected_run_ms = MINUTE,
                       .tick_ms = 10000}};
    struct job_request *request = &command.submit_job;
    const int64_t cores = INT64_C(1) << pick(bench, 4);
    request->worker =
        (struct resources){.cores_milli = cores * 1000,
                           .ram_bytes = cores * GIB / 2 * (1 + (int64_t)pick(bench, 3)),
                           .disk_bytes = (int64_t)pick(bench, 20) * GIB};
    if (one_in(bench, 3))
        request->num_nodes = 2 + (int64_t)pick(bench, 3);
    if (one_in(bench, 20))
        request->num_nodes = 4 + (int64_t)pick(bench, 13);
    if (one_in(bench, 10))
        request->num_nodes_max = request->num_nodes * 2;
    if (one_in(bench, 5))
        request->server = (struct resources){.cores_milli = 500, .ram_bytes = GIB};
    if (one_in(bench, 5)) {
        const uint64_t model = pick(bench, GPU_MODELS);
        request->worker.gpus_milli = 1000;
        request->wishes.gpu_ram_bytes = 16 * GIB;
        if (one_in(bench, 2))
            snprintf(request->wishes.gpu_model, sizeof(request->wishes.gpu_model), "%s",
                     gpu_models[model]);
    }
    if (one_in(bench, 3))
        snprintf(request->wishes.labels, sizeof(request->wishes.labels), "%s",
                 label_words[pick(bench, LABEL_WORDS)]);
    if (one_in(bench, 4))
        request->wishes.network = OFFER_NETWORK_JOB;
    if (one_in(bench, 8))
        request->wishes.install = OFFER_INSTALL_WHEELS;
    if (one_in(bench, 4))
        request->wishes.min_speed_milli = 500 + (int64_t)pick(bench, 1000);
    if (one_in(bench, 4))
        request->wishes.min_reliability_milli = 500 + (int64_t)pick(bench, 400);
    if (one_in(bench, 8))
        request->wishes.max_rtt_us = 20000 + (int64_t)pick(bench, 100000);
    if (one_in(bench, 4))
        request->max_hourly_micro = 10 * cores * request->num_nodes * 40000;
    if (one_in(bench, IMPOSSIBLE))
        ask_too_much(bench, request);
    return command;
}

static int submit_all(struct bench *bench, struct bench_market_result *result, struct error *error)
{
    const uint64_t count = bench->options->job_count;
    for (uint64_t i = 0; i < count; i++) {
        const struct command command = some_job(bench);
        event_list_clear(&bench->events);
        const double before_us = cpu_us();
        if (core_decide(bench->core, &command, NOW_MS, &bench->events, error) < 0)
            return -1;
        bench->decision_us[i] = cpu_us() - before_us;
        const struct job *job = core_job(bench->core, bench->events.subject);
        result->placed_count += job->state == JOB_STATE_STARTING;
        result->lease_count += job->lease_count;
    }
    return 0;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void sum_up(struct bench *bench, struct bench_market_result *result)
{
    const uint64_t count = bench->options->job_count;
    double total_us = 0;
    for (uint64_t i = 0; i < count; i++)
        total_us += bench->decision_us[i];
    qsort(bench->decision_us, count, sizeof(*bench->decision_us), compare);
    result->placements_per_s = (double)result->placed_count * 1e6 / total_us;
    result->decision_mean_us = total_us / (double)count;
    result->decision_p50_us = bench->decision_us[count / 2];
    result->decision_p99_us = bench->decision_us[count - 1 - count / 100];
    result->decision_max_us = bench->decision_us[count - 1];
}

static int run(struct bench *bench, struct bench_market_result *result, struct error *error)
{
    const uint64_t offer_count = bench->options->offer_count;
    const double start_bytes = heap_bytes();
    if (open_accounts(bench, error) < 0)
        return -1;
    for (uint64_t i = 0; i < offer_count; i++)
        if (enrol(bench, i, error) < 0)
            return error_wrap(error, "enrol machine %" PRIu64, i);
    const double machine_bytes = heap_bytes();
    for (uint64_t i = 0; i < offer_count; i++)
        if (offer(bench, i, error) < 0)
            return error_wrap(error, "make offer %" PRIu64, i);
    result->bytes_per_machine = (machine_bytes - start_bytes) / (double)offer_count;
    result->bytes_per_offer = (heap_bytes() - machine_bytes) / (double)offer_count;
    if (submit_all(bench, result, error) < 0)
        return -1;
    sum_up(bench, result);
    return 0;
}

int bench_market_run(const struct bench_market_options *options,
                     struct bench_market_result *out_result, struct error *error)
{
    ASSERT(options->offer_count > 0 && options->job_count > 0);
    struct bench bench = {.options = options, .core = core_new()};
    struct bench_market_result result = {0};
    random_init(&bench.random, options->seed);
    event_list_init(&bench.events);
    bench.machines = calloc(options->offer_count, sizeof(*bench.machines));
    bench.decision_us = calloc(options->job_count, sizeof(*bench.decision_us));
    ASSERT(bench.machines && bench.decision_us);
    const int status = run(&bench, &result, error);
    free(bench.decision_us);
    free(bench.machines);
    event_list_done(&bench.events);
    core_free(bench.core);
    if (status == 0)
        *out_result = result;
    return status;
}
