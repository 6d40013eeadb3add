/*
 * Predict data: the records of somebody's files, one after another, as a model takes them.
 *
 * All formats that training reads (reader.h). Tables and texts stream; the others are read into
 * spools first, so that memory is bounded either way. What the model learnt by tells how: columns
 * by their names, words by their numbers, images by their size. Labels are taken where there are
 * any. Of a folder with rows to train and to test the former come first.
 */
#pragma once

#include "base/error.h"
#include "train/predictor.h"

/* What a record's own label says, to hold a prediction against. */
struct predict_label {
    bool is_known;
    int32_t class; /* -1: one that the model has not learnt */
    float number;  /* of models that tell a number */
};

struct predict_data_options {
    const char *path;
    const char *format; /* a reader's name; NULL: found out */
    const struct predictor *predictor;
    bool is_raw;       /* as of predictor_open */
    bool fills_means;  /* a missing number is its column's mean; else it is refused */
    uint64_t size_max; /* bytes of one file, decompressed; 0: 64 GiB */
    /* `input` has predictor_input_size numbers. On -1 reading ends and fails. */
    int (*take)(void *context, const float *input, const struct predict_label *label,
                struct error *error);
    void *context;
};

/* INVALID with record, line or byte: the data are not what the model takes. */
MUST_CHECK int predict_data_read(const struct predict_data_options *options, struct error *error);
