/*
 * Model spec: which built-in model, with which sizes; plain data that travels in jobs and
 * checkpoints.
 *
 * The parameters of a model lie in one float vector, in the order of its parameter table. The
 * order depends on the spec alone, so that two machines agree on it without asking.
 */
#pragma once

#include "base/error.h"
#include "base/json_schema.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum model_kind {
    MODEL_LENET5,   /* conv 5x5, pool, conv 5x5, pool, then three dense layers; ReLU */
    MODEL_MLP,      /* dense layers of the hidden sizes, ReLU between */
    MODEL_LOGISTIC, /* one dense layer */
    MODEL_KIND_COUNT,
};

enum { MODEL_HIDDEN_MAX = 8, MODEL_PARAMETER_TABLE_MAX = 2 * (MODEL_HIDDEN_MAX + 4) };

struct model_spec {
    enum model_kind kind;
    uint64_t channels, height, width; /* of one input */
    uint64_t classes;
    uint64_t hidden_count;             /* mlp only */
    uint64_t hidden[MODEL_HIDDEN_MAX]; /* mlp only */
};

/* One named piece of the parameter vector. */
struct parameter {
    char name[32];     /* "conv1.weight" */
    uint32_t shape[4]; /* [rank] are used */
    uint32_t rank;
    size_t offset; /* into the vector, in floats */
    size_t count;
};

struct parameter_table {
    struct parameter items[MODEL_PARAMETER_TABLE_MAX];
    uint32_t count;
    size_t float_count; /* of the whole vector */
};

const char *model_kind_name(enum model_kind kind); /* "lenet5", "mlp", "logistic" */
MUST_CHECK int model_kind_parse(struct text name, enum model_kind *out_kind, struct error *error);
/* The names by kind, ended by NULL; for tables of options and job fields. */
extern const char *const model_kind_names[];

/* 28x28x1 in, 10 classes; an mlp gets hidden sizes 256 and 128. */
void model_spec_default(enum model_kind kind, struct model_spec *out_spec);

bool model_spec_equal(const struct model_spec *left, const struct model_spec *right);

/* INVALID with the reason when a model of these sizes cannot be built or is too large. */
MUST_CHECK int model_spec_check(const struct model_spec *spec, struct error *error);

/* Fails as model_spec_check does. */
MUST_CHECK int model_spec_layout(const struct model_spec *spec, struct parameter_table *out_table,
                                 struct error *error);

/* {"kind":"mlp","channels":1,...,"hidden":[256,128]} and back; reading checks the spec too. */
void model_spec_write(struct json_writer *writer, const struct model_spec *spec);
MUST_CHECK int model_spec_read(struct arena *arena, struct text json, struct model_spec *out_spec,
                               struct error *error);
