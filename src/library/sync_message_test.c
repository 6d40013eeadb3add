#include "library/sync_message.h"
#include "testing/testing.h"

#include <string.h>

static void assert_same(const struct sync_message *message)
{
    struct sync_message again;
    struct error error;
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, SYNC_PAYLOAD_MAX);
    buffer_init(&second, SYNC_PAYLOAD_MAX);
    sync_message_encode(&first, message);
    ASSERT_OK(sync_message_decode((uint16_t)message->type, buffer_text(&first), &again, &error));
    sync_message_encode(&second, &again);
    assert_int_equal(first.size, second.size);
    if (first.size > 0)
        assert_memory_equal(first.data, second.data, first.size);
}

TEST(what_is_said_is_understood)
{
    const struct sync_message messages[] = {
        {.type = SYNC_HELLO, .hello = {1, 3, 77, 2, 5, 9}},
        {.type = SYNC_CALL, .call = {4, SYNC_CALL_ALLREDUCE, 0, 400}},
        {.type = SYNC_CALL, .call = {5, SYNC_CALL_BARRIER, 0, 0}},
        {.type = SYNC_MODEL, .model = {100, 7}},
        {.type = SYNC_WELCOME, .welcome_host = 12},
        {.type = SYNC_RESULT, .result = {4, 400, 3}},
        {.type = SYNC_REFUSED, .refused = {4, TEXT("why")}},
        {.type = SYNC_OPENED, .opened = {12, 4000, 100}},
        {.type = SYNC_DATA, .data = TEXT("bytes")},
        {.type = SYNC_ALIVE},
        {.type = SYNC_BYE},
        {.type = SYNC_WANT_MODEL},
    };
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        assert_same(&messages[i]);
}

static void assert_refused(const struct sync_message *message)
{
    struct sync_message out;
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, SYNC_PAYLOAD_MAX);
    sync_message_encode(&payload, message);
    ASSERT_FAILS(sync_message_decode((uint16_t)message->type, buffer_text(&payload), &out, &error),
                 ERROR_CORRUPT);
}

TEST(limits_hold)
{
    assert_refused(&(struct sync_message){.type = SYNC_HELLO, .hello = {3, 3, 77}});
    assert_refused(&(struct sync_message){.type = SYNC_HELLO, .hello = {0, 2000, 77}});
    assert_refused(&(struct sync_message){.type = SYNC_HELLO, .hello = {0, 3, 0}});
    assert_refused(&(struct sync_message){.type = SYNC_CALL, .call = {0, SYNC_CALL_BARRIER}});
    assert_refused(
        &(struct sync_message){.type = SYNC_CALL, .call = {1, SYNC_CALL_ALLREDUCE, 0, 6}});
    assert_refused(&(struct sync_message){
        .type = SYNC_CALL, .call = {1, SYNC_CALL_BROADCAST, 0, SYNC_ROUND_MAX_BYTES + 1}});
    assert_refused(&(struct sync_message){.type = SYNC_CALL, .call = {1, SYNC_CALL_BARRIER, 0, 4}});
    assert_refused(&(struct sync_message){.type = SYNC_RESULT, .result = {0, 4, 1}});
    assert_refused(&(struct sync_message){.type = SYNC_OPENED, .opened = {0, 1, 1}});
    assert_refused(
        &(struct sync_message){.type = SYNC_MODEL, .model = {(uint64_t)SYNC_MODEL_MAX + 1, 0}});
    assert_refused(&(struct sync_message){.type = SYNC_DATA});
    assert_refused(&(struct sync_message){.type = 99});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_is_understood),
        cmocka_unit_test(limits_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
