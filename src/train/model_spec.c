#include "train/model_spec.h"

#include "base/assert.h"
#include "train/layer.h"

#include <inttypes.h>
#include <string.h>

enum {
    SIDE_MAX = 1024,
    CHANNELS_MAX = 64,
    WIDTH_MAX = 1 << 16, /* of a dense layer, and of classes */
    FLOATS_MAX = 1 << 26,
};

const char *const model_kind_names[] = {"lenet5", "mlp", "logistic", NULL};
_Static_assert(sizeof(model_kind_names) / sizeof(*model_kind_names) == MODEL_KIND_COUNT + 1,
               "a name for each kind");

const char *model_kind_name(enum model_kind kind)
{
    ASSERT(kind < MODEL_KIND_COUNT);
    return model_kind_names[kind];
}

int model_kind_parse(struct text name, enum model_kind *out_kind, struct error *error)
{
    for (int kind = 0; kind < MODEL_KIND_COUNT; kind++)
        if (text_equal(name, text_of(model_kind_names[kind]))) {
            *out_kind = (enum model_kind)kind;
            return 0;
        }
    return error_set(error, ERROR_INVALID,
                     "model \"" TEXT_FORMAT "\" is not one of lenet5, mlp, logistic",
                     TEXT_ARGS(name));
}

void model_spec_default(enum model_kind kind, struct model_spec *out_spec)
{
    *out_spec =
        (struct model_spec){.kind = kind, .channels = 1, .height = 28, .width = 28, .classes = 10};
    if (kind != MODEL_MLP)
        return;
    out_spec->hidden_count = 2;
    out_spec->hidden[0] = 256;
    out_spec->hidden[1] = 128;
}

bool model_spec_equal(const struct model_spec *left, const struct model_spec *right)
{
    if (left->kind != right->kind || left->channels != right->channels ||
        left->height != right->height || left->width != right->width ||
        left->classes != right->classes || left->hidden_count != right->hidden_count)
        return false;
    for (uint64_t i = 0; i < left->hidden_count; i++)
        if (left->hidden[i] != right->hidden[i])
            return false;
    return true;
}

/* Plans are made in order; the caller has room for LAYERS_MAX. */
struct planner {
    struct layer_plan *plans;
    uint32_t count;
};

static struct layer_plan *plan_add(struct planner *planner, const struct layer_kind *kind,
                                   const char *prefix, uint32_t number)
{
    ASSERT(planner->count < LAYERS_MAX);
    struct layer_plan *plan = &planner->plans[planner->count++];
    *plan = (struct layer_plan){.kind = kind};
    snprintf(plan->name, sizeof(plan->name), "%s%u", prefix, number);
    return plan;
}

static void plan_dense(struct planner *planner, uint32_t number, uint64_t outputs, bool is_last)
{
    struct layer_plan *plan = plan_add(planner, &layer_dense, "fc", number);
    plan->outputs = (uint32_t)outputs;
    plan->init = is_last ? LAYER_INIT_GLOROT : LAYER_INIT_HE;
    if (!is_last)
        plan_add(planner, &layer_activation, "relu_fc", number)->activation = ACTIVATION_RELU;
}

/* Pooling stands before the ReLU: max and ReLU commute, and a quarter is left to compute. */
static void plan_conv(struct planner *planner, uint32_t number, uint32_t outputs, uint32_t pad)
{
    struct layer_plan *conv = plan_add(planner, &layer_conv, "conv", number);
    conv->outputs = outputs;
    conv->kernel = 5;
    conv->pad = pad;
    conv->init = LAYER_INIT_HE;
    struct layer_plan *pool = plan_add(planner, &layer_pool, "pool", number);
    pool->pool = POOL_MAX;
    pool->pool_size = 2;
    plan_add(planner, &layer_activation, "relu", number)->activation = ACTIVATION_RELU;
}

uint32_t layer_plans_of(const struct model_spec *spec, struct layer_plan plans[LAYERS_MAX])
{
    struct planner planner = {.plans = plans};
    switch (spec->kind) {
    case MODEL_LENET5:
        plan_conv(&planner, 1, 6, 2);
        plan_conv(&planner, 2, 16, 0);
        plan_dense(&planner, 1, 120, /* is_last= */ false);
        plan_dense(&planner, 2, 84, /* is_last= */ false);
        plan_dense(&planner, 3, spec->classes, /* is_last= */ true);
        break;
    case MODEL_MLP:
        for (uint32_t i = 0; i < spec->hidden_count; i++)
            plan_dense(&planner, i + 1, spec->hidden[i], /* is_last= */ false);
        plan_dense(&planner, (uint32_t)spec->hidden_count + 1, spec->classes, /* is_last= */ true);
        break;
    case MODEL_LOGISTIC:
        plan_dense(&planner, 1, spec->classes, /* is_last= */ true);
        break;
    case MODEL_KIND_COUNT:
        ASSERT(false);
    }
    return planner.count;
}

static int check_size(const char *name, uint64_t size, uint64_t least, uint64_t most,
                      struct error *error)
{
    if (size < least || size > most)
        return error_set(error, ERROR_INVALID,
                         "model: %s %" PRIu64 " is not from %" PRIu64 " to %" PRIu64, name, size,
                         least, most);
    return 0;
}

static int check_sizes(const struct model_spec *spec, struct error *error)
{
    if (spec->kind >= MODEL_KIND_COUNT)
        return error_set(error, ERROR_INVALID, "model: kind %d does not exist", (int)spec->kind);
    if (check_size("channels", spec->channels, 1, CHANNELS_MAX, error) < 0 ||
        check_size("height", spec->height, 1, SIDE_MAX, error) < 0 ||
        check_size("width", spec->width, 1, SIDE_MAX, error) < 0 ||
        check_size("classes", spec->classes, 2, WIDTH_MAX, error) < 0)
        return -1;
    const bool is_mlp = spec->kind == MODEL_MLP;
    if (check_size("number of hidden layers", spec->hidden_count, is_mlp ? 1 : 0,
                   is_mlp ? MODEL_HIDDEN_MAX : 0, error) < 0)
        return -1;
    for (uint64_t i = 0; i < spec->hidden_count; i++)
        if (check_size("hidden size", spec->hidden[i], 1, WIDTH_MAX, error) < 0)
            return -1;
    return 0;
}

static int table_add(struct parameter_table *table, const struct parameter *shape,
                     const char *layer, const char *suffix, struct error *error)
{
    ASSERT(table->count < MODEL_PARAMETER_TABLE_MAX);
    struct parameter *parameter = &table->items[table->count];
    *parameter = *shape;
    snprintf(parameter->name, sizeof(parameter->name), "%s.%s", layer, suffix);
    parameter->count = 1;
    for (uint32_t i = 0; i < parameter->rank; i++)
        parameter->count *= parameter->shape[i];
    parameter->offset = table->float_count;
    table->float_count += parameter->count;
    if (table->float_count > FLOATS_MAX)
        return error_set(error, ERROR_INVALID, "model: more than %d parameters", FLOATS_MAX);
    table->count++;
    return 0;
}

int model_spec_layout(const struct model_spec *spec, struct parameter_table *out_table,
                      struct error *error)
{
    if (check_sizes(spec, error) < 0)
        return -1;
    struct layer_plan plans[LAYERS_MAX];
    const uint32_t count = layer_plans_of(spec, plans);
    struct layer_shape shape = {(uint32_t)spec->channels, (uint32_t)spec->height,
                                (uint32_t)spec->width};
    struct parameter_table table = {0};
    for (uint32_t i = 0; i < count; i++) {
        struct parameter weights = {0};
        struct layer_shape output;
        if (plans[i].kind->infer(&plans[i], shape, &output, error) < 0)
            return error_wrap(error, "%s", model_kind_name(spec->kind));
        plans[i].kind->describe_weights(&plans[i], shape, &weights);
        shape = output;
        if (weights.rank == 0)
            continue;
        const struct parameter bias = {.rank = 1, .shape = {plans[i].outputs}};
        if (table_add(&table, &weights, plans[i].name, "weight", error) < 0 ||
            table_add(&table, &bias, plans[i].name, "bias", error) < 0)
            return -1;
    }
    *out_table = table;
    return 0;
}

int model_spec_check(const struct model_spec *spec, struct error *error)
{
    struct parameter_table table;
    return model_spec_layout(spec, &table, error);
}

/* The same fields, with the list of hidden sizes as JSON of its own. */
struct spec_json {
    int kind;
    uint64_t channels, height, width, classes;
    struct text hidden;
};

static const struct json_field spec_fields[] = {
    {"kind", JSON_CHOICE, offsetof(struct spec_json, kind), .is_required = true,
     .choices = model_kind_names},
    {"channels", JSON_U64, offsetof(struct spec_json, channels), .is_required = true},
    {"height", JSON_U64, offsetof(struct spec_json, height), .is_required = true},
    {"width", JSON_U64, offsetof(struct spec_json, width), .is_required = true},
    {"classes", JSON_U64, offsetof(struct spec_json, classes), .is_required = true},
    {"hidden", JSON_ANY, offsetof(struct spec_json, hidden), .size_max = 256},
};
static const struct json_schema spec_schema = JSON_SCHEMA("model", spec_fields, struct spec_json);

void model_spec_write(struct json_writer *writer, const struct model_spec *spec)
{
    json_object_begin(writer);
    json_field_string(writer, "kind", model_kind_name(spec->kind));
    json_field_u64(writer, "channels", spec->channels);
    json_field_u64(writer, "height", spec->height);
    json_field_u64(writer, "width", spec->width);
    json_field_u64(writer, "classes", spec->classes);
    json_key(writer, "hidden");
    json_array_begin(writer);
    for (uint64_t i = 0; i < spec->hidden_count; i++)
        json_u64(writer, spec->hidden[i]);
    json_array_end(writer);
    json_object_end(writer);
}

/* "[256,128]", as the JSON parser printed it. */
static int parse_hidden(struct text json, struct model_spec *spec, struct error *error)
{
    if (json.size < 2 || json.data[0] != '[' || json.data[json.size - 1] != ']')
        return error_set(error, ERROR_INVALID, "model.hidden: a list of sizes expected");
    struct text rest = {json.data + 1, json.size - 2};
    while (rest.size > 0) {
        struct text item, tail = {0};
        if (!text_cut(rest, ',', &item, &tail))
            tail = (struct text){0};
        rest = tail;
        if (spec->hidden_count == MODEL_HIDDEN_MAX)
            return error_set(error, ERROR_INVALID, "model.hidden: more than %d sizes",
                             MODEL_HIDDEN_MAX);
        if (text_parse_u64(text_trim(item), &spec->hidden[spec->hidden_count], error) < 0)
            return error_wrap(error, "model.hidden");
        spec->hidden_count++;
    }
    return 0;
}

int model_spec_read(struct arena *arena, struct text json, struct model_spec *out_spec,
                    struct error *error)
{
    struct spec_json read = {.hidden = TEXT("[]")};
    if (json_read(arena, json, &spec_schema, &read, error) < 0)
        return -1;
    struct model_spec spec = {
        .kind = (enum model_kind)read.kind,
        .channels = read.channels,
        .height = read.height,
        .width = read.width,
        .classes = read.classes,
    };
    if (parse_hidden(read.hidden, &spec, error) < 0 || model_spec_check(&spec, error) < 0)
        return -1;
    *out_spec = spec;
    return 0;
}
