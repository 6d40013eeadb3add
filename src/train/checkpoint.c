#include "train/checkpoint.h"

#include "base/assert.h"
#include "base/file.h"

#include <sodium.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "floats are written as they lie");

enum { HASH_SIZE = 32, PREFIX_SIZE = 16, HEAD_SIZE_MAX = MODEL_SPEC_JSON_MAX + 1024 };
enum { VERSION = 3, VERSION_MIN = 2 };
static const char magic[8] = {'S', 'O', 'U', 'K', 'C', 'K', 'P', 'T'};
#define CHECKPOINT_SIZE_MAX ((size_t)1 << 30)

/* The head, for its table; the spec is JSON of its own. */
struct head {
    struct text spec;
    uint64_t step, samples, epoch, position, seed, stream, parameters, moments;
    int64_t elapsed_ms;
};

static const struct json_field head_fields[] = {
    {"spec", JSON_ANY, offsetof(struct head, spec), .is_required = true,
     .size_max = MODEL_SPEC_JSON_MAX},
    {"step", JSON_U64, offsetof(struct head, step), .is_required = true},
    {"samples", JSON_U64, offsetof(struct head, samples), .is_required = true},
    {"elapsed_ms", JSON_I64, offsetof(struct head, elapsed_ms), .minimum = 0,
     .maximum = INT64_C(1) << 52},
    {"epoch", JSON_U64, offsetof(struct head, epoch), .is_required = true},
    {"position", JSON_U64, offsetof(struct head, position), .is_required = true},
    {"seed", JSON_U64, offsetof(struct head, seed), .is_required = true},
    {"stream", JSON_U64, offsetof(struct head, stream), .is_required = true},
    {"parameters", JSON_U64, offsetof(struct head, parameters), .is_required = true},
    {"moments", JSON_U64, offsetof(struct head, moments), .is_required = true},
};
static const struct json_schema head_schema = JSON_SCHEMA("checkpoint", head_fields, struct head);

static void put_u32(uint8_t *out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

static uint32_t get_u32(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static int write_head(const struct checkpoint *checkpoint, struct buffer *buffer,
                      struct error *error)
{
    struct buffer spec AUTO_BUFFER;
    buffer_init(&spec, MODEL_SPEC_JSON_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &spec);
    model_spec_write(&writer, &checkpoint->spec);
    if (buffer_check(&spec, error) < 0)
        return -1;
    const struct head head = {
        .spec = buffer_text(&spec),
        .step = checkpoint->step,
        .samples = checkpoint->samples,
        .elapsed_ms = checkpoint->elapsed_ms,
        .epoch = checkpoint->epoch,
        .position = checkpoint->position,
        .seed = checkpoint->seed,
        .stream = checkpoint->stream,
        .parameters = checkpoint->parameter_count,
        .moments = checkpoint->second ? 2 : 1,
    };
    json_writer_init(&writer, buffer);
    json_write(&writer, &head_schema, &head);
    /* The floats that follow are aligned when the head's size is a multiple of 4. */
    while (buffer->size % 4 != 0)
        buffer_append_byte(buffer, ' ');
    return buffer_check(buffer, error);
}

/* Floats, aligned or not. Without branches, so that it is done at the speed of memory. */
static bool is_finite(const void *values, size_t count)
{
    const uint8_t *bytes = values;
    uint32_t is_beyond = 0;
    for (size_t i = 0; values && i < count; i++) {
        uint32_t bits;
        memcpy(&bits, bytes + i * sizeof(bits), sizeof(bits));
        is_beyond |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return !is_beyond;
}

int checkpoint_write(const char *path, const struct checkpoint *checkpoint, struct error *error)
{
    const size_t count = checkpoint->parameter_count;
    if (!is_finite(checkpoint->parameters, count) || !is_finite(checkpoint->velocity, count) ||
        !is_finite(checkpoint->second, count))
        return error_set(error, ERROR_INVALID,
                         "checkpoint: a parameter is not finite: the one before is kept");
    struct buffer head AUTO_BUFFER;
    buffer_init(&head, HEAD_SIZE_MAX);
    if (write_head(checkpoint, &head, error) < 0)
        return error_wrap(error, "checkpoint");
    uint8_t prefix[PREFIX_SIZE];
    memcpy(prefix, magic, sizeof(magic));
    put_u32(prefix + 8, VERSION);
    put_u32(prefix + 12, (uint32_t)head.size);
    const size_t vector_size = sizeof(float) * checkpoint->parameter_count;
    uint8_t hash[HASH_SIZE];
    const struct text parts[] = {
        {(const char *)prefix, sizeof(prefix)},
        buffer_text(&head),
        {(const char *)checkpoint->parameters, vector_size},
        {(const char *)checkpoint->velocity, vector_size},
        {(const char *)checkpoint->second, checkpoint->second ? vector_size : 0},
        {(const char *)hash, sizeof(hash)},
    };
    enum { PART_COUNT = sizeof(parts) / sizeof(*parts) };
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, HASH_SIZE);
    for (size_t i = 0; i + 1 < PART_COUNT; i++)
        crypto_generichash_update(&state, (const uint8_t *)parts[i].data, parts[i].size);
    crypto_generichash_final(&state, hash, HASH_SIZE);
    return file_replace(path, parts, PART_COUNT, 0644, error);
}

static int check_hash(const uint8_t *bytes, size_t size, struct error *error)
{
    uint8_t hash[HASH_SIZE];
    crypto_generichash(hash, HASH_SIZE, bytes, size - HASH_SIZE, NULL, 0);
    if (sodium_memcmp(hash, bytes + size - HASH_SIZE, HASH_SIZE) != 0)
        return error_set(error, ERROR_CORRUPT, "checkpoint: its checksum is wrong");
    return 0;
}

static int read_head(struct text json, struct checkpoint *checkpoint, uint64_t *out_moments,
                     struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new((size_t)1 << 20);
    struct head head = {0};
    struct parameter_table table;
    if (json_read(arena, json, &head_schema, &head, error) < 0 ||
        model_spec_read(arena, head.spec, &checkpoint->spec, error) < 0 ||
        model_spec_layout(&checkpoint->spec, &table, error) < 0)
        return error_set(error, ERROR_CORRUPT, "checkpoint: its head cannot be read");
    if (head.parameters != table.float_count)
        return error_set(error, ERROR_CORRUPT, "checkpoint: its model has %zu parameters, not %zu",
                         table.float_count, (size_t)head.parameters);
    if (head.moments != 1 && head.moments != 2)
        return error_set(error, ERROR_CORRUPT, "checkpoint: it has no 1 or 2 moments");
    *out_moments = head.moments;
    checkpoint->step = head.step;
    checkpoint->samples = head.samples;
    checkpoint->elapsed_ms = head.elapsed_ms;
    checkpoint->epoch = head.epoch;
    checkpoint->position = head.position;
    checkpoint->seed = head.seed;
    checkpoint->stream = head.stream;
    checkpoint->parameter_count = table.float_count;
    return 0;
}

static float *copy_floats(const uint8_t *bytes, size_t count)
{
    float *floats = malloc(sizeof(float) * count);
    ASSERT(floats != NULL);
    memcpy(floats, bytes, sizeof(float) * count);
    return floats;
}

int checkpoint_parse(const uint8_t *bytes, size_t size, struct checkpoint **out_checkpoint,
                     struct error *error)
{
    if (size < PREFIX_SIZE + HASH_SIZE || memcmp(bytes, magic, sizeof(magic)) != 0)
        return error_set(error, ERROR_CORRUPT, "checkpoint: not one, or cut at its start");
    if (get_u32(bytes + 8) < VERSION_MIN || get_u32(bytes + 8) > VERSION)
        return error_set(error, ERROR_CORRUPT, "checkpoint: version %u is not %d to %d",
                         get_u32(bytes + 8), VERSION_MIN, VERSION);
    if (check_hash(bytes, size, error) < 0)
        return -1;
    const size_t head_size = get_u32(bytes + 12);
    if (head_size > HEAD_SIZE_MAX || head_size > size - PREFIX_SIZE - HASH_SIZE)
        return error_set(error, ERROR_CORRUPT, "checkpoint: a head of %zu bytes does not fit",
                         head_size);
    struct checkpoint head = {0};
    uint64_t moments;
    if (read_head((struct text){(const char *)bytes + PREFIX_SIZE, head_size}, &head, &moments,
                  error) < 0)
        return -1;
    const size_t count = head.parameter_count;
    if (size != PREFIX_SIZE + head_size + (1 + moments) * sizeof(float) * count + HASH_SIZE)
        return error_set(error, ERROR_CORRUPT, "checkpoint: %zu bytes do not hold %zu parameters",
                         size, count);
    const uint8_t *vectors = bytes + PREFIX_SIZE + head_size;
    if (!is_finite(vectors, (1 + moments) * count))
        return error_set(error, ERROR_CORRUPT, "checkpoint: a parameter is not finite");
    struct checkpoint *checkpoint = malloc(sizeof(*checkpoint));
    ASSERT(checkpoint != NULL);
    *checkpoint = head;
    checkpoint->parameters = copy_floats(vectors, count);
    checkpoint->velocity = copy_floats(vectors + sizeof(float) * count, count);
    if (moments == 2)
        checkpoint->second = copy_floats(vectors + 2 * sizeof(float) * count, count);
    *out_checkpoint = checkpoint;
    return 0;
}

int checkpoint_refuse_other(const struct checkpoint *checkpoint, const struct model_spec *wanted,
                            struct error *error)
{
    struct parameter_table table;
    if (model_spec_layout(wanted, &table, error) < 0)
        return -1;
    return error_set(error, ERROR_INVALID,
                     "the checkpoint is of another model: %s of %zu parameters, not %s of %zu; "
                     "give the file it was made with, or begin anew without it",
                     model_kind_name(checkpoint->spec.kind), checkpoint->parameter_count,
                     model_kind_name(wanted->kind), table.float_count);
}

int checkpoint_read(const char *path, struct checkpoint **out_checkpoint, struct error *error)
{
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, CHECKPOINT_SIZE_MAX);
    if (file_read(path, &buffer, error) < 0)
        return -1;
    if (checkpoint_parse(buffer.data, buffer.size, out_checkpoint, error) < 0)
        return error_wrap(error, "\"%s\"", path);
    return 0;
}

void checkpoint_free(struct checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    free(checkpoint->parameters);
    free(checkpoint->velocity);
    free(checkpoint->second);
    free(checkpoint);
}
