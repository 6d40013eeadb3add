#include "base/nearest.h"

#include <stdio.h>

enum { NAME_SIZE_MAX = 48 };

static size_t min3(size_t a, size_t b, size_t c)
{
    const size_t smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

/* Edits, with a swap of two neighbours as one (optimal string alignment). */
static size_t edit_distance(struct text left, struct text right)
{
    size_t rows[3][NAME_SIZE_MAX + 1];
    size_t *before = rows[0], *previous = rows[1], *current = rows[2];
    for (size_t j = 0; j <= right.size; j++)
        previous[j] = j;
    for (size_t i = 1; i <= left.size; i++) {
        current[0] = i;
        for (size_t j = 1; j <= right.size; j++) {
            const bool is_same = left.data[i - 1] == right.data[j - 1];
            current[j] = min3(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + !is_same);
            if (i > 1 && j > 1 && left.data[i - 1] == right.data[j - 2] &&
                left.data[i - 2] == right.data[j - 1] && before[j - 2] + 1 < current[j])
                current[j] = before[j - 2] + 1;
        }
        size_t *oldest = before;
        before = previous;
        previous = current;
        current = oldest;
    }
    return previous[right.size];
}

void nearest_init(struct nearest *nearest, struct text wanted)
{
    *nearest = (struct nearest){.wanted = wanted};
}

void nearest_offer(struct nearest *nearest, const char *name)
{
    const struct text offered = text_of(name);
    if (nearest->wanted.size == 0 || nearest->wanted.size > NAME_SIZE_MAX ||
        offered.size > NAME_SIZE_MAX)
        return;
    size_t distance = edit_distance(nearest->wanted, offered);
    /* A name cut short ("accur") is as good as one mistake. */
    if (nearest->wanted.size >= 3 && text_starts_with(offered, nearest->wanted) && distance > 1)
        distance = 1;
    if (distance > 1 + nearest->wanted.size / 4)
        return;
    if (nearest->name && nearest->distance <= distance)
        return;
    nearest->name = name;
    nearest->distance = distance;
}

const char *nearest_hint(const struct nearest *nearest, char out[NEAREST_HINT_SIZE])
{
    out[0] = '\0';
    if (nearest->name &&
        snprintf(out, NEAREST_HINT_SIZE, "; did you mean \"%s\"?", nearest->name) < 0)
        out[0] = '\0';
    return out;
}
