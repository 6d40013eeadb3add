/* Objects by name: what counts, what goes with what, and what a store that fails leaves. */
#include "server/holdings.h"
#include "server/hub_fixture_internal.h"
#include "server/objects_internal.h"

static struct objects *open_objects(struct fixture *fixture)
{
    struct error error = {0};
    fixture->server.holdings = holdings_new(&fixture->server);
    fixture->server.objects = objects_new(&fixture->server);
    ASSERT_OK(objects_open(fixture->server.objects, &error));
    return fixture->server.objects;
}

static void close_objects(struct fixture *fixture)
{
    objects_free(TAKE(fixture->server.objects));
    holdings_free(TAKE(fixture->server.holdings));
}

static void settle(struct fixture *fixture)
{
    while (fixture->server.objects->changes.count > 0)
        step(fixture, 1);
}

static struct object find(struct fixture *fixture, struct arena *arena, const char *name)
{
    struct error error = {0};
    struct object object;
    const struct object_name wanted = {fixture->borrower, text_of(name)};
    ASSERT_OK(objects_find(fixture->server.objects, arena, &wanted, &object, &error));
    return object;
}

static const uint64_t NOBODYS_REQUEST = 999; /* the client has gone meanwhile */

static void begin_put(struct fixture *fixture, struct arena *arena, const char *name,
                      const char *words)
{
    struct error error = {0};
    struct objects_change change = {
        .name = {fixture->borrower, text_of(name)},
        .before = find(fixture, arena, name),
        .now = {.exists = true, .size_bytes = strlen(words)},
    };
    ASSERT_OK(objects_write(fixture->server.objects, text_of(words), &change.writer, &error));
    objects_change(fixture->server.objects, NOBODYS_REQUEST, &change);
}

static void put(struct fixture *fixture, struct arena *arena, const char *name, const char *words)
{
    begin_put(fixture, arena, name, words);
    settle(fixture);
}

static int64_t used(const struct fixture *fixture)
{
    return objects_bytes(fixture->server.objects, fixture->borrower);
}

TEST(an_object_that_is_replaced_or_deleted_takes_its_bytes_along)
{
    struct fixture *fixture = *state;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct objects *objects = open_objects(fixture);
    const size_t blobs_before = blob_store_count(fixture->server.blobs);
    put(fixture, arena, "a", "hello");
    put(fixture, arena, "b", "hello"); /* the same bytes, and yet its own */
    assert_int_equal(used(fixture), 10);
    assert_int_equal(blob_store_count(fixture->server.blobs), blobs_before + 2);
    put(fixture, arena, "a", "longer than it");
    assert_int_equal(used(fixture), 19);
    assert_int_equal(blob_store_count(fixture->server.blobs), blobs_before + 2);
    struct objects_change gone = {.name = {fixture->borrower, TEXT("a")},
                                  .before = find(fixture, arena, "a"),
                                  .is_gone = true};
    objects_change(objects, NOBODYS_REQUEST, &gone);
    assert_true(objects_is_changing(objects, &gone.name));
    settle(fixture);
    assert_false(find(fixture, arena, "a").exists);
    assert_true(find(fixture, arena, "b").exists);
    assert_int_equal(used(fixture), 5);
    assert_int_equal(blob_store_count(fixture->server.blobs), blobs_before + 1);
    close_objects(fixture);
    objects = open_objects(fixture); /* counted anew */
    assert_int_equal(used(fixture), 5);
    close_objects(fixture);
}

TEST(parts_become_one_object_and_count_once)
{
    struct fixture *fixture = *state;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct objects *objects = open_objects(fixture);
    put(fixture, arena, "w.t.0", "first");
    put(fixture, arena, "w.t.1", "second");
    const struct blob_hash blobs[] = {find(fixture, arena, "w.t.0").blobs[0],
                                      find(fixture, arena, "w.t.1").blobs[0]};
    const struct text parts[] = {TEXT("w.t.0"), TEXT("w.t.1")};
    const struct objects_change whole = {
        .name = {fixture->borrower, TEXT("w")},
        .now = {.exists = true, .size_bytes = 11, .blob_count = 2, .blobs = blobs},
        .part_count = 2,
        .parts = parts};
    objects_change(objects, NOBODYS_REQUEST, &whole);
    for (int i = 0; i < 2; i++) /* nobody else touches a part meanwhile */
        assert_true(
            objects_is_changing(objects, &(struct object_name){fixture->borrower, parts[i]}));
    settle(fixture);
    assert_int_equal(used(fixture), 11);
    assert_false(find(fixture, arena, "w.t.0").exists || find(fixture, arena, "w.t.1").exists);
    const struct object found = find(fixture, arena, "w");
    assert_int_equal(found.blob_count, 2);
    assert_memory_equal(found.blobs, blobs, sizeof(blobs));
    close_objects(fixture);
}

/* Sets on the core thread how its writes fail from then on. */
struct failing {
    struct engine_request request;
    struct fixture *fixture;
    enum store_fault_kind kind;
    bool is_done;
};

static int fail_writes(struct engine_request *request, const struct core *core,
                       struct store_batch *batch, struct error *error)
{
    const struct failing *failing = (const struct failing *)request;
    (void)core, (void)batch, (void)error;
    failing->fixture->fault.kind = failing->kind;
    failing->fixture->fault.calls_failing = UINT32_MAX;
    return 0;
}

static void note_done(struct engine_request *request, const struct error *error)
{
    (void)error;
    ((struct failing *)request)->is_done = true;
}

static void make_writes_fail(struct fixture *fixture, enum store_fault_kind kind)
{
    struct error error = {0};
    struct failing failing = {
        .fixture = fixture,
        .kind = kind,
        .request = {.loop = fixture->server.loop, .on_decided = fail_writes, .on_done = note_done}};
    ASSERT_OK(engine_submit(fixture->server.engine, &failing.request, true, &error));
    while (!failing.is_done)
        step(fixture, 1);
}

TEST(what_could_not_be_written_is_not_there_and_counts_nothing)
{
    struct fixture *fixture = *state;
    AUTO(arena) struct arena *arena = arena_new(0);
    open_objects(fixture);
    put(fixture, arena, "a", "hello");
    const size_t blobs_before = blob_store_count(fixture->server.blobs);
    make_writes_fail(fixture, STORE_FAULT_DISK_FULL);
    begin_put(fixture, arena, "a", "other words");
    begin_put(fixture, arena, "b", "more");
    assert_int_equal(used(fixture), 15);
    settle(fixture);
    make_writes_fail(fixture, STORE_FAULT_NONE);
    assert_int_equal(used(fixture), 5);
    assert_int_equal(find(fixture, arena, "a").size_bytes, 5);
    assert_false(find(fixture, arena, "b").exists);
    assert_int_equal(blob_store_count(fixture->server.blobs), blobs_before);
    close_objects(fixture);
}

TEST(a_name_is_letters_digits_and_a_few_signs)
{
    struct error error = {0};
    (void)state;
    static const char *const names[] = {"a", "jobs/a-1", "models/a_b/7.part", "0"};
    static const char *const wrong[] = {"",     "/a",     "a/",  "a//b", "../a",    ".a",
                                        "a/.b", "a/../b", "a b", "a\nb", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        ASSERT_OK(objects_check_name(text_of(names[i]), &error));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        ASSERT_FAILS(objects_check_name(text_of(wrong[i]), &error), ERROR_INVALID);
    char longest[OBJECTS_NAME_SIZE + 1];
    memset(longest, 'a', sizeof(longest));
    ASSERT_OK(objects_check_name((struct text){longest, OBJECTS_NAME_SIZE - 1}, &error));
    ASSERT_FAILS(objects_check_name((struct text){longest, OBJECTS_NAME_SIZE}, &error),
                 ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_object_that_is_replaced_or_deleted_takes_its_bytes_along,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(parts_become_one_object_and_count_once, setup, teardown),
        cmocka_unit_test_setup_teardown(what_could_not_be_written_is_not_there_and_counts_nothing,
                                        setup, teardown),
        cmocka_unit_test(a_name_is_letters_digits_and_a_few_signs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
