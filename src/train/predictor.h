/*
 * Predictor: a trained model that answers: numbers of the data's own units in, what it tells out.
 *
 * Bytes of images and columns of a table are scaled as they were in training, where the model's
 * file, or the columns.json beside it, says how; numbers told are brought back into their units. A
 * predictor belongs to one thread.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "train/import.h"
#include "train/model_file.h"

#include <stdbool.h>
#include <stdint.h>

/* A column of a table. */
struct predictor_feature {
    char name[IMPORT_FEATURE_NAME_SIZE];
    double mean, deviation;
};

enum predictor_units {
    PREDICTOR_UNITS_MODEL,   /* what goes in and comes out is as the model has it */
    PREDICTOR_UNITS_BYTES,   /* images of bytes, 0 to 255 */
    PREDICTOR_UNITS_COLUMNS, /* a table's own numbers */
};

struct predictor;

/* `path` as of model_file_open. With `is_raw` nothing is scaled. */
MUST_CHECK int predictor_open(const char *path, bool is_raw, struct predictor **out_predictor,
                              struct error *error);
void predictor_free(struct predictor *predictor); /* NULL is fine */
DEFINE_AUTO(predictor);

const struct model_spec *predictor_spec(const struct predictor *predictor);
size_t predictor_parameter_count(const struct predictor *predictor);
enum predictor_units predictor_units(const struct predictor *predictor);
const char *predictor_units_name(enum predictor_units units); /* "model", "bytes", "columns" */

/* Numbers of one input, and of what is told of it: `steps` times `outputs`. */
size_t predictor_input_size(const struct predictor *predictor);
uint32_t predictor_outputs(const struct predictor *predictor);
uint32_t predictor_steps(const struct predictor *predictor); /* 0: it is no sequence */

/* Names of the columns that go in, where they are known. */
const struct predictor_feature *predictor_features(const struct predictor *predictor,
                                                   uint32_t *out_count);
/* The table's column that it tells; NULL: not known. */
const char *predictor_label_name(const struct predictor *predictor);
/* Whether it learnt from rows with numbers at some of their places only. */
bool predictor_is_sparse(const struct predictor *predictor);
/* The name of a class; NULL: not known. */
const char *predictor_class_name(const struct predictor *predictor, uint32_t index);

/* The tokens of a text, one input; false: the model's words are not known, or it takes none. */
bool predictor_take_text(const struct predictor *predictor, struct text text, float *out_input);
bool predictor_takes_text(const struct predictor *predictor);

/* Whether the input's place `index` holds whole numbers below the vocabulary. */
bool predictor_is_whole(const struct predictor *predictor, size_t index);

/* What the model gives for `count` inputs, [count, steps, outputs]: logits, margins, or numbers.
 * Scales `inputs` in place. */
void predictor_run(struct predictor *predictor, float *inputs, uint32_t count, float *out_outputs);
/* The class that one row of outputs tells. */
uint32_t predictor_class(const struct predictor *predictor, const float *outputs);
/* Probabilities of one row of outputs, in place, where the model tells classes by them; false: it
 * does not. */
bool predictor_probabilities(const struct predictor *predictor, float *outputs);
