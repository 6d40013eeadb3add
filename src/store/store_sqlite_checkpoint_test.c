#include "store/store_sqlite_internal.h"
#include "store/store_testing.h"

enum { COMMITS = 200, ROWS = 20, ROW_BYTES = 1500, WANTED = 60, MAX = 300, PAGES_OF_COMMIT = 40 };

static const struct sqlite_checkpoint_limits aside = {.pages_wanted = WANTED, .pages_max = MAX};
static const struct sqlite_checkpoint_limits alone = {
    .pages_wanted = WANTED, .pages_max = MAX, .is_alone = true};

struct fixture {
    struct place place;
    struct sqlite_connection writer;
    struct sqlite_checkpointer *checkpointer;
};

static void begin(struct fixture *fixture, const struct sqlite_checkpoint_limits *limits)
{
    struct error error;
    place_make(&fixture->place);
    ASSERT_OK(sqlite_connection_open(&fixture->writer, &fixture->place.options, CONNECTION_WRITE,
                                     &error));
    ASSERT_OK(sqlite_execute(&fixture->writer, "CREATE TABLE rows(id INTEGER PRIMARY KEY, body)",
                             &error));
    fixture->checkpointer = sqlite_checkpointer_new(&fixture->writer, limits);
}

static void end(struct fixture *fixture)
{
    sqlite_checkpointer_free(fixture->checkpointer);
    sqlite_connection_close(&fixture->writer);
    place_remove(&fixture->place);
}

static void commit_rows(struct fixture *fixture)
{
    struct error error;
    char sql[256];
    snprintf(sql, sizeof(sql),
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
             " INSERT INTO rows(body) SELECT randomblob(%d) FROM n",
             ROWS, ROW_BYTES);
    ASSERT_OK(sqlite_execute(&fixture->writer, sql, &error));
}

static int64_t log_pages(const struct fixture *fixture)
{
    char path[128];
    struct stat status;
    snprintf(path, sizeof(path), "%s-wal", fixture->place.location);
    assert_int_equal(stat(path, &status), 0);
    return status.st_size / 4096;
}

static int64_t count_all(struct fixture *fixture)
{
    struct error error;
    struct sqlite_connection reader;
    sqlite3_stmt *statement;
    ASSERT_OK(sqlite_connection_open(&reader, &fixture->place.options, CONNECTION_READ, &error));
    ASSERT_OK(sqlite_prepare(&reader, "SELECT count(*) FROM rows", &statement, &error));
    assert_int_equal(sqlite_step(&reader, statement, &error), 1);
    const int64_t count = sqlite3_column_int64(statement, 0);
    sqlite_connection_close(&reader);
    return count;
}

static void assert_log_stays_short(const struct sqlite_checkpoint_limits *limits)
{
    struct fixture fixture = {0};
    begin(&fixture, limits);
    for (int i = 0; i < COMMITS; i++)
        commit_rows(&fixture);
    /* Written were 200 x 10 pages and more. The commit that passes the limit copies it all. */
    assert_in_range(log_pages(&fixture), WANTED, MAX + PAGES_OF_COMMIT);
    assert_int_equal(count_all(&fixture), COMMITS * ROWS);
    end(&fixture);
}

TEST(the_log_stays_short_while_commits_go_on)
{
    (void)state;
    assert_log_stays_short(&aside);
}

TEST(the_log_stays_short_without_a_thread)
{
    (void)state;
    assert_log_stays_short(&alone);
}

TEST(a_reader_holds_the_log_and_lets_go_of_it)
{
    (void)state;
    struct error error;
    struct fixture fixture = {0};
    struct sqlite_connection reader;
    begin(&fixture, &aside);
    commit_rows(&fixture);
    ASSERT_OK(sqlite_connection_open(&reader, &fixture.place.options, CONNECTION_READ, &error));
    ASSERT_OK(sqlite_execute(&reader, "BEGIN; SELECT count(*) FROM rows;", &error));
    for (int i = 0; i < COMMITS; i++)
        commit_rows(&fixture);
    const int64_t held = log_pages(&fixture);
    assert_true(held > COMMITS * ROWS / 4); /* nothing could be started over */
    ASSERT_OK(sqlite_execute(&reader, "COMMIT", &error));
    sqlite_connection_close(&reader);
    for (int i = 0; i < COMMITS; i++)
        commit_rows(&fixture);
    assert_in_range(log_pages(&fixture), 1, held + INT64_C(2) * MAX);
    assert_int_equal(count_all(&fixture), (2 * COMMITS + 1) * ROWS);
    end(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_log_stays_short_while_commits_go_on),
        cmocka_unit_test(the_log_stays_short_without_a_thread),
        cmocka_unit_test(a_reader_holds_the_log_and_lets_go_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
