#include "runtime/muster_message.h"
#include "testing/testing.h"

#include <string.h>

static void assert_same_again(const struct muster_message *message, const char *expected)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct muster_message back;
    struct buffer line AUTO_BUFFER, again AUTO_BUFFER;
    buffer_init(&line, MUSTER_LINE_MAX);
    buffer_init(&again, MUSTER_LINE_MAX);
    muster_message_encode(message, &line);
    assert_string_equal(buffer_string(&line), expected);
    ASSERT_OK(
        muster_message_decode(arena, (struct text){expected, strlen(expected) - 1}, &back, &error));
    muster_message_encode(&back, &again);
    assert_string_equal(buffer_string(&again), expected);
}

TEST(each_kind_is_one_line_of_json_and_reads_back)
{
    struct muster_rank members[] = {{.rank = 0, .cores_milli = 500, .name = "heron"},
                                    {.rank = 3, .cores_milli = 1000, .gpus_milli = 2000}};
    assert_same_again(&(struct muster_message){.kind = MUSTER_MESSAGE_ALIVE},
                      "{\"kind\":\"alive\"}\n");
    assert_same_again(&(struct muster_message){.kind = MUSTER_MESSAGE_JOIN, .rank = members[0]},
                      "{\"kind\":\"join\",\"rank\":{\"rank\":0,\"cores_milli\":500,\"name\":"
                      "\"heron\"}}\n");
    assert_same_again(
        &(struct muster_message){.kind = MUSTER_MESSAGE_START, .round = 2, .members = {members, 2}},
        "{\"kind\":\"start\",\"round\":2,\"members\":[{\"rank\":0,\"cores_milli\":500,\"name\":"
        "\"heron\"},{\"rank\":3,\"cores_milli\":1000,\"gpus_milli\":2000,\"name\":\"\"}]}\n");
    assert_same_again(
        &(struct muster_message){.kind = MUSTER_MESSAGE_EXIT, .round = 1, .status = 143},
        "{\"kind\":\"exit\",\"round\":1,\"status\":143}\n");
    assert_same_again(&(struct muster_message){.kind = MUSTER_MESSAGE_END, .is_ok = true},
                      "{\"kind\":\"end\",\"is_ok\":true}\n");
    assert_same_again(&(struct muster_message){.kind = MUSTER_MESSAGE_DONE},
                      "{\"kind\":\"done\",\"members\":[]}\n");
    assert_same_again(&(struct muster_message){.kind = MUSTER_MESSAGE_LAUNCHED, .id = 5},
                      "{\"kind\":\"launched\",\"id\":5,\"status\":0}\n");
}

TEST(what_is_no_message_is_refused)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct muster_message back;
    static const char *const wrong[] = {
        "",
        "{}",
        "alive",
        "{\"kind\":\"alive\"",
        "{\"kind\":\"alive\",\"kind\":\"stop\"}",
        "{\"kind\":\"alive\",\"round\":1}",
        "{\"kind\":\"stop\"}",
        "{\"kind\":\"exit\",\"round\":1,\"status\":256}",
        "{\"kind\":\"exit\",\"round\":-1,\"status\":0}",
        "{\"kind\":\"join\",\"rank\":{\"rank\":1024,\"cores_milli\":1,\"name\":\"\"}}",
        "{\"kind\":\"join\",\"rank\":{\"rank\":1,\"cores_milli\":0,\"name\":\"\"}}",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ASSERT_FAILS(muster_message_decode(arena, text_of(wrong[i]), &back, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_one_line_of_json_and_reads_back),
        cmocka_unit_test(what_is_no_message_is_refused),
    };
    return cmocka_run_group_tests_name("muster_message", tests, NULL, NULL);
}
