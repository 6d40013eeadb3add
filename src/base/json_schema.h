/*
 * JSON schema: one table that reads JSON into a struct, writes the struct as JSON, and refuses
 * what does not fit: an unknown or missing key, a wrong type, a number out of range, text too long.
 *
 *     static const struct json_field transfer_fields[] = {
 *         {"to", JSON_U64, offsetof(struct transfer, to), .is_required = true},
 *         {"amount", JSON_I64, offsetof(struct transfer, amount), .minimum = 1, .maximum = 1000},
 *     };
 *     static const struct json_schema transfer_schema = JSON_SCHEMA("transfer", transfer_fields);
 *
 * Text, arrays and nested arrays are copied into the arena given. Keys that are absent leave what
 * the caller put into the struct, so defaults are set before the call.
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_kind {
    JSON_BOOL,   /* bool */
    JSON_I64,    /* int64_t; minimum and maximum hold when they differ */
    JSON_U64,    /* uint64_t */
    JSON_DOUBLE, /* double; a whole number is taken too */
    JSON_TEXT,   /* struct text; at most size_max bytes (0: 256) */
    JSON_CHARS,  /* char[size_max], ended by a zero byte */
    JSON_HEX,    /* uint8_t[size_max], as lower-case hex */
    JSON_CHOICE, /* int, an index into `choices`, which ends with NULL */
    JSON_OBJECT, /* a struct in place, by `schema` */
    JSON_ARRAY,  /* struct json_array of structs, by `schema`; at most size_max items (0: 1000) */
    JSON_LIST,   /* int64_t count, and right after it room for size_max structs, by `schema` */
    /* struct json_array of struct text; at most size_max items (0: 1000) of maximum bytes (0: 256)
     */
    JSON_TEXTS,
    JSON_ANY, /* struct text: the value's own JSON; at most size_max bytes (0: 64 KiB) */
};

struct json_field {
    const char *name;
    enum json_kind kind;
    size_t offset;
    bool is_required;
    int64_t minimum, maximum;
    size_t size_max;
    const char *const *choices;
    const struct json_schema *schema;
    bool is_zero_omitted; /* of what is not required: 0, false or "" is not written */
    struct text key;      /* by JSON_NAME: the name as it is written, for speed; else empty */
};

/* In place of `.name = "x"`, for what is written and read very often. */
#define JSON_NAME(name_) .name = (name_), .key = {"\"" name_ "\":", sizeof("\"" name_ "\":") - 1}

struct json_schema {
    const char *name; /* for messages */
    const struct json_field *fields;
    size_t field_count;
    size_t struct_size;
    /* For answers of a newer server: unknown keys are skipped, and null leaves the default. */
    bool is_lenient;
};

#define JSON_SCHEMA(name_, fields_, struct_)                                                       \
    {                                                                                              \
        .name = (name_), .fields = (fields_), .field_count = sizeof(fields_) / sizeof(*(fields_)), \
        .struct_size = sizeof(struct_)                                                             \
    }

#define JSON_SCHEMA_LENIENT(name_, fields_, struct_)                                               \
    {                                                                                              \
        .name = (name_), .fields = (fields_), .field_count = sizeof(fields_) / sizeof(*(fields_)), \
        .struct_size = sizeof(struct_), .is_lenient = true                                         \
    }

struct json_array {
    void *items; /* struct_size apart */
    size_t count;
};

/* INVALID with a message that names the place: "offer.cores: ...". `out` changes even on failure.
 */
MUST_CHECK int json_read(struct arena *arena, struct text json, const struct json_schema *schema,
                         void *out, struct error *error);

/*
 * As json_read, many times as fast for bytes that json_write made of the same schema. Whatever is
 * not exactly so is left to json_read, so the result is the same for any text.
 */
MUST_CHECK int json_read_written(struct arena *arena, struct text json,
                                 const struct json_schema *schema, void *out, struct error *error);

/* Writes an object with every field in table order, zeros that may be left out apart: equal structs
 * give equal bytes. */
void json_write(struct json_writer *writer, const struct json_schema *schema, const void *value);
