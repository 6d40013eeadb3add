#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* What an error message shows of a text that may be long. */
enum { SHOWN_MAX = 40 };

static int shown(struct text text)
{
    return (int)(text.size < SHOWN_MAX ? text.size : SHOWN_MAX);
}

bool text_equal(struct text left, struct text right)
{
    return left.size == right.size && (left.size == 0 || !memcmp(left.data, right.data, left.size));
}

bool text_equal_secret(struct text left, struct text right)
{
    if (left.size != right.size)
        return false;
    unsigned char difference = 0;
    for (size_t i = 0; i < left.size; i++)
        difference |= (unsigned char)(left.data[i] ^ right.data[i]);
    return difference == 0;
}

int text_compare(struct text left, struct text right)
{
    const size_t common = left.size < right.size ? left.size : right.size;
    const int order = common ? memcmp(left.data, right.data, common) : 0;
    if (order != 0)
        return order;
    return (left.size > right.size) - (left.size < right.size);
}

bool text_starts_with(struct text text, struct text prefix)
{
    return text.size >= prefix.size && text_equal((struct text){text.data, prefix.size}, prefix);
}

bool text_ends_with(struct text text, struct text suffix)
{
    return text.size >= suffix.size &&
           text_equal((struct text){text.data + text.size - suffix.size, suffix.size}, suffix);
}

struct text text_trim(struct text text)
{
    while (text.size && isspace((unsigned char)text.data[0])) {
        text.data++;
        text.size--;
    }
    while (text.size && isspace((unsigned char)text.data[text.size - 1]))
        text.size--;
    return text;
}

bool text_cut(struct text text, char separator, struct text *out_head, struct text *out_tail)
{
    const char *found = text.size ? memchr(text.data, separator, text.size) : NULL;
    if (!found) {
        *out_head = text;
        *out_tail = (struct text){0};
        return false;
    }
    const size_t head_size = (size_t)(found - text.data);
    *out_tail = (struct text){found + 1, text.size - head_size - 1};
    *out_head = (struct text){text.data, head_size};
    return true;
}

int text_parse_u64(struct text text, uint64_t *out_value, struct error *error)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.size; i++) {
        const unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';
        if (digit > 9)
            return error_set(error, ERROR_INVALID, "\"%.*s\" is not a whole number", shown(text),
                             text.data);
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return error_set(error, ERROR_INVALID, "\"%.*s\" is too large", shown(text), text.data);
    }
    if (text.size == 0)
        return error_set(error, ERROR_INVALID, "a number is missing");
    *out_value = value;
    return 0;
}

int text_parse_i64(struct text text, int64_t *out_value, struct error *error)
{
    const bool is_negative = text.size && text.data[0] == '-';
    const struct text digits = {text.data + is_negative, text.size - is_negative};
    uint64_t magnitude;
    if (text_parse_u64(digits, &magnitude, error) < 0)
        return -1;
    if (magnitude > (uint64_t)INT64_MAX + is_negative)
        return error_set(error, ERROR_INVALID, "\"%.*s\" is too large", shown(text), text.data);
    *out_value = is_negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return 0;
}

int text_parse_double(struct text text, double *out_value, struct error *error)
{
    char copy[64];
    if (text.size == 0 || text.size >= sizeof(copy) || isspace((unsigned char)text.data[0]))
        return error_set(error, ERROR_INVALID, "\"%.*s\" is not a number", shown(text), text.data);
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    char *end;
    errno = 0;
    const double value = strtod(copy, &end);
    if (*end != '\0' || errno == ERANGE || !isfinite(value))
        return error_set(error, ERROR_INVALID, "\"%.*s\" is not a number", shown(text), text.data);
    *out_value = value;
    return 0;
}

void text_hex_encode(const void *data, size_t size, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * size] = '\0';
}

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return -1;
}

int text_hex_decode(struct text text, void *out, size_t size, struct error *error)
{
    if (text.size != 2 * size)
        return error_set(error, ERROR_INVALID, "%zu hex digits expected, not %zu", 2 * size,
                         text.size);
    unsigned char *bytes = out;
    for (size_t i = 0; i < size; i++) {
        const int high = hex_digit(text.data[2 * i]);
        const int low = hex_digit(text.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return error_set(error, ERROR_INVALID, "\"%.*s\" is not lower-case hex", shown(text),
                             text.data);
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    return 0;
}

int text_copy(struct text text, char *out, size_t out_size, struct error *error)
{
    if (text.size >= out_size)
        return error_set(error, ERROR_INVALID, "\"%.*s...\" is longer than %zu bytes", shown(text),
                         text.data, out_size - 1);
    if (text.size && memchr(text.data, '\0', text.size))
        return error_set(error, ERROR_INVALID, "a zero byte is not allowed here");
    if (text.size)
        memcpy(out, text.data, text.size);
    out[text.size] = '\0';
    return 0;
}

size_t text_utf8_length(struct text text)
{
    if (text.size == 0)
        return 0;
    const unsigned char *bytes = (const unsigned char *)text.data;
    const size_t size = text.size;
    const unsigned char first = bytes[0];
    size_t length;
    uint32_t point;
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf) {
        length = 2;
        point = first & 0x1f;
    } else if (first >= 0xe0 && first <= 0xef) {
        length = 3;
        point = first & 0x0f;
    } else if (first >= 0xf0 && first <= 0xf4) {
        length = 4;
        point = first & 0x07;
    } else {
        return 0;
    }
    if (length > size)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (bytes[i] & 0x3f);
    }
    const bool is_overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
    const bool is_surrogate = point >= 0xd800 && point <= 0xdfff;
    return is_overlong || is_surrogate || point > 0x10ffff ? 0 : length;
}

bool text_is_utf8(struct text text)
{
    size_t at = 0;
    while (at < text.size) {
        const size_t length = text_utf8_length((struct text){text.data + at, text.size - at});
        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

uint32_t text_code_point(struct text text)
{
    static const uint8_t first_bits[] = {0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = (uint8_t)text.data[0] & first_bits[text.size - 1];
    for (size_t i = 1; i < text.size; i++)
        code = code << 6 | ((uint8_t)text.data[i] & 0x3f);
    return code;
}

static bool is_plain_code(uint32_t code)
{
    const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    const bool is_break = code == 0x2028 || code == 0x2029;
    const bool is_turn = code == 0x061c || code == 0x200e || code == 0x200f ||
                         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    return !is_control && !is_break && !is_turn;
}

size_t text_plain_length(struct text text)
{
    const size_t length = text_utf8_length(text);
    return length && is_plain_code(text_code_point((struct text){text.data, length})) ? length : 0;
}

bool text_is_plain(struct text text)
{
    size_t at = 0;
    while (at < text.size) {
        const size_t length = text_plain_length((struct text){text.data + at, text.size - at});
        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

void text_make_plain(char *string)
{
    struct text left = text_of(string);
    char *out = string;
    while (left.size > 0) {
        const size_t length = text_utf8_length(left);
        const size_t kept = text_plain_length(left);
        const size_t taken = length ? length : 1;
        if (kept)
            memmove(out, left.data, kept);
        else
            *out = '?';
        out += kept ? kept : 1;
        left = (struct text){left.data + taken, left.size - taken};
    }
    *out = '\0';
}
