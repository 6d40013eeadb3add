#include "runtime/job_model.h"

#include "runtime/job_model_internal.h"
#include "runtime/job_reader_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LAYER(member) offsetof(struct layer_spec, member)
static const struct job_field layer_fields[] = {
    {"type", JOB_FIELD_INDEX, LAYER(type), .help = "What it is: docs/models.md.",
     .is_required = true, .choices = layer_type_names},
    {"outputs", JOB_FIELD_U64, LAYER(outputs),
     .help = "Width of dense, embedding, lstm and gru; channels of conv. The last dense may leave "
             "it out.",
     .minimum = 1, .maximum = 65536},
    {"kernel", JOB_FIELD_U64, LAYER(kernel),
     .help = "Side of a conv or a window; a pool without takes all there is.", .minimum = 1,
     .maximum = 65536},
    {"stride", JOB_FIELD_U64, LAYER(stride), .help = "Of conv: 1 by default; of a pool its kernel.",
     .minimum = 1, .maximum = 64},
    {"pad", JOB_FIELD_U64, LAYER(pad), .help = "Zeros around what a conv sees.", .minimum = 0,
     .maximum = 63},
    {"back", JOB_FIELD_U64, LAYER(back),
     .help = "Of residual: adds what this many layers before it took in.", .minimum = 1,
     .maximum = MODEL_LAYERS_MAX},
    {"partial", JOB_FIELD_BOOL, LAYER(partial),
     .help = "Of a pool: windows may hang over the edge."},
    {"steps", JOB_FIELD_BOOL, LAYER(steps), .help = "Of lstm and gru: gives every step."},
    {"rate", JOB_FIELD_DOUBLE, LAYER(rate), .help = "Of dropout: the share that is dropped.",
     .minimum = 0, .maximum = 1},
    {"alpha", JOB_FIELD_DOUBLE, LAYER(alpha), .help = "Of local_norm.", .minimum = 0,
     .maximum = 100},
    {"beta", JOB_FIELD_DOUBLE, LAYER(beta), .help = "Of local_norm.", .minimum = 0, .maximum = 10},
};
const struct job_table job_layer_table = JOB_TABLE(layer_fields, struct layer_spec);

#define SCHEDULE(member) offsetof(struct job_schedule, member)
static const struct job_field schedule_fields[] = {
    {"name", JOB_FIELD_WORD, SCHEDULE(name), .help = "How the learning rate goes on.",
     .choices = schedule_kind_names},
    {"warmup", JOB_FIELD_U64, SCHEDULE(warmup), .help = "Steps in which it rises to lr.",
     .minimum = 0, .maximum = 1000000000},
    {"period", JOB_FIELD_U64, SCHEDULE(period),
     .help = "Of step: steps between two; of cosine: until it is down.", .minimum = 1,
     .maximum = 1000000000},
    {"factor", JOB_FIELD_DOUBLE, SCHEDULE(factor),
     .help = "Of step: what it is multiplied by; of cosine: where it ends.", .minimum = 0,
     .maximum = 1},
};
static const struct job_table schedule_table = JOB_TABLE(schedule_fields, struct job_schedule);

#define OPTIMIZER(member) offsetof(struct job_optimizer, member)
static const struct job_field optimizer_fields[] = {
    {"name", JOB_FIELD_WORD, OPTIMIZER(name), "sgd", "How steps are taken.",
     .choices = optimizer_kind_names},
    {"lr", JOB_FIELD_DOUBLE, OPTIMIZER(lr), "0.01", "Learning rate.", .minimum = 0, .maximum = 100},
    {"momentum", JOB_FIELD_DOUBLE, OPTIMIZER(momentum), "0", "Momentum, of sgd.", .minimum = 0,
     .maximum = 1},
    {"nesterov", JOB_FIELD_BOOL, OPTIMIZER(nesterov), .help = "Nesterov's momentum, of sgd."},
    {"weight_decay", JOB_FIELD_DOUBLE, OPTIMIZER(weight_decay), "0",
     "L2 penalty; of adamw a decay of its own.", .minimum = 0, .maximum = 1},
    {"beta1", JOB_FIELD_DOUBLE, OPTIMIZER(beta1), .help = "Of adam and adamw; 0.9 by default.",
     .minimum = 0, .maximum = 1},
    {"beta2", JOB_FIELD_DOUBLE, OPTIMIZER(beta2), .help = "Of adam and adamw; 0.999 by default.",
     .minimum = 0, .maximum = 1},
    {"epsilon", JOB_FIELD_DOUBLE, OPTIMIZER(epsilon), .help = "Of adam and adamw; 1e-8 by default.",
     .minimum = 0, .maximum = 1},
    {"clip_norm", JOB_FIELD_DOUBLE, OPTIMIZER(clip_norm),
     .help = "Gradients longer than this are shortened to it.", .minimum = 0, .maximum = 1000000},
    {"schedule", JOB_FIELD_OBJECT, OPTIMIZER(schedule), .help = "How the learning rate goes on.",
     .table = &schedule_table, .is_left_out = true},
};
const struct job_table job_optimizer_table = JOB_TABLE(optimizer_fields, struct job_optimizer);

/* What a worker holds besides the trainer's own: the model it pulled, the one it comes from, its
 * update, and one under way. */
enum { EXCHANGE_VECTORS = 4 };

int job_train_memory(const struct job_train *train, const struct model_spec *model,
                     uint64_t *out_bytes, struct error *error)
{
    struct parameter_table table;
    uint64_t bytes;
    if (model_spec_memory(model, train->batch, &bytes, error) < 0 ||
        model_spec_layout(model, &table, error) < 0)
        return -1;
    const uint64_t states =
        text_is(train->optimizer.name, "sgd") ? train->optimizer.momentum > 0 : 2;
    *out_bytes = bytes + sizeof(float) * table.float_count * (states + EXCHANGE_VECTORS);
    return 0;
}

int job_sync_check_servers(const struct job_sync *sync, const struct model_spec *model,
                           struct error *error)
{
    struct parameter_table table;
    if (model_spec_layout(model, &table, error) < 0)
        return -1;
    if (sync->servers <= table.float_count)
        return 0;
    return error_set(error, ERROR_INVALID,
                     "%" PRIu64 " servers are too many for a model of %zu parameters: each has a "
                     "range of its own",
                     sync->servers, table.float_count);
}

int job_train_check_memory(const struct job_train *train, const struct model_spec *model,
                           int64_t memory_bytes, struct error *error)
{
    struct parameter_table table;
    uint64_t needed;
    if (job_train_memory(train, model, &needed, error) < 0 ||
        model_spec_layout(model, &table, error) < 0)
        return -1;
    if (memory_bytes <= 0 || needed <= (uint64_t)memory_bytes)
        return 0;
    return error_set(error, ERROR_EXHAUSTED,
                     "%" PRIu64 " MiB are too little: a worker takes at least %" PRIu64
                     " MiB for %zu parameters and a batch of %" PRIu64
                     "; give resources.memory more, or a smaller model or batch",
                     (uint64_t)memory_bytes >> 20, (needed >> 20) + 1, table.float_count,
                     train->batch);
}

static int index_of(const char *const *names, struct text name)
{
    for (int i = 0; names[i]; i++)
        if (text_equal(name, text_of(names[i])))
            return i;
    return 0;
}

int job_train_model(const struct job_train *train, const struct dataset_shape *shape,
                    struct model_spec *out_spec, int *out_layer, struct error *error)
{
    enum model_kind kind;
    *out_layer = -1;
    if (model_kind_parse(train->model, &kind, error) < 0)
        return -1;
    model_spec_default(kind, out_spec);
    if (train->layer_count > MODEL_LAYERS_MAX)
        return error_set(error, ERROR_INVALID, "more than %d layers", MODEL_LAYERS_MAX);
    if (train->layer_count) {
        memcpy(out_spec->layers, train->layers, sizeof(*train->layers) * train->layer_count);
        out_spec->layer_count = (int64_t)train->layer_count;
    }
    if (train->loss.size)
        out_spec->loss = (enum loss_kind)index_of(loss_kind_names, train->loss);
    out_spec->channels = shape->channels;
    out_spec->height = shape->height;
    out_spec->width = shape->width;
    out_spec->vocabulary = shape->vocabulary;
    out_spec->classes = shape->classes;
    out_spec->values = shape->values;
    return model_spec_check_layers(out_spec, out_layer, error);
}

struct evaluation_target job_train_target(const struct job_train *train)
{
    const struct job_target *target = &train->target;
    return (struct evaluation_target){
        .accuracy = target->accuracy,
        .loss = target->loss,
        .error = target->error,
        .unit = train->target_deviation,
        .perplexity = target->perplexity,
    };
}

void job_train_diverged_advice(const struct job_train *train, char *out, size_t out_size)
{
    const struct job_optimizer *optimizer = &train->optimizer;
    snprintf(out, out_size, "try a lower optimizer.lr than %g%s%s", optimizer->lr,
             optimizer->clip_norm > 0 ? "" : ", clip_norm: 1",
             optimizer->schedule.warmup > 0 ? "" : ", schedule.warmup");
}

/* A target that can never be reached. */
static int check_target(const struct job_node *root, const char *file_name,
                        const struct job_train *train, struct error *error)
{
    if (train->target.perplexity > 0 && !text_is(train->predict, "next"))
        return job_table_refuse(root, file_name, "train.target.perplexity",
                                "only a model that tells the next token has one: give target.loss",
                                error);
    return 0;
}

void job_train_optimizer(const struct job_train *train, struct optimizer_options *out_options)
{
    const struct job_optimizer *o = &train->optimizer;
    *out_options = (struct optimizer_options){
        .kind = (enum optimizer_kind)index_of(optimizer_kind_names, o->name),
        .lr = o->lr,
        .momentum = o->momentum,
        .is_nesterov = o->nesterov,
        .weight_decay = o->weight_decay,
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .epsilon = o->epsilon,
        .clip_norm = o->clip_norm,
        .schedule = {.kind = (enum schedule_kind)index_of(schedule_kind_names, o->schedule.name),
                     .warmup = o->schedule.warmup,
                     .period = o->schedule.period,
                     .factor = o->schedule.factor},
    };
}

/* At the layer in the file, where the tree has it. */
static int refuse_layer(const struct job_node *root, const char *file_name, int layer,
                        const char *what, struct error *error)
{
    struct job_reader reader = {.file_name = file_name, .error = error};
    const struct job_node *train = job_node_find(root, TEXT("train"));
    const struct job_node *layers = train ? job_node_find(train, TEXT("layers")) : NULL;
    const struct job_node *node = layers ? layers->first_child : NULL;
    for (int i = 0; node && i < layer; i++)
        node = node->next;
    const struct job_place outer = {.name = "train"}, list = {&outer, "layers", 0};
    const struct job_place place = {&list, NULL, (size_t)layer};
    return job_refuse(&reader, node ? node->line : 0, node ? node->column : 0, &place, "%s", what);
}

/* What is told goes with the loss; without a word on it the model is known for one. */
static int check_predict(const struct job_node *root, const char *file_name,
                         struct job_train *train, struct error *error)
{
    const bool is_number = text_is(train->loss, "mse");
    if (!train->predict.size)
        train->predict = is_number                            ? TEXT("number")
                         : text_is(train->model, "char-lstm") ? TEXT("next")
                                                              : TEXT("class");
    if (is_number != text_is(train->predict, "number"))
        return job_table_refuse(root, file_name, "train.predict",
                                "a number is told with loss mse, anything else without", error);
    return 0;
}

static int check_optimizer(const struct job_node *root, const char *file_name,
                           const struct job_train *train, struct error *error)
{
    struct optimizer_options options;
    struct error reason;
    job_train_optimizer(train, &options);
    if (!(options.lr > 0))
        return job_table_refuse(root, file_name, "train.optimizer.lr", "must be above 0", error);
    if (optimizer_options_check(&options, &reason) == 0)
        return 0;
    return job_table_refuse(root, file_name, "train.optimizer", reason.message, error);
}

int job_model_check(const struct job_node *root, const char *file_name, struct job_train *train,
                    struct error *error)
{
    const bool is_own = text_equal(train->model, TEXT("layers"));
    if (train->layer_count && train->model.size && !is_own)
        return job_table_refuse(root, file_name, "train.layers",
                                "a built-in model has its own: give model or layers", error);
    if (train->layer_count)
        train->model = TEXT("layers");
    if (!train->layer_count && (is_own || !train->model.size))
        return job_table_refuse(root, file_name, is_own ? "train.layers" : "train.model",
                                "is missing", error);
    struct model_spec spec;
    struct dataset_shape shape;
    if (!train->loss.size) {
        enum model_kind kind;
        if (model_kind_parse(train->model, &kind, error) < 0)
            return -1;
        model_spec_default(kind, &spec);
        train->loss = text_of(loss_kind_name(spec.loss));
    }
    if (check_predict(root, file_name, train, error) < 0 ||
        check_optimizer(root, file_name, train, error) < 0 ||
        check_target(root, file_name, train, error) < 0)
        return -1;
    int layer = -1;
    struct error reason;
    if (!job_train_shape(train, &shape) ||
        job_train_model(train, &shape, &spec, &layer, &reason) == 0)
        return 0;
    if (train->layer_count && layer >= 0)
        return refuse_layer(root, file_name, layer, reason.message, error);
    return job_table_refuse(root, file_name, train->layer_count ? "train.layers" : "train.model",
                            reason.message, error);
}
