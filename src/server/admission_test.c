#include "server/admission.h"
#include "testing/testing.h"

static struct admission_guest guests[ADMISSION_MAX];

/* `count` that have said nothing, of blocks 1 to `blocks` in turn. */
static void fill(size_t count, uint64_t blocks)
{
    for (size_t i = 0; i < count; i++)
        guests[i] = (struct admission_guest){.block = 1 + i % blocks, .is_silent = true};
}

static void assert_instead(struct admission admission, size_t index)
{
    assert_int_equal(admission.kind, ADMISSION_INSTEAD);
    assert_int_equal(admission.index, index);
}

TEST(there_is_room_until_a_block_has_all_of_its_own)
{
    fill(ADMISSION_BLOCK_MAX, 1);
    assert_int_equal(admission_judge(guests, 0, 1).kind, ADMISSION_FREE);
    assert_int_equal(admission_judge(guests, ADMISSION_BLOCK_MAX - 1, 1).kind, ADMISSION_FREE);
    assert_int_equal(admission_judge(guests, ADMISSION_BLOCK_MAX, 2).kind, ADMISSION_FREE);
    assert_instead(admission_judge(guests, ADMISSION_BLOCK_MAX, 1), 0);
}

TEST(the_oldest_silent_one_goes_first_and_then_the_oldest)
{
    fill(ADMISSION_BLOCK_MAX, 1);
    for (size_t i = 0; i < ADMISSION_BLOCK_MAX; i++)
        guests[i].is_silent = i == 70 || i == 90;
    assert_instead(admission_judge(guests, ADMISSION_BLOCK_MAX, 1), 70);
    guests[70].is_silent = guests[90].is_silent = false;
    assert_instead(admission_judge(guests, ADMISSION_BLOCK_MAX, 1), 0);
}

TEST(who_proved_its_key_is_not_asked_to_go)
{
    fill(ADMISSION_BLOCK_MAX, 1);
    guests[0].is_known = guests[1].is_known = true;
    assert_instead(admission_judge(guests, ADMISSION_BLOCK_MAX, 1), 2);
    for (size_t i = 0; i < ADMISSION_BLOCK_MAX; i++)
        guests[i].is_known = true;
    assert_int_equal(admission_judge(guests, ADMISSION_BLOCK_MAX, 1).kind, ADMISSION_FULL);
}

TEST(when_all_places_are_taken_the_largest_block_makes_room)
{
    fill(ADMISSION_MAX, 8); /* 64 each */
    guests[0].block = 9;    /* honest, and the oldest */
    guests[8].block = 2;    /* 65 of it */
    assert_instead(admission_judge(guests, ADMISSION_MAX, 10), 1);
    /* Among equals the newcomer's own: nobody gains a place by coming last. */
    guests[8].block = 1;
    guests[0].block = 1;
    assert_instead(admission_judge(guests, ADMISSION_MAX, 5), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_room_until_a_block_has_all_of_its_own),
        cmocka_unit_test(the_oldest_silent_one_goes_first_and_then_the_oldest),
        cmocka_unit_test(who_proved_its_key_is_not_asked_to_go),
        cmocka_unit_test(when_all_places_are_taken_the_largest_block_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
