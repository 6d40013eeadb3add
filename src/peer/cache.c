#include "peer/cache.h"

#include "blob/blob_store.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define BYTES_DEFAULT_MAX (INT64_C(16) << 30)

int64_t cache_bytes_default(int64_t disk_bytes)
{
    const int64_t part_bytes = disk_bytes / 4;
    if (part_bytes < CACHE_BYTES_MIN)
        return CACHE_BYTES_MIN;
    return part_bytes < BYTES_DEFAULT_MAX ? part_bytes : BYTES_DEFAULT_MAX;
}

int cache_measure(const char *state_dir, uint64_t *out_bytes, struct error *error)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/blobs", state_dir) >= (int)sizeof(path))
        return error_set(error, ERROR_INVALID, "the state folder's name is too long");
    *out_bytes = 0;
    if (access(path, F_OK) < 0)
        return 0;
    const struct blob_store_options options = {.folder = path, .is_shared = true};
    AUTO(blob_store) struct blob_store *store = NULL;
    if (blob_store_open(&options, &store, error) < 0)
        return -1;
    *out_bytes = blob_store_bytes(store);
    return 0;
}
