/*
 * Shard: a lease's data: fetches manifests and the chunks its records lie in, and writes one file
 * per input. An idx file gets the record count of the shard in its header, so that it is a whole
 * idx file again. A mount (runtime/mount_index.h) becomes the files it is, below FOLDER/mounts, of
 * a shared one those of this rank: its index is fetched first.
 */
#pragma once

#include "peer/fetch.h"
#include "runtime/native.h"

struct shard;
/* `reason` is NULL when every file is whole. */
typedef void shard_function(void *context, const struct error *reason);

struct shard_options {
    struct chunk_access access;
    const char *folder; /* files are FOLDER/NAME */
    const struct lease_data *data;
    size_t data_count;
    uint64_t bytes_max; /* of all files together; EXHAUSTED beyond */
    shard_function *callback;
    void *context;
};

/* The callback comes once, never from inside this call. `folder` and `data` outlive the shard. */
struct shard *shard_start(const struct shard_options *options);
void shard_free(struct shard *shard); /* NULL is fine; gives up what still runs */
DEFINE_AUTO(shard);
/* Why it takes so long: see fetch_trouble. */
const char *shard_trouble(struct shard *shard);
