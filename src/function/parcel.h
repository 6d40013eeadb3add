/*
 * Parcel: a vector of floats with a few words about it, as an object of a store: a model, or an
 * update of it.
 *
 *     offset  size   what (integers little-endian)
 *     0       8      "SOUKPARC"
 *     8       4      version, 1
 *     12      4      size h of the head, a multiple of 8
 *     16      h      head: JSON, filled up with spaces
 *     16+h    4 n    the vector, float
 *     ...     32     BLAKE2b-256 of all bytes before it
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PARCEL_HEAD_MAX = 1 << 20,
    PARCEL_EXTRA_MAX = PARCEL_HEAD_MAX + 64,
    PARCEL_VALUES_MAX = 64 << 20, /* of a lease's model: as EXCHANGE_PARAMETERS_MAX */
};

/* What a parcel of so many values has at the most. */
static inline size_t parcel_bytes_max(size_t count)
{
    return count * sizeof(float) + PARCEL_EXTRA_MAX;
}

struct parcel {
    struct text head;    /* JSON */
    const float *values; /* [count] */
    size_t count;
};

/* Appends it to an empty buffer. */
MUST_CHECK int parcel_encode(const struct parcel *parcel, struct buffer *out, struct error *error);
/* CORRUPT when it is none, is cut or changed, or a value is not finite. It lies in `bytes`, which
 * are aligned as malloc does. */
MUST_CHECK int parcel_decode(struct text bytes, struct parcel *out_parcel, struct error *error);
