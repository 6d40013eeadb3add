/* Borrowers that send their data themselves, over real links.
 * covers borrower.c */
#include "server/hub_fixture_internal.h"

#include <netinet/tcp.h>

enum { TOLD_MAX = 8, FRAME_BYTES = 32 << 10 };

/* What the worker's machine is told of borrowers. */
struct machine_end {
    struct link *link;
    uint32_t seen_ipv4; /* by the welcome */
    uint32_t told_count;
    uint32_t address_counts[TOLD_MAX];
    uint8_t keys[TOLD_MAX][LINK_KEY_SIZE];
};

/* Somebody who listens and has the key. */
struct borrower_end {
    struct fixture *fixture;
    uint8_t secret[SOURCE_SECRET_SIZE];
    int listen_fd;
    struct hub_borrower offer;
    struct link *link;
    bool is_checked, is_reached, is_closed;
};

static void on_open(struct link *link, struct text identity, void *context)
{
    (void)link, (void)identity, (void)context;
}

static void on_told(struct link *link, uint16_t type, struct text payload, void *context)
{
    struct machine_end *end = context;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct lease_message message;
    struct error error;
    (void)link;
    if (type != LEASE_MESSAGE_CHUNK_PEER && type != LEASE_MESSAGE_WELCOME)
        return;
    ASSERT_OK(lease_message_decode(arena, type, payload, &message, &error));
    if (type == LEASE_MESSAGE_WELCOME) {
        end->seen_ipv4 = message.welcome.seen_ipv4;
        return;
    }
    assert_true(end->told_count < TOLD_MAX);
    end->address_counts[end->told_count] = message.rank.address_count;
    memcpy(end->keys[end->told_count++], message.rank.peer.key, LINK_KEY_SIZE);
}

static void on_nothing(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link, (void)type, (void)payload, (void)context;
}

static void on_machine_closed(struct link *link, const struct error *reason, void *context)
{
    (void)link, (void)context;
    fail_msg("the link was closed: %s", reason ? reason->message : "good-bye");
}

static void on_borrower_closed(struct link *link, const struct error *reason, void *context)
{
    (void)link, (void)reason;
    ((struct borrower_end *)context)->is_closed = true;
}

/* ---- The machine ----------------------------------------------------------------------------- */

static void open_machine(struct fixture *fixture, struct machine_end *end)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(hub_port(fixture->hub)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct hub_machine *machine = hub_machine(fixture->hub, fixture->machines[1]);
    char identity[64];
    uint8_t key[LINK_KEY_SIZE];
    struct error error;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    *end = (struct machine_end){0};
    snprintf(identity, sizeof(identity), "machine:%" PRIu64 ":1", machine->id);
    keys_machine(fixture->server.keys, machine->id, 1, key);
    const struct link_options options = {
        .loop = fixture->hub->loop,
        .identity = identity,
        .key = key,
        .payload_max = LEASE_MESSAGE_SIZE_MAX,
        .callbacks = {.on_open = on_open, .on_frame = on_told, .on_close = on_machine_closed},
        .context = end};
    ASSERT_OK(link_open_take(&options, fd, &end->link, &error));
    const struct lease_fence running = {fixture->leases[1].id, fixture->leases[1].fence};
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
    lease_message_encode(&(struct lease_message){.type = LEASE_MESSAGE_HELLO,
                                                 .hello = {.version = LEASE_MESSAGE_VERSION,
                                                           .machine = machine->id,
                                                           .ceiling = machine->probe.resources,
                                                           .running = &running,
                                                           .running_count = 1}},
                         &payload);
    ASSERT_OK(link_send_text(end->link, LEASE_MESSAGE_HELLO, buffer_text(&payload), &error));
    while (!machine->is_welcome)
        step(fixture, 1000);
}

/* All that was sent to the machine. */
static void let_arrive(struct fixture *fixture, const struct machine_end *end)
{
    const struct hub_machine *machine = hub_machine(fixture->hub, fixture->machines[1]);
    const struct link *link = connection_link(machine->connection);
    while (link_queued_bytes(link) > 0 || link_received_bytes(end->link) < link_sent_bytes(link))
        step(fixture, 1000);
}

/* ---- The borrower ---------------------------------------------------------------------------- */

static int find_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    const struct borrower_end *end = context;
    assert_true(text_equal(identity, TEXT("chunks:0:0")));
    source_key(end->secret, SOURCE_MARKET, out_key);
    return 0;
}

static void on_checked(void *context, bool is_reached)
{
    struct borrower_end *end = context;
    end->is_checked = true;
    end->is_reached = is_reached;
}

/* Offers what the account's job needs, at the port and at one that nobody listens on. */
static void offer(struct fixture *fixture, struct borrower_end *end, uint64_t account, uint8_t name)
{
    const struct hub_lease *lease = map_get(&fixture->hub->leases, fixture->leases[1].id);
    struct address any;
    struct error error;
    uint16_t port = 0;
    *end = (struct borrower_end){.fixture = fixture, .secret = {name}};
    ASSERT_OK(address_resolve(&(struct host_port){.host = "127.0.0.1"}, &any, &error));
    ASSERT_OK(tcp_listen(&any, "", &end->listen_fd, &port, &error));
    end->offer = (struct hub_borrower){.account = account,
                                       .seen_at = {.host = "127.0.0.1", .port = port},
                                       .address_count = 2,
                                       .on_checked = on_checked,
                                       .context = end};
    memcpy(end->offer.secret, end->secret, sizeof(end->secret));
    memcpy(end->offer.manifest, lease->manifest, sizeof(lease->manifest));
    snprintf(end->offer.addresses[0], sizeof(end->offer.addresses[0]), "127.0.0.1:%u", port);
    snprintf(end->offer.addresses[1], sizeof(end->offer.addresses[1]), "127.0.0.1:%u",
             port > 2000 ? port - 1u : port + 1u);
    hub_add_borrower(fixture->hub, &end->offer);
}

static void take_market(struct borrower_end *end)
{
    struct error error;
    int fd;
    while ((fd = accept4(end->listen_fd, NULL, NULL, SOCK_CLOEXEC)) < 0)
        step(end->fixture, 10);
    const struct link_options options = {
        .loop = end->fixture->hub->loop,
        .is_server = true,
        .find_key = find_key,
        .queue_max_bytes = 16 << 20,
        .callbacks = {.on_open = on_open, .on_frame = on_nothing, .on_close = on_borrower_closed},
        .context = end};
    ASSERT_OK(link_open_take(&options, fd, &end->link, &error));
    while (!end->is_checked)
        step(end->fixture, 1000);
    assert_true(end->is_reached);
}

static void leave(struct borrower_end *end)
{
    link_free(end->link);
    close(end->listen_fd);
}

/* The test's thread is the hub's. */
static int setup_started(void **state)
{
    if (setup(state) < 0)
        return -1;
    ((struct fixture *)*state)->hub->is_started = true;
    return 0;
}

static int teardown_started(void **state)
{
    ((struct fixture *)*state)->hub->is_started = false;
    return teardown(state);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

TEST(a_lease_is_told_of_its_borrower_once_and_only_of_the_port_that_was_reached)
{
    struct fixture *fixture = *state;
    struct machine_end machine;
    struct borrower_end own, stranger;
    uint8_t key[SOURCE_KEY_SIZE];
    open_machine(fixture, &machine);
    offer(fixture, &own, fixture->borrower, 1);
    take_market(&own);
    let_arrive(fixture, &machine);
    assert_int_equal(machine.seen_ipv4, INADDR_LOOPBACK);
    assert_int_equal(machine.told_count, 1);
    assert_int_equal(machine.address_counts[0], 1);
    source_key(own.secret, fixture->leases[1].id, key);
    assert_memory_equal(machine.keys[0], key, sizeof(key));

    offer(fixture, &stranger, fixture->borrower + 1,
          2); /* of another account, with the same data */
    take_market(&stranger);
    let_arrive(fixture, &machine);
    assert_int_equal(machine.told_count, 1);
    leave(&own);
    leave(&stranger);
    link_free(machine.link);
}

/* The market's end, which is in this process. */
static int find_market_end(const struct borrower_end *end)
{
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t size = sizeof(peer);
        if (getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && peer.sin_family == AF_INET &&
            ntohs(peer.sin_port) == end->offer.seen_at.port)
            return fd;
    }
    fail_msg("the market has no link to the borrower");
    return -1;
}

static int option_of(int fd, int level, int name)
{
    int value = 0;
    socklen_t size = sizeof(value);
    assert_int_equal(getsockopt(fd, level, name, &value, &size), 0);
    return value;
}

TEST(a_borrower_that_vanishes_without_a_word_is_noticed_within_a_minute)
{
    struct fixture *fixture = *state;
    struct borrower_end end;
    offer(fixture, &end, fixture->borrower, 1);
    take_market(&end);
    const int fd = find_market_end(&end);
    assert_int_equal(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    const int idle_s = option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE);
    const int again_s = option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL);
    const int silence_ms = option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT);
    assert_in_range(silence_ms, 1, 60000);
    assert_true((idle_s + 2 * again_s) * 1000 < silence_ms); /* asked more than once */
    assert_true(silence_ms + again_s * 1000 < 60000);
    leave(&end);
}

TEST(a_borrower_that_talks_on_is_let_go)
{
    static const char bytes[FRAME_BYTES];
    struct fixture *fixture = *state;
    struct borrower_end end;
    struct error error;
    offer(fixture, &end, fixture->borrower, 1);
    take_market(&end);
    for (int i = 0; i < 32; i++) /* all that a chunk server ever says */
        ASSERT_OK(link_send_text(end.link, 1, (struct text){bytes, sizeof(bytes)}, &error));
    while (link_queued_bytes(end.link) > 0)
        step(fixture, 10);
    step(fixture, 0);
    assert_false(end.is_closed);
    for (int i = 0; i < 64; i++)
        ASSERT_OK(link_send_text(end.link, 1, (struct text){bytes, sizeof(bytes)}, &error));
    while (!end.is_closed)
        step(fixture, 10);
    assert_true(list_is_empty(&fixture->hub->borrowers));
    leave(&end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_lease_is_told_of_its_borrower_once_and_only_of_the_port_that_was_reached,
            setup_started, teardown_started),
        cmocka_unit_test_setup_teardown(
            a_borrower_that_vanishes_without_a_word_is_noticed_within_a_minute, setup_started,
            teardown_started),
        cmocka_unit_test_setup_teardown(a_borrower_that_talks_on_is_let_go, setup_started,
                                        teardown_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
