/*
 * Import store: what somebody sent, out of the market's store into a file, and what a reader made
 * of it (worker/import_main.c) back into the store, as the inputs of a job.
 *
 * What the reader left is a stranger's: nothing of it is believed. Any thread, one at a time.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "blob/blob_store.h"
#include "blob/manifest.h"
#include "runtime/job_import.h"
#include "server/holdings.h"
#include "server/import_classes.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct import_progress {
    _Atomic uint64_t done_bytes;
    atomic_bool is_stopped; /* by whoever does not want it any more */
};

/* Writes the manifest's bytes to a new file. CONFLICT: it was stopped. */
MUST_CHECK int import_lay_out(struct blob_store *blobs, const struct manifest *manifest,
                              const char *path, struct import_progress *progress,
                              struct error *error);

struct import_product {
    struct arena *arena;
    struct job_train train; /* with the shape */
    struct import_classes classes;
    struct job_input inputs[JOB_PARTS_MAX];
    size_t input_first; /* of data at lenders the test is the first: those before are empty; of a
                         * mount the last */
    bool is_mount;      /* without train and classes */
    uint64_t mount_files, mount_parts; /* how many ranks can share it */
    struct holdings_chunk *chunks;     /* with the manifests */
    size_t chunk_count;
    struct import_file *files;
};

/* Looks at what lies in the folder, in whole at most `bytes_max`, and reckons the hashes; nothing
 * is stored yet. On failure too the caller calls import_product_done. */
MUST_CHECK int import_product_read(struct import_product *product, const char *folder, bool is_peer,
                                   uint64_t bytes_max, struct error *error);
/* Likewise of a mount. */
MUST_CHECK int import_product_read_mount(struct import_product *product, const char *folder,
                                         uint64_t bytes_max, struct error *error);
/* Puts it into the store. */
MUST_CHECK int import_product_keep(const struct import_product *product, struct blob_store *blobs,
                                   const struct import_progress *progress, struct error *error);
/* Lets go of the files; what it says stays. */
void import_product_close(struct import_product *product);
void import_product_done(struct import_product *product); /* one of zeros is fine */
