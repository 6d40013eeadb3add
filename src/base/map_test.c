#include "base/map.h"
#include "base/random.h"
#include "testing/testing.h"

#include <stdio.h>

TEST(what_is_put_is_found_until_removed)
{
    struct map map;
    map_init(&map);
    int one, two;
    map_put(&map, 7, &one);
    map_put(&map, 8, &two);
    assert_ptr_equal(map_get(&map, 7), &one);
    assert_ptr_equal(map_remove(&map, 7), &one);
    assert_null(map_get(&map, 7));
    assert_null(map_remove(&map, 7));
    assert_ptr_equal(map_get(&map, 8), &two);
    map_done(&map);
}

TEST(text_keys_are_copied)
{
    struct map map;
    map_init(&map);
    char name[] = "heron";
    int value;
    map_put_text(&map, text_of(name), &value);
    name[0] = 'x';
    assert_ptr_equal(map_get_text(&map, TEXT("heron")), &value);
    assert_null(map_get_text(&map, TEXT("xeron")));
    assert_ptr_equal(map_remove_text(&map, TEXT("heron")), &value);
    map_done(&map);
}

TEST(random_operations_agree_with_a_plain_table)
{
    enum { KEYS = 512, OPERATIONS = 200000 };
    static char values[KEYS];
    static bool is_present[KEYS];
    struct map map;
    struct random random;
    map_init(&map);
    random_init(&random, 1);
    size_t count = 0;
    for (int i = 0; i < OPERATIONS; i++) {
        const uint64_t key = random_below(&random, KEYS);
        if (random_below(&random, 2)) {
            map_put(&map, key, &values[key]);
            count += !is_present[key];
            is_present[key] = true;
        } else {
            assert_ptr_equal(map_remove(&map, key), is_present[key] ? &values[key] : NULL);
            count -= is_present[key];
            is_present[key] = false;
        }
        assert_int_equal(map.count, count);
        const uint64_t other = random_below(&random, KEYS);
        assert_ptr_equal(map_get(&map, other), is_present[other] ? &values[other] : NULL);
    }
    map_done(&map);
}

TEST(text_maps_survive_growth_and_removal)
{
    enum { KEYS = 1000 };
    static char values[KEYS];
    struct map map;
    map_init(&map);
    char name[16];
    for (int i = 0; i < KEYS; i++) {
        snprintf(name, sizeof(name), "key-%d", i);
        map_put_text(&map, text_of(name), &values[i]);
    }
    for (int i = 0; i < KEYS; i += 2) {
        snprintf(name, sizeof(name), "key-%d", i);
        assert_ptr_equal(map_remove_text(&map, text_of(name)), &values[i]);
    }
    for (int i = 0; i < KEYS; i++) {
        snprintf(name, sizeof(name), "key-%d", i);
        assert_ptr_equal(map_get_text(&map, text_of(name)), i % 2 ? &values[i] : NULL);
    }
    map_done(&map);
}

TEST(a_cleared_map_is_empty_and_good_as_new)
{
    struct map map;
    map_init(&map);
    map_clear(&map);
    int value;
    for (int round = 0; round < 3; round++) {
        for (uint64_t key = 1; key <= 100; key++)
            map_put(&map, key * 7, &value);
        assert_int_equal(map.count, 100);
        map_clear(&map);
        assert_int_equal(map.count, 0);
        assert_null(map_get(&map, 7));
    }
    map_put_text(&map, TEXT("a"), &value);
    map_clear(&map);
    assert_null(map_get_text(&map, TEXT("a")));
    map_done(&map);
}

TEST(hints_need_no_key_and_change_nothing)
{
    struct map map;
    int value = 0;
    map_init(&map);
    map_ask_slot(&map, 7);
    map_ask_entry(&map, 7);
    for (uint64_t key = 1; key <= 100; key++)
        map_put(&map, key, &value);
    for (uint64_t key = 0; key <= 200; key++) {
        map_ask_slot(&map, key);
        map_ask_entry(&map, key);
        assert_int_equal(map_get(&map, key) != NULL, key >= 1 && key <= 100);
    }
    assert_int_equal(map.count, 100);
    map_done(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_is_found_until_removed),
        cmocka_unit_test(text_keys_are_copied),
        cmocka_unit_test(random_operations_agree_with_a_plain_table),
        cmocka_unit_test(text_maps_survive_growth_and_removal),
        cmocka_unit_test(a_cleared_map_is_empty_and_good_as_new),
        cmocka_unit_test(hints_need_no_key_and_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
