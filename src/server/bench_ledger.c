#include "server/bench_ledger.h"

#include "base/assert.h"
#include "base/random.h"
#include "server/audit.h"
#include "server/engine.h"
#include "server/tables.h"
#include "store/store_raw.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PATH_MAX_SIZE = 4096, LATENCIES_MAX = 1 << 24 };

static const char *const store_files[] = {"market.db",      "market.db-wal", "market.db-shm",
                                          "market.db.lock", "raw.db",        "raw.db-wal",
                                          "raw.db-shm"};

struct bench {
    const struct bench_ledger_options *options;
    char dir[PATH_MAX_SIZE - 64];
    char store_path[PATH_MAX_SIZE];
    char raw_path[PATH_MAX_SIZE];

    struct engine *engine;
    struct loop *loop;
    struct transfer *transfers; /* client_count x in_flight */
    struct random random;
    int64_t end_ns;
    uint64_t outstanding;
    uint64_t done_count;
    uint32_t *latencies_us;
    int64_t client_cpu_ns;
    struct error error; /* of the first transfer that failed */
    bool has_failed;
};

/* One of a client's transfers in flight. */
struct transfer {
    struct engine_request request;
    struct bench *bench;
    uint64_t client;
    int64_t submitted_ns;
};

/* ---- Accounts with credits to give ----------------------------------------------------------- */

/*
 * A grant cannot be transferred, only what was earned: each client lends a machine, and one member
 * rents them all for an hour.
 */
struct seed {
    struct store_batch *batch;
    struct core *core;
    struct event_list events;
    struct buffer json;
    int64_t now_ms;
    uint64_t client_count;
};

static int seed_decide(struct seed *seed, const struct command *command, uint64_t *out_subject,
                       struct error *error)
{
    event_list_clear(&seed->events);
    if (core_decide(seed->core, command, seed->now_ms, &seed->events, error) < 0)
        return -1;
    for (size_t i = 0; i < seed->events.count; i++) {
        const struct event *event = &seed->events.items[i];
        buffer_clear(&seed->json);
        event_encode(event, &seed->json);
        store_batch_event(seed->batch, event->time_ms, text_of(event_kind_name(event->kind)),
                          buffer_text(&seed->json));
    }
    if (out_subject)
        *out_subject = seed->events.subject;
    return 0;
}

/* The clients are the first accounts there are. */
static uint64_t client_account(uint64_t client)
{
    return ACCOUNT_OPERATOR + 1 + client;
}

static int seed_account(struct seed *seed, const char *name, uint64_t number, struct error *error)
{
    char text[48];
    uint64_t account = 0;
    snprintf(text, sizeof(text), "%s-%" PRIu64, name, number);
    const struct command command = {.kind = COMMAND_OPEN_ACCOUNT,
                                    .open_account = {.name = text_of(text)}};
    if (seed_decide(seed, &command, &account, error) < 0)
        return -1;
    ASSERT(account == client_account(number));
    return 0;
}

static int seed_accounts(struct seed *seed, struct error *error)
{
    struct command settings = {.kind = COMMAND_CHANGE_SETTINGS,
                               .change_settings = core_default_settings()};
    settings.change_settings.grant_micro = INT64_C(1000000000000);
    settings.change_settings.grant_daily_micro = INT64_C(1000000000000000);
    settings.change_settings.proving_micro = 0; /* nothing is withheld */
    for (uint64_t i = 0; i < seed->client_count; i++)
        if (seed_account(seed, "client", i, error) < 0)
            return -1;
    if (seed_decide(seed, &settings, NULL, error) < 0)
        return -1;
    return seed_account(seed, "borrower", seed->client_count, error);
}

static int seed_machine(struct seed *seed, uint64_t client, struct error *error)
{
    const struct resources resources = {
        .cores_milli = 4000, .ram_bytes = INT64_C(4) << 30, .disk_bytes = INT64_C(4) << 30};
    char name[32];
    uint64_t machine = 0;
    snprintf(name, sizeof(name), "machine-%" PRIu64, client);
    struct command code = {.kind = COMMAND_ADD_CODE,
                           .add_code = {.kind = CODE_KIND_ENROL,
                                        .account = client_account(client),
                                        .expires_ms = seed->now_ms + 60000}};
    struct command enrolment = {
        .kind = COMMAND_ENROL_MACHINE,
        .enrol_machine = {.name = text_of(name),
                          .probe = {.resources = resources, .speed_weight_milli = 1000},
                          .offer = {.resources = resources, .roles = MACHINE_ROLE_WORKER}}};
    memcpy(code.add_code.hash, &client, sizeof(client));
    code.add_code.hash[MARKET_HASH_SIZE - 1] = 1;
    memcpy(enrolment.enrol_machine.code_hash, code.add_code.hash, MARKET_HASH_SIZE);
    memcpy(enrolment.enrol_machine.public_key, code.add_code.hash, MARKET_HASH_SIZE);
    if (seed_decide(seed, &code, NULL, error) < 0 ||
        seed_decide(seed, &enrolment, &machine, error) < 0)
        return -1;
    const struct command connected = {.kind = COMMAND_MACHINE_CONNECTED,
                                      .machine_connected = {machine, 1}};
    return seed_decide(seed, &connected, NULL, error);
}

static int seed_job(struct seed *seed, struct error *error)
{
    const int64_t hour_ms = 3600000;
    uint64_t id = 0;
    const struct command submit = {
        .kind = COMMAND_SUBMIT_JOB,
        .submit_job = {.account = client_account(seed->client_count),
                       .name = "rent",
                       .spec = TEXT("{}"),
                       .num_nodes = (int64_t)seed->client_count,
                       .worker = {.cores_milli = 4000, .ram_bytes = 1 << 30, .disk_bytes = 1 << 30},
                       .max_run_ms = 2 * hour_ms,
                       .expected_run_ms = hour_ms,
                       .tick_ms = hour_ms}};
    if (seed_decide(seed, &submit, &id, error) < 0)
        return -1;
    const struct job *job = core_job(seed->core, id);
    ASSERT(job && job->lease_count == seed->client_count);
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct command running = {
            .kind = COMMAND_LEASE_RUNNING,
            .lease_running = {job->leases[i]->id, job->leases[i]->fence}};
        if (seed_decide(seed, &running, NULL, error) < 0)
            return -1;
    }
    seed->now_ms += hour_ms;
    for (size_t i = 0; i < seed->client_count; i++) {
        const struct command end = {.kind = COMMAND_END_LEASE,
                                    .end_lease = {.lease = job->leases[i]->id,
                                                  .fence = job->leases[i]->fence,
                                                  .outcome = LEASE_OUTCOME_SUCCEEDED,
                                                  .tick_index = 1,
                                                  .wall_ms = hour_ms}};
        if (seed_decide(seed, &end, NULL, error) < 0)
            return -1;
    }
    return 0;
}

static int seed_market(struct seed *seed, struct error *error)
{
    if (seed_accounts(seed, error) < 0)
        return -1;
    for (uint64_t i = 0; i < seed->client_count; i++)
        if (seed_machine(seed, i, error) < 0)
            return -1;
    return seed_job(seed, error);
}

static int seed_store(const struct bench *bench, struct error *error)
{
    AUTO(store) struct store *store = NULL;
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    AUTO(core) struct core *core = core_new();
    struct seed seed = {.batch = batch,
                        .core = core,
                        .now_ms = clock_utc_ms(&clock_system) - INT64_C(7200000),
                        .client_count = bench->options->client_count};
    buffer_init(&seed.json, 1 << 16);
    event_list_init(&seed.events);
    const int result = seed_market(&seed, error);
    event_list_done(&seed.events);
    buffer_done(&seed.json);
    const struct store_options options = {.location = bench->store_path, .schema = &tables_schema};
    if (result < 0 || store_open(&options, &store, error) < 0 ||
        store_commit(store, batch, error) < 0)
        return -1;
    return store_tables_clear(store, error); /* the engine builds them from the events */
}

/* ---- The clients ----------------------------------------------------------------------------- */

static int64_t thread_cpu_ns(void)
{
    struct timespec spent;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return spent.tv_sec * INT64_C(1000000000) + spent.tv_nsec;
}

static int64_t process_cpu_ns(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000000) +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * INT64_C(1000);
}

static void start_transfer(void *context)
{
    struct transfer *transfer = context;
    struct bench *bench = transfer->bench;
    const uint64_t client_count = bench->options->client_count;
    const uint64_t other = 1 + random_below(&bench->random, client_count - 1);
    transfer->request.command = (struct command){
        .kind = COMMAND_TRANSFER,
        .transfer = {.from = client_account(transfer->client),
                     .to = client_account((transfer->client + other) % client_count),
                     .amount_micro = 1},
    };
    transfer->submitted_ns = clock_monotonic_ns(&clock_system);
    bench->outstanding++;
    struct error error;
    if (engine_submit(bench->engine, &transfer->request, false, &error) < 0) {
        bench->outstanding--;
        bench->has_failed = true;
        bench->error = error;
    }
}

static void transfer_done(struct engine_request *request, const struct error *error)
{
    struct transfer *transfer = (struct transfer *)request;
    struct bench *bench = transfer->bench;
    const int64_t now_ns = clock_monotonic_ns(&clock_system);
    bench->outstanding--;
    if (error) {
        bench->has_failed = true;
        bench->error = *error;
    } else if (bench->done_count < LATENCIES_MAX) {
        bench->latencies_us[bench->done_count++] =
            (uint32_t)((now_ns - transfer->submitted_ns) / 1000);
    }
    if (now_ns < bench->end_ns && !bench->has_failed)
        start_transfer(transfer);
    else if (bench->outstanding == 0)
        loop_stop(bench->loop);
}

static void *run_clients(void *context)
{
    struct bench *bench = context;
    const int64_t start_ns = thread_cpu_ns();
    struct error error;
    for (uint64_t i = 0; i < bench->options->client_count * bench->options->in_flight; i++)
        start_transfer(&bench->transfers[i]);
    if (loop_run(bench->loop, &error) < 0) {
        bench->has_failed = true;
        bench->error = error;
    }
    bench->client_cpu_ns = thread_cpu_ns() - start_ns;
    return NULL;
}

static int compare_u32(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static double percentile_ms(const struct bench *bench, uint64_t percent)
{
    const uint64_t at = (bench->done_count - 1) * percent / 100;
    return bench->latencies_us[at] / 1e3;
}

static int measure_clients(struct bench *bench, struct bench_ledger_result *out_result,
                           struct error *error)
{
    const struct engine_counts before = engine_counts(bench->engine);
    const int64_t cpu_start = process_cpu_ns(), start_ns = clock_monotonic_ns(&clock_system);
    bench->end_ns = start_ns + bench->options->round_ms * INT64_C(1000000);
    pthread_t thread;
    const int started = pthread_create(&thread, NULL, run_clients, bench);
    if (started)
        return error_set_errno(error, started, "start the clients");
    pthread_join(thread, NULL);
    const double seconds = (double)(clock_monotonic_ns(&clock_system) - start_ns) / 1e9;
    const int64_t cpu_ns = process_cpu_ns() - cpu_start - bench->client_cpu_ns;
    const struct engine_counts after = engine_counts(bench->engine);
    if (bench->has_failed) {
        *error = bench->error;
        return error_wrap(error, "a transfer failed");
    }
    qsort(bench->latencies_us, bench->done_count, sizeof(*bench->latencies_us), compare_u32);
    const double count = (double)bench->done_count;
    *out_result = (struct bench_ledger_result){
        .transfer_count = bench->done_count,
        .transfers_per_s = count / seconds,
        .cpu_us_per_transfer = (double)cpu_ns / 1e3 / count,
        .p50_ms = percentile_ms(bench, 50),
        .p99_ms = percentile_ms(bench, 99),
        .batch_mean = count / (double)(after.commits - before.commits),
    };
    return 0;
}

static int run_engine(struct bench *bench, struct bench_ledger_result *out_result,
                      struct error *error)
{
    const struct engine_options options = {
        .store = {.location = bench->store_path, .schema = &tables_schema},
        .clock = &clock_system,
    };
    AUTO(loop) struct loop *loop = NULL;
    AUTO(engine) struct engine *engine = NULL;
    if (loop_open(&clock_system, &loop, error) < 0 || engine_open(&options, &engine, error) < 0 ||
        engine_start(engine, error) < 0)
        return -1;
    bench->loop = loop;
    bench->engine = engine;
    bench->done_count = bench->outstanding = 0;
    for (uint64_t i = 0; i < bench->options->client_count * bench->options->in_flight; i++)
        bench->transfers[i] = (struct transfer){
            .request = {.loop = loop, .has_command = true, .on_done = transfer_done},
            .bench = bench,
            .client = i / bench->options->in_flight,
        };
    const int result = measure_clients(bench, out_result, error);
    engine_stop(engine);
    return result;
}

/* ---- What stands beside ---------------------------------------------------------------------- */

static int run_raw(const struct bench *bench, struct bench_ledger_result *result,
                   struct error *error)
{
    static const struct store_raw_part parts[] = {
        {"store_events", "sequence"},
        {"statements", "first, subject"},
        {"accounts", "id", .is_repeated = true},
    };
    const double count = (double)result->transfer_count;
    const struct store_raw_options options = {
        .source = bench->store_path,
        .target = bench->raw_path,
        .parts = parts,
        .part_count = sizeof(parts) / sizeof(*parts),
        .batch_count = (uint64_t)(count / result->batch_mean + 0.5),
    };
    struct store_raw_result raw;
    if (store_raw_insert(&options, &raw, error) < 0)
        return -1;
    result->raw_transfers_per_s = count * 1e9 / (double)raw.wall_ns;
    result->raw_cpu_us_per_transfer = (double)raw.cpu_ns / 1e3 / count;
    result->ratio_to_raw_sqlite = result->transfers_per_s / result->raw_transfers_per_s;
    return 0;
}

static int run_audit(const struct bench *bench, struct bench_ledger_result *result,
                     struct error *error)
{
    struct audit_report *report = malloc(sizeof(*report));
    ASSERT(report);
    const int64_t cpu_start = process_cpu_ns(), start_ns = clock_monotonic_ns(&clock_system);
    int done = audit_run(bench->dir, report, error);
    const double count = (double)report->entry_count;
    result->audit_entries_per_s =
        count * 1e9 / (double)(clock_monotonic_ns(&clock_system) - start_ns);
    result->audit_cpu_us_per_entry = (double)(process_cpu_ns() - cpu_start) / 1e3 / count;
    if (done == 0 && !report->is_sound)
        done = error_set(error, ERROR_CORRUPT, "the books are not sound: %s", report->findings[0]);
    free(report);
    return done;
}

static void remove_files(const struct bench *bench)
{
    for (size_t i = 0; i < sizeof(store_files) / sizeof(*store_files); i++) {
        char path[PATH_MAX_SIZE];
        const int size = snprintf(path, sizeof(path), "%s/%s", bench->dir, store_files[i]);
        if (size > 0 && (size_t)size < sizeof(path))
            (void)unlink(path); /* those that are not there need no removing */
    }
}

static int run_round(struct bench *bench, struct bench_ledger_result *out_result,
                     struct error *error)
{
    const int result = seed_store(bench, error) < 0 || run_engine(bench, out_result, error) < 0 ||
                               run_raw(bench, out_result, error) < 0 ||
                               run_audit(bench, out_result, error) < 0
                           ? -1
                           : 0;
    remove_files(bench);
    return result;
}

int bench_ledger_run(const struct bench_ledger_options *options, bench_ledger_each *each,
                     void *context, struct error *error)
{
    ASSERT(options->client_count > 1 && options->in_flight > 0);
    struct bench bench = {.options = options};
    random_init(&bench.random, 1);
    const int size = snprintf(bench.dir, sizeof(bench.dir), "%s/souk-bench-XXXXXX", options->dir);
    if (size < 0 || (size_t)size >= sizeof(bench.dir))
        return error_set(error, ERROR_INVALID, "the path of the folder is too long");
    if (!mkdtemp(bench.dir))
        return error_set_errno(error, errno, "make a folder in \"%.150s\"", options->dir);
    snprintf(bench.store_path, sizeof(bench.store_path), "%s/market.db", bench.dir);
    snprintf(bench.raw_path, sizeof(bench.raw_path), "%s/raw.db", bench.dir);
    bench.transfers = calloc(options->client_count * options->in_flight, sizeof(*bench.transfers));
    bench.latencies_us = malloc(LATENCIES_MAX * sizeof(*bench.latencies_us));
    ASSERT(bench.transfers && bench.latencies_us);
    int result = 0;
    for (uint64_t i = 0; i < options->round_count && result == 0; i++) {
        struct bench_ledger_result round;
        result = run_round(&bench, &round, error);
        if (result == 0)
            each(context, &round);
    }
    free(bench.transfers);
    free(bench.latencies_us);
    rmdir(bench.dir);
    return result;
}
