#include "blob/blob_partial.h"
#include "blob/blob_testing.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

static struct blob_hash hash_of(const char *bytes)
{
    struct blob_hash hash;
    blob_hash_of(bytes, strlen(bytes), &hash);
    return hash;
}

static struct blob_partial *partial_of(struct place *place, const struct blob_hash *hash)
{
    struct error error;
    struct blob_partial *partial = NULL;
    ASSERT_OK(blob_partial_open(place->store, hash, &partial, &error));
    return partial;
}

static size_t count_partials(const struct place *place)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/partial", place->folder);
    struct dirent **names = NULL;
    const int count = scandir(path, &names, NULL, NULL);
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return (size_t)count - 2;
}

static void what_came_before_a_cut_is_there_after_a_restart(void **state)
{
    struct error error;
    struct place *place = *state;
    const struct blob_hash hash = hash_of("lamp oil");
    struct blob_partial *partial = partial_of(place, &hash);
    assert_int_equal(blob_partial_bytes(partial), 0);
    assert_string_equal(blob_partial_tag(partial), "");
    ASSERT_OK(blob_partial_restart(partial, BLOB_CODING_PLAIN, "\"tag\"", &error));
    ASSERT_OK(blob_partial_append(partial, TEXT("lamp"), &error));
    blob_partial_free(partial);
    place_close(place);
    place_open(place);
    partial = partial_of(place, &hash);
    assert_int_equal(blob_partial_bytes(partial), 4);
    assert_string_equal(blob_partial_tag(partial), "\"tag\"");
    ASSERT_OK(blob_partial_append(partial, TEXT(" oil"), &error));
    ASSERT_OK(blob_partial_finish(partial, &error));
    blob_partial_free(partial);
    assert_true(blob_store_has(place->store, &hash));
    assert_int_equal(count_partials(place), 0);
}

static void frames_are_unpacked_at_the_end(void **state)
{
    struct error error;
    struct place *place = *state;
    char plain[2000];
    memset(plain, 'x', sizeof(plain));
    struct blob_hash hash;
    blob_hash_of(plain, sizeof(plain), &hash);
    struct buffer frame AUTO_BUFFER;
    buffer_init(&frame, 2000);
    assert_true(blob_encode((struct text){plain, sizeof(plain)}, &frame));
    AUTO(blob_partial) struct blob_partial *partial = partial_of(place, &hash);
    ASSERT_OK(blob_partial_restart(partial, BLOB_CODING_ZSTD, "", &error));
    ASSERT_OK(blob_partial_append(partial, buffer_text(&frame), &error));
    ASSERT_OK(blob_partial_finish(partial, &error));
    assert_true(blob_store_has(place->store, &hash));
}

static void bytes_that_are_not_the_blob_leave_nothing(void **state)
{
    struct error error;
    struct place *place = *state;
    const struct blob_hash hash = hash_of("lamp");
    struct blob_partial *partial = partial_of(place, &hash);
    ASSERT_OK(blob_partial_append(partial, TEXT("rug"), &error));
    ASSERT_FAILS(blob_partial_finish(partial, &error), ERROR_INVALID);
    blob_partial_free(partial);
    assert_int_equal(count_partials(place), 0);
    assert_int_equal(blob_store_count(place->store), 0);

    partial = partial_of(place, &hash);
    ASSERT_OK(blob_partial_restart(partial, BLOB_CODING_ZSTD, "", &error));
    ASSERT_OK(blob_partial_append(partial, TEXT("no frame"), &error));
    ASSERT_FAILS(blob_partial_finish(partial, &error), ERROR_INVALID);
    blob_partial_free(partial);

    partial = partial_of(place, &hash);
    char *much = calloc(1, BLOB_BYTES_MAX + 1);
    ASSERT_FAILS(blob_partial_append(partial, (struct text){much, BLOB_BYTES_MAX + 1}, &error),
                 ERROR_INVALID);
    free(much);
    blob_partial_free(partial);
}

static void of_two_that_want_a_blob_one_fetches_it_and_the_other_is_told(void **state)
{
    struct error error;
    struct place *place = *state;
    const struct blob_hash hash = hash_of("lamp");
    struct blob_partial *first = partial_of(place, &hash);
    struct blob_partial *second = NULL;
    ASSERT_FAILS(blob_partial_open(place->store, &hash, &second, &error), ERROR_CONFLICT);
    AUTO_FD int watch = -1;
    ASSERT_OK(blob_partial_watch(place->store, &watch, &error));
    ASSERT_FAILS(blob_partial_open(place->store, &hash, &second, &error), ERROR_CONFLICT);
    struct pollfd ready = {.fd = watch, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 0), 0); /* trying is nothing to be told of */
    ASSERT_OK(blob_partial_append(first, TEXT("la"), &error));
    blob_partial_free(first);
    assert_int_equal(poll(&ready, 1, HUNG_MS), 1);
    char events[4096];
    assert_true(read(watch, events, sizeof(events)) > 0);

    second = partial_of(place, &hash);
    assert_int_equal(blob_partial_bytes(second), 2);
    ASSERT_OK(blob_partial_append(second, TEXT("mp"), &error));
    ASSERT_OK(blob_partial_finish(second, &error));
    blob_partial_free(second);
    assert_int_equal(poll(&ready, 1, HUNG_MS), 1);
}

static void a_process_that_dies_lets_go(void **state)
{
    struct place *place = *state;
    const struct blob_hash hash = hash_of("lamp");
    const pid_t child = fork();
    if (child == 0) {
        struct error error;
        struct blob_partial *partial = NULL;
        const int result = blob_partial_open(place->store, &hash, &partial, &error) == 0 &&
                                   blob_partial_append(partial, TEXT("lam"), &error) == 0
                               ? 0
                               : 1;
        _exit(result);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    AUTO(blob_partial) struct blob_partial *partial = partial_of(place, &hash);
    assert_int_equal(blob_partial_bytes(partial), 3);
}

static void a_damaged_header_is_no_beginning(void **state)
{
    struct error error;
    struct place *place = *state;
    const struct blob_hash hash = hash_of("lamp");
    struct blob_partial *partial = partial_of(place, &hash);
    ASSERT_OK(blob_partial_append(partial, TEXT("la"), &error));
    blob_partial_free(partial);
    char path[160], name[BLOB_HASH_TEXT_SIZE];
    snprintf(path, sizeof(path), "%s/partial/%s", place->folder, blob_hash_format(&hash, name));
    AUTO_FILE FILE *file = fopen(path, "r+");
    fputs("junk", file);
    fflush(file);
    partial = partial_of(place, &hash);
    assert_int_equal(blob_partial_bytes(partial), 0);
    blob_partial_free(partial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(what_came_before_a_cut_is_there_after_a_restart),
        PLACE_TEST(frames_are_unpacked_at_the_end),
        PLACE_TEST(bytes_that_are_not_the_blob_leave_nothing),
        PLACE_TEST(of_two_that_want_a_blob_one_fetches_it_and_the_other_is_told),
        PLACE_TEST(a_process_that_dies_lets_go),
        PLACE_TEST(a_damaged_header_is_no_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
