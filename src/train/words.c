#include "train/words.h"

#include "base/json.h"

#include <ctype.h>
#include <string.h>

static bool is_word_byte(unsigned char c)
{
    return isalnum(c) || c == '\'' || c > 127;
}

bool words_next(enum import_unit unit, struct text *rest, char out[WORD_SIZE_MAX],
                struct text *word)
{
    size_t at = 0, size = 0;
    if (unit == IMPORT_CHARACTERS) {
        if (rest->size == 0)
            return false;
        out[0] = rest->data[0];
        *word = (struct text){out, 1};
        *rest = (struct text){rest->data + 1, rest->size - 1};
        return true;
    }
    while (at < rest->size && !is_word_byte((unsigned char)rest->data[at]))
        at++;
    for (; at < rest->size && is_word_byte((unsigned char)rest->data[at]); at++)
        if (size < WORD_SIZE_MAX)
            out[size++] = (char)tolower((unsigned char)rest->data[at]);
    *word = (struct text){out, size};
    *rest = (struct text){rest->data + at, rest->size - at};
    return size > 0;
}

int32_t words_token(const struct words *words, struct text word)
{
    if (words->buckets)
        return TOKEN_WORD_FIRST + (int32_t)(import_hash(TEXT(""), word) % words->buckets);
    const uintptr_t number = (uintptr_t)map_get_text(words->known, word);
    return number ? TOKEN_WORD_FIRST - 1 + (int32_t)number : TOKEN_UNKNOWN;
}

void words_tokens(const struct words *words, struct text sample, size_t count, float *out_tokens)
{
    char bytes[WORD_SIZE_MAX];
    struct text word;
    size_t filled = 0;
    while (filled < count && words_next(words->unit, &sample, bytes, &word))
        out_tokens[filled++] = (float)words_token(words, word);
    while (filled < count)
        out_tokens[filled++] = TOKEN_FILL;
}

const char *import_unit_name(enum import_unit unit)
{
    return unit == IMPORT_CHARACTERS ? "characters" : "words";
}

/* UTF-8 of the character with the byte's number: U+0000 to U+00FF. */
static size_t encode_byte(unsigned char byte, char out[3])
{
    const size_t size = byte < 128 ? 1 : 2;
    out[0] = (char)(size == 1 ? byte : 0xC0 | byte >> 6);
    out[1] = (char)(size == 1 ? 0 : 0x80 | (byte & 0x3F));
    out[2] = '\0';
    return size;
}

void words_write(struct json_writer *writer, enum import_unit unit, const struct map *known)
{
    json_array_begin(writer);
    for (size_t i = 0; i < known->count; i++) {
        char copy[WORD_SIZE_MAX + 1] = "";
        if (unit == IMPORT_CHARACTERS) {
            const size_t size = encode_byte((unsigned char)known->names[i].data[0], copy);
            json_text(writer, (struct text){copy, size});
            continue;
        }
        memcpy(copy, known->names[i].data, known->names[i].size);
        text_make_plain(copy);
        json_string(writer, copy);
    }
    json_array_end(writer);
}

void words_read(enum import_unit unit, const struct json_array *texts, struct map *map)
{
    const struct text *items = texts->items;
    for (size_t i = 0; i < texts->count; i++) {
        struct text word = items[i];
        char byte;
        if (unit == IMPORT_CHARACTERS && word.size > 0) {
            const unsigned char first = (unsigned char)word.data[0];
            byte = word.data[0];
            if (first >= 0xC0 && word.size > 1)
                byte = (char)(first << 6 | ((unsigned char)word.data[1] & 0x3F));
            word = (struct text){&byte, 1};
        }
        if (word.size > 0 && !map_get_text(map, word))
            map_put_text(map, word, (void *)(i + 1)); // NOLINT(performance-no-int-to-ptr)
    }
}
