/*
 * Library: a shared library that is loaded at its first use.
 */
#pragma once

#include "base/error.h"

#include <pthread.h>
#include <stdbool.h>
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

/* A library that the whole program shares, with what loading it came to. Any thread. */
struct library_once {
    pthread_mutex_t mutex;
    bool is_tried;
    int result;
    struct error error;
};
#define LIBRARY_ONCE_INIT                                                                          \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER                                                         \
    }

/* library_load at the first call, and `set_up` after it (NULL: nothing to do); later calls give the
 * same answer. `out_functions` may be read by whoever got 0. */
MUST_CHECK int library_load_once(struct library_once *once, const char *file,
                                 const char *const *names, size_t name_count, void **out_functions,
                                 int (*set_up)(struct error *error), struct error *error);
