#include "train/predict_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static void write_class(struct json_writer *writer, const struct told *told, uint32_t index)
{
    const char *name = predictor_class_name(told->predictor, index);
    if (name)
        json_string(writer, name);
    else
        json_u64(writer, index);
}

const char *predict_float_text(float value, char out[PREDICT_FLOAT_SIZE])
{
    for (int precision = 6; precision <= 9; precision++) {
        snprintf(out, PREDICT_FLOAT_SIZE, "%.*g", precision, (double)value);
        if (strtof(out, NULL) == value)
            break;
    }
    return out;
}

static void write_float(struct json_writer *writer, float value)
{
    char digits[PREDICT_FLOAT_SIZE];
    if (isfinite(value))
        json_raw(writer, text_of(predict_float_text(value, digits)));
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
            write_class(writer, told, predictor_class(told->predictor, told->outputs + at));
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
