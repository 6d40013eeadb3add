#include "base/assert.h"
#include "base/library.h"
#include "blob/archive_library_internal.h"

#include <pthread.h>

/* Filled once under `once`, then only read. */
static struct {
    pthread_once_t once;
    union {
        struct archive_library library;
        void *functions[sizeof(struct archive_library) / sizeof(void *)];
    };
    int result;
    struct error error;
} loaded = {.once = PTHREAD_ONCE_INIT};

static void load(void)
{
    static const char *const names[] = {
#define X(name) #name,
        ARCHIVE_FUNCTIONS(X)
#undef X
    };
    loaded.result = library_load("libarchive.so.13", names, sizeof(names) / sizeof(*names),
                                 loaded.functions, &loaded.error);
}

int archive_library_load(const struct archive_library **out_library, struct error *error)
{
    ASSERT(pthread_once(&loaded.once, load) == 0);
    if (loaded.result < 0) {
        *error = loaded.error;
        return -1;
    }
    *out_library = &loaded.library;
    return 0;
}
