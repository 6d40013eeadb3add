#include "base/library.h"
#include "testing/testing.h"

#include <string.h>

static int set_up_count;

static int set_up(struct error *error)
{
    (void)error;
    set_up_count++;
    return 0;
}

static int set_up_badly(struct error *error)
{
    set_up_count++;
    return error_set(error, ERROR_UNAVAILABLE, "not today");
}

TEST(functions_come_in_the_order_of_their_names)
{
    static const char *const names[] = {"floor", "ceil"};
    union {
        struct {
            double (*floor)(double x);
            double (*ceil)(double x);
        } math;
        void *functions[2];
    } loaded;
    struct error error;
    assert_int_equal(library_load("libm.so.6", names, 2, loaded.functions, &error), 0);
    assert_true(loaded.math.floor(1.5) == 1 && loaded.math.ceil(1.5) == 2);
}

TEST(what_is_missing_is_named)
{
    static const char *const names[] = {"floor", "no_such_function"};
    void *functions[2];
    struct error error;
    assert_int_equal(library_load("libm.so.6", names, 2, functions, &error), -1);
    assert_non_null(strstr(error.message, "no_such_function"));
    assert_int_equal(library_load("libnosuch.so.0", names, 2, functions, &error), -1);
    assert_non_null(strstr(error.message, "libnosuch.so.0"));
}

TEST(a_shared_library_is_set_up_once)
{
    static const char *const names[] = {"floor"};
    struct library_once once = LIBRARY_ONCE_INIT;
    void *functions[1];
    struct error error;
    set_up_count = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(library_load_once(&once, "libm.so.6", names, 1, functions, set_up, &error),
                         0);
    assert_int_equal(set_up_count, 1);
}

TEST(what_failed_once_fails_with_the_same_words)
{
    static const char *const names[] = {"floor"};
    struct library_once once = LIBRARY_ONCE_INIT;
    void *functions[1];
    set_up_count = 0;
    for (int i = 0; i < 2; i++) {
        struct error error = {0};
        assert_int_equal(
            library_load_once(&once, "libm.so.6", names, 1, functions, set_up_badly, &error), -1);
        assert_string_equal(error.message, "not today");
    }
    assert_int_equal(set_up_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_come_in_the_order_of_their_names),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(a_shared_library_is_set_up_once),
        cmocka_unit_test(what_failed_once_fails_with_the_same_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
