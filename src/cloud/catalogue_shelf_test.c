#include "base/file.h"
#include "cloud/catalogue_shelf.h"
#include "testing/testing.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, TAKES = 200, CHANGES = 50, PATH_SIZE = 4096 };

struct place {
    char folder[64], path[PATH_SIZE];
    struct catalogue_shelf *shelf;
};

static int set_up(void **state)
{
    static struct place place;
    snprintf(place.folder, sizeof(place.folder), "/tmp/souk-shelf-XXXXXX");
    assert_non_null(mkdtemp(place.folder));
    snprintf(place.path, sizeof(place.path), "%s/catalogue.csv", place.folder);
    place.shelf = catalogue_shelf_new(place.path);
    *state = &place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    catalogue_shelf_free(place->shelf);
    unlink(place->path);
    return rmdir(place->folder);
}

static void put(const struct place *place, const char *text)
{
    const struct text part = text_of(text);
    struct error error;
    ASSERT_OK(file_replace(place->path, &part, 1, 0600, &error));
}

static void put_price(const struct place *place, const char *usd)
{
    char text[1024];
    snprintf(text, sizeof(text),
             "catalogue,1\ndate,2026-08-22\nsource,a test\n"
             "instance_type,region,architecture,vcpus,memory_mib,gpu,gpus,bandwidth_mbps,"
             "usd_per_hour,spot_usd_per_hour_min,spot_usd_per_hour_max,interruption_percent\n"
             "m5.large,us-east-1,x86_64,2,8192,,,750,%s,,,\n",
             usd);
    put(place, text);
}

static struct catalogue *take(const struct place *place)
{
    struct catalogue *catalogue = NULL;
    struct error error;
    ASSERT_OK(catalogue_shelf_take(place->shelf, &catalogue, &error));
    return catalogue;
}

static int64_t price(const struct catalogue *catalogue)
{
    const struct catalogue_type *type;
    struct error error;
    ASSERT_OK(catalogue_find(catalogue, TEXT("m5.large"), "us-east-1", &type, &error));
    return type->usd_micro_per_hour;
}

TEST(a_file_is_read_again_only_when_it_is_another)
{
    const struct place *place = *state;
    AUTO(catalogue) struct catalogue *own = take(place); /* there is no file */
    AUTO(catalogue) struct catalogue *same = take(place);
    assert_ptr_equal(own, same);
    assert_true(catalogue_type_count(own) > 1);
    put_price(place, "0.5");
    AUTO(catalogue) struct catalogue *first = take(place);
    AUTO(catalogue) struct catalogue *again = take(place);
    assert_ptr_equal(first, again);
    assert_int_equal(price(first), 500000);
    put_price(place, "0.6");
    AUTO(catalogue) struct catalogue *second = take(place);
    assert_int_equal(price(second), 600000);
    assert_int_equal(price(first), 500000); /* who has it keeps it */
    unlink(place->path);
    AUTO(catalogue) struct catalogue *back = take(place);
    assert_true(catalogue_type_count(back) > 1);
}

TEST(a_wrong_file_is_an_error_until_it_is_right)
{
    const struct place *place = *state;
    struct catalogue *none = NULL;
    struct error error;
    put_price(place, "0.5");
    AUTO(catalogue) struct catalogue *before = take(place);
    put(place, "no catalogue\n");
    ASSERT_FAILS(catalogue_shelf_take(place->shelf, &none, &error), ERROR_INVALID);
    ASSERT_FAILS(catalogue_shelf_take(place->shelf, &none, &error), ERROR_INVALID);
    assert_null(none);
    put_price(place, "0.7");
    AUTO(catalogue) struct catalogue *after = take(place);
    assert_int_equal(price(after), 700000);
    assert_int_equal(price(before), 500000);
}

static void *take_many(void *context)
{
    for (int i = 0; i < TAKES; i++) {
        AUTO(catalogue) struct catalogue *catalogue = take(context);
        if (price(catalogue) != 500000 && price(catalogue) != 600000)
            fail_msg("a price that no file had: %lld", (long long)price(catalogue));
    }
    return NULL;
}

TEST(threads_take_it_while_it_changes)
{
    struct place *place = *state;
    pthread_t threads[THREADS];
    put_price(place, "0.5");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_many, place), 0);
    for (int i = 0; i < CHANGES; i++)
        put_price(place, i % 2 ? "0.5" : "0.6");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    put_price(place, "0.6");
    AUTO(catalogue) struct catalogue *last = take(place);
    assert_int_equal(price(last), 600000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_read_again_only_when_it_is_another, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_wrong_file_is_an_error_until_it_is_right, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(threads_take_it_while_it_changes, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
