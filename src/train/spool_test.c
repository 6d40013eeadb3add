#include "testing/testing.h"
#include "train/spool.h"

#include <string.h>

TEST(bytes_survive_the_move_from_memory_to_a_file)
{
    struct error error;
    struct spool spool = {.memory_max = 128 << 10};
    for (uint32_t i = 0; i < 200000; i++)
        ASSERT_OK(spool_append(&spool, &i, sizeof(i), &error));
    assert_true(spool.file > 0);
    assert_int_equal(spool.size, 200000 * sizeof(uint32_t));
    for (uint32_t i = 0; i < 200000; i++) {
        uint32_t value;
        memcpy(&value, spool.data + i * sizeof(value), sizeof(value));
        assert_int_equal(value, i);
    }
    spool_done(&spool);
    assert_null(spool.data);
}

TEST(more_than_there_can_be_is_refused)
{
    struct error error;
    struct spool spool = {0};
    void *room;
    ASSERT_FAILS(spool_reserve(&spool, SIZE_MAX / 2, &room, &error), ERROR_EXHAUSTED);
    ASSERT_FAILS(spool_reserve(&spool, (size_t)1 << 61, &room, &error), ERROR_EXHAUSTED);
    spool_done(&spool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_survive_the_move_from_memory_to_a_file),
        cmocka_unit_test(more_than_there_can_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
