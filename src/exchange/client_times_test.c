/* A worker whose server is played by hand in virtual time: what the time that it stands still is
 * made of. */
#include "exchange/client_internal.h"
#include "testing/testing.h"

#include <string.h>
#include <sys/socket.h>

enum { COUNT = 20, LEASE = 100, FENCE = 4, TERM = 1 };
#define MS INT64_C(1000000)

static const float zero[COUNT];

struct stage {
    struct virtual_clock clock;
    struct loop *loop;
    struct link *link; /* the server's end */
    struct exchange_client *client;
    uint32_t joins, runs;
    pthread_t training;
    float parameters[COUNT];
};

static void key_of(uint8_t out_key[LINK_KEY_SIZE])
{
    memset(out_key, 7, LINK_KEY_SIZE);
}

static int find_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    (void)context, (void)identity;
    key_of(out_key);
    return 0;
}

static void on_open(struct link *link, struct text identity, void *context)
{
    (void)link, (void)identity, (void)context;
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link, (void)payload;
    struct stage *stage = context;
    stage->joins += type == EXCHANGE_JOIN;
    stage->runs += type == EXCHANGE_DATA;
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link, (void)context;
    fail_msg("the worker closed the link: %s", reason ? reason->message : "in good order");
}

static void turn(struct stage *stage)
{
    struct error error;
    ASSERT_OK(loop_step(stage->loop, -1, &error));
}

#define RUN_UNTIL(stage, condition)                                                                \
    while (!(condition))                                                                           \
    turn(stage)

static struct exchange_client_status status_of(struct stage *stage)
{
    struct exchange_client_status status;
    exchange_client_status(stage->client, &status);
    return status;
}

/* The training thread reads the clock under the same lock. */
static void pass(struct stage *stage, int64_t span_ns)
{
    client_lock(stage->client);
    virtual_clock_advance(&stage->clock, span_ns);
    client_unlock(stage->client);
}

static void send_message(struct stage *stage, const struct exchange_message *message)
{
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, EXCHANGE_PAYLOAD_MAX);
    exchange_message_encode(&payload, message);
    ASSERT_OK(link_send_text(stage->link, (uint16_t)message->type, buffer_text(&payload), &error));
}

static void send_model(struct stage *stage, uint64_t push, int64_t held_ns)
{
    send_message(stage,
                 &(struct exchange_message){
                     .type = EXCHANGE_MODEL,
                     .model = {.term = TERM, .push = push, .session = 1, .held_ns = held_ns}});
}

static void send_data(struct stage *stage)
{
    static struct vector_scratch scratch;
    struct vector_sender sender = {0};
    struct vector_run run;
    struct error error;
    vector_send_begin(&sender, zero, COUNT, CODEC_F32, 1, &scratch);
    vector_send_next(&sender, &scratch, &run);
    const struct text parts[2] = {{(const char *)run.head, sizeof run.head}, run.body};
    ASSERT_OK(link_send(stage->link, EXCHANGE_DATA, parts, 2, &error));
}

static void stage_open(struct stage *stage)
{
    struct error error;
    int ends[2];
    *stage = (struct stage){0};
    virtual_clock_init(&stage->clock, 0);
    virtual_clock_advance(&stage->clock, 1000 * MS);
    ASSERT_OK(loop_open(&stage->clock.clock, &stage->loop, &error));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const struct link_options server = {.loop = stage->loop,
                                        .is_server = true,
                                        .find_key = find_key,
                                        .payload_max = EXCHANGE_PAYLOAD_MAX,
                                        .is_bulk = true,
                                        .callbacks = {on_open, on_frame, on_close, NULL},
                                        .context = stage};
    ASSERT_OK(link_open_take(&server, ends[0], &stage->link, &error));
    struct exchange_client_options worker = {
        .loop = stage->loop, .lease = LEASE, .fence = FENCE, .parameter_count = COUNT};
    key_of(worker.key);
    ASSERT_OK(exchange_client_open(&worker, &stage->client, &error));
    exchange_client_begin(stage->client, zero);
    ASSERT_OK(exchange_client_attach_take(stage->client, 0, ends[1], TERM, &error));
    RUN_UNTIL(stage, stage->joins == 1);
    send_message(stage, &(struct exchange_message){.type = EXCHANGE_SETTINGS,
                                                   .settings = {.local_steps = 1, .density = 1}});
    send_model(stage, 0, 0);
    send_data(stage);
    RUN_UNTIL(stage, status_of(stage).state == EXCHANGE_CLIENT_TRAINING);
}

static void stage_close(struct stage *stage)
{
    exchange_client_free(stage->client);
    link_free(stage->link);
    loop_free(stage->loop);
}

static void *step(void *context)
{
    struct stage *stage = context;
    exchange_client_step(stage->client, &(struct exchange_step){.samples = 1, .loss = 1},
                         stage->parameters);
    return NULL;
}

/* One step, whose push has come to the server, and for whose answer the worker stands still. */
static void step_begin(struct stage *stage)
{
    const uint32_t runs = stage->runs;
    assert_int_equal(pthread_create(&stage->training, NULL, step, stage), 0);
    RUN_UNTIL(stage, stage->runs > runs);
}

static void assert_times(struct stage *stage, int64_t waiting_ms, int64_t transfer_ms)
{
    const struct exchange_client_status status = status_of(stage);
    assert_int_equal(status.waiting_ns, waiting_ms * MS);
    assert_int_equal(status.transfer_ns, transfer_ms * MS);
}

TEST(standing_still_is_transfer_but_for_what_the_server_held_the_answer_back)
{
    struct stage stage;
    stage_open(&stage);
    step_begin(&stage);
    pass(&stage, 300 * MS);
    assert_times(&stage, 300, 0); /* as far as the worker knows its push lies there */
    send_model(&stage, 1, 200 * MS);
    RUN_UNTIL(&stage, stage.client->held_until_ns > 0);
    assert_times(&stage, 300, 100); /* it was on its way that long */
    pass(&stage, 50 * MS);
    assert_times(&stage, 350, 150); /* the answer's way */
    send_data(&stage);
    RUN_UNTIL(&stage, status_of(&stage).commits == 1);
    assert_int_equal(pthread_join(stage.training, NULL), 0);
    assert_times(&stage, 350, 150);
    pass(&stage, 40 * MS);
    assert_times(&stage, 350, 150); /* it computes */
    stage_close(&stage);
}

TEST(bytes_are_counted_both_ways_and_those_of_a_link_that_broke_stay)
{
    struct stage stage;
    stage_open(&stage);
    const struct exchange_client_status joined = status_of(&stage);
    assert_in_range(joined.received_bytes, 64, 256);
    step_begin(&stage);
    send_model(&stage, 1, 0);
    send_data(&stage);
    RUN_UNTIL(&stage, status_of(&stage).commits == 1);
    assert_int_equal(pthread_join(stage.training, NULL), 0);
    const struct exchange_client_status pushed = status_of(&stage);
    /* Zeroes take little room. */
    assert_in_range(pushed.sent_bytes - joined.sent_bytes, 64, 256);
    assert_in_range(pushed.received_bytes - joined.received_bytes, 64, 256);
    link_free(TAKE(stage.link));
    RUN_UNTIL(&stage, status_of(&stage).state == EXCHANGE_CLIENT_CONNECTING);
    assert_true(status_of(&stage).sent_bytes >= pushed.sent_bytes);
    assert_true(status_of(&stage).received_bytes >= pushed.received_bytes);
    stage_close(&stage);
}

TEST(who_claims_to_have_held_it_longer_than_it_was_there_is_not_believed)
{
    struct stage stage;
    stage_open(&stage);
    step_begin(&stage);
    pass(&stage, 300 * MS);
    send_model(&stage, 1, 100000 * MS);
    send_data(&stage);
    RUN_UNTIL(&stage, status_of(&stage).commits == 1);
    assert_int_equal(pthread_join(stage.training, NULL), 0);
    assert_times(&stage, 300, 0);
    stage_close(&stage);
}

TEST(a_push_that_is_lost_with_its_link_was_waited_for)
{
    struct stage stage;
    stage_open(&stage);
    step_begin(&stage);
    pass(&stage, 70 * MS);
    link_free(TAKE(stage.link));
    RUN_UNTIL(&stage, status_of(&stage).state == EXCHANGE_CLIENT_CONNECTING);
    assert_int_equal(pthread_join(stage.training, NULL), 0);
    assert_times(&stage, 70, 0);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standing_still_is_transfer_but_for_what_the_server_held_the_answer_back),
        cmocka_unit_test(bytes_are_counted_both_ways_and_those_of_a_link_that_broke_stay),
        cmocka_unit_test(who_claims_to_have_held_it_longer_than_it_was_there_is_not_believed),
        cmocka_unit_test(a_push_that_is_lost_with_its_link_was_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
