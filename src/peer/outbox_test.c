/* The outbox over a real link on a socketpair, and without one. */
#include "net/link.h"
#include "net/loop.h"
#include "peer/outbox.h"
#include "testing/testing.h"

#include <sys/socket.h>

enum { SECOND = 1000000000 };

static const uint8_t key[LINK_KEY_SIZE] = {1, 2, 3};

struct market {
    struct loop *loop;
    struct link *server, *client;
    bool is_open;
    uint16_t types[64];
    size_t count;
};

static void on_open(struct link *link, struct text identity, void *context)
{
    (void)link;
    (void)identity;
    ((struct market *)context)->is_open = true;
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    struct market *market = context;
    (void)link;
    (void)payload;
    assert_true(market->count < 64);
    market->types[market->count++] = type;
}

static void on_client_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link;
    (void)type;
    (void)payload;
    (void)context;
    fail();
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link;
    (void)reason;
    (void)context;
}

static int find_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    (void)context;
    (void)identity;
    memcpy(out_key, key, LINK_KEY_SIZE);
    return 0;
}

static void run(struct market *market)
{
    struct error error = {0};
    for (int i = 0; i < 20; i++)
        ASSERT_OK(loop_step(market->loop, 5, &error));
}

static void market_open(struct market *market)
{
    struct error error = {0};
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    if (!market->loop)
        ASSERT_OK(loop_open(&clock_system, &market->loop, &error));
    const struct link_options server = {
        .loop = market->loop,
        .is_server = true,
        .find_key = find_key,
        .callbacks = {.on_open = on_open, .on_frame = on_frame, .on_close = on_close},
        .context = market};
    const struct link_options client = {
        .loop = market->loop,
        .identity = "machine:1:1",
        .key = key,
        .callbacks = {.on_open = on_open, .on_frame = on_client_frame, .on_close = on_close},
        .context = market};
    ASSERT_OK(link_open_take(&server, pair[0], &market->server, &error));
    ASSERT_OK(link_open_take(&client, pair[1], &market->client, &error));
    run(market);
    assert_true(market->is_open);
}

static int carry(void *context, uint16_t type, struct text payload, struct error *error)
{
    return link_send_text(context, type, payload, error);
}

static void attach(struct outbox *outbox, struct market *market, int64_t now_ns)
{
    outbox_attach(outbox, &(struct outbox_carrier){carry, market->client}, now_ns);
}

static void market_close(struct market *market)
{
    link_free(market->client);
    link_free(market->server);
    market->count = 0;
    market->is_open = false;
}

static void send_state(struct outbox *outbox, int64_t now_ns)
{
    const struct lease_message message = {.type = LEASE_MESSAGE_STATE, .state = {.lease = 1}};
    outbox_send(outbox, &message, now_ns);
}

static void send_meter(struct outbox *outbox, int64_t now_ns)
{
    const struct lease_message message = {.type = LEASE_MESSAGE_METER, .meter = {.lease = 1}};
    outbox_send(outbox, &message, now_ns);
}

static void send_log(struct outbox *outbox, int64_t now_ns)
{
    static char bytes[LEASE_LOG_SIZE_MAX];
    const struct lease_message message = {.type = LEASE_MESSAGE_LOG,
                                          .log = {.lease = 1, .bytes = {bytes, sizeof(bytes)}}};
    outbox_send(outbox, &message, now_ns);
}

TEST(what_was_sent_while_away_arrives_in_order)
{
    AUTO(outbox) struct outbox *outbox = outbox_new();
    struct market market = {0};
    send_state(outbox, 0);
    send_log(outbox, 0);
    send_meter(outbox, 0);
    outbox_send(outbox, &(struct lease_message){.type = LEASE_MESSAGE_HEARTBEAT}, 0);
    assert_int_equal(outbox_waiting_count(outbox), 2); /* neither heartbeats nor logs wait here */
    market_open(&market);
    attach(outbox, &market, 0);
    run(&market);
    assert_int_equal(market.count, 2);
    assert_int_equal(market.types[0], LEASE_MESSAGE_STATE);
    assert_int_equal(market.types[1], LEASE_MESSAGE_METER);
    assert_int_equal(outbox_waiting_count(outbox), 0);
    outbox_detach(outbox);
    market_close(&market);
    loop_free(market.loop);
}

TEST(what_an_old_link_may_have_lost_is_sent_again_on_a_new_one)
{
    AUTO(outbox) struct outbox *outbox = outbox_new();
    struct market market = {0};
    market_open(&market);
    attach(outbox, &market, 0);
    send_meter(outbox, 0);
    send_state(outbox, (int64_t)30 * SECOND);
    send_log(outbox, (int64_t)61 * SECOND);
    outbox_detach(outbox);
    market_close(&market);
    send_meter(outbox, (int64_t)90 * SECOND);

    market_open(&market);
    attach(outbox, &market, (int64_t)600 * SECOND);
    run(&market);
    /* The first meter was more than a minute old when the link broke; how long it stayed away does
     * not matter. */
    assert_int_equal(market.count, 2);
    assert_int_equal(market.types[0], LEASE_MESSAGE_STATE);
    assert_int_equal(market.types[1], LEASE_MESSAGE_METER);
    outbox_detach(outbox);
    market_close(&market);
    loop_free(market.loop);
}

static int refuse(void *context, uint16_t type, struct text payload, struct error *error)
{
    (void)context;
    (void)type;
    (void)payload;
    return error_set(error, ERROR_EXHAUSTED, "full");
}

TEST(logs_that_a_carrier_did_not_take_go_with_it_and_states_stay)
{
    AUTO(outbox) struct outbox *outbox = outbox_new();
    outbox_attach(outbox, &(struct outbox_carrier){refuse, NULL}, 0);
    send_state(outbox, 0);
    assert_true(outbox_has_room(outbox));
    for (int i = 0; i < OUTBOX_ROOM_BYTES / LEASE_LOG_SIZE_MAX; i++)
        send_log(outbox, 0);
    send_meter(outbox, 0);
    assert_false(outbox_has_room(outbox)); /* its source waits */
    assert_int_equal(outbox_waiting_count(outbox), 2 + OUTBOX_ROOM_BYTES / LEASE_LOG_SIZE_MAX);
    outbox_detach(outbox);
    assert_true(outbox_has_room(outbox));
    assert_int_equal(outbox_waiting_count(outbox), 2);
    struct market market = {0};
    market_open(&market);
    attach(outbox, &market, 0);
    run(&market);
    assert_int_equal(market.types[0], LEASE_MESSAGE_STATE);
    assert_int_equal(market.types[market.count - 1], LEASE_MESSAGE_METER);
    outbox_detach(outbox);
    market_close(&market);
    loop_free(market.loop);
}

TEST(meters_outlast_all_that_is_not_owed)
{
    enum { METERS = 40000 };
    AUTO(outbox) struct outbox *outbox = outbox_new();
    for (int i = 0; i < METERS; i++)
        send_meter(outbox, 0);
    send_log(outbox, 0);
    assert_true(outbox_is_full(outbox));
    assert_int_equal(outbox_waiting_count(outbox), METERS);
}

static int count_bytes(void *context, uint16_t type, struct text payload, struct error *error)
{
    (void)type;
    (void)error;
    *(size_t *)context += payload.size;
    return 0;
}

TEST(what_is_kept_to_be_sent_again_has_a_limit)
{
    enum { STATES = 1000000 };
    AUTO(outbox) struct outbox *outbox = outbox_new();
    size_t taken = 0, again = 0;
    outbox_attach(outbox, &(struct outbox_carrier){count_bytes, &taken}, 0);
    for (int i = 0; i < STATES; i++)
        send_state(outbox, 0);
    assert_true(taken > OUTBOX_SENT_BYTES_MAX);
    outbox_detach(outbox);
    outbox_attach(outbox, &(struct outbox_carrier){count_bytes, &again}, 0);
    assert_true(again > 0 && again <= OUTBOX_SENT_BYTES_MAX);
    assert_int_equal(outbox_waiting_count(outbox), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sent_while_away_arrives_in_order),
        cmocka_unit_test(what_an_old_link_may_have_lost_is_sent_again_on_a_new_one),
        cmocka_unit_test(what_is_kept_to_be_sent_again_has_a_limit),
        cmocka_unit_test(meters_outlast_all_that_is_not_owed),
        cmocka_unit_test(logs_that_a_carrier_did_not_take_go_with_it_and_states_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
