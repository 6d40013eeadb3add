#include "base/library.h"
#include "net/slirp_library_internal.h"

/* Filled once, then only read. */
static union {
    struct slirp_library library;
    void *functions[sizeof(struct slirp_library) / sizeof(void *)];
} loaded;

int slirp_library_load(const struct slirp_library **out_library, struct error *error)
{
    static struct library_once once = LIBRARY_ONCE_INIT;
    static const char *const names[] = {
#define X(name) #name,
        SLIRP_FUNCTIONS(X)
#undef X
    };
    *out_library = &loaded.library;
    return library_load_once(&once, "libslirp.so.0", names, sizeof(names) / sizeof(*names),
                             loaded.functions, NULL, error);
}
