/*
 * Labels: words that offers bear and wishes name, as bits, so that many are compared at once.
 *
 * The first words that offers bear get a bit each; later ones share LABELS_OTHER, and a wish for
 * one of them must be compared by the word. Words are never forgotten: the bits are for speed, and
 * the answer is the same with any words in them.
 */
#pragma once

#include "base/map.h"

enum { LABELS_BITS = 42 };

/* Bits 0 to LABELS_BITS - 1 are words. */
#define LABELS_OTHER (UINT64_C(1) << LABELS_BITS)       /* some word without a bit */
#define LABELS_NEVER (UINT64_C(1) << (LABELS_BITS + 1)) /* a word that no offer bears */

struct labels {
    struct map bits; /* word to a pointer into `seen` */
    char seen[LABELS_BITS];
    size_t count;
};

void labels_init(struct labels *labels);
void labels_done(struct labels *labels);

/* The bits of an offer's words ("avx2,cuda-12"; `kind` set apart from other kinds). New words are
 * taken in while there is room. */
uint64_t labels_borne(struct labels *labels, char kind, struct text words);
/* The bits a wish for all these words asks for. */
uint64_t labels_wished(const struct labels *labels, char kind, struct text words);

/* Whether each of the wished words is in one of the two lists. */
bool labels_are_in(struct text wished, struct text first, struct text second);
/* The next word of a list, taken from its front; false at the end. */
bool labels_next(struct text *words, struct text *out_word);
