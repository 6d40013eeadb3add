#include "peer/software.h"
#include "testing/testing.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE "/var/lib/no-such-state"

static void make_file(const char *folder, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    close(fd);
}

static void remove_from(const char *folder, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(remove(path), 0);
}

TEST(folders_that_all_may_read_are_offered_by_their_real_path)
{
    struct error error;
    char folder[] = "/var/tmp/software_test.XXXXXX", item[80], link[64], other[80];
    assert_non_null(mkdtemp(folder)); /* mode 0700 */
    snprintf(item, sizeof(item), "venv=%s", folder);
    const char *const items[] = {"doc=/usr/share/doc", item};
    ASSERT_FAILS(software_check(items, 2, STATE, &error), ERROR_REFUSED);
    assert_non_null(strstr(error.message, "chmod -R o+rX"));
    assert_int_equal(chmod(folder, 0755), 0);
    ASSERT_OK(software_check(items, 2, STATE, &error));
    ASSERT_FAILS(software_check(items, 2, folder, &error), ERROR_REFUSED);
    snprintf(other, sizeof(other), "%s/state", folder);
    ASSERT_FAILS(software_check(items, 2, other, &error), ERROR_REFUSED);

    snprintf(link, sizeof(link), "%s-link", folder);
    assert_int_equal(symlink(folder, link), 0);
    snprintf(other, sizeof(other), "venv=%s", link);
    const char *const linked[] = {other};
    ASSERT_FAILS(software_check(linked, 1, STATE, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "name that"));
    unlink(link);
    rmdir(folder);
    ASSERT_FAILS(software_check(items, 2, STATE, &error), ERROR_NOT_FOUND);
}

TEST(what_is_no_label_and_folder_is_refused)
{
    struct error error;
    static const char *const wrong[] = {
        "venv",
        "=/opt",
        "a b=/usr/share",
        "venv=usr",
        "venv=/etc/passwd",
        "venv=/",
        "venv=/usr",
        "venv=/tmp",
        "venv=/proc",
        "venv=/dev/shm",
        "a,b=/usr/share",
        "venv=/etc",
        "venv=/usr/bin/sh",
        "venv=/usr/a:b",
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmno=/usr/share",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        ASSERT_FAILS(software_check(&wrong[i], 1, STATE, &error), ERROR_INVALID);
    static const char *const twice[] = {"a=/usr/share", "a=/usr/include"};
    ASSERT_FAILS(software_check(twice, 2, STATE, &error), ERROR_INVALID);
    static const char *const many[] = {"a=/usr/share", "b=/usr/share", "c=/usr/share",
                                       "d=/usr/share", "e=/usr/share", "f=/usr/share",
                                       "g=/usr/share", "h=/usr/share", "i=/usr/share"};
    ASSERT_OK(software_check(many, 8, STATE, &error));
    ASSERT_FAILS(software_check(many, 9, STATE, &error), ERROR_INVALID);
}

TEST(a_job_gets_what_it_asks_for_in_its_order)
{
    static const char *const items[] = {"java=/opt/java", "venv=/opt/venv", "more=/opt/more",
                                        "same=/opt/venv"};
    struct text paths[SOFTWARE_MAX];
    assert_int_equal(software_choose(items, 4, TEXT("avx2,venv,java,same,venv"), paths), 2);
    assert_true(text_is(paths[0], "/opt/venv"));
    assert_true(text_is(paths[1], "/opt/java"));
    assert_int_equal(software_choose(items, 4, TEXT(""), paths), 0);
    assert_int_equal(software_choose(items, 0, TEXT("venv"), paths), 0);
}

TEST(programs_of_the_folders_come_first)
{
    char folder[] = "/var/tmp/software_test.XXXXXX", bin[64], expected[160];
    AUTO(arena) struct arena *arena = arena_new(0);
    const char *variables[SOFTWARE_VARIABLES_MAX];
    assert_non_null(mkdtemp(folder));
    const struct text paths[] = {TEXT("/usr/share/doc"), text_of(folder)};
    assert_int_equal(software_environment(arena, paths, 2, "/usr/bin:/bin", variables), 1);
    assert_string_equal(variables[0], "PATH=/usr/bin:/bin");

    snprintf(bin, sizeof(bin), "%s/bin", folder);
    assert_int_equal(mkdir(bin, 0755), 0);
    make_file(folder, "pyvenv.cfg");
    make_file(folder, "bin/java");
    assert_int_equal(software_environment(arena, paths, 2, "/usr/bin:/bin", variables), 3);
    snprintf(expected, sizeof(expected), "PATH=%s:/usr/bin:/bin", bin);
    assert_string_equal(variables[0], expected);
    snprintf(expected, sizeof(expected), "VIRTUAL_ENV=%s", folder);
    assert_string_equal(variables[1], expected);
    snprintf(expected, sizeof(expected), "JAVA_HOME=%s", folder);
    assert_string_equal(variables[2], expected);
    remove_from(folder, "bin/java");
    remove_from(folder, "pyvenv.cfg");
    rmdir(bin);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_that_all_may_read_are_offered_by_their_real_path),
        cmocka_unit_test(what_is_no_label_and_folder_is_refused),
        cmocka_unit_test(a_job_gets_what_it_asks_for_in_its_order),
        cmocka_unit_test(programs_of_the_folders_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
