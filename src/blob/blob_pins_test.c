#include "blob/blob_pins.h"
#include "blob/blob_testing.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct blob_hash put(struct place *place, const char *bytes)
{
    struct error error;
    struct blob_hash hash;
    ASSERT_OK(blob_store_put(place->store, NULL, text_of(bytes), &hash, &error));
    virtual_clock_advance(&place->clock, 3600 * INT64_C(1000000000));
    return hash;
}

static void share(struct place *place, uint64_t bytes_max)
{
    place_close(place);
    place->options.is_shared = true;
    place->options.bytes_max = bytes_max;
    place_open(place);
}

static void pinned_blobs_stay_until_they_are_let_go(void **state)
{
    struct error error;
    struct place *place = *state;
    share(place, 10);
    const struct blob_hash old = put(place, "aaaaa");
    const struct blob_hash fresh = put(place, "bbbbb");
    AUTO(blob_store) struct blob_store *other = NULL;
    ASSERT_OK(blob_store_open(&place->options, &other, &error));
    struct blob_pins *pins = NULL;
    ASSERT_OK(blob_pins_open(other, &pins, &error));
    ASSERT_OK(blob_pins_add(pins, &old, 1, &error));
    struct blob_evict evict = {.bytes_wanted = 5};
    ASSERT_OK(blob_store_evict(place->store, &evict, NULL, &error));
    assert_true(blob_store_has(place->store, &old));
    assert_false(blob_store_has(place->store, &fresh));
    ASSERT_OK(blob_pins_add(pins, &fresh, 1, &error)); /* comes again */
    put(place, "bbbbb");
    ASSERT_FAILS(blob_store_evict(place->store, &evict, NULL, &error), ERROR_EXHAUSTED);
    blob_pins_free(pins);
    evict.bytes_wanted = 10;
    ASSERT_OK(blob_store_evict(place->store, &evict, NULL, &error));
    assert_int_equal(blob_store_count(place->store), 0);
}

static void pins_end_with_their_process(void **state)
{
    struct error error;
    struct place *place = *state;
    share(place, 5);
    const struct blob_hash hash = put(place, "aaaaa");
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct blob_store *store = NULL;
        struct blob_pins *pins = NULL;
        if (blob_store_open(&place->options, &store, &error) < 0 ||
            blob_pins_open(store, &pins, &error) < 0 || blob_pins_add(pins, &hash, 1, &error) < 0)
            _exit(1);
        (void)!write(ready[1], "x", 1);
        pause();
        _exit(0);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    const struct blob_evict evict = {.bytes_wanted = 5};
    ASSERT_FAILS(blob_store_evict(place->store, &evict, NULL, &error), ERROR_EXHAUSTED);
    int status;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    ASSERT_OK(blob_store_evict(place->store, &evict, NULL, &error));
    assert_false(blob_store_has(place->store, &hash));
    close(ready[0]);
    close(ready[1]);
}

/* No disk has so much: everything goes but what is pinned. */
static void a_full_disk_takes_all_that_is_not_needed(void **state)
{
    struct error error;
    struct place *place = *state;
    share(place, 0);
    const struct blob_hash needed = put(place, "aaaaa");
    put(place, "bbbbb");
    AUTO(blob_pins) struct blob_pins *pins = NULL;
    ASSERT_OK(blob_pins_open(place->store, &pins, &error));
    ASSERT_OK(blob_pins_add(pins, &needed, 1, &error));
    const struct blob_evict evict = {.bytes_free_min = UINT64_MAX};
    uint64_t freed_bytes;
    ASSERT_OK(blob_store_evict(place->store, &evict, &freed_bytes, &error));
    assert_int_equal(freed_bytes, 5);
    assert_true(blob_store_has(place->store, &needed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(pinned_blobs_stay_until_they_are_let_go),
        PLACE_TEST(pins_end_with_their_process),
        PLACE_TEST(a_full_disk_takes_all_that_is_not_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
