/*
 * Words: how a text becomes tokens, the same when a model learns and when it is asked.
 *
 * A word is letters, digits, apostrophes and all bytes above 127, in lower case and cut after
 * WORD_SIZE_MAX; or a single byte. Token 0 fills up, 1 is any word that is not known, the others
 * follow; or, hashed, 2 + import_hash("", WORD) modulo the buckets.
 */
#pragma once

#include "base/json_schema.h"
#include "base/map.h"
#include "train/import.h"

enum { TOKEN_FILL = 0, TOKEN_UNKNOWN = 1, TOKEN_WORD_FIRST = 2, WORD_SIZE_MAX = 64 };

struct words {
    enum import_unit unit;
    uint32_t buckets;        /* 0: words are looked up */
    const struct map *known; /* by text: its place + 1 */
};

/* The next word of `rest`, in `out`; false: there is none. */
bool words_next(enum import_unit unit, struct text *rest, char out[WORD_SIZE_MAX],
                struct text *word);
int32_t words_token(const struct words *words, struct text word);

/* The first `count` tokens of a text, filled up. */
void words_tokens(const struct words *words, struct text sample, size_t count, float *out_tokens);

const char *import_unit_name(enum import_unit unit); /* "words", "characters" */

/* A word as it stands in columns.json, where a single byte is the character of its number, and
 * back into `map`, which numbers them from 1; of a word that comes twice the first counts. */
void words_write(struct json_writer *writer, enum import_unit unit, const struct map *known);
void words_read(enum import_unit unit, const struct json_array *texts, struct map *map);
