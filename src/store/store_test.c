/* covers store.c, store_batch.c, store_sqlite.c, store_sqlite_connection.c, store_sqlite_reader.c
 */
#include "store/store.h"
#include "store/store_testing.h"

#include <math.h>
#include <pthread.h>
#include <sodium.h>
#include <sqlite3.h>
#include <sys/wait.h>

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    place_make(place);
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    place_remove(*state);
    free(*state);
    return 0;
}

/* What another program would do to the file. */
static void edit(struct place *place, const char *sql)
{
    sqlite3 *handle = NULL;
    assert_int_equal(sqlite3_open(place->location, &handle), SQLITE_OK);
    char *message = NULL;
    if (sqlite3_exec(handle, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    sqlite3_close(handle);
}

static void expect_broken_at(struct place *place, uint64_t expected)
{
    struct error error;
    uint64_t sequence = 0;
    AUTO(store_reader) struct store_reader *reader = place_read(place);
    ASSERT_FAILS(store_verify(reader, 1, &sequence, &error), ERROR_CORRUPT);
    assert_int_equal(sequence, expected);
}

struct seen {
    uint64_t count;
    uint64_t stop_after;
    struct store_event last;
    char body[64];
};

static int see_event(const struct store_event *event, void *context, struct error *error)
{
    struct seen *seen = context;
    seen->count++;
    seen->last = *event;
    if (text_copy(event->body, seen->body, sizeof(seen->body), error) < 0)
        return -1;
    return seen->count == seen->stop_after;
}

/* ---- The log --------------------------------------------------------------------------------- */

static void events_come_back_in_order_after_reopening(void **state)
{
    struct error error;
    struct place *place = *state;
    struct store *store = place_open(place);
    commit_events(store, 3);
    commit_events(store, 2);
    const struct store_head head = store_head(store);
    assert_int_equal(head.sequence, 5);
    store_free(store);

    store = place_open(place);
    const struct store_head again = store_head(store);
    assert_memory_equal(&head, &again, sizeof(head));
    assert_false(store_needs_rebuild(store));
    AUTO(store_reader) struct store_reader *reader = place_read(place);
    struct seen seen = {0};
    ASSERT_OK(store_read_events(reader, 2, see_event, &seen, &error));
    assert_int_equal(seen.count, 4);
    assert_int_equal(seen.last.sequence, 5);
    assert_int_equal(seen.last.time_ms, 1005);
    assert_string_equal(seen.body, "{\"number\":5}");
    struct seen stopped = {.stop_after = 2};
    ASSERT_OK(store_read_events(reader, 1, see_event, &stopped, &error));
    assert_int_equal(stopped.count, 2);
    struct seen none = {0};
    ASSERT_OK(store_read_events(reader, 6, see_event, &none, &error));
    ASSERT_OK(store_read_events(reader, UINT64_MAX, see_event, &none, &error));
    assert_int_equal(none.count, 0);
    store_free(store);
}

static void hash_is_the_one_the_header_describes(void **state)
{
    struct error error;
    struct place *place = *state;
    AUTO(store) struct store *store = place_open(place);
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    store_batch_event(batch, 258, TEXT("ab"), TEXT("{}"));
    ASSERT_OK(store_commit(store, batch, &error));

    uint8_t bytes[32 + 8 + 8 + 4 + 2 + 2] = {0};
    bytes[32] = 1;                /* sequence */
    bytes[40] = 2, bytes[41] = 1; /* time */
    bytes[48] = 2;                /* kind size */
    memcpy(bytes + 52, "ab{}", 4);
    uint8_t hash[32];
    crypto_generichash(hash, sizeof(hash), bytes, sizeof(bytes), NULL, 0);
    assert_memory_equal(store_head(store).hash, hash, sizeof(hash));
}

static void a_reader_sees_what_is_committed_while_the_writer_is_open(void **state)
{
    struct error error;
    struct place *place = *state;
    AUTO(store) struct store *store = place_open(place);
    AUTO(store_reader) struct store_reader *reader = place_read(place);
    struct store_head head;
    ASSERT_OK(store_read_head(reader, &head, &error));
    assert_int_equal(head.sequence, 0);
    commit_events(store, 4);
    ASSERT_OK(store_read_head(reader, &head, &error));
    assert_int_equal(head.sequence, 4);
}

static void a_changed_event_is_found(void **state)
{
    struct place *place = *state;
    struct store *store = place_open(place);
    commit_events(store, 9);
    store_free(store);
    assert_int_equal(verify_log(place), 9);
    edit(place, "DROP TRIGGER store_events_hold;"
                "UPDATE store_events SET body = '{\"number\":6000}' WHERE sequence = 6");
    expect_broken_at(place, 6);

    /* The part before it can still be read, and what comes after it verified on its own. */
    struct error error;
    AUTO(store_reader) struct store_reader *reader = place_read(place);
    struct seen seen = {0};
    ASSERT_FAILS(store_read_events(reader, 1, see_event, &seen, &error), ERROR_CORRUPT);
    assert_int_equal(seen.count, 5);
    uint64_t sequence;
    ASSERT_OK(store_verify(reader, 7, &sequence, &error));
    assert_int_equal(sequence, 9);
}

static void a_changed_time_kind_or_hash_is_found(void **state)
{
    struct place *place = *state;
    struct store *store = place_open(place);
    commit_events(store, 9);
    store_free(store);
    edit(place, "DROP TRIGGER store_events_hold;"
                "UPDATE store_events SET hash = zeroblob(32) WHERE sequence = 8");
    expect_broken_at(place, 8);
    edit(place, "UPDATE store_events SET kind = 'x' WHERE sequence = 4");
    expect_broken_at(place, 4);
    edit(place, "UPDATE store_events SET time_ms = 0 WHERE sequence = 3");
    expect_broken_at(place, 3);
}

static void a_missing_event_is_found(void **state)
{
    struct place *place = *state;
    struct store *store = place_open(place);
    commit_events(store, 9);
    store_free(store);
    edit(place, "DROP TRIGGER store_events_keep; DELETE FROM store_events WHERE sequence = 5");
    expect_broken_at(place, 5);
}

static void a_log_cut_off_at_its_end_is_found_and_not_opened(void **state)
{
    struct error error;
    struct place *place = *state;
    struct store *store = place_open(place);
    commit_events(store, 9);
    store_free(store);
    edit(place, "DROP TRIGGER store_events_keep; DELETE FROM store_events WHERE sequence > 7");
    expect_broken_at(place, 8);
    ASSERT_FAILS(store_open(&place->options, &store, &error), ERROR_CORRUPT);
}

static void the_file_itself_refuses_changes_to_the_log(void **state)
{
    struct place *place = *state;
    struct store *store = place_open(place);
    commit_events(store, 2);
    store_free(store);
    sqlite3 *handle = NULL;
    assert_int_equal(sqlite3_open(place->location, &handle), SQLITE_OK);
    assert_int_not_equal(sqlite3_exec(handle, "DELETE FROM store_events", NULL, NULL, NULL), 0);
    assert_int_not_equal(
        sqlite3_exec(handle, "UPDATE store_events SET body = ''", NULL, NULL, NULL), 0);
    sqlite3_close(handle);
    assert_int_equal(verify_log(place), 2);
}

/* ---- Batches --------------------------------------------------------------------------------- */

static void a_batch_writes_events_rows_and_meta_together(void **state)
{
    struct error error;
    struct place *place = *state;
    AUTO(store) struct store *store = place_open(place);
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    batch_add_events(batch, 1, 2);
    batch_add_job(batch, 1, "ada", -1);
    batch_add_job(batch, 2, "bob", 5);
    batch_add_job(batch, 1, "eve", 7); /* replaces */
    const struct store_value key = store_integer(2);
    store_batch_delete(batch, &test_tables[0], &key, 1);
    store_batch_meta(batch, "name", TEXT("souk"));
    assert_int_equal(store_batch_event_count(batch), 2);
    ASSERT_OK(store_commit(store, batch, &error));
    assert_int_equal(count_rows(place, 0), 1);

    AUTO(store_reader) struct store_reader *reader = place_read(place);
    struct buffer value AUTO_BUFFER;
    buffer_init(&value, 100);
    bool is_found;
    ASSERT_OK(store_read_meta(reader, "name", &value, &is_found, &error));
    assert_true(is_found && text_equal(buffer_text(&value), TEXT("souk")));
    ASSERT_OK(store_read_meta(reader, "other", &value, &is_found, &error));
    assert_false(is_found);
}

static void a_batch_past_its_size_is_refused_whole(void **state)
{
    struct error error;
    struct place *place = *state;
    AUTO(store) struct store *store = place_open(place);
    AUTO(store_batch) struct store_batch *batch = store_batch_new(4096);
    batch_add_events(batch, 1, 1000);
    ASSERT_FAILS(store_commit(store, batch, &error), ERROR_EXHAUSTED);
    assert_int_equal(store_head(store).sequence, 0);
    store_batch_clear(batch);
    batch_add_events(batch, 1, 1);
    ASSERT_OK(store_commit(store, batch, &error));
    assert_int_equal(verify_log(place), 1);
}

static void an_event_past_its_size_is_refused(void **state)
{
    struct error error;
    struct place *place = *state;
    AUTO(store) struct store *store = place_open(place);
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    char *body = calloc(1, STORE_BODY_BYTES_MAX + 1);
    store_batch_event(batch, 0, TEXT("big"), (struct text){body, STORE_BODY_BYTES_MAX + 1});
    ASSERT_FAILS(store_commit(store, batch, &error), ERROR_EXHAUSTED);
    store_batch_clear(batch);
    store_batch_event(batch, 0, TEXT("big"), (struct text){body, STORE_BODY_BYTES_MAX});
    ASSERT_OK(store_commit(store, batch, &error));
    free(body);
    assert_int_equal(verify_log(place), 1); /* zero bytes and all */
}

static void a_number_that_is_none_is_refused_or_null(void **state)
{
    struct error error;
    struct place *place = *state;
    AUTO(store) struct store *store = place_open(place);
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    const struct store_value values[] = {store_integer(1), store_text(TEXT("a")),
                                         store_real((double)NAN), store_null(STORE_INTEGER),
                                         store_null(STORE_BLOB)};
    store_batch_put(batch, &test_tables[0], values, 5);
    ASSERT_FAILS(store_commit(store, batch, &error), ERROR_INVALID);
}

static void an_empty_batch_writes_nothing(void **state)
{
    struct error error;
    struct place *place = *state;
    AUTO(store) struct store *store = place_open(place);
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    assert_true(store_batch_is_empty(batch));
    ASSERT_OK(store_commit(store, batch, &error));
    assert_int_equal(store_head(store).sequence, 0);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void a_second_opener_is_refused(void **state)
{
    struct error error;
    struct place *place = *state;
    struct store *store = place_open(place);
    struct store *second = NULL;
    ASSERT_FAILS(store_open(&place->options, &second, &error), ERROR_CONFLICT);

    /* And from another process, which is told who holds it. */
    const pid_t child = fork();
    if (child == 0) {
        char holder[32];
        snprintf(holder, sizeof(holder), "process %d", (int)getppid());
        const int result = store_open(&place->options, &second, &error);
        _exit(result == -1 && error.code == ERROR_CONFLICT && strstr(error.message, holder) ? 0
                                                                                            : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    store_free(store);
    store_free(place_open(place));
}

static void what_is_no_store_is_refused(void **state)
{
    struct error error;
    struct place *place = *state;
    struct store *store = NULL;
    struct store_reader *reader = NULL;
    ASSERT_FAILS(store_reader_open(&place->options, &reader, &error), ERROR_NOT_FOUND);
    edit(place, "CREATE TABLE others(x)");
    ASSERT_FAILS(store_open(&place->options, &store, &error), ERROR_CORRUPT);
    ASSERT_FAILS(store_reader_open(&place->options, &reader, &error), ERROR_CORRUPT);
    AUTO_FILE FILE *file = fopen(place->location, "w");
    for (int i = 0; i < 1000; i++)
        fputs("this is no database\n", file);
    fflush(file);
    ASSERT_FAILS(store_open(&place->options, &store, &error), ERROR_CORRUPT);
    place->options.location = "/nowhere/at/all.db";
    ASSERT_FAILS(store_open(&place->options, &store, &error), ERROR_NOT_FOUND);
}

static void a_store_of_a_newer_program_is_refused(void **state)
{
    struct error error;
    struct place *place = *state;
    struct store *store = place_open(place);
    store_free(store);
    edit(place, "PRAGMA user_version = 2");
    ASSERT_FAILS(store_open(&place->options, &store, &error), ERROR_INVALID);
}

static void a_log_of_another_version_is_refused_and_nothing_is_changed(void **state)
{
    struct error error;
    struct place *place = *state;
    struct store_schema schema = test_schema;
    schema.log_version = 3;
    place->options.schema = &schema;
    struct store *store = place_open(place);
    commit_events(store, 2);
    store_free(store);

    schema.log_version = 4;
    schema.version++; /* with other tables too, which would be dropped */
    ASSERT_FAILS(store_open(&place->options, &store, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "is of version 3, this program reads 4: open it with "
                                          "the older program that wrote it"));
    struct store_reader *reader;
    ASSERT_FAILS(store_reader_open(&place->options, &reader, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "version 3, this program reads 4"));
    schema.log_version = 2;
    ASSERT_FAILS(store_open(&place->options, &store, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "the newer program"));

    schema = test_schema;
    schema.log_version = 3;
    store = place_open(place);
    assert_false(store_needs_rebuild(store));
    assert_int_equal(store_head(store).sequence, 2);
    store_free(store);
    edit(place, "DELETE FROM store_meta WHERE key = 'store.log_version'");
    ASSERT_FAILS(store_open(&place->options, &store, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "is of version 0, this program reads 3"));
}

static void an_empty_log_takes_the_version_of_who_opens_it(void **state)
{
    struct place *place = *state;
    struct store_schema schema = test_schema;
    place->options.schema = &schema;
    store_free(place_open(place));
    schema.log_version = 7;
    struct store *store = place_open(place);
    commit_events(store, 1);
    store_free(store);
    store_free(place_open(place));
}

static void the_file_is_its_owners_only(void **state)
{
    struct place *place = *state;
    AUTO(store) struct store *store = place_open(place);
    commit_events(store, 1);
    struct stat info;
    assert_int_equal(stat(place->location, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    char path[128];
    snprintf(path, sizeof(path), "%s-wal", place->location);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
}

/* ---- Threads --------------------------------------------------------------------------------- */

struct watcher {
    struct place *place;
    uint64_t until;
    uint64_t reads;
};

/* Batches are of ten: whatever a reader sees is a whole number of them. */
static void *watch(void *context)
{
    struct watcher *watcher = context;
    struct error error;
    struct store_reader *reader = NULL;
    if (store_reader_open(&watcher->place->options, &reader, &error) < 0)
        return NULL;
    uint64_t sequence = 0;
    while (sequence < watcher->until) {
        uint64_t rows = 0;
        const struct store_query query = {.table = &test_tables[0]};
        if (store_verify(reader, 1, &sequence, &error) < 0 || sequence % 10 != 0 ||
            store_read_rows(reader, &query, count_row, &rows, NULL, &error) < 0 || rows % 10 != 0 ||
            rows < sequence)
            break;
        watcher->reads++;
    }
    store_reader_free(reader);
    return sequence == watcher->until ? watcher : NULL;
}

static void readers_on_other_threads_see_whole_batches(void **state)
{
    struct error error;
    struct place *place = *state;
    AUTO(store) struct store *store = place_open(place);
    struct watcher watchers[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        watchers[i] = (struct watcher){.place = place, .until = 2000};
        assert_int_equal(pthread_create(&threads[i], NULL, watch, &watchers[i]), 0);
    }
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    while (store_head(store).sequence < 2000) {
        store_batch_clear(batch);
        const uint64_t first = store_head(store).sequence + 1;
        batch_add_events(batch, first, 10);
        for (uint64_t i = 0; i < 10; i++)
            batch_add_job(batch, (int64_t)(first + i), "ada", 1);
        ASSERT_OK(store_commit(store, batch, &error));
    }
    for (int i = 0; i < 2; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, &watchers[i]);
        assert_true(watchers[i].reads > 0);
    }
}

/* ---- Snapshots ------------------------------------------------------------------------------- */

static void save_snapshot(struct store *store, const char *bytes)
{
    struct error error;
    const struct store_snapshot snapshot = {store_head(store), text_of(bytes)};
    ASSERT_OK(store_snapshot_save(store, &snapshot, &error));
}

static void expect_snapshot(struct place *place, uint64_t sequence, const char *bytes)
{
    struct error error;
    AUTO(store_reader) struct store_reader *reader = place_read(place);
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 1000);
    struct store_head head;
    ASSERT_OK(store_snapshot_load(reader, &head, &out, &error));
    assert_int_equal(head.sequence, sequence);
    assert_true(text_equal(buffer_text(&out), text_of(bytes)));
}

static void the_newest_snapshot_is_loaded_and_two_are_kept(void **state)
{
    struct place *place = *state;
    AUTO(store) struct store *store = place_open(place);
    expect_snapshot(place, 0, "");
    for (int i = 0; i < 4; i++) {
        char bytes[32];
        snprintf(bytes, sizeof(bytes), "state %d", i);
        commit_events(store, 10);
        save_snapshot(store, bytes);
    }
    expect_snapshot(place, 40, "state 3");
    edit(place, "DELETE FROM store_snapshots WHERE sequence = 40");
    expect_snapshot(place, 30, "state 2");
    edit(place, "DELETE FROM store_snapshots WHERE sequence = 30");
    expect_snapshot(place, 0, "");
}

static void a_broken_snapshot_is_passed_over(void **state)
{
    struct place *place = *state;
    AUTO(store) struct store *store = place_open(place);
    commit_events(store, 10);
    save_snapshot(store, "old");
    commit_events(store, 10);
    save_snapshot(store, "new");
    edit(place, "UPDATE store_snapshots SET bytes = x'6e6578' WHERE sequence = 20");
    expect_snapshot(place, 10, "old");
    edit(place, "UPDATE store_snapshots SET event_hash = zeroblob(32) WHERE sequence = 10");
    expect_snapshot(place, 0, "");
}

static void a_snapshot_of_another_log_is_refused(void **state)
{
    struct error error;
    struct place *place = *state;
    AUTO(store) struct store *store = place_open(place);
    commit_events(store, 10);
    struct store_snapshot snapshot = {store_head(store), TEXT("x")};
    snapshot.head.hash[5] ^= 1;
    ASSERT_FAILS(store_snapshot_save(store, &snapshot, &error), ERROR_INVALID);
    snapshot.head = store_head(store);
    snapshot.head.sequence++;
    ASSERT_FAILS(store_snapshot_save(store, &snapshot, &error), ERROR_INVALID);
    commit_events(store, 1); /* the failed transaction was ended */
}

static int note_sequence(const struct store_event *event, void *context,
                         struct error *error __attribute__((unused)))
{
    uint64_t **next = context;
    *(*next)++ = event->sequence;
    return event->sequence == 4;
}

TEST(listed_events_come_in_the_order_asked_for)
{
    struct error error;
    struct place *place = *state;
    AUTO(store) struct store *store = place_open(place);
    commit_events(store, 5);
    AUTO(store_reader) struct store_reader *reader = place_read(place);
    const uint64_t wanted[] = {5, 9, 2, UINT64_MAX, 0, 3, 4, 1};
    uint64_t seen[8] = {0};
    uint64_t *next = seen;
    ASSERT_OK(store_read_listed(reader, wanted, 8, note_sequence, &next, &error));
    assert_int_equal(next - seen, 4); /* the callback had enough at 4 */
    assert_int_equal(seen[0], 5);
    assert_int_equal(seen[1], 2);
    assert_int_equal(seen[2], 3);
    assert_int_equal(seen[3], 4);
}

#define TEST_WITH_PLACE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_WITH_PLACE(events_come_back_in_order_after_reopening),
        TEST_WITH_PLACE(hash_is_the_one_the_header_describes),
        TEST_WITH_PLACE(a_reader_sees_what_is_committed_while_the_writer_is_open),
        TEST_WITH_PLACE(a_changed_event_is_found),
        TEST_WITH_PLACE(a_changed_time_kind_or_hash_is_found),
        TEST_WITH_PLACE(a_missing_event_is_found),
        TEST_WITH_PLACE(a_log_cut_off_at_its_end_is_found_and_not_opened),
        TEST_WITH_PLACE(the_file_itself_refuses_changes_to_the_log),
        TEST_WITH_PLACE(a_batch_writes_events_rows_and_meta_together),
        TEST_WITH_PLACE(a_batch_past_its_size_is_refused_whole),
        TEST_WITH_PLACE(an_event_past_its_size_is_refused),
        TEST_WITH_PLACE(a_number_that_is_none_is_refused_or_null),
        TEST_WITH_PLACE(an_empty_batch_writes_nothing),
        TEST_WITH_PLACE(a_second_opener_is_refused),
        TEST_WITH_PLACE(what_is_no_store_is_refused),
        TEST_WITH_PLACE(a_store_of_a_newer_program_is_refused),
        TEST_WITH_PLACE(a_log_of_another_version_is_refused_and_nothing_is_changed),
        TEST_WITH_PLACE(an_empty_log_takes_the_version_of_who_opens_it),
        TEST_WITH_PLACE(the_file_is_its_owners_only),
        TEST_WITH_PLACE(readers_on_other_threads_see_whole_batches),
        TEST_WITH_PLACE(the_newest_snapshot_is_loaded_and_two_are_kept),
        TEST_WITH_PLACE(a_broken_snapshot_is_passed_over),
        TEST_WITH_PLACE(a_snapshot_of_another_log_is_refused),
        TEST_WITH_PLACE(listed_events_come_in_the_order_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
