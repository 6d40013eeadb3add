/*
 * ONNX: a trained model as a graph that other runtimes compute (opset 17).
 *
 * Its input is named "input": [batch, ...] as model_spec_input_shape says, floats, or whole numbers
 * of 64 bits where tokens go in. Its output "output" is what model_predict gives; a model that
 * tells classes by softmax or a sigmoid gives "probabilities" as well. Dropout is left out and
 * norms use what was learned, as in use.
 */
#pragma once

#include "base/error.h"
#include "train/model_spec.h"
#include "train/safetensors.h"

/* Writes beside `path`, syncs, renames over it. INVALID when the spec cannot be built. */
MUST_CHECK int onnx_write(const char *path, const struct model_spec *spec, const float *parameters,
                          const struct safetensors_metadata *metadata, uint32_t metadata_count,
                          struct error *error);
