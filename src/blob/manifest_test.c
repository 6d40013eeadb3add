#include "blob/blob_testing.h"
#include "blob/manifest.h"

#include <inttypes.h>

/* 2 + 10 * 3 bytes in chunks of 8, 16 and 8. */
static struct manifest example(struct manifest_chunk chunks[3])
{
    static const uint64_t sizes[] = {8, 16, 8};
    for (int i = 0; i < 3; i++) {
        chunks[i] = (struct manifest_chunk){.size_bytes = sizes[i]};
        blob_hash_of(&i, sizeof(i), &chunks[i].hash);
    }
    return (struct manifest){.media_type = "application/x-idx",
                             .size_bytes = 32,
                             .header_bytes = 2,
                             .record_bytes = 3,
                             .record_count = 10,
                             .header = TEXT("0aff"),
                             .chunks = {chunks, 3}};
}

static void encode(const struct manifest *manifest, struct buffer *out)
{
    struct error error;
    buffer_init(out, BLOB_BYTES_MAX);
    ASSERT_OK(manifest_encode(manifest, out, &error));
}

TEST(a_manifest_reads_back_and_says_the_same_again)
{
    struct error error;
    struct manifest_chunk chunks[3];
    const struct manifest manifest = example(chunks);
    ASSERT_OK(manifest_check(&manifest, &error));
    struct buffer json AUTO_BUFFER;
    encode(&manifest, &json);
    AUTO(arena) struct arena *arena = arena_new(0);
    struct manifest again;
    ASSERT_OK(manifest_decode(arena, buffer_text(&json), &again, &error));
    assert_string_equal(again.media_type, "application/x-idx");
    assert_int_equal(again.size_bytes, 32);
    assert_int_equal(again.record_count, 10);
    assert_int_equal(again.chunks.count, 3);
    assert_memory_equal(again.chunks.items, chunks, sizeof(chunks));
    uint8_t header[MANIFEST_HEADER_BYTES_MAX];
    ASSERT_OK(manifest_read_header(&again, header, &error));
    assert_int_equal(header[0], 0x0a);
    assert_int_equal(header[1], 0xff);
    struct buffer twice AUTO_BUFFER;
    encode(&again, &twice);
    assert_true(text_equal(buffer_text(&json), buffer_text(&twice)));
}

static void expect_refused(const char *from, const char *to)
{
    struct error error;
    struct manifest_chunk chunks[3];
    const struct manifest manifest = example(chunks);
    struct buffer json AUTO_BUFFER;
    encode(&manifest, &json);
    const char *string = buffer_string(&json);
    const char *at = strstr(string, from);
    assert_non_null(at);
    struct buffer changed AUTO_BUFFER;
    buffer_init(&changed, BLOB_BYTES_MAX);
    buffer_append(&changed, string, (size_t)(at - string));
    buffer_append_string(&changed, to);
    buffer_append_string(&changed, at + strlen(from));
    AUTO(arena) struct arena *arena = arena_new(0);
    struct manifest out;
    ASSERT_FAILS(manifest_decode(arena, buffer_text(&changed), &out, &error), ERROR_INVALID);
}

TEST(manifests_that_do_not_add_up_are_refused)
{
    expect_refused("\"size\":32", "\"size\":33");
    expect_refused("\"size\":32", "\"size\":-32");
    expect_refused("\"record_bytes\":3", "\"record_bytes\":4");
    expect_refused("\"record_bytes\":3", "\"record_bytes\":0");
    expect_refused("\"record_count\":10", "\"record_count\":6148914691236517216");
    expect_refused("\"record_count\":10", "\"record_count\":11");
    expect_refused("\"header_bytes\":2", "\"header_bytes\":3");
    expect_refused("\"header\":\"0aff\"", "\"header\":\"0aFF\"");
    expect_refused("\"header\":\"0aff\"", "\"header\":\"0afg\"");
    expect_refused("\"size\":16", "\"size\":0");
    expect_refused("\"size\":16", "\"size\":4194305");
    expect_refused("\"hash\":\"", "\"hash\":\"00");
    expect_refused("application", "appli\\u0000cation");
    expect_refused("application", "appli\\tcation");
}

TEST(other_ways_to_write_the_same_are_refused)
{
    expect_refused("\"size\":32,", "\"size\": 32,");
    expect_refused("application", "\\u0061pplication");
    expect_refused("\"size\":32", "\"size\":32.0");
    expect_refused("\"size\":32,\"header_bytes\":2", "\"header_bytes\":2,\"size\":32");
    expect_refused("\"size\":32", "\"size\":32,\"size\":32");
    expect_refused("\"size\":32", "\"size\":32,\"more\":1");
}

TEST(too_many_chunks_are_refused)
{
    struct error error;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, BLOB_BYTES_MAX);
    const size_t count = MANIFEST_CHUNK_MAX + 1;
    struct manifest_chunk *chunks = calloc(count, sizeof(*chunks));
    for (size_t i = 0; i < count; i++)
        chunks[i].size_bytes = 1;
    struct manifest manifest = {.size_bytes = count, .header = TEXT(""), .chunks = {chunks, count}};
    ASSERT_FAILS(manifest_check(&manifest, &error), ERROR_INVALID);
    manifest.size_bytes = manifest.chunks.count = MANIFEST_CHUNK_MAX;
    ASSERT_OK(manifest_check(&manifest, &error));
    /* Described, but not in one blob. */
    ASSERT_FAILS(manifest_encode(&manifest, &json, &error), ERROR_EXHAUSTED);
    manifest.size_bytes = manifest.chunks.count = 45000;
    ASSERT_OK(manifest_encode(&manifest, &json, &error));
    free(chunks);
}

static void expect_range(const struct manifest_range *range, size_t first_chunk, size_t count,
                         uint64_t skip_bytes)
{
    assert_int_equal(range->first_chunk_index, first_chunk);
    assert_int_equal(range->chunk_count, count);
    assert_int_equal(range->skip_bytes, skip_bytes);
}

TEST(records_map_to_the_chunks_they_touch)
{
    struct error error;
    struct manifest_chunk chunks[3];
    const struct manifest manifest = example(chunks);
    struct manifest_range range;
    ASSERT_OK(manifest_map_records(&manifest, 0, 2, &range, &error)); /* bytes 2 to 8 */
    expect_range(&range, 0, 1, 2);
    ASSERT_OK(manifest_map_records(&manifest, 1, 2, &range, &error)); /* 5 to 11 */
    expect_range(&range, 0, 2, 5);
    ASSERT_OK(manifest_map_records(&manifest, 2, 5, &range, &error)); /* 8 to 23 */
    expect_range(&range, 1, 1, 0);
    ASSERT_OK(manifest_map_records(&manifest, 7, 3, &range, &error)); /* 23 to 32 */
    expect_range(&range, 1, 2, 15);
    assert_int_equal(range.offset_bytes, 23);
    assert_int_equal(range.size_bytes, 9);
    ASSERT_OK(manifest_map_records(&manifest, 0, 10, &range, &error));
    expect_range(&range, 0, 3, 2);
    ASSERT_OK(manifest_map_records(&manifest, 10, 0, &range, &error));
    expect_range(&range, 0, 0, 0);
    ASSERT_OK(manifest_map_bytes(&manifest, 0, 32, &range, &error));
    expect_range(&range, 0, 3, 0);
}

TEST(ranges_outside_the_file_are_refused)
{
    struct error error;
    struct manifest_chunk chunks[3];
    struct manifest manifest = example(chunks);
    struct manifest_range range;
    ASSERT_FAILS(manifest_map_records(&manifest, 0, 11, &range, &error), ERROR_INVALID);
    ASSERT_FAILS(manifest_map_records(&manifest, 11, 0, &range, &error), ERROR_INVALID);
    ASSERT_FAILS(manifest_map_records(&manifest, 1, UINT64_MAX, &range, &error), ERROR_INVALID);
    ASSERT_FAILS(manifest_map_bytes(&manifest, 1, UINT64_MAX, &range, &error), ERROR_INVALID);
    ASSERT_FAILS(manifest_map_bytes(&manifest, 31, 2, &range, &error), ERROR_INVALID);
    manifest.record_bytes = manifest.record_count = 0;
    ASSERT_FAILS(manifest_map_records(&manifest, 0, 1, &range, &error), ERROR_INVALID);
}

static void a_manifest_is_kept_as_a_blob(void **state)
{
    struct error error;
    struct place *place = *state;
    struct manifest_chunk chunks[3];
    const struct manifest manifest = example(chunks);
    struct blob_hash hash;
    ASSERT_OK(manifest_put(place->store, &manifest, &hash, &error));
    AUTO(arena) struct arena *arena = arena_new(0);
    struct manifest again;
    ASSERT_OK(manifest_get(arena, place->store, &hash, &again, &error));
    assert_int_equal(again.size_bytes, 32);
    struct buffer json AUTO_BUFFER;
    encode(&manifest, &json);
    struct blob_hash expected;
    blob_hash_of(json.data, json.size, &expected);
    assert_true(blob_hash_equal(&hash, &expected));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_reads_back_and_says_the_same_again),
        cmocka_unit_test(manifests_that_do_not_add_up_are_refused),
        cmocka_unit_test(other_ways_to_write_the_same_are_refused),
        cmocka_unit_test(too_many_chunks_are_refused),
        cmocka_unit_test(records_map_to_the_chunks_they_touch),
        cmocka_unit_test(ranges_outside_the_file_are_refused),
        PLACE_TEST(a_manifest_is_kept_as_a_blob),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
