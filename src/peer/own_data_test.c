#include "peer/own_data.h"
#include "testing/testing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(labels_name_paths_that_leases_can_read)
{
    struct error error;
    char folder[] = "/tmp/own_data_test.XXXXXX", item[80];
    assert_non_null(mkdtemp(folder)); /* mode 0700 */
    snprintf(item, sizeof(item), "scans.v2=%s", folder);
    const char *const items[] = {"system=/etc/passwd", item};
    ASSERT_FAILS(own_data_check(items, 2, &error), ERROR_REFUSED);
    assert_non_null(strstr(error.message, "chmod o+rX"));
    assert_int_equal(chmod(folder, 0755), 0);
    ASSERT_OK(own_data_check(items, 2, &error));
    assert_string_equal(own_data_path(items, 2, TEXT("scans.v2")), folder);
    assert_string_equal(own_data_path(items, 2, TEXT("system")), "/etc/passwd");
    assert_null(own_data_path(items, 2, TEXT("scans")));
    rmdir(folder);
    ASSERT_FAILS(own_data_check(items, 2, &error), ERROR_NOT_FOUND);
}

TEST(what_is_no_label_and_path_is_refused)
{
    struct error error;
    static const char *const wrong[] = {
        "scans",
        "=/etc",
        "a b=/etc",
        "scans=etc",
        "scans=/dev/null",
        "a,b=/etc",
        "abcdefghijklmnopqrstuvwxyzabcdefghij=/etc",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        ASSERT_FAILS(own_data_check(&wrong[i], 1, &error), ERROR_INVALID);
    static const char *const twice[] = {"a=/etc", "a=/usr"};
    ASSERT_FAILS(own_data_check(twice, 2, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_name_paths_that_leases_can_read),
        cmocka_unit_test(what_is_no_label_and_path_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
