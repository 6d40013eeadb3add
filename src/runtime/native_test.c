#include "runtime/native.h"
#include "testing/testing.h"

#include <stdio.h>
#include <string.h>

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define INPUT(name, split, records)                                                                \
    "{\"name\":\"" name "\",\"split\":\"" split "\",\"manifest\":\"" HASH                          \
    "\",\"records\":" records "}"

static void read_spec(struct arena *arena, const char *inputs, struct job_spec *spec)
{
    struct error error;
    const char *json = arena_format(
        arena,
        "{\"name\":\"j\",\"num_nodes\":3,\"train\":{\"model\":\"lenet5\",\"data\":\"mnist\"},"
        "\"market\":{\"expected_run_time\":\"60s\"},\"inputs\":[%s]}",
        inputs);
    ASSERT_OK(job_spec_read(arena, text_of(json), spec, &error));
}

static const struct native_lease example = {
    .lease = 11,
    .fence = 4,
    .job = 2,
    .machine = 5,
    .role = LEASE_ROLE_WORKER,
    .rank = 1,
    .world = 3,
    .cores_milli = 250,
    .ram_bytes = 256 << 20,
    .disk_bytes = 1 << 30,
    .expires_ms = 1790000000000,
};

static void write_and_read(struct arena *arena, const struct job_spec *spec,
                           const struct native_lease *lease, struct lease_document *document)
{
    struct error error;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 1 << 16);
    ASSERT_OK(native_lease_write(spec, lease, &json, &error));
    ASSERT_OK(lease_document_read(arena, buffer_text(&json), document, &error));
}

TEST(a_worker_gets_its_part_of_the_training_records)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct job_spec spec;
    read_spec(arena, INPUT("train-images", "train", "100") "," INPUT("test-images", "test", "10"),
              &spec);
    struct lease_document document;
    write_and_read(arena, &spec, &example, &document);
    assert_int_equal(document.lease, 11);
    assert_int_equal(document.fence, 4);
    assert_true(text_equal(document.name, TEXT("j")));
    assert_int_equal(document.role, LEASE_ROLE_WORKER);
    assert_int_equal(document.rank, 1);
    assert_int_equal(document.world, 3);
    assert_int_equal(document.cores_milli, 250);
    assert_int_equal(document.tick_ms, 3000);
    assert_int_equal(document.sync.gamma_ms, 3000);
    assert_int_equal(document.expires_ms, 1790000000000);
    assert_true(text_equal(document.train.model, TEXT("lenet5")));
    assert_int_equal(document.data_count, 1);
    assert_string_equal(document.data[0].name, "train-images");
    assert_int_equal(document.data[0].first_record, 33);
    assert_int_equal(document.data[0].record_count, 33);
}

TEST(the_parts_of_all_workers_cover_every_record_once)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct job_spec spec;
    read_spec(arena, INPUT("a", "train", "100"), &spec);
    uint64_t next = 0;
    for (uint32_t rank = 0; rank < 7; rank++) {
        struct native_lease lease = example;
        lease.rank = rank;
        lease.world = 7;
        struct lease_document document;
        write_and_read(arena, &spec, &lease, &document);
        assert_int_equal(document.data[0].first_record, next);
        next += document.data[0].record_count;
    }
    assert_int_equal(next, 100);
}

TEST(parts_by_speed_cover_every_record_once)
{
    static const uint64_t speeds[] = {1000, 3000, 0, 500};
    static const uint64_t counts[] = {219, 659, 10, 110}; /* the third as if it were 3000 / 64 */
    AUTO(arena) struct arena *arena = arena_new(0);
    struct job_spec spec;
    read_spec(arena, INPUT("a", "train", "1000"), &spec);
    uint64_t next = 0;
    for (uint32_t rank = 0; rank < 4; rank++) {
        struct native_lease lease = example;
        lease.rank = rank;
        lease.world = 4;
        lease.speeds = speeds;
        struct lease_document document;
        write_and_read(arena, &spec, &lease, &document);
        assert_int_equal(document.data[0].first_record, next);
        assert_in_range(document.data[0].record_count, counts[rank], counts[rank] + 1);
        next += document.data[0].record_count;
    }
    assert_int_equal(next, 1000);
}

TEST(a_server_that_goes_on_gets_the_checkpoint_whole)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct job_spec spec;
    read_spec(arena, INPUT("train-images", "train", "100") "," INPUT("test-images", "test", "10"),
              &spec);
    const struct native_checkpoint checkpoint = {.manifest = {0xab}, .size_bytes = 4321};
    struct native_lease lease = example;
    lease.role = LEASE_ROLE_SERVER;
    lease.checkpoint = &checkpoint;
    struct lease_document document;
    write_and_read(arena, &spec, &lease, &document);
    assert_int_equal(document.data_count, 2);
    assert_string_equal(document.data[1].name, "checkpoint");
    assert_int_equal(document.data[1].manifest[0], 0xab);
    assert_int_equal(document.data[1].record_count, 4321);
    const struct native_checkpoint before = {.manifest = {0xcd}, .size_bytes = 4320};
    lease.checkpoint_before = &before;
    write_and_read(arena, &spec, &lease, &document);
    assert_int_equal(document.data_count, 3);
    assert_int_equal(document.data[1].manifest[0], 0xab);
    assert_string_equal(document.data[2].name, "checkpoint-before");
    assert_int_equal(document.data[2].manifest[0], 0xcd);
    assert_int_equal(document.data[2].record_count, 4320);
}

TEST(a_rank_that_comes_later_shares_a_part)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct job_spec spec;
    read_spec(arena, INPUT("a", "train", "100"), &spec);
    struct native_lease first = example, later = example;
    first.rank = 1;
    later.rank = 8;
    first.world = later.world = 7;
    struct lease_document left, right;
    write_and_read(arena, &spec, &first, &left);
    write_and_read(arena, &spec, &later, &right);
    assert_int_equal(right.rank, 8);
    assert_int_equal(left.data[0].first_record, right.data[0].first_record);
    assert_int_equal(left.data[0].record_count, right.data[0].record_count);
}

TEST(the_parameter_server_gets_the_whole_test_set)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct job_spec spec;
    read_spec(arena, INPUT("train-images", "train", "100") "," INPUT("test-images", "test", "10"),
              &spec);
    struct native_lease lease = example;
    lease.role = LEASE_ROLE_SERVER;
    lease.rank = 0;
    struct lease_document document;
    write_and_read(arena, &spec, &lease, &document);
    assert_int_equal(document.role, LEASE_ROLE_SERVER);
    assert_int_equal(document.data_count, 1);
    assert_string_equal(document.data[0].name, "test-images");
    assert_int_equal(document.data[0].record_count, 10);
}

TEST(a_rank_gets_the_wheels_whole_under_one_name)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    struct lease_document document;
    const char *json = "{\"name\":\"j\",\"num_nodes\":3,\"run\":\"true\",\"inputs\":[" INPUT(
        "mine", "wheels", "100") "," INPUT("files", "files", "10") "]}";
    ASSERT_OK(job_spec_read(arena, text_of(json), &spec, &error));
    assert_true(text_is(spec.resources.install, "wheels"));
    write_and_read(arena, &spec, &example, &document);
    assert_true(document.has_wheels);
    assert_ptr_equal(lease_document_wheels(&document), &document.data[0]);
    assert_string_equal(document.data[0].name, LEASE_WHEELS_NAME);
    assert_int_equal(document.data[0].record_count, 100);
    assert_null(lease_document_image(&document));
    assert_false(document.fetches_packages);
    spec.resources.install = TEXT("index");
    write_and_read(arena, &spec, &example, &document);
    assert_true(document.fetches_packages);
    const char *twice = "{\"name\":\"j\",\"run\":\"true\",\"inputs\":[" INPUT(
        "a", "wheels", "1") "," INPUT("b", "wheels", "1") "]}";
    ASSERT_FAILS(job_spec_read(arena, text_of(twice), &spec, &error), ERROR_INVALID);
}

TEST(a_worker_without_records_is_refused)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    read_spec(arena, INPUT("a", "train", "2"), &spec);
    struct native_lease lease = example;
    lease.rank = 0;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 1 << 16);
    ASSERT_FAILS(native_lease_write(&spec, &lease, &json, &error), ERROR_INVALID);
    assert_string_equal(error.message, "input \"a\" has 2 records, too few for 3 workers");
}

TEST(a_changed_document_is_refused)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    read_spec(arena, INPUT("a", "train", "30"), &spec);
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 1 << 16);
    ASSERT_OK(native_lease_write(&spec, &example, &json, &error));
    const char *text = buffer_string(&json);
    static const struct {
        const char *from, *to, *message;
    } changes[] = {
        {"\"name\":\"a\"", "\"name\":\".\"", "lease.data[0].name: not a file name"},
        {"\"name\":\"a\"", "\"name\":\"a/b\"", "lease.data[0].name: not a file name"},
        {"\"record_count\":10", "\"record_count\":0", "lease.data[0]: no such records"},
        {"\"gamma\":\"3s\",", "", "lease.spec.sync.gamma: missing"},
        {"\"tick_ms\":3000", "\"tick_ms\":99", "lease.tick_ms: must be from 100 to 3600000"},
        {"\"lease\":11", "\"least\":11", "lease.least: unknown field"},
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        const char *at = strstr(text, changes[i].from);
        assert_non_null(at);
        const char *changed = arena_format(arena, "%.*s%s%s", (int)(at - text), text, changes[i].to,
                                           at + strlen(changes[i].from));
        struct lease_document document;
        ASSERT_FAILS(lease_document_read(arena, text_of(changed), &document, &error),
                     ERROR_INVALID);
        assert_string_equal(error.message, changes[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_gets_its_part_of_the_training_records),
        cmocka_unit_test(the_parts_of_all_workers_cover_every_record_once),
        cmocka_unit_test(parts_by_speed_cover_every_record_once),
        cmocka_unit_test(a_server_that_goes_on_gets_the_checkpoint_whole),
        cmocka_unit_test(a_rank_that_comes_later_shares_a_part),
        cmocka_unit_test(the_parameter_server_gets_the_whole_test_set),
        cmocka_unit_test(a_rank_gets_the_wheels_whole_under_one_name),
        cmocka_unit_test(a_worker_without_records_is_refused),
        cmocka_unit_test(a_changed_document_is_refused),
    };
    return cmocka_run_group_tests_name("native", tests, NULL, NULL);
}
