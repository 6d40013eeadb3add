#include "peer/identity.h"
#include "sandbox/folder.h"
#include "testing/testing.h"

#include <sodium.h>
#include <sys/stat.h>

static int make_folder(void **state)
{
    char folder[] = "/tmp/souk-identity-test-XXXXXX";
    if (!mkdtemp(folder))
        return -1;
    *state = strdup(folder);
    return 0;
}

static int remove_folder(void **state)
{
    struct error error;
    const int result = folder_remove(*state, &error);
    free(*state);
    return result;
}

static void path_in(void **state, const char *name, char out[128])
{
    snprintf(out, 128, "%s/%s", (char *)*state, name);
}

static void key_is_made_once_and_kept_private(void **state)
{
    struct error error = {0};
    uint8_t first[IDENTITY_KEY_SIZE];
    AUTO(identity) struct identity *identity = NULL;
    ASSERT_OK(identity_open(*state, &identity, &error));
    memcpy(first, identity_public_key(identity), sizeof(first));
    assert_int_equal(identity_enrolment(identity)->machine, 0);
    identity_free(TAKE(identity));

    ASSERT_OK(identity_open(*state, &identity, &error));
    assert_memory_equal(first, identity_public_key(identity), sizeof(first));
    char path[128];
    path_in(state, "machine.key", path);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void signature_is_good_under_the_public_key_only(void **state)
{
    struct error error = {0};
    AUTO(identity) struct identity *identity = NULL;
    ASSERT_OK(identity_open(*state, &identity, &error));
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    identity_sign(identity, "tick", 4, signature);
    assert_int_equal(crypto_sign_verify_detached(signature, (const uint8_t *)"tick", 4,
                                                 identity_public_key(identity)),
                     0);
    assert_int_equal(crypto_sign_verify_detached(signature, (const uint8_t *)"tock", 4,
                                                 identity_public_key(identity)),
                     -1);
}

static void enrolment_survives_a_restart(void **state)
{
    struct error error = {0};
    struct enrolment enrolment = {.machine = 7,
                                  .generation = 2,
                                  .link_key = {1, 2, 3},
                                  .server_public_key = {9},
                                  .server_url = "http://127.0.0.1:7600",
                                  .link_address = "127.0.0.1:7601",
                                  .name = "kitchen"};
    AUTO(identity) struct identity *identity = NULL;
    ASSERT_OK(identity_open(*state, &identity, &error));
    ASSERT_OK(identity_set_enrolment(identity, &enrolment, &error));
    identity_free(TAKE(identity));
    ASSERT_OK(identity_open(*state, &identity, &error));
    const struct enrolment *kept = identity_enrolment(identity);
    assert_int_equal(kept->machine, 7);
    assert_int_equal(kept->generation, 2);
    assert_memory_equal(kept->link_key, enrolment.link_key, IDENTITY_KEY_SIZE);
    assert_memory_equal(kept->server_public_key, enrolment.server_public_key, IDENTITY_KEY_SIZE);
    assert_string_equal(kept->server_url, "http://127.0.0.1:7600");
    assert_string_equal(kept->fingerprint, "");
    assert_string_equal(kept->name, "kitchen");
    char path[128];
    path_in(state, "enrolment.json", path);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void key_that_others_can_read_is_refused(void **state)
{
    struct error error = {0};
    struct identity *identity = NULL;
    ASSERT_OK(identity_open(*state, &identity, &error));
    identity_free(TAKE(identity));
    char path[128];
    path_in(state, "machine.key", path);
    assert_int_equal(chmod(path, 0644), 0);
    ASSERT_FAILS(identity_open(*state, &identity, &error), ERROR_REFUSED);
}

static void broken_files_are_told_as_such(void **state)
{
    struct error error = {0};
    struct identity *identity = NULL;
    char path[128];
    path_in(state, "enrolment.json", path);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs("{\"machine\":1}", file);
    fclose(file);
    assert_int_equal(chmod(path, 0600), 0);
    ASSERT_FAILS(identity_open(*state, &identity, &error), ERROR_CORRUPT);
    assert_non_null(strstr(error.message, "enrolment.json"));
    path_in(state, "machine.key", path);
    file = fopen(path, "we");
    assert_non_null(file);
    fputs("short", file);
    fclose(file);
    ASSERT_FAILS(identity_open(*state, &identity, &error), ERROR_CORRUPT);
}

int main(void)
{
#define FOLDER_TEST(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(key_is_made_once_and_kept_private),
        FOLDER_TEST(signature_is_good_under_the_public_key_only),
        FOLDER_TEST(enrolment_survives_a_restart),
        FOLDER_TEST(key_that_others_can_read_is_refused),
        FOLDER_TEST(broken_files_are_told_as_such),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
