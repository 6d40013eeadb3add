/*
 * NumPy array: the header of a .npy file (NumPy enhancement proposal 1) and its elements as floats.
 *
 *     offset  size   what
 *     0       6      0x93 "NUMPY"
 *     6       2      version, 1.0 to 3.0
 *     8       2 | 4  length of the text that follows (version 1: two bytes), at most
 *                    NPY_HEADER_MAX
 *     ..             {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
 *
 * Numbers and booleans are read; objects (pickled) never are.
 */
#pragma once

#include "base/error.h"
#include "train/data_stream.h"

#include <stdbool.h>
#include <stdint.h>

enum { NPY_RANK_MAX = 4, NPY_HEADER_MAX = 1 << 16 };

struct npy_header {
    char kind;             /* 'b', 'i', 'u' or 'f' */
    uint32_t element_size; /* 1, 2, 4 or 8 */
    bool is_big_endian;
    uint32_t rank;
    uint64_t shape[NPY_RANK_MAX];
    uint64_t count; /* of elements, all in all */
};

/* CORRUPT with the byte; INVALID: of a type or an order that is not read; EXHAUSTED: more than
 * `size_max` bytes of elements. */
MUST_CHECK int npy_header_read(struct data_stream *stream, uint64_t size_max,
                               struct npy_header *out_header, struct error *error);
/* The next `count` elements. */
MUST_CHECK int npy_floats_read(struct data_stream *stream, const struct npy_header *header,
                               float *out, size_t count, struct error *error);
MUST_CHECK int npy_ints_read(struct data_stream *stream, const struct npy_header *header,
                             int64_t *out, size_t count, struct error *error);
