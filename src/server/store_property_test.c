/*
 * Random commands through the real engine onto a real SQLite store, many at a time, with a disk
 * that fails now and then and restarts in between. Beside it a second core applies only what the
 * engine says is committed: in the end the store must replay to the same state, bit for bit, from
 * the first event and from the last snapshot, and every transfer that was acknowledged must be in
 * the books once.
 *
 * How commands fall into batches depends on the threads, so a seed does not fix everything.
 *
 * store_property_test [SEED]   one seed, or some
 * store_property_test --all    the seeds of the suite, a million commands
 */
#include "base/log.h"
#include "core/property_commands.h"
#include "server/audit.h"
#include "server/engine.h"
#include "server/engine_load.h"
#include "server/tables.h"
#include "store/store_fault.h"
#include "testing/testing.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Fewer by default under a sanitizer or an emulator. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(TEST_IS_EMULATED)
enum { SOME_SEEDS = 2 };
#else
enum { SOME_SEEDS = 10 };
#endif
enum { ALL_SEEDS = 50 };
enum {
    AT_ONCE = 200,
    ROUND_COUNT = 100,
    RESTART_EVERY = 30,
    FAULT_EVERY = 6,
    SNAPSHOT_MAX = 1 << 28,
    START_MS = 1800000000, /* seconds are added below */
};

struct test_clock {
    struct clock clock;
    _Atomic int64_t now_ms;
};

static int64_t test_utc_ms(const struct clock *clock)
{
    return atomic_load(&((const struct test_clock *)clock)->now_ms);
}

static int64_t test_monotonic_ns(const struct clock *clock)
{
    (void)clock;
    return clock_monotonic_ns(&clock_system); /* how long commits take, and pauses after failures */
}

struct trial;

/* One command on its way, with what it points to. */
struct step {
    struct engine_request request;
    struct property_world world;
    struct trial *trial;
};

struct trial {
    char dir[64];
    char path[96];
    struct test_clock clock;
    struct engine_options options;
    struct engine *engine;
    struct store_fault fault;
    struct random random;
    struct step steps[AT_ONCE];

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct core *shadow;       /* guarded by mutex, as all below */
    uint64_t transfer_entries; /* seen by the shadow */
    uint64_t transfers_acknowledged;
    uint64_t done, refused, failed;
    uint32_t waiting;
};

/* ---- What the engine calls, on its thread ---------------------------------------------------- */

static void follow(void *context, const struct core *core, const struct event *events,
                   size_t event_count)
{
    struct trial *trial = context;
    struct error error = {0};
    pthread_mutex_lock(&trial->mutex);
    for (size_t i = 0; i < event_count; i++) {
        ASSERT_OK(core_apply(trial->shadow, &events[i], &error));
        trial->transfer_entries += events[i].kind == EVENT_ENTRY_POSTED &&
                                   events[i].entry_posted.kind == LEDGER_ENTRY_TRANSFER;
    }
    assert_int_equal(core_sequence(core), core_sequence(trial->shadow));
    assert_int_equal(core_ledger_sum_micro(core), 0);
    pthread_mutex_unlock(&trial->mutex);
}

/* The disk fails from here to the end of the batch, or a little later in it. */
static int break_disk(struct engine_request *request, const struct core *core,
                      struct store_batch *batch, struct error *error)
{
    (void)core;
    (void)batch;
    (void)error;
    struct trial *trial = ((struct step *)request)->trial;
    trial->fault.calls_before = (uint32_t)random_below(&trial->random, 20);
    trial->fault.calls_failing = UINT32_MAX;
    trial->fault.kind = STORE_FAULT_DISK_FULL +
                        (enum store_fault_kind)random_below(&trial->random, STORE_FAULT_SYNC_ERROR);
    return 0;
}

static void step_done(struct engine_request *request, const struct error *error)
{
    struct step *step = (struct step *)request;
    struct trial *trial = step->trial;
    trial->fault.kind = STORE_FAULT_NONE;
    pthread_mutex_lock(&trial->mutex);
    trial->done += !error;
    trial->refused += error && error->code != ERROR_UNAVAILABLE;
    trial->failed += error && error->code == ERROR_UNAVAILABLE;
    trial->transfers_acknowledged += !error && request->command.kind == COMMAND_TRANSFER;
    if (--trial->waiting == 0)
        pthread_cond_broadcast(&trial->changed);
    pthread_mutex_unlock(&trial->mutex);
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

static void open_engine(struct trial *trial)
{
    struct error error = {0};
    ASSERT_OK(engine_open(&trial->options, &trial->engine, &error));
    engine_listen(trial->engine, follow, trial);
    ASSERT_OK(engine_start(trial->engine, &error));
}

static void draw_steps(struct trial *trial)
{
    int64_t now_ms = atomic_load(&trial->clock.now_ms);
    pthread_mutex_lock(&trial->mutex);
    for (size_t i = 0; i < AT_ONCE; i++) {
        struct step *step = &trial->steps[i];
        *step = (struct step){.trial = trial};
        step->world = (struct property_world){
            .random = trial->random, .core = trial->shadow, .now_ms = now_ms};
        step->request.has_command = true;
        step->request.command = property_command(&step->world);
        step->request.on_done = step_done;
        trial->random = step->world.random;
    }
    struct property_world world = {
        .random = trial->random, .core = trial->shadow, .now_ms = now_ms};
    property_pass_time(&world);
    trial->random = world.random;
    trial->waiting = AT_ONCE;
    pthread_mutex_unlock(&trial->mutex);
    atomic_store(&trial->clock.now_ms, world.now_ms);
}

static void run_round(struct trial *trial)
{
    struct error error = {0};
    draw_steps(trial);
    if (random_below(&trial->random, FAULT_EVERY) == 0)
        trial->steps[random_below(&trial->random, AT_ONCE)].request.on_decided = break_disk;
    for (size_t i = 0; i < AT_ONCE; i++)
        ASSERT_OK(engine_submit(trial->engine, &trial->steps[i].request, true, &error));
    pthread_mutex_lock(&trial->mutex);
    while (trial->waiting > 0)
        pthread_cond_wait(&trial->changed, &trial->mutex);
    pthread_mutex_unlock(&trial->mutex);
}

/* ---- The end --------------------------------------------------------------------------------- */

static void assert_same_state(const struct core *left, const struct core *right)
{
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, SNAPSHOT_MAX);
    buffer_init(&second, SNAPSHOT_MAX);
    core_snapshot_write(left, &first);
    core_snapshot_write(right, &second);
    assert_string_equal(buffer_string(&first), buffer_string(&second));
}

static void assert_replays(struct trial *trial)
{
    struct error error = {0};
    AUTO(store_reader) struct store_reader *reader = NULL;
    AUTO(core) struct core *replayed = core_new();
    ASSERT_OK(store_reader_open(&trial->options.store, &reader, &error));
    ASSERT_OK(engine_replay(reader, 1, replayed, NULL, NULL, &error));
    assert_same_state(replayed, trial->shadow);
    ASSERT_OK(core_check(replayed, &error));

    AUTO(engine) struct engine *engine = NULL; /* from the snapshot */
    ASSERT_OK(engine_open(&trial->options, &engine, &error));
    assert_same_state(engine_core(engine), trial->shadow);

    struct audit_report *report = calloc(1, sizeof(*report));
    ASSERT_OK(audit_run(trial->dir, report, &error));
    if (!report->is_sound)
        fail_msg("%s", report->findings[0]);
    assert_int_equal(report->event_count, core_sequence(trial->shadow));
    free(report);
}

static void trial_init(struct trial *trial, uint64_t seed)
{
    random_init(&trial->random, seed);
    snprintf(trial->dir, sizeof(trial->dir), "/tmp/souk-property-XXXXXX");
    assert_non_null(mkdtemp(trial->dir));
    snprintf(trial->path, sizeof(trial->path), "%s/market.db", trial->dir);
    pthread_mutex_init(&trial->mutex, NULL);
    pthread_cond_init(&trial->changed, NULL);
    trial->clock.clock = (struct clock){test_monotonic_ns, test_utc_ms};
    atomic_store(&trial->clock.now_ms, START_MS * INT64_C(1000));
    store_fault_install(&trial->fault, "store-property-test");
    trial->options = (struct engine_options){
        .store = {.location = trial->path,
                  .schema = &tables_schema,
                  .file_system = "store-property-test"},
        .clock = &trial->clock.clock,
        .snapshot_event_count = 1000,
    };
    trial->shadow = core_new();
}

static void trial_done(struct trial *trial)
{
    store_fault_remove(&trial->fault);
    core_free(trial->shadow);
    pthread_cond_destroy(&trial->changed);
    pthread_mutex_destroy(&trial->mutex);
    static const char *const ends[] = {"", "-wal", "-shm", ".lock"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s%s", trial->path, ends[i]);
        unlink(path);
    }
    rmdir(trial->dir);
}

static void run_seed(uint64_t seed)
{
    struct trial *trial = calloc(1, sizeof(*trial));
    assert_non_null(trial);
    trial_init(trial, seed);
    open_engine(trial);
    for (int i = 1; i <= ROUND_COUNT; i++) {
        run_round(trial);
        if (i % RESTART_EVERY == 0) {
            engine_free(trial->engine);
            open_engine(trial);
        }
    }
    engine_free(trial->engine);
    print_message("seed %" PRIu64 ": %" PRIu64 " done, %" PRIu64 " refused, %" PRIu64
                  " failed with the disk; %" PRIu64 " events, %" PRIu64 " transfers\n",
                  seed, trial->done, trial->refused, trial->failed, core_sequence(trial->shadow),
                  trial->transfer_entries);
    assert_replays(trial);
    assert_int_equal(trial->transfer_entries, trial->transfers_acknowledged);
    /* Commands that only get refused, or a disk that always fails, would prove nothing. */
    assert_true(trial->done > AT_ONCE * ROUND_COUNT / 5);
    trial_done(trial);
    free(trial);
}

static uint64_t seed_count = SOME_SEEDS;

TEST(random_commands_on_sqlite_replay_to_the_same_state_whatever_fails)
{
    for (uint64_t seed = 1; seed <= seed_count; seed++)
        run_seed(seed);
}

int main(int argc, char **argv)
{
    log_set_level(LOG_ERROR); /* of which there are some: the disk fails */
    if (argc == 2 && strcmp(argv[1], "--all") == 0) {
        seed_count = ALL_SEEDS;
    } else if (argc == 2) {
        struct error error = {0};
        uint64_t seed;
        ASSERT_OK(text_parse_u64(text_of(argv[1]), &seed, &error));
        run_seed(seed);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_commands_on_sqlite_replay_to_the_same_state_whatever_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
