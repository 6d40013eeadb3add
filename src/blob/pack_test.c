#include "base/random.h"
#include "blob/blob_testing.h"
#include "blob/pack.h"

#include <sys/mman.h>

enum { HEADER = 16, RECORD = 784, COUNT = 6000, SIZE = HEADER + RECORD * COUNT };

/* Gives its bytes in uneven pieces, as a stream would. */
struct stream {
    const uint8_t *data;
    size_t size;
    size_t at;
    struct random random;
};

static int stream_read(void *context, void *data, size_t size, size_t *out_size,
                       struct error *error __attribute__((unused)))
{
    struct stream *stream = context;
    const size_t left = stream->size - stream->at;
    size_t piece = 1 + random_below(&stream->random, 100000);
    piece = piece < size ? piece : size;
    piece = piece < left ? piece : left;
    if (piece)
        memcpy(data, stream->data + stream->at, piece);
    stream->at += piece;
    *out_size = piece;
    return 0;
}

static uint8_t *random_bytes(size_t size)
{
    struct random random;
    random_init(&random, 3);
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)random_u64(&random);
    return bytes;
}

static int pack_into(struct place *place, struct arena *arena, const struct pack_options *options,
                     const uint8_t *bytes, size_t size, struct manifest *out_manifest,
                     struct error *error)
{
    struct stream stream = {bytes, size, 0, {{0}}};
    random_init(&stream.random, 5);
    const struct pack_source source = {stream_read, &stream};
    const struct pack_sink sink = pack_sink_store(place->store);
    return pack_stream(arena, options, &source, &sink, out_manifest, error);
}

static const struct pack_options idx_options = {
    .media_type = "application/x-idx", .header_bytes = HEADER, .record_bytes = RECORD};

static void expect_file(int fd, const uint8_t *head, size_t head_size, const uint8_t *rest,
                        size_t rest_size)
{
    assert_int_equal(lseek(fd, 0, SEEK_END), (off_t)(head_size + rest_size));
    uint8_t *found = malloc(head_size + rest_size + 1);
    assert_int_equal(pread(fd, found, head_size + rest_size, 0), (ssize_t)(head_size + rest_size));
    if (head_size)
        assert_memory_equal(found, head, head_size);
    if (rest_size)
        assert_memory_equal(found + head_size, rest, rest_size);
    free(found);
}

static void a_file_is_cut_and_put_together_again(void **state)
{
    struct error error;
    struct place *place = *state;
    uint8_t *bytes = random_bytes(SIZE);
    AUTO(arena) struct arena *arena = arena_new(0);
    struct manifest manifest;
    ASSERT_OK(pack_into(place, arena, &idx_options, bytes, SIZE, &manifest, &error));
    assert_int_equal(manifest.size_bytes, SIZE);
    assert_int_equal(manifest.record_count, COUNT);
    assert_int_equal(manifest.chunks.count, 2);
    assert_int_equal(manifest_chunk(&manifest, 0)->size_bytes, BLOB_BYTES_MAX);
    assert_int_equal(blob_store_bytes(place->store), SIZE);

    AUTO_FD int fd = memfd_create("whole", MFD_CLOEXEC);
    const struct pack_origin origin = pack_origin_store(place->store);
    ASSERT_OK(pack_write_bytes(&manifest, 0, SIZE, &origin, fd, &error));
    expect_file(fd, NULL, 0, bytes, SIZE);

    /* And the file at hand gives the same manifest from a descriptor, without storing anything. */
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    const struct pack_source source = pack_source_fd(&fd);
    struct manifest again;
    ASSERT_OK(pack_stream(arena, &idx_options, &source, NULL, &again, &error));
    struct blob_hash first;
    struct blob_hash second;
    ASSERT_OK(manifest_put(place->store, &manifest, &first, &error));
    ASSERT_OK(manifest_put(place->store, &again, &second, &error));
    assert_true(blob_hash_equal(&first, &second));
    free(bytes);
}

static void a_shard_is_records_behind_a_header_of_the_callers(void **state)
{
    struct error error;
    struct place *place = *state;
    uint8_t *bytes = random_bytes(SIZE);
    AUTO(arena) struct arena *arena = arena_new(0);
    struct manifest manifest;
    struct pack_options options = idx_options;
    options.chunk_bytes = 10000; /* records lie across chunks */
    ASSERT_OK(pack_into(place, arena, &options, bytes, SIZE, &manifest, &error));
    const struct pack_origin origin = pack_origin_store(place->store);
    static const uint64_t firsts[] = {0, 1, 2000, 5999, 6000};
    static const uint64_t counts[] = {6000, 1, 3000, 1, 0};
    for (int i = 0; i < 5; i++) {
        AUTO_FD int fd = memfd_create("shard", MFD_CLOEXEC);
        uint8_t header[MANIFEST_HEADER_BYTES_MAX];
        ASSERT_OK(manifest_read_header(&manifest, header, &error));
        assert_memory_equal(header, bytes, HEADER);
        header[7] ^= 0xff;
        ASSERT_OK(pack_write_records(&manifest, firsts[i], counts[i],
                                     (struct text){(const char *)header, HEADER}, &origin, fd,
                                     &error));
        expect_file(fd, header, HEADER, bytes + HEADER + firsts[i] * RECORD, counts[i] * RECORD);
    }
    AUTO_FD int fd = memfd_create("shard", MFD_CLOEXEC);
    ASSERT_OK(pack_write_records(&manifest, 5, 7, (struct text){0}, &origin, fd, &error));
    expect_file(fd, bytes, HEADER, bytes + HEADER + (size_t)5 * RECORD, (size_t)7 * RECORD);
    free(bytes);
}

static void a_shard_needs_only_its_own_chunks(void **state)
{
    struct error error;
    struct place *place = *state;
    uint8_t *bytes = random_bytes(SIZE);
    AUTO(arena) struct arena *arena = arena_new(0);
    struct manifest manifest;
    struct pack_options options = idx_options;
    options.chunk_bytes = 100000;
    ASSERT_OK(pack_into(place, arena, &options, bytes, SIZE, &manifest, &error));
    struct manifest_range range;
    ASSERT_OK(manifest_map_records(&manifest, 2000, 1000, &range, &error));
    for (size_t i = 0; i < manifest.chunks.count; i++)
        if (i < range.first_chunk_index || i >= range.first_chunk_index + range.chunk_count)
            ASSERT_OK(blob_store_delete(place->store, &manifest_chunk(&manifest, i)->hash, &error));
    const struct pack_origin origin = pack_origin_store(place->store);
    AUTO_FD int fd = memfd_create("shard", MFD_CLOEXEC);
    ASSERT_OK(pack_write_records(&manifest, 2000, 1000, (struct text){0}, &origin, fd, &error));
    ASSERT_FAILS(pack_write_records(&manifest, 1800, 1000, (struct text){0}, &origin, fd, &error),
                 ERROR_NOT_FOUND);
    free(bytes);
}

static int wrong_bytes(void *context __attribute__((unused)),
                       const struct blob_hash *hash __attribute__((unused)), struct buffer *out,
                       struct error *error __attribute__((unused)))
{
    buffer_append_string(out, "rugs");
    return 0;
}

static void chunks_from_anywhere_are_checked(void **state)
{
    struct error error;
    struct place *place = *state;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct manifest manifest;
    const struct pack_options options = {0};
    ASSERT_OK(pack_into(place, arena, &options, (const uint8_t *)"lamp", 4, &manifest, &error));
    const struct pack_origin origin = {wrong_bytes, NULL};
    AUTO_FD int fd = memfd_create("file", MFD_CLOEXEC);
    ASSERT_FAILS(pack_write_bytes(&manifest, 0, 4, &origin, fd, &error), ERROR_CORRUPT);
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
}

static void files_that_do_not_fit_their_layout_are_refused(void **state)
{
    struct error error;
    struct place *place = *state;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct manifest manifest;
    const uint8_t bytes[HEADER + RECORD + 1] = {0};
    ASSERT_FAILS(pack_into(place, arena, &idx_options, bytes, sizeof(bytes), &manifest, &error),
                 ERROR_INVALID);
    ASSERT_FAILS(pack_into(place, arena, &idx_options, bytes, HEADER - 1, &manifest, &error),
                 ERROR_INVALID);
    ASSERT_OK(pack_into(place, arena, &idx_options, bytes, HEADER, &manifest, &error));
    assert_int_equal(manifest.record_count, 0);
    struct pack_options options = {.bytes_max = 10};
    ASSERT_FAILS(pack_into(place, arena, &options, bytes, 11, &manifest, &error), ERROR_EXHAUSTED);
    ASSERT_OK(pack_into(place, arena, &options, bytes, 10, &manifest, &error));
    options = (struct pack_options){.header_bytes = 5};
    ASSERT_FAILS(pack_into(place, arena, &options, bytes, 11, &manifest, &error), ERROR_INVALID);
    options = (struct pack_options){.chunk_bytes = BLOB_BYTES_MAX + 1};
    ASSERT_FAILS(pack_into(place, arena, &options, bytes, 11, &manifest, &error), ERROR_INVALID);
}

static void bytes_in_memory_are_described_as_a_stream_is(void **state)
{
    struct error error;
    struct place *place = *state;
    AUTO(arena) struct arena *arena = arena_new(0);
    uint8_t *bytes = random_bytes(SIZE);
    struct manifest streamed, described;
    ASSERT_OK(pack_into(place, arena, &idx_options, bytes, SIZE, &streamed, &error));
    const struct text all = {(const char *)bytes, SIZE};
    struct blob_hash hashes[2];
    assert_int_equal(pack_chunk_count(SIZE), 2);
    for (size_t i = 0; i < 2; i++)
        blob_hash_of(pack_chunk(all, i).data, pack_chunk(all, i).size, &hashes[i]);
    ASSERT_OK(pack_describe(arena, &idx_options, all, hashes, &described, &error));
    struct buffer left AUTO_BUFFER, right AUTO_BUFFER;
    buffer_init(&left, BLOB_BYTES_MAX);
    buffer_init(&right, BLOB_BYTES_MAX);
    ASSERT_OK(manifest_encode(&streamed, &left, &error));
    ASSERT_OK(manifest_encode(&described, &right, &error));
    assert_true(text_equal(buffer_text(&left), buffer_text(&right)));
    ASSERT_FAILS(pack_describe(arena, &idx_options, (struct text){all.data, SIZE - 1}, hashes,
                               &described, &error),
                 ERROR_INVALID);
    free(bytes);
}

/* What was hashed on its way into the store is copied out of it; what comes from before is read. */
static void a_chunk_that_changed_since_the_store_was_opened_is_not_written(void **state)
{
    struct error error;
    struct place *place = *state;
    AUTO(arena) struct arena *arena = arena_new(0);
    uint8_t *bytes = random_bytes(SIZE);
    struct manifest manifest;
    ASSERT_OK(pack_into(place, arena, &idx_options, bytes, SIZE, &manifest, &error));
    place_close(place);
    char path[200], text[BLOB_HASH_TEXT_SIZE];
    blob_hash_format(&manifest_chunk(&manifest, 0)->hash, text);
    snprintf(path, sizeof(path), "%s/%.2s/%s", place->folder, text, text + 2);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fputc(bytes[0] ^ 1, file);
    fclose(file);
    place_open(place);
    const struct pack_origin origin = pack_origin_store(place->store);
    AUTO_FD int fd = memfd_create("shard", MFD_CLOEXEC);
    ASSERT_FAILS(pack_write_bytes(&manifest, 0, 1000, &origin, fd, &error), ERROR_CORRUPT);
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
    free(bytes);
}

static void an_empty_file_has_no_chunks(void **state)
{
    struct error error;
    struct place *place = *state;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct manifest manifest;
    const struct pack_options options = {0};
    ASSERT_OK(pack_into(place, arena, &options, NULL, 0, &manifest, &error));
    assert_int_equal(manifest.chunks.count, 0);
    struct blob_hash hash;
    ASSERT_OK(manifest_put(place->store, &manifest, &hash, &error));
    struct manifest again;
    ASSERT_OK(manifest_get(arena, place->store, &hash, &again, &error));
    AUTO_FD int fd = memfd_create("file", MFD_CLOEXEC);
    const struct pack_origin origin = pack_origin_store(place->store);
    ASSERT_OK(pack_write_bytes(&again, 0, 0, &origin, fd, &error));
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(a_file_is_cut_and_put_together_again),
        PLACE_TEST(a_shard_is_records_behind_a_header_of_the_callers),
        PLACE_TEST(a_shard_needs_only_its_own_chunks),
        PLACE_TEST(chunks_from_anywhere_are_checked),
        PLACE_TEST(files_that_do_not_fit_their_layout_are_refused),
        PLACE_TEST(bytes_in_memory_are_described_as_a_stream_is),
        PLACE_TEST(a_chunk_that_changed_since_the_store_was_opened_is_not_written),
        PLACE_TEST(an_empty_file_has_no_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
