#include "runtime/package_lock.h"
#include "testing/testing.h"

static struct locked_package package(const char *name, const char *version, uint8_t byte)
{
    struct locked_package made = {.sha256 = {byte}};
    snprintf(made.name, sizeof(made.name), "%s", name);
    snprintf(made.version, sizeof(made.version), "%s", version);
    return made;
}

static struct package_lock lock_of(struct locked_package *packages, size_t count)
{
    return (struct package_lock){.packages = {packages, count}};
}

static void what_is_written_is_read_again(void **state)
{
    (void)state;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct locked_package packages[] = {package("numpy", "1.26.4", 1), package("PyYAML", "6.0", 2),
                                        package("a.b-c_d", "1!2.0+cpu", 3)};
    struct package_lock lock = lock_of(packages, 3), again;
    ASSERT_OK(package_lock_sort(&lock, &error));
    struct buffer json AUTO_BUFFER, other AUTO_BUFFER;
    buffer_init(&json, PACKAGE_LOCK_SIZE_MAX);
    buffer_init(&other, PACKAGE_LOCK_SIZE_MAX);
    package_lock_write(&lock, &json);
    ASSERT_OK(package_lock_read(arena, buffer_text(&json), &again, &error));
    package_lock_write(&again, &other);
    assert_true(text_equal(buffer_text(&json), buffer_text(&other)));
    assert_string_equal(((struct locked_package *)again.packages.items)[0].name, "PyYAML");
    assert_string_equal(package_lock_find(&again, packages[2].sha256)->name, "numpy");
    assert_null(package_lock_find(&again, package("x", "1", 9).sha256));
}

static void pip_reads_it_as_requirements_with_hashes(void **state)
{
    (void)state;
    struct locked_package packages[] = {package("one", "1.0", 0xab)};
    struct package_lock lock = lock_of(packages, 1);
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 1000);
    package_lock_write_requirements(&lock, &out);
    assert_true(text_equal(buffer_text(&out), TEXT("one==1.0 --hash=sha256:ab0000000000000000000000"
                                                   "00000000000000000000000000000000000000"
                                                   "00\n")));
}

static void nothing_that_pip_takes_for_something_else_is_a_name(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",    "-r",   "--index-url", "a b", "a/b", "a==1",
                                        "a@b", "a\nb", "a;b",         ".a",  "a[x]"};
    struct error error;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct locked_package named[] = {package(wrong[i], "1.0", 1)};
        struct locked_package dated[] = {package("a", wrong[i], 1)};
        struct package_lock first = lock_of(named, 1), second = lock_of(dated, 1);
        ASSERT_FAILS(package_lock_sort(&first, &error), ERROR_INVALID);
        ASSERT_FAILS(package_lock_sort(&second, &error), ERROR_INVALID);
    }
}

static void a_list_is_sorted_short_and_has_each_package_once(void **state)
{
    (void)state;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct package_lock read;
    struct locked_package packages[] = {package("b", "1", 1), package("a", "1", 2)};
    struct package_lock lock = lock_of(packages, 2);
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, (size_t)2 * PACKAGE_LOCK_SIZE_MAX);
    package_lock_write(&lock, &json);
    ASSERT_FAILS(package_lock_read(arena, buffer_text(&json), &read, &error), ERROR_INVALID);
    packages[0] = package("a", "2", 3);
    ASSERT_FAILS(package_lock_sort(&lock, &error), ERROR_INVALID);

    struct locked_package *many = arena_alloc(arena, (PACKAGE_LOCK_MAX + 1) * sizeof(*many));
    for (size_t i = 0; i <= PACKAGE_LOCK_MAX; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%04zu", i);
        many[i] = package(name, "1", 1);
    }
    lock = lock_of(many, PACKAGE_LOCK_MAX + 1);
    ASSERT_FAILS(package_lock_sort(&lock, &error), ERROR_EXHAUSTED);
    buffer_clear(&json);
    package_lock_write(&lock, &json);
    ASSERT_FAILS(package_lock_read(arena, buffer_text(&json), &read, &error), ERROR_INVALID);
    lock.packages.count--;
    ASSERT_OK(package_lock_sort(&lock, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(pip_reads_it_as_requirements_with_hashes),
        cmocka_unit_test(nothing_that_pip_takes_for_something_else_is_a_name),
        cmocka_unit_test(a_list_is_sorted_short_and_has_each_package_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
