/* A machine at the other end of a real link, and a crowd at the port.
 * covers connection.c, hub.c, pace.c */
#include "server/hub_fixture_internal.h"

/* ---- A machine that floods --------------------------------------------------------------------
 */

/* The worker's machine, at the other end of a real link. */
struct daemon_end {
    struct fixture *fixture;
    struct hub_machine *machine;
    struct link *link;
    uint64_t sent_bytes;
};

static void end_opened(struct link *link, struct text identity, void *context)
{
    (void)link, (void)identity, (void)context;
}

static void end_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link, (void)type, (void)payload, (void)context;
}

static void end_closed(struct link *link, const struct error *reason, void *context)
{
    (void)link, (void)context;
    fail_msg("the link was closed: %s", reason ? reason->message : "good-bye");
}

static int dial_hub(const struct hub *hub)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(hub_port(hub))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void end_send(struct daemon_end *end, const struct lease_message *message)
{
    struct buffer payload AUTO_BUFFER;
    struct error error;
    buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
    lease_message_encode(message, &payload);
    ASSERT_OK(link_send_text(end->link, (uint16_t)message->type, buffer_text(&payload), &error));
    end->sent_bytes += FRAME_HEADER_SIZE + payload.size;
}

static uint64_t taken_bytes(const struct daemon_end *end)
{
    return end->machine->connection ? link_received_bytes(connection_link(end->machine->connection))
                                    : 0;
}

static void end_open(struct fixture *fixture, struct daemon_end *end)
{
    struct error error;
    char identity[64];
    uint8_t key[LINK_KEY_SIZE];
    struct hub_machine *machine = hub_machine(fixture->hub, fixture->machines[1]);
    *end = (struct daemon_end){.fixture = fixture, .machine = machine};
    snprintf(identity, sizeof(identity), "machine:%" PRIu64 ":1", machine->id);
    keys_machine(fixture->server.keys, machine->id, 1, key);
    const struct link_options options = {
        .loop = fixture->hub->loop,
        .identity = identity,
        .key = key,
        .payload_max = LEASE_MESSAGE_SIZE_MAX,
        .queue_max_bytes = 64 << 20,
        .callbacks = {.on_open = end_opened, .on_frame = end_frame, .on_close = end_closed},
        .context = end};
    ASSERT_OK(link_open_take(&options, dial_hub(fixture->hub), &end->link, &error));
    const struct lease_fence running = {fixture->leases[1].id, fixture->leases[1].fence};
    end_send(end, &(struct lease_message){.type = LEASE_MESSAGE_HELLO,
                                          .hello = {.version = LEASE_MESSAGE_VERSION,
                                                    .machine = machine->id,
                                                    .ceiling = machine->probe.resources,
                                                    .running = &running,
                                                    .running_count = 1}});
    while (!machine->is_welcome)
        step(fixture, 1000);
}

/* Until all that was sent was taken, or no more of it is now. */
static void let_talk(struct daemon_end *end)
{
    struct error error;
    while (taken_bytes(end) < end->sent_bytes && !end->machine->pace.is_paused)
        ASSERT_OK(loop_step(end->fixture->hub->loop, 1000, &error));
}

static uint64_t command_count(struct fixture *fixture)
{
    struct ask all_before = {0};
    run_ask(fixture, &all_before);
    return engine_counts(fixture->server.engine).commands;
}

static enum machine_yield yield_in_core(struct fixture *fixture)
{
    struct ask ask = {.machine = fixture->machines[1]};
    run_ask(fixture, &ask);
    return ask.yield_seen;
}

static void yield(struct daemon_end *end, enum machine_yield yield)
{
    end_send(end, &(struct lease_message){.type = LEASE_MESSAGE_YIELD, .yield = {yield}});
}

TEST(a_flood_of_yields_waits_at_its_sender_and_the_last_one_counts)
{
    enum { FLOOD = 6000 };
    struct fixture *fixture = *state;
    struct daemon_end end;
    end_open(fixture, &end);
    yield(&end, MACHINE_YIELD_FROZEN);
    let_talk(&end);
    assert_int_equal(yield_in_core(fixture), MACHINE_YIELD_FROZEN); /* at once */
    const uint64_t before = command_count(fixture);
    for (int i = 0; i < FLOOD; i++)
        yield(&end, i % 2 ? MACHINE_YIELD_FROZEN : MACHINE_YIELD_NONE);
    yield(&end, MACHINE_YIELD_LOW);
    let_talk(&end);
    assert_true(end.machine->pace.is_paused);
    assert_true(taken_bytes(&end) < end.sent_bytes / 2);
    assert_int_equal(command_count(fixture), before); /* within the second */

    uint64_t seconds = 0;
    while (taken_bytes(&end) < end.sent_bytes) {
        advance(fixture, 1000);
        seconds++;
        step(fixture, 0);
        let_talk(&end);
        assert_true(end.machine->is_told_online);
    }
    assert_in_range(seconds, 5, 60);
    advance(fixture, HUB_TIMER_MS);
    step(fixture, 1000);
    assert_int_equal(yield_in_core(fixture), MACHINE_YIELD_LOW);
    assert_true(command_count(fixture) - before <= 2 * (seconds + 2));
    link_free(end.link);
}

TEST(until_when_a_machine_is_paused_is_known_while_it_is_linked)
{
    struct fixture *fixture = *state;
    const uint64_t machine = fixture->machines[1];
    struct daemon_end end;
    end_open(fixture, &end);
    assert_int_equal(hub_machine_paused_until_ms(fixture->server.hub, machine), 0);
    const int64_t now_ms = clock_utc_ms(fixture->server.clock);
    end_send(&end, &(struct lease_message){.type = LEASE_MESSAGE_YIELD,
                                           .yield = {MACHINE_YIELD_PAUSED, .left_ms = 90000}});
    let_talk(&end);
    assert_int_equal(hub_machine_paused_until_ms(fixture->server.hub, machine), now_ms + 90000);
    yield(&end, MACHINE_YIELD_PAUSED); /* until its owner resumes it */
    let_talk(&end);
    assert_int_equal(hub_machine_paused_until_ms(fixture->server.hub, machine), 0);
    link_free(end.link);
}

TEST(a_machine_whose_words_are_not_taken_is_not_listened_to)
{
    enum { PIECES = 300, MOST = 10 << 20 };
    static const char bytes[LEASE_LOG_SIZE_MAX];
    struct fixture *fixture = *state;
    struct error error;
    struct daemon_end end;
    end_open(fixture, &end);
    for (uint64_t i = 0; i < PIECES; i++)
        end_send(&end, &(struct lease_message){.type = LEASE_MESSAGE_LOG,
                                               .log = {.lease = fixture->leases[1].id,
                                                       .fence = fixture->leases[1].fence,
                                                       .offset = i * sizeof(bytes),
                                                       .bytes = {bytes, sizeof(bytes)}}});
    let_talk(&end); /* the main thread, which writes the logs, does nothing meanwhile */
    assert_true(end.machine->pace.is_paused);
    assert_in_range(taken_bytes(&end), MOST / 2, MOST);
    advance(fixture, 10000); /* longer than a silence may be */
    ASSERT_OK(loop_step(fixture->hub->loop, 0, &error));
    assert_in_range(taken_bytes(&end), MOST / 2, MOST);
    assert_true(end.machine->is_told_online);
    while (taken_bytes(&end) < end.sent_bytes) { /* and now it does */
        advance(fixture, 20);
        step(fixture, 0);
    }
    link_free(end.link);
}

TEST(a_lease_that_runs_is_told_once)
{
    struct fixture *fixture = *state;
    const uint64_t before = command_count(fixture);
    for (int i = 0; i < 100; i++)
        say(fixture, 1, LEASE_RUN_RUNNING);
    assert_int_equal(command_count(fixture), before);
}

TEST(a_machine_gets_in_past_a_crowd_that_says_nothing)
{
    enum { CROWD = 300 };
    struct fixture *fixture = *state;
    struct hub *hub = fixture->hub;
    int crowd[CROWD];
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = dial_hub(hub);
        step(fixture, 1000); /* accepts */
    }
    assert_int_equal(hub->accepting_count, ADMISSION_BLOCK_MAX);
    struct daemon_end end;
    end_open(fixture, &end);
    advance(fixture, HUB_FIRST_BYTE_MS);
    step(fixture, 0);
    assert_int_equal(hub->accepting_count, 0);
    assert_true(end.machine->is_welcome);
    for (int i = 0; i < CROWD; i++)
        close(crowd[i]);
    link_free(end.link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_HUB(a_flood_of_yields_waits_at_its_sender_and_the_last_one_counts),
        WITH_HUB(until_when_a_machine_is_paused_is_known_while_it_is_linked),
        WITH_HUB(a_machine_whose_words_are_not_taken_is_not_listened_to),
        WITH_HUB(a_lease_that_runs_is_told_once),
        WITH_HUB(a_machine_gets_in_past_a_crowd_that_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
