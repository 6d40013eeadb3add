/* covers agent.c */
#include "learn/agent.h"
#include "testing/testing.h"

#include <string.h>

static const struct epoch_task task = {
    .space = {3000, 128, 64, 3008},
    .loss_start = 1,
    .loss_target = 1.0 / 30,
    .price = 1e-4,
    .budget_micro = 300000000,
    .epoch_max = 700,
};

static struct agent *some_agent(void)
{
    struct agent *agent = agent_new((struct epoch_choice){610, 2240}, 7);
    struct random random;
    random_init(&random, 8);
    const size_t count = mlp_parameter_count(mlp_shape(agent->mlp));
    for (size_t i = 0; i < count; i++)
        mlp_parameters(agent->mlp)[i] = 0.2 * random_normal(&random);
    agent->scale.mean[1] = 1.0 / 3;
    agent->offset = -0.1;
    agent->episode_count = 200;
    return agent;
}

TEST(an_agent_is_read_as_it_was_written)
{
    struct error error;
    AUTO(agent) struct agent *agent = some_agent();
    struct buffer bytes AUTO_BUFFER, again AUTO_BUFFER;
    buffer_init(&bytes, AGENT_FILE_BYTES_MAX);
    buffer_init(&again, AGENT_FILE_BYTES_MAX);
    ASSERT_OK(agent_encode(agent, &bytes, &error));
    AUTO(agent) struct agent *read = NULL;
    ASSERT_OK(agent_decode(buffer_text(&bytes), &read, &error));
    ASSERT_OK(agent_encode(read, &again, &error));
    assert_true(text_equal(buffer_text(&bytes), buffer_text(&again)));
    const struct epoch_state job = {.epoch = 50, .loss = 0.4, .left_micro = 200000000};
    const struct epoch_choice one = agent_choose(agent, &task, &job);
    const struct epoch_choice other = agent_choose(read, &task, &job);
    assert_int_equal(one.function_count, other.function_count);
    assert_int_equal(one.memory_mb, other.memory_mb);
}

static void assert_refused(const char *from, const char *to, const char *reason)
{
    struct error error;
    AUTO(agent) struct agent *agent = some_agent();
    struct buffer bytes AUTO_BUFFER, changed AUTO_BUFFER;
    buffer_init(&bytes, AGENT_FILE_BYTES_MAX);
    buffer_init(&changed, AGENT_FILE_BYTES_MAX);
    ASSERT_OK(agent_encode(agent, &bytes, &error));
    const char *whole = buffer_string(&bytes);
    const char *at = strstr(whole, from);
    assert_non_null(at);
    buffer_append(&changed, whole, (size_t)(at - whole));
    buffer_append_string(&changed, to);
    buffer_append_string(&changed, at + strlen(from));
    AUTO(agent) struct agent *read = NULL;
    ASSERT_FAILS(agent_decode(buffer_text(&changed), &read, &error), ERROR_INVALID);
    if (!strstr(error.message, reason))
        fail_msg("\"%s\" is not in \"%s\"", reason, error.message);
    assert_null(read);
}

TEST(what_is_not_an_agent_is_refused_with_its_line)
{
    assert_refused("souk-agent 1", "souk-agent 2", "version 2");
    assert_refused("souk-agent", "agent", "line 1");
    assert_refused("centre 610", "centre 0", "line 3: 0 is no choice");
    assert_refused("layers 9", "layers 8", "layers lead from 9 to 4");
    assert_refused("layers 9 64", "layers 9 64 64 64", "more than 4 layers");
    assert_refused("layers 9 64", "layers 9 100000", "no whole number up to 256");
    assert_refused("deviation 1", "deviation 0", "not above 0");
    assert_refused("offset -0.1", "offset nan", "line 4: no number");
    assert_refused("offset", "offset 1", "line 4: too many numbers");
    assert_refused("mean 0 ", "mean ", "line 5: too few numbers");
    assert_refused("end\n", "", "\"end\" is missing");
    assert_refused("end\n", "end\nmore", "nothing comes after the end");
}

TEST(a_fresh_agent_chooses_about_its_centre)
{
    AUTO(agent) struct agent *agent = agent_new((struct epoch_choice){610, 2240}, 7);
    const struct epoch_state job = {.loss = 1, .left_micro = 300000000};
    const struct epoch_choice choice = agent_choose(agent, &task, &job);
    assert_in_range(choice.function_count, 580, 640);
    assert_in_range(choice.memory_mb, 2176, 2304);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_is_read_as_it_was_written),
        cmocka_unit_test(what_is_not_an_agent_is_refused_with_its_line),
        cmocka_unit_test(a_fresh_agent_chooses_about_its_centre),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
