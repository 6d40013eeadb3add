/*
 * Confine: this process itself, for good: no file, no other process, no other kind of socket than
 * IPv4's, and root becomes an ordinary user. For a program that holds all it needs and then reads
 * what strangers wrote.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct confine_options {
    uint64_t descriptor_max; /* descriptors are numbered below it */
    int64_t data_bytes;      /* of memory that it writes to */
    int64_t file_bytes;      /* of the largest file that it writes; 0: any */
    bool writes_here;        /* confine_to_network: also below its working folder */
};

/* It also ends with the process that started it. UNAVAILABLE, half confined, when the kernel lacks
 * something: the caller is to end. */
MUST_CHECK int confine_to_sockets(const struct confine_options *options, struct error *error);

/* The same for one that resolves names, loads libraries and trusts certificates: it can read where
 * those are, and nothing else; it writes only what it has open, unless the options say so, and may
 * use any socket. Where the kernel has no Landlock, only its user's rights say what it may read and
 * write. */
MUST_CHECK int confine_to_network(const struct confine_options *options, struct error *error);
