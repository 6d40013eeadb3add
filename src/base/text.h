/*
 * Text: a borrowed run of bytes with its length; not ended by a zero byte.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
    const char *data;
    size_t size;
};

#define TEXT(literal)   ((struct text){"" literal, sizeof(literal) - 1})
#define TEXT_FORMAT     "%.*s"
#define TEXT_ARGS(text) (int)(text).size, (text).data

static inline struct text text_of(const char *string)
{
    return (struct text){string, string ? strlen(string) : 0};
}

bool text_equal(struct text left, struct text right);
/* The same against a string, quick to say no: for looking a word up in a table. */
static inline bool text_is(struct text text, const char *string)
{
    return text.size > 0 && text.data[0] == string[0] &&
           strnlen(string, text.size + 1) == text.size && memcmp(string, text.data, text.size) == 0;
}
/* For secrets: takes the same time wherever the difference is. */
bool text_equal_secret(struct text left, struct text right);
int text_compare(struct text left, struct text right);
bool text_starts_with(struct text text, struct text prefix);
bool text_ends_with(struct text text, struct text suffix);
struct text text_trim(struct text text);

/* Splits at the first `separator`. False, with all in *out_head, when there is none. */
bool text_cut(struct text text, char separator, struct text *out_head, struct text *out_tail);

/* The whole text must be one decimal number in range. */
MUST_CHECK int text_parse_u64(struct text text, uint64_t *out_value, struct error *error);
MUST_CHECK int text_parse_i64(struct text text, int64_t *out_value, struct error *error);
MUST_CHECK int text_parse_double(struct text text, double *out_value, struct error *error);

/* Lower-case hex. `out` gets 2 * size + 1 bytes. */
void text_hex_encode(const void *data, size_t size, char *out);
/* Fails unless the text is exactly 2 * size hex digits. */
MUST_CHECK int text_hex_decode(struct text text, void *out, size_t size, struct error *error);

/* Copies into a fixed field, ended by a zero byte; fails when it does not fit. */
MUST_CHECK int text_copy(struct text text, char *out, size_t out_size, struct error *error);

/* The length of the UTF-8 sequence the text begins with, or 0 if it is not one (RFC 3629). */
size_t text_utf8_length(struct text text);
/* `text` is one sequence of UTF-8. */
uint32_t text_code_point(struct text text);
bool text_is_utf8(struct text text);

/*
 * Plain text is one line of UTF-8 that a terminal shows as it stands: no control characters of
 * either set (ESC, U+009B), no line breaks, nothing that turns the direction of writing.
 */
bool text_is_plain(struct text text);
/* The length of the plain character the text begins with, or 0 if that is none. */
size_t text_plain_length(struct text text);
/* Each character that is not plain becomes '?'. */
void text_make_plain(char *string);
