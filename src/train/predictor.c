#include "train/predictor.h"

#include "base/file.h"
#include "base/json_schema.h"
#include "base/memory.h"
#include "train/model.h"
#include "train/words.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    BATCH = 32,
    COLUMNS_SIZE_MAX = 2 << 20,
    FEATURES_MAX = 16384,
    CLASSES_MAX = 65536,
    WORDS_MAX = 1 << 20
};

struct predictor {
    struct model_file *file;
    struct kernel_set *kernels;
    struct model *one, *many; /* for a single input, and for BATCH of them */
    enum predictor_units units;
    struct arena *arena; /* holds the next */
    struct predictor_feature *features;
    uint32_t feature_count;
    const char **classes;
    const char *label; /* NULL: not known */
    bool is_sparse;
    uint32_t class_count;
    bool has_words;
    struct words words;
    struct map known; /* words */
    double target_mean, target_deviation;
};

/* ---- columns.json -----------------------------------------------------------------------------
 */

#define FEATURE(member) offsetof(struct predictor_feature, member)
static const struct json_field feature_fields[] = {
    {"name", JSON_CHARS, FEATURE(name), .is_required = true, .size_max = IMPORT_FEATURE_NAME_SIZE},
    {"mean", JSON_DOUBLE, FEATURE(mean), .is_required = true},
    {"deviation", JSON_DOUBLE, FEATURE(deviation), .is_required = true},
};
static const struct json_schema feature_schema =
    JSON_SCHEMA_LENIENT("feature", feature_fields, struct predictor_feature);

struct columns {
    struct json_array features, classes, words;
    struct text unit, form, label;
    uint64_t buckets;
    double target_mean, target_deviation;
};

#define COLUMNS(member) offsetof(struct columns, member)
static const struct json_field columns_fields[] = {
    {"features", JSON_ARRAY, COLUMNS(features), .size_max = FEATURES_MAX,
     .schema = &feature_schema},
    {"classes", JSON_TEXTS, COLUMNS(classes), .size_max = CLASSES_MAX},
    {"words", JSON_TEXTS, COLUMNS(words), .size_max = WORDS_MAX},
    {"unit", JSON_TEXT, COLUMNS(unit)},
    {"form", JSON_TEXT, COLUMNS(form)},
    {"label", JSON_TEXT, COLUMNS(label)},
    {"buckets", JSON_U64, COLUMNS(buckets)},
    {"target_mean", JSON_DOUBLE, COLUMNS(target_mean)},
    {"target_deviation", JSON_DOUBLE, COLUMNS(target_deviation)},
};
static const struct json_schema columns_schema =
    JSON_SCHEMA_LENIENT("columns", columns_fields, struct columns);

static int columns_path(const char *path, char out[PATH_MAX], struct error *error)
{
    struct stat status;
    const bool is_folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    const char *slash = strrchr(path, '/');
    const int size = is_folder ? snprintf(out, PATH_MAX, "%s/columns.json", path)
                               : snprintf(out, PATH_MAX, "%.*scolumns.json",
                                          slash ? (int)(slash - path) + 1 : 0, path);
    if (size < 0 || size >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the path is too long");
    return 0;
}

/* Texts can be asked about where the tokens they become are all below the model's vocabulary. */
static void words_take(struct predictor *predictor, const struct columns *columns)
{
    const struct model_spec *spec = &predictor->file->spec;
    const bool is_hashed = columns->words.count == 0;
    const uint64_t count = is_hashed ? columns->buckets : columns->words.count;
    if (count == 0 || count + TOKEN_WORD_FIRST > spec->vocabulary || spec->height != 1)
        return;
    predictor->has_words = true;
    predictor->words = (struct words){
        .unit = text_is(columns->unit, import_unit_name(IMPORT_CHARACTERS)) ? IMPORT_CHARACTERS
                                                                            : IMPORT_WORDS,
        .buckets = is_hashed ? (uint32_t)count : 0,
        .known = &predictor->known,
    };
    words_read(predictor->words.unit, &columns->words, &predictor->known);
}

/* What the columns beside the model say, if there are any. */
static int columns_read(struct predictor *predictor, const char *path, struct error *error)
{
    char beside[PATH_MAX];
    struct buffer bytes AUTO_BUFFER;
    struct columns columns = {.target_deviation = 1};
    buffer_init(&bytes, COLUMNS_SIZE_MAX);
    if (columns_path(path, beside, error) < 0)
        return -1;
    if (file_read(beside, &bytes, error) < 0)
        return error->code == ERROR_NOT_FOUND ? 0 : -1;
    if (json_read(predictor->arena, buffer_text(&bytes), &columns_schema, &columns, error) < 0)
        return error_wrap(error, "\"%.100s\"", beside);
    const struct model_spec *spec = &predictor->file->spec;
    const bool fits = spec->channels == 1 && spec->vocabulary == 0 &&
                      columns.features.count == spec->width && columns.features.count > 0;
    if (fits) {
        predictor->features = columns.features.items;
        predictor->feature_count = (uint32_t)columns.features.count;
    }
    if (columns.classes.count == spec->classes) {
        const struct text *names = columns.classes.items;
        predictor->class_count = (uint32_t)columns.classes.count;
        predictor->classes =
            arena_alloc(predictor->arena, (columns.classes.count + 1) * sizeof(char *));
        for (uint32_t i = 0; i < predictor->class_count; i++)
            predictor->classes[i] = arena_copy_string(predictor->arena, names[i]);
    }
    words_take(predictor, &columns);
    predictor->is_sparse = text_is(columns.form, import_form_name(IMPORT_SPARSE));
    if (columns.label.size > 0)
        predictor->label = arena_copy_string(predictor->arena, columns.label);
    if (spec->loss == LOSS_MSE && columns.target_deviation > 0) {
        predictor->target_mean = columns.target_mean;
        predictor->target_deviation = columns.target_deviation;
    }
    return 0;
}

/* ---- life -------------------------------------------------------------------------------------
 */

static int models_open(struct predictor *predictor, struct error *error)
{
    struct model_options options = {.spec = predictor->file->spec, .batch = 1};
    if (kernel_set_open(NULL, &predictor->kernels, error) < 0 ||
        model_open(predictor->kernels, &options, &predictor->one, error) < 0)
        return -1;
    options.batch = BATCH;
    if (model_open(predictor->kernels, &options, &predictor->many, error) < 0)
        return -1;
    const size_t size = predictor->file->parameter_count * sizeof(float);
    memcpy(model_parameters(predictor->one), predictor->file->parameters, size);
    memcpy(model_parameters(predictor->many), predictor->file->parameters, size);
    return 0;
}

int predictor_open(const char *path, bool is_raw, struct predictor **out_predictor,
                   struct error *error)
{
    AUTO(predictor) struct predictor *predictor = memory_zeroed(1, sizeof(*predictor));
    predictor->arena = arena_new(0);
    map_init(&predictor->known);
    predictor->target_deviation = 1;
    if (model_file_open(path, &predictor->file, error) < 0 ||
        columns_read(predictor, path, error) < 0 || models_open(predictor, error) < 0)
        return -1;
    if (is_raw)
        predictor->target_mean = 0, predictor->target_deviation = 1;
    else if (predictor->features)
        predictor->units = PREDICTOR_UNITS_COLUMNS;
    else if (predictor->file->deviation > 0 && predictor->file->spec.vocabulary == 0)
        predictor->units = PREDICTOR_UNITS_BYTES;
    *out_predictor = TAKE(predictor);
    return 0;
}

void predictor_free(struct predictor *predictor)
{
    if (!predictor)
        return;
    model_free(predictor->one);
    model_free(predictor->many);
    kernel_set_free(predictor->kernels);
    model_file_free(predictor->file);
    map_done(&predictor->known);
    arena_free(predictor->arena);
    free(predictor);
}

/* ---- what it is -------------------------------------------------------------------------------
 */

const struct model_spec *predictor_spec(const struct predictor *predictor)
{
    return &predictor->file->spec;
}

size_t predictor_parameter_count(const struct predictor *predictor)
{
    return predictor->file->parameter_count;
}

enum predictor_units predictor_units(const struct predictor *predictor)
{
    return predictor->units;
}

const char *predictor_units_name(enum predictor_units units)
{
    static const char *const names[] = {"model", "bytes", "columns"};
    return names[units];
}

size_t predictor_input_size(const struct predictor *predictor)
{
    return model_input_size(predictor->one);
}

uint32_t predictor_outputs(const struct predictor *predictor)
{
    const struct model_spec *spec = &predictor->file->spec;
    return spec->loss == LOSS_MSE        ? (uint32_t)spec->values
           : spec->loss == LOSS_LOGISTIC ? 1
                                         : (uint32_t)spec->classes;
}

uint32_t predictor_steps(const struct predictor *predictor)
{
    return model_output_rows(predictor->one) > 1 ? model_output_rows(predictor->one) : 0;
}

const struct predictor_feature *predictor_features(const struct predictor *predictor,
                                                   uint32_t *out_count)
{
    *out_count = predictor->feature_count;
    return predictor->features;
}

const char *predictor_class_name(const struct predictor *predictor, uint32_t index)
{
    return index < predictor->class_count ? predictor->classes[index] : NULL;
}

const char *predictor_label_name(const struct predictor *predictor)
{
    return predictor->label;
}

bool predictor_is_sparse(const struct predictor *predictor)
{
    return predictor->is_sparse;
}

bool predictor_take_text(const struct predictor *predictor, struct text text, float *out_input)
{
    if (predictor->has_words)
        words_tokens(&predictor->words, text, predictor_input_size(predictor), out_input);
    return predictor->has_words;
}

bool predictor_takes_text(const struct predictor *predictor)
{
    return predictor->has_words;
}

bool predictor_is_whole(const struct predictor *predictor, size_t index)
{
    const struct model_spec *spec = &predictor->file->spec;
    return spec->vocabulary > 0 && index < spec->width; /* of a sparse row: its places */
}

/* ---- what it tells ----------------------------------------------------------------------------
 */

static void scale(const struct predictor *predictor, float *inputs, size_t count)
{
    if (predictor->units == PREDICTOR_UNITS_BYTES) {
        const float mean = (float)predictor->file->mean;
        const float factor = (float)(1 / predictor->file->deviation);
        for (size_t i = 0; i < count; i++)
            inputs[i] = (inputs[i] / 255 - mean) * factor;
    } else if (predictor->units == PREDICTOR_UNITS_COLUMNS) {
        for (size_t i = 0; i < count; i++) {
            const struct predictor_feature *feature =
                &predictor->features[i % predictor->feature_count];
            const double deviation = feature->deviation > 0 ? feature->deviation : 1;
            inputs[i] = (float)(((double)inputs[i] - feature->mean) / deviation);
        }
    }
}

void predictor_run(struct predictor *predictor, float *inputs, uint32_t count, float *out_outputs)
{
    const size_t each = predictor_input_size(predictor);
    const size_t told = (size_t)model_output_rows(predictor->one) * predictor_outputs(predictor);
    scale(predictor, inputs, count * each);
    for (uint32_t done = 0; done < count;) {
        struct model *model = count - done == 1 ? predictor->one : predictor->many;
        const uint32_t room = model_batch(model);
        const uint32_t rows = count - done < room ? count - done : room;
        memcpy(model_input(model), inputs + done * each, rows * each * sizeof(float));
        /* Rows that nobody asked for hold what the last ones did, and are not looked at. */
        memcpy(out_outputs + done * told, model_predict(model), rows * told * sizeof(float));
        done += rows;
    }
    if (predictor->file->spec.loss == LOSS_MSE)
        for (size_t i = 0; i < count * told; i++)
            out_outputs[i] = (float)((double)out_outputs[i] * predictor->target_deviation +
                                     predictor->target_mean);
}

uint32_t predictor_class(const struct predictor *predictor, const float *outputs)
{
    const uint32_t count = predictor_outputs(predictor);
    if (count == 1) /* two classes by one output */
        return outputs[0] > 0;
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (outputs[i] > outputs[best])
            best = i;
    return best;
}

bool predictor_probabilities(const struct predictor *predictor, float *outputs)
{
    const enum loss_kind loss = predictor->file->spec.loss;
    const uint32_t count = predictor_outputs(predictor);
    if (loss == LOSS_LOGISTIC)
        outputs[0] = 1 / (1 + expf(-outputs[0]));
    if (loss != LOSS_CROSS_ENTROPY)
        return loss == LOSS_LOGISTIC;
    float largest = outputs[0], sum = 0;
    for (uint32_t i = 1; i < count; i++)
        largest = outputs[i] > largest ? outputs[i] : largest;
    for (uint32_t i = 0; i < count; i++)
        sum += outputs[i] = expf(outputs[i] - largest);
    for (uint32_t i = 0; i < count; i++)
        outputs[i] /= sum;
    return true;
}
