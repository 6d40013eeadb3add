/*
 * A lead whose other servers are played by hand: one that answers falsely harms its own range only.
 *
 * covers server_ranges.c, server_cut.c
 */
#include "exchange/exchange_fixture_internal.h"
#include "exchange/range.h"
#include "exchange/vector.h"

enum { SERVERS = 3, LEAD_TERM = 3, FENCE_OF_RANGE = 20 };

struct hand {
    struct link *link;
    uint32_t rank;
    bool has_state;
    uint64_t cut; /* the last it was asked for; 0: none */
    bool may_close, is_closed;
};

static void hand_send(struct hand *hand, const struct exchange_message *message)
{
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, EXCHANGE_PAYLOAD_MAX);
    exchange_message_encode(&payload, message);
    ASSERT_OK(link_send_text(hand->link, (uint16_t)message->type, buffer_text(&payload), &error));
}

static void hand_on_open(struct link *link, struct text identity, void *context)
{
    (void)link, (void)identity;
    struct hand *hand = context;
    hand_send(hand, &(struct exchange_message){.type = EXCHANGE_SERVE,
                                               .serve = {.server = hand->rank,
                                                         .servers = SERVERS,
                                                         .parameter_count = FEATURES,
                                                         .term = LEAD_TERM}});
}

static void hand_on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link;
    struct hand *hand = context;
    struct exchange_message message;
    struct error error;
    hand->has_state = hand->has_state || type == EXCHANGE_DATA;
    if (type != EXCHANGE_ACT)
        return;
    ASSERT_OK(exchange_message_decode(type, payload, &message, &error));
    if (message.act.kind == EXCHANGE_ACT_CUT)
        hand->cut = message.act.number;
}

static void hand_on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link;
    struct hand *hand = context;
    if (!hand->may_close)
        fail_msg("the lead left: %s", reason ? reason->message : "it closed the link");
    hand->is_closed = true;
}

static void hand_open(struct bench *bench, struct hand *hand, uint32_t rank)
{
    struct error error;
    uint8_t key[LINK_KEY_SIZE];
    char identity[EXCHANGE_IDENTITY_SIZE];
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    bench->server_fences[rank] = FENCE_OF_RANGE;
    exchange_identity_format(lease_of_server(rank), FENCE_OF_RANGE, identity);
    key_of(lease_of_server(rank), key);
    *hand = (struct hand){.rank = rank};
    const struct link_options options = {
        .loop = bench->loop,
        .identity = identity,
        .key = key,
        .is_bulk = true,
        .callbacks = {hand_on_open, hand_on_frame, hand_on_close, NULL},
        .context = hand,
    };
    ASSERT_OK(exchange_server_attach_range_take(bench->server, ends[0], &error));
    ASSERT_OK(link_open_take(&options, ends[1], &hand->link, &error));
}

/* Its part of the cut it was asked for: this value throughout. */
static void hand_send_part(struct hand *hand, float value)
{
    struct error error;
    const struct range part = range_of(FEATURES, SERVERS, hand->rank);
    static struct vector_scratch scratch;
    struct vector_sender sender = {0};
    struct vector_run run;
    float values[FEATURES];
    for (size_t i = 0; i < part.count; i++)
        values[i] = value;
    hand_send(hand, &(struct exchange_message){.type = EXCHANGE_STATE, .state.cut = hand->cut});
    vector_send_begin(&sender, values, part.count, CODEC_F32, 1, &scratch);
    vector_send_next(&sender, &scratch, &run);
    const struct text parts[2] = {{(const char *)run.head, sizeof run.head}, run.body};
    ASSERT_OK(link_send(hand->link, EXCHANGE_DATA, parts, 2, &error));
}

static void turn(struct bench *bench)
{
    struct error error;
    ASSERT_OK(loop_step(bench->loop, -1, &error));
}

TEST(a_part_of_a_cut_counts_once)
{
    struct error error;
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "tap");
    struct hand hands[SERVERS];
    options.servers = SERVERS;
    options.term = LEAD_TERM;
    ASSERT_OK(exchange_server_open(&options, &bench->server, &error));
    for (uint32_t rank = 1; rank < SERVERS; rank++)
        hand_open(bench, &hands[rank], rank);
    while (!hands[1].has_state || !hands[2].has_state)
        turn(bench);
    exchange_server_stop(bench->server, "enough", /* grace_ms= */ 3600000);
    while (hands[1].cut == 0 || hands[2].cut == 0)
        turn(bench);
    hand_send_part(&hands[1], 1);
    hand_send_part(&hands[1], 7);
    /* What follows it tells that both were looked at. */
    hand_send(&hands[1],
              &(struct exchange_message){.type = EXCHANGE_SERVED, .served = {.received_bytes = 5}});
    while (exchange_server_status(bench->server)->received_bytes == 0)
        turn(bench);
    hand_send_part(&hands[2], 2);
    while (!bench->has_ended)
        turn(bench);
    for (uint32_t rank = 1; rank < SERVERS; rank++) {
        const struct range part = range_of(FEATURES, SERVERS, rank);
        for (size_t i = part.first; i < part.first + part.count; i++)
            assert_true(bench->final[i] == (float)rank);
        link_free(hands[rank].link);
    }
}

struct lively {
    struct hand hands[SERVERS];
    struct loop_timer *timer;
};

/* They say that they live, and no more. */
static void say_alive(void *context)
{
    struct lively *lively = context;
    for (uint32_t rank = 1; rank < SERVERS; rank++)
        if (!lively->hands[rank].is_closed)
            hand_send(&lively->hands[rank], &(struct exchange_message){.type = EXCHANGE_SERVED});
    loop_timer_start(lively->timer, 20); /* clock: well below silent_ms */
}

TEST(a_server_that_keeps_its_range_holds_nobody_up)
{
    struct error error;
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "tap");
    struct lively lively = {0};
    options.servers = SERVERS;
    options.term = LEAD_TERM;
    options.silent_ms = 300;
    ASSERT_OK(exchange_server_open(&options, &bench->server, &error));
    for (uint32_t rank = 1; rank < SERVERS; rank++)
        hand_open(bench, &lively.hands[rank], rank);
    while (!lively.hands[1].has_state || !lively.hands[2].has_state)
        turn(bench);
    lively.timer = loop_timer_new(bench->loop, say_alive, &lively);
    loop_timer_start(lively.timer, 0);
    exchange_server_stop(bench->server, "enough", /* grace_ms= */ 3600000);
    while (lively.hands[1].cut == 0 || lively.hands[2].cut == 0)
        turn(bench);
    hand_send_part(&lively.hands[1], 1);
    lively.hands[2].may_close = true;
    while (!lively.hands[2].is_closed)
        turn(bench);
    lively.hands[1].may_close = true; /* the lead ends with the last whole model */
    while (!bench->has_ended)
        turn(bench);
    loop_timer_free(lively.timer);
    for (uint32_t rank = 1; rank < SERVERS; rank++)
        link_free(lively.hands[rank].link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_of_a_cut_counts_once),
        cmocka_unit_test(a_server_that_keeps_its_range_holds_nobody_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
