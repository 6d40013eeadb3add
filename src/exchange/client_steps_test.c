/* Steps that a worker counts before any server has answered. */
#include "exchange/client.h"
#include "testing/testing.h"

enum { PARAMETERS = 4 };

static struct exchange_client *open_client(struct loop **out_loop)
{
    struct error error = {0};
    struct exchange_client *client = NULL;
    static const float parameters[PARAMETERS];
    ASSERT_OK(loop_open(&clock_system, out_loop, &error));
    const struct exchange_client_options options = {
        .loop = *out_loop, .lease = 1, .fence = 1, .parameter_count = PARAMETERS, .local_steps = 8};
    ASSERT_OK(exchange_client_open(&options, &client, &error));
    exchange_client_begin(client, parameters);
    return client;
}

TEST(steps_made_in_one_go_count_each)
{
    struct loop *loop = NULL;
    struct exchange_client *client = open_client(&loop);
    struct exchange_client_status status;
    const struct exchange_step five = {.steps = 5, .samples = 160, .loss = 2};
    assert_false(exchange_client_count(client, &five)); /* a push is due after eight */
    exchange_client_status(client, &status);
    assert_int_equal(status.steps, 5);
    assert_int_equal(status.samples, 160);
    assert_true(status.loss == 2);
    assert_true(exchange_client_count(client, &five));
    exchange_client_status(client, &status);
    assert_int_equal(status.steps, 10);
    assert_int_equal(status.samples, 320);
    exchange_client_free(client);
    loop_free(loop);
}

TEST(a_step_that_says_nothing_is_one)
{
    struct loop *loop = NULL;
    struct exchange_client *client = open_client(&loop);
    struct exchange_client_status status;
    const struct exchange_step one = {.samples = 32, .loss = 1};
    for (int i = 0; i < 7; i++)
        assert_false(exchange_client_count(client, &one));
    assert_true(exchange_client_count(client, &one));
    exchange_client_status(client, &status);
    assert_int_equal(status.steps, 8);
    exchange_client_free(client);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_made_in_one_go_count_each),
        cmocka_unit_test(a_step_that_says_nothing_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
