/*
 * Image: unpacks an OCI image as `docker save`, `podman save` and image layouts pack it: a tar file
 * (as it is, or by gzip or zstd) with an index, manifests, a configuration and layers.
 *
 * What belongs to other architectures is left out; an image with nothing for this one is refused.
 * Every blob is compared with the digest that names it before anything of it is used; of the older
 * format, which has none, each layer with the configuration's diff_ids.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

struct image_limits {
    uint64_t bytes_max; /* of the archive, its files and those of the root, all together */
    uint64_t files_max; /* of the root: folders and links counted */
};

struct image_summary {
    uint64_t bytes; /* of the root */
    uint64_t files;
    uint64_t layers;
};

/*
 * Unpacks the archive behind `fd` into this process's working folder, which is empty: root/, and
 * start.json, which image_start_read reads. CORRUPT, REFUSED (of another architecture or system) or
 * EXHAUSTED, in words for the image's owner; a part may be there then.
 */
MUST_CHECK int image_unpack(int fd, const struct image_limits *limits,
                            struct image_summary *out_summary, struct error *error);
