/* covers store_fault.c; and what a failing disk does to commits. */
#include "store/store_fault.h"
#include "store/store_testing.h"

struct fixture {
    struct place place;
    struct store_fault fault;
    struct store *store;
    struct store_batch *batch;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    place_make(&fixture->place);
    store_fault_install(&fixture->fault, "fault");
    fixture->place.options.file_system = "fault";
    fixture->store = place_open(&fixture->place);
    fixture->batch = store_batch_new(0);
    commit_events(fixture->store, 5);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    store_batch_free(fixture->batch);
    store_free(fixture->store);
    place_remove(&fixture->place);
    store_fault_remove(&fixture->fault);
    free(fixture);
    return 0;
}

static void fail_from_now(struct fixture *fixture, enum store_fault_kind kind, uint32_t before,
                          uint32_t failing)
{
    fixture->fault.kind = kind;
    fixture->fault.calls_before = before;
    fixture->fault.calls_failing = failing;
}

/* Large enough for many pages, so that a failure can come in the middle. */
static void fill_batch(struct fixture *fixture, uint64_t count)
{
    store_batch_clear(fixture->batch);
    batch_add_events(fixture->batch, store_head(fixture->store).sequence + 1, count);
    for (uint64_t i = 0; i < count; i++)
        batch_add_job(fixture->batch, (int64_t)i, "ada", 1);
}

static void a_full_disk_is_exhausted_and_writes_nothing(void **state)
{
    struct error error;
    struct fixture *fixture = *state;
    fill_batch(fixture, 2000);
    fail_from_now(fixture, STORE_FAULT_DISK_FULL, 0, UINT32_MAX);
    ASSERT_FAILS(store_commit(fixture->store, fixture->batch, &error), ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "the disk holding"));
    assert_non_null(strstr(error.message, "is full"));
    assert_int_equal(store_head(fixture->store).sequence, 5);
    assert_int_equal(verify_log(&fixture->place), 5);
    assert_int_equal(count_rows(&fixture->place, 0), 0);

    /* Once there is room again the same batch goes through. */
    fail_from_now(fixture, STORE_FAULT_NONE, 0, 0);
    ASSERT_OK(store_commit(fixture->store, fixture->batch, &error));
    assert_int_equal(verify_log(&fixture->place), 2005);
    assert_int_equal(count_rows(&fixture->place, 0), 2000);
}

static void a_failing_sync_is_unavailable_and_writes_nothing(void **state)
{
    struct error error;
    struct fixture *fixture = *state;
    fill_batch(fixture, 10);
    fail_from_now(fixture, STORE_FAULT_SYNC_ERROR, 0, UINT32_MAX);
    ASSERT_FAILS(store_commit(fixture->store, fixture->batch, &error), ERROR_UNAVAILABLE);
    ASSERT_FAILS(store_commit(fixture->store, fixture->batch, &error), ERROR_UNAVAILABLE);
    assert_int_equal(verify_log(&fixture->place), 5);
    fail_from_now(fixture, STORE_FAULT_NONE, 0, 0);
    ASSERT_OK(store_commit(fixture->store, fixture->batch, &error));
    assert_int_equal(verify_log(&fixture->place), 15);
}

static void copy_file(const char *from, const char *to)
{
    struct error error;
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, 1 << 26);
    AUTO_FILE FILE *in = fopen(from, "rb");
    assert_non_null(in);
    char piece[4096];
    for (size_t size; (size = fread(piece, 1, sizeof(piece), in)) > 0;)
        buffer_append(&bytes, piece, size);
    ASSERT_OK(buffer_check(&bytes, &error));
    AUTO_FILE FILE *out = fopen(to, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes.data, 1, bytes.size, out), bytes.size);
}

/* What a restart after SIGKILL or a power cut would find: the files as they are now. */
static void copy_place(const struct place *from, struct place *to)
{
    place_make(to);
    char wal_from[128];
    char wal_to[128];
    snprintf(wal_from, sizeof(wal_from), "%s-wal", from->location);
    snprintf(wal_to, sizeof(wal_to), "%s-wal", to->location);
    copy_file(from->location, to->location);
    copy_file(wal_from, wal_to);
}

static void a_commit_that_failed_at_its_sync_does_not_come_back_after_a_crash(void **state)
{
    struct error error;
    struct fixture *fixture = *state;
    fill_batch(fixture, 10);
    fail_from_now(fixture, STORE_FAULT_SYNC_ERROR, 0, 1);
    ASSERT_FAILS(store_commit(fixture->store, fixture->batch, &error), ERROR_UNAVAILABLE);
    struct place copy;
    copy_place(&fixture->place, &copy);
    struct store *store = place_open(&copy);
    assert_int_equal(store_head(store).sequence, 5);
    store_free(store);
    assert_int_equal(verify_log(&copy), 5);
    place_remove(&copy);
}

/* At every single write and sync of a commit in turn. Afterwards, and after a crash there, the
 * batch is either whole (only when it was acknowledged) or not there at all. */
static void fail_at_every_call(struct fixture *fixture, enum store_fault_kind kind,
                               uint32_t failing)
{
    struct error error;
    for (uint32_t before = 0;; before++) {
        const uint64_t start = store_head(fixture->store).sequence;
        fill_batch(fixture, 30);
        fail_from_now(fixture, kind, before, failing);
        const int result = store_commit(fixture->store, fixture->batch, &error);
        fail_from_now(fixture, STORE_FAULT_NONE, 0, 0);
        const uint64_t expected = result == 0 ? start + 30 : start;
        assert_int_equal(store_head(fixture->store).sequence, expected);
        assert_int_equal(verify_log(&fixture->place), expected);
        if (failing == 1) {
            struct place copy;
            copy_place(&fixture->place, &copy);
            struct store *store = place_open(&copy);
            assert_int_equal(store_head(store).sequence, expected);
            store_free(store);
            place_remove(&copy);
        }
        if (result == 0) {
            assert_true(before >= (kind == STORE_FAULT_SYNC_ERROR ? 1u : 3u));
            return;
        }
        assert_int_equal(error.code,
                         kind == STORE_FAULT_DISK_FULL ? ERROR_EXHAUSTED : ERROR_UNAVAILABLE);
    }
}

static void no_single_failure_tears_a_commit(void **state)
{
    fail_at_every_call(*state, STORE_FAULT_DISK_FULL, 1);
    fail_at_every_call(*state, STORE_FAULT_WRITE_ERROR, 1);
    fail_at_every_call(*state, STORE_FAULT_SYNC_ERROR, 1);
}

static void no_lasting_failure_tears_a_commit(void **state)
{
    fail_at_every_call(*state, STORE_FAULT_DISK_FULL, UINT32_MAX);
    fail_at_every_call(*state, STORE_FAULT_WRITE_ERROR, UINT32_MAX);
    fail_at_every_call(*state, STORE_FAULT_SYNC_ERROR, UINT32_MAX);
}

static void one_commit_syncs_once(void **state)
{
    struct error error;
    struct fixture *fixture = *state;
    fill_batch(fixture, 100);
    const uint32_t before = fixture->fault.sync_count;
    ASSERT_OK(store_commit(fixture->store, fixture->batch, &error));
    assert_int_equal(fixture->fault.sync_count - before, 1);
}

static void a_disk_that_is_full_at_opening_is_told(void **state)
{
    struct error error;
    struct fixture *fixture = *state;
    struct place fresh;
    place_make(&fresh);
    fresh.options.file_system = "fault";
    fail_from_now(fixture, STORE_FAULT_DISK_FULL, 0, UINT32_MAX);
    struct store *store = NULL;
    ASSERT_FAILS(store_open(&fresh.options, &store, &error), ERROR_EXHAUSTED);
    fail_from_now(fixture, STORE_FAULT_NONE, 0, 0);
    store_free(place_open(&fresh));
    place_remove(&fresh);
}

#define FAULT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAULT_TEST(a_full_disk_is_exhausted_and_writes_nothing),
        FAULT_TEST(a_failing_sync_is_unavailable_and_writes_nothing),
        FAULT_TEST(a_commit_that_failed_at_its_sync_does_not_come_back_after_a_crash),
        FAULT_TEST(no_single_failure_tears_a_commit),
        FAULT_TEST(no_lasting_failure_tears_a_commit),
        FAULT_TEST(one_commit_syncs_once),
        FAULT_TEST(a_disk_that_is_full_at_opening_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
