/*
 * Model spec: a network as a list of layers, what goes in and what it is told; plain data that
 * travels in jobs and checkpoints.
 *
 * The built-in models are such lists too (model_builtin.c). The parameters of a model lie in one
 * float vector, in the order of its parameter table: first all that are learned, then the running
 * statistics of norms, which have no gradient but are exchanged and averaged like the rest. The
 * order depends on the spec alone, so that two machines agree on it without asking.
 */
#pragma once

#include "base/error.h"
#include "base/json_schema.h"
#include "base/text.h"
#include "train/layer_spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum model_kind {
    MODEL_LENET5,    /* conv 5x5, pool, conv 5x5, pool, then three dense layers; ReLU */
    MODEL_MLP,       /* dense layers of 256 and 128, ReLU between */
    MODEL_LOGISTIC,  /* one dense layer */
    MODEL_LINEAR,    /* the same for a number: least squares */
    MODEL_SVM,       /* the same with hinge loss */
    MODEL_CIFAR_CNN, /* two conv 5x5x64 with local norm, one dense layer */
    MODEL_RESNET,    /* ResNet-20 for images of 32x32 */
    MODEL_TEXT_CNN,  /* embedding, convolution over time, maximum over time, dense */
    MODEL_LSTM,      /* an LSTM over a sequence, its last state told */
    MODEL_GRU,
    MODEL_LSTM_FORECAST, /* the same for a number */
    MODEL_GRU_FORECAST,
    MODEL_CHAR_LSTM, /* tells the next character after each */
    MODEL_LAYERS,    /* the job file's own list */
    MODEL_KIND_COUNT,
};

/* What the outputs are held against. */
enum loss_kind {
    LOSS_CROSS_ENTROPY, /* softmax over classes; of every step when the outputs are a sequence */
    LOSS_MSE,           /* mean squared error of values */
    LOSS_HINGE,         /* mean over classes of max(0, 1 - right + other): torch's multi-margin */
    LOSS_LOGISTIC,      /* two classes by one output */
    LOSS_KIND_COUNT,
};

enum {
    MODEL_LAYERS_MAX = 128,
    MODEL_PARAMETER_TABLE_MAX = 4 * MODEL_LAYERS_MAX,
    MODEL_SPEC_JSON_MAX = 32 << 10,
};

struct model_spec {
    enum model_kind kind;
    enum loss_kind loss;
    uint64_t channels, height, width; /* of one input; tokens are 1 x 1 x length,
                                         sparse rows 1 x 2 x entries: places, then numbers */
    uint64_t vocabulary; /* of tokens, or places of sparse rows; 0: the inputs are numbers */
    uint64_t classes;    /* told apart; 0 with LOSS_MSE */
    uint64_t values;     /* numbers told, with LOSS_MSE; else 0 */
    int64_t layer_count;
    struct layer_spec layers[MODEL_LAYERS_MAX]; /* right behind its count: JSON_LIST */
};

enum parameter_role {
    PARAMETER_WEIGHTS,
    PARAMETER_BIAS,
    PARAMETER_RECURRENT_WEIGHTS,
    PARAMETER_RECURRENT_BIAS,
    PARAMETER_RUNNING_MEAN, /* this and the next are state: no gradient */
    PARAMETER_RUNNING_VARIANCE,
};

/* How values start. */
enum parameter_start {
    PARAMETER_START_ZERO,
    PARAMETER_START_ONE,
    PARAMETER_START_NORMAL,  /* of deviation `start_scale` */
    PARAMETER_START_UNIFORM, /* from -start_scale to start_scale */
};

/* One named piece of the parameter vector. */
struct parameter {
    char name[32];     /* "conv1.weight" */
    uint32_t shape[4]; /* [rank] are used */
    uint32_t rank;
    size_t offset; /* into the vector, in floats */
    size_t count;
    enum parameter_role role;
    enum parameter_start start;
    double start_scale;
};

struct parameter_table {
    struct parameter
        items[MODEL_PARAMETER_TABLE_MAX]; /* by layer; states have offsets at the end */
    uint32_t count;
    size_t learned_count; /* floats that have gradients: the first of the vector */
    size_t float_count;   /* of the whole vector */
};

const char *model_kind_name(enum model_kind kind); /* "lenet5", "mlp", ... */
MUST_CHECK int model_kind_parse(struct text name, enum model_kind *out_kind, struct error *error);
/* The names by kind, ended by NULL; for tables of options and job fields. */
extern const char *const model_kind_names[];
const char *loss_kind_name(enum loss_kind kind); /* "cross_entropy", "mse", "hinge", "logistic" */
extern const char *const loss_kind_names[];

/* The built-in's layers and loss with the inputs it is known for: 1x28x28 in 10 classes, 3x32x32
 * for CIFAR-10, tokens for text. MODEL_LAYERS starts without layers. */
void model_spec_default(enum model_kind kind, struct model_spec *out_spec);

/* How one input is given to the model from outside, and its rank: images [channels, height, width];
 * what a first LSTM or GRU takes [steps, features]; sparse rows [2, entries]; rows and tokens
 * [length]. */
enum { MODEL_INPUT_RANK_MAX = 3 };
uint32_t model_spec_input_shape(const struct model_spec *spec,
                                uint64_t out_shape[MODEL_INPUT_RANK_MAX]);

bool model_spec_equal(const struct model_spec *left, const struct model_spec *right);

/* INVALID with the reason when such a network cannot be built or is too large: "layer 3 (conv): a
 * kernel of 5 does not fit into 6 x 2 x 2". */
MUST_CHECK int model_spec_check(const struct model_spec *spec, struct error *error);
/* The same; *out_layer is the layer it is about, -1 when it is about the whole. */
MUST_CHECK int model_spec_check_layers(const struct model_spec *spec, int *out_layer,
                                       struct error *error);

/* Fails as model_spec_check does. */
MUST_CHECK int model_spec_layout(const struct model_spec *spec, struct parameter_table *out_table,
                                 struct error *error);

/* What training it takes at the least, with `batch` inputs at a time: parameters, their gradients
 * and what the layers compute. Fails as model_spec_check does. */
MUST_CHECK int model_spec_memory(const struct model_spec *spec, uint64_t batch, uint64_t *out_bytes,
                                 struct error *error);

/* {"kind":"mlp","channels":1,...,"layers":[{"type":"dense","outputs":256},...]} and back; reading
 * checks the spec too. */
void model_spec_write(struct json_writer *writer, const struct model_spec *spec);
MUST_CHECK int model_spec_read(struct arena *arena, struct text json, struct model_spec *out_spec,
                               struct error *error);
