/* Two machines find out how far they are from one another, here on one. */
#include "peer/trial.h"
#include "testing/testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LIMIT_MS = 400, LONG_MS = 5000 };

struct end {
    struct trials *trials;
    int told_count;
    struct tried_message tried;
    struct host_port addresses[PATH_CANDIDATE_MAX];
    size_t address_count;
};

static void on_tried(void *context, const struct tried_message *tried)
{
    struct end *end = context;
    end->told_count++;
    end->tried = *tried;
}

static struct loop *loop;

static int setup(void **state)
{
    struct error error;
    (void)state;
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    loop_free(loop);
    return 0;
}

static void end_open(struct end *end, bool is_direct)
{
    *end = (struct end){0};
    end->trials = trials_new(&(struct trials_options){
        .loop = loop, .is_direct = is_direct, .on_tried = on_tried, .context = end});
    end->address_count = trials_addresses(end->trials, end->addresses);
    assert_int_equal(end->address_count > 0, is_direct);
}

static void begin(struct end *end, const struct end *other, uint8_t key, uint32_t limit_ms)
{
    char texts[PATH_CANDIDATE_MAX][LEASE_ADDRESS_SIZE_MAX + 1];
    struct try_message message = {.trial = 7, .key = {key}, .ticket = {42}, .limit_ms = limit_ms};
    for (size_t i = 0; i < other->address_count; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%.48s:%u", other->addresses[i].host,
                 other->addresses[i].port);
        message.addresses[message.address_count++] = text_of(texts[i]);
    }
    trials_begin(end->trials, &message);
}

static void run_until_told(const struct end *a, const struct end *b)
{
    struct error error;
    while (!a->told_count || (b && !b->told_count))
        ASSERT_OK(loop_step(loop, LONG_MS, &error));
}

/* A connection to the end's port, or -1 when it is refused. */
static int visit(const struct end *end)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(end->addresses[0].port)};
    assert_int_equal(inet_pton(AF_INET, end->addresses[0].host, &address.sin_addr), 1);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    assert_int_equal(errno, ECONNREFUSED);
    close(fd);
    return -1;
}

static void expect_hang_up(int fd)
{
    struct error error;
    char byte;
    ssize_t got;
    while ((got = recv(fd, &byte, 1, MSG_DONTWAIT)) < 0 && errno == EAGAIN)
        ASSERT_OK(loop_step(loop, 50, &error));
    assert_true(got <= 0);
    close(fd);
}

TEST(two_that_reach_one_another_both_know_how_far_it_is)
{
    struct end a, b;
    end_open(&a, true);
    end_open(&b, true);
    begin(&a, &b, 1, LONG_MS);
    begin(&b, &a, 1, LONG_MS);
    run_until_told(&a, &b);
    assert_int_equal(a.tried.trial, 7);
    assert_in_range(a.tried.rtt_us, 1, 2000000);
    assert_in_range(b.tried.rtt_us, 1, 2000000);
    assert_int_equal(a.told_count, 1);
    trials_free(a.trials);
    trials_free(b.trials);
}

TEST(one_that_only_dials_is_measured_by_its_own_connection)
{
    struct end a, b, nowhere = {0};
    end_open(&a, true);
    end_open(&b, true);
    begin(&a, &b, 1, LONG_MS); /* the other hears of it later: it is dialled again */
    struct error error;
    for (int i = 0; i < 3; i++)
        ASSERT_OK(loop_step(loop, 20, &error));
    begin(&b, &nowhere, 1, LONG_MS);
    run_until_told(&a, &b);
    assert_in_range(a.tried.rtt_us, 1, 2000000);
    assert_in_range(b.tried.rtt_us, 1, 2000000);
    trials_free(a.trials);
    trials_free(b.trials);
}

TEST(one_that_is_not_direct_dials_nobody)
{
    struct end a, b;
    end_open(&a, false);
    end_open(&b, true);
    begin(&b, &a, 1, LIMIT_MS); /* it listens now, and would answer */
    begin(&a, &b, 1, LIMIT_MS);
    assert_int_equal(a.told_count, 1);
    run_until_told(&a, &b);
    assert_int_equal(a.tried.rtt_us, 0);
    assert_int_equal(b.tried.rtt_us, 0);
    trials_free(a.trials);
    trials_free(b.trials);
}

TEST(two_without_a_way_say_so_in_time)
{
    struct end a, b, nowhere = {0};
    end_open(&a, true);
    end_open(&b, true);
    begin(&a, &nowhere, 1, LIMIT_MS);
    begin(&b, &nowhere, 1, LIMIT_MS);
    run_until_told(&a, &b);
    assert_int_equal(a.tried.rtt_us, 0);
    assert_int_equal(b.tried.rtt_us, 0);
    trials_free(a.trials);
    trials_free(b.trials);
}

TEST(who_has_another_key_is_not_believed)
{
    struct end a, b;
    end_open(&a, true);
    end_open(&b, true);
    begin(&a, &b, 1, LIMIT_MS);
    begin(&b, &a, 2, LIMIT_MS);
    run_until_told(&a, &b);
    assert_int_equal(a.tried.rtt_us, 0);
    assert_int_equal(b.tried.rtt_us, 0);
    trials_free(a.trials);
    trials_free(b.trials);
}

TEST(the_port_is_closed_but_for_the_time_of_a_trial)
{
    struct end a, nobody = {0};
    end_open(&a, true);
    assert_int_equal(visit(&a), -1);
    begin(&a, &nobody, 1, LIMIT_MS);
    const int fd = visit(&a);
    assert_true(fd >= 0);
    run_until_told(&a, NULL);
    expect_hang_up(fd);
    assert_int_equal(visit(&a), -1);
    begin(&a, &nobody, 1, LIMIT_MS); /* at the same address as before */
    const int again = visit(&a);
    assert_true(again >= 0);
    close(again);
    trials_free(a.trials);
}

TEST(a_visitor_without_a_ticket_that_is_known_is_hung_up_on)
{
    static const char line[] = "SOUK-STREAM 0000000000000000000000000000000000000000000000000000000"
                               "000000000\n";
    static const char nonsense[PATH_LINE_SIZE] = "GET / HTTP/1.1\r\n";
    struct end a, nobody = {0};
    end_open(&a, true);
    begin(&a, &nobody, 1, LONG_MS);
    const int stranger = visit(&a), browser = visit(&a), silent = visit(&a);
    assert_int_equal(send(stranger, line, sizeof(line) - 1, 0), PATH_LINE_SIZE);
    expect_hang_up(stranger);
    assert_int_equal(send(browser, nonsense, sizeof(nonsense), 0), sizeof(nonsense));
    expect_hang_up(browser);
    expect_hang_up(silent); /* after a second */
    assert_int_equal(a.told_count, 0);
    trials_free(a.trials);
}

TEST(one_address_has_only_so_many_connections)
{
    struct end a, nobody = {0};
    struct error error;
    int fds[TRIAL_VISITORS_OF_ONE];
    end_open(&a, true);
    begin(&a, &nobody, 1, LONG_MS);
    for (int i = 0; i < TRIAL_VISITORS_OF_ONE; i++)
        fds[i] = visit(&a);
    ASSERT_OK(loop_step(loop, 50, &error));
    expect_hang_up(visit(&a));
    for (int i = 0; i < TRIAL_VISITORS_OF_ONE; i++)
        close(fds[i]);
    trials_free(a.trials);
}

TEST(more_trials_than_are_taken_at_once_reach_nobody)
{
    struct end a, nobody = {0};
    end_open(&a, true);
    for (int i = 0; i < TRIALS_MAX; i++)
        begin(&a, &nobody, 1, LONG_MS);
    assert_int_equal(a.told_count, 0);
    begin(&a, &nobody, 1, LONG_MS);
    assert_int_equal(a.told_count, 1);
    assert_int_equal(a.tried.rtt_us, 0);
    trials_free(a.trials);
}

#define WITH_LOOP(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LOOP(two_that_reach_one_another_both_know_how_far_it_is),
        WITH_LOOP(one_that_only_dials_is_measured_by_its_own_connection),
        WITH_LOOP(one_that_is_not_direct_dials_nobody),
        WITH_LOOP(two_without_a_way_say_so_in_time),
        WITH_LOOP(who_has_another_key_is_not_believed),
        WITH_LOOP(the_port_is_closed_but_for_the_time_of_a_trial),
        WITH_LOOP(a_visitor_without_a_ticket_that_is_known_is_hung_up_on),
        WITH_LOOP(one_address_has_only_so_many_connections),
        WITH_LOOP(more_trials_than_are_taken_at_once_reach_nobody),
    };
    return cmocka_run_group_tests_name("trial", tests, NULL, NULL);
}
