/*
 * Kills a process that commits, again and again, and looks for what it had acknowledged.
 *
 * covers store_chain.c
 */
#include "base/clock.h"
#include "base/random.h"
#include "store/store_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

enum { ROUND_COUNT = 24, KILL_AFTER_US_MAX = 60000 };

/* Runs in the child until it is killed. Says what was committed only after store_commit said so. */
static void commit_until_killed(const struct store_options *options, int acknowledged_fd,
                                uint64_t seed)
{
    struct error error;
    struct store *store = NULL;
    if (store_open(options, &store, &error) < 0)
        _exit(2);
    struct random random;
    random_init(&random, seed);
    struct store_batch *batch = store_batch_new(0);
    for (;;) {
        store_batch_clear(batch);
        const uint64_t first = store_head(store).sequence + 1;
        const uint64_t count = 1 + random_below(&random, 40);
        batch_add_events(batch, first, count);
        for (uint64_t i = 0; i < count; i++)
            batch_add_job(batch, (int64_t)(first + i), "ada", (int64_t)i);
        const struct store_head head = store_head(store);
        const struct store_snapshot snapshot = {head, TEXT("state")};
        if (store_commit(store, batch, &error) < 0)
            _exit(3);
        const uint64_t sequence = store_head(store).sequence;
        if (write(acknowledged_fd, &sequence, sizeof(sequence)) != sizeof(sequence))
            _exit(4);
        if (head.sequence > 0 && random_below(&random, 8) == 0 &&
            store_snapshot_save(store, &snapshot, &error) < 0)
            _exit(5);
    }
}

/* The last number the child wrote; it waits for the first one, so that every round commits. */
static uint64_t run_and_kill(const struct store_options *options, struct random *random)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    const uint64_t seed = random_u64(random);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(fds[0]);
        commit_until_killed(options, fds[1], seed);
    }
    close(fds[1]);
    uint64_t last = 0;
    assert_int_equal(read(fds[0], &last, sizeof(last)), sizeof(last));

    /* Keep reading, so that the pipe never fills. */
    const int64_t after_ns = (int64_t)random_below(random, KILL_AFTER_US_MAX) * 1000;
    const int64_t end_ns =
        clock_monotonic_ns(&clock_system) + after_ns; /* clock: the kill may come at any moment */
    for (int64_t left_ns; (left_ns = end_ns - clock_monotonic_ns(&clock_system)) > 0;) {
        struct pollfd poll_fd = {.fd = fds[0], .events = POLLIN};
        const struct timespec timeout = {0, left_ns};
        if (ppoll(&poll_fd, 1, &timeout, NULL) == 1)
            assert_int_equal(read(fds[0], &last, sizeof(last)), sizeof(last));
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    uint64_t sequence;
    while (read(fds[0], &sequence, sizeof(sequence)) == sizeof(sequence))
        last = sequence;
    close(fds[0]);
    return last;
}

TEST(nothing_acknowledged_is_lost_when_the_process_is_killed)
{
    struct error error;
    struct place place;
    place_make(&place);
    struct random random;
    random_init(&random, 20);
    uint64_t before = 0;
    for (int round = 0; round < ROUND_COUNT; round++) {
        const uint64_t acknowledged = run_and_kill(&place.options, &random);
        assert_true(acknowledged > before);
        struct store *store = place_open(&place); /* nobody holds the lock of the dead */
        before = store_head(store).sequence;
        if (before < acknowledged)
            fail_msg("round %d: acknowledged %" PRIu64 ", found %" PRIu64, round, acknowledged,
                     before);
        assert_int_equal(verify_log(&place), before);

        /* Rows and events came in the same transactions: one job for each event. */
        AUTO(store_reader) struct store_reader *reader = place_read(&place);
        const struct store_query query = {
            .table = &test_tables[0], .is_descending = true, .limit = 1};
        uint64_t count = 0;
        ASSERT_OK(store_read_rows(reader, &query, count_row, &count, NULL, &error));
        assert_int_equal(count, 1);
        const struct store_filter beyond = {"id", STORE_GREATER_OR_EQUAL,
                                            store_integer((int64_t)before)};
        const struct store_query last = {
            .table = &test_tables[0], .filters = &beyond, .filter_count = 1};
        count = 0;
        ASSERT_OK(store_read_rows(reader, &last, count_row, &count, NULL, &error));
        assert_int_equal(count, 1);
        struct buffer bytes AUTO_BUFFER;
        buffer_init(&bytes, 100);
        struct store_head head;
        ASSERT_OK(store_snapshot_load(reader, &head, &bytes, &error));
        assert_true(head.sequence <= before);
        store_free(store);
    }
    print_message("%d kills, %" PRIu64 " events, none lost\n", ROUND_COUNT, before);
    place_remove(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acknowledged_is_lost_when_the_process_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
