/*
 * Nearest: finds, among names offered one by one, the one a mistyped name most likely meant.
 */
#pragma once

#include "base/text.h"

#include <stddef.h>

struct nearest {
    struct text wanted;
    const char *name; /* the best so far; NULL when nothing is close enough */
    size_t distance;
};

void nearest_init(struct nearest *nearest, struct text wanted);
/* `name` must outlive *nearest. */
void nearest_offer(struct nearest *nearest, const char *name);
/* "; did you mean \"lr\"?" or "". `out` has room for NEAREST_HINT_SIZE bytes. Returns `out`. */
enum { NEAREST_HINT_SIZE = 96 };
const char *nearest_hint(const struct nearest *nearest, char out[NEAREST_HINT_SIZE]);
