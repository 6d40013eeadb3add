#include "base/buffer.h"
#include "peer/enlist.h"
#include "peer/peer.h"
#include "sandbox/folder.h"
#include "testing/testing.h"

#include <sodium.h>

#define KEY_TEXT "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static const struct machine_probe probe = {.cores_milli = 2000,
                                           .ram_bytes = 1 << 30,
                                           .disk_bytes = 1 << 30,
                                           .speed_weight_milli = 1500,
                                           .cpu_model = "A \"fast\" one",
                                           .architecture = "x86_64",
                                           .kernel = "Linux 6"};

static const struct enlist_request request = {.server_url = "http://127.0.0.1:1",
                                              .code = "abc",
                                              .name = "kitchen",
                                              .probe = &probe,
                                              .cores_milli = 500,
                                              .ram_bytes = 1 << 20,
                                              .disk_bytes = 1 << 20,
                                              .roles = PEER_ROLE_WORKER};

static struct identity *open_identity(void)
{
    struct error error = {0};
    struct identity *identity = NULL;
    char folder[] = "/tmp/souk-enlist-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    ASSERT_OK(identity_open(folder, &identity, &error));
    ASSERT_OK(folder_remove(folder, &error));
    return identity;
}

TEST(request_carries_a_signature_over_code_and_name)
{
    struct error error = {0};
    AUTO(identity) struct identity *identity = open_identity();
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 8192);
    ASSERT_OK(enlist_write(identity, &request, &json, &error));
    const char *text = buffer_string(&json);
    assert_non_null(strstr(text, "\"roles\":[\"worker\"]"));
    assert_non_null(strstr(text, "\"cpu_model\":\"A \\\"fast\\\" one\""));
    assert_non_null(strstr(text, "\"speed_weight_milli\":1500"));
    assert_null(strstr(text, "\"minimum\""));
    const char *signature_text = strstr(text, "\"signature\":\"");
    assert_non_null(signature_text);
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    const struct text hex = {signature_text + 13, sizeof(signature) * 2};
    ASSERT_OK(text_hex_decode(hex, signature, sizeof(signature), &error));
    const char message[] = "souk-enrol\nabc\nkitchen";
    assert_int_equal(crypto_sign_verify_detached(signature, (const uint8_t *)message,
                                                 sizeof(message) - 1,
                                                 identity_public_key(identity)),
                     0);
}

TEST(a_least_price_is_in_the_first_offer)
{
    struct error error = {0};
    AUTO(identity) struct identity *identity = open_identity();
    struct enlist_request dear = request;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 8192);
    dear.minimum_core_micro = 30000;
    dear.minimum_ram_micro = 4000;
    ASSERT_OK(enlist_write(identity, &dear, &json, &error));
    assert_non_null(
        strstr(buffer_string(&json), "\"minimum\":{\"core_micro\":30000,\"ram_micro\":4000}"));
}

TEST(answer_becomes_an_enrolment)
{
    struct error error = {0};
    struct enrolment enrolment;
    const char *answer = "{\"machine\":7,\"generation\":1,\"link_key\":\"" KEY_TEXT
                         "\",\"link_address\":\"127.0.0.1:7601\",\"server_public_key\":\"" KEY_TEXT
                         "\",\"more\":true}";
    ASSERT_OK(enlist_read(&request, text_of(answer), &enrolment, &error));
    assert_int_equal(enrolment.machine, 7);
    assert_int_equal(enrolment.link_key[1], 0x11);
    assert_string_equal(enrolment.link_address, "127.0.0.1:7601");
    assert_string_equal(enrolment.server_url, request.server_url);
    assert_string_equal(enrolment.name, "kitchen");
    ASSERT_FAILS(enlist_read(&request, TEXT("{\"machine\":7}"), &enrolment, &error), ERROR_INVALID);
    ASSERT_FAILS(enlist_read(&request, TEXT("<html>"), &enrolment, &error), ERROR_INVALID);
}

TEST(plain_http_is_for_loopback_only)
{
    struct error error = {0};
    ASSERT_OK(enlist_check_url("https://market.example:7600", &error));
    ASSERT_OK(enlist_check_url("http://127.0.0.1:7600", &error));
    ASSERT_OK(enlist_check_url("http://localhost", &error));
    ASSERT_OK(enlist_check_url("http://[::1]:7600/", &error));
    ASSERT_FAILS(enlist_check_url("http://10.0.0.1:7600", &error), ERROR_INVALID);
    ASSERT_FAILS(enlist_check_url("ftp://127.0.0.1", &error), ERROR_INVALID);
    ASSERT_FAILS(enlist_check_url("http://", &error), ERROR_INVALID);
}

TEST(market_that_is_away_is_told)
{
    struct error error = {0};
    AUTO(identity) struct identity *identity = open_identity();
    ASSERT_FAILS(enlist(identity, &request, &error), ERROR_UNAVAILABLE);
    assert_int_equal(identity_enrolment(identity)->machine, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_carries_a_signature_over_code_and_name),
        cmocka_unit_test(a_least_price_is_in_the_first_offer),
        cmocka_unit_test(answer_becomes_an_enrolment),
        cmocka_unit_test(plain_http_is_for_loopback_only),
        cmocka_unit_test(market_that_is_away_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
