#include "base/assert.h"
#include "train/csv_record.h"
#include "train/predict_json.h"

#include <json-c/json.h>
#include <limits.h>
#include <math.h>
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

static int take_list(struct reading *reading, json_object *value, uint32_t depth,
                     struct error *error);

static int take_item(struct reading *reading, json_object *item, uint32_t depth, bool is_number,
                     struct error *error)
{
    return is_number ? take_number(reading, item, error)
                     : take_list(reading, item, depth + 1, error);
}

/* The list at depth `depth` of the shape. */
static int take_list(struct reading *reading, json_object *value, uint32_t depth,
                     struct error *error)
{
    char shape[64];
    if (!json_object_is_type(value, json_type_array))
        return error_set(
            error, ERROR_INVALID, "%s: %sa list of %llu is wanted: an input is %s", reading->place,
            predictor_takes_text(reading->predictor) ? "a text or " : "",
            (unsigned long long)reading->shape[depth], shape_text(reading, shape, sizeof(shape)));
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
    const bool is_number = is_flat || depth + 1 == reading->rank;
    for (size_t i = 0; i < count; i++) {
        json_object *item = json_object_array_get_idx(value, i);
        const size_t filled = reading->filled;
        if (take_item(reading, item, depth, is_number, error) == 0)
            continue;
        /* Its place takes longer to write than a number to read: only now, and what is wrong is
         * said again with it. */
        reading->filled = filled;
        snprintf(reading->place + place_size, PLACE_SIZE - place_size, "[%zu]", i);
        return take_item(reading, item, depth, is_number, error);
    }
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

/* A column that the input lacks; of a category its words have places "COLUMN=WORD". */
static int refuse_missing(const struct reading *reading, const char *name, struct error *error)
{
    const char *at = strchr(name, '=');
    if (!at || at == name)
        return error_set(error, ERROR_INVALID, "%s: column \"%.64s\" is missing", reading->place,
                         name);
    return error_set(error, ERROR_INVALID,
                     "%s: column \"%.*s\" is missing: give one of its words, as \"%.64s\"",
                     reading->place, at - name < 64 ? (int)(at - name) : 64, name, at + 1);
}

/* It has more names than the model has columns. */
static int refuse_names(const struct reading *reading, json_object *value,
                        const struct predictor_feature *features, uint32_t count, int names,
                        struct error *error)
{
    json_object_object_foreach(value, key, ignored)
    {
        const size_t size = strlen(key);
        bool is_known = false;
        (void)ignored;
        for (uint32_t i = 0; i < count && !is_known; i++)
            is_known = strncmp(features[i].name, key, size) == 0 &&
                       (features[i].name[size] == '\0' || features[i].name[size] == '=');
        if (!is_known)
            return error_set(error, ERROR_INVALID, "%s: the model has no column \"%.64s\"",
                             reading->place, key);
    }
    return error_set(error, ERROR_INVALID, "%s: %d names where the model has %d columns",
                     reading->place, json_object_object_length(value), names);
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
            return refuse_missing(reading, name, error);
        const int used = take_category(reading, value, features + i, count - i, column_size, error);
        if (used < 0)
            return -1;
        i += (uint32_t)used;
    }
    return json_object_object_length(value) == names
               ? 0
               : refuse_names(reading, value, features, count, names, error);
}

static int take_text(struct reading *reading, json_object *value, struct error *error)
{
    const struct text text = {json_object_get_string(value),
                              (size_t)json_object_get_string_len(value)};
    if (!predictor_take_text(reading->predictor, text, reading->out))
        return error_set(
            error, ERROR_INVALID,
            predictor_spec(reading->predictor)->vocabulary
                ? "%s: the model's words are not known: put columns.json beside it, or "
                  "give the numbers of its tokens"
                : "%s: the model takes numbers, not a text",
            reading->place);
    reading->filled = predictor_input_size(reading->predictor);
    return 0;
}

static int take_input(struct reading *reading, json_object *value, struct error *error)
{
    json_object *named;
    if (json_object_is_type(value, json_type_string))
        return take_text(reading, value, error);
    if (!json_object_is_type(value, json_type_object))
        return take_list(reading, value, 0, error);
    if (json_object_object_get_ex(value, "b64", &named))
        return error_set(error, ERROR_INVALID, "%s: the model takes numbers, not b64",
                         reading->place);
    if (json_object_object_length(value) == 1 && json_object_object_get_ex(value, "input", &named))
        return json_object_is_type(named, json_type_string) ? take_text(reading, named, error)
                                                            : take_list(reading, named, 0, error);
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
    else if (problem == json_tokener_continue)
        result = error_set(error, ERROR_INVALID, "the body is no JSON: it ends in the middle");
    else
        result = error_set(error, ERROR_INVALID, "the body is no JSON: %s at byte %zu",
                           json_tokener_error_desc(problem), end);
    json_object_put(root);
    if (result == 0)
        *out_request = request;
    return result;
}
