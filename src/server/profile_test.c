/* What runs showed: made, kept, learnt from and forgotten.
 * covers profile.c, profile_view.c, profiles.c
 * covers profiles_forget.c, predictions.c */
#include "server/call.h"
#include "server/profiles.h"
#include "server/query.h"
#include "testing/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWN = 3, FRIEND = 4, STRANGER = 5 };
#define DAY_MS INT64_C(86400000)

struct fixture {
    char dir[64], path[96];
    struct server server;
    struct arena *arena;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct server *server = &fixture->server;
    struct error error;
    snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/souk-profiles-XXXXXX");
    if (!mkdtemp(fixture->dir))
        return -1;
    snprintf(fixture->path, sizeof(fixture->path), "%s/market.db", fixture->dir);
    server->clock = &clock_system;
    const struct engine_options options = {
        .store = {.location = fixture->path, .schema = &tables_schema}, .clock = &clock_system};
    ASSERT_OK(engine_open(&options, &server->engine, &error));
    ASSERT_OK(engine_start(server->engine, &error));
    ASSERT_OK(store_reader_open(&options.store, &server->reader, &error));
    fixture->arena = arena_new(0);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    engine_free(fixture->server.engine);
    store_reader_free(fixture->server.reader);
    arena_free(fixture->arena);
    char command[160];
    snprintf(command, sizeof(command), "rm -rf '%s'", fixture->dir);
    const int result = system(command); /* NOLINT: a path this test made */
    free(fixture);
    return result;
}

/* ---- Rows of the test's own ------------------------------------------------------------------ */

struct run {
    uint64_t job, account;
    const char *signature, *task;
    int64_t updated_ms;
    bool is_shared, is_closed; /* of the account */
    bool is_foretold, is_bound;
    const char *data; /* NULL: a set of the catalogue */
};

static void put_run(void *context, struct store_batch *batch)
{
    const struct run *run = context;
    struct profile_worker worker = {.lease = 9, .role = LEASE_ROLE_WORKER, .steps = 4};
    struct profile profile = {.job = run->job,
                              .account = run->account,
                              .state = JOB_STATE_SUCCEEDED,
                              .started_ms = 1000,
                              .ended_ms = 61000,
                              .spent_micro = 7,
                              .workers = {&worker, 1}};
    struct buffer json AUTO_BUFFER;
    struct json_writer writer;
    snprintf(profile.signature.task, JOB_SIGNATURE_SIZE, "%s", run->task);
    snprintf(profile.data, sizeof(profile.data), "%s", run->data ? run->data : "mnist");
    buffer_init(&json, PROFILE_SIZE_MAX);
    json_writer_init(&writer, &json);
    json_write(&writer, &profile_schema, &profile);
    const struct store_value values[PROFILES_COLUMN_COUNT] = {
        [PROFILES_JOB] = store_integer((int64_t)run->job),
        [PROFILES_ACCOUNT] = store_integer((int64_t)run->account),
        [PROFILES_SIGNATURE] = store_text(text_of(run->signature)),
        [PROFILES_TASK] = store_text(text_of(run->task)),
        [PROFILES_UPDATED_MS] = store_integer(run->updated_ms),
        [PROFILES_IS_FINAL] = store_integer(1),
        [PROFILES_JSON] = store_text(buffer_text(&json)),
    };
    store_batch_put(batch, &tables[TABLE_PROFILES], values, PROFILES_COLUMN_COUNT);
    profiles_put_shared(batch, run->account, run->is_shared);
    struct store_value account[ACCOUNTS_COLUMN_COUNT];
    for (size_t i = 0; i < ACCOUNTS_COLUMN_COUNT; i++)
        account[i] = tables[TABLE_ACCOUNTS].columns[i].type == STORE_TEXT ? store_text(TEXT(""))
                                                                          : store_integer(0);
    account[ACCOUNTS_ID] = store_integer((int64_t)run->account);
    account[ACCOUNTS_DELETED_MS] = store_integer(run->is_closed);
    store_batch_put(batch, &tables[TABLE_ACCOUNTS], account, ACCOUNTS_COLUMN_COUNT);
    const struct prediction_told told = {.rule = TEXT("auto"),
                                         .is_bound = run->is_bound,
                                         .time_ms = {1, 2, 3},
                                         .cost_micro = {4, 5, 6}};
    if (run->is_foretold)
        profiles_put_prediction(batch, &profile, &told, run->updated_ms);
}

static void release_nothing(void *context)
{
    (void)context;
}

/* All that was asked for is on disk. */
static void settle(struct fixture *fixture)
{
    struct engine_counts counts;
    do {
        counts = engine_counts(fixture->server.engine);
    } while (counts.waiting > 0);
    /* The queue is empty once a batch is taken; stopping waits until it is written. */
    engine_stop(fixture->server.engine);
}

static void put(struct fixture *fixture, struct run *run)
{
    server_put_rows(&fixture->server, put_run, run, release_nothing);
}

static struct profiles_learnt learn(struct fixture *fixture, uint64_t account)
{
    const struct job_signature signature = {"same", "task"};
    struct profiles_learnt learnt;
    struct error error;
    ASSERT_OK(
        profiles_learn(&fixture->server, fixture->arena, account, &signature, &learnt, &error));
    return learnt;
}

static struct run own_run = {1, OWN, "same", "task", DAY_MS, true, false, true};
static struct run own_other_run = {2, OWN, "other", "elsewhere", DAY_MS, true, false, false};
static struct run friends_run = {3, FRIEND, "same", "task", DAY_MS, true, false, true};
static struct run strangers_run = {4, STRANGER, "same", "task", DAY_MS, false, false, false};

TEST(one_learns_from_ones_own_runs_alone_unless_all_three_agree)
{
    struct fixture *fixture = *state;
    put(fixture, &own_run);
    put(fixture, &own_other_run);
    put(fixture, &friends_run);
    put(fixture, &strangers_run);
    settle(fixture);
    struct profiles_learnt learnt = learn(fixture, OWN);
    assert_int_equal(learnt.count, 2);
    assert_int_equal(learnt.same_count, 1);
    assert_int_equal(learnt.runs[0]->job, 1);
    assert_int_equal(learnt.runs[1]->job, 2);
    fixture->server.options.has_shared_profiles = true;
    learnt = learn(fixture, OWN);
    assert_int_equal(learnt.count, 3); /* the friend's, not the stranger's */
    assert_int_equal(learnt.same_count, 2);
    assert_int_equal(learn(fixture, STRANGER).count, 1); /* who gives nothing gets nothing */
}

TEST(files_of_one_name_are_not_the_same_data_to_another_account)
{
    struct fixture *fixture = *state;
    static struct run own_file = {7, OWN, "same", "task", DAY_MS, true, .data = "rows.csv"};
    static struct run friends_file = {8, FRIEND, "same", "task", DAY_MS, true, .data = "rows.csv"};
    put(fixture, &own_file);
    put(fixture, &friends_file);
    settle(fixture);
    fixture->server.options.has_shared_profiles = true;
    const struct profiles_learnt learnt = learn(fixture, OWN);
    assert_int_equal(learnt.count, 1);
    assert_int_equal(learnt.runs[0]->job, 7);
}

TEST(what_was_foretold_is_compared_with_the_end)
{
    struct fixture *fixture = *state;
    struct prediction_outcomes outcomes;
    struct error error;
    static struct run bound_run = {
        9, OWN, "same", "task", DAY_MS, true, .is_foretold = true, .is_bound = true};
    put(fixture, &own_run);
    put(fixture, &friends_run);
    put(fixture, &bound_run);
    settle(fixture);
    ASSERT_OK(profiles_outcomes(&fixture->server, fixture->arena, OWN, "task", &outcomes, &error));
    assert_int_equal(outcomes.count, 1);
    assert_int_equal(outcomes.items[0].job, 1);
    assert_true(outcomes.items[0].is_over);
    assert_int_equal(outcomes.items[0].time_ms, 60000);
    assert_int_equal(outcomes.items[0].cost_micro, 7);
    assert_int_equal(outcomes.items[0].told.time_ms.expected, 2);
    ASSERT_OK(profiles_outcomes(&fixture->server, fixture->arena, OWN, "none", &outcomes, &error));
    assert_int_equal(outcomes.count, 0);
}

static bool has_profile(struct fixture *fixture, uint64_t job)
{
    struct profile profile;
    struct error error;
    bool is_there = false;
    ASSERT_OK(profiles_find(&fixture->server, fixture->arena, job, &profile, &is_there, &error));
    return is_there;
}

/* Starts the engine's thread anew on the same rows. */
static void go_on(struct fixture *fixture)
{
    struct server *server = &fixture->server;
    const struct engine_options options = {
        .store = {.location = fixture->path, .schema = &tables_schema}, .clock = server->clock};
    struct error error;
    engine_free(server->engine);
    server->engine = NULL;
    ASSERT_OK(engine_open(&options, &server->engine, &error));
    ASSERT_OK(engine_start(server->engine, &error));
}

TEST(profiles_go_with_their_account_and_no_others)
{
    struct fixture *fixture = *state;
    struct prediction_outcomes outcomes;
    struct error error;
    bool is_shared = true;
    put(fixture, &own_run);
    put(fixture, &friends_run);
    settle(fixture);
    go_on(fixture);
    profiles_forget(&fixture->server, OWN);
    settle(fixture);
    assert_false(has_profile(fixture, 1));
    assert_true(has_profile(fixture, 3));
    ASSERT_OK(profiles_outcomes(&fixture->server, fixture->arena, OWN, "task", &outcomes, &error));
    assert_int_equal(outcomes.count, 0);
    ASSERT_OK(profiles_is_shared(&fixture->server, fixture->arena, OWN, &is_shared, &error));
    assert_false(is_shared);
}

TEST(a_sweep_takes_what_is_past_the_retention_and_what_closed_accounts_left)
{
    struct fixture *fixture = *state;
    static struct virtual_clock clock;
    static struct run fresh = {5, OWN, "same", "task", 10 * DAY_MS, true, false, false};
    static struct run left = {6, STRANGER, "same", "task", 10 * DAY_MS, false, true, false};
    uint64_t cursor = 0;
    put(fixture, &own_run); /* of the first day */
    put(fixture, &fresh);
    put(fixture, &left);
    settle(fixture);
    virtual_clock_init(&clock, 10 * DAY_MS);

    go_on(fixture);
    fixture->server.clock = &clock.clock;
    fixture->server.options.profile_keep_ms = 8 * DAY_MS;
    profiles_sweep(&fixture->server, &cursor);
    settle(fixture);
    assert_false(has_profile(fixture, 1));
    assert_true(has_profile(fixture, 5));
    assert_false(has_profile(fixture, 6));
    assert_int_equal(cursor, 0); /* all accounts were looked at */
}

/* ---- Pure ------------------------------------------------------------------------------------ */

TEST(a_spec_says_what_its_steps_are_made_of)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct job_spec spec;
    struct profile profile;
    struct error error;
    (void)state;
    ASSERT_OK(job_spec_read(arena,
                            TEXT("{\"name\":\"x\",\"train\":{\"model\":\"mlp\","
                                 "\"data\":\"mnist\",\"batch\":32,\"epochs\":2}}"),
                            &spec, &error));
    profile_of_spec(&spec, &profile);
    assert_string_equal(profile.model, "mlp");
    assert_string_equal(profile.data, "mnist");
    assert_string_equal(profile.layers, "dense relu dense relu dense");
    assert_true(profile.parameter_count > 7840);
    assert_int_equal(profile.records, 60000);
    assert_int_equal(profile.batch, 32);
    assert_int_equal(profile.epochs, 2);
    ASSERT_OK(job_spec_read(arena, TEXT("{\"name\":\"x\",\"run\":\"./train\"}"), &spec, &error));
    profile_of_spec(&spec, &profile);
    assert_string_equal(profile.model, profile.signature.task);
    assert_int_equal(profile.parameter_count, 0);
}

static struct text no_name(void *context, uint64_t machine)
{
    (void)context;
    (void)machine;
    return TEXT("m");
}

TEST(figures_that_follow_are_computed_once_and_shown)
{
    struct profile_worker workers[] = {
        {.lease = 1, .role = LEASE_ROLE_SERVER, .steps = 100, .commits = 50},
        {.lease = 2,
         .role = LEASE_ROLE_WORKER,
         .started_ms = 1,
         .steps = 50,
         .commits = 10,
         .compute_ms = 500,
         .transfer_ms = 300,
         .wait_ms = 200,
         .sent_bytes = 4000,
         .received_bytes = 8000,
         .billed_ms = 2000,
         .cpu_ms = 3000},
    };
    struct profile_point points[] = {{1000, 320, 2.5}, {6000, 1920, 1.5}};
    const struct profile profile = {
        .batch = 32, .workers = {workers, 2}, .points = {points, 2}, .lease_count = 2};
    struct buffer json AUTO_BUFFER;
    struct json_writer writer;
    (void)state;
    assert_int_equal(profile_steps(&profile), 50);
    assert_int_equal(profile_pushes(&profile), 10);
    assert_int_equal(profile_worker_count(&profile), 1);
    buffer_init(&json, PROFILE_SIZE_MAX);
    json_writer_init(&writer, &json);
    json_object_begin(&writer);
    profile_write(&writer, &profile, no_name, NULL);
    json_object_end(&writer);
    const char *shown = buffer_string(&json);
    assert_non_null(strstr(shown, "\"step_ms\":10,"));
    assert_non_null(strstr(shown, "\"sent_bytes_per_s\":4000,"));
    assert_non_null(strstr(shown, "\"received_bytes_per_s\":8000,"));
    assert_non_null(strstr(shown, "\"cores_used\":1.5,"));
    assert_non_null(strstr(shown, "\"loss_per_step\":-0.02,"));
    assert_non_null(strstr(shown, "\"loss_per_second\":-0.2,"));
}

#define WITH_ROWS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ROWS(one_learns_from_ones_own_runs_alone_unless_all_three_agree),
        WITH_ROWS(files_of_one_name_are_not_the_same_data_to_another_account),
        WITH_ROWS(what_was_foretold_is_compared_with_the_end),
        WITH_ROWS(profiles_go_with_their_account_and_no_others),
        WITH_ROWS(a_sweep_takes_what_is_past_the_retention_and_what_closed_accounts_left),
        cmocka_unit_test(a_spec_says_what_its_steps_are_made_of),
        cmocka_unit_test(figures_that_follow_are_computed_once_and_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
