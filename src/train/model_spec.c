#include "train/model_spec.h"

#include "base/assert.h"
#include "train/layer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    SIDE_MAX = 1 << 14,
    CHANNELS_MAX = 4096,
    WIDTH_MAX = 1 << 24, /* of a row of a table */
    CLASSES_MAX = 1 << 16,
    VOCABULARY_MAX = 1 << 20,
    PLACES_MAX = 1 << 24, /* of a sparse row: a float holds any exactly */
    ENTRIES_MAX = 1 << 16,
    VALUES_MAX = 4096,
    FLOATS_MAX = 1 << 26,
};

const char *const loss_kind_names[] = {"cross_entropy", "mse", "hinge", "logistic", NULL};
_Static_assert(sizeof(loss_kind_names) / sizeof(*loss_kind_names) == LOSS_KIND_COUNT + 1,
               "a name for each loss");

const char *loss_kind_name(enum loss_kind kind)
{
    ASSERT(kind < LOSS_KIND_COUNT);
    return loss_kind_names[kind];
}

uint32_t model_spec_input_shape(const struct model_spec *spec,
                                uint64_t out_shape[MODEL_INPUT_RANK_MAX])
{
    const uint64_t all[] = {spec->channels, spec->height, spec->width};
    const int first = spec->layers[0].type;
    const bool is_row = spec->channels == 1 && spec->height == 1;
    const bool is_sequence = spec->channels == 1 && !is_row &&
                             (first == LAYER_LSTM || first == LAYER_GRU || spec->vocabulary > 0);
    const uint32_t rank = is_row ? 1 : is_sequence ? 2 : 3;
    for (uint32_t i = 0; i < rank; i++)
        out_shape[i] = all[MODEL_INPUT_RANK_MAX - rank + i];
    return rank;
}

bool model_spec_equal(const struct model_spec *left, const struct model_spec *right)
{
    if (left->kind != right->kind || left->loss != right->loss ||
        left->channels != right->channels || left->height != right->height ||
        left->width != right->width || left->vocabulary != right->vocabulary ||
        left->classes != right->classes || left->values != right->values ||
        left->layer_count != right->layer_count)
        return false;
    for (int64_t i = 0; i < left->layer_count; i++)
        if (!layer_spec_equal(&left->layers[i], &right->layers[i]))
            return false;
    return true;
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
    if (spec->kind >= MODEL_KIND_COUNT || spec->loss >= LOSS_KIND_COUNT)
        return error_set(error, ERROR_INVALID, "model: kind %d or loss %d does not exist",
                         (int)spec->kind, (int)spec->loss);
    const bool is_row = spec->channels == 1 && spec->height == 1;
    const bool is_sparse = spec->vocabulary && spec->channels == 1 && spec->height == 2;
    if (check_size("channels", spec->channels, 1, CHANNELS_MAX, error) < 0 ||
        check_size("height", spec->height, 1, SIDE_MAX, error) < 0 ||
        check_size("width", spec->width, 1,
                   is_row      ? WIDTH_MAX
                   : is_sparse ? ENTRIES_MAX
                               : SIDE_MAX,
                   error) < 0 ||
        check_size("vocabulary", spec->vocabulary, 0, is_sparse ? PLACES_MAX : VOCABULARY_MAX,
                   error) < 0)
        return -1;
    if (spec->vocabulary && !is_sparse && !is_row)
        return error_set(error, ERROR_INVALID,
                         "model: tokens come as one row, sparse rows as two: places and numbers");
    if (spec->channels * spec->height * spec->width > TENSOR_ELEMENTS_MAX)
        return error_set(error, ERROR_INVALID, "model: an input is too large");
    if (spec->loss == LOSS_MSE && spec->values == 0)
        return error_set(error, ERROR_INVALID, "model: loss mse tells numbers, not classes");
    if (spec->loss == LOSS_MSE)
        return check_size("values", spec->values, 1, VALUES_MAX, error);
    return check_size("classes", spec->classes, 2, spec->loss == LOSS_LOGISTIC ? 2 : CLASSES_MAX,
                      error);
}

static bool is_state(const struct parameter *parameter)
{
    return parameter->role == PARAMETER_RUNNING_MEAN ||
           parameter->role == PARAMETER_RUNNING_VARIANCE;
}

static int table_add(struct parameter_table *table, const struct layer_plan *plan,
                     const struct parameter *described, struct error *error)
{
    ASSERT(table->count < MODEL_PARAMETER_TABLE_MAX);
    struct parameter *parameter = &table->items[table->count];
    *parameter = *described;
    snprintf(parameter->name, sizeof(parameter->name), "%.15s.%.15s", plan->name, described->name);
    parameter->count = 1;
    for (uint32_t i = 0; i < parameter->rank; i++) {
        parameter->count *= parameter->shape[i];
        if (parameter->count > FLOATS_MAX)
            break;
    }
    table->float_count += parameter->count;
    if (table->float_count > FLOATS_MAX)
        return error_set(error, ERROR_INVALID, "model: more than %d parameters", FLOATS_MAX);
    table->count++;
    return 0;
}

/* What is learned comes first, so that an optimizer sees one vector; states come behind. */
static void table_place(struct parameter_table *table)
{
    size_t offset = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < table->count; i++)
            if (is_state(&table->items[i]) == (pass == 1)) {
                table->items[i].offset = offset;
                offset += table->items[i].count;
            }
        if (pass == 0)
            table->learned_count = offset;
    }
    ASSERT(offset == table->float_count);
}

static int layout(const struct model_spec *spec, struct parameter_table *table, int *out_layer,
                  struct error *error)
{
    struct layer_plan plans[LAYERS_MAX];
    uint32_t count = 0;
    *out_layer = -1;
    if (check_sizes(spec, error) < 0)
        return -1;
    if (layer_plan_all(spec, plans, &count, out_layer, error) < 0)
        return error_wrap(error, "%s", model_kind_name(spec->kind));
    memset(table, 0, sizeof(*table));
    for (uint32_t i = 0; i < count; i++) {
        struct parameter described[LAYER_PARAMETERS_MAX];
        const uint32_t parts =
            plans[i].kind->describe ? plans[i].kind->describe(&plans[i], described) : 0;
        for (uint32_t k = 0; k < parts; k++)
            if (table_add(table, &plans[i], &described[k], error) < 0) {
                *out_layer = (int)i;
                return -1;
            }
    }
    table_place(table);
    return 0;
}

int model_spec_layout(const struct model_spec *spec, struct parameter_table *out_table,
                      struct error *error)
{
    int layer;
    struct parameter_table table;
    if (layout(spec, &table, &layer, error) < 0)
        return -1;
    *out_table = table;
    return 0;
}

int model_spec_memory(const struct model_spec *spec, uint64_t batch, uint64_t *out_bytes,
                      struct error *error)
{
    struct layer_plan plans[LAYERS_MAX];
    struct parameter_table table;
    uint32_t count = 0;
    int layer;
    if (layout(spec, &table, &layer, error) < 0 ||
        layer_plan_all(spec, plans, &count, &layer, error) < 0)
        return -1;
    uint64_t each = spec->channels * spec->height * spec->width; /* floats of one input */
    for (uint32_t i = 0; i < count; i++)
        if (!plans[i].kind->is_in_place)
            each += 2 * (uint64_t)layer_shape_size(plans[i].output);
    *out_bytes = sizeof(float) * (2 * table.float_count + batch * each);
    return 0;
}

int model_spec_check(const struct model_spec *spec, struct error *error)
{
    int layer;
    return model_spec_check_layers(spec, &layer, error);
}

int model_spec_check_layers(const struct model_spec *spec, int *out_layer, struct error *error)
{
    struct parameter_table table;
    return layout(spec, &table, out_layer, error);
}

_Static_assert(sizeof(enum model_kind) == sizeof(int) && sizeof(enum loss_kind) == sizeof(int),
               "JSON_CHOICE fills an int");
_Static_assert(offsetof(struct model_spec, layers) ==
                   offsetof(struct model_spec, layer_count) + sizeof(int64_t),
               "JSON_LIST wants the items right behind their count");

#define AT(member) offsetof(struct model_spec, member)
static const struct json_field spec_fields[] = {
    {"kind", JSON_CHOICE, AT(kind), .is_required = true, .choices = model_kind_names},
    {"loss", JSON_CHOICE, AT(loss), .is_required = true, .choices = loss_kind_names},
    {"channels", JSON_U64, AT(channels), .is_required = true},
    {"height", JSON_U64, AT(height), .is_required = true},
    {"width", JSON_U64, AT(width), .is_required = true},
    {"vocabulary", JSON_U64, AT(vocabulary), .is_zero_omitted = true},
    {"classes", JSON_U64, AT(classes), .is_zero_omitted = true},
    {"values", JSON_U64, AT(values), .is_zero_omitted = true},
    {"layers", JSON_LIST, AT(layer_count), .is_required = true, .size_max = MODEL_LAYERS_MAX,
     .schema = &layer_spec_schema},
};
static const struct json_schema spec_schema = JSON_SCHEMA("model", spec_fields, struct model_spec);

void model_spec_write(struct json_writer *writer, const struct model_spec *spec)
{
    json_write(writer, &spec_schema, spec);
}

int model_spec_read(struct arena *arena, struct text json, struct model_spec *out_spec,
                    struct error *error)
{
    struct model_spec spec;
    memset(&spec, 0, sizeof(spec));
    if (json_read(arena, json, &spec_schema, &spec, error) < 0 ||
        model_spec_check(&spec, error) < 0)
        return -1;
    *out_spec = spec;
    return 0;
}
