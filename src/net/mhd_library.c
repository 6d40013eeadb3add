#include "base/library.h"
#include "net/mhd_library_internal.h"

/* Filled once, then only read. */
static union {
    struct mhd_library library;
    void *functions[sizeof(struct mhd_library) / sizeof(void *)];
} loaded;

int mhd_library_load(const struct mhd_library **out_library, struct error *error)
{
    static struct library_once once = LIBRARY_ONCE_INIT;
    static const char *const names[] = {
#define X(name) #name,
        MHD_FUNCTIONS(X)
#undef X
    };
    *out_library = &loaded.library;
    return library_load_once(&once, "libmicrohttpd.so.12", names, sizeof(names) / sizeof(*names),
                             loaded.functions, NULL, error);
}
