/*
 * Library: a shared library that is loaded at its first use.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>

/* For interfaces older than const, that do not write to what they are given. */
static inline void *without_const(const void *pointer)
{
    const union {
        const void *from;
        void *to;
    } cast = {.from = pointer};
    return cast.to;
}

/* Opens `file` and stores the address of each of `names` in `out_functions`, in order. */
MUST_CHECK int library_load(const char *file, const char *const *names, size_t name_count,
                            void **out_functions, struct error *error);
