#include "market/labels.h"

#include "base/assert.h"

#include <string.h>

enum { WORD_MAX = 256 };

void labels_init(struct labels *labels)
{
    *labels = (struct labels){0};
    map_init(&labels->bits);
}

void labels_done(struct labels *labels)
{
    map_done(&labels->bits);
}

bool labels_next(struct text *words, struct text *out_word)
{
    if (words->size == 0)
        return false;
    const char *comma = memchr(words->data, ',', words->size);
    const size_t size = comma ? (size_t)(comma - words->data) : words->size;
    *out_word = (struct text){words->data, size};
    const size_t step = comma ? size + 1 : size;
    *words = (struct text){words->data + step, words->size - step};
    return true;
}

/* "kind:word", so that a GPU model and a label of the same name differ. */
static struct text key_of(char kind, struct text word, char out_key[WORD_MAX + 2])
{
    const size_t size = word.size < WORD_MAX ? word.size : WORD_MAX;
    out_key[0] = kind;
    out_key[1] = ':';
    if (size)
        memcpy(out_key + 2, word.data, size);
    return (struct text){out_key, size + 2};
}

static uint64_t bit_of(const struct labels *labels, struct text key)
{
    const char *seen = map_get_text(&labels->bits, key);
    return seen ? UINT64_C(1) << (seen - labels->seen) : 0;
}

uint64_t labels_borne(struct labels *labels, char kind, struct text words)
{
    char buffer[WORD_MAX + 2];
    uint64_t bits = 0;
    for (struct text word; labels_next(&words, &word);) {
        const struct text key = key_of(kind, word, buffer);
        uint64_t bit = bit_of(labels, key);
        if (!bit && labels->count < LABELS_BITS) {
            bit = UINT64_C(1) << labels->count;
            map_put_text(&labels->bits, key, &labels->seen[labels->count++]);
        }
        bits |= bit ? bit : LABELS_OTHER;
    }
    return bits;
}

uint64_t labels_wished(const struct labels *labels, char kind, struct text words)
{
    char buffer[WORD_MAX + 2];
    uint64_t bits = 0;
    for (struct text word; labels_next(&words, &word);) {
        const uint64_t bit = bit_of(labels, key_of(kind, word, buffer));
        bits |= bit ? bit : labels->count < LABELS_BITS ? LABELS_NEVER : LABELS_OTHER;
    }
    return bits;
}

static bool is_in(struct text word, struct text words)
{
    for (struct text other; labels_next(&words, &other);)
        if (text_equal(word, other))
            return true;
    return false;
}

bool labels_are_in(struct text wished, struct text first, struct text second)
{
    for (struct text word; labels_next(&wished, &word);)
        if (!is_in(word, first) && !is_in(word, second))
            return false;
    return true;
}
