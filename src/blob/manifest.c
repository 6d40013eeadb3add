#include "blob/manifest.h"

#include "base/assert.h"

#include <inttypes.h>

/* No file is larger than its chunks can hold, so sums below cannot overflow. */
#define SIZE_BYTES_MAX ((int64_t)MANIFEST_CHUNK_MAX * BLOB_BYTES_MAX)

static const struct json_field chunk_fields[] = {
    {"hash", JSON_HEX, offsetof(struct manifest_chunk, hash), .is_required = true,
     .size_max = BLOB_HASH_SIZE},
    {"size", JSON_U64, offsetof(struct manifest_chunk, size_bytes), .is_required = true,
     .minimum = 1, .maximum = BLOB_BYTES_MAX},
};
static const struct json_schema chunk_schema =
    JSON_SCHEMA("chunk", chunk_fields, struct manifest_chunk);

static const struct json_field manifest_fields[] = {
    {"media_type", JSON_CHARS, offsetof(struct manifest, media_type), .is_required = true,
     .size_max = MANIFEST_MEDIA_TYPE_SIZE},
    {"size", JSON_U64, offsetof(struct manifest, size_bytes), .is_required = true,
     .maximum = SIZE_BYTES_MAX},
    {"header_bytes", JSON_U64, offsetof(struct manifest, header_bytes), .is_required = true,
     .maximum = MANIFEST_HEADER_BYTES_MAX},
    {"record_bytes", JSON_U64, offsetof(struct manifest, record_bytes), .is_required = true,
     .maximum = SIZE_BYTES_MAX},
    {"record_count", JSON_U64, offsetof(struct manifest, record_count), .is_required = true,
     .maximum = SIZE_BYTES_MAX},
    {"header", JSON_TEXT, offsetof(struct manifest, header), .is_required = true,
     .size_max = (size_t)2 * MANIFEST_HEADER_BYTES_MAX},
    {"chunks", JSON_ARRAY, offsetof(struct manifest, chunks), .is_required = true,
     .size_max = MANIFEST_CHUNK_MAX, .schema = &chunk_schema},
};
static const struct json_schema manifest_schema =
    JSON_SCHEMA("manifest", manifest_fields, struct manifest);

/* ---- Rules ----------------------------------------------------------------------------------- */

static int check_layout(const struct manifest *manifest, struct error *error)
{
    if (manifest->record_bytes == 0) {
        if (manifest->header_bytes || manifest->record_count || manifest->header.size)
            return error_set(error, ERROR_INVALID, "manifest: a header or a count, but no records");
        return 0;
    }
    if (manifest->header_bytes > MANIFEST_HEADER_BYTES_MAX ||
        manifest->header.size != 2 * manifest->header_bytes)
        return error_set(error, ERROR_INVALID, "manifest.header: not %" PRIu64 " bytes as hex",
                         manifest->header_bytes);
    for (size_t i = 0; i < manifest->header.size; i++)
        if (!manifest->header.data[i] || !strchr("0123456789abcdef", manifest->header.data[i]))
            return error_set(error, ERROR_INVALID, "manifest.header: lower-case hex expected");
    uint64_t size_bytes;
    if (__builtin_mul_overflow(manifest->record_bytes, manifest->record_count, &size_bytes) ||
        __builtin_add_overflow(size_bytes, manifest->header_bytes, &size_bytes) ||
        size_bytes != manifest->size_bytes)
        return error_set(error, ERROR_INVALID,
                         "manifest: header and records do not fill the %" PRIu64 " bytes",
                         manifest->size_bytes);
    return 0;
}

int manifest_check(const struct manifest *manifest, struct error *error)
{
    for (const char *byte = manifest->media_type; *byte; byte++)
        if (*byte < ' ' || *byte > '~')
            return error_set(error, ERROR_INVALID, "manifest.media_type: printable ASCII expected");
    if (manifest->chunks.count > MANIFEST_CHUNK_MAX)
        return error_set(error, ERROR_INVALID, "manifest.chunks: more than %d", MANIFEST_CHUNK_MAX);
    uint64_t size_bytes = 0;
    for (size_t i = 0; i < manifest->chunks.count; i++) {
        const uint64_t chunk_bytes = manifest_chunk(manifest, i)->size_bytes;
        if (chunk_bytes == 0 || chunk_bytes > BLOB_BYTES_MAX)
            return error_set(error, ERROR_INVALID,
                             "manifest.chunks[%zu].size: must be from 1 to %d", i, BLOB_BYTES_MAX);
        size_bytes += chunk_bytes;
    }
    if (size_bytes != manifest->size_bytes)
        return error_set(error, ERROR_INVALID,
                         "manifest: chunks hold %" PRIu64 " bytes, the file %" PRIu64, size_bytes,
                         manifest->size_bytes);
    return check_layout(manifest, error);
}

/* ---- Encoding -------------------------------------------------------------------------------- */

int manifest_encode(const struct manifest *manifest, struct buffer *out, struct error *error)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, BLOB_BYTES_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_write(&writer, &manifest_schema, manifest);
    if (buffer_check(&json, error) < 0)
        return error_wrap(error, "a manifest of %zu chunks", manifest->chunks.count);
    buffer_append_text(out, buffer_text(&json));
    return buffer_check(out, error);
}

int manifest_decode(struct arena *arena, struct text json, struct manifest *out_manifest,
                    struct error *error)
{
    if (json.size > BLOB_BYTES_MAX)
        return error_set(error, ERROR_INVALID, "manifest: longer than %d bytes", BLOB_BYTES_MAX);
    struct manifest manifest = {0};
    if (json_read(arena, json, &manifest_schema, &manifest, error) < 0 ||
        manifest_check(&manifest, error) < 0)
        return -1;
    struct buffer again AUTO_BUFFER;
    buffer_init(&again, BLOB_BYTES_MAX);
    if (manifest_encode(&manifest, &again, error) < 0)
        return -1;
    if (!text_equal(buffer_text(&again), json))
        return error_set(error, ERROR_INVALID, "manifest: not in canonical form");
    *out_manifest = manifest;
    return 0;
}

int manifest_put(struct blob_store *store, const struct manifest *manifest,
                 struct blob_hash *out_hash, struct error *error)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, BLOB_BYTES_MAX);
    if (manifest_check(manifest, error) < 0 || manifest_encode(manifest, &json, error) < 0)
        return -1;
    return blob_store_put(store, NULL, buffer_text(&json), out_hash, error);
}

int manifest_get(struct arena *arena, struct blob_store *store, const struct blob_hash *hash,
                 struct manifest *out_manifest, struct error *error)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, BLOB_BYTES_MAX);
    if (blob_store_read(store, hash, &json, error) < 0)
        return -1;
    return manifest_decode(arena, buffer_text(&json), out_manifest, error);
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

int manifest_map_bytes(const struct manifest *manifest, uint64_t offset_bytes, uint64_t size_bytes,
                       struct manifest_range *out_range, struct error *error)
{
    if (offset_bytes > manifest->size_bytes || size_bytes > manifest->size_bytes - offset_bytes)
        return error_set(error, ERROR_INVALID,
                         "%" PRIu64 " bytes from byte %" PRIu64
                         " are not inside a file of %" PRIu64,
                         size_bytes, offset_bytes, manifest->size_bytes);
    struct manifest_range range = {.offset_bytes = offset_bytes, .size_bytes = size_bytes};
    uint64_t chunk_start = 0;
    for (size_t i = 0; size_bytes > 0 && i < manifest->chunks.count; i++) {
        const uint64_t chunk_end = chunk_start + manifest_chunk(manifest, i)->size_bytes;
        if (chunk_start >= offset_bytes + size_bytes)
            break;
        if (chunk_end > offset_bytes) {
            if (range.chunk_count == 0) {
                range.first_chunk_index = i;
                range.skip_bytes = offset_bytes - chunk_start;
            }
            range.chunk_count++;
        }
        chunk_start = chunk_end;
    }
    ASSERT(size_bytes == 0 || range.chunk_count > 0);
    *out_range = range;
    return 0;
}

int manifest_map_records(const struct manifest *manifest, uint64_t first_record,
                         uint64_t record_count, struct manifest_range *out_range,
                         struct error *error)
{
    if (manifest->record_bytes == 0)
        return error_set(error, ERROR_INVALID, "the file has no records");
    if (first_record > manifest->record_count ||
        record_count > manifest->record_count - first_record)
        return error_set(error, ERROR_INVALID,
                         "%" PRIu64 " records from record %" PRIu64
                         " are not inside a file of %" PRIu64,
                         record_count, first_record, manifest->record_count);
    return manifest_map_bytes(manifest,
                              manifest->header_bytes + first_record * manifest->record_bytes,
                              record_count * manifest->record_bytes, out_range, error);
}

int manifest_read_header(const struct manifest *manifest, uint8_t *out, struct error *error)
{
    ASSERT(manifest->header_bytes <= MANIFEST_HEADER_BYTES_MAX);
    if (manifest->header_bytes == 0)
        return 0;
    return text_hex_decode(manifest->header, out, manifest->header_bytes, error);
}
