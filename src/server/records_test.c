/* What jobs leave behind while they run: metrics and logs. covers live.c, live_rows.c, logs.c,
 * query.c */
#include "server/live.h"
#include "server/logs.h"
#include "server/query.h"
#include "testing/testing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct live_source server_source = {
    .job = 7, .account = 3, .lease = 20, .role = LEASE_ROLE_SERVER, .machine = 5};
static const struct live_source worker_source = {
    .job = 7, .account = 3, .lease = 21, .role = LEASE_ROLE_WORKER, .rank = 1, .machine = 6};

struct fixture {
    char dir[64];
    char path[96], blob_dir[96];
    struct server server;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct server *server = &fixture->server;
    struct error error;
    snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/souk-records-XXXXXX");
    if (!mkdtemp(fixture->dir))
        return -1;
    snprintf(fixture->path, sizeof(fixture->path), "%s/market.db", fixture->dir);
    snprintf(fixture->blob_dir, sizeof(fixture->blob_dir), "%s/blobs", fixture->dir);
    server->clock = &clock_system;
    const struct engine_options options = {
        .store = {.location = fixture->path, .schema = &tables_schema}, .clock = &clock_system};
    const struct blob_store_options blobs = {.folder = fixture->blob_dir};
    ASSERT_OK(loop_open(&clock_system, &server->loop, &error));
    ASSERT_OK(engine_open(&options, &server->engine, &error));
    ASSERT_OK(engine_start(server->engine, &error));
    ASSERT_OK(store_reader_open(&options.store, &server->reader, &error));
    ASSERT_OK(blob_store_open(&blobs, &server->blobs, &error));
    server->live = live_new(server);
    server->logs = logs_new(server);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    struct server *server = &fixture->server;
    logs_free(server->logs);
    live_free(server->live);
    engine_free(server->engine);
    store_reader_free(server->reader);
    blob_store_free(server->blobs);
    loop_free(server->loop);
    char command[160];
    snprintf(command, sizeof(command), "rm -rf '%s'", fixture->dir);
    const int result = system(command); /* NOLINT: a path this test made */
    free(fixture);
    return result;
}

/* Rows are written by the core thread; the last one written is there once the queue is empty. */
static void restart_records(struct server *server)
{
    logs_flush(server->logs, true);
    live_save(server->live);
    engine_stop(server->engine);
    live_free(server->live);
    server->live = live_new(server);
    logs_free(server->logs);
    server->logs = logs_new(server);
}

static const char *server_report(int count, double loss)
{
    static char json[1024];
    snprintf(
        json, sizeof(json),
        "{\"elapsed_ms\":%d,\"version\":%d,\"steps\":%d,\"samples\":%d,\"epochs\":0.5,"
        "\"loss_evaluations\":%d,\"loss\":%.17g,\"accuracy_evaluations\":%d,"
        "\"test_accuracy\":0.5,\"test_loss\":1,\"policy\":\"auto\",\"gamma_ms\":3000,"
        "\"policy_in_force\":\"pace\",\"policy_reason\":\"pace: 2 workers\","
        "\"commit_target\":1,\"commit_rate\":1,\"implicit_momentum\":0,\"is_searching\":false,"
        "\"is_final\":false,\"workers\":[{\"lease\":21,\"fence\":1,\"is_member\":true,"
        "\"steps\":1,\"samples\":32,\"commits\":1,\"accepted_pushes\":1,"
        "\"steps_per_second\":9.5,\"share\":1,\"codec\":\"int8\",\"clipped\":3,\"refused\":2}],"
        "\"checks\":9,\"checks_undecided\":1}",
        1000 * count, count, count, 32 * count, count, loss, count);
    return json;
}

static const char worker_report[] =
    "{\"steps\":10,\"samples\":320,\"commits\":2,\"loss\":1.5,\"steps_per_second\":4,"
    "\"commit_ms\":1,\"period_us\":0,\"local_steps\":1,\"compute_ms\":50,\"transfer_ms\":20,\"wait_"
    "ms\":30,"
    "\"first_step_ms\":1234}";

TEST(the_curve_keeps_its_length_whatever_the_number_of_points)
{
    struct fixture *fixture = *state;
    struct live *live = fixture->server.live;
    struct error error;
    enum { COUNT = 3 * LIVE_CURVE_MAX };
    for (int i = 1; i <= COUNT; i++)
        ASSERT_OK(live_report(live, &server_source, text_of(server_report(i, 1.0 / i)), &error));
    const struct live_job *job = live_find(live, 7, LIVE_CURVE);
    assert_non_null(job);
    const struct live_point *points = job->curve.items;
    assert_in_range(job->curve.count, LIVE_CURVE_MAX / 2, LIVE_CURVE_MAX);
    assert_int_equal(points[0].elapsed_ms, 1000);
    assert_true(points[job->curve.count - 1].elapsed_ms > INT64_C(1000) * (COUNT - 10));
    const int64_t step_ms = points[1].elapsed_ms - points[0].elapsed_ms;
    for (size_t i = 2; i < job->curve.count; i++)
        assert_int_equal(points[i].elapsed_ms - points[i - 1].elapsed_ms, step_ms);
}

TEST(metrics_survive_a_restart)
{
    struct fixture *fixture = *state;
    struct server *server = &fixture->server;
    struct error error;
    ASSERT_OK(live_report(server->live, &worker_source, text_of(worker_report), &error));
    ASSERT_OK(live_report(server->live, &server_source, text_of(server_report(1, 0.25)), &error));
    restart_records(server);
    const struct live_job *job = live_find(server->live, 7, LIVE_CURVE);
    assert_non_null(job);
    assert_true(job->has_loss && job->loss == 0.25);
    assert_int_equal(job->first_step_ms, 1234);
    assert_int_equal(job->curve.count, 1);
    const struct live_worker *worker = live_find_worker(job, 21);
    assert_non_null(worker);
    assert_int_equal(worker->steps, 10);
    assert_true(worker->compute_ms == 50 && worker->transfer_ms == 20 && worker->wait_ms == 30);
    assert_true(worker->share == 1 && worker->steps_per_second == 9.5);
    assert_string_equal(worker->codec, "int8");
    assert_int_equal(worker->clipped, 3);
    assert_int_equal(worker->refused, 2);
    assert_int_equal(job->checks, 9);
    assert_int_equal(job->checks_undecided, 1);
    assert_string_equal(job->policy_in_force, "pace");
    assert_string_equal(job->policy_reason, "pace: 2 workers");
    assert_null(live_find(server->live, 8, LIVE_CURVE));
}

TEST(a_replica_is_shown_as_one_until_it_leads_though_it_reports_nothing)
{
    struct fixture *fixture = *state;
    struct server *server = &fixture->server;
    struct live_source replica = {.job = 7,
                                  .account = 3,
                                  .lease = 22,
                                  .role = LEASE_ROLE_SERVER,
                                  .rank = 1,
                                  .is_replica = true,
                                  .machine = 8};
    struct error error;
    live_use(server->live, &replica, &(struct live_use){.cpu_ms = 5});
    restart_records(server);
    const struct live_worker *shown =
        live_find_worker(live_find(server->live, 7, LIVE_WORKERS), replica.lease);
    assert_true(shown->is_replica && shown->at_ms > 0);
    replica.rank = 0;
    replica.is_replica = false;
    ASSERT_OK(live_report(server->live, &replica, text_of(server_report(1, 0.25)), &error));
    shown = live_find_worker(live_find(server->live, 7, LIVE_WORKERS), replica.lease);
    assert_true(!shown->is_replica && shown->rank == 0);
    /* The lead is shown once it reports. */
    live_use(server->live, &server_source, &(struct live_use){.cpu_ms = 5});
    shown = live_find_worker(live_find(server->live, 7, LIVE_WORKERS), server_source.lease);
    assert_int_equal(shown->at_ms, 0);
}

TEST(a_report_that_is_none_is_refused_and_changes_nothing)
{
    struct fixture *fixture = *state;
    struct error error;
    ASSERT_FAILS(live_report(fixture->server.live, &worker_source, TEXT("{}"), &error),
                 ERROR_INVALID);
    ASSERT_FAILS(live_report(fixture->server.live, &server_source, text_of(worker_report), &error),
                 ERROR_INVALID);
    assert_null(live_find(fixture->server.live, 7, LIVE_CURVE));
}

static void assert_log(struct logs *logs, uint64_t offset, const char *expected)
{
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, LOGS_READ_MAX);
    struct error error;
    ASSERT_OK(logs_read(logs, 21, offset, &bytes, &error));
    assert_string_equal(buffer_string(&bytes), expected);
}

/* Where the machine of the log was told last that it is kept, and how often. */
static uint64_t kept_offset;
static int kept_count;

static void note_kept(void *context, uint64_t machine, const struct log_kept_message *kept)
{
    (void)context;
    assert_int_equal(machine, 6);
    assert_true(kept->lease == 21 && kept->fence == 3);
    kept_offset = kept->offset;
    kept_count++;
}

static struct logs_piece piece_of(uint64_t offset, struct text bytes)
{
    return (struct logs_piece){
        .lease = 21, .fence = 3, .machine = 6, .offset = offset, .bytes = bytes};
}

/* Appends and returns how many bytes were new. */
static size_t append(struct logs *logs, uint64_t offset, const char *bytes)
{
    const struct logs_piece piece = piece_of(offset, text_of(bytes));
    uint64_t begin = 0;
    const struct text added = logs_append(logs, &piece, &begin);
    assert_true(!added.size || begin + added.size == offset + strlen(bytes));
    return added.size;
}

static void wait_for_kept(struct server *server, uint64_t offset)
{
    struct error error;
    while (kept_offset != offset)
        ASSERT_OK(loop_step(server->loop, 1000, &error));
}

TEST(a_log_can_be_read_at_once_and_after_a_restart)
{
    struct fixture *fixture = *state;
    struct server *server = &fixture->server;
    assert_int_equal(append(server->logs, 0, "first "), 6);
    assert_int_equal(append(server->logs, 6, "second"), 6);
    assert_log(server->logs, 0, "first second");
    assert_log(server->logs, 8, "cond");
    assert_log(server->logs, 12, "");
    logs_flush(server->logs, true);
    assert_log(server->logs, 0, "first second");
    kept_offset = 0;
    logs_listen(server->logs, note_kept, NULL);
    wait_for_kept(server, 12);
    /* No blob of those bytes: who sends them for a chunk of his own has another, and may drop it.
     */
    struct error error;
    struct blob_hash own;
    ASSERT_OK(blob_store_put(server->blobs, NULL, TEXT("first second"), &own, &error));
    ASSERT_OK(blob_store_delete(server->blobs, &own, &error));
    assert_log(server->logs, 0, "first second");
    assert_int_equal(append(server->logs, 12, " third"), 6);
    restart_records(server);
    assert_log(server->logs, 0, "first second"); /* a part */
    assert_log(server->logs, 12, " third");
    assert_int_equal(append(server->logs, 18, "!"), 1);
    assert_log(server->logs, 18, "!");
}

/* A job that prints little has many of them. */
TEST(of_a_log_in_many_parts_some_are_looked_at_in_one_go)
{
    enum { PARTS = LOGS_LOOK_PARTS + 10 };
    struct fixture *fixture = *state;
    struct logs *logs = fixture->server.logs;
    struct error error;
    bool is_all = true;
    kept_offset = 0;
    logs_listen(logs, note_kept, NULL);
    for (int i = 0; i < PARTS; i++) {
        assert_int_equal(append(logs, (uint64_t)i * 2, "x\n"), 2);
        logs_flush(logs, true);
        wait_for_kept(&fixture->server, (uint64_t)(i + 1) * 2);
    }
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, LOGS_LOOK_MAX);
    ASSERT_OK(logs_look(logs, 21, 0, &bytes, &is_all, &error));
    assert_int_equal(bytes.size, 2 * LOGS_LOOK_PARTS);
    assert_false(is_all);
    buffer_clear(&bytes);
    ASSERT_OK(logs_look(logs, 21, UINT64_C(2) * LOGS_LOOK_PARTS, &bytes, &is_all, &error));
    assert_int_equal(bytes.size, 20);
    assert_true(is_all);
}

TEST(what_of_a_log_comes_again_is_left_out)
{
    struct fixture *fixture = *state;
    struct logs *logs = fixture->server.logs;
    assert_int_equal(append(logs, 0, "one two "), 8);
    assert_int_equal(append(logs, 0, "one "), 0);
    assert_int_equal(append(logs, 4, "two three"), 5);
    assert_int_equal(append(logs, 20, "from an old link"), 0);
    assert_log(logs, 0, "one two three");
}

TEST(a_log_is_told_to_be_kept_only_when_it_is_on_disk)
{
    struct fixture *fixture = *state;
    struct server *server = &fixture->server;
    kept_offset = 0;
    kept_count = 0;
    logs_listen(server->logs, note_kept, NULL);
    append(server->logs, 0, "abc");
    logs_flush(server->logs, false); /* it has not waited long enough */
    assert_int_equal(kept_count, 0);
    struct logs_piece last = piece_of(3, TEXT("def"));
    last.is_last = true;
    uint64_t offset = 0;
    assert_int_equal(logs_append(server->logs, &last, &offset).size, 3);
    assert_int_equal(kept_count, 0);
    wait_for_kept(server, 6);
    assert_int_equal(logs_append(server->logs, &last, &offset).size, 0);
    assert_int_equal(kept_count, 2); /* said again: it did not hear it */
    restart_records(server);
    assert_log(server->logs, 0, "abcdef");
}

TEST(a_log_whose_beginning_the_market_lost_keeps_nobody_waiting)
{
    struct fixture *fixture = *state;
    struct logs *logs = fixture->server.logs;
    struct logs_piece resumed = piece_of(100, TEXT("later"));
    resumed.is_resumed = true;
    uint64_t offset = 0;
    kept_offset = 0;
    logs_listen(logs, note_kept, NULL);
    assert_int_equal(logs_append(logs, &resumed, &offset).size, 0);
    assert_true(kept_offset == LEASE_LOG_ALL);
}

TEST(a_log_that_is_full_says_so_and_drops_the_rest)
{
    struct fixture *fixture = *state;
    struct server *server = &fixture->server;
    static char line[32 << 10];
    memset(line, 'x', sizeof(line));
    kept_offset = 0;
    logs_listen(server->logs, note_kept, NULL);
    struct error error;
    uint64_t begin = 0;
    for (uint64_t offset = 0; offset < LOGS_LEASE_MAX; offset += sizeof(line)) {
        const struct logs_piece piece = piece_of(offset, (struct text){line, sizeof(line)});
        logs_append(server->logs, &piece, &begin);
        while (kept_offset + (4 << 20) < offset)
            ASSERT_OK(loop_step(server->loop, 1000, &error));
    }
    const struct logs_piece more = piece_of(LOGS_LEASE_MAX, TEXT("more"));
    assert_int_equal(logs_append(server->logs, &more, &begin).size, 0);
    assert_int_equal(begin, LOGS_LEASE_MAX);
    logs_flush(server->logs, true);
    wait_for_kept(server, LEASE_LOG_ALL);
    assert_log(server->logs, LOGS_LEASE_MAX - 8, "ropped]\n");
}

#define WITH_RECORDS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RECORDS(the_curve_keeps_its_length_whatever_the_number_of_points),
        WITH_RECORDS(metrics_survive_a_restart),
        WITH_RECORDS(a_replica_is_shown_as_one_until_it_leads_though_it_reports_nothing),
        WITH_RECORDS(a_report_that_is_none_is_refused_and_changes_nothing),
        WITH_RECORDS(a_log_can_be_read_at_once_and_after_a_restart),
        WITH_RECORDS(of_a_log_in_many_parts_some_are_looked_at_in_one_go),
        WITH_RECORDS(what_of_a_log_comes_again_is_left_out),
        WITH_RECORDS(a_log_is_told_to_be_kept_only_when_it_is_on_disk),
        WITH_RECORDS(a_log_whose_beginning_the_market_lost_keeps_nobody_waiting),
        WITH_RECORDS(a_log_that_is_full_says_so_and_drops_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
