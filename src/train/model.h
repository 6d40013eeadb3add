/*
 * Model: layers that compute outputs from inputs, and the gradient of every parameter.
 *
 * Parameters are one contiguous float vector and gradients another of the same order
 * (model_spec.h), so that an exchange sends and receives them in place. Their addresses do not
 * change while the model is open. A model is opened for one batch size and belongs to one thread.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/scope.h"
#include "tensor/kernel.h"
#include "train/model_spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_BATCH_MAX = 65536 };

struct model;

struct model_options {
    struct model_spec spec;
    uint32_t batch;
    bool is_training; /* false: forward only, no gradients, quicker to open */
};

/* The kernel set must outlive the model. Parameters start at zero: set them or initialise. */
MUST_CHECK int model_open(struct kernel_set *kernels, const struct model_options *options,
                          struct model **out_model, struct error *error);
void model_free(struct model *model); /* NULL is fine */
DEFINE_AUTO(model);

/* He's normal for layers before a ReLU, Glorot's uniform for others, torch's for LSTM and GRU;
 * biases 0. The same seed gives the same parameters wherever the mathematics library is the same.
 */
void model_init_parameters(struct model *model, uint64_t seed);

const struct model_spec *model_spec(const struct model *model);
uint32_t model_batch(const struct model *model);
struct kernel_set *model_kernels(const struct model *model);

const struct parameter_table *model_parameter_table(const struct model *model);
size_t model_parameter_count(const struct model *model); /* in floats */
size_t model_learned_count(const struct model *model);   /* those with gradients: the first */
float *model_parameters(struct model *model);
float *model_gradients(struct model *model); /* NULL unless training */

/* Where the next batch goes: [batch, channels, height, width]; tokens as floats that hold whole
 * numbers, [batch, length]. Written by the caller. */
float *model_input(struct model *model);
size_t model_input_size(const struct model *model); /* floats of one image */

/* Outputs [batch, outputs] of what lies in model_input, or [batch, steps, outputs] of a sequence
 * model; valid until the next call. Classes are told by logits. A model in training drops, measures
 * and keeps statistics as in training. */
const float *model_forward(struct model *model);
/* The same as in use: nothing dropped, norms by what was learned. No backward after it. */
const float *model_predict(struct model *model);
/* Decides what the next forward drops. */
void model_set_seed(struct model *model, uint64_t seed);
/* Rows of outputs for one input: 1, or the steps of a sequence model. */
uint32_t model_output_rows(const struct model *model);
/* The same again, without computing. */
const float *model_logits(const struct model *model);

/* Where the loss writes the gradient of the logits, [batch, classes]; NULL unless training. */
float *model_logits_gradient(struct model *model);
/* After model_forward and with model_logits_gradient filled: overwrites model_gradients. */
void model_backward(struct model *model);

/* Appends one line per layer: name, shapes, how it is computed. */
void model_describe(const struct model *model, struct buffer *buffer);
