/* covers engine.c, engine_load.c, projection.c, projection_rows.c, tables.c, audit.c */
#include "server/audit.h"
#include "server/engine.h"
#include "server/tables.h"
#include "store/store_fault.h"
#include "testing/testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fixture {
    char dir[64];
    char path[96];
    struct engine *engine;
    struct store_fault fault;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t heard_events; /* by the listener; guarded by mutex */
    struct engine_options options;
    atomic_bool is_audited;
};

/* A request whose end a test can wait for. */
struct ask {
    struct engine_request request;
    struct fixture *fixture;
    bool is_done; /* guarded by the fixture's mutex */
    struct error error;
    bool is_failed;
    enum store_fault_kind fault; /* set on the core thread, before the commit */
    bool keeps_fault;            /* the disk stays broken after it */
};

static void heard(void *context, const struct core *core, const struct event *events,
                  size_t event_count)
{
    struct fixture *fixture = context;
    assert_int_equal(core_sequence(core), events[event_count - 1].sequence);
    pthread_mutex_lock(&fixture->mutex);
    fixture->heard_events += event_count;
    pthread_cond_broadcast(&fixture->changed);
    pthread_mutex_unlock(&fixture->mutex);
}

static void open_engine(struct fixture *fixture)
{
    struct error error;
    ASSERT_OK(engine_open(&fixture->options, &fixture->engine, &error));
    engine_listen(fixture->engine, heard, fixture);
    ASSERT_OK(engine_start(fixture->engine, &error));
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/souk-engine-XXXXXX");
    if (!mkdtemp(fixture->dir))
        return -1;
    snprintf(fixture->path, sizeof(fixture->path), "%s/market.db", fixture->dir);
    pthread_mutex_init(&fixture->mutex, NULL);
    pthread_cond_init(&fixture->changed, NULL);
    store_fault_install(&fixture->fault, "engine-test");
    fixture->options = (struct engine_options){
        .store = {.location = fixture->path,
                  .schema = &tables_schema,
                  .file_system = "engine-test"},
        .clock = &clock_system,
        .snapshot_event_count = 20,
    };
    open_engine(fixture);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    engine_free(fixture->engine);
    store_fault_remove(&fixture->fault);
    char command[160];
    snprintf(command, sizeof(command), "rm -rf '%s'", fixture->dir);
    const int result = system(command); /* NOLINT: a path this test made */
    pthread_cond_destroy(&fixture->changed);
    pthread_mutex_destroy(&fixture->mutex);
    free(fixture);
    return result;
}

static int decided(struct engine_request *request, const struct core *core,
                   struct store_batch *batch, struct error *error)
{
    (void)core;
    (void)batch;
    (void)error;
    struct ask *ask = (struct ask *)request;
    ask->fixture->fault.kind = ask->fault;
    ask->fixture->fault.calls_failing = ask->fault ? UINT32_MAX : 0;
    return 0;
}

static void done(struct engine_request *request, const struct error *error)
{
    struct ask *ask = (struct ask *)request;
    /* Reloading reads only; the disk is well again for what follows. */
    if (!ask->keeps_fault)
        ask->fixture->fault.kind = STORE_FAULT_NONE;
    pthread_mutex_lock(&ask->fixture->mutex);
    ask->is_done = true;
    ask->is_failed = error != NULL;
    if (error)
        ask->error = *error;
    pthread_cond_broadcast(&ask->fixture->changed);
    pthread_mutex_unlock(&ask->fixture->mutex);
}

static void submit(struct fixture *fixture, struct ask *ask)
{
    struct error error;
    ask->fixture = fixture;
    ask->request.on_decided = decided;
    ask->request.on_done = done;
    ASSERT_OK(engine_submit(fixture->engine, &ask->request, false, &error));
}

static void wait_for(struct fixture *fixture, struct ask *ask)
{
    pthread_mutex_lock(&fixture->mutex);
    while (!ask->is_done)
        pthread_cond_wait(&fixture->changed, &fixture->mutex);
    pthread_mutex_unlock(&fixture->mutex);
}

static struct ask open_account(const char *name)
{
    return (struct ask){
        .request = {.has_command = true,
                    .command = {.kind = COMMAND_OPEN_ACCOUNT,
                                .open_account = {.name = text_of(name)}}},
    };
}

static uint64_t must_open(struct fixture *fixture, const char *name)
{
    struct ask ask = open_account(name);
    submit(fixture, &ask);
    wait_for(fixture, &ask);
    if (ask.is_failed)
        fail_msg("%s: %s", name, ask.error.message);
    return ask.request.subject;
}

static int count_row(const struct store_row *row, void *context, struct error *error)
{
    (void)row;
    (void)error;
    ++*(int *)context;
    return 0;
}

static int count_rows(struct fixture *fixture, enum table table)
{
    struct error error;
    AUTO(store_reader) struct store_reader *reader = NULL;
    int count = 0;
    const struct store_query query = {.table = &tables[table]};
    ASSERT_OK(store_reader_open(&fixture->options.store, &reader, &error));
    ASSERT_OK(store_read_rows(reader, &query, count_row, &count, NULL, &error));
    return count;
}

static void assert_sound(struct fixture *fixture)
{
    struct error error;
    struct audit_report *report = calloc(1, sizeof(*report));
    ASSERT_OK(audit_run(fixture->dir, report, &error));
    if (!report->is_sound)
        fail_msg("%s", report->findings[0]);
    assert_int_equal(report->sum_microcredits, 0);
    free(report);
}

TEST(a_change_is_in_the_tables_when_it_is_acknowledged)
{
    struct fixture *fixture = *state;
    const uint64_t account = must_open(fixture, "ada");
    assert_true(account > ACCOUNT_OPERATOR);
    assert_int_equal(count_rows(fixture, TABLE_ACCOUNTS), 3); /* mint, operator, ada */
    assert_int_equal(count_rows(fixture, TABLE_STATEMENTS),
                     2); /* the grant, seen from both sides */
    assert_sound(fixture);
}

TEST(a_refused_command_changes_nothing)
{
    struct fixture *fixture = *state;
    must_open(fixture, "ada");
    struct ask again = open_account("ada");
    submit(fixture, &again);
    wait_for(fixture, &again);
    assert_true(again.is_failed);
    assert_int_equal(again.error.code, ERROR_CONFLICT);
    assert_int_equal(count_rows(fixture, TABLE_ACCOUNTS), 3);
}

TEST(a_restart_finds_the_same_state_with_and_without_a_snapshot)
{
    struct fixture *fixture = *state;
    char name[32];
    for (int i = 0; i < 30; i++) { /* more events than one snapshot covers */
        snprintf(name, sizeof(name), "account-%d", i);
        must_open(fixture, name);
    }
    const uint64_t sequence = engine_counts(fixture->engine).sequence;
    engine_free(fixture->engine);
    open_engine(fixture);
    assert_int_equal(engine_counts(fixture->engine).sequence, sequence);
    must_open(fixture, "after-restart");
    assert_int_equal(count_rows(fixture, TABLE_ACCOUNTS), 33);
    assert_sound(fixture);
}

/* As an older program would have left it: whole and of this log, but of another version. */
static void age_snapshot(struct fixture *fixture)
{
    struct error error;
    AUTO(store_reader) struct store_reader *reader = NULL;
    AUTO(store) struct store *store = NULL;
    ASSERT_OK(store_open(&fixture->options.store, &store, &error));
    ASSERT_OK(store_reader_open(&fixture->options.store, &reader, &error));
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, STORE_SNAPSHOT_BYTES_MAX);
    struct store_snapshot snapshot = {0};
    ASSERT_OK(store_snapshot_load(reader, &snapshot.head, &bytes, &error));
    assert_true(snapshot.head.sequence > 0);
    const char *start = buffer_string(&bytes);
    const char *version = strstr(start, "\"version\":");
    assert_non_null(version);
    bytes.data[version - start + (ptrdiff_t)strlen("\"version\":")] = '9';
    snapshot.bytes = buffer_text(&bytes);
    ASSERT_OK(store_snapshot_save(store, &snapshot, &error));
}

TEST(a_snapshot_of_another_version_is_ignored_and_the_log_replayed)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < 30; i++) {
        char name[32];
        snprintf(name, sizeof(name), "account-%d", i);
        must_open(fixture, name);
    }
    const uint64_t sequence = engine_counts(fixture->engine).sequence;
    engine_free(fixture->engine);
    age_snapshot(fixture);
    assert_sound(fixture); /* an audit passes it over too */
    open_engine(fixture);
    assert_int_equal(engine_counts(fixture->engine).sequence, sequence);
    must_open(fixture, "after-restart");
    assert_int_equal(count_rows(fixture, TABLE_ACCOUNTS), 33);
    assert_sound(fixture);
}

TEST(a_failed_commit_acknowledges_nothing_and_the_next_one_works)
{
    struct fixture *fixture = *state;
    must_open(fixture, "ada");
    pthread_mutex_lock(&fixture->mutex);
    const uint64_t heard_before = fixture->heard_events;
    pthread_mutex_unlock(&fixture->mutex);
    static const enum store_fault_kind kinds[] = {STORE_FAULT_DISK_FULL, STORE_FAULT_WRITE_ERROR,
                                                  STORE_FAULT_SYNC_ERROR};
    for (size_t i = 0; i < 3; i++) {
        struct ask lost = open_account("grace");
        lost.fault = kinds[i];
        submit(fixture, &lost);
        wait_for(fixture, &lost);
        assert_true(lost.is_failed);
        assert_int_equal(lost.error.code, ERROR_UNAVAILABLE);
        assert_int_equal(count_rows(fixture, TABLE_ACCOUNTS), 3);
    }
    pthread_mutex_lock(&fixture->mutex);
    assert_int_equal(fixture->heard_events, heard_before); /* nobody heard of what was not */
    pthread_mutex_unlock(&fixture->mutex);
    must_open(fixture, "grace"); /* the name is still free */
    const struct engine_counts counts = engine_counts(fixture->engine);
    assert_true(counts.is_ready);
    assert_int_equal(counts.failed_commits, 3);
    assert_int_equal(count_rows(fixture, TABLE_ACCOUNTS), 4);
    assert_sound(fixture);
}

TEST(a_market_that_cannot_write_is_not_ready_until_it_can)
{
    struct fixture *fixture = *state;
    must_open(fixture, "ada");
    struct ask lost = open_account("grace");
    lost.fault = STORE_FAULT_DISK_FULL;
    lost.keeps_fault = true;
    submit(fixture, &lost);
    wait_for(fixture, &lost);
    assert_true(lost.is_failed);
    assert_non_null(strstr(lost.error.message, "disk is full"));
    assert_null(strstr(lost.error.message, fixture->dir)); /* clients are not told of files */
    /* Looking writes nothing: it works, and says nothing about the disk. */
    for (int i = 0; i < 2; i++) {
        struct ask look = {.fault = STORE_FAULT_DISK_FULL, .keeps_fault = true};
        submit(fixture, &look);
        wait_for(fixture, &look);
        assert_false(look.is_failed);
        assert_false(engine_counts(fixture->engine).is_ready);
        assert_true(engine_counts(fixture->engine).is_disk_full);
    }
    struct ask look = {.fault = STORE_FAULT_NONE};
    submit(fixture, &look);
    wait_for(fixture, &look);
    const int64_t until_ns = clock_monotonic_ns(&clock_system) + HUNG_MS * INT64_C(1000000);
    while (!engine_counts(fixture->engine).is_ready && clock_monotonic_ns(&clock_system) < until_ns)
        usleep(10000); /* clock: poll interval; the engine notices by itself */
    assert_true(engine_counts(fixture->engine).is_ready);
    assert_false(engine_counts(fixture->engine).is_disk_full);
    must_open(fixture, "grace");
}

TEST(requests_queued_together_share_a_commit)
{
    struct fixture *fixture = *state;
    enum { COUNT = 200 };
    static struct ask asks[COUNT];
    static char names[COUNT][32];
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof(names[i]), "many-%d", i);
        asks[i] = open_account(names[i]);
        submit(fixture, &asks[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        wait_for(fixture, &asks[i]);
        assert_false(asks[i].is_failed);
    }
    assert_true(engine_counts(fixture->engine).commits < COUNT);
    assert_sound(fixture);
}

TEST(a_full_queue_refuses_what_comes_from_outside_first)
{
    struct fixture *fixture = *state;
    engine_free(fixture->engine);
    struct error error;
    fixture->options.queue_max = 2;
    ASSERT_OK(engine_open(&fixture->options, &fixture->engine, &error)); /* not started: it fills */
    struct ask asks[4] = {open_account("a"), open_account("b"), open_account("c"),
                          open_account("d")};
    submit(fixture, &asks[0]);
    submit(fixture, &asks[1]);
    asks[2].fixture = asks[3].fixture = fixture;
    asks[2].request.on_done = asks[3].request.on_done = done;
    ASSERT_FAILS(engine_submit(fixture->engine, &asks[2].request, false, &error),
                 ERROR_UNAVAILABLE);
    ASSERT_OK(engine_submit(fixture->engine, &asks[3].request, true, &error));
    ASSERT_OK(engine_start(fixture->engine, &error));
    wait_for(fixture, &asks[3]);
    engine_stop(fixture->engine);
    ASSERT_FAILS(engine_submit(fixture->engine, &asks[2].request, true, &error), ERROR_UNAVAILABLE);
}

/* Counted from the batch's own instant: however late it is, the code is accepted. */
static int expire_soon(struct engine_request *request, const struct core *core, struct error *error)
{
    (void)core;
    (void)error;
    request->command.add_code.expires_ms = request->now_ms + 50;
    return 0;
}

TEST(time_passes_without_anyone_asking)
{
    struct fixture *fixture = *state;
    struct ask code = {
        .request = {.has_command = true,
                    .prepare = expire_soon,
                    .command = {.kind = COMMAND_ADD_CODE,
                                .add_code = {.kind = CODE_KIND_PAGE,
                                             .account = ACCOUNT_OPERATOR,
                                             .hash = {1}}}},
    };
    submit(fixture, &code);
    wait_for(fixture, &code);
    assert_false(code.is_failed);
    pthread_mutex_lock(&fixture->mutex);
    while (fixture->heard_events < 2) /* added, and removed when it expired */
        pthread_cond_wait(&fixture->changed, &fixture->mutex);
    pthread_mutex_unlock(&fixture->mutex);
}

TEST(tables_of_another_version_are_built_again)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof(name), "account-%d", i);
        must_open(fixture, name);
    }
    engine_free(fixture->engine);
    struct store_schema newer = tables_schema;
    newer.version++;
    fixture->options.store.schema = &newer;
    open_engine(fixture);
    assert_int_equal(count_rows(fixture, TABLE_ACCOUNTS), 7);
    assert_int_equal(count_rows(fixture, TABLE_STATEMENTS), 6); /* one page of mint's */
    must_open(fixture, "after");
    assert_int_equal(count_rows(fixture, TABLE_ACCOUNTS), 8);
    engine_free(fixture->engine); /* before the schema goes */
    fixture->engine = NULL;
}

TEST(more_rows_than_a_commit_takes_are_built_again)
{
    enum { COUNT = 1100 };
    struct fixture *fixture = *state;
    struct ask *asks = calloc(COUNT, sizeof(*asks));
    char(*names)[32] = calloc(COUNT, sizeof(*names));
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof(names[i]), "account-%d", i);
        asks[i] = open_account(names[i]);
        submit(fixture, &asks[i]);
    }
    for (int i = 0; i < COUNT; i++)
        wait_for(fixture, &asks[i]);
    free(asks);
    free(names);
    engine_free(fixture->engine);
    struct store_schema newer = tables_schema;
    newer.version++;
    fixture->options.store.schema = &newer;
    open_engine(fixture);
    assert_int_equal(count_rows(fixture, TABLE_ACCOUNTS), COUNT + 2);
    engine_free(fixture->engine); /* before the schema goes */
    fixture->engine = NULL;
}

TEST(an_audit_notices_a_changed_balance)
{
    struct fixture *fixture = *state;
    must_open(fixture, "ada");
    engine_free(fixture->engine);
    fixture->engine = NULL;
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(fixture->path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database,
                                  "update accounts set granted_micro = granted_micro + 1 "
                                  "where name = 'ada'",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(database);
    struct error error;
    struct audit_report *report = calloc(1, sizeof(*report));
    ASSERT_OK(audit_run(fixture->dir, report, &error));
    assert_false(report->is_sound);
    assert_non_null(strstr(report->findings[0], "granted is "));
    assert_non_null(strstr(report->findings[0], " credits, by the events "));
    free(report);
}

static void *open_accounts(void *context)
{
    struct fixture *fixture = context;
    char name[32];
    for (int i = 0; !atomic_load(&fixture->is_audited); i++) {
        snprintf(name, sizeof(name), "account-%d", i);
        must_open(fixture, name);
    }
    return NULL;
}

TEST(an_audit_of_a_market_that_goes_on_finds_nothing)
{
    struct fixture *fixture = *state;
    struct error error;
    pthread_t thread;
    struct audit_report *report = calloc(1, sizeof(*report));
    assert_int_equal(pthread_create(&thread, NULL, open_accounts, fixture), 0);
    int result = 0;
    do
        result = audit_run(fixture->dir, report, &error);
    while (result == 0 && report->is_sound && report->account_count < 200);
    atomic_store(&fixture->is_audited, true);
    pthread_join(thread, NULL);
    ASSERT_OK(result);
    if (!report->is_sound)
        fail_msg("%s", report->findings[0]);
    free(report);
}

#define WITH_ENGINE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ENGINE(a_change_is_in_the_tables_when_it_is_acknowledged),
        WITH_ENGINE(a_refused_command_changes_nothing),
        WITH_ENGINE(a_restart_finds_the_same_state_with_and_without_a_snapshot),
        WITH_ENGINE(a_snapshot_of_another_version_is_ignored_and_the_log_replayed),
        WITH_ENGINE(a_failed_commit_acknowledges_nothing_and_the_next_one_works),
        WITH_ENGINE(a_market_that_cannot_write_is_not_ready_until_it_can),
        WITH_ENGINE(requests_queued_together_share_a_commit),
        WITH_ENGINE(a_full_queue_refuses_what_comes_from_outside_first),
        WITH_ENGINE(time_passes_without_anyone_asking),
        WITH_ENGINE(tables_of_another_version_are_built_again),
        WITH_ENGINE(more_rows_than_a_commit_takes_are_built_again),
        WITH_ENGINE(an_audit_notices_a_changed_balance),
        WITH_ENGINE(an_audit_of_a_market_that_goes_on_finds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
