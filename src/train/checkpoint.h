/*
 * Checkpoint: a model in training, written so that it is whole on disk or not there at all.
 *
 *     offset  size   what (integers little-endian)
 *     0       8      "SOUKCKPT"
 *     8       4      version, 3; 2 is read, too
 *     12      4      size h of the head
 *     16      h      head: JSON {spec, step, samples, elapsed_ms (from 3 on), epoch, position,
 * seed, stream, parameters, moments} 16+h    4 n    parameters, float
 *     ...     4 n    velocity, float: an optimizer's first moment, or a server's outer momentum
 *     ...     4 n    its second moment, float, where moments is 2
 *     ...     32     BLAKE2b-256 of all bytes before it
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "train/model_spec.h"

#include <stddef.h>
#include <stdint.h>

struct checkpoint {
    struct model_spec spec;
    uint64_t step, samples;   /* done so far */
    int64_t elapsed_ms;       /* of training; 0: not known */
    uint64_t epoch, position; /* of the sampler */
    uint64_t seed, stream;
    size_t parameter_count; /* as the spec's layout says */
    float *parameters;      /* [parameter_count] */
    float *velocity;        /* [parameter_count] */
    float *second;          /* [parameter_count], of Adam; NULL of others */
};

/* Writes beside `path`, syncs, renames over it. A failure leaves the old file as it was. INVALID
 * when a value is not finite: a good one is not overwritten by what cannot be gone on from. */
MUST_CHECK int checkpoint_write(const char *path, const struct checkpoint *checkpoint,
                                struct error *error);

/* INVALID, naming both models. */
MUST_CHECK int checkpoint_refuse_other(const struct checkpoint *checkpoint,
                                       const struct model_spec *wanted, struct error *error);

/* CORRUPT when the file is cut, changed or not a checkpoint. The result owns its vectors. */
MUST_CHECK int checkpoint_read(const char *path, struct checkpoint **out_checkpoint,
                               struct error *error);
MUST_CHECK int checkpoint_parse(const uint8_t *bytes, size_t size,
                                struct checkpoint **out_checkpoint, struct error *error);
void checkpoint_free(struct checkpoint *checkpoint); /* one that was read; NULL is fine */
DEFINE_AUTO(checkpoint);
