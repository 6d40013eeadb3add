/*
 * A lease's way on a lender's machine, and the daemon's own.
 * covers daemon.c, daemon_link.c, peer.c, tenancy.c, tenancy_child.c, tenancy_meter.c
 * covers tenancy_end.c
 * covers tenancy_stream.c, stream.c, fetch.c, shard.c, upload.c, daemon_test_worker.c
 */
#include "peer/daemon.h"
#include "peer/daemon_fixture_internal.h"

static void lease_runs_from_its_start_to_its_result(void **state)
{
    struct market *market = *state;
    assert_int_equal(wait_for(market, LEASE_MESSAGE_HELLO, -1)->hello.running_count, 0);
    turn(market);
    const int64_t begin_ms = now_ms();
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_STARTING);
    const struct lease_message *report = wait_for(market, LEASE_MESSAGE_REPORT, -1);
    /* Rank 1 of 4 has records 10 to 19, in an idx file of its own. */
    assert_true(text_equal(report->report.json,
                           TEXT("{\"size\":18,\"count\":10,\"first\":10,\"last\":19}")));
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_RUNNING);
    print_message("start to running: %d ms\n", (int)(now_ms() - begin_ms));
    const int64_t deadline_ms = now_ms() + HUNG_MS;
    while (market->stream_fd < 0 && now_ms() < deadline_ms)
        turn(market);
    assert_memory_equal(market->stream_line, "SOUK-STREAM ab0000", 18);
    tell_worker(market, "echo\n");
    assert_meter(market, &wait_for(market, LEASE_MESSAGE_METER, -1)->meter);
    const struct meter_message *second = &wait_for(market, LEASE_MESSAGE_METER, -1)->meter;
    assert_meter(market, second);
    assert_int_equal(second->tick_index, 1);
    char echo[8];
    assert_int_equal(recv(market->stream_fd, echo, 5, MSG_WAITALL), 5);
    assert_memory_equal(echo, "ECHO\n", 5);

    tell_worker(market, "done\n");
    assert_result(market, &wait_for(market, LEASE_MESSAGE_ARTIFACT, -1)->artifact);
    size_t log_bytes = 0;
    for (size_t i = 0; i < market->count; i++)
        if (market->messages[i].type == LEASE_MESSAGE_LOG)
            log_bytes += market->messages[i].message.log.bytes.size;
    assert_int_equal(log_bytes, strlen("hello\n") + strlen("oops\n"));
    const struct lease_message *ended = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_SUCCEEDED);
    assert_true(text_equal(ended->state.reason, TEXT("trained")));
    wait_for_no_folder(market);
}

static void result_may_be_sent_again_and_again(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STREAM_READY, -1);
    tell_worker(market, "checkpoint\n");
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_SUCCEEDED);
    struct artifact_message last = {0};
    for (size_t i = 0; i < market->count; i++)
        if (market->messages[i].type == LEASE_MESSAGE_ARTIFACT)
            last = market->messages[i].message.artifact;
    assert_result(market, &last);
}

static void large_result_comes_in_chunks_and_a_huge_one_is_refused(void **state)
{
    struct market *market = *state;
    struct error error = {0};
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STREAM_READY, -1);
    tell_worker(market, "large\n");
    const struct artifact_message *artifact =
        &wait_for(market, LEASE_MESSAGE_ARTIFACT, -1)->artifact;
    assert_int_equal(artifact->size_bytes, 9 << 20);
    struct blob_hash hash;
    struct manifest manifest;
    memcpy(hash.bytes, artifact->manifest, sizeof(hash.bytes));
    ASSERT_OK(manifest_get(market->arena, market->blobs, &hash, &manifest, &error));
    assert_int_equal(manifest.chunks.count, 3);
    assert_int_equal(manifest_chunk(&manifest, 2)->size_bytes, 1 << 20);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_SUCCEEDED);

    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STREAM_READY, -1);
    tell_worker(market, "huge\n");
    const struct lease_message *failed = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_FAILED);
    assert_non_null(memmem(failed->state.reason.data, failed->state.reason.size, "16777216", 8));

    /* One that passes all bounds is not even written. */
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STREAM_READY, -1);
    tell_worker(market, "absurd\n");
    failed = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_FAILED);
    assert_int_equal(failed->state.exit_code, 128 + SIGXFSZ);
}

static void process_that_crashes_fails_its_lease(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STREAM_READY, -1);
    tell_worker(market, "crash\n");
    const struct lease_message *failed = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_FAILED);
    assert_int_equal(failed->state.exit_code, 3);
    assert_true(text_equal(failed->state.reason, TEXT("the process ended with code 3")));
}

static void process_that_speaks_nonsense_fails_its_lease(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STREAM_READY, -1);
    tell_worker(market, "nonsense\n");
    const struct lease_message *failed = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_FAILED);
    assert_true(failed->state.reason.size > 0);
    wait_for_no_folder(market);
    start_lease(market, 60000); /* and the daemon goes on */
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_RUNNING);
}

static void process_that_does_not_stop_is_killed_after_its_grace(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STREAM_READY, -1);
    tell_worker(market, "stubborn\n");
    wait_for(market, LEASE_MESSAGE_METER, -1);
    stop_lease(market, 200);
    const struct lease_message *stopped = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_STOPPED);
    assert_int_equal(stopped->state.exit_code, 128 + SIGKILL);
    assert_true(text_equal(stopped->state.reason, TEXT("enough")));
}

static void process_that_floods_is_slowed_down(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STREAM_READY, -1);
    tell_worker(market, "flood\n");
    const int64_t begin_ms = now_ms();
    int count = 0;
    while (now_ms() < begin_ms + 1000) {
        wait_for(market, LEASE_MESSAGE_REPORT, -1);
        count++;
    }
    /* What may come at once, what may come in a second, and one that began before its end. */
    const int64_t most =
        2 + TENANCY_TALK_BYTES * (1000 + now_ms() - begin_ms) / 1000 / CHILD_REPORT_MAX;
    assert_in_range(count, 2, most);
    stop_lease(market, 100);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_STOPPED);
}

static void log_that_was_not_kept_is_sent_again_on_a_new_link(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    market->is_forgetful = true;
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STREAM_READY, -1);
    const struct log_message *log = &wait_for(market, LEASE_MESSAGE_LOG, -1)->log;
    assert_true(log->offset == 0 && log->is_resumed && log->bytes.size > 0);
    link_free(TAKE(market->link));
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    log = &wait_for(market, LEASE_MESSAGE_LOG, -1)->log;
    assert_true(log->offset == 0 && log->is_resumed && log->bytes.size > 0);
    market->is_forgetful = false;
    link_free(TAKE(market->link));
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    wait_for(market, LEASE_MESSAGE_LOG, -1);
    tell_worker(market, "done\n");
    const size_t first = market->count;
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_SUCCEEDED);
    for (size_t i = first; i < market->count; i++)
        if (market->messages[i].type == LEASE_MESSAGE_LOG) /* all of it was kept; its end is new */
            assert_int_equal(market->messages[i].message.log.bytes.size, 0);
}

static void lease_ends_only_when_its_log_is_kept(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    market->is_forgetful = true;
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STREAM_READY, -1);
    tell_worker(market, "crash\n");
    while (!wait_for(market, LEASE_MESSAGE_LOG, -1)->log.is_last)
        ;
    const size_t first = market->count;
    for (int i = 0; i < 10; i++)
        turn(market);
    for (size_t i = first; i < market->count; i++)
        assert_true(market->messages[i].type != LEASE_MESSAGE_STATE);
    market_send(market,
                &(struct lease_message){.type = LEASE_MESSAGE_LOG_KEPT,
                                        .log_kept = {market->next_lease, 1, LEASE_LOG_ALL}});
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_FAILED);
    wait_for_no_folder(market);
}

static void dial(struct market *market, uint64_t peer)
{
    market_send(market, &(struct lease_message){.type = LEASE_MESSAGE_STREAM_OPEN,
                                                .stream_open = {.lease = market->next_lease,
                                                                .fence = 1,
                                                                .peer_lease = peer,
                                                                .peer_fence = 7,
                                                                .peer_role = LEASE_ROLE_SERVER,
                                                                .peer_rank = 3,
                                                                .ticket = {0xcd}}});
    wait_for(market, LEASE_MESSAGE_STREAM_READY, -1);
}

/* It ended well, and what it said last is still to be read when a stream comes for it. */
static void process_that_is_done_needs_no_streams(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STREAM_READY, -1);
    tell_worker(market, "last\n");
    char said[5];
    while (recv(market->stream_fd, said, sizeof(said), MSG_DONTWAIT) < 0)
        turn(market);
    const int first = dup(market->stream_fd); /* the fixture keeps the last alone */
    dial(market, 98);
    close(first);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_SUCCEEDED);
}

static void stream_is_dialled_anew_with_a_new_ticket(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STREAM_READY, -1);
    close(TAKE_FD(market->stream_fd));
    dial(market, 99);
    assert_memory_equal(market->stream_line, "SOUK-STREAM cd0000", 18);
    tell_worker(market, "whose\n");
    static const char said[] = "server 3 of term 7\n";
    char whose[sizeof(said)] = "";
    assert_int_equal(recv(market->stream_fd, whose, sizeof(said) - 1, MSG_WAITALL),
                     sizeof(said) - 1);
    assert_string_equal(whose, said);
}

/* The last lease's end, with its reason. */
static void expect_failure(struct market *market, const char *words)
{
    const struct lease_message *failed = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_FAILED);
    const struct text reason = failed->state.reason;
    assert_int_equal(failed->state.lease, market->next_lease);
    if (!memmem(reason.data, reason.size, words, strlen(words)))
        fail_msg("no \"%s\" in \"" TEXT_FORMAT "\"", words, TEXT_ARGS(reason));
}

/* The same of a lease of which nothing else was heard before. */
static void expect_refused(struct market *market, const char *words)
{
    expect_failure(market, words);
    for (size_t i = 0; i < market->count; i++)
        if (market->messages[i].type == LEASE_MESSAGE_STATE &&
            market->messages[i].message.state.lease == market->next_lease)
            assert_int_equal(market->messages[i].message.state.state, LEASE_RUN_FAILED);
}

static void forged_lease_is_not_started(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    market->secret_key[0] ^= 1;
    start_lease(market, 60000);
    expect_refused(market, "not signed by the market");
    market->secret_key[0] ^= 1;
    market->for_machine = MACHINE + 1;
    start_lease(market, 60000);
    expect_refused(market, "is for machine 6, this is 5");
    market->for_machine = MACHINE;
    start_lease(market, 60000);
    const struct lease_message *first = wait_for(market, LEASE_MESSAGE_STATE, -1);
    assert_int_equal(first->state.lease, market->next_lease);
    assert_int_equal(first->state.state, LEASE_RUN_STARTING);
    /* Nor does a forged one harm that which runs. */
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_RUNNING);
    market->secret_key[0] ^= 1;
    start_again(market, 60000);
    market->secret_key[0] ^= 1;
    tell_worker(market, "done\n");
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_SUCCEEDED);
}

static void older_holder_is_refused_and_a_newer_one_takes_its_place(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    market->fence = 5;
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_RUNNING);
    market->fence = 4;
    start_again(market, 60000);
    market->fence = 6;
    start_again(market, 60000);
    const struct lease_message *stopped = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_STOPPED);
    assert_int_equal(stopped->state.fence, 5);
    const struct lease_message *running = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_RUNNING);
    assert_int_equal(running->state.fence, 6);
    for (size_t i = 0; i < market->count; i++)
        if (market->messages[i].type == LEASE_MESSAGE_STATE)
            assert_int_not_equal(market->messages[i].message.state.fence, 4);
}

static void lease_that_ended_is_not_run_again(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STREAM_READY, -1);
    tell_worker(market, "done\n");
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_SUCCEEDED);
    wait_for_no_folder(market);
    /* As long as its keeper is about, that one answers. */
    const size_t first = market->count;
    const struct state_message *answer = NULL;
    const int64_t deadline_ms = now_ms() + HUNG_MS;
    while (!answer || answer->state != LEASE_RUN_LOST) {
        assert_true(now_ms() < deadline_ms);
        start_again(market, 60000);
        turn(market);
        for (size_t i = first; i < market->count; i++)
            if (market->messages[i].type == LEASE_MESSAGE_STATE) {
                answer = &market->messages[i].message.state;
                assert_int_not_equal(answer->state, LEASE_RUN_STARTING);
            }
    }
    assert_true(text_equal(answer->reason, TEXT("the lease has ended here before")));
}

static void data_that_is_not_what_was_named_runs_nothing(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    market->chunks = WRONG_BYTES;
    start_lease(market, 60000);
    expect_failure(market, "hash");
    market->chunks = TOO_MANY_BYTES;
    start_lease(market, 60000);
    expect_failure(market, "at most");
    for (size_t i = 0; i < market->count; i++)
        if (market->messages[i].type == LEASE_MESSAGE_STATE)
            assert_int_not_equal(market->messages[i].message.state.state, LEASE_RUN_RUNNING);
}

static void expired_and_missing_data_are_told(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, -1);
    const struct lease_message *failed = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_FAILED);
    assert_non_null(memmem(failed->state.reason.data, failed->state.reason.size, "expired", 7));
    market->data_manifest.bytes[0] ^= 1;
    start_lease(market, 60000);
    failed = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_FAILED);
    assert_non_null(memmem(failed->state.reason.data, failed->state.reason.size, "404", 3));
}

static void lease_ends_when_it_expires(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 1000);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_RUNNING);
    const struct lease_message *stopped = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_STOPPED);
    assert_true(text_equal(stopped->state.reason, TEXT("the lease has expired")));
}

static void lease_goes_on_without_the_market_and_ticks_come_later(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_METER, -1);
    link_free(TAKE(market->link));
    const struct lease_message *hello = wait_for(market, LEASE_MESSAGE_HELLO, -1);
    assert_int_equal(hello->hello.running_count, 1);
    assert_int_equal(hello->hello.running[0].lease, market->next_lease);
    /* What happened before and during the break comes again, from the first. */
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_RUNNING);
    assert_int_equal(wait_for(market, LEASE_MESSAGE_METER, -1)->meter.tick_index, 0);
    assert_int_equal(wait_for(market, LEASE_MESSAGE_METER, -1)->meter.tick_index, 1);
}

static void term_signal_stops_leases_and_tells_the_market(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_RUNNING);
    kill(market->daemon, SIGTERM);
    const struct lease_message *stopped =
        wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_RECLAIMED);
    assert_true(text_equal(stopped->state.reason, TEXT("the lender stopped lending")));
    assert_int_equal(wait_for_daemon(market), 0);
}

static void second_daemon_on_one_folder_is_refused(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    const pid_t first = market->daemon;
    start_daemon(market, NULL);
    assert_int_equal(wait_for_daemon(market), 100 + ERROR_CONFLICT);
    market->daemon = first;
}

static void daemon_refused_for_now_goes_on(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    market->refusal = "another version";
    const uint32_t before = market->hello_count;
    kill(market->daemon, SIGTERM);
    assert_int_equal(wait_for_daemon(market), 0);
    start_daemon(market, NULL);
    while (market->hello_count == before || market->link)
        turn(market);
    /* It is there, and leaves in good order when asked to. */
    assert_int_equal(kill(market->daemon, 0), 0);
    kill(market->daemon, SIGTERM);
    assert_int_equal(wait_for_daemon(market), 0);
}

static void wrong_code_is_refused_but_not_needed_twice(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    kill(market->daemon, SIGTERM);
    assert_int_equal(wait_for_daemon(market), 0);
    start_daemon(market, "used up");
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    kill(market->daemon, SIGTERM);
    assert_int_equal(wait_for_daemon(market), 0);
    snprintf(market->state_dir, sizeof(market->state_dir), "%s/state/other", market->folder);
    start_daemon(market, "used up");
    assert_int_equal(wait_for_daemon(market), 100 + ERROR_REFUSED);
    start_daemon(market, NULL);
    assert_int_equal(wait_for_daemon(market), 100 + ERROR_INVALID);
}

static void wait_for_beats(struct market *market, uint64_t count)
{
    const int64_t deadline_ms = now_ms() + HUNG_MS;
    while (market->beat_count < count && now_ms() < deadline_ms)
        turn(market);
    assert_true(market->beat_count >= count);
}

/* At the pace of a daemon without leases these take longer than one waits for anything. */
enum { LEASE_BEATS = 5 };
_Static_assert(LEASE_BEATS *LEASE_HEARTBEAT_IDLE_MS > HUNG_MS, "seldom beats would do");

static void daemon_beats_seldom_until_it_has_a_lease(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    wait_for_beats(market, DAEMON_QUICK_BEATS);
    const int64_t quiet_ms = now_ms() + INT64_C(3) * LEASE_HEARTBEAT_MS; /* clock: tests silence */
    while (now_ms() < quiet_ms)
        turn(market);
    assert_int_equal(market->beat_count, DAEMON_QUICK_BEATS);
    const int64_t begun_ms = now_ms();
    start_lease(market, 60000);
    wait_for_beats(market, DAEMON_QUICK_BEATS + 1 + LEASE_BEATS); /* the first at once */
    const int64_t least_ms = LEASE_BEATS * LEASE_HEARTBEAT_MS - 100;
    assert_true(now_ms() - begun_ms >= least_ms); /* not more often than that */
    stop_lease(market, 200);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_STOPPED);
}

static void idle_daemon_is_small(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    wait_for_beats(market, 2);
    int64_t own_kib = 0;
    const int64_t resident_kib = resident_kib_of(market->daemon, &own_kib);
    print_message("idle: %d KiB resident, %d of its own\n", (int)resident_kib, (int)own_kib);
    assert_in_range(resident_kib, 1, RESIDENT_KIB_MAX);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        DAEMON_TEST(lease_runs_from_its_start_to_its_result),
        DAEMON_TEST(result_may_be_sent_again_and_again),
        DAEMON_TEST(large_result_comes_in_chunks_and_a_huge_one_is_refused),
        DAEMON_TEST(process_that_crashes_fails_its_lease),
        DAEMON_TEST(process_that_speaks_nonsense_fails_its_lease),
        DAEMON_TEST(process_that_does_not_stop_is_killed_after_its_grace),
        DAEMON_TEST(process_that_floods_is_slowed_down),
        DAEMON_TEST(log_that_was_not_kept_is_sent_again_on_a_new_link),
        DAEMON_TEST(lease_ends_only_when_its_log_is_kept),
        DAEMON_TEST(process_that_is_done_needs_no_streams),
        DAEMON_TEST(stream_is_dialled_anew_with_a_new_ticket),
        DAEMON_TEST(forged_lease_is_not_started),
        DAEMON_TEST(older_holder_is_refused_and_a_newer_one_takes_its_place),
        DAEMON_TEST(lease_that_ended_is_not_run_again),
        DAEMON_TEST(data_that_is_not_what_was_named_runs_nothing),
        DAEMON_TEST(expired_and_missing_data_are_told),
        DAEMON_TEST(lease_ends_when_it_expires),
        DAEMON_TEST(lease_goes_on_without_the_market_and_ticks_come_later),
        DAEMON_TEST(term_signal_stops_leases_and_tells_the_market),
        DAEMON_TEST(second_daemon_on_one_folder_is_refused),
        DAEMON_TEST(daemon_refused_for_now_goes_on),
        DAEMON_TEST(wrong_code_is_refused_but_not_needed_twice),
        DAEMON_TEST(daemon_beats_seldom_until_it_has_a_lease),
        DAEMON_TEST(idle_daemon_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return daemon_fixture_main(argc, argv, run);
}
