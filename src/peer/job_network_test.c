/*
 * Sandboxes of a job talk to one another by rank, directly and through a relay, and reach nothing
 * else.
 * covers path.c, job_network_probe.c
 */
#include "base/buffer.h"
#include "base/file.h"
#include "net/relay.h"
#include "net/tun.h"
#include "peer/job_network.h"
#include "sandbox/sandbox.h"
#include "testing/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SKIPPED = 77, OUTPUT_MAX = 4096, RELAYED_MAX = 16, VISITOR_MAX = 64 };

static char folder[] = "/tmp/souk-job-network-test-XXXXXX";
static char probe_path[64];

/* The market's part, as plain as can be: joins two connections that open with the same line. */
struct market_visitor {
    struct market *market;
    int fd;
    struct loop_watch *watch;
    char line[PATH_LINE_SIZE];
    bool has_line;
};

struct market {
    struct loop *loop;
    int listen_fd;
    uint16_t port;
    struct loop_watch *watch;
    struct market_visitor visitors[VISITOR_MAX]; /* fd -1: free */
    struct relay *relays[RELAYED_MAX];
    size_t relay_count;
};

static void market_on_done(struct relay *relay, const struct error *reason, void *context)
{
    (void)relay, (void)reason, (void)context;
}

static int market_take_visitor(struct market_visitor *visitor)
{
    loop_watch_free(TAKE(visitor->watch));
    return TAKE_FD(visitor->fd);
}

static void market_join(struct market *market, struct market_visitor *visitor)
{
    struct error error = {0};
    for (size_t i = 0; i < VISITOR_MAX; i++) {
        struct market_visitor *other = &market->visitors[i];
        if (other == visitor || other->fd < 0 || !other->has_line ||
            memcmp(other->line, visitor->line, PATH_LINE_SIZE) != 0)
            continue;
        assert_true(market->relay_count < RELAYED_MAX);
        const struct relay_options options = {.loop = market->loop,
                                              .left_fd = market_take_visitor(other),
                                              .right_fd = market_take_visitor(visitor),
                                              .on_done = market_on_done};
        ASSERT_OK(relay_open_take(&options, &market->relays[market->relay_count++], &error));
        return;
    }
}

static void market_on_line(void *context, uint32_t events)
{
    struct market_visitor *visitor = context;
    if (events & LOOP_HANGUP) {
        close(market_take_visitor(visitor));
    } else if (recv(visitor->fd, visitor->line, PATH_LINE_SIZE, MSG_PEEK) == PATH_LINE_SIZE) {
        assert_int_equal(recv(visitor->fd, visitor->line, PATH_LINE_SIZE, 0), PATH_LINE_SIZE);
        visitor->has_line = true;
        loop_watch_set(visitor->watch, 0);
        market_join(visitor->market, visitor);
    }
}

static void market_on_visit(void *context, uint32_t events)
{
    struct market *market = context;
    struct address from;
    struct error error = {0};
    int fd;
    (void)events;
    if (tcp_accept(market->listen_fd, &fd, &from, &error) != 1)
        return;
    for (size_t i = 0; i < VISITOR_MAX; i++) {
        struct market_visitor *visitor = &market->visitors[i];
        if (visitor->fd >= 0)
            continue;
        *visitor = (struct market_visitor){.market = market, .fd = fd};
        ASSERT_OK(loop_watch_open(market->loop, fd, LOOP_READ, market_on_line, visitor,
                                  &visitor->watch, &error));
        return;
    }
    fail_msg("too many visitors");
}

static void market_open(struct market *market, struct loop *loop)
{
    struct error error = {0};
    const struct host_port here = {.host = "127.0.0.1"};
    struct address address;
    *market = (struct market){.loop = loop, .listen_fd = -1};
    for (size_t i = 0; i < VISITOR_MAX; i++)
        market->visitors[i].fd = -1;
    ASSERT_OK(address_resolve(&here, &address, &error));
    ASSERT_OK(tcp_listen(&address, "", &market->listen_fd, &market->port, &error));
    ASSERT_OK(loop_watch_open(loop, market->listen_fd, LOOP_READ, market_on_visit, market,
                              &market->watch, &error));
}

static void market_cut(struct market *market)
{
    for (size_t i = 0; i < market->relay_count; i++)
        relay_free(market->relays[i]);
    market->relay_count = 0;
}

static void market_close(struct market *market)
{
    market_cut(market);
    loop_watch_free(market->watch);
    close(market->listen_fd);
    for (size_t i = 0; i < VISITOR_MAX; i++)
        if (market->visitors[i].fd >= 0)
            close(market_take_visitor(&market->visitors[i]));
}

/* --- one rank --- */

struct rank {
    struct job_network *network;
    struct sandbox *sandbox;
    int output_fd;
    char output[OUTPUT_MAX];
    size_t size;
};

struct fixture {
    struct loop *loop;
    struct sandbox_host *host;
    struct market market;
};

static void fixture_open(struct fixture *fixture)
{
    struct error error = {0};
    ASSERT_OK(loop_open(&clock_system, &fixture->loop, &error));
    ASSERT_OK(sandbox_host_open(folder, probe_path, &fixture->host, &error));
    market_open(&fixture->market, fixture->loop);
}

static void fixture_close(struct fixture *fixture)
{
    market_close(&fixture->market);
    sandbox_host_free(fixture->host);
    loop_free(fixture->loop);
}

static void rank_open(struct fixture *fixture, struct rank *rank, uint64_t lease, uint32_t number,
                      bool is_direct)
{
    struct error error = {0};
    *rank = (struct rank){.output_fd = -1};
    struct job_network_options options = {
        .loop = fixture->loop, .lease = lease, .rank = number, .is_direct = is_direct};
    snprintf(options.relay.host, sizeof(options.relay.host), "127.0.0.1");
    options.relay.port = fixture->market.port;
    ASSERT_OK(job_network_open(&options, &rank->network, &error));
}

static void rank_start(struct fixture *fixture, struct rank *rank, const char *name,
                       const char *const *argv)
{
    struct error error = {0};
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    rank->output_fd = fds[0];
    assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    const struct sandbox_options options = {.name = name,
                                            .argv = argv,
                                            .cpu_milli = 1000,
                                            .memory_bytes = 64 << 20,
                                            .pids_max = 16,
                                            .control_fd = -1,
                                            .stdout_fd = fds[1],
                                            .stderr_fd = fds[1],
                                            .set_up_network = job_network_set_up,
                                            .network_context = rank->network};
    ASSERT_OK(sandbox_start(fixture->host, &options, &rank->sandbox, &error));
    close(fds[1]);
}

static void rank_close(struct rank *rank)
{
    sandbox_free(rank->sandbox);
    job_network_free(rank->network);
    if (rank->output_fd >= 0)
        close(rank->output_fd);
}

static const char *rank_output(struct rank *rank)
{
    const ssize_t got =
        read(rank->output_fd, rank->output + rank->size, OUTPUT_MAX - 1 - rank->size);
    if (got > 0)
        rank->size += (size_t)got;
    rank->output[rank->size] = '\0';
    return rank->output;
}

static void tell(struct rank *rank, uint64_t other_lease, uint32_t other_rank,
                 const struct rank *other, uint8_t secret)
{
    struct error error = {0};
    uint8_t key[LINK_KEY_SIZE];
    struct host_port candidates[PATH_CANDIDATE_MAX];
    memset(key, secret, sizeof(key));
    struct job_network_peer peer = {.lease = other_lease,
                                    .fence = 1,
                                    .rank = other_rank,
                                    .key = key,
                                    .candidates = candidates,
                                    .candidate_count =
                                        job_network_addresses(other->network, candidates)};
    memset(peer.ticket, secret, sizeof(peer.ticket));
    ASSERT_OK(job_network_add_peer(rank->network, &peer, &error));
}

/* Until the visitor has ended; the others serve meanwhile. */
static const char *run_visitor(struct fixture *fixture, struct rank *rank)
{
    struct error error = {0};
    struct sandbox_exit result;
    const int64_t end_ns = clock_monotonic_ns(&clock_system) + HUNG_MS * INT64_C(1000000);
    while (!sandbox_reap(rank->sandbox, &result)) {
        assert_true(clock_monotonic_ns(&clock_system) < end_ns);
        ASSERT_OK(loop_step(fixture->loop, 20, &error));
    }
    assert_int_equal(result.code, 0);
    return rank_output(rank);
}

static void wait_until_ready(struct fixture *fixture, struct rank *rank)
{
    struct error error = {0};
    const int64_t end_ns = clock_monotonic_ns(&clock_system) + HUNG_MS * INT64_C(1000000);
    struct sandbox_exit result;
    while (!strstr(rank_output(rank), "ready")) {
        if (clock_monotonic_ns(&clock_system) > end_ns || sandbox_reap(rank->sandbox, &result))
            fail_msg("the server did not start: %s", rank_output(rank));
        ASSERT_OK(loop_step(fixture->loop, 20, &error));
    }
}

static void assert_says(const char *output, const char *words)
{
    if (!strstr(output, words))
        fail_msg("no \"%s\" in:\n%s", words, output);
}

static void talk(bool is_server_direct, bool is_client_direct)
{
    struct fixture fixture;
    struct rank server, client;
    fixture_open(&fixture);
    rank_open(&fixture, &server, 11, 0, is_server_direct);
    rank_open(&fixture, &client, 12, 1, is_client_direct);
    rank_start(&fixture, &server, "rank-0", (const char *const[]){"/souk", "serve", "hello", NULL});
    wait_until_ready(&fixture, &server);
    tell(&client, 11, 0, &server, 5);
    tell(&server, 12, 1, &client, 5);
    rank_start(&fixture, &client, "rank-1",
               (const char *const[]){"/souk", "visit", "+rank=10.77.0.1:7000", NULL});
    assert_says(run_visitor(&fixture, &client), "+rank=hello");
    uint32_t direct = 0;
    assert_int_equal(job_network_linked_count(server.network, &direct), 1);
    assert_int_equal(direct, is_server_direct && is_client_direct);
    assert_true(job_network_counts(server.network).bytes_in > 0);
    assert_true(job_network_counts(server.network).bytes_out > 0);
    rank_close(&client);
    rank_close(&server);
    fixture_close(&fixture);
}

TEST(ranks_talk_directly_where_they_reach_one_another)
{
    talk(/* is_server_direct= */ true, /* is_client_direct= */ true);
}

TEST(ranks_talk_through_the_relay_where_they_do_not)
{
    talk(/* is_server_direct= */ false, /* is_client_direct= */ false);
}

TEST(rank_that_is_not_direct_dials_nobody)
{
    talk(/* is_server_direct= */ true, /* is_client_direct= */ false);
    talk(/* is_server_direct= */ false, /* is_client_direct= */ true);
}

TEST(nothing_but_the_other_ranks_is_reached)
{
    struct fixture fixture;
    struct rank server, stranger, client;
    char own_localhost[64], host[64];
    fixture_open(&fixture);
    rank_open(&fixture, &server, 21, 0, true);
    rank_open(&fixture, &stranger, 31, 2, true); /* of another job: nobody is told of it */
    rank_open(&fixture, &client, 22, 1, true);
    rank_start(&fixture, &server, "rank-0", (const char *const[]){"/souk", "serve", "ours", NULL});
    rank_start(&fixture, &stranger, "rank-2",
               (const char *const[]){"/souk", "serve", "theirs", NULL});
    wait_until_ready(&fixture, &server);
    wait_until_ready(&fixture, &stranger);
    tell(&client, 21, 0, &server, 5);
    tell(&server, 22, 1, &client, 5);
    struct host_port addresses[PATH_CANDIDATE_MAX];
    assert_true(job_network_addresses(server.network, addresses) > 0);
    snprintf(own_localhost, sizeof(own_localhost), "market=127.0.0.1:%u", fixture.market.port);
    snprintf(host, sizeof(host), "host=%.40s:%u", addresses[0].host, addresses[0].port);
    rank_start(&fixture, &client, "rank-1",
               (const char *const[]){"/souk", "visit", "+rank=10.77.0.1:7000", own_localhost, host,
                                     "other_job=10.77.0.3:7000", "metadata=169.254.169.254:80",
                                     "home=192.168.1.1:80", "internet=8.8.8.8:53",
                                     "broadcast=10.77.255.255:7000", "closed=10.77.0.1:7001",
                                     NULL});
    const char *output = run_visitor(&fixture, &client);
    assert_says(output, "+rank=ours");
    assert_says(output, "market=ECONNREFUSED"); /* its own, empty loopback */
    assert_says(output,
                strncmp(addresses[0].host, "127.", 4) ? "host=ENETUNREACH" : "host=ECONNREFUSED");
    assert_says(output, "other_job=silent");
    assert_says(output, "metadata=ENETUNREACH");
    assert_says(output, "home=ENETUNREACH");
    assert_says(output, "internet=ENETUNREACH");
    assert_null(strstr(output, "broadcast=ours"));
    assert_says(output, "closed=ECONNREFUSED"); /* the rank itself says so */
    assert_true(job_network_counts(client.network).no_link > 0);
    rank_close(&client);
    rank_close(&stranger);
    rank_close(&server);
    fixture_close(&fixture);
}

TEST(broken_path_is_found_again)
{
    struct fixture fixture;
    struct rank server, client;
    struct error error = {0};
    uint32_t direct;
    fixture_open(&fixture);
    rank_open(&fixture, &server, 11, 0, false);
    rank_open(&fixture, &client, 12, 1, false);
    rank_start(&fixture, &server, "rank-0", (const char *const[]){"/souk", "serve", "again", NULL});
    wait_until_ready(&fixture, &server);
    tell(&client, 11, 0, &server, 5);
    tell(&server, 12, 1, &client, 5);
    rank_start(&fixture, &client, "rank-1",
               (const char *const[]){"/souk", "visit", "+rank=10.77.0.1:7000", NULL});
    assert_says(run_visitor(&fixture, &client), "+rank=again");
    market_cut(&fixture.market);
    while (job_network_linked_count(server.network, &direct) > 0)
        ASSERT_OK(loop_step(fixture.loop, 100, &error));
    while (job_network_linked_count(server.network, &direct) == 0 ||
           job_network_linked_count(client.network, &direct) == 0)
        ASSERT_OK(loop_step(fixture.loop, 100, &error));
    rank_close(&client);
    rank_close(&server);
    fixture_close(&fixture);
}

TEST(peer_with_another_key_is_no_peer)
{
    struct fixture fixture;
    struct rank server, client;
    fixture_open(&fixture);
    rank_open(&fixture, &server, 11, 0, true);
    rank_open(&fixture, &client, 12, 1, true);
    rank_start(&fixture, &server, "rank-0", (const char *const[]){"/souk", "serve", "no", NULL});
    wait_until_ready(&fixture, &server);
    tell(&server, 12, 1, &client, 5);
    /* It knows the ticket, not the key. */
    struct error error = {0};
    uint8_t key[LINK_KEY_SIZE] = {9};
    struct host_port candidates[PATH_CANDIDATE_MAX];
    struct job_network_peer peer = {.lease = 11,
                                    .fence = 1,
                                    .rank = 0,
                                    .key = key,
                                    .candidates = candidates,
                                    .candidate_count =
                                        job_network_addresses(server.network, candidates)};
    memset(peer.ticket, 5, sizeof(peer.ticket));
    ASSERT_OK(job_network_add_peer(client.network, &peer, &error));
    rank_start(&fixture, &client, "rank-1",
               (const char *const[]){"/souk", "visit", "rank=10.77.0.1:7000",
                                     "again=10.77.0.1:7000", NULL});
    const char *output = run_visitor(&fixture, &client);
    assert_says(output, "rank=silent");
    assert_says(output, "again=silent");
    uint32_t direct;
    assert_int_equal(job_network_linked_count(server.network, &direct), 0);
    rank_close(&client);
    rank_close(&server);
    fixture_close(&fixture);
}

static int prepare(struct error *error)
{
    char self[PATH_MAX - 32], source[PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (size < 0 || !mkdtemp(folder))
        return error_set_errno(error, errno, "prepare the probe");
    self[size] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(source, sizeof(source), "%s/job_network_probe", self);
    snprintf(probe_path, sizeof(probe_path), "%s/probe", folder);
    struct buffer program AUTO_BUFFER;
    buffer_init(&program, 64 << 20);
    if (file_read(source, &program, error) < 0)
        return -1;
    const struct text whole = buffer_text(&program);
    return file_replace(probe_path, &whole, 1, 0755, error);
}

int main(void)
{
    struct sandbox_host *host = NULL;
    struct error error = {0};
#if defined(__SANITIZE_THREAD__)
    fprintf(stderr,
            "skipped: a process with a thread, the sanitizer's, enters no user namespace\n");
    return SKIPPED;
#endif
    if (tun_check(&error) < 0 || sandbox_host_open("/tmp", NULL, &host, &error) < 0) {
        fprintf(stderr, "skipped: no /dev/net/tun or no sandbox here: %s\n", error.message);
        return SKIPPED;
    }
    sandbox_host_free(host);
    if (prepare(&error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_talk_directly_where_they_reach_one_another),
        cmocka_unit_test(ranks_talk_through_the_relay_where_they_do_not),
        cmocka_unit_test(rank_that_is_not_direct_dials_nobody),
        cmocka_unit_test(nothing_but_the_other_ranks_is_reached),
        cmocka_unit_test(broken_path_is_found_again),
        cmocka_unit_test(peer_with_another_key_is_no_peer),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(probe_path);
    rmdir(folder);
    return failed;
}
