/* The server of a range, with a lead and a worker that are played by hand: who breaks the protocol
 * is dropped, and nothing else happens. */
#include "exchange/exchange_fixture_internal.h"
#include "exchange/range_server.h"
#include "exchange/vector.h"

#include <unistd.h>

enum { SERVERS = 2, COUNT = FEATURES / SERVERS, FENCE_OF_RANGE = 20, LEAD_TERM = 3 };

struct hand {
    struct link *link;
    bool is_open, is_closed;
    uint32_t arrived, gone, states, models, offers;
    struct exchange_arrived last;
    float values[COUNT];
    struct vector_receiver incoming; /* of the last state */
};

struct stage {
    struct bench *bench;
    struct range_server *server;
    struct hand lead, worker;
    uint32_t drops;
    char drop_reason[256];
};

static void hand_on_open(struct link *link, struct text identity, void *context)
{
    (void)link, (void)identity;
    ((struct hand *)context)->is_open = true;
}

static void hand_on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link;
    struct hand *hand = context;
    struct exchange_message message;
    struct error error;
    if (type == EXCHANGE_DATA) {
        static struct vector_scratch scratch;
        ASSERT_OK(vector_take(&hand->incoming, payload, &scratch, &error));
        return;
    }
    ASSERT_OK(exchange_message_decode(type, payload, &message, &error));
    hand->arrived += type == EXCHANGE_ARRIVED;
    hand->gone += type == EXCHANGE_GONE;
    hand->states += type == EXCHANGE_STATE;
    hand->models += type == EXCHANGE_MODEL;
    hand->offers += type == EXCHANGE_OFFER;
    if (type == EXCHANGE_STATE)
        hand->incoming = (struct vector_receiver){.values = hand->values, .count = COUNT};
    if (type == EXCHANGE_ARRIVED)
        hand->last = message.arrived;
}

static void hand_on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link, (void)reason;
    ((struct hand *)context)->is_closed = true;
}

static int lead_find_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    (void)context, (void)identity;
    key_of(lease_of_server(1), out_key);
    return 0;
}

static void on_range_drop(void *context, uint64_t lease, const struct error *reason)
{
    (void)lease;
    struct stage *stage = context;
    stage->drops++;
    snprintf(stage->drop_reason, sizeof stage->drop_reason, "%s", reason->message);
}

static int find_range_peer(void *context, uint64_t lease, uint64_t fence,
                           struct exchange_peer *out_peer)
{
    return find_peer(((struct stage *)context)->bench, lease, fence, out_peer);
}

static void turn(struct stage *stage)
{
    struct error error;
    ASSERT_OK(loop_step(stage->bench->loop, -1, &error));
}

#define RUN_UNTIL(stage, condition)                                                                \
    while (!(condition))                                                                           \
    turn(stage)

static void hand_send(struct hand *hand, const struct exchange_message *message)
{
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, 4096);
    exchange_message_encode(&payload, message);
    ASSERT_OK(link_send_text(hand->link, (uint16_t)message->type, buffer_text(&payload), &error));
}

/* A run from the first float on, in which the last has these bits. */
static void send_run(struct hand *hand, size_t count, uint32_t bits)
{
    char run[8 + FEATURES * sizeof(float)] = {0};
    struct error error;
    const size_t size = 8 + count * sizeof(float);
    memcpy(run + size - sizeof bits, &bits, sizeof bits);
    ASSERT_OK(link_send_text(hand->link, EXCHANGE_DATA, (struct text){run, size}, &error));
}

static void act(struct stage *stage, const struct exchange_act *act)
{
    hand_send(&stage->lead, &(struct exchange_message){.type = EXCHANGE_ACT, .act = *act});
}

static void lead_begin(struct stage *stage)
{
    struct error error;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const struct link_options options = {
        .loop = stage->bench->loop,
        .is_server = true,
        .find_key = lead_find_key,
        .is_bulk = true,
        .callbacks = {hand_on_open, hand_on_frame, hand_on_close, NULL},
        .context = &stage->lead,
    };
    link_free(TAKE(stage->lead.link));
    stage->lead = (struct hand){0};
    ASSERT_OK(link_open_take(&options, ends[0], &stage->lead.link, &error));
    ASSERT_OK(range_server_attach_lead_take(stage->server, ends[1], LEAD_TERM, &error));
    RUN_UNTIL(stage, stage->lead.is_open);
    hand_send(&stage->lead, &(struct exchange_message){.type = EXCHANGE_STATE});
    send_run(&stage->lead, COUNT, 0);
    RUN_UNTIL(stage, range_server_status(stage->server).has_lead);
}

static void worker_begin(struct stage *stage)
{
    struct error error;
    uint8_t key[LINK_KEY_SIZE];
    key_of(lease_of(0), key);
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const struct link_options options = {
        .loop = stage->bench->loop,
        .identity = "lease:100:4",
        .key = key,
        .is_bulk = true,
        .callbacks = {hand_on_open, hand_on_frame, hand_on_close, NULL},
        .context = &stage->worker,
    };
    link_free(TAKE(stage->worker.link));
    stage->worker = (struct hand){0};
    ASSERT_OK(link_open_take(&options, ends[1], &stage->worker.link, &error));
    ASSERT_OK(range_server_attach_take(stage->server, ends[0], &error));
    RUN_UNTIL(stage, stage->worker.is_open);
}

static const struct exchange_message join = {.type = EXCHANGE_JOIN,
                                             .join = {.parameter_count = FEATURES,
                                                      .term = FENCE_OF_RANGE,
                                                      .session = 1,
                                                      .server = 1,
                                                      .servers = SERVERS}};
static const struct exchange_message push = {
    .type = EXCHANGE_PUSH, .push = {.term = FENCE_OF_RANGE, .number = 7, .steps = 1}};

/* The worker has joined, and was answered. */
static void worker_admit(struct stage *stage)
{
    worker_begin(stage);
    const uint32_t before = stage->lead.arrived;
    hand_send(&stage->worker, &join);
    RUN_UNTIL(stage, stage->lead.arrived > before);
    assert_int_equal(stage->lead.last.push, 0);
    act(stage, &(struct exchange_act){
                   .kind = EXCHANGE_ACT_ADMIT, .number = 1, .lease = 100, .fence = FENCE});
    act(stage, &(struct exchange_act){.kind = EXCHANGE_ACT_ANSWER, .density = 1, .is_offer = true});
    RUN_UNTIL(stage, stage->worker.offers == 1);
}

static struct stage *stage_new(void)
{
    struct error error;
    struct stage *stage = calloc(1, sizeof *stage);
    assert_non_null(stage);
    stage->bench = bench_new();
    struct range_server_options options = {
        .loop = stage->bench->loop,
        .lease = lease_of_server(1),
        .fence = FENCE_OF_RANGE,
        .server = 1,
        .servers = SERVERS,
        .parameter_count = FEATURES,
        .find_peer = find_range_peer,
        .on_drop = on_range_drop,
        .context = stage,
    };
    key_of(options.lease, options.key);
    ASSERT_OK(range_server_open(&options, &stage->server, &error));
    lead_begin(stage);
    return stage;
}

static void stage_free(struct stage *stage)
{
    if (!stage)
        return;
    link_free(stage->lead.link);
    link_free(stage->worker.link);
    range_server_free(stage->server);
    bench_free(stage->bench);
    free(stage);
}
DEFINE_AUTO(stage);

static void assert_dropped(struct stage *stage, const struct hand *hand, const char *reason)
{
    RUN_UNTIL(stage, hand->is_closed && stage->drops > 0);
    if (!strstr(stage->drop_reason, reason))
        fail_msg("dropped with \"%s\", not \"%s\"", stage->drop_reason, reason);
    stage->drops = 0;
}

TEST(a_worker_that_breaks_the_protocol_is_dropped)
{
    AUTO(stage) struct stage *stage = stage_new();
    struct exchange_message other = join;
    other.join.server = 0;
    worker_begin(stage);
    hand_send(&stage->worker, &other);
    assert_dropped(stage, &stage->worker, "another range");
    other = join;
    other.join.rank = 1;
    worker_begin(stage);
    hand_send(&stage->worker, &other);
    assert_dropped(stage, &stage->worker, "not its own");
    other = join;
    other.join.term = LEAD_TERM;
    worker_begin(stage);
    hand_send(&stage->worker, &other);
    assert_dropped(stage, &stage->worker, "another parameter server");
    worker_begin(stage);
    hand_send(&stage->worker, &(struct exchange_message){.type = EXCHANGE_ACT});
    assert_dropped(stage, &stage->worker, "no worker sends");
    worker_begin(stage);
    hand_send(&stage->worker, &join);
    hand_send(&stage->worker, &join);
    assert_dropped(stage, &stage->worker, "second join");
}

TEST(a_slice_that_is_not_the_ranges_is_refused_and_the_lead_told)
{
    AUTO(stage) struct stage *stage = stage_new();
    worker_admit(stage);
    hand_send(&stage->worker, &push);
    send_run(&stage->worker, FEATURES, 0); /* of the whole model */
    assert_dropped(stage, &stage->worker, "no run of 10 floats");
    RUN_UNTIL(stage, stage->lead.gone == 1);
    act(stage, &(struct exchange_act){.kind = EXCHANGE_ACT_PART});
    worker_admit(stage);
    hand_send(&stage->worker, &push);
    send_run(&stage->worker, COUNT, 0x7f800000);
    assert_dropped(stage, &stage->worker, "not finite");
    act(stage, &(struct exchange_act){.kind = EXCHANGE_ACT_PART});
    worker_admit(stage);
    hand_send(&stage->worker, &push);
    hand_send(&stage->worker, &push); /* one slice at a time */
    assert_dropped(stage, &stage->worker, "out of turn");
}

/* It had come whole, and the lead was told: it counts. */
TEST(a_slice_outlives_its_workers_link_until_the_lead_parts)
{
    AUTO(stage) struct stage *stage = stage_new();
    worker_admit(stage);
    const uint32_t before = stage->lead.arrived;
    hand_send(&stage->worker, &push);
    send_run(&stage->worker, COUNT, 0x3f800000); /* 1 */
    RUN_UNTIL(stage, stage->lead.arrived > before);
    assert_int_equal(stage->lead.last.push, 7);
    link_free(TAKE(stage->worker.link));
    RUN_UNTIL(stage, stage->lead.gone == 1);
    act(stage, &(struct exchange_act){.kind = EXCHANGE_ACT_APPLY, .number = 7, .weight = 1});
    act(stage, &(struct exchange_act){.kind = EXCHANGE_ACT_PART});
    act(stage, &(struct exchange_act){.kind = EXCHANGE_ACT_CUT, .number = 1});
    RUN_UNTIL(stage, stage->lead.states == 1 && stage->lead.incoming.done == COUNT);
    assert_true(stage->lead.values[COUNT - 1] == 1.0F);
    assert_false(stage->lead.is_closed);
    assert_int_equal(range_server_status(stage->server).member_count, 0);
}

TEST(a_lead_that_asks_for_what_cannot_be_is_left)
{
    static const struct exchange_act acts[] = {
        {.kind = EXCHANGE_ACT_APPLY, .number = 7, .weight = 1},
        {.kind = EXCHANGE_ACT_GATHER, .number = 7, .weight = 1},
        {.kind = EXCHANGE_ACT_SCALE, .number = 7, .weight = 1},
        {.kind = EXCHANGE_ACT_FOLD},
        {.kind = EXCHANGE_ACT_RETURN},
        {.kind = EXCHANGE_ACT_KEEP, .worker = UINT32_MAX},
    };
    AUTO(stage) struct stage *stage = stage_new();
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        act(stage, &acts[i]);
        RUN_UNTIL(stage, stage->lead.is_closed);
        assert_false(range_server_status(stage->server).has_lead);
        lead_begin(stage);
    }
    hand_send(&stage->lead,
              &(struct exchange_message){.type = EXCHANGE_STATE}); /* a second range */
    RUN_UNTIL(stage, stage->lead.is_closed);
}

TEST(a_stream_to_a_lead_that_was_replaced_changes_nothing)
{
    AUTO(stage) struct stage *stage = stage_new();
    struct error error;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_FAILS(range_server_attach_lead_take(stage->server, ends[1], LEAD_TERM - 1, &error),
                 ERROR_REFUSED);
    assert_true(range_server_status(stage->server).has_lead);
    assert_int_equal(stage->drops, 0);
    close(ends[0]);
    close(ends[1]); /* it was not taken */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_breaks_the_protocol_is_dropped),
        cmocka_unit_test(a_slice_that_is_not_the_ranges_is_refused_and_the_lead_told),
        cmocka_unit_test(a_slice_outlives_its_workers_link_until_the_lead_parts),
        cmocka_unit_test(a_lead_that_asks_for_what_cannot_be_is_left),
        cmocka_unit_test(a_stream_to_a_lead_that_was_replaced_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
