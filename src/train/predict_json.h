/*
 * Predict JSON: the bodies of TensorFlow Serving's REST API, in and out.
 *
 *     predict    {"instances":[INPUT,...]} -> {"predictions":[OUTPUT,...]}
 *                {"inputs":[INPUT,...]}    -> {"outputs":[OUTPUT,...]}
 *     classify   {"examples":[INPUT,...]}  -> {"result":[[["CLASS",SCORE],...],...]}
 *     regress    {"examples":[INPUT,...]}  -> {"result":[NUMBER,...]}
 *
 * INPUT is the numbers of one input nested as its shape, or all in one list, or {"input": those},
 * or, of a table whose columns are known, {"COLUMN": number, ...}, or, of a model of tokens whose
 * words are known, "a text". Column by column it may also be
 * {"inputs":{"input":[INPUT,...]}}. Several outputs are an object in rows and one of lists in
 * columns: "output" (as the model gives it), "probabilities" and "classes".
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "train/predictor.h"

/* Numbers that one answer tells: memory for them is taken before any is written. */
enum { PREDICT_OUTPUTS_MAX = 16 << 20 };

enum predict_verb { PREDICT, CLASSIFY, REGRESS, PREDICT_VERB_COUNT };
extern const char
    *const predict_verb_names[]; /* "predict", "classify", "regress"; ends with NULL */

struct predict_request {
    enum predict_verb verb;
    bool is_columns; /* came as "inputs" */
    float *inputs;   /* [count, input size], in the arena */
    uint32_t count;
};

/* INVALID with the place: "instances[2][0]: 27 numbers where the model takes 28". At most
 * `count_max` inputs. */
MUST_CHECK int predict_request_read(struct arena *arena, const struct predictor *predictor,
                                    enum predict_verb verb, struct text body, uint32_t count_max,
                                    struct predict_request *out_request, struct error *error);

/* Runs it and writes the answer. INVALID when the model tells nothing of the kind. */
MUST_CHECK int predict_answer(struct predictor *predictor, struct predict_request *request,
                              struct arena *arena, struct json_writer *writer, struct error *error);

enum { PREDICT_FLOAT_SIZE = 32 };
/* The fewest digits that read back as the same float. */
const char *predict_float_text(float value, char out[PREDICT_FLOAT_SIZE]);

/* The answer to GET .../metadata. */
void predict_metadata_write(struct json_writer *writer, const struct predictor *predictor,
                            const char *name);
