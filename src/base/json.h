/*
 * JSON: a streaming writer onto a buffer.
 *
 * The writer places commas and quotes and escapes text; the caller opens and closes in order.
 * Text that is not valid UTF-8 is written with U+FFFD in place of each wrong byte. What the buffer
 * cannot hold is found by buffer_check. Reading is in json_schema.h.
 */
#pragma once

#include "base/buffer.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct json_writer {
    struct buffer *buffer;
    uint32_t depth;
    bool needs_comma;
};

void json_writer_init(struct json_writer *writer, struct buffer *buffer);

void json_object_begin(struct json_writer *writer);
void json_object_end(struct json_writer *writer);
void json_array_begin(struct json_writer *writer);
void json_array_end(struct json_writer *writer);
void json_key(struct json_writer *writer, const char *key);
/* A key in the form it is written in, quotes and colon included. */
void json_written_key(struct json_writer *writer, struct text key);

void json_text(struct json_writer *writer, struct text value);
void json_string(struct json_writer *writer, const char *value); /* NULL becomes null */
void json_i64(struct json_writer *writer, int64_t value);
void json_u64(struct json_writer *writer, uint64_t value);
void json_double(struct json_writer *writer, double value); /* not finite becomes null */
void json_boolean(struct json_writer *writer, bool value);
void json_null(struct json_writer *writer);
/* Text that is JSON already. */
void json_raw(struct json_writer *writer, struct text value);

/* The text at a path of keys in an object, found without building a tree, as part of `json`. ""
 * when it is not there, is no text, or has escapes. For JSON that was checked before: of what is
 * not JSON it makes something, or nothing, but reads no byte outside. */
struct text json_find_text(struct text json, const char *const *path, size_t path_size);

/* How many keys all objects in `json` have, those given twice counted twice. *out_repeated is the
 * first that one object has twice, as written; "" if there is none, or it comes late among many. */
size_t json_count_keys(struct text json, struct text *out_repeated);

/* A literal key with its value, for what is written very often: the key is JSON_KEY("name") and has
 * nothing to escape. */
#define JSON_KEY(name_) TEXT(",\"" name_ "\":")
void json_keyed_i64(struct json_writer *writer, struct text key, int64_t value);
void json_keyed_text(struct json_writer *writer, struct text key, struct text value);

/* A key with its value. */
void json_field_text(struct json_writer *writer, const char *key, struct text value);
void json_field_string(struct json_writer *writer, const char *key, const char *value);
void json_field_i64(struct json_writer *writer, const char *key, int64_t value);
void json_field_u64(struct json_writer *writer, const char *key, uint64_t value);
void json_field_double(struct json_writer *writer, const char *key, double value);
void json_field_bool(struct json_writer *writer, const char *key, bool value);
