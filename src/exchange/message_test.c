/*
 * Messages there and back, and what is refused.
 *
 * covers message.c, message_range.c
 */
#include "exchange/message.h"
#include "testing/testing.h"

#include <math.h>

static void assert_same(const struct exchange_message *message)
{
    struct error error;
    struct buffer first AUTO_BUFFER;
    struct buffer second AUTO_BUFFER;
    buffer_init(&first, 4096);
    buffer_init(&second, 4096);
    exchange_message_encode(&first, message);
    struct exchange_message got;
    ASSERT_OK(exchange_message_decode((uint16_t)message->type, buffer_text(&first), &got, &error));
    assert_int_equal(got.type, message->type);
    exchange_message_encode(&second, &got);
    assert_true(text_equal(buffer_text(&first), buffer_text(&second)));
}

TEST(every_message_comes_back_as_it_went)
{
    assert_same(
        &(struct exchange_message){.type = EXCHANGE_JOIN, .join = {2, 20000, 61706, 0, 7, 1, 3}});
    assert_same(&(struct exchange_message){.type = EXCHANGE_PUSH,
                                           .push = {.number = 3,
                                                    .steps = 40,
                                                    .samples = 1280,
                                                    .loss = 0.5,
                                                    .compute_ns = 1,
                                                    .commit_ns = 2}});
    assert_same(&(struct exchange_message){.type = EXCHANGE_PROGRESS, .progress = {10, 320, 99.5}});
    assert_same(&(struct exchange_message){.type = EXCHANGE_LEAVE});
    assert_same(&(struct exchange_message){.type = EXCHANGE_LEAVE, .has_diverged = true});
    assert_same(&(struct exchange_message){
        .type = EXCHANGE_MODEL, .model = {.term = 7, .version = 3, .push = 9, .held_ns = 55}});
    assert_same(&(struct exchange_message){.type = EXCHANGE_OFFER, .offer = {7, 3}});
    assert_same(&(struct exchange_message){.type = EXCHANGE_WANT});
    assert_same(&(struct exchange_message){.type = EXCHANGE_SETTINGS,
                                           .settings = {.local_steps = 1, .density = 1}});
    assert_same(&(struct exchange_message){
        .type = EXCHANGE_SETTINGS, .settings = {.local_steps = 1, .is_plain = true, .density = 1}});
    assert_same(&(struct exchange_message){.type = EXCHANGE_RECOMPUTE,
                                           .recompute = {5, 2, 1000, 32000, 32, 64}});
    assert_same(&(struct exchange_message){.type = EXCHANGE_RECOMPUTED, .recomputed = {5, true}});
    assert_same(&(struct exchange_message){.type = EXCHANGE_ACCEPTED, .accepted_push = 9});
    assert_same(
        &(struct exchange_message){.type = EXCHANGE_STOP, .stop_reason = TEXT("target reached")});
}

TEST(every_message_between_servers_comes_back_as_it_went)
{
    assert_same(&(struct exchange_message){.type = EXCHANGE_AGAIN, .again_session = 4});
    assert_same(&(struct exchange_message){.type = EXCHANGE_SERVE, .serve = {3, 3, 61706, 9}});
    assert_same(
        &(struct exchange_message){.type = EXCHANGE_ARRIVED, .arrived = {2, 100, 4, 1, 8, 0.5}});
    assert_same(&(struct exchange_message){.type = EXCHANGE_GONE, .gone = {2, 100, 4, 1, true}});
    assert_same(&(struct exchange_message){.type = EXCHANGE_SERVED, .served = {1 << 20, 3}});
    assert_same(&(struct exchange_message){.type = EXCHANGE_STATE, .state = {1, 2, 3, 4, 5, true}});
    for (enum exchange_act_kind kind = 0; kind < EXCHANGE_ACT_COUNT; kind++)
        assert_same(&(struct exchange_message){.type = EXCHANGE_ACT,
                                               .act = {.kind = kind,
                                                       .worker = 1023,
                                                       .number = 77,
                                                       .lease = 5,
                                                       .fence = 6,
                                                       .weight = 0.25,
                                                       .rate = 1,
                                                       .momentum = 0.9,
                                                       .direct = 2,
                                                       .carried = 3,
                                                       .codec = CODEC_TOPK,
                                                       .density = 0.01F,
                                                       .is_offer = true}});
}

static void assert_refused(uint16_t type, const void *bytes, size_t size)
{
    struct error error;
    struct exchange_message got;
    ASSERT_FAILS(exchange_message_decode(type, (struct text){bytes, size}, &got, &error),
                 ERROR_CORRUPT);
}

TEST(broken_messages_are_refused)
{
    assert_refused(EXCHANGE_DATA, "", 0);
    assert_refused(EXCHANGE_CHECK_DATA, "", 0);
    assert_refused(EXCHANGE_RECOMPUTED, "12345678\2", 9);
    assert_refused(EXCHANGE_RECOMPUTE, "12345678\1\0\0\0001234567812345678\0\0\0\0\1\0\0\0", 36);
    assert_refused(999, "", 0);
    assert_refused(EXCHANGE_LEAVE, "x", 1);
    assert_refused(EXCHANGE_MODEL, "12345678", 8);
    assert_refused(EXCHANGE_OFFER, "12345678", 8);
    assert_refused(EXCHANGE_WANT, "x", 1);
    assert_refused(EXCHANGE_SETTINGS, "\0\0\0\0\0\0\0\0\0\0\0\0", 12); /* neither */
    assert_refused(EXCHANGE_SETTINGS, "\1\0\0\0\1\0\0\0\0\0\0\0", 12); /* both */
    assert_refused(EXCHANGE_JOIN, "\x0a\0", 2);
}

TEST(a_push_may_not_claim_what_no_machine_can_do)
{
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, 4096);
    struct exchange_message message = {.type = EXCHANGE_PUSH,
                                       .push = {.number = 1, .steps = 1, .samples = 2 << 20}};
    exchange_message_encode(&payload, &message);
    assert_refused(EXCHANGE_PUSH, payload.data, payload.size);
    buffer_clear(&payload);
    message.push.samples = 32;
    message.push.loss = (double)NAN;
    exchange_message_encode(&payload, &message);
    assert_refused(EXCHANGE_PUSH, payload.data, payload.size);
}

TEST(an_identity_names_lease_and_fence)
{
    struct error error;
    char identity[EXCHANGE_IDENTITY_SIZE];
    uint64_t lease, fence;
    exchange_identity_format(UINT64_MAX, 3, identity);
    ASSERT_OK(exchange_identity_parse(text_of(identity), &lease, &fence, &error));
    assert_true(lease == UINT64_MAX);
    assert_int_equal(fence, 3);
    ASSERT_FAILS(exchange_identity_parse(TEXT("machine:1:2"), &lease, &fence, &error),
                 ERROR_INVALID);
    ASSERT_FAILS(exchange_identity_parse(TEXT("lease:1"), &lease, &fence, &error), ERROR_INVALID);
    ASSERT_FAILS(exchange_identity_parse(TEXT("lease:x:2"), &lease, &fence, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_comes_back_as_it_went),
        cmocka_unit_test(every_message_between_servers_comes_back_as_it_went),
        cmocka_unit_test(broken_messages_are_refused),
        cmocka_unit_test(a_push_may_not_claim_what_no_machine_can_do),
        cmocka_unit_test(an_identity_names_lease_and_fence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
