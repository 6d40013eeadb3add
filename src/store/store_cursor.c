/*
 * Cursor: where a page ended, as text a client hands back.
 *
 * base64url without padding of: version u8 (2); tag u32, from the names of the table and the order
 * column and the direction, so that a cursor of another list is refused; then the order column's
 * value, if there is one, and the key's values, each: null u8 (0 or 1), and unless null 8 bytes
 * (integer, real) or size u32 and bytes. Integers are little-endian. It holds nothing the client
 * did not see in the last row, and is checked like any other input.
 */
#include "base/assert.h"
#include "store/store_internal.h"

#include <endian.h>
#include <math.h>
#include <sodium.h>

enum {
    CURSOR_VERSION = 2,
    CURSOR_BYTES_MAX = 16384,
    CURSOR_TEXT_MAX = 2 * CURSOR_BYTES_MAX,
    BASE64 = sodium_base64_VARIANT_URLSAFE_NO_PADDING
};

/* FNV-1a, with the zero byte that ends the string. */
static uint32_t hash_string(uint32_t hash, const char *string)
{
    do
        hash = (hash ^ (uint8_t)*string) * 16777619U;
    while (*string++);
    return hash;
}

static uint32_t cursor_tag(const struct store_plan *plan)
{
    uint32_t tag = hash_string(2166136261U, plan->table->name);
    tag = hash_string(tag, plan->has_order ? plan->table->columns[plan->order_index].name : "");
    return hash_string(tag, plan->is_descending ? "d" : "a");
}

static void encode_value(struct buffer *out, const struct store_value *value)
{
    buffer_append_byte(out, value->is_null);
    if (value->is_null)
        return;
    if (value->type == STORE_INTEGER || value->type == STORE_REAL) {
        uint64_t bits;
        memcpy(&bits, value->type == STORE_INTEGER ? (const void *)&value->integer : &value->real,
               sizeof(bits));
        bits = htole64(bits);
        buffer_append(out, &bits, sizeof(bits));
        return;
    }
    const uint32_t size = htole32((uint32_t)value->bytes.size);
    buffer_append(out, &size, sizeof(size));
    buffer_append_text(out, value->bytes);
}

int store_cursor_encode(const struct store_plan *plan, const struct store_row *row,
                        struct buffer *out, struct error *error)
{
    struct buffer raw AUTO_BUFFER;
    buffer_init(&raw, CURSOR_BYTES_MAX);
    buffer_append_byte(&raw, CURSOR_VERSION);
    const uint32_t tag = cursor_tag(plan);
    buffer_append(&raw, &tag, sizeof(tag));
    if (plan->has_order)
        encode_value(&raw, &row->values[plan->order_index]);
    for (size_t i = 0; i < store_table_key_count(plan->table); i++)
        encode_value(&raw, &row->values[store_table_key_index(plan->table, i)]);
    if (buffer_check(&raw, error) < 0)
        return error_wrap(error, "the cursor of a row of \"%s\"", plan->table->name);

    const size_t size = sodium_base64_encoded_len(raw.size, BASE64); /* with the zero byte */
    uint8_t *room = buffer_reserve(out, size);
    if (!room)
        return buffer_check(out, error);
    sodium_bin2base64((char *)room, size, raw.data, raw.size, BASE64);
    buffer_advance(out, size - 1);
    return 0;
}

struct cursor_reader {
    const uint8_t *data;
    size_t size;
    bool has_failed;
};

static const uint8_t *take(struct cursor_reader *reader, size_t size)
{
    if (reader->has_failed || size > reader->size) {
        reader->has_failed = true;
        return NULL;
    }
    const uint8_t *data = reader->data;
    reader->data += size;
    reader->size -= size;
    return data;
}

static void decode_value(struct cursor_reader *reader, const struct store_column *column,
                         struct store_value *out)
{
    *out = store_null(column->type);
    const uint8_t *is_null = take(reader, 1);
    if (!is_null)
        return;
    if (*is_null) {
        if (*is_null != 1 || !column->is_optional)
            reader->has_failed = true;
        return;
    }
    out->is_null = false;
    if (column->type == STORE_INTEGER || column->type == STORE_REAL) {
        const uint8_t *data = take(reader, 8);
        if (!data)
            return;
        uint64_t bits;
        memcpy(&bits, data, sizeof(bits));
        bits = le64toh(bits);
        memcpy(column->type == STORE_INTEGER ? (void *)&out->integer : &out->real, &bits,
               sizeof(bits));
        if (column->type == STORE_REAL && isnan(out->real))
            reader->has_failed = true;
        return;
    }
    const uint8_t *size_data = take(reader, 4);
    if (!size_data)
        return;
    uint32_t size;
    memcpy(&size, size_data, sizeof(size));
    size = le32toh(size);
    out->bytes = (struct text){(const char *)take(reader, size), size};
}

int store_cursor_decode(struct arena *arena, struct text cursor, struct store_plan *plan,
                        struct error *error)
{
    static const char wrong[] = "the cursor is not one that this list gave out";
    if (cursor.size > CURSOR_TEXT_MAX)
        return error_set(error, ERROR_INVALID, wrong);
    /* libsodium 1.0.18 takes some bytes beyond ASCII for digits where char is signed. */
    for (size_t i = 0; i < cursor.size; i++)
        if ((uint8_t)cursor.data[i] >= 0x80)
            return error_set(error, ERROR_INVALID, wrong);
    uint8_t *raw = arena_alloc(arena, cursor.size + 1);
    size_t raw_size;
    const char *end;
    if (sodium_base642bin(raw, cursor.size, cursor.data, cursor.size, NULL, &raw_size, &end,
                          BASE64) != 0 ||
        end != cursor.data + cursor.size)
        return error_set(error, ERROR_INVALID, wrong);

    struct cursor_reader reader = {raw, raw_size, false};
    const uint8_t *version = take(&reader, 1);
    const uint8_t *tag = take(&reader, 4);
    const uint32_t expected = cursor_tag(plan);
    if (!version || !tag || *version != CURSOR_VERSION || memcmp(tag, &expected, 4) != 0)
        return error_set(error, ERROR_INVALID, wrong);
    if (plan->has_order)
        decode_value(&reader, &plan->table->columns[plan->order_index], &plan->order_value);
    for (size_t i = 0; i < store_table_key_count(plan->table); i++)
        decode_value(&reader, &plan->table->columns[store_table_key_index(plan->table, i)],
                     &plan->key_values[i]);
    if (reader.has_failed || reader.size > 0)
        return error_set(error, ERROR_INVALID, wrong);
    plan->has_cursor = true;
    return 0;
}
