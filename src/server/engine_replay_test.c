#include "server/engine_load.h"
#include "server/tables.h"
#include "testing/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* More than all blocks together hold: reading has to wait for applying. */
enum { MANY = 5000, FEW = 20 };

struct place {
    char dir[64];
    char path[96];
    struct store_options options;
};

static void place_make(struct place *place)
{
    *place = (struct place){0};
    snprintf(place->dir, sizeof(place->dir), "/tmp/souk-replay-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    snprintf(place->path, sizeof(place->path), "%s/market.db", place->dir);
    place->options = (struct store_options){.location = place->path, .schema = &tables_schema};
}

static void place_remove(const struct place *place)
{
    static const char *const ends[] = {"", "-wal", "-shm", ".lock"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s%s", place->path, ends[i]);
        unlink(path);
    }
    rmdir(place->dir);
}

/* `count` accounts are opened; the event `wrong`, if there is one, opens the same one again. */
static void write_log(const struct place *place, uint64_t count, uint64_t wrong)
{
    struct error error;
    AUTO(store) struct store *store = NULL;
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 1 << 14);
    for (uint64_t i = 1; i <= count; i++) {
        struct event event = {
            .kind = EVENT_ACCOUNT_OPENED,
            .sequence = i,
            .time_ms = 1800000000000,
            .account_opened = {.account = ACCOUNT_OPERATOR + (i == wrong ? i - 1 : i)}};
        snprintf(event.account_opened.name, sizeof(event.account_opened.name), "member-%d", (int)i);
        buffer_clear(&json);
        event_encode(&event, &json);
        store_batch_event(batch, event.time_ms, TEXT("account_opened"), buffer_text(&json));
    }
    ASSERT_OK(store_open(&place->options, &store, &error));
    ASSERT_OK(store_commit(store, batch, &error));
}

struct watch {
    uint64_t seen;
    uint64_t enough_at, fail_at;
};

static int see(void *context, const struct core *core, const struct event *event,
               struct error *error)
{
    struct watch *watch = context;
    assert_int_equal(event->sequence, ++watch->seen);
    assert_int_equal(core_sequence(core), event->sequence);
    if (event->sequence == watch->fail_at)
        return error_set(error, ERROR_EXHAUSTED, "no more room");
    return event->sequence == watch->enough_at;
}

static int replay(const struct place *place, struct watch *watch, struct error *error)
{
    AUTO(store_reader) struct store_reader *reader = NULL;
    AUTO(core) struct core *core = core_new();
    assert_int_equal(store_reader_open(&place->options, &reader, error), 0);
    const int result = engine_replay(reader, 1, core, see, watch, error);
    assert_true(core_sequence(core) >= watch->seen);
    return result;
}

static void check_log_of(uint64_t count)
{
    struct error error = {0};
    struct place place;
    place_make(&place);
    write_log(&place, count, 0);
    struct watch all = {0};
    ASSERT_OK(replay(&place, &all, &error));
    assert_int_equal(all.seen, count);
    struct watch some = {.enough_at = count / 2};
    ASSERT_OK(replay(&place, &some, &error));
    assert_int_equal(some.seen, count / 2);
    struct watch failing = {.fail_at = count - 3};
    ASSERT_FAILS(replay(&place, &failing, &error), ERROR_EXHAUSTED);
    assert_int_equal(failing.seen, count - 3);
    place_remove(&place);
}

TEST(every_event_of_a_short_log_is_seen_until_it_is_enough)
{
    check_log_of(FEW);
}

TEST(every_event_of_a_long_log_is_seen_until_it_is_enough)
{
    check_log_of(MANY);
}

TEST(an_event_that_does_not_follow_is_named)
{
    const uint64_t lengths[] = {FEW, MANY};
    for (size_t i = 0; i < 2; i++) {
        struct error error = {0};
        struct place place;
        struct watch watch = {0};
        place_make(&place);
        write_log(&place, lengths[i], lengths[i] - 5);
        ASSERT_FAILS(replay(&place, &watch, &error), ERROR_CORRUPT);
        char name[32];
        snprintf(name, sizeof(name), "event %d", (int)lengths[i] - 5);
        assert_non_null(strstr(error.message, name));
        assert_int_equal(watch.seen, lengths[i] - 6);
        place_remove(&place);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_of_a_short_log_is_seen_until_it_is_enough),
        cmocka_unit_test(every_event_of_a_long_log_is_seen_until_it_is_enough),
        cmocka_unit_test(an_event_that_does_not_follow_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
