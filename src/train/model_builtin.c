/*
 * The built-in models: what each is made of, as the list of layers a job file would have.
 *
 * To add one: a value in enum model_kind, a list and a row here, a row in docs/models.md and a case
 * in tests/reference/test_models.py.
 */
#include "base/assert.h"
#include "train/model_spec.h"

#include <string.h>

#define DENSE(outputs_)                                                                            \
    {                                                                                              \
        .type = LAYER_DENSE, .outputs = (outputs_)                                                 \
    }
#define CONV(outputs_, kernel_, pad_, stride_)                                                     \
    {                                                                                              \
        .type = LAYER_CONV, .outputs = (outputs_), .kernel = (kernel_), .pad = (pad_),             \
        .stride = (stride_)                                                                        \
    }
#define MAX_POOL(kernel_, stride_, partial_)                                                       \
    {                                                                                              \
        .type = LAYER_MAX_POOL, .kernel = (kernel_), .stride = (stride_), .partial = (partial_)    \
    }
#define PLAIN(type_)                                                                               \
    {                                                                                              \
        .type = (type_)                                                                            \
    }
#define RELU    PLAIN(LAYER_RELU)
#define TELLING DENSE(0) /* as wide as the loss needs */
#define RECURRENT(type_, outputs_, steps_)                                                         \
    {                                                                                              \
        .type = (type_), .outputs = (outputs_), .steps = (steps_)                                  \
    }
#define EMBEDDING(outputs_)                                                                        \
    {                                                                                              \
        .type = LAYER_EMBEDDING, .outputs = (outputs_)                                             \
    }

/* Pooling stands before the ReLU: max and ReLU commute, and a quarter is left to compute. */
static const struct layer_spec lenet5[] = {CONV(6, 5, 2, 1),
                                           MAX_POOL(2, 2, false),
                                           RELU,
                                           CONV(16, 5, 0, 1),
                                           MAX_POOL(2, 2, false),
                                           RELU,
                                           DENSE(120),
                                           RELU,
                                           DENSE(84),
                                           RELU,
                                           TELLING};
static const struct layer_spec mlp[] = {DENSE(256), RELU, DENSE(128), RELU, TELLING};
static const struct layer_spec one_dense[] = {TELLING};

/* ADSP's CNN for CIFAR-10, as its authors' code has it: 148,298 parameters. */
static const struct layer_spec cifar_cnn[] = {CONV(64, 5, 2, 1),
                                              RELU,
                                              MAX_POOL(3, 2, true),
                                              PLAIN(LAYER_LOCAL_NORM),
                                              CONV(64, 5, 2, 1),
                                              RELU,
                                              PLAIN(LAYER_LOCAL_NORM),
                                              MAX_POOL(3, 2, true),
                                              TELLING};

/* He et al. 2015, section 4.2, with n = 3; a projection where the shape changes. */
#define BLOCK(channels_, stride_)                                                                  \
    CONV((channels_), 3, 1, (stride_)), PLAIN(LAYER_BATCH_NORM), RELU, CONV((channels_), 3, 1, 1), \
        PLAIN(LAYER_BATCH_NORM), {.type = LAYER_RESIDUAL, .back = 5}, RELU
static const struct layer_spec resnet[] = {CONV(16, 3, 1, 1),
                                           PLAIN(LAYER_BATCH_NORM),
                                           RELU,
                                           BLOCK(16, 1),
                                           BLOCK(16, 1),
                                           BLOCK(16, 1),
                                           BLOCK(32, 2),
                                           BLOCK(32, 1),
                                           BLOCK(32, 1),
                                           BLOCK(64, 2),
                                           BLOCK(64, 1),
                                           BLOCK(64, 1),
                                           PLAIN(LAYER_AVERAGE_POOL),
                                           TELLING};

static const struct layer_spec text_cnn[] = {EMBEDDING(64),         CONV(128, 5, 0, 1),   RELU,
                                             PLAIN(LAYER_MAX_POOL), PLAIN(LAYER_DROPOUT), TELLING};
static const struct layer_spec lstm[] = {RECURRENT(LAYER_LSTM, 128, false), TELLING};
static const struct layer_spec gru[] = {RECURRENT(LAYER_GRU, 128, false), TELLING};
static const struct layer_spec char_lstm[] = {EMBEDDING(64), RECURRENT(LAYER_LSTM, 128, true),
                                              TELLING};

struct builtin {
    const char *name;
    const struct layer_spec *layers;
    size_t layer_count;
    enum loss_kind loss;
    /* The inputs it is known for. */
    uint32_t channels, height, width, vocabulary, classes, values;
};

#define LIST(layers_) (layers_), sizeof(layers_) / sizeof(*(layers_))
static const struct builtin builtins[MODEL_KIND_COUNT] = {
    [MODEL_LENET5] = {"lenet5", LIST(lenet5), LOSS_CROSS_ENTROPY, 1, 28, 28, 0, 10, 0},
    [MODEL_MLP] = {"mlp", LIST(mlp), LOSS_CROSS_ENTROPY, 1, 28, 28, 0, 10, 0},
    [MODEL_LOGISTIC] = {"logistic", LIST(one_dense), LOSS_CROSS_ENTROPY, 1, 28, 28, 0, 10, 0},
    [MODEL_LINEAR] = {"linear", LIST(one_dense), LOSS_MSE, 1, 1, 8, 0, 0, 1},
    [MODEL_SVM] = {"svm", LIST(one_dense), LOSS_HINGE, 1, 28, 28, 0, 10, 0},
    [MODEL_CIFAR_CNN] = {"cifar-cnn", LIST(cifar_cnn), LOSS_CROSS_ENTROPY, 3, 32, 32, 0, 10, 0},
    [MODEL_RESNET] = {"resnet", LIST(resnet), LOSS_CROSS_ENTROPY, 3, 32, 32, 0, 10, 0},
    [MODEL_TEXT_CNN] = {"text-cnn", LIST(text_cnn), LOSS_CROSS_ENTROPY, 1, 1, 64, 10000, 2, 0},
    [MODEL_LSTM] = {"lstm", LIST(lstm), LOSS_CROSS_ENTROPY, 1, 28, 28, 0, 10, 0},
    [MODEL_GRU] = {"gru", LIST(gru), LOSS_CROSS_ENTROPY, 1, 28, 28, 0, 10, 0},
    [MODEL_LSTM_FORECAST] = {"lstm-forecast", LIST(lstm), LOSS_MSE, 1, 48, 7, 0, 0, 1},
    [MODEL_GRU_FORECAST] = {"gru-forecast", LIST(gru), LOSS_MSE, 1, 48, 7, 0, 0, 1},
    [MODEL_CHAR_LSTM] = {"char-lstm", LIST(char_lstm), LOSS_CROSS_ENTROPY, 1, 1, 64, 96, 96, 0},
    [MODEL_LAYERS] = {"layers", NULL, 0, LOSS_CROSS_ENTROPY, 1, 28, 28, 0, 10, 0},
};

const char *const model_kind_names[] = {
    "lenet5",        "mlp",          "logistic",  "linear", "svm",
    "cifar-cnn",     "resnet",       "text-cnn",  "lstm",   "gru",
    "lstm-forecast", "gru-forecast", "char-lstm", "layers", NULL};
_Static_assert(sizeof(model_kind_names) / sizeof(*model_kind_names) == MODEL_KIND_COUNT + 1,
               "a name for each kind");

const char *model_kind_name(enum model_kind kind)
{
    ASSERT(kind < MODEL_KIND_COUNT);
    return builtins[kind].name;
}

int model_kind_parse(struct text name, enum model_kind *out_kind, struct error *error)
{
    for (int kind = 0; kind < MODEL_KIND_COUNT; kind++)
        if (text_equal(name, text_of(builtins[kind].name))) {
            *out_kind = (enum model_kind)kind;
            return 0;
        }
    return error_set(error, ERROR_INVALID, "model \"" TEXT_FORMAT "\" is not built in",
                     TEXT_ARGS(name));
}

void model_spec_default(enum model_kind kind, struct model_spec *out_spec)
{
    ASSERT(kind < MODEL_KIND_COUNT);
    const struct builtin *builtin = &builtins[kind];
    memset(out_spec, 0, sizeof(*out_spec));
    out_spec->kind = kind;
    out_spec->loss = builtin->loss;
    out_spec->channels = builtin->channels;
    out_spec->height = builtin->height;
    out_spec->width = builtin->width;
    out_spec->vocabulary = builtin->vocabulary;
    out_spec->classes = builtin->classes;
    out_spec->values = builtin->values;
    ASSERT(builtin->layer_count <= MODEL_LAYERS_MAX);
    out_spec->layer_count = (int64_t)builtin->layer_count;
    if (builtin->layer_count)
        memcpy(out_spec->layers, builtin->layers, sizeof(*builtin->layers) * builtin->layer_count);
}
