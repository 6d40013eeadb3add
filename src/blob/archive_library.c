#include "base/library.h"
#include "blob/archive_library_internal.h"

/* Filled once, then only read. */
static union {
    struct archive_library library;
    void *functions[sizeof(struct archive_library) / sizeof(void *)];
} loaded;

int archive_library_load(const struct archive_library **out_library, struct error *error)
{
    static struct library_once once = LIBRARY_ONCE_INIT;
    static const char *const names[] = {
#define X(name) #name,
        ARCHIVE_FUNCTIONS(X)
#undef X
    };
    *out_library = &loaded.library;
    return library_load_once(&once, "libarchive.so.13", names, sizeof(names) / sizeof(*names),
                             loaded.functions, NULL, error);
}
