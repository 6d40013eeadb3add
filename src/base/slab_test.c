#include "base/random.h"
#include "base/slab.h"
#include "testing/testing.h"

#include <stdbool.h>

enum { ITEMS = 20000, SIZE = 200 };

static bool is_all(const unsigned char *bytes, unsigned char value)
{
    for (size_t i = 0; i < SIZE; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

TEST(items_come_zeroed_and_keep_what_is_written_while_others_come_and_go)
{
    static unsigned char *items[ITEMS];
    struct slab slab;
    struct random random;
    random_init(&random, 3);
    slab_init(&slab, SIZE);
    for (int step = 0; step < 5 * ITEMS; step++) {
        const uint64_t at = random_below(&random, ITEMS);
        const unsigned char value = (unsigned char)(1 + at % 255);
        if (items[at]) {
            assert_true(is_all(items[at], value));
            slab_give(&slab, items[at]);
            items[at] = NULL;
            continue;
        }
        items[at] = slab_take(&slab);
        assert_true(is_all(items[at], 0));
        memset(items[at], value, SIZE);
    }
    for (size_t i = 0; i < ITEMS; i++)
        assert_true(!items[i] || is_all(items[i], (unsigned char)(1 + i % 255)));
    slab_done(&slab);
}

TEST(little_is_unused_and_what_is_given_back_is_used_again)
{
    struct slab slab;
    slab_init(&slab, SIZE);
    void *last = NULL;
    for (int i = 0; i < ITEMS; i++)
        last = slab_take(&slab);
    const size_t used = (size_t)ITEMS * slab.item_size;
    assert_true(slab.bytes >= used && slab.bytes <= used + used / 4);
    const size_t bytes = slab.bytes;
    for (int i = 0; i < ITEMS; i++) {
        slab_give(&slab, last);
        assert_ptr_equal(slab_take(&slab), last);
    }
    assert_int_equal(slab.bytes, bytes);
    slab_give(&slab, NULL);
    slab_done(&slab);
    assert_int_equal(slab.bytes, 0);
    assert_non_null(slab_take(&slab)); /* as if new */
    slab_done(&slab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_come_zeroed_and_keep_what_is_written_while_others_come_and_go),
        cmocka_unit_test(little_is_unused_and_what_is_given_back_is_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
