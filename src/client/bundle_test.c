#include "base/random.h"
#include "client/bundle.h"
#include "testing/testing.h"

enum { SIZE = 2 * BLOB_BYTES_MAX + 1000 };

static char *some_bytes(uint64_t seed)
{
    struct random random;
    random_init(&random, seed);
    char *bytes = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)random_u64(&random);
    return bytes;
}

static void chunks_and_manifest_are_found_by_their_hashes(void **state)
{
    (void)state;
    struct error error;
    AUTO(bundle) struct bundle *bundle = bundle_new();
    AUTO(arena) struct arena *arena = arena_new(0);
    char *bytes = some_bytes(1);
    bundle_keep_take(bundle, bytes, free);
    const struct bundle_part part = {
        .name = "files", .packing = {.record_bytes = 1}, .bytes = {bytes, SIZE}};
    struct job_input input = {0};
    ASSERT_OK(bundle_add(bundle, &part, &input, &error));
    assert_int_equal(bundle_part_count(bundle), 1);
    assert_int_equal(bundle_blob_count(bundle), 4);
    assert_int_equal(input.records, SIZE);
    struct blob_hash hash;
    memcpy(hash.bytes, input.manifest, sizeof(hash.bytes));
    const struct bundle_blob *described = bundle_find(bundle, &hash);
    assert_non_null(described);
    assert_true(described->is_manifest);
    struct manifest manifest;
    ASSERT_OK(manifest_decode(arena, described->bytes, &manifest, &error));
    assert_int_equal(manifest.chunks.count, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct bundle_blob *chunk = bundle_find(bundle, &manifest_chunk(&manifest, i)->hash);
        assert_non_null(chunk);
        assert_ptr_equal(chunk->bytes.data, bytes + i * BLOB_BYTES_MAX);
        assert_int_equal(chunk->bytes.size, manifest_chunk(&manifest, i)->size_bytes);
    }
    hash.bytes[0] ^= 1;
    assert_null(bundle_find(bundle, &hash));
}

static void the_same_bytes_twice_are_the_same_chunks(void **state)
{
    (void)state;
    struct error error;
    AUTO(bundle) struct bundle *bundle = bundle_new();
    char *bytes = some_bytes(2);
    bundle_keep_take(bundle, bytes, free);
    const struct bundle_part part = {
        .name = "files", .packing = {.record_bytes = 1}, .bytes = {bytes, SIZE}};
    struct job_input first = {0}, second = {0};
    ASSERT_OK(bundle_add(bundle, &part, &first, &error));
    ASSERT_OK(bundle_add(bundle, &part, &second, &error));
    assert_memory_equal(first.manifest, second.manifest, sizeof(first.manifest));
    assert_int_equal(bundle_blob_count(bundle), 8);
    struct blob_hash hash = bundle_blob(bundle, 5)->hash;
    assert_ptr_equal(bundle_find(bundle, &hash), bundle_blob(bundle, 1));
}

static void what_is_no_whole_number_of_records_is_refused(void **state)
{
    (void)state;
    struct error error;
    AUTO(bundle) struct bundle *bundle = bundle_new();
    const struct bundle_part part = {
        .name = "odd", .packing = {.record_bytes = 4}, .bytes = TEXT("five!")};
    struct job_input input = {0};
    ASSERT_FAILS(bundle_add(bundle, &part, &input, &error), ERROR_INVALID);
    assert_int_equal(bundle_part_count(bundle), 0);
    assert_int_equal(bundle_blob_count(bundle), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_and_manifest_are_found_by_their_hashes),
        cmocka_unit_test(the_same_bytes_twice_are_the_same_chunks),
        cmocka_unit_test(what_is_no_whole_number_of_records_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
