/*
 * Model file: a trained model as it was left, ready to be used: model.safetensors with its
 * description (in its metadata, or in the card.json beside it), a folder that holds one, or a
 * checkpoint.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "train/model_spec.h"
#include "train/safetensors.h"

#include <stdbool.h>
#include <stdint.h>

struct model_file {
    struct model_spec spec;
    float *parameters; /* the vector of the spec */
    size_t parameter_count;
    /* Bytes of images went in as (byte / 255 - mean) / deviation; deviation 0: not known, or they
     * were no bytes. */
    double mean, deviation;
    const struct safetensors_metadata *metadata; /* of the file; of a checkpoint none */
    uint32_t metadata_count;
    struct arena *arena; /* holds the metadata */
};

/* NOT_FOUND; CORRUPT when it is none or damaged; INVALID when nothing says what model it is, or its
 * tensors are another model's, naming the first that differs. */
MUST_CHECK int model_file_open(const char *path, struct model_file **out_file, struct error *error);
void model_file_free(struct model_file *file); /* NULL is fine */
DEFINE_AUTO(model_file);

/* The value of a key of the metadata; NULL: it has none. */
const char *model_file_metadata(const struct model_file *file, const char *key);
