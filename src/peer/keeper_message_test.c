#include "peer/keeper_message.h"
#include "testing/testing.h"

static const struct keeper_message samples[] = {
    {.type = KEEPER_MESSAGE_SETUP,
     .setup = {.log_level = 2,
               .machine = 7,
               .server_public_key = {1, 2, 3},
               .leases_dir = {"/s/leases", 9},
               .blobs_dir = {"/s/blobs", 8},
               .disk_bytes = 1 << 30,
               .cache_bytes = 1 << 28,
               .is_direct = true,
               .open = {.resolvers = {0x09090909},
                        .resolver_count = 1,
                        .closed = {{0x824b0000, 16}, {0x01020304, 32}},
                        .closed_count = 2,
                        .kbit_per_s = 5000},
               .data_path = {"/srv/scans", 10},
               .index_url = {"https://i", 9},
               .software = {{"/srv/tools", 10}, {"/srv/spark", 10}},
               .software_count = 2,
               .sdk_folder = {"/s/sdk/5f", 9},
               .functions = {.memory_mb = 512,
                             .time_ms = 60000,
                             .keep_warm_ms = 300,
                             .process_bytes = UINT64_C(3) << 32,
                             .name = {"train", 5},
                             .url = {"http://h", 8},
                             .token = {"word", 4},
                             .store = {"s3://b", 6},
                             .keys = {{"key", 3}, {"secret", 6}}},
               .sandbox_host = {"findings", 8}}},
    {.type = KEEPER_MESSAGE_TAKE, .take = {KEEPER_VERSION, 5, 6}},
    {.type = KEEPER_MESSAGE_MARKET,
     .market = {.is_linked = true,
                .ahead_ms = -40,
                .server_url = {"https://m", 9},
                .link_address = {"m:1", 3},
                .link_ipv4 = 0x05060708,
                .seen_ipv4 = 0x090a0b0c}},
    {.type = KEEPER_MESSAGE_RECLAIM, .reclaim = {3000, {"enough", 6}}},
    {.type = KEEPER_MESSAGE_YIELD, .yield = YIELD_FROZEN},
    {.type = KEEPER_MESSAGE_RELEASE},
    {.type = KEEPER_MESSAGE_HELLO,
     .hello = {.version = KEEPER_VERSION,
               .state = LEASE_RUN_RUNNING,
               .gpus = 5,
               .document = {"{}", 2},
               .signature = {9, 8, 7}}},
};

TEST(what_is_encoded_decodes_to_the_same_bytes_and_no_shorter)
{
    struct error error = {0};
    for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
        struct buffer payload AUTO_BUFFER, again AUTO_BUFFER;
        buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
        buffer_init(&again, LEASE_MESSAGE_SIZE_MAX);
        keeper_message_encode(&samples[i], &payload);
        struct keeper_message message;
        const uint16_t type = (uint16_t)samples[i].type;
        ASSERT_OK(keeper_message_decode(type, buffer_text(&payload), &message, &error));
        keeper_message_encode(&message, &again);
        assert_true(text_equal(buffer_text(&payload), buffer_text(&again)));
        for (size_t size = 0; size < payload.size; size++)
            ASSERT_FAILS(keeper_message_decode(type, (struct text){(char *)payload.data, size},
                                               &message, &error),
                         ERROR_CORRUPT);
    }
}

TEST(values_out_of_range_are_refused)
{
    struct error error = {0};
    struct keeper_message message;
    const char level[] = {YIELD_LEVEL_COUNT};
    ASSERT_FAILS(
        keeper_message_decode(KEEPER_MESSAGE_YIELD, (struct text){level, 1}, &message, &error),
        ERROR_CORRUPT);
    ASSERT_FAILS(keeper_message_decode(KEEPER_MESSAGE_END, (struct text){0}, &message, &error),
                 ERROR_CORRUPT);
    ASSERT_FAILS(keeper_message_decode(LEASE_MESSAGE_START, (struct text){0}, &message, &error),
                 ERROR_CORRUPT);
    assert_string_equal(yield_level_name(YIELD_LOW), "low");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_encoded_decodes_to_the_same_bytes_and_no_shorter),
        cmocka_unit_test(values_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
