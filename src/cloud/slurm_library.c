#include "base/library.h"
#include "cloud/slurm_library_internal.h"

#include <dlfcn.h>

/* Filled once, then only read. */
static union {
    struct slurm_library library;
    void *functions[sizeof(struct slurm_library) / sizeof(void *)];
} loaded;

/* Its plugins take its functions from whatever is open to all. */
static int open_to_plugins(struct error *error)
{
    if (!dlopen(SLURM_LIBRARY, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD))
        return error_set(error, ERROR_UNAVAILABLE, "load \"" SLURM_LIBRARY "\" for its plugins");
    return 0;
}

int slurm_library_load(const struct slurm_library **out_library, struct error *error)
{
    static struct library_once once = LIBRARY_ONCE_INIT;
    static const char *const names[] = {
#define X(name) #name,
        SLURM_FUNCTIONS(X)
#undef X
    };
    *out_library = &loaded.library;
    if (library_load_once(&once, SLURM_LIBRARY, names, sizeof(names) / sizeof(*names),
                          loaded.functions, open_to_plugins, error) < 0)
        return error_wrap(error, "lending a partition takes Slurm's library");
    return 0;
}
