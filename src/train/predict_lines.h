/*
 * Predict lines: what a model tells of records, a line for each in their order, and how right it
 * was where they have labels.
 *
 * CSV has a heading: index, prediction, and of classes their probability; with all of them a column
 * "p(CLASS)" each. JSON has the same as an object a line.
 */
#pragma once

#include "train/predict_data.h"

struct predict_lines_options {
    struct predictor *predictor;
    bool is_json;
    bool has_all; /* the probability of every class */
    uint64_t shard,
        shard_count; /* of so many, the records whose index modulo that is this; 0: all */
    /* Whole lines, in order. */
    int (*write)(void *context, struct text lines, struct error *error);
    void *context;
};

struct predict_score {
    uint64_t records;  /* told */
    uint64_t labelled; /* of them */
    uint64_t right;    /* of classes */
    uint64_t unlearnt; /* labels that the model has not learnt: none of those is right */
    double error;      /* of numbers: the root of the mean squared error */
    double r2;
};

struct predict_lines;

/* INVALID: it tells every step of a sequence, or no probabilities where all are wanted. */
MUST_CHECK int predict_lines_open(const struct predict_lines_options *options,
                                  struct predict_lines **out_lines, struct error *error);
void predict_lines_free(struct predict_lines *lines); /* NULL is fine */
DEFINE_AUTO(predict_lines);

/* As predict_data_options.take, with `lines` as the context. */
MUST_CHECK int predict_lines_take(void *lines, const float *input,
                                  const struct predict_label *label, struct error *error);
/* Writes what is not written yet. */
MUST_CHECK int predict_lines_end(struct predict_lines *lines, struct error *error);
struct predict_score predict_lines_score(const struct predict_lines *lines);
