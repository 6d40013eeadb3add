#include "base/file.h"
#include "peer/sdk.h"
#include "sandbox/folder.h"
#include "testing/testing.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define SCRIPT "print('here')\n"

static struct text packed(char *space, size_t size)
{
    uLongf used = size;
    assert_int_equal(compress((Bytef *)space, &used, (const Bytef *)SCRIPT, strlen(SCRIPT)), Z_OK);
    return (struct text){space, used};
}

TEST(it_is_laid_out_once_and_what_others_laid_out_goes_when_no_lease_is_there)
{
    struct error error = {0};
    char home[] = "/tmp/sdk_test-XXXXXX", space[128], folder[PATH_MAX], path[PATH_MAX + 32];
    struct stat first, second;
    assert_non_null(mkdtemp(home));
    const struct sdk_file files[] = {
        {"souk/here.py", packed(space, sizeof(space)), strlen(SCRIPT)}};
    const struct sdk before = {"before", files, 1}, after = {"after", files, 1};
    ASSERT_OK(sdk_lay_out(&before, home, folder, &error));
    snprintf(path, sizeof(path), "%s/souk/here.py", folder);
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, 1024);
    ASSERT_OK(file_read(path, &text, &error));
    assert_true(text_is(buffer_text(&text), SCRIPT));
    assert_int_equal(stat(path, &first), 0);
    assert_int_equal(first.st_mode & 0777, 0444);
    ASSERT_OK(sdk_lay_out(&before, home, folder, &error));
    assert_int_equal(stat(path, &second), 0);
    assert_true(first.st_ino == second.st_ino);

    char leases[PATH_MAX], lease[PATH_MAX];
    snprintf(leases, sizeof(leases), "%s/leases", home);
    snprintf(lease, sizeof(lease), "%s/leases/7-1", home);
    assert_int_equal(mkdir(leases, 0700), 0);
    assert_int_equal(mkdir(lease, 0700), 0);
    ASSERT_OK(sdk_lay_out(&after, home, folder, &error));
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(rmdir(lease), 0);
    ASSERT_OK(sdk_lay_out(&after, home, folder, &error));
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(folder, F_OK), 0);
    ASSERT_OK(folder_remove(home, &error));
}

TEST(a_file_that_does_not_unpack_is_told_and_nothing_has_the_name)
{
    struct error error = {0};
    char home[] = "/tmp/sdk_test-XXXXXX", space[128], folder[PATH_MAX];
    assert_non_null(mkdtemp(home));
    struct sdk_file file = {"souk/here.py", packed(space, sizeof(space)), strlen(SCRIPT) + 1};
    const struct sdk sdk = {"key", &file, 1};
    ASSERT_FAILS(sdk_lay_out(&sdk, home, folder, &error), ERROR_CORRUPT);
    assert_int_equal(access(folder, F_OK), -1);
    file.size--;
    ASSERT_OK(sdk_lay_out(&sdk, home, folder, &error)); /* over what the first try left */
    ASSERT_OK(folder_remove(home, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_laid_out_once_and_what_others_laid_out_goes_when_no_lease_is_there),
        cmocka_unit_test(a_file_that_does_not_unpack_is_told_and_nothing_has_the_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
