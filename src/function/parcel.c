#include "function/parcel.h"

#include "base/assert.h"

#include <math.h>
#include <sodium.h>
#include <string.h>

enum { HEADER_SIZE = 16, HASH_SIZE = 32, VERSION = 1, ALIGNMENT = 8 };

static const char magic[8] = {'S', 'O', 'U', 'K', 'P', 'A', 'R', 'C'};

int parcel_encode(const struct parcel *parcel, struct buffer *out, struct error *error)
{
    const size_t padded = (parcel->head.size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const uint32_t numbers[2] = {VERSION, (uint32_t)padded};
    uint8_t hash[HASH_SIZE];
    ASSERT(out->size == 0);
    if (padded > PARCEL_HEAD_MAX)
        return error_set(error, ERROR_EXHAUSTED, "the head of a parcel is too long");
    buffer_append(out, magic, sizeof(magic));
    buffer_append(out, numbers, sizeof(numbers));
    buffer_append_text(out, parcel->head);
    for (size_t i = parcel->head.size; i < padded; i++)
        buffer_append_byte(out, ' ');
    buffer_append(out, parcel->values, sizeof(float) * parcel->count);
    if (buffer_check(out, error) < 0)
        return -1;
    crypto_generichash(hash, sizeof(hash), out->data, out->size, NULL, 0);
    buffer_append(out, hash, sizeof(hash));
    return buffer_check(out, error);
}

static int check_finite(const float *values, size_t count, struct error *error)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return error_set(error, ERROR_CORRUPT, "value %zu of a parcel is not finite", i);
    return 0;
}

int parcel_decode(struct text bytes, struct parcel *out_parcel, struct error *error)
{
    uint32_t numbers[2];
    uint8_t hash[HASH_SIZE];
    if (bytes.size < HEADER_SIZE + HASH_SIZE || memcmp(bytes.data, magic, sizeof(magic)) != 0)
        return error_set(error, ERROR_CORRUPT, "it is no parcel");
    const size_t end = bytes.size - HASH_SIZE;
    crypto_generichash(hash, sizeof(hash), (const uint8_t *)bytes.data, end, NULL, 0);
    if (memcmp(hash, bytes.data + end, HASH_SIZE) != 0)
        return error_set(error, ERROR_CORRUPT, "the parcel is cut or was changed");
    memcpy(numbers, bytes.data + sizeof(magic), sizeof(numbers));
    const size_t head_size = numbers[1];
    if (numbers[0] != VERSION || head_size % ALIGNMENT || head_size > PARCEL_HEAD_MAX ||
        head_size > end - HEADER_SIZE || (end - HEADER_SIZE - head_size) % sizeof(float))
        return error_set(error, ERROR_CORRUPT, "the parcel's sizes are wrong");
    const char *values = bytes.data + HEADER_SIZE + head_size;
    const struct parcel parcel = {
        .head = text_trim((struct text){bytes.data + HEADER_SIZE, head_size}),
        .values = (const float *)(const void *)values,
        .count = (end - HEADER_SIZE - head_size) / sizeof(float),
    };
    if (check_finite(parcel.values, parcel.count, error) < 0)
        return -1;
    *out_parcel = parcel;
    return 0;
}
