#include "base/library.h"

#include "base/assert.h"

#include <dlfcn.h>

int library_load(const char *file, const char *const *names, size_t name_count,
                 void **out_functions, struct error *error)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return error_set(error, ERROR_UNAVAILABLE, "load \"%s\": %s", file,
                         dlerror()); /* NOLINT(concurrency-mt-unsafe): safe in glibc */
    for (size_t i = 0; i < name_count; i++) {
        out_functions[i] = dlsym(handle, names[i]);
        if (!out_functions[i])
            return error_set(error, ERROR_UNAVAILABLE, "\"%s\" lacks %s", file, names[i]);
    }
    return 0;
}

int library_load_once(struct library_once *once, const char *file, const char *const *names,
                      size_t name_count, void **out_functions, int (*set_up)(struct error *error),
                      struct error *error)
{
    ASSERT(pthread_mutex_lock(&once->mutex) == 0);
    if (!once->is_tried) {
        once->is_tried = true;
        once->result = library_load(file, names, name_count, out_functions, &once->error);
        if (once->result == 0 && set_up)
            once->result = set_up(&once->error);
    }
    if (once->result < 0)
        *error = once->error;
    const int result = once->result;
    ASSERT(pthread_mutex_unlock(&once->mutex) == 0);
    return result;
}
