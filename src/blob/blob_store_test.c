/* covers blob_open.c, blob_store.c, blob_writer.c */
#include "blob/blob_store.h"
#include "blob/blob_testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct blob_hash put(struct place *place, const char *bytes)
{
    struct error error;
    struct blob_hash hash;
    ASSERT_OK(blob_store_put(place->store, NULL, text_of(bytes), &hash, &error));
    return hash;
}

static void blob_path(const struct place *place, const struct blob_hash *hash, char out[160])
{
    char text[BLOB_HASH_TEXT_SIZE];
    blob_hash_format(hash, text);
    snprintf(out, 160, "%s/%.2s/%s", place->folder, text, text + 2);
}

static int count_temporary(const struct place *place)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/temp", place->folder);
    struct dirent **names = NULL;
    const int count = scandir(path, &names, NULL, NULL);
    assert_true(count >= 2);
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return count - 2; /* "." and ".." */
}

static void expect_bytes(struct place *place, const struct blob_hash *hash, const char *bytes)
{
    struct error error;
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 100);
    buffer_append_string(&out, "before ");
    ASSERT_OK(blob_store_read(place->store, hash, &out, &error));
    assert_int_equal(out.size, 7 + strlen(bytes));
    assert_memory_equal(out.data + 7, bytes, strlen(bytes));
}

static void a_blob_reads_back_by_its_hash_and_after_reopening(void **state)
{
    struct error error;
    struct place *place = *state;
    const struct blob_hash lamp = put(place, "lamp");
    const struct blob_hash empty = put(place, "");
    struct blob_hash expected;
    blob_hash_of("lamp", 4, &expected);
    assert_true(blob_hash_equal(&lamp, &expected));
    expect_bytes(place, &lamp, "lamp");
    place_close(place);
    place_open(place);
    expect_bytes(place, &lamp, "lamp");
    expect_bytes(place, &empty, "");
    assert_int_equal(blob_store_count(place->store), 2);
    assert_int_equal(blob_store_bytes(place->store), 4);
    uint64_t size;
    ASSERT_OK(blob_store_size(place->store, &lamp, &size, &error));
    assert_int_equal(size, 4);
    char path[160];
    blob_path(place, &lamp, path);
    assert_int_equal(access(path, R_OK), 0);
}

static void an_absent_blob_is_not_found(void **state)
{
    struct error error;
    struct place *place = *state;
    struct blob_hash hash = {{1, 2, 3}};
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 100);
    struct blob_file file;
    uint64_t size;
    assert_false(blob_store_has(place->store, &hash));
    ASSERT_FAILS(blob_store_read(place->store, &hash, &out, &error), ERROR_NOT_FOUND);
    ASSERT_FAILS(blob_store_open_blob(place->store, &hash, &file, &error), ERROR_NOT_FOUND);
    ASSERT_FAILS(blob_store_size(place->store, &hash, &size, &error), ERROR_NOT_FOUND);
    ASSERT_FAILS(blob_store_delete(place->store, &hash, &error), ERROR_NOT_FOUND);
}

static void bytes_that_do_not_match_are_refused_and_leave_nothing(void **state)
{
    struct error error;
    struct place *place = *state;
    struct blob_hash expected;
    struct blob_hash hash;
    blob_hash_of("lamp", 4, &expected);
    ASSERT_FAILS(blob_store_put(place->store, &expected, TEXT("rug"), &hash, &error),
                 ERROR_INVALID);
    assert_int_equal(blob_store_count(place->store), 0);
    assert_int_equal(blob_store_bytes(place->store), 0);
    assert_int_equal(count_temporary(place), 0);
    put(place, "lamp");
    ASSERT_FAILS(blob_store_put(place->store, &expected, TEXT("rug"), &hash, &error),
                 ERROR_INVALID);
}

static void putting_twice_keeps_one(void **state)
{
    struct place *place = *state;
    put(place, "lamp");
    struct stat before;
    struct stat after;
    char path[160];
    const struct blob_hash hash = put(place, "lamp");
    blob_path(place, &hash, path);
    assert_int_equal(stat(path, &before), 0);
    put(place, "lamp");
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino); /* not even written again */
    assert_int_equal(blob_store_count(place->store), 1);
    assert_int_equal(blob_store_bytes(place->store), 4);
}

static void a_blob_grows_piece_by_piece_up_to_its_maximum(void **state)
{
    struct error error;
    struct place *place = *state;
    uint8_t *bytes = calloc(1, BLOB_BYTES_MAX);
    AUTO(blob_writer) struct blob_writer *writer = NULL;
    ASSERT_OK(blob_writer_open(place->store, NULL, &writer, &error));
    for (size_t at = 0; at < BLOB_BYTES_MAX; at += BLOB_BYTES_MAX / 8)
        ASSERT_OK(blob_writer_append(writer, bytes + at, BLOB_BYTES_MAX / 8, &error));
    assert_int_equal(blob_store_bytes(place->store), BLOB_BYTES_MAX);
    ASSERT_FAILS(blob_writer_append(writer, bytes, 1, &error), ERROR_EXHAUSTED);
    struct blob_hash hash;
    ASSERT_OK(blob_writer_finish(writer, &hash, &error));
    struct blob_hash expected;
    blob_hash_of(bytes, BLOB_BYTES_MAX, &expected);
    assert_true(blob_hash_equal(&hash, &expected));
    assert_int_equal(blob_store_bytes(place->store), BLOB_BYTES_MAX);
    free(bytes);
}

static void a_writer_given_up_leaves_nothing(void **state)
{
    struct error error;
    struct place *place = *state;
    struct blob_writer *writer = NULL;
    ASSERT_OK(blob_writer_open(place->store, NULL, &writer, &error));
    ASSERT_OK(blob_writer_append(writer, "lamp", 4, &error));
    assert_int_equal(count_temporary(place), 1);
    blob_writer_free(writer);
    assert_int_equal(count_temporary(place), 0);
    assert_int_equal(blob_store_bytes(place->store), 0);
}

static void what_a_crash_left_is_cleaned_up_and_foreign_files_are_left(void **state)
{
    struct place *place = *state;
    const struct blob_hash lamp = put(place, "lamp");
    place_close(place);
    static const char *const names[] = {"temp/17", "notes.txt"};
    for (int i = 0; i < 2; i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s", place->folder, names[i]);
        AUTO_FILE FILE *file = fopen(path, "w");
        fputs("half a blo", file);
    }
    place_open(place);
    assert_int_equal(count_temporary(place), 0);
    assert_int_equal(blob_store_count(place->store), 1);
    expect_bytes(place, &lamp, "lamp");
    char path[128];
    snprintf(path, sizeof(path), "%s/notes.txt", place->folder);
    assert_int_equal(access(path, F_OK), 0);
}

static void a_damaged_blob_is_corrupt_once_and_can_be_put_again(void **state)
{
    struct error error;
    struct place *place = *state;
    const struct blob_hash hash = put(place, "lamp");
    char path[160];
    blob_path(place, &hash, path);
    {
        AUTO_FILE FILE *file = fopen(path, "r+");
        fputs("L", file);
    }
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 100);
    ASSERT_FAILS(blob_store_read(place->store, &hash, &out, &error), ERROR_CORRUPT);
    assert_int_equal(out.size, 0);
    ASSERT_FAILS(blob_store_read(place->store, &hash, &out, &error), ERROR_NOT_FOUND);
    assert_int_equal(blob_store_bytes(place->store), 0);
    put(place, "lamp");
    expect_bytes(place, &hash, "lamp");
    assert_int_equal(truncate(path, 2), 0);
    ASSERT_FAILS(blob_store_read(place->store, &hash, &out, &error), ERROR_CORRUPT);
}

static void an_open_blob_outlives_its_deletion(void **state)
{
    struct error error;
    struct place *place = *state;
    const struct blob_hash hash = put(place, "lamp");
    struct blob_file file;
    ASSERT_OK(blob_store_open_blob(place->store, &hash, &file, &error));
    AUTO_FD int fd = file.fd;
    ASSERT_OK(blob_store_delete(place->store, &hash, &error));
    assert_false(blob_store_has(place->store, &hash));
    char bytes[8];
    assert_int_equal(read(fd, bytes, sizeof(bytes)), 4);
    assert_int_equal(file.size_bytes, 4);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void the_quota_counts_blobs_and_writers(void **state)
{
    struct error error;
    struct place *place = *state;
    place_close(place);
    place->options.bytes_max = 10;
    place_open(place);
    put(place, "12345");
    struct blob_hash hash;
    ASSERT_FAILS(blob_store_put(place->store, NULL, TEXT("abcdef"), &hash, &error),
                 ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "10 bytes"));
    AUTO(blob_writer) struct blob_writer *writer = NULL;
    ASSERT_OK(blob_writer_open(place->store, NULL, &writer, &error));
    ASSERT_OK(blob_writer_append(writer, "abc", 3, &error));
    ASSERT_FAILS(blob_store_put(place->store, NULL, TEXT("xyz"), &hash, &error), ERROR_EXHAUSTED);
    put(place, "12345"); /* there already: needs no room */
    put(place, "de");
    ASSERT_OK(blob_writer_finish(writer, &hash, &error));
    assert_int_equal(blob_store_bytes(place->store), 10);
    assert_int_equal(count_temporary(place), 0);
}

static void a_full_disk_is_exhausted_and_leaves_nothing(void **state)
{
    struct error error;
    struct place *place = *state;
    const char bytes[5000] = {0};
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {1000, before.rlim_max};
    struct sigaction ignored = {.sa_handler = SIG_IGN};
    struct sigaction usual;
    assert_int_equal(sigaction(SIGXFSZ, &ignored, &usual), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct blob_hash hash;
    const int result =
        blob_store_put(place->store, NULL, (struct text){bytes, sizeof(bytes)}, &hash, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(sigaction(SIGXFSZ, &usual, NULL), 0);
    ASSERT_FAILS(result, ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "is full"));
    assert_int_equal(blob_store_bytes(place->store), 0);
    assert_int_equal(count_temporary(place), 0);
    put(place, "lamp");
}

static bool keep_this(const struct blob_hash *hash, void *context)
{
    return blob_hash_equal(hash, context);
}

static void the_least_recently_used_go_first_and_kept_ones_stay(void **state)
{
    struct error error;
    struct place *place = *state;
    place_close(place);
    place->options.bytes_max = 20;
    place_open(place);
    struct blob_hash hashes[4];
    static const char *const bytes[] = {"aaaaa", "bbbbb", "ccccc", "ddddd"};
    for (int i = 0; i < 4; i++) {
        hashes[i] = put(place, bytes[i]);
        virtual_clock_advance(&place->clock, 3600 * INT64_C(1000000000));
    }
    expect_bytes(place, &hashes[0], "aaaaa"); /* a use: b is now the oldest */
    struct blob_evict evict = {.bytes_wanted = 3, .keep = keep_this, .context = &hashes[1]};
    uint64_t freed;
    ASSERT_OK(blob_store_evict(place->store, &evict, &freed, &error));
    assert_int_equal(freed, 5);
    assert_true(blob_store_has(place->store, &hashes[0]));
    assert_true(blob_store_has(place->store, &hashes[1]));
    assert_false(blob_store_has(place->store, &hashes[2]));

    /* The order of use survives a restart. */
    place_close(place);
    place_open(place);
    evict = (struct blob_evict){.bytes_wanted = 13};
    ASSERT_OK(blob_store_evict(place->store, &evict, &freed, &error));
    assert_int_equal(freed, 10);
    assert_true(blob_store_has(place->store, &hashes[0]));
    evict = (struct blob_evict){.bytes_wanted = 18, .keep = keep_this, .context = &hashes[0]};
    ASSERT_FAILS(blob_store_evict(place->store, &evict, &freed, &error), ERROR_EXHAUSTED);
    evict = (struct blob_evict){.bytes_wanted = 21};
    ASSERT_FAILS(blob_store_evict(place->store, &evict, NULL, &error), ERROR_EXHAUSTED);
}

static void what_was_not_used_for_long_is_dropped(void **state)
{
    struct error error;
    struct place *place = *state;
    put(place, "old");
    virtual_clock_advance(&place->clock, 86400 * INT64_C(1000000000));
    const struct blob_hash fresh = put(place, "fresh");
    const struct blob_evict evict = {.used_before_ms =
                                         clock_utc_ms(&place->clock.clock) - INT64_C(3600000)};
    uint64_t freed;
    ASSERT_OK(blob_store_evict(place->store, &evict, &freed, &error));
    assert_int_equal(freed, 3);
    assert_true(blob_store_has(place->store, &fresh));
    assert_int_equal(blob_store_count(place->store), 1);
}

static void a_second_process_is_refused(void **state)
{
    struct place *place = *state;
    const pid_t child = fork();
    if (child == 0) {
        struct error error;
        struct blob_store *second = NULL;
        const int result = blob_store_open(&place->options, &second, &error);
        _exit(result == -1 && error.code == ERROR_CONFLICT ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* The second is another process's as far as the store can tell: it has its own lock and index. */
static void a_shared_store_sees_what_others_change(void **state)
{
    struct error error;
    struct place *place = *state;
    place_close(place);
    place->options.is_shared = true;
    place->options.bytes_max = 10;
    place_open(place);
    AUTO(blob_store) struct blob_store *other = NULL;
    ASSERT_OK(blob_store_open(&place->options, &other, &error));
    const struct blob_hash lamp = put(place, "lamp");
    assert_true(blob_store_has(other, &lamp));
    struct blob_hash hash;
    ASSERT_OK(blob_store_put(other, NULL, TEXT("carpet"), &hash, &error));
    expect_bytes(place, &hash, "carpet");
    /* The quota is over both, and what one evicts is gone for the other. */
    struct blob_hash carpet = hash;
    ASSERT_FAILS(blob_store_put(place->store, NULL, TEXT("x"), &hash, &error), ERROR_EXHAUSTED);
    const struct blob_evict evict = {.bytes_wanted = 4, .keep = keep_this, .context = &carpet};
    ASSERT_OK(blob_store_evict(place->store, &evict, NULL, &error));
    assert_false(blob_store_has(other, &lamp));
    ASSERT_OK(blob_store_put(other, NULL, TEXT("oil"), &hash, &error));
    assert_int_equal(blob_store_bytes(other), 9);

    /* What one has a use for, the other evicts last. */
    const struct timespec old[] = {{1, 0}, {1, 0}};
    char path[160];
    blob_path(place, &carpet, path);
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    place_close(place);
    place_open(place);
    assert_true(blob_store_use(place->store, &carpet));
    const struct blob_evict any = {.bytes_wanted = 4};
    ASSERT_OK(blob_store_evict(other, &any, NULL, &error));
    assert_true(blob_store_has(place->store, &carpet));
    assert_false(blob_store_has(place->store, &hash));

    struct blob_store *alone = NULL;
    place->options.is_shared = false;
    ASSERT_FAILS(blob_store_open(&place->options, &alone, &error), ERROR_CONFLICT);
}

/* 1,000 bytes that make a short frame. */
static struct text make_frame(struct buffer *out_frame, struct blob_hash *out_hash)
{
    char plain[1000];
    memset(plain, 'x', sizeof(plain));
    buffer_init(out_frame, BLOB_BYTES_MAX);
    assert_true(blob_encode((struct text){plain, sizeof(plain)}, out_frame));
    blob_hash_of(plain, sizeof(plain), out_hash);
    return buffer_text(out_frame);
}

static void a_frame_is_kept_as_it_is_and_read_plain(void **state)
{
    struct error error;
    struct place *place = *state;
    struct buffer kept AUTO_BUFFER;
    struct buffer out AUTO_BUFFER;
    struct blob_hash hash;
    const struct text frame = make_frame(&kept, &hash);
    buffer_init(&out, BLOB_BYTES_MAX);
    ASSERT_OK(blob_store_put_frame(place->store, &hash, frame, &error));
    assert_int_equal(blob_store_bytes(place->store), frame.size);
    place_close(place);
    place_open(place);
    assert_int_equal(blob_store_bytes(place->store), frame.size);
    ASSERT_OK(blob_store_read(place->store, &hash, &out, &error));
    assert_int_equal(out.size, 1000);
    struct blob_file file;
    ASSERT_OK(blob_store_open_blob(place->store, &hash, &file, &error));
    close(file.fd);
    assert_int_equal(file.coding, BLOB_CODING_ZSTD);
    assert_int_equal(file.size_bytes, frame.size);

    struct blob_hash other = {{1}};
    ASSERT_FAILS(blob_store_put_frame(place->store, &other, frame, &error), ERROR_INVALID);
    ASSERT_OK(blob_store_delete(place->store, &hash, &error));
    assert_int_equal(blob_store_bytes(place->store), 0);
    assert_int_equal(count_temporary(place), 0);
}

static void a_shared_store_keeps_frames_plain(void **state)
{
    struct error error;
    struct place *place = *state;
    place_close(place);
    place->options.is_shared = true;
    place_open(place);
    struct buffer kept AUTO_BUFFER;
    struct blob_hash hash;
    const struct text frame = make_frame(&kept, &hash);
    ASSERT_OK(blob_store_put_frame(place->store, &hash, frame, &error));
    struct blob_file file;
    ASSERT_OK(blob_store_open_blob(place->store, &hash, &file, &error));
    close(file.fd);
    assert_int_equal(file.coding, BLOB_CODING_PLAIN);
    assert_int_equal(file.size_bytes, 1000);
}

struct worker {
    struct place *place;
    unsigned number;
    bool is_good;
};

/* Everyone puts, reads and deletes the same few blobs. */
static void *work(void *context)
{
    struct worker *worker = context;
    struct blob_store *store = worker->place->store;
    struct error error;
    struct buffer out;
    buffer_init(&out, 1000);
    worker->is_good = true;
    for (unsigned i = 0; i < 60 && worker->is_good; i++) {
        char bytes[32];
        const int size = snprintf(bytes, sizeof(bytes), "blob %u", (i + worker->number) % 5);
        struct blob_hash hash;
        buffer_clear(&out);
        const struct text text = {bytes, (size_t)size};
        if (blob_store_put(store, NULL, text, &hash, &error) < 0) {
            worker->is_good = error.code == ERROR_CONFLICT;
            continue;
        }
        /* Another thread may have deleted it since. */
        const int result = i % 7 == 0 ? blob_store_delete(store, &hash, &error)
                                      : blob_store_read(store, &hash, &out, &error);
        if (result < 0)
            worker->is_good = error.code == ERROR_NOT_FOUND;
        else if (i % 7 != 0)
            worker->is_good = text_equal(buffer_text(&out), text);
    }
    buffer_done(&out);
    return NULL;
}

static void only_what_this_process_has_hashed_is_copied(void **state)
{
    struct error error;
    struct place *place = *state;
    const struct blob_hash lamp = put(place, "a lamp");
    const struct blob_part inside = {6, 2, 3};
    char out[8] = "";
    AUTO_FD int fd = memfd_create("part", MFD_CLOEXEC);
    assert_int_equal(blob_store_copy(place->store, &lamp, &inside, fd, &error), 1);
    assert_int_equal(pread(fd, out, sizeof(out), 0), 3);
    assert_string_equal(out, "lam");
    /* Not of the size that is asked for, not there. */
    struct blob_hash absent;
    blob_hash_of("none", 4, &absent);
    assert_int_equal(blob_store_copy(place->store, &lamp, &(struct blob_part){7, 0, 1}, fd, &error),
                     0);
    assert_int_equal(blob_store_copy(place->store, &absent, &inside, fd, &error), 0);
    place_close(place);
    place_open(place);
    assert_int_equal(blob_store_copy(place->store, &lamp, &inside, fd, &error), 0);
    expect_bytes(place, &lamp, "a lamp");
    assert_int_equal(blob_store_copy(place->store, &lamp, &inside, fd, &error), 1);
    assert_int_equal(lseek(fd, 0, SEEK_END), 6);
}

static void many_threads_share_a_store(void **state)
{
    struct place *place = *state;
    struct worker workers[4];
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++) {
        workers[i] = (struct worker){.place = place, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(workers[i].is_good);
    }
    const size_t count = blob_store_count(place->store);
    assert_int_equal(blob_store_bytes(place->store), count * 6);
    place_close(place);
    place_open(place);
    assert_int_equal(blob_store_count(place->store), count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(a_blob_reads_back_by_its_hash_and_after_reopening),
        PLACE_TEST(an_absent_blob_is_not_found),
        PLACE_TEST(bytes_that_do_not_match_are_refused_and_leave_nothing),
        PLACE_TEST(putting_twice_keeps_one),
        PLACE_TEST(a_blob_grows_piece_by_piece_up_to_its_maximum),
        PLACE_TEST(a_writer_given_up_leaves_nothing),
        PLACE_TEST(what_a_crash_left_is_cleaned_up_and_foreign_files_are_left),
        PLACE_TEST(a_damaged_blob_is_corrupt_once_and_can_be_put_again),
        PLACE_TEST(an_open_blob_outlives_its_deletion),
        PLACE_TEST(the_quota_counts_blobs_and_writers),
        PLACE_TEST(a_full_disk_is_exhausted_and_leaves_nothing),
        PLACE_TEST(the_least_recently_used_go_first_and_kept_ones_stay),
        PLACE_TEST(what_was_not_used_for_long_is_dropped),
        PLACE_TEST(a_second_process_is_refused),
        PLACE_TEST(a_shared_store_sees_what_others_change),
        PLACE_TEST(a_frame_is_kept_as_it_is_and_read_plain),
        PLACE_TEST(a_shared_store_keeps_frames_plain),
        PLACE_TEST(only_what_this_process_has_hashed_is_copied),
        PLACE_TEST(many_threads_share_a_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
