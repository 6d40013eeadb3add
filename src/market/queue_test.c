#include "market/queue.h"
#include "testing/testing.h"

enum { ACCOUNTS = 3, JOBS = 3000 };

struct waiting {
    uint64_t id;
    int account;
    int64_t cost_micro;
    struct queue_turn turn;
};

TEST(a_light_account_is_served_at_once_beside_a_heavy_one)
{
    struct queue_clock clock = {0};
    int64_t heavy_finish = 0;
    int64_t tenth_tag = 0;
    for (int i = 0; i < 100; i++) {
        const struct queue_turn turn = queue_take_turn(&clock, heavy_finish, 1000);
        heavy_finish = turn.finish_tag;
        if (i == 10)
            tenth_tag = turn.tag;
    }
    queue_serve(&clock, (struct queue_turn){tenth_tag, tenth_tag + 1000});
    const struct queue_turn light = queue_take_turn(&clock, 0, 1000);
    /* Behind the ten that were served, before the ninety that wait. */
    assert_true(queue_score(false, light.tag) < queue_score(false, tenth_tag));
    assert_true(queue_score(false, light.tag) > queue_score(false, tenth_tag + 1000));
}

/* Every account always has jobs waiting; one asks for ten times as much in each. */
TEST(accounts_that_always_ask_get_equal_cost_served)
{
    struct queue_clock clock = {0};
    AUTO(book) struct book *book = book_new();
    static struct waiting jobs[JOBS];
    static uint32_t numbers[JOBS];
    int64_t finish[ACCOUNTS] = {0}, served_micro[ACCOUNTS] = {0};
    const int64_t cost_micro[ACCOUNTS] = {100, 100, 1000};
    struct book_search search = {0};
    const struct book_wish any = book_wish_any();
    for (uint64_t i = 0; i < JOBS; i++) {
        const int account = (int)(i % ACCOUNTS);
        const struct queue_turn turn =
            queue_take_turn(&clock, finish[account], cost_micro[account]);
        finish[account] = turn.finish_tag;
        jobs[i] = (struct waiting){i + 1, account, cost_micro[account], turn};
        numbers[i] = book_add(book, &(struct book_entry){.score = queue_score(false, turn.tag),
                                                         .id = i + 1,
                                                         .item = &jobs[i]});
    }
    for (int i = 0; i < 1050; i++) {
        book_search_start(&search, book, &any, (struct book_sort){.by = BOOK_BY_SCORE});
        const struct waiting *first = book_search_next(&search);
        assert_non_null(first);
        queue_serve(&clock, first->turn);
        served_micro[first->account] += first->cost_micro;
        book_remove(book, numbers[first - jobs]);
    }
    for (int i = 0; i < ACCOUNTS; i++)
        assert_in_range(served_micro[i], 49000, 51000);
    book_search_done(&search);
}

TEST(tags_stop_at_their_maximum_instead_of_wrapping)
{
    struct queue_clock clock = {.now_tag = QUEUE_TAG_MAX - 5};
    const struct queue_turn turn = queue_take_turn(&clock, 0, INT64_MAX / 4);
    assert_true(turn.tag == QUEUE_TAG_MAX - 5);
    assert_true(turn.finish_tag == QUEUE_TAG_MAX);
    const struct queue_turn next = queue_take_turn(&clock, turn.finish_tag, 1);
    assert_true(next.tag == QUEUE_TAG_MAX && next.finish_tag == QUEUE_TAG_MAX);
    assert_true(queue_score(false, next.tag) == 0);
    assert_true(queue_score(true, 0) == INT64_MAX);
    assert_true(queue_score(true, QUEUE_TAG_MAX) > queue_score(false, 0));
}

/* Each newcomer's first job has the clock's own tag. */
TEST(an_endless_stream_of_new_accounts_does_not_keep_a_job_waiting)
{
    struct queue_clock clock = {0};
    const struct queue_turn waits = queue_take_turn(&clock, 5000, 100000);
    int before = 0;
    for (; before < 100000; before++) {
        const struct queue_turn newcomer = queue_take_turn(&clock, 0, 3000);
        if (queue_score(false, newcomer.tag) < queue_score(false, waits.tag))
            break;
        queue_serve(&clock, newcomer);
    }
    assert_in_range(before, 1000, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_light_account_is_served_at_once_beside_a_heavy_one),
        cmocka_unit_test(accounts_that_always_ask_get_equal_cost_served),
        cmocka_unit_test(an_endless_stream_of_new_accounts_does_not_keep_a_job_waiting),
        cmocka_unit_test(tags_stop_at_their_maximum_instead_of_wrapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
