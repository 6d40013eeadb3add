#include "base/random.h"
#include "server/statement.h"
#include "server/tables.h"
#include "testing/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PAYER = 7, PAYEE = 8, JOB = 9, EVENTS_MAX = 2000 };

struct fixture {
    char dir[64];
    char path[96];
    struct store_options options;
    struct store *store;
    struct store_batch *batch;
    struct statement_pages *pages;
    uint64_t event_count;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct error error;
    snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/souk-statement-XXXXXX");
    assert_non_null(mkdtemp(fixture->dir));
    snprintf(fixture->path, sizeof(fixture->path), "%s/market.db", fixture->dir);
    fixture->options = (struct store_options){.location = fixture->path, .schema = &tables_schema};
    ASSERT_OK(store_open(&fixture->options, &fixture->store, &error));
    fixture->batch = store_batch_new(0);
    fixture->pages = statement_pages_new();
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    store_free(fixture->store);
    store_batch_free(fixture->batch);
    statement_pages_free(fixture->pages);
    static const char *const ends[] = {"", "-wal", "-shm", ".lock"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s%s", fixture->path, ends[i]);
        unlink(path);
    }
    rmdir(fixture->dir);
    free(fixture);
    return 0;
}

/* An entry from one account to another, and in their statements and the job's. */
static uint64_t add(struct fixture *fixture, uint64_t from, uint64_t to, uint64_t job)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 1 << 14);
    const struct event event = {.kind = EVENT_ENTRY_POSTED,
                                .sequence = ++fixture->event_count,
                                .time_ms = 1000 + (int64_t)fixture->event_count,
                                .entry_posted = {.sequence = fixture->event_count,
                                                 .kind = LEDGER_ENTRY_TRANSFER,
                                                 .from_account = from,
                                                 .to_account = to,
                                                 .job = job,
                                                 .amount_micro = 5}};
    event_encode(&event, &json);
    store_batch_event(fixture->batch, event.time_ms, TEXT("entry_posted"), buffer_text(&json));
    statement_pages_add(fixture->pages, from, event.sequence, fixture->batch);
    statement_pages_add(fixture->pages, to, event.sequence, fixture->batch);
    if (job)
        statement_pages_add(fixture->pages, job, event.sequence, fixture->batch);
    return event.sequence;
}

static void commit(struct fixture *fixture)
{
    struct error error;
    statement_pages_flush(fixture->pages, fixture->batch);
    ASSERT_OK(store_commit(fixture->store, fixture->batch, &error));
    store_batch_clear(fixture->batch);
}

/* All events of a statement, read in pages of `limit`, newest first. */
static size_t read_all(struct fixture *fixture, struct statement_query query, uint64_t *out_events)
{
    struct error error;
    AUTO(arena) struct arena *arena = arena_new(0);
    AUTO(store_reader) struct store_reader *reader = NULL;
    ASSERT_OK(store_reader_open(&fixture->options, &reader, &error));
    size_t count = 0;
    do {
        struct statement statement;
        ASSERT_OK(statement_read(reader, arena, &query, &statement, &error));
        assert_true(statement.count <= query.limit);
        assert_true(statement.count == query.limit || !statement.next || query.account);
        for (size_t i = 0; i < statement.count; i++) {
            assert_int_equal(statement.items[i].entry.sequence, statement.items[i].event);
            assert_int_equal(statement.items[i].time_ms, 1000 + statement.items[i].event);
            out_events[count++] = statement.items[i].event;
        }
        query.start = statement.next;
        query.balance_micro = statement.balance_micro;
    } while (query.start);
    return count;
}

TEST(a_statement_shows_its_entries_newest_first)
{
    struct fixture *fixture = *state;
    uint64_t events[8] = {0};
    const uint64_t first = add(fixture, PAYER, PAYEE, 0);
    add(fixture, 20, 21, 0);
    commit(fixture);
    const uint64_t second = add(fixture, PAYEE, PAYER, 0);
    commit(fixture);
    assert_int_equal(
        read_all(fixture, (struct statement_query){.subject = PAYER, .limit = 5}, events), 2);
    assert_int_equal(events[0], second);
    assert_int_equal(events[1], first);
    assert_int_equal(read_all(fixture, (struct statement_query){.subject = 99, .limit = 5}, events),
                     0);
}

TEST(pages_of_any_size_show_the_same_whatever_the_batches_were)
{
    struct fixture *fixture = *state;
    struct random random;
    random_init(&random, 1);
    uint64_t expected[EVENTS_MAX], events[EVENTS_MAX];
    size_t expected_count = 0;
    for (int i = 0; i < EVENTS_MAX; i++) {
        const bool is_shown = random_below(&random, 3) > 0;
        const uint64_t event = add(fixture, is_shown ? PAYER : 30, 31, 0);
        if (is_shown)
            expected[expected_count++] = event;
        if (random_below(&random, 40) == 0 && i < EVENTS_MAX / 2) /* then one batch of all */
            commit(fixture);
    }
    commit(fixture);
    const size_t limits[] = {1, 7, 50, 500, expected_count, EVENTS_MAX};
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        const struct statement_query query = {.subject = PAYER, .limit = limits[i]};
        assert_int_equal(read_all(fixture, query, events), expected_count);
        for (size_t k = 0; k < expected_count; k++)
            assert_int_equal(events[k], expected[expected_count - 1 - k]);
    }
}

TEST(the_oldest_first_is_the_same_the_other_way_round)
{
    struct fixture *fixture = *state;
    struct random random;
    random_init(&random, 2);
    uint64_t newest[EVENTS_MAX], oldest[EVENTS_MAX];
    for (int i = 0; i < EVENTS_MAX; i++) {
        add(fixture, random_below(&random, 3) > 0 ? PAYER : 30, 31, 0);
        if (random_below(&random, 40) == 0 && i < EVENTS_MAX / 2)
            commit(fixture);
    }
    commit(fixture);
    const size_t limits[] = {1, 7, 50, 500, EVENTS_MAX};
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        struct statement_query query = {.subject = PAYER, .limit = limits[i]};
        const size_t count = read_all(fixture, query, newest);
        query.is_oldest_first = true;
        assert_int_equal(read_all(fixture, query, oldest), count);
        for (size_t k = 0; k < count; k++)
            assert_int_equal(oldest[k], newest[count - 1 - k]);
    }
}

/* Of the whole statement, page by page. */
static int64_t read_balance(struct fixture *fixture, struct statement_query query)
{
    struct error error;
    AUTO(arena) struct arena *arena = arena_new(0);
    AUTO(store_reader) struct store_reader *reader = NULL;
    ASSERT_OK(store_reader_open(&fixture->options, &reader, &error));
    struct statement statement;
    do {
        ASSERT_OK(statement_read(reader, arena, &query, &statement, &error));
        query.start = statement.next;
        query.balance_micro = statement.balance_micro;
    } while (query.start);
    return query.balance_micro;
}

TEST(pages_carry_the_balance_whatever_they_leave_out)
{
    struct fixture *fixture = *state;
    uint64_t events[4];
    const int64_t gained_micro = INT64_C(50) * 5;
    for (int i = 0; i < 150; i++)
        add(fixture, i % 3 ? 30 : PAYER, i % 3 ? PAYER : 30, 0); /* 50 out, 100 in */
    commit(fixture);
    for (size_t limit = 1; limit < 60; limit += 13) {
        struct statement_query query = {
            .subject = PAYER, .account = PAYER, .limit = limit, .is_oldest_first = true};
        assert_int_equal(read_balance(fixture, query), gained_micro);
        query.kinds = 1U << LEDGER_ENTRY_TRANSFER;
        assert_int_equal(read_balance(fixture, query), gained_micro);
        query.is_oldest_first = false;
        query.balance_micro = gained_micro;
        assert_int_equal(read_balance(fixture, query), 0);
        query.kinds = 1U << LEDGER_ENTRY_GRANT;
        assert_int_equal(read_balance(fixture, query), 0);
        assert_int_equal(read_all(fixture, query, events), 0);
    }
}

TEST(a_jobs_statement_shows_an_account_only_its_own_part)
{
    struct fixture *fixture = *state;
    uint64_t events[EVENTS_MAX];
    uint64_t last = 0;
    for (int i = 0; i < 300; i++) {
        const uint64_t event = add(fixture, PAYER, i % 100 == 0 ? PAYEE : 40, JOB);
        last = i % 100 == 0 ? event : last;
    }
    commit(fixture);
    const struct statement_query all = {.subject = JOB, .limit = 50};
    assert_int_equal(read_all(fixture, all, events), 300);
    const struct statement_query part = {.subject = JOB, .account = PAYEE, .limit = 2};
    assert_int_equal(read_all(fixture, part, events), 3);
    assert_int_equal(events[0], last);
}

TEST(a_page_of_others_entries_is_cut_short)
{
    struct fixture *fixture = *state;
    struct error error;
    uint64_t events[4];
    const uint64_t only = add(fixture, PAYER, PAYEE, JOB);
    for (int i = 0; i < 3 * STATEMENT_LOOK_MAX; i++)
        add(fixture, PAYER, 40, JOB);
    commit(fixture);
    AUTO(arena) struct arena *arena = arena_new(0);
    AUTO(store_reader) struct store_reader *reader = NULL;
    ASSERT_OK(store_reader_open(&fixture->options, &reader, &error));
    const struct statement_query query = {.subject = JOB, .account = PAYEE, .limit = 1};
    struct statement statement;
    ASSERT_OK(statement_read(reader, arena, &query, &statement, &error));
    assert_int_equal(statement.count, 0);
    assert_in_range(fixture->event_count - statement.next, STATEMENT_LOOK_MAX - 1,
                    2 * STATEMENT_LOOK_MAX);
    assert_int_equal(read_all(fixture, query, events), 1);
    assert_int_equal(events[0], only);
}

TEST(one_entry_is_read_by_its_event)
{
    struct fixture *fixture = *state;
    struct error error;
    struct statement_entry entry;
    AUTO(store_reader) struct store_reader *reader = NULL;
    const uint64_t event = add(fixture, PAYER, PAYEE, 0);
    commit(fixture);
    ASSERT_OK(store_reader_open(&fixture->options, &reader, &error));
    ASSERT_OK(statement_read_entry(reader, event, &entry, &error));
    assert_int_equal(entry.entry.to_account, PAYEE);
    ASSERT_FAILS(statement_read_entry(reader, event + 1, &entry, &error), ERROR_NOT_FOUND);
    ASSERT_FAILS(statement_read_entry(reader, UINT64_MAX, &entry, &error), ERROR_NOT_FOUND);
}

static void count(void *context, uint64_t event)
{
    (void)event;
    ++*(size_t *)context;
}

TEST(a_release_is_of_the_machine_that_the_event_before_it_proved)
{
    struct fixture *fixture = *state;
    struct error error;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 1 << 14);
    const uint64_t other = add(fixture, PAYER, PAYEE, 0);
    const struct event proven = {.kind = EVENT_MACHINE_PROVEN,
                                 .sequence = ++fixture->event_count,
                                 .time_ms = 1000 + (int64_t)fixture->event_count,
                                 .machine_proven = {.machine = 30, .owner = PAYEE}};
    event_encode(&proven, &json);
    store_batch_event(fixture->batch, proven.time_ms, TEXT("machine_proven"), buffer_text(&json));
    const uint64_t release = add(fixture, PAYEE, PAYER, 0);
    const uint64_t later = add(fixture, PAYEE, PAYER, 0);
    commit(fixture);
    AUTO(store_reader) struct store_reader *reader = NULL;
    ASSERT_OK(store_reader_open(&fixture->options, &reader, &error));
    uint64_t machine = 1;
    ASSERT_OK(statement_read_proven(reader, release, &machine, &error));
    assert_int_equal(machine, 30);
    ASSERT_OK(statement_read_proven(reader, later, &machine, &error));
    assert_int_equal(machine, 0);
    ASSERT_OK(statement_read_proven(reader, other, &machine, &error)); /* the log's first */
    assert_int_equal(machine, 0);
}

TEST(a_damaged_page_is_refused)
{
    struct error error;
    size_t counted = 0;
    const struct text damaged[] = {TEXT("\x80"), TEXT("\x01\x80"), TEXT("\x00\x01"),
                                   TEXT("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
                                   TEXT("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")};
    for (size_t i = 0; i < sizeof(damaged) / sizeof(*damaged); i++) {
        const struct store_value row[STATEMENTS_COLUMN_COUNT] = {
            store_integer(PAYER), store_integer(3), store_blob(damaged[i].data, damaged[i].size)};
        ASSERT_FAILS(statement_page_read(row, count, &counted, &error), ERROR_CORRUPT);
    }
    counted = 0;
    const struct store_value sound[STATEMENTS_COLUMN_COUNT] = {
        store_integer(PAYER), store_integer(3), store_blob("\x01\x85\x01", 3)};
    ASSERT_OK(statement_page_read(sound, count, &counted, &error));
    assert_int_equal(counted, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_statement_shows_its_entries_newest_first, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(pages_of_any_size_show_the_same_whatever_the_batches_were,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(the_oldest_first_is_the_same_the_other_way_round, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(pages_carry_the_balance_whatever_they_leave_out, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_jobs_statement_shows_an_account_only_its_own_part, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_page_of_others_entries_is_cut_short, setup, teardown),
        cmocka_unit_test_setup_teardown(one_entry_is_read_by_its_event, setup, teardown),
        cmocka_unit_test_setup_teardown(a_release_is_of_the_machine_that_the_event_before_it_proved,
                                        setup, teardown),
        cmocka_unit_test(a_damaged_page_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
