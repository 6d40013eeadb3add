#include "base/file.h"
#include "server/sealed.h"
#include "testing/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLEAR "{\"secrets\":{\"TOKEN\":\"hush-hush-hush\"}}"

static char dir[] = "/tmp/souk-sealed-XXXXXX";
static struct keys *keys;
static struct sealed *sealed;

static int open_all(void **state)
{
    (void)state;
    struct error error;
    char path[64];
    memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof(path), "%s/keys", dir);
    return keys_open(path, &keys, &error) < 0 ? -1 : sealed_open(dir, keys, &sealed, &error);
}

static int close_all(void **state)
{
    (void)state;
    char command[64];
    sealed_free(TAKE(sealed));
    keys_free(TAKE(keys));
    snprintf(command, sizeof(command), "rm -r '%s'", dir);
    return system(command); // NOLINT(cert-env33-c,concurrency-mt-unsafe): a folder of this test's
}

static void path_of(const char *name, char out[128])
{
    snprintf(out, 128, "%s/secrets/%s", dir, name);
}

TEST(what_was_put_comes_back_and_is_not_in_the_file)
{
    struct error error;
    char name[SEALED_NAME_SIZE], other[SEALED_NAME_SIZE], path[128];
    struct buffer bytes AUTO_BUFFER, file AUTO_BUFFER;
    buffer_init(&bytes, SEALED_BYTES_MAX + 1);
    buffer_init(&file, 1 << 20);
    ASSERT_OK(sealed_put(sealed, 7, TEXT(CLEAR), name, &error));
    ASSERT_OK(sealed_put(sealed, 7, TEXT(CLEAR), other, &error));
    assert_string_not_equal(name, other);
    sealed_free(TAKE(sealed)); /* as after a restart */
    ASSERT_OK(sealed_open(dir, keys, &sealed, &error));
    ASSERT_OK(sealed_get(sealed, 7, text_of(name), &bytes, &error));
    assert_string_equal(buffer_string(&bytes), CLEAR);
    path_of(name, path);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    ASSERT_OK(file_read(path, &file, &error));
    assert_null(memmem(file.data, file.size, "hush", 4));
    assert_null(memmem(file.data, file.size, "TOKEN", 5));
}

TEST(another_account_another_name_and_a_changed_byte_open_nothing)
{
    struct error error;
    char name[SEALED_NAME_SIZE], other[SEALED_NAME_SIZE], path[128], to[128];
    struct buffer bytes AUTO_BUFFER, file AUTO_BUFFER;
    buffer_init(&bytes, SEALED_BYTES_MAX + 1);
    buffer_init(&file, 1 << 20);
    ASSERT_OK(sealed_put(sealed, 7, TEXT(CLEAR), name, &error));
    ASSERT_OK(sealed_put(sealed, 7, TEXT("{}"), other, &error));
    ASSERT_FAILS(sealed_get(sealed, 8, text_of(name), &bytes, &error), ERROR_CORRUPT);
    path_of(name, path);
    path_of(other, to);
    assert_int_equal(rename(path, to), 0);
    ASSERT_FAILS(sealed_get(sealed, 7, text_of(other), &bytes, &error), ERROR_CORRUPT);
    ASSERT_FAILS(sealed_get(sealed, 7, text_of(name), &bytes, &error), ERROR_NOT_FOUND);
    ASSERT_OK(sealed_put(sealed, 7, TEXT(CLEAR), name, &error));
    path_of(name, path);
    ASSERT_OK(file_read(path, &file, &error));
    file.data[file.size - 1] ^= 1;
    const struct text changed = buffer_text(&file);
    ASSERT_OK(file_replace(path, &changed, 1, 0600, &error));
    ASSERT_FAILS(sealed_get(sealed, 7, text_of(name), &bytes, &error), ERROR_CORRUPT);
    ASSERT_FAILS(sealed_get(sealed, 7, TEXT("../keys/root.key"), &bytes, &error), ERROR_INVALID);
    assert_int_equal(bytes.size, 0);
}

static bool is_first(void *context, struct text name)
{
    return text_is(name, context);
}

TEST(what_no_job_needs_is_swept)
{
    struct error error;
    char name[SEALED_NAME_SIZE], other[SEALED_NAME_SIZE], path[128];
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, SEALED_BYTES_MAX + 1);
    ASSERT_OK(sealed_put(sealed, 7, TEXT(CLEAR), name, &error));
    ASSERT_OK(sealed_put(sealed, 7, TEXT(CLEAR), other, &error));
    path_of("lost+found", path);
    assert_int_equal(mkdir(path, 0700), 0);
    ASSERT_OK(sealed_sweep(sealed, is_first, name, &error));
    assert_int_equal(rmdir(path), 0); /* it was left alone */
    ASSERT_OK(sealed_get(sealed, 7, text_of(name), &bytes, &error));
    ASSERT_FAILS(sealed_get(sealed, 7, text_of(other), &bytes, &error), ERROR_NOT_FOUND);
    ASSERT_OK(sealed_remove(sealed, text_of(name), &error));
    ASSERT_OK(sealed_remove(sealed, text_of(name), &error));
    ASSERT_FAILS(sealed_get(sealed, 7, text_of(name), &bytes, &error), ERROR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_put_comes_back_and_is_not_in_the_file, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(
            another_account_another_name_and_a_changed_byte_open_nothing, open_all, close_all),
        cmocka_unit_test_setup_teardown(what_no_job_needs_is_swept, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
