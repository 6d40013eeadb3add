/* covers lease_message.c, lease_message_read.c */
#include "runtime/lease_message.h"
#include "testing/testing.h"

#include <string.h>

static const struct lease_fence running[] = {{1, 2}, {3, 4}};
static const struct lease_peer peers[] = {
    {.lease = 7, .fence = 8, .rank = 9, .key = {1}, .ticket = {2}},
    {.lease = 10, .fence = 11, .role = LEASE_ROLE_SERVER, .rank = 12, .key = {3}, .ticket = {4}},
};

static const struct lent_offer offers[] = {
    {.offer = 13, .resources = {.cores_milli = 500, .ram_bytes = 1 << 20}, .roles = 1},
    {.offer = 14, .resources = {.gpus_milli = 1000, .bandwidth_kbit = 100000}, .roles = 3},
};

static const struct lease_message examples[] = {
    {.type = LEASE_MESSAGE_HELLO,
     .hello = {.version = 3,
               .machine = 5,
               .instance = {6, 7},
               .ceiling = {.cores_milli = 2000, .disk_bytes = 7},
               .running = running,
               .running_count = 2}},
    {.type = LEASE_MESSAGE_HEARTBEAT,
     .heartbeat = {.load_milli = 1500,
                   .running_count = 2,
                   .free_ram_bytes = 1 << 30,
                   .temperature_c = 61,
                   .power = LEASE_POWER_BATTERY,
                   .battery_percent = 80}},
    {.type = LEASE_MESSAGE_STATE,
     .state = {.lease = 1,
               .fence = 2,
               .state = LEASE_RUN_FAILED,
               .exit_code = -9,
               .reason = {"out of memory", 13}}},
    {.type = LEASE_MESSAGE_METER,
     .meter = {.lease = 1,
               .fence = 2,
               .tick_index = 3,
               .wall_ms = 4,
               .cpu_ms = 5,
               .memory_peak_bytes = 6,
               .bytes_in = 7,
               .bytes_out = 8,
               .gpu_ms = 9,
               .signature = {9}}},
    {.type = LEASE_MESSAGE_REPORT, .report = {.lease = 1, .fence = 2, .json = {"{}", 2}}},
    {.type = LEASE_MESSAGE_LOG,
     .log = {.lease = 1,
             .fence = 2,
             .offset = 70,
             .is_resumed = true,
             .is_last = true,
             .bytes = {"oh\n", 3}}},
    {.type = LEASE_MESSAGE_ARTIFACT,
     .artifact = {.lease = 1,
                  .fence = 2,
                  .name = {"model.safetensors", 17},
                  .manifest = {5},
                  .size_bytes = 6}},
    {.type = LEASE_MESSAGE_STREAM_READY, .stream_ready = {.lease = 1, .fence = 2, .peer_lease = 3}},
    {.type = LEASE_MESSAGE_WELCOME,
     .welcome = {.version = 1, .machine = 5, .now_ms = 7, .seen_ipv4 = 0x08090a0b}},
    {.type = LEASE_MESSAGE_START,
     .start = {.document = {"{\"lease\":1}", 11},
               .signature = {1},
               .key = {2},
               .fetch_token = {"abc", 3},
               .peers = peers,
               .peer_count = 2}},
    {.type = LEASE_MESSAGE_PEER,
     .peer = {.lease = 1, .fence = 2, .peer = {.lease = 7, .fence = 8, .rank = 9, .key = {1}}}},
    {.type = LEASE_MESSAGE_STOP,
     .stop = {.lease = 1, .fence = 2, .grace_ms = 5000, .reason = {"cancelled", 9}}},
    {.type = LEASE_MESSAGE_STREAM_OPEN,
     .stream_open = {.lease = 1,
                     .fence = 2,
                     .peer_lease = 3,
                     .peer_fence = 5,
                     .peer_role = LEASE_ROLE_SERVER,
                     .peer_rank = 6,
                     .ticket = {4}}},
    {.type = LEASE_MESSAGE_RENEW,
     .renew = {.document = {"{\"lease\":9}", 11}, .signature = {4, 5, 6}}},
    {.type = LEASE_MESSAGE_YIELD, .yield = {MACHINE_YIELD_DRAINING}},
    {.type = LEASE_MESSAGE_YIELD,
     .yield = {MACHINE_YIELD_PAUSED_REMOTELY, .left_ms = LEASE_PAUSE_MS_MAX}},
    {.type = LEASE_MESSAGE_TRY,
     .try = {.trial = 3,
             .key = {1},
             .ticket = {2},
             .limit_ms = 2000,
             .addresses = {{"192.0.2.1:7600", 14}},
             .address_count = 1}},
    {.type = LEASE_MESSAGE_TRIED, .tried = {.trial = 3, .rtt_us = 900}},
    {.type = LEASE_MESSAGE_EARNINGS, .earnings = {.earned_micro = 1234567, .withheld_micro = 89}},
    {.type = LEASE_MESSAGE_PAUSE, .pause = {.is_paused = true, .for_ms = 1800000}},
    {.type = LEASE_MESSAGE_OFFERS, .offers = {.offers = offers, .offer_count = 2}},
    {.type = LEASE_MESSAGE_ADDRESSES,
     .addresses = {.lease = 1,
                   .fence = 2,
                   .addresses = {{"192.0.2.1:7600", 14}, {"10.0.0.1:1", 10}},
                   .address_count = 2}},
    {.type = LEASE_MESSAGE_RANK,
     .rank = {.lease = 1,
              .fence = 2,
              .peer = {.lease = 7, .fence = 8, .rank = 9, .key = {1}, .ticket = {2}},
              .addresses = {{"192.0.2.1:7600", 14}},
              .address_count = 1}},
    {.type = LEASE_MESSAGE_CHUNKS_AT,
     .addresses =
         {.lease = 1, .fence = 2, .addresses = {{"192.0.2.1:7600", 14}}, .address_count = 1}},
    {.type = LEASE_MESSAGE_CHUNK_PEER,
     .rank = {.lease = 1,
              .fence = 2,
              .peer = {.lease = 7, .fence = 8, .rank = 9, .key = {1}},
              .addresses = {{"192.0.2.1:7600", 14}},
              .address_count = 1}},
    {.type = LEASE_MESSAGE_LOGS_AT,
     .addresses =
         {.lease = 1, .fence = 2, .addresses = {{"192.0.2.1:7600", 14}}, .address_count = 1}},
    {.type = LEASE_MESSAGE_LOG_READER,
     .log_reader = {.lease = 1, .fence = 2, .reader = 3, .key = {4}}},
    {.type = LEASE_MESSAGE_LOG_KEPT, .log_kept = {.lease = 1, .fence = 2, .offset = 3}},
    {.type = LEASE_MESSAGE_PONG, .pong = {.nonce = 17}},
    {.type = LEASE_MESSAGE_PROBE, .probe = {.json = {"{}", 2}}},
    {.type = LEASE_MESSAGE_FILL, .fill = {.is_last = true, .bytes = {"xyz", 3}}},
    {.type = LEASE_MESSAGE_REFUSED, .refused = {.is_final = true, .reason = {"a copy", 6}}},
    {.type = LEASE_MESSAGE_PING, .ping = {.nonce = 17}},
    {.type = LEASE_MESSAGE_MEASURE, .measure = {.bytes = 4096}},
};

enum { EXAMPLE_COUNT = sizeof(examples) / sizeof(*examples) };

static void encode(const struct lease_message *message, struct buffer *payload)
{
    buffer_init(payload, LEASE_MESSAGE_SIZE_MAX);
    lease_message_encode(message, payload);
    assert_false(payload->is_overflowed);
}

TEST(every_message_reads_back_to_equal_bytes)
{
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        AUTO(arena) struct arena *arena = arena_new(0);
        struct error error;
        struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
        encode(&examples[i], &first);
        struct lease_message message;
        ASSERT_OK(lease_message_decode(arena, (uint16_t)examples[i].type, buffer_text(&first),
                                       &message, &error));
        assert_int_equal(message.type, examples[i].type);
        encode(&message, &second);
        assert_int_equal(first.size, second.size);
        assert_memory_equal(first.data, second.data, first.size);
    }
}

TEST(every_shorter_or_longer_message_is_refused)
{
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        AUTO(arena) struct arena *arena = arena_new(0);
        struct error error;
        struct lease_message message;
        struct buffer payload AUTO_BUFFER;
        encode(&examples[i], &payload);
        const uint16_t type = (uint16_t)examples[i].type;
        for (size_t size = 0; size < payload.size; size++) {
            const struct text part = {(const char *)payload.data, size};
            ASSERT_FAILS(lease_message_decode(arena, type, part, &message, &error), ERROR_CORRUPT);
        }
        buffer_append_byte(&payload, 0);
        ASSERT_FAILS(lease_message_decode(arena, type, buffer_text(&payload), &message, &error),
                     ERROR_CORRUPT);
    }
}

TEST(fields_keep_their_values)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct buffer payload AUTO_BUFFER;
    encode(&examples[2], &payload);
    struct lease_message message;
    ASSERT_OK(
        lease_message_decode(arena, LEASE_MESSAGE_STATE, buffer_text(&payload), &message, &error));
    assert_int_equal(message.state.exit_code, -9);
    assert_int_equal(message.state.state, LEASE_RUN_FAILED);
    assert_true(text_equal(message.state.reason, TEXT("out of memory")));
    struct buffer start AUTO_BUFFER;
    encode(&examples[9], &start);
    ASSERT_OK(
        lease_message_decode(arena, LEASE_MESSAGE_START, buffer_text(&start), &message, &error));
    assert_int_equal(message.start.peer_count, 2);
    assert_int_equal(message.start.peers[1].role, LEASE_ROLE_SERVER);
    assert_int_equal(message.start.peers[1].rank, 12);
    assert_int_equal(message.start.peers[1].ticket[0], 4);
    assert_true(text_equal(message.start.fetch_token, TEXT("abc")));
}

TEST(unknown_types_states_and_counts_are_refused)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct lease_message message;
    ASSERT_FAILS(lease_message_decode(arena, 99, TEXT(""), &message, &error), ERROR_CORRUPT);
    assert_string_equal(error.message, "unknown lease message type 99");
    struct buffer payload AUTO_BUFFER;
    encode(&examples[2], &payload);
    payload.data[16] = LEASE_RUN_STATE_COUNT;
    ASSERT_FAILS(
        lease_message_decode(arena, LEASE_MESSAGE_STATE, buffer_text(&payload), &message, &error),
        ERROR_CORRUPT);
    struct buffer hello AUTO_BUFFER;
    encode(&examples[0], &hello);
    memset(hello.data + 68, 0xff, 4); /* four thousand million leases */
    ASSERT_FAILS(
        lease_message_decode(arena, LEASE_MESSAGE_HELLO, buffer_text(&hello), &message, &error),
        ERROR_CORRUPT);
}

static void refuse_changed(const struct lease_message *example, size_t offset, uint8_t value)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct lease_message message;
    struct buffer payload AUTO_BUFFER;
    encode(example, &payload);
    assert_true(offset < payload.size);
    payload.data[offset] = value;
    ASSERT_FAILS(lease_message_decode(arena, (uint16_t)example->type, buffer_text(&payload),
                                      &message, &error),
                 ERROR_CORRUPT);
}

TEST(flags_power_and_amounts_out_of_range_are_refused)
{
    refuse_changed(&examples[1], 17, LEASE_POWER_COUNT);
    refuse_changed(&examples[1], 18, 101); /* percent */
    refuse_changed(&examples[EXAMPLE_COUNT - 4], 0, 2);
    refuse_changed(&examples[EXAMPLE_COUNT - 3], 0, 2);
    refuse_changed(&examples[EXAMPLE_COUNT - 1], 3, 1); /* 16 MiB to be sent */
    const struct lease_message welcome = {.type = LEASE_MESSAGE_WELCOME};
    refuse_changed(&welcome, 19, 0x80); /* before all times */
    refuse_changed(&welcome, 19, 0x7f); /* after all */
    const struct lease_message earnings = {.type = LEASE_MESSAGE_EARNINGS};
    refuse_changed(&earnings, 7, 0x80); /* less than nothing */
    refuse_changed(&earnings, 15, 0x80);
}

TEST(the_signed_bytes_of_a_meter_cover_every_counter_but_not_the_signature)
{
    const struct meter_message base = examples[3].meter;
    uint8_t bytes[METER_SIGNED_SIZE], other[METER_SIGNED_SIZE];
    meter_message_signed(&base, bytes);
    assert_memory_equal(bytes, "souk-meter-v2\0\0", 15);
    struct meter_message changed = base;
    changed.signature[0]++;
    meter_message_signed(&changed, other);
    assert_memory_equal(bytes, other, sizeof(bytes));
    static const size_t counters[] = {
        offsetof(struct meter_message, lease),
        offsetof(struct meter_message, fence),
        offsetof(struct meter_message, tick_index),
        offsetof(struct meter_message, wall_ms),
        offsetof(struct meter_message, cpu_ms),
        offsetof(struct meter_message, memory_peak_bytes),
        offsetof(struct meter_message, bytes_in),
        offsetof(struct meter_message, bytes_out),
        offsetof(struct meter_message, gpu_ms),
    };
    for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++) {
        changed = base;
        (*(uint64_t *)(void *)((char *)&changed + counters[i]))++;
        meter_message_signed(&changed, other);
        assert_memory_not_equal(bytes, other, sizeof(bytes));
    }
}

TEST(the_version_of_a_hello_is_known_whatever_follows)
{
    assert_int_equal(hello_message_version((struct text){"\x07\0\0\0strange", 11}), 7);
    assert_int_equal(hello_message_version(TEXT("")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_reads_back_to_equal_bytes),
        cmocka_unit_test(the_version_of_a_hello_is_known_whatever_follows),
        cmocka_unit_test(every_shorter_or_longer_message_is_refused),
        cmocka_unit_test(fields_keep_their_values),
        cmocka_unit_test(unknown_types_states_and_counts_are_refused),
        cmocka_unit_test(flags_power_and_amounts_out_of_range_are_refused),
        cmocka_unit_test(the_signed_bytes_of_a_meter_cover_every_counter_but_not_the_signature),
    };
    return cmocka_run_group_tests_name("lease_message", tests, NULL, NULL);
}
