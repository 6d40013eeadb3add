/*
 * Packer: keeps many texts that are alike in little memory, each by what sets it apart from a
 * pattern.
 *
 * The pattern is one of the texts themselves; when texts change so much that it serves badly, the
 * next one takes its place, and goes with the last text that was packed by it. One thread.
 */
#pragma once

#include "base/buffer.h"
#include "base/scope.h"

struct packer;
struct packed;

struct packer *packer_new(void); /* never NULL */
/* After everything it packed. NULL is fine. */
void packer_free(struct packer *packer);
DEFINE_AUTO(packer);

struct packed *packed_new(struct packer *packer, struct text text); /* never NULL */
void packed_free(struct packed *packed);                            /* NULL is fine */

/* What it takes in memory, without its part of the pattern. */
size_t packed_memory(const struct packed *packed);
/* Appends the text to `out`. */
void packed_read(const struct packed *packed, struct packer *packer, struct buffer *out);
