/*
 * Probe, packages: what is installed, as labels that jobs can wish for: python3-torch, openmpi.
 *
 * Only what a table in probe_package.c names is looked for: by Debian's list of packages, by
 * programs where they usually are, and in the folders of Python's packages; so it works on systems
 * of any kind, and starts no program.
 */
#pragma once

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LABELS_PROBE_SIZE = 256 };

/* Words with a comma between, each once. */
struct labels_probe {
    char text[LABELS_PROBE_SIZE];
    size_t size;
    size_t left_out; /* words that did not fit */
    const char *const *hidden;
    size_t hidden_count;
};

/* Words of `hidden`, borrowed, are not taken in. */
void labels_probe_init(struct labels_probe *labels, const char *const *hidden, size_t hidden_count);
void labels_probe_add(struct labels_probe *labels, struct text word);
bool labels_probe_has(const struct labels_probe *labels, struct text word);
/* Letters, digits, '.', '_', '+' and '-', 40 at most. */
bool labels_probe_is_word(struct text word);

void packages_probe_read(const char *root, struct labels_probe *labels);

/*
 * A number that changes when something that a probe looks at has: processors, graphics, batteries,
 * packages. A few stat calls and small files; no measuring.
 */
uint64_t probe_fingerprint(const char *root);
