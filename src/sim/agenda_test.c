#include "base/random.h"
#include "sim/agenda.h"
#include "testing/testing.h"

TEST(items_come_out_by_time_and_then_as_they_were_put_in)
{
    struct agenda agenda;
    struct random random;
    agenda_init(&agenda);
    random_init(&random, 7);
    for (uint32_t i = 0; i < 1000; i++)
        agenda_put(&agenda,
                   &(struct agenda_item){.at = (int64_t)random_below(&random, 50), .index = i});
    struct agenda_item item, before = {.at = -1};
    size_t count = 0;
    while (agenda_take(&agenda, &item)) {
        assert_true(item.at > before.at || (item.at == before.at && item.index > before.index));
        before = item;
        count++;
    }
    assert_int_equal(count, 1000);
    assert_true(agenda_next(&agenda) == INT64_MAX);
    agenda_done(&agenda);
}

TEST(the_next_instant_is_that_of_the_first_item)
{
    struct agenda agenda;
    agenda_init(&agenda);
    agenda_put(&agenda, &(struct agenda_item){.at = 30});
    agenda_put(&agenda, &(struct agenda_item){.at = 10, .kind = 5});
    assert_int_equal(agenda_next(&agenda), 10);
    struct agenda_item item;
    assert_true(agenda_take(&agenda, &item));
    assert_int_equal(item.kind, 5);
    assert_int_equal(agenda_next(&agenda), 30);
    agenda_done(&agenda);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_come_out_by_time_and_then_as_they_were_put_in),
        cmocka_unit_test(the_next_instant_is_that_of_the_first_item),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
