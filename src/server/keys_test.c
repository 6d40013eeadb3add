#include "server/keys.h"
#include "testing/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/souk-keys-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static int make_dir(void **state)
{
    (void)state;
    memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    static const char *const names[] = {"root.key", "sign.key", "tls.key", "tls.crt"};
    for (int i = 0; i < 4; i++)
        unlink(path_of(names[i]));
    return rmdir(dir);
}

TEST(derived_keys_survive_a_restart_and_differ_by_purpose)
{
    struct error error;
    uint8_t first[32], again[32], other[32];
    char fingerprint[KEYS_FINGERPRINT_SIZE];
    {
        AUTO(keys) struct keys *keys = NULL;
        ASSERT_OK(keys_open(dir, &keys, &error));
        keys_lease(keys, 7, 2, first);
        keys_machine(keys, 7, 2, other);
        memcpy(fingerprint, keys_fingerprint(keys), sizeof(fingerprint));
        assert_int_equal(strlen(fingerprint), 64);
        assert_memory_not_equal(first, other, 32);
        keys_lease(keys, 7, 3, other);
        assert_memory_not_equal(first, other, 32);
        uint8_t pair_ticket[KEYS_SECRET_SIZE];
        const struct keys_pair pair = {7, 2, 9, 3}, fenced = {7, 2, 9, 4};
        keys_pair(keys, &pair, other, pair_ticket);
        assert_memory_not_equal(first, other, sizeof(first));
        assert_memory_not_equal(pair_ticket, other, sizeof(other));
        uint8_t fenced_key[KEYS_SECRET_SIZE], fenced_ticket[KEYS_SECRET_SIZE];
        keys_pair(keys, &fenced, fenced_key, fenced_ticket);
        assert_memory_not_equal(fenced_key, other, sizeof(other));
        assert_memory_not_equal(fenced_ticket, pair_ticket, sizeof(pair_ticket));
        keys_ticket(keys, &(struct keys_stream){.lease = 7, .attempt = 2}, other);
        assert_memory_not_equal(first, other, 32);
    }
    AUTO(keys) struct keys *keys = NULL;
    ASSERT_OK(keys_open(dir, &keys, &error));
    keys_lease(keys, 7, 2, again);
    assert_memory_equal(first, again, 32);
    assert_string_equal(fingerprint, keys_fingerprint(keys));
}

TEST(a_request_is_hashed_with_the_secret)
{
    struct error error;
    uint8_t first[KEYS_HASH_SIZE], again[KEYS_HASH_SIZE], plain[KEYS_HASH_SIZE];
    const struct text body = TEXT("{\"password\":\"correct horse battery\"}");
    {
        AUTO(keys) struct keys *keys = NULL;
        ASSERT_OK(keys_open(dir, &keys, &error));
        keys_request_hash(keys, body, first);
        keys_request_hash(keys, body, again);
        assert_memory_equal(first, again, sizeof(first));
        token_hash(body, plain);
        assert_memory_not_equal(first, plain, sizeof(first));
    }
    unlink(path_of("root.key"));
    AUTO(keys) struct keys *keys = NULL;
    ASSERT_OK(keys_open(dir, &keys, &error));
    keys_request_hash(keys, body, again);
    assert_memory_not_equal(first, again, sizeof(first));
}

TEST(a_fetch_token_names_its_lease_and_cannot_be_changed)
{
    struct error error;
    AUTO(keys) struct keys *keys = NULL;
    ASSERT_OK(keys_open(dir, &keys, &error));
    char token[KEYS_TOKEN_SIZE];
    keys_fetch_token(keys, UINT64_MAX, UINT64_MAX, token); /* the longest */
    keys_fetch_token(keys, 12, 1, token);
    uint64_t lease = 0, fence = 0;
    assert_true(keys_read_fetch_token(keys, text_of(token), &lease, &fence));
    assert_int_equal(lease, 12);
    assert_int_equal(fence, 1);
    token[strlen("souk_lease_12_")] = '2'; /* another fence with the same secret */
    assert_false(keys_read_fetch_token(keys, text_of(token), &lease, &fence));
    assert_false(keys_read_fetch_token(keys, TEXT("souk_lease_"), &lease, &fence));
    assert_false(keys_read_fetch_token(keys, TEXT("souk_account_00"), &lease, &fence));
}

TEST(what_functions_of_a_lease_hold_is_no_fetch_token)
{
    struct error error;
    AUTO(keys) struct keys *keys = NULL;
    ASSERT_OK(keys_open(dir, &keys, &error));
    char fetch[KEYS_TOKEN_SIZE], token[KEYS_TOKEN_SIZE];
    uint64_t lease = 0, fence = 0;
    keys_fetch_token(keys, 12, 1, fetch);
    keys_objects_token(keys, UINT64_MAX, UINT64_MAX, token); /* the longest */
    keys_objects_token(keys, 12, 1, token);
    assert_true(keys_read_objects_token(keys, text_of(token), &lease, &fence));
    assert_true(lease == 12 && fence == 1);
    assert_false(keys_read_fetch_token(keys, text_of(token), &lease, &fence));
    assert_false(keys_read_objects_token(keys, text_of(fetch), &lease, &fence));
    /* Nor by another name: the secrets differ. */
    memcpy(fetch + strlen("souk_lease_12_1_"), token + strlen("souk_objects_12_1_"), 64);
    assert_false(keys_read_fetch_token(keys, text_of(fetch), &lease, &fence));
}

TEST(signatures_are_verified_against_the_bytes_and_the_key)
{
    struct error error;
    AUTO(keys) struct keys *keys = NULL;
    ASSERT_OK(keys_open(dir, &keys, &error));
    uint8_t signature[KEYS_SIGNATURE_SIZE];
    keys_sign(keys, TEXT("lease"), signature);
    assert_true(keys_verify(keys_public(keys), TEXT("lease"), signature));
    assert_false(keys_verify(keys_public(keys), TEXT("leasf"), signature));
    signature[0] ^= 1;
    assert_false(keys_verify(keys_public(keys), TEXT("lease"), signature));
}

TEST(a_secret_that_others_can_read_is_refused)
{
    struct error error;
    {
        AUTO(keys) struct keys *keys = NULL;
        ASSERT_OK(keys_open(dir, &keys, &error));
    }
    struct stat status;
    assert_int_equal(stat(path_of("root.key"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(chmod(path_of("root.key"), 0644), 0);
    struct keys *keys = NULL;
    ASSERT_FAILS(keys_open(dir, &keys, &error), ERROR_REFUSED);
}

TEST(a_key_cut_short_is_corrupt)
{
    struct error error;
    {
        AUTO(keys) struct keys *keys = NULL;
        ASSERT_OK(keys_open(dir, &keys, &error));
    }
    assert_int_equal(truncate(path_of("sign.key"), 31), 0);
    struct keys *keys = NULL;
    ASSERT_FAILS(keys_open(dir, &keys, &error), ERROR_CORRUPT);
    assert_int_equal(truncate(path_of("sign.key"), 0), 0);
    ASSERT_FAILS(keys_open(dir, &keys, &error), ERROR_CORRUPT);
}

TEST(a_certificate_from_elsewhere_must_fit_its_key)
{
    struct error error;
    AUTO(keys) struct keys *keys = NULL;
    ASSERT_OK(keys_open(dir, &keys, &error));
    char certificate[128], key[128];
    snprintf(certificate, sizeof(certificate), "%s", path_of("tls.crt"));
    snprintf(key, sizeof(key), "%s", path_of("tls.key"));
    ASSERT_OK(keys_use_certificate(keys, certificate, key, &error));
    ASSERT_FAILS(keys_use_certificate(keys, certificate, certificate, &error), ERROR_INVALID);
    ASSERT_FAILS(keys_use_certificate(keys, certificate, "/nowhere", &error), ERROR_NOT_FOUND);
    assert_int_equal(strlen(keys_fingerprint(keys)), 64);
}

TEST(tokens_are_fresh_and_only_their_hash_is_needed)
{
    char first[KEYS_TOKEN_SIZE], second[KEYS_TOKEN_SIZE];
    token_new("account", first);
    token_new("account", second);
    assert_string_not_equal(first, second);
    assert_memory_equal(first, "souk_account_", 13);
    uint8_t hash[KEYS_HASH_SIZE], again[KEYS_HASH_SIZE];
    token_hash(text_of(first), hash);
    token_hash(text_of(first), again);
    assert_memory_equal(hash, again, sizeof(hash));
    token_hash(text_of(second), again);
    assert_memory_not_equal(hash, again, sizeof(hash));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(derived_keys_survive_a_restart_and_differ_by_purpose,
                                        make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_fetch_token_names_its_lease_and_cannot_be_changed,
                                        make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(what_functions_of_a_lease_hold_is_no_fetch_token, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(signatures_are_verified_against_the_bytes_and_the_key,
                                        make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_request_is_hashed_with_the_secret, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_secret_that_others_can_read_is_refused, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_key_cut_short_is_corrupt, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_certificate_from_elsewhere_must_fit_its_key, make_dir,
                                        remove_dir),
        cmocka_unit_test(tokens_are_fresh_and_only_their_hash_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
