#include "peer/lease_verify.h"
#include "testing/testing.h"

#include <sodium.h>

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

enum { NOW_MS = 1000000 };

struct fixture {
    struct arena *arena;
    uint8_t secret[crypto_sign_SECRETKEYBYTES];
    struct enrolment enrolment;
    struct buffer json;
    struct start_message start;
};

static const struct native_lease example = {
    .lease = 11,
    .fence = 4,
    .job = 2,
    .machine = 5,
    .role = LEASE_ROLE_WORKER,
    .world = 1,
    .cores_milli = 250,
    .ram_bytes = 256 << 20,
    .disk_bytes = 1 << 20,
    .expires_ms = NOW_MS + 1,
};

static void write_lease(struct fixture *fixture, const struct native_lease *lease)
{
    struct error error = {0};
    struct job_spec spec;
    const char *json =
        "{\"name\":\"j\",\"num_nodes\":1,\"train\":{\"model\":\"lenet5\",\"data\":\"mnist\"},"
        "\"inputs\":[{\"name\":\"a\",\"split\":\"train\",\"manifest\":\"" HASH
        "\",\"records\":10},{\"name\":\"b\",\"split\":\"test\",\"manifest\":\"" HASH
        "\",\"records\":10}]}";
    ASSERT_OK(job_spec_read(fixture->arena, text_of(json), &spec, &error));
    buffer_clear(&fixture->json);
    ASSERT_OK(native_lease_write(&spec, lease, &fixture->json, &error));
    fixture->start.document = buffer_text(&fixture->json);
    crypto_sign_detached(fixture->start.signature, NULL, fixture->json.data, fixture->json.size,
                         fixture->secret);
}

static int set_up(void **state)
{
    if (sodium_init() < 0)
        return -1;
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    if (!fixture)
        return -1;
    fixture->arena = arena_new(0);
    buffer_init(&fixture->json, LEASE_DOCUMENT_SIZE_MAX);
    crypto_sign_keypair(fixture->enrolment.server_public_key, fixture->secret);
    fixture->enrolment.machine = 5;
    write_lease(fixture, &example);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    buffer_done(&fixture->json);
    arena_free(fixture->arena);
    free(fixture);
    return 0;
}

static int verify(struct fixture *fixture, struct lease_document *document, struct error *error)
{
    return lease_verify(fixture->arena, &fixture->start, &fixture->enrolment, document, error);
}

static void lease_signed_by_the_market_is_taken(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    struct lease_document document;
    ASSERT_OK(verify(fixture, &document, &error));
    assert_int_equal(document.lease, 11);
    assert_int_equal(document.fence, 4);
    ASSERT_OK(lease_check(&document, NOW_MS, &error));
}

static void forged_signature_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    struct lease_document document;
    fixture->start.signature[0] ^= 1;
    ASSERT_FAILS(verify(fixture, &document, &error), ERROR_REFUSED);
}

static void document_changed_after_signing_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    struct lease_document document;
    char *cores = memmem(fixture->json.data, fixture->json.size, "\"cores_milli\":2", 15);
    assert_non_null(cores);
    cores[14] = '4';
    ASSERT_FAILS(verify(fixture, &document, &error), ERROR_REFUSED);
}

static void signature_of_another_market_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    struct lease_document document;
    uint8_t other_public[crypto_sign_PUBLICKEYBYTES], other_secret[crypto_sign_SECRETKEYBYTES];
    crypto_sign_keypair(other_public, other_secret);
    crypto_sign_detached(fixture->start.signature, NULL, fixture->json.data, fixture->json.size,
                         other_secret);
    ASSERT_FAILS(verify(fixture, &document, &error), ERROR_REFUSED);
}

static void lease_of_another_machine_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    struct lease_document document;
    fixture->enrolment.machine = 6;
    ASSERT_FAILS(verify(fixture, &document, &error), ERROR_REFUSED);
}

static void signed_nonsense_is_corrupt(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    struct lease_document document;
    fixture->start.document = TEXT("{}");
    crypto_sign_detached(fixture->start.signature, NULL, (const uint8_t *)"{}", 2, fixture->secret);
    ASSERT_FAILS(verify(fixture, &document, &error), ERROR_CORRUPT);
}

static void expired_lease_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    struct lease_document document;
    ASSERT_OK(verify(fixture, &document, &error));
    ASSERT_FAILS(lease_check(&document, NOW_MS + 1, &error), ERROR_REFUSED);
}

int main(void)
{
#define LEASE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        LEASE_TEST(lease_signed_by_the_market_is_taken),
        LEASE_TEST(forged_signature_is_refused),
        LEASE_TEST(document_changed_after_signing_is_refused),
        LEASE_TEST(signature_of_another_market_is_refused),
        LEASE_TEST(lease_of_another_machine_is_refused),
        LEASE_TEST(signed_nonsense_is_corrupt),
        LEASE_TEST(expired_lease_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
