#include "base/library.h"

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
