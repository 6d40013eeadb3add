/*
 * Predict merge: what N ranks told of every Nth record each, as one file in the records' order.
 *
 * The parts are lines of `souk model predict --shard K/N`: CSV with a heading, or JSON objects. A
 * record's index is the first thing in its line, and is checked: parts of strangers that do not fit
 * together are no file.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct predict_merge_options {
    const char *const *paths; /* of the parts, by rank */
    size_t count;
    bool is_json;
    /* Whole lines, in order. */
    int (*write)(void *context, struct text lines, struct error *error);
    void *context;
};

/* CORRUPT, naming the rank, for a part that is no such file or lacks records. */
MUST_CHECK int predict_merge(const struct predict_merge_options *options, uint64_t *out_records,
                             struct error *error);
