/*
 * Safetensors: a trained model as the file format other programs read.
 *
 *     offset  size  what
 *     0       8     size h of the header, little-endian, a multiple of 8 with the padding
 *     8       h     JSON {"__metadata__":{text:text}, name:{"dtype":"F32","shape":[..],
 *                   "data_offsets":[begin,end]}}, padded with spaces
 *     8+h     ...   the tensors, row-major, little-endian, one after the other
 *
 * The reader takes F32 only and holds every size against a maximum.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "train/model_spec.h"

#include <stddef.h>
#include <stdint.h>

enum {
    SAFETENSORS_HEADER_MAX = 1 << 20,
    SAFETENSORS_TENSORS_MAX = 640,
    SAFETENSORS_METADATA_MAX = 64,
};
#define SAFETENSORS_SIZE_MAX ((size_t)1 << 31)

struct safetensors_metadata {
    const char *key, *value;
};

struct safetensors {
    struct parameter *tensors; /* offsets in floats into `data` */
    uint32_t tensor_count;
    struct safetensors_metadata *metadata;
    uint32_t metadata_count;
    float *data;
    size_t float_count;
    struct arena *arena; /* holds all of the above */
};

/* Writes beside `path`, syncs, renames over it. */
MUST_CHECK int safetensors_write(const char *path, const struct parameter_table *table,
                                 const float *parameters,
                                 const struct safetensors_metadata *metadata,
                                 uint32_t metadata_count, struct error *error);

/* CORRUPT when the file breaks its format, EXHAUSTED past a maximum. */
MUST_CHECK int safetensors_read(const char *path, struct safetensors **out_file,
                                struct error *error);
MUST_CHECK int safetensors_parse(const uint8_t *bytes, size_t size, struct safetensors **out_file,
                                 struct error *error);
void safetensors_free(struct safetensors *file); /* NULL is fine */
DEFINE_AUTO(safetensors);
