#include "train/npy_array.h"

#include "base/assert.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAGIC_SIZE = 8, PIECE = 4096 };

/* Behind 'KEY': of the dictionary, blanks skipped. */
static bool find_value(struct text dictionary, const char *key, struct text *out_rest)
{
    const size_t size = strlen(key);
    const char *at = memmem(dictionary.data, dictionary.size, key, size);
    if (!at)
        return false;
    const char *end = dictionary.data + dictionary.size;
    for (at += size; at < end && (*at == ' ' || *at == ':'); at++)
        continue;
    *out_rest = (struct text){at, (size_t)(end - at)};
    return true;
}

static int read_type(struct text dictionary, struct npy_header *header, struct error *error)
{
    struct text rest;
    if (!find_value(dictionary, "'descr'", &rest) || rest.size < 5 || rest.data[0] != '\'')
        return error_set(error, ERROR_CORRUPT, "npy: the header names no type");
    const char order = rest.data[1], kind = rest.data[2], digit = rest.data[3];
    const bool is_known = strchr("<>|=", order) && order && strchr("biuf", kind) && kind &&
                          strchr("1248", digit) && digit && rest.data[4] == '\'' &&
                          !(kind == 'f' && digit < '4') && !(kind == 'b' && digit != '1');
    size_t size = 1;
    while (size < rest.size && size < 8 && rest.data[size] != ',')
        size++;
    if (!is_known)
        return error_set(
            error, ERROR_INVALID,
            "npy: elements of type %.*s are not read: integers, floats of 4 or 8 bytes "
            "and booleans are",
            (int)size, rest.data);
    header->kind = kind;
    header->element_size = (uint32_t)(digit - '0');
    header->is_big_endian = order == '>';
    return 0;
}

static int read_shape(struct text dictionary, struct npy_header *header, struct error *error)
{
    struct text rest, inside, behind = {0};
    if (!find_value(dictionary, "'shape'", &rest) || rest.size == 0 || rest.data[0] != '(' ||
        !text_cut((struct text){rest.data + 1, rest.size - 1}, ')', &inside, &behind))
        return error_set(error, ERROR_CORRUPT, "npy: the header has no shape");
    header->count = 1;
    while (text_trim(inside).size) {
        struct text word, tail = {0};
        uint64_t size;
        text_cut(inside, ',', &word, &tail);
        if (header->rank == NPY_RANK_MAX)
            return error_set(error, ERROR_INVALID, "npy: more than %d dimensions", NPY_RANK_MAX);
        if (text_parse_u64(text_trim(word), &size, error) < 0 || size == 0 ||
            __builtin_mul_overflow(header->count, size, &header->count) ||
            header->count > UINT64_MAX / 8)
            return error_set(error, ERROR_CORRUPT, "npy: dimension %u is \"%.*s\"",
                             header->rank + 1, (int)(word.size < 24 ? word.size : 24), word.data);
        header->shape[header->rank++] = size;
        inside = tail;
    }
    if (header->rank == 0)
        return error_set(error, ERROR_INVALID, "npy: it is one number, no array");
    return 0;
}

int npy_header_read(struct data_stream *stream, uint64_t size_max, struct npy_header *out_header,
                    struct error *error)
{
    uint8_t magic[MAGIC_SIZE + 4];
    char text[NPY_HEADER_MAX];
    if (data_stream_read_all(stream, magic, MAGIC_SIZE, "the magic", error) < 0)
        return -1;
    if (memcmp(magic, "\x93NUMPY", 6) != 0 || magic[6] < 1 || magic[6] > 3)
        return error_set(error, ERROR_CORRUPT, "npy: byte 0: no NumPy array of version 1 to 3");
    const size_t length_size = magic[6] == 1 ? 2 : 4;
    if (data_stream_read_all(stream, magic + MAGIC_SIZE, length_size, "the header's length",
                             error) < 0)
        return -1;
    size_t length = 0;
    for (size_t i = length_size; i-- > 0;)
        length = length << 8 | magic[MAGIC_SIZE + i];
    if (length > sizeof(text))
        return error_set(error, ERROR_EXHAUSTED, "npy: byte 8: a header of %zu bytes is above %d",
                         length, NPY_HEADER_MAX);
    if (data_stream_read_all(stream, text, length, "the header", error) < 0)
        return -1;
    const struct text dictionary = {text, length};
    struct npy_header header = {0};
    struct text order;
    if (read_type(dictionary, &header, error) < 0 || read_shape(dictionary, &header, error) < 0)
        return -1;
    if (!find_value(dictionary, "'fortran_order'", &order) ||
        (!text_starts_with(order, TEXT("False")) && header.rank > 1))
        return error_set(error, ERROR_INVALID,
                         "npy: the array is in Fortran's order: save numpy.ascontiguousarray(it)");
    if (header.count > size_max / header.element_size)
        return error_set(error, ERROR_EXHAUSTED,
                         "npy: %" PRIu64 " elements are more than the %" PRIu64 " bytes allowed",
                         header.count, size_max);
    *out_header = header;
    return 0;
}

static uint64_t bits_of(const struct npy_header *header, const uint8_t *bytes)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < header->element_size; i++)
        bits = bits << 8 | bytes[header->is_big_endian ? i : header->element_size - 1 - i];
    return bits;
}

static double double_of(const struct npy_header *header, uint64_t bits)
{
    if (header->kind == 'f' && header->element_size == 8) {
        double value;
        memcpy(&value, &bits, sizeof(value));
        return value;
    }
    if (header->kind == 'f') {
        const uint32_t few = (uint32_t)bits;
        float value;
        memcpy(&value, &few, sizeof(value));
        return (double)value;
    }
    const unsigned shift = 64 - 8 * header->element_size;
    return header->kind == 'i' ? (double)((int64_t)(bits << shift) >> shift) : (double)bits;
}

/* Into floats or ints, whichever is not NULL. */
static int read_elements(struct data_stream *stream, const struct npy_header *header, float *floats,
                         int64_t *ints, size_t count, struct error *error)
{
    uint8_t bytes[PIECE * 8];
    ASSERT(header->element_size >= 1 && header->element_size <= 8);
    for (size_t done = 0; done < count;) {
        const size_t some = count - done < PIECE ? count - done : PIECE;
        const uint64_t start = data_stream_offset(stream);
        if (data_stream_read_all(stream, bytes, some * header->element_size, "the elements",
                                 error) < 0)
            return -1;
        for (size_t i = 0; i < some; i++) {
            const double value =
                double_of(header, bits_of(header, bytes + i * header->element_size));
            const uint64_t at = start + i * header->element_size;
            if (floats) {
                floats[done + i] = (float)value;
                if (!isfinite(floats[done + i]))
                    return error_set(error, ERROR_INVALID,
                                     "the element at byte %" PRIu64 " is not finite", at);
            } else {
                if (!(fabs(value) < 9e15) || value != floor(value))
                    return error_set(error, ERROR_INVALID,
                                     "the label at byte %" PRIu64 ", %g, is no whole number", at,
                                     value);
                ints[done + i] = (int64_t)value;
            }
        }
        done += some;
    }
    return 0;
}

int npy_floats_read(struct data_stream *stream, const struct npy_header *header, float *out,
                    size_t count, struct error *error)
{
    return read_elements(stream, header, out, NULL, count, error);
}

int npy_ints_read(struct data_stream *stream, const struct npy_header *header, int64_t *out,
                  size_t count, struct error *error)
{
    return read_elements(stream, header, NULL, out, count, error);
}
