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

enum { PATH_MAX_SIZE = 4096, SEED_MICRO = 1000000, LATENCIES_MAX = 1 << 24 };

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

struct seed {
    struct store_batch *batch;
    struct ledger *ledger;
    struct core *core; /* what the events add up to: they are checked on the way */
    struct buffer json;
    int64_t time_ms;
};

static int seed_event(struct seed *seed, struct event *event, struct error *error)
{
    event->sequence = core_sequence(seed->core) + 1;
    event->time_ms = seed->time_ms;
    if (core_apply(seed->core, event, error) < 0)
        return -1;
    buffer_clear(&seed->json);
    event_encode(event, &seed->json);
    store_batch_event(seed->batch, event->time_ms, text_of(event_kind_name(event->kind)),
                      buffer_text(&seed->json));
    return 0;
}

static int seed_plan(struct seed *seed, const struct ledger_plan *plan, struct error *error)
{
    for (size_t i = 0; i < plan->entry_count; i++) {
        struct event event = {.kind = EVENT_ENTRY_POSTED, .entry_posted = plan->entries[i]};
        if (ledger_commit(seed->ledger, &plan->entries[i], error) < 0 ||
            seed_event(seed, &event, error) < 0)
            return -1;
    }
    return 0;
}

static uint64_t client_account(uint64_t client)
{
    return ACCOUNT_OPERATOR + 1 + client;
}

static int seed_account(struct seed *seed, uint64_t client, struct error *error)
{
    struct event event = {
        .kind = EVENT_ACCOUNT_OPENED,
        .account_opened = {.account = client_account(client), .is_grant_due = true}};
    snprintf(event.account_opened.name, sizeof(event.account_opened.name), "client-%" PRIu64,
             client);
    if (ledger_open_account(seed->ledger, client_account(client), error) < 0)
        return -1;
    return seed_event(seed, &event, error);
}

/* A grant cannot be transferred, so each pays it to its neighbour: what is posted is earned. */
static int seed_credits(struct seed *seed, uint64_t client, uint64_t client_count,
                        struct error *error)
{
    struct ledger_plan plan;
    const uint64_t job = UINT64_C(1) << 40;
    struct event given = {.kind = EVENT_GRANT_GIVEN,
                          .grant_given = {.account = client_account(client),
                                          .amount_micro = SEED_MICRO,
                                          .is_invited = true}};
    const struct ledger_post post = {.job = job,
                                     .payee = client_account((client + 1) % client_count),
                                     .amount_micro = SEED_MICRO};
    if (seed_event(seed, &given, error) < 0 ||
        ledger_plan_grant(seed->ledger, client_account(client), SEED_MICRO, &plan, error) < 0 ||
        seed_plan(seed, &plan, error) < 0 ||
        ledger_plan_hold(seed->ledger, client_account(client), job, SEED_MICRO, &plan, error) < 0 ||
        seed_plan(seed, &plan, error) < 0 ||
        ledger_plan_post(seed->ledger, &post, &plan, error) < 0)
        return -1;
    return seed_plan(seed, &plan, error);
}

static int seed_store(const struct bench *bench, struct error *error)
{
    const uint64_t client_count = bench->options->client_count;
    AUTO(store) struct store *store = NULL;
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    AUTO(ledger) struct ledger *ledger = ledger_new(ACCOUNT_MINT, ACCOUNT_OPERATOR);
    AUTO(core) struct core *core = core_new();
    struct seed seed = {
        .batch = batch, .ledger = ledger, .core = core, .time_ms = clock_utc_ms(&clock_system)};
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 1 << 16);
    seed.json = json;
    int result = 0;
    for (uint64_t i = 0; i < client_count && result == 0; i++)
        result = seed_account(&seed, i, error);
    for (uint64_t i = 0; i < client_count && result == 0; i++)
        result = seed_credits(&seed, i, client_count, error);
    json = seed.json;
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
