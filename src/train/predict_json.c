#include "train/predict_json.h"

#include "base/assert.h"
#include "train/csv_record.h"

#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 8, PLACE_SIZE = 96 };

const char *const predict_verb_names[] = {"predict", "classify", "regress", NULL};

/* One input being read. */
struct reading {
    const struct predictor *predictor;
    uint64_t shape[MODEL_INPUT_RANK_MAX];
    uint32_t rank;
    float *out; /* of this input */
    size_t filled;
    char place[PLACE_SIZE]; /* "instances[2]" */
};

static const char *shape_text(const struct reading *reading, char *out, size_t out_size)
{
    size_t used = 0;
    for (uint32_t i = 0; i < reading->rank && used < out_size; i++)
        used += (size_t)snprintf(out + used, out_size - used, "%s%llu", i ? ", " : "[",
                                 (unsigned long long)reading->shape[i]);
    if (used + 1 < out_size)
        snprintf(out + used, out_size - used, "]");
    return out;
}

static int take_number(struct reading *reading, json_object *value, struct error *error)
{
    const json_type type = json_object_get_type(value);
    if (type != json_type_int && type != json_type_double)
        return error_set(error, ERROR_INVALID, "%s: a number is wanted, not %s", reading->place,
                         value ? json_type_to_name(type) : "null");
    const double number = json_object_get_double(value);
    const double most = (double)predictor_spec(reading->predictor)->vocabulary;
    if (predictor_is_whole(reading->predictor, reading->filled) &&
        (number != floor(number) || number < 0 || number >= most))
        return error_set(error, ERROR_INVALID, "%s: %g is no whole number below %g", reading->place,
                         number, most);
    if (!isfinite((float)number))
        return error_set(error, ERROR_INVALID, "%s: a number is too large", reading->place);
    reading->out[reading->filled++] = (float)number;
    return 0;
}

/* The list at depth `depth` of the shape. */
static int take_list(struct reading *reading, json_object *value, uint32_t depth,
                     struct error *error)
{
    char shape[64];
    if (!json_object_is_type(value, json_type_array))
        return error_set(error, ERROR_INVALID, "%s: a list of %llu is wanted: an input is %s",
                         reading->place, (unsigned long long)reading->shape[depth],
                         shape_text(reading, shape, sizeof(shape)));
    const size_t count = json_object_array_length(value);
    const size_t all = predictor_input_size(reading->predictor);
    /* All numbers in one list will do, too. */
    const bool is_flat = depth == 0 && reading->rank > 1 && count == all && count > 0 &&
                         !json_object_is_type(json_object_array_get_idx(value, 0), json_type_array);
    if (!is_flat && count != reading->shape[depth])
        return error_set(error, ERROR_INVALID,
                         "%s: %zu values where the model takes %llu: an input is %s",
                         reading->place, count, (unsigned long long)reading->shape[depth],
                         shape_text(reading, shape, sizeof(shape)));
    const size_t place_size = strlen(reading->place);
    for (size_t i = 0; i < count; i++) {
        json_object *item = json_object_array_get_idx(value, i);
        snprintf(reading->place + place_size, PLACE_SIZE - place_size, "[%zu]", i);
        if ((is_flat || depth + 1 == reading->rank
                 ? take_number(reading, item, error)
                 : take_list(reading, item, depth + 1, error)) < 0)
            return -1;
    }
    reading->place[place_size] = '\0';
    return 0;
}

/* The size of COLUMN where `name` is the place "COLUMN=WORD" of a category and `value` has COLUMN;
 * else 0. */
static size_t category_of(json_object *value, const char *name)
{
    char column[IMPORT_FEATURE_NAME_SIZE];
    for (const char *at = strchr(name, '='); at; at = strchr(at + 1, '=')) {
        const size_t size = (size_t)(at - name);
        memcpy(column, name, size);
        column[size] = '\0';
        if (size > 0 && json_object_object_get_ex(value, column, NULL))
            return size;
    }
    return 0;
}

/* {"COLUMN": "word"}: 1 at the place of the word, 0 at the column's others; a missing word has
 * none. `features` begins with the column's first place; gives how many it has, or -1. */
static int take_category(struct reading *reading, json_object *value,
                         const struct predictor_feature *features, uint32_t count,
                         size_t column_size, struct error *error)
{
    char column[IMPORT_FEATURE_NAME_SIZE];
    json_object *given;
    memcpy(column, features->name, column_size);
    column[column_size] = '\0';
    json_object_object_get_ex(value, column, &given);
    if (json_object_is_type(given, json_type_array) || json_object_is_type(given, json_type_object))
        return error_set(error, ERROR_INVALID, "%s: \"%.64s\": a word is wanted", reading->place,
                         column);
    const char *word = given ? json_object_get_string(given) : "";
    bool is_known = csv_is_missing(text_of(word));
    uint32_t used = 0;
    for (; used < count; used++) {
        const char *name = features[used].name;
        if (strncmp(name, column, column_size) != 0 || name[column_size] != '=')
            break;
        const bool is_it = strcmp(name + column_size + 1, word) == 0;
        is_known = is_known || is_it;
        reading->out[reading->filled++] = is_it ? 1 : 0;
    }
    if (!is_known)
        return error_set(error, ERROR_INVALID,
                         "%s: \"%.64s\": the model has learnt no word \"%.64s\"", reading->place,
                         column, word);
    return (int)used;
}

/* {"COLUMN": number, ...}, in any order; of categories also words. */
static int take_columns(struct reading *reading, json_object *value, struct error *error)
{
    uint32_t count;
    int names = 0;
    const struct predictor_feature *features = predictor_features(reading->predictor, &count);
    if (!features || reading->rank != 1)
        return error_set(error, ERROR_INVALID,
                         "%s: the model's columns have no names: give a list, or {\"input\": ...}",
                         reading->place);
    for (uint32_t i = 0; i < count; names++) {
        const char *name = features[i].name;
        json_object *number;
        if (json_object_object_get_ex(value, name, &number)) {
            if (take_number(reading, number, error) < 0)
                return error_wrap(error, "\"%.64s\"", name);
            i++;
            continue;
        }
        const size_t column_size = category_of(value, name);
        if (column_size == 0)
            return error_set(error, ERROR_INVALID, "%s: \"%.64s\" is missing", reading->place,
                             name);
        const int used = take_category(reading, value, features + i, count - i, column_size, error);
        if (used < 0)
            return -1;
        i += (uint32_t)used;
    }
    if (json_object_object_length(value) != names)
        return error_set(error, ERROR_INVALID, "%s: %d names where the model has %d columns",
                         reading->place, json_object_object_length(value), names);
    return 0;
}

static int take_input(struct reading *reading, json_object *value, struct error *error)
{
    json_object *named;
    if (!json_object_is_type(value, json_type_object))
        return take_list(reading, value, 0, error);
    if (json_object_object_get_ex(value, "b64", &named))
        return error_set(error, ERROR_INVALID, "%s: the model takes numbers, not b64",
                         reading->place);
    if (json_object_object_length(value) == 1 && json_object_object_get_ex(value, "input", &named))
        return take_list(reading, named, 0, error);
    return take_columns(reading, value, error);
}

/* The list of inputs, and under which name it came. */
static int find_inputs(json_object *root, enum predict_verb verb, json_object **out_inputs,
                       const char **out_name, struct error *error)
{
    static const char *const names[PREDICT_VERB_COUNT][2] = {
        [PREDICT] = {"instances", "inputs"}, [CLASSIFY] = {"examples"}, [REGRESS] = {"examples"}};
    json_object *found[2] = {NULL, NULL};
    if (!json_object_is_type(root, json_type_object))
        return error_set(error, ERROR_INVALID, "the body is no JSON object");
    for (int i = 0; i < 2 && names[verb][i]; i++)
        json_object_object_get_ex(root, names[verb][i], &found[i]);
    if (found[0] && found[1])
        return error_set(error, ERROR_INVALID, "give \"instances\" or \"inputs\", not both");
    const int place = found[1] ? 1 : 0;
    if (!found[place])
        return error_set(error, ERROR_INVALID,
                         verb == PREDICT ? "\"instances\" is missing, or \"inputs\""
                                         : "\"examples\" is missing");
    *out_inputs = found[place];
    *out_name = names[verb][place];
    json_object *inner;
    if (place == 1 && json_object_is_type(found[1], json_type_object) &&
        json_object_object_get_ex(found[1], "input", &inner))
        *out_inputs = inner;
    if (!json_object_is_type(*out_inputs, json_type_array))
        return error_set(error, ERROR_INVALID, "\"%s\" is no list of inputs", *out_name);
    return 0;
}

static int check_signature(json_object *root, struct error *error)
{
    json_object *name;
    if (!json_object_object_get_ex(root, "signature_name", &name) ||
        (json_object_is_type(name, json_type_string) &&
         strcmp(json_object_get_string(name), "serving_default") == 0))
        return 0;
    return error_set(error, ERROR_INVALID, "the only signature is \"serving_default\"");
}

static int take_all(struct arena *arena, const struct predictor *predictor, json_object *root,
                    uint32_t count_max, struct predict_request *request, struct error *error)
{
    json_object *inputs;
    const char *name;
    if (find_inputs(root, request->verb, &inputs, &name, error) < 0 ||
        check_signature(root, error) < 0)
        return -1;
    const size_t count = json_object_array_length(inputs), each = predictor_input_size(predictor);
    if (count == 0 || count > count_max)
        return error_set(error, ERROR_INVALID,
                         "%s: %zu inputs are not from 1 to %u; send more in several requests", name,
                         count, count_max);
    request->is_columns = strcmp(name, "inputs") == 0;
    request->count = (uint32_t)count;
    request->inputs = arena_alloc(arena, count * each * sizeof(float));
    struct reading reading = {.predictor = predictor};
    reading.rank = model_spec_input_shape(predictor_spec(predictor), reading.shape);
    for (size_t i = 0; i < count; i++) {
        reading.out = request->inputs + i * each;
        reading.filled = 0;
        snprintf(reading.place, sizeof(reading.place), "%s[%zu]", name, i);
        if (take_input(&reading, json_object_array_get_idx(inputs, i), error) < 0)
            return -1;
        ASSERT(reading.filled == each);
    }
    return 0;
}

int predict_request_read(struct arena *arena, const struct predictor *predictor,
                         enum predict_verb verb, struct text body, uint32_t count_max,
                         struct predict_request *out_request, struct error *error)
{
    if (body.size == 0 || body.size > INT_MAX)
        return error_set(error, ERROR_INVALID, "the body is no JSON object");
    json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
    ASSERT(tokener != NULL);
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    json_object *root = json_tokener_parse_ex(tokener, body.data, (int)body.size);
    const enum json_tokener_error problem = json_tokener_get_error(tokener);
    const size_t end = json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    struct predict_request request = {.verb = verb};
    int result;
    if (problem == json_tokener_success)
        result = take_all(arena, predictor, root, count_max, &request, error);
    else
        result = error_set(error, ERROR_INVALID, "the body is no JSON: %s at byte %zu",
                           json_tokener_error_desc(problem), end);
    json_object_put(root);
    if (result == 0)
        *out_request = request;
    return result;
}

/* ---- the answer -------------------------------------------------------------------------------
 */

enum output { OUTPUT_PLAIN, OUTPUT_PROBABILITIES, OUTPUT_CLASSES, OUTPUT_COUNT };
static const char *const output_names[OUTPUT_COUNT] = {"output", "probabilities", "classes"};

/* What was told, [count, rows, width]. */
struct told {
    const struct predictor *predictor;
    const float *outputs;
    float *probabilities; /* NULL: none */
    uint32_t count, rows, width;
    bool is_sequence;
};

static bool has_classes(const struct told *told)
{
    return predictor_spec(told->predictor)->loss != LOSS_MSE;
}

static bool has_output(const struct told *told, enum output output)
{
    return output == OUTPUT_PLAIN || (output == OUTPUT_CLASSES && has_classes(told)) ||
           (output == OUTPUT_PROBABILITIES && told->probabilities);
}

static uint32_t class_of(const struct told *told, const float *row)
{
    if (told->width == 1) /* two classes by one output */
        return row[0] > 0;
    uint32_t best = 0;
    for (uint32_t i = 1; i < told->width; i++)
        if (row[i] > row[best])
            best = i;
    return best;
}

static void write_class(struct json_writer *writer, const struct told *told, uint32_t index)
{
    const char *name = predictor_class_name(told->predictor, index);
    if (name)
        json_string(writer, name);
    else
        json_u64(writer, index);
}

/* The fewest digits that read back as the same float. */
static void write_float(struct json_writer *writer, float value)
{
    char digits[32];
    for (int precision = 6; precision <= 9; precision++) {
        snprintf(digits, sizeof(digits), "%.*g", precision, (double)value);
        if (strtof(digits, NULL) == value)
            break;
    }
    if (isfinite(value))
        json_raw(writer, text_of(digits));
    else
        json_null(writer);
}

static void write_floats(struct json_writer *writer, const float *values, uint32_t count)
{
    json_array_begin(writer);
    for (uint32_t i = 0; i < count; i++)
        write_float(writer, values[i]);
    json_array_end(writer);
}

static void write_one(struct json_writer *writer, const struct told *told, uint32_t input,
                      enum output output)
{
    if (told->is_sequence)
        json_array_begin(writer);
    for (uint32_t i = 0; i < told->rows; i++) {
        const size_t at = ((size_t)input * told->rows + i) * told->width;
        if (output == OUTPUT_CLASSES)
            write_class(writer, told, class_of(told, told->outputs + at));
        else
            write_floats(writer,
                         (output == OUTPUT_PLAIN ? told->outputs : told->probabilities) + at,
                         told->width);
    }
    if (told->is_sequence)
        json_array_end(writer);
}

static void write_rows(struct json_writer *writer, const struct told *told)
{
    json_key(writer, "predictions");
    json_array_begin(writer);
    for (uint32_t i = 0; i < told->count; i++) {
        if (!has_classes(told)) {
            write_one(writer, told, i, OUTPUT_PLAIN);
            continue;
        }
        json_object_begin(writer);
        for (enum output output = 0; output < OUTPUT_COUNT; output++)
            if (has_output(told, output)) {
                json_key(writer, output_names[output]);
                write_one(writer, told, i, output);
            }
        json_object_end(writer);
    }
    json_array_end(writer);
}

static void write_columns(struct json_writer *writer, const struct told *told)
{
    const bool has_several = has_classes(told);
    json_key(writer, "outputs");
    if (has_several)
        json_object_begin(writer);
    for (enum output output = 0; output < OUTPUT_COUNT; output++) {
        if (!has_output(told, output))
            continue;
        if (has_several)
            json_key(writer, output_names[output]);
        json_array_begin(writer);
        for (uint32_t i = 0; i < told->count; i++)
            write_one(writer, told, i, output);
        json_array_end(writer);
    }
    if (has_several)
        json_object_end(writer);
}

/* Every class of every input with its score. */
static void write_result(struct json_writer *writer, const struct told *told)
{
    const float *scores = told->probabilities ? told->probabilities : told->outputs;
    json_key(writer, "result");
    json_array_begin(writer);
    for (uint32_t i = 0; i < told->count; i++) {
        const float *row = scores + (size_t)i * told->width;
        if (!has_classes(told)) {
            write_float(writer, row[0]);
            continue;
        }
        json_array_begin(writer);
        for (uint32_t k = 0; k < (told->width == 1 ? 2 : told->width); k++) {
            const char *name = predictor_class_name(told->predictor, k);
            char number[16];
            snprintf(number, sizeof(number), "%u", k);
            json_array_begin(writer);
            json_string(writer, name ? name : number);
            write_float(writer, told->width > 1 ? row[k] : k == 1 ? row[0] : 1 - row[0]);
            json_array_end(writer);
        }
        json_array_end(writer);
    }
    json_array_end(writer);
}

int predict_answer(struct predictor *predictor, struct predict_request *request,
                   struct arena *arena, struct json_writer *writer, struct error *error)
{
    struct told told = {.predictor = predictor,
                        .count = request->count,
                        .width = predictor_outputs(predictor),
                        .is_sequence = predictor_steps(predictor) > 0};
    told.rows = told.is_sequence ? predictor_steps(predictor) : 1;
    if (request->verb == CLASSIFY && (!has_classes(&told) || told.is_sequence))
        return error_set(error, ERROR_INVALID, "the model tells no classes: use :predict");
    if (request->verb == REGRESS && (has_classes(&told) || told.width != 1))
        return error_set(error, ERROR_INVALID, "the model does not tell one number: use :predict");
    const size_t floats = (size_t)told.count * told.rows * told.width;
    if (floats > PREDICT_OUTPUTS_MAX)
        return error_set(error, ERROR_INVALID,
                         "%u inputs tell %zu numbers, more than %d: send fewer inputs at once",
                         told.count, floats, PREDICT_OUTPUTS_MAX);
    float *outputs = arena_alloc(arena, floats * sizeof(float));
    float *probabilities = arena_alloc(arena, floats * sizeof(float));
    predictor_run(predictor, request->inputs, request->count, outputs);
    told.outputs = outputs;
    memcpy(probabilities, outputs, floats * sizeof(float));
    for (size_t i = 0; i < floats; i += told.width)
        told.probabilities =
            predictor_probabilities(predictor, probabilities + i) ? probabilities : NULL;
    json_object_begin(writer);
    if (request->verb != PREDICT)
        write_result(writer, &told);
    else if (request->is_columns)
        write_columns(writer, &told);
    else
        write_rows(writer, &told);
    json_object_end(writer);
    return 0;
}

/* ---- metadata ---------------------------------------------------------------------------------
 */

static void write_tensor(struct json_writer *writer, const char *name, const char *type,
                         const uint64_t *shape, uint32_t rank)
{
    json_key(writer, name);
    json_object_begin(writer);
    json_field_string(writer, "dtype", type);
    json_key(writer, "tensor_shape");
    json_object_begin(writer);
    json_key(writer, "dim");
    json_array_begin(writer);
    for (uint32_t i = 0; i <= rank; i++) {
        char size[24] = "-1";
        if (i > 0)
            snprintf(size, sizeof(size), "%llu", (unsigned long long)shape[i - 1]);
        json_object_begin(writer);
        json_field_string(writer, "size", size);
        json_field_string(writer, "name", "");
        json_object_end(writer);
    }
    json_array_end(writer);
    json_field_bool(writer, "unknown_rank", false);
    json_object_end(writer);
    json_field_string(writer, "name", name);
    json_object_end(writer);
}

static void write_signature(struct json_writer *writer, const struct predictor *predictor)
{
    const struct model_spec *spec = predictor_spec(predictor);
    uint64_t shape[MODEL_INPUT_RANK_MAX], told[2];
    const uint32_t rank = model_spec_input_shape(spec, shape);
    const uint32_t steps = predictor_steps(predictor), first = steps ? 1 : 0;
    told[0] = steps;
    told[first] = predictor_outputs(predictor);
    json_key(writer, "inputs");
    json_object_begin(writer);
    write_tensor(writer, "input", spec->vocabulary && rank == 1 ? "DT_INT64" : "DT_FLOAT", shape,
                 rank);
    json_object_end(writer);
    json_key(writer, "outputs");
    json_object_begin(writer);
    write_tensor(writer, output_names[OUTPUT_PLAIN], "DT_FLOAT", told, first + 1);
    if (spec->loss == LOSS_CROSS_ENTROPY || spec->loss == LOSS_LOGISTIC)
        write_tensor(writer, output_names[OUTPUT_PROBABILITIES], "DT_FLOAT", told, first + 1);
    if (spec->loss != LOSS_MSE)
        write_tensor(writer, output_names[OUTPUT_CLASSES],
                     predictor_class_name(predictor, 0) ? "DT_STRING" : "DT_INT64", told, first);
    json_object_end(writer);
    json_field_string(writer, "method_name", "tensorflow/serving/predict");
}

void predict_metadata_write(struct json_writer *writer, const struct predictor *predictor,
                            const char *name)
{
    json_object_begin(writer);
    json_key(writer, "model_spec");
    json_object_begin(writer);
    json_field_string(writer, "name", name);
    json_field_string(writer, "signature_name", "");
    json_field_string(writer, "version", "1");
    json_object_end(writer);
    json_key(writer, "metadata");
    json_object_begin(writer);
    json_key(writer, "signature_def");
    json_object_begin(writer);
    json_key(writer, "signature_def");
    json_object_begin(writer);
    json_key(writer, "serving_default");
    json_object_begin(writer);
    write_signature(writer, predictor);
    json_object_end(writer);
    json_object_end(writer);
    json_object_end(writer);
    json_key(writer, "souk");
    json_object_begin(writer);
    json_field_string(writer, "model", model_kind_name(predictor_spec(predictor)->kind));
    json_field_u64(writer, "parameters", predictor_parameter_count(predictor));
    json_field_string(writer, "units", predictor_units_name(predictor_units(predictor)));
    json_object_end(writer);
    json_object_end(writer);
    json_object_end(writer);
}
