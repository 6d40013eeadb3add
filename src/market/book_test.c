/* The book against a walk over all entries: same fits, same order.
 * covers book.c, book_search.c, book_tree.c */
#include "base/random.h"
#include "market/book.h"
#include "testing/testing.h"

#include <stdlib.h>

enum { ENTRIES_MAX = 3000 };

struct kept {
    struct book_entry entry;
    uint32_t number; /* 0: not in the book */
};

struct bench {
    struct random random;
    struct book *book;
    struct kept kept[ENTRIES_MAX];
    struct kept *fits[ENTRIES_MAX];
};

/* Each bit set with a chance of one in two to the power of `times`. */
static uint64_t few_bits(struct random *random, int times)
{
    uint64_t bits = UINT64_MAX;
    while (times-- > 0)
        bits &= random_u64(random);
    return bits;
}

static struct book_point some_point(struct random *random, int spread)
{
    struct book_point point = {.bits = ~few_bits(random, 2)};
    for (int i = 0; i < BOOK_KEY_COUNT; i++)
        point.keys[i] = (uint8_t)random_below(random, (uint64_t)spread);
    return point;
}

static struct book_entry some_entry(struct bench *bench, struct kept *kept)
{
    /* Few scores and orders, so that ties and full nodes come up. */
    return (struct book_entry){.point = some_point(&bench->random, 40),
                               .score = (int64_t)random_below(&bench->random, 9) - 4,
                               .id = (uint64_t)(kept - bench->kept) + 1,
                               .order = (uint32_t)random_below(&bench->random, 50),
                               .item = kept};
}

static void step(struct bench *bench)
{
    struct kept *kept = &bench->kept[random_below(&bench->random, ENTRIES_MAX)];
    if (kept->number && random_below(&bench->random, 3) == 0) {
        book_remove(bench->book, kept->number);
        kept->number = 0;
        return;
    }
    struct book_entry entry = some_entry(bench, kept);
    if (kept->number && random_below(&bench->random, 2))
        entry.order = kept->entry.order;
    kept->entry = entry;
    if (kept->number)
        book_change(bench->book, kept->number, &entry);
    else
        kept->number = book_add(bench->book, &entry);
}

static int64_t rank(const struct kept *kept, struct book_sort sort, int nth)
{
    switch (sort.by) {
    case BOOK_BY_SCORE:
        return nth == 0 ? kept->entry.score : 0;
    case BOOK_BY_KEYS:
        return kept->entry.point.keys[nth == 0 ? sort.first_key : sort.second_key];
    case BOOK_BY_ID:
        return 0;
    }
    return 0;
}

static struct book_sort oracle_sort;

static int compare(const void *left_item, const void *right_item)
{
    const struct kept *left = *(struct kept *const *)left_item;
    const struct kept *right = *(struct kept *const *)right_item;
    for (int nth = 0; nth < 2; nth++) {
        const int64_t a = rank(left, oracle_sort, nth), b = rank(right, oracle_sort, nth);
        if (a != b)
            return a > b ? -1 : 1;
    }
    return left->entry.id < right->entry.id ? -1 : 1;
}

static size_t find_all(struct bench *bench, const struct book_wish *wish, struct book_sort sort)
{
    size_t count = 0;
    for (size_t i = 0; i < ENTRIES_MAX; i++)
        if (bench->kept[i].number && book_point_fits(&bench->kept[i].entry.point, wish))
            bench->fits[count++] = &bench->kept[i];
    oracle_sort = sort;
    qsort(bench->fits, count, sizeof(*bench->fits), compare);
    return count;
}

static struct book_wish some_wish(struct random *random)
{
    struct book_wish wish = book_wish_any();
    for (uint64_t wishes = random_below(random, 5); wishes > 0; wishes--)
        wish.least.keys[random_below(random, BOOK_KEY_COUNT)] = (uint8_t)random_below(random, 30);
    if (random_below(random, 2))
        wish.least.bits = UINT64_C(1) << random_below(random, 64);
    if (random_below(random, 2))
        wish.any_bits = UINT64_C(9) << random_below(random, 60);
    return wish;
}

static void search_as_the_oracle(struct bench *bench, struct book_search *search)
{
    const struct book_wish wish = some_wish(&bench->random);
    const struct book_sort sort = {.by = (enum book_by)random_below(&bench->random, 3),
                                   .first_key = (int)random_below(&bench->random, BOOK_KEY_COUNT),
                                   .second_key = (int)random_below(&bench->random, BOOK_KEY_COUNT)};
    const size_t count = find_all(bench, &wish, sort);
    book_search_start(search, bench->book, &wish, sort);
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(book_search_next(search), bench->fits[i]);
    assert_null(book_search_next(search));
    if (count == 0)
        return;
    /* Another walk goes on where one was left. */
    const size_t left = random_below(&bench->random, count);
    book_search_start(search, bench->book, &wish, sort);
    for (size_t i = 0; i <= left; i++)
        (void)book_search_next(search);
    book_search_start_after(search, bench->book, &wish, sort, search->mark);
    for (size_t i = left + 1; i < count; i++)
        assert_ptr_equal(book_search_next(search), bench->fits[i]);
    assert_null(book_search_next(search));
}

static struct bench *bench_new(uint64_t seed)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    assert_non_null(bench);
    random_init(&bench->random, seed);
    bench->book = book_new();
    return bench;
}

static void bench_free(struct bench *bench)
{
    book_free(bench->book);
    free(bench);
}

TEST(fits_come_as_from_a_walk_over_all_while_entries_come_change_and_go)
{
    struct book_search search = {0};
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct bench *bench = bench_new(seed);
        for (int round = 0; round < 60; round++) {
            for (int i = 0; i < 400; i++)
                step(bench);
            book_check(bench->book);
            for (int i = 0; i < 4; i++)
                search_as_the_oracle(bench, &search);
        }
        bench_free(bench);
    }
    book_search_done(&search);
}

TEST(an_emptied_book_finds_nothing_and_fills_again)
{
    struct bench *bench = bench_new(9);
    struct book_search search = {0};
    const struct book_wish any = book_wish_any();
    for (int round = 0; round < 3; round++) {
        book_search_start(&search, bench->book, &any, (struct book_sort){0});
        assert_null(book_search_next(&search));
        for (size_t i = 0; i < ENTRIES_MAX; i++) {
            bench->kept[i].entry = some_entry(bench, &bench->kept[i]);
            bench->kept[i].number = book_add(bench->book, &bench->kept[i].entry);
        }
        assert_int_equal(book_count(bench->book), ENTRIES_MAX);
        search_as_the_oracle(bench, &search);
        for (size_t i = 0; i < ENTRIES_MAX; i++)
            book_remove(bench->book, bench->kept[i].number);
        book_check(bench->book);
        assert_int_equal(book_count(bench->book), 0);
        memset(bench->kept, 0, sizeof(bench->kept));
    }
    book_search_done(&search);
    bench_free(bench);
}

TEST(asked_the_other_way_round_a_book_of_wishes_finds_those_one_thing_fulfils)
{
    struct random random;
    random_init(&random, 5);
    enum { WISHES = 500 };
    static struct book_wish wishes[WISHES];
    AUTO(book) struct book *book = book_new();
    for (uint64_t i = 0; i < WISHES; i++) {
        wishes[i].least = some_point(&random, 40);
        wishes[i].least.bits = few_bits(&random, 4);
        book_add(book, &(struct book_entry){.point = book_point_negate(wishes[i].least),
                                            .id = i + 1,
                                            .item = &wishes[i]});
    }
    struct book_search search = {0};
    size_t found = 0;
    for (int round = 0; round < 50; round++) {
        struct book_point thing = some_point(&random, 40);
        for (int i = 0; i < BOOK_KEY_COUNT; i++)
            thing.keys[i] = (uint8_t)(thing.keys[i] + 26);
        thing.bits |= ~few_bits(&random, 2);
        const struct book_wish asked = {.least = book_point_negate(thing)};
        book_search_start(&search, book, &asked, (struct book_sort){.by = BOOK_BY_ID});
        for (size_t i = 0; i < WISHES; i++)
            if (book_point_fits(&thing, &wishes[i])) {
                assert_ptr_equal(book_search_next(&search), &wishes[i]);
                found++;
            }
        assert_null(book_search_next(&search));
    }
    assert_true(found > 0);
    book_search_done(&search);
}

TEST(a_single_rare_wish_among_many_entries_is_found_in_a_few_looks)
{
    enum { MANY = 100000 };
    AUTO(book) struct book *book = book_new();
    static int items[MANY];
    for (uint64_t i = 0; i < MANY; i++)
        book_add(book, &(struct book_entry){.point.keys = {i == 77777 ? 5 : 4},
                                            .id = i + 1,
                                            .order = (uint32_t)(i * 2654435761u),
                                            .item = &items[i]});
    struct book_wish wish = book_wish_any();
    wish.least.keys[0] = 5;
    struct book_search search = {0};
    book_search_start(&search, book, &wish, (struct book_sort){0});
    assert_ptr_equal(book_search_next(&search), &items[77777]);
    assert_null(book_search_next(&search));
    assert_true(search.looked_at <= UINT64_C(128));
    assert_true(book_memory_bytes(book) / MANY < 220);
    book_search_done(&search);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits_come_as_from_a_walk_over_all_while_entries_come_change_and_go),
        cmocka_unit_test(an_emptied_book_finds_nothing_and_fills_again),
        cmocka_unit_test(asked_the_other_way_round_a_book_of_wishes_finds_those_one_thing_fulfils),
        cmocka_unit_test(a_single_rare_wish_among_many_entries_is_found_in_a_few_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
