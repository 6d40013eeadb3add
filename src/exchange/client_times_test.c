/* A worker whose server is played by hand: what the time that it stands still is made of. */
#include "exchange/client_stage_internal.h"

static const struct exchange_settings by_step = {.local_steps = 1, .density = 1};

/* The training thread reads the clock under the same lock. */
static void pass(struct stage *stage, int64_t span_ns)
{
    client_lock(stage->client);
    virtual_clock_advance(&stage->clock, span_ns);
    client_unlock(stage->client);
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
    stage_open(&stage, &by_step);
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
    stage_open(&stage, &by_step);
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
    stage_open(&stage, &by_step);
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
    stage_open(&stage, &by_step);
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
