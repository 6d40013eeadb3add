#include "market/price_locks.h"
#include "testing/testing.h"

static struct price_lock some_lock(int64_t core_micro, int64_t slot_count)
{
    struct price_lock lock = {.first_slot = 7, .slot_count = slot_count};
    for (int64_t i = 0; i < slot_count; i++)
        lock.slots[i] = (struct price_vector){.core_micro = core_micro + i, .ram_micro = 3};
    return lock;
}

TEST(equal_locks_are_kept_once_until_the_last_is_given_back)
{
    struct price_locks locks = {0};
    struct price_lock same = some_lock(20000, 2), other = some_lock(20000, 3);
    const struct price_lock *first = price_locks_take(&locks, &same);
    same.slots[2].core_micro = 99; /* beyond its slots: it is still the same */
    const struct price_lock *longer = price_locks_take(&locks, &other);
    assert_ptr_equal(price_locks_take(&locks, &same), first);
    assert_ptr_not_equal(longer, first);
    assert_true(price_lock_equal(longer, &other));
    assert_int_equal(locks.count, 2);

    price_locks_give(&locks, first);
    assert_int_equal(locks.count, 2);
    price_locks_give(&locks, first);
    assert_int_equal(locks.count, 1);
    price_locks_give(&locks, NULL);
    price_locks_give(&locks, longer);
    assert_int_equal(locks.count, 0);
    assert_true(price_lock_equal(price_locks_take(&locks, &same), &same));
    price_locks_done(&locks);
}

TEST(each_part_of_a_lock_sets_it_apart)
{
    enum { PARTS = 7 };
    struct price_locks locks = {0};
    struct price_lock lock = some_lock(5000, 1);
    int64_t *const parts[PARTS] = {&lock.first_slot,
                                   &lock.offset_ms,
                                   &lock.rush_ms,
                                   &lock.from_ms,
                                   &lock.before_micro,
                                   &lock.before_rest,
                                   &lock.slots[0].disk_micro};
    const struct price_lock *plain = price_locks_take(&locks, &lock);
    for (int i = 0; i < PARTS; i++) {
        ++*parts[i];
        assert_ptr_not_equal(price_locks_take(&locks, &lock), plain);
        --*parts[i];
    }
    assert_int_equal(locks.count, PARTS + 1);
    price_locks_done(&locks);
}

TEST(a_thousand_locks_are_all_found_again)
{
    enum { COUNT = 1000 };
    struct price_locks locks = {0};
    const struct price_lock *taken[COUNT];
    for (int i = 0; i < COUNT; i++) {
        const struct price_lock lock = some_lock(1000 + 10 * i, 1 + i % PRICE_LOCK_SLOTS);
        taken[i] = price_locks_take(&locks, &lock);
    }
    for (int i = 0; i < COUNT; i++) {
        const struct price_lock lock = some_lock(1000 + 10 * i, 1 + i % PRICE_LOCK_SLOTS);
        assert_ptr_equal(price_locks_take(&locks, &lock), taken[i]);
        price_locks_give(&locks, taken[i]);
        price_locks_give(&locks, taken[i]);
    }
    assert_int_equal(locks.count, 0);
    price_locks_done(&locks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_locks_are_kept_once_until_the_last_is_given_back),
        cmocka_unit_test(each_part_of_a_lock_sets_it_apart),
        cmocka_unit_test(a_thousand_locks_are_all_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
