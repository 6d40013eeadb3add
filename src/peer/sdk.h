/*
 * SDK: the Python package and libsouk, which are part of the program, laid out once for all leases
 * of programs of one's own, who find them at LAUNCH_SDK (runtime/launch.h).
 *
 *     STATE/sdk/KEY/souk/...      never changed once it has its name; another program has another
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <limits.h>
#include <stddef.h>

struct sdk_file {
    const char *name;   /* "souk/sync.py": one folder deep */
    struct text packed; /* by zlib */
    size_t size;        /* unpacked */
};

struct sdk {
    const char *key; /* of all their bytes */
    const struct sdk_file *files;
    size_t file_count;
};

/*
 * Lays them out unless they are, and writes the folder's path. What other programs laid out goes,
 * unless there are leases, whose keepers may be of such a program. CORRUPT: a file does not unpack.
 */
MUST_CHECK int sdk_lay_out(const struct sdk *sdk, const char *state_dir, char out_folder[PATH_MAX],
                           struct error *error);
