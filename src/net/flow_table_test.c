#include "net/flow_table.h"
#include "testing/testing.h"

#include <netinet/in.h>

#define NEW_MS INT64_C(20) /* one more may begin */

static struct fence_flow flow_of(uint8_t protocol, uint16_t job_port)
{
    return (struct fence_flow){
        .protocol = protocol, .remote = 0x5db8d822, .job_port = job_port, .remote_port = 80};
}

TEST(only_who_was_asked_may_answer)
{
    AUTO(flow_table) struct flow_table *table = flow_table_new(7);
    const struct fence_flow asked = flow_of(IPPROTO_UDP, 1000);
    assert_false(flow_table_has(table, &asked, 0));
    assert_true(flow_table_note(table, &asked, 0));
    assert_true(flow_table_has(table, &asked, 0));
    struct fence_flow other = asked;
    other.remote++;
    assert_false(flow_table_has(table, &other, 0));
    other = asked;
    other.remote_port++;
    assert_false(flow_table_has(table, &other, 0));
    other = asked;
    other.job_port++;
    assert_false(flow_table_has(table, &other, 0));
    other = asked;
    other.protocol = IPPROTO_TCP;
    assert_false(flow_table_has(table, &other, 0));
}

TEST(silence_ends_a_flow_and_answers_keep_it)
{
    AUTO(flow_table) struct flow_table *table = flow_table_new(7);
    const struct fence_flow udp = flow_of(IPPROTO_UDP, 1000), tcp = flow_of(IPPROTO_TCP, 1000);
    assert_true(flow_table_note(table, &udp, 0));
    assert_true(flow_table_note(table, &tcp, 0));
    assert_true(flow_table_has(table, &udp, FLOW_TABLE_SILENCE_MS));
    assert_true(flow_table_has(table, &udp, INT64_C(2) * FLOW_TABLE_SILENCE_MS));
    assert_false(flow_table_has(table, &udp, INT64_C(3) * FLOW_TABLE_SILENCE_MS + 1));
    assert_true(flow_table_has(table, &tcp, FLOW_TABLE_TCP_SILENCE_MS));
    assert_false(flow_table_has(table, &tcp, INT64_C(2) * FLOW_TABLE_TCP_SILENCE_MS + 1));
}

TEST(a_flood_of_flows_takes_the_place_of_the_silent_ones)
{
    AUTO(flow_table) struct flow_table *table = flow_table_new(7);
    const int count = 20 * FLOW_TABLE_SETS * FLOW_TABLE_WAYS;
    const struct fence_flow kept = flow_of(IPPROTO_TCP, 1);
    assert_true(flow_table_note(table, &kept, 0));
    int held = 0;
    for (int i = 0; i < count; i++) {
        const struct fence_flow flow = flow_of(IPPROTO_UDP, (uint16_t)(i + 2));
        const int64_t now_ms = i * NEW_MS;
        assert_true(flow_table_note(table, &flow, now_ms));
        assert_true(flow_table_has(table, &flow, now_ms));
        assert_true(
            flow_table_has(table, &kept, now_ms)); /* it speaks: it is never the silent one */
    }
    for (int i = 0; i < count; i++) {
        const struct fence_flow flow = flow_of(IPPROTO_UDP, (uint16_t)(i + 2));
        held += flow_table_has(table, &flow, count * NEW_MS);
    }
    assert_in_range(held, 1, FLOW_TABLE_SETS * FLOW_TABLE_WAYS);
}

TEST(who_asks_too_many_waits_and_goes_on_with_those_it_has)
{
    AUTO(flow_table) struct flow_table *table = flow_table_new(7);
    for (int i = 0; i < FLOW_TABLE_NEW_MAX; i++) {
        const struct fence_flow flow = flow_of(IPPROTO_UDP, (uint16_t)(i + 1));
        assert_true(flow_table_note(table, &flow, 5));
    }
    const struct fence_flow first = flow_of(IPPROTO_UDP, 1), next = flow_of(IPPROTO_UDP, 5000);
    assert_false(flow_table_note(table, &next, 5));
    assert_false(flow_table_has(table, &next, 5));
    assert_true(flow_table_note(table, &first, 5));
    assert_false(flow_table_note(table, &next, 5 + NEW_MS - 1));
    assert_true(flow_table_note(table, &next, 5 + NEW_MS));
    const struct fence_flow other = flow_of(IPPROTO_UDP, 5001);
    assert_false(flow_table_note(table, &other, 5 + NEW_MS));
    /* One that was silent for too long is new. */
    const int64_t later_ms = INT64_C(2) * FLOW_TABLE_SILENCE_MS;
    for (int i = 0; i < FLOW_TABLE_NEW_MAX; i++) {
        const struct fence_flow flow = flow_of(IPPROTO_UDP, (uint16_t)(i + 6000));
        assert_true(flow_table_note(table, &flow, later_ms));
    }
    assert_false(flow_table_note(table, &first, later_ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_who_was_asked_may_answer),
        cmocka_unit_test(silence_ends_a_flow_and_answers_keep_it),
        cmocka_unit_test(a_flood_of_flows_takes_the_place_of_the_silent_ones),
        cmocka_unit_test(who_asks_too_many_waits_and_goes_on_with_those_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
