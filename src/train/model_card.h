/*
 * Model card: what a trained model is and how it came to be, as JSON beside the model's file.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "train/model_spec.h"

#include <stdint.h>

/* Of a file's metadata: the whole spec as JSON, so that the file says itself what it is. */
#define MODEL_CARD_SPEC_KEY "spec"

struct model_card {
    struct model_spec spec;
    const char *job_name; /* NULL: none, left out */
    uint64_t job;         /* 0: trained without a market */
    const char *data;
    const char *policy;
    double test_accuracy, test_loss;
    double mean, deviation;  /* of bytes of images over 255; deviation 0: none */
    uint64_t samples, steps; /* of all workers together */
    double train_seconds;
    uint32_t workers;
    uint32_t batch;
    double lr, momentum, weight_decay;
    uint64_t seed;
    int64_t finished_utc_ms;
};

void model_card_append(struct json_writer *writer, const struct model_card *card);

/*
 * Writes FOLDER/model.safetensors (its metadata holds the card's main fields) and
 * FOLDER/card.json. `parameters` is the vector of the card's spec.
 */
MUST_CHECK int model_card_export(const char *folder, const struct model_card *card,
                                 const float *parameters, struct error *error);
