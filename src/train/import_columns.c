#include "train/import_columns.h"

#include "base/assert.h"

#include <stdlib.h>

#define COLUMN(member) offsetof(struct import_column, member)
static const struct json_field column_fields[] = {
    {"name", JSON_TEXT, COLUMN(name), .is_required = true},
    {"mean", JSON_DOUBLE, COLUMN(mean), .is_required = true},
    {"deviation", JSON_DOUBLE, COLUMN(deviation), .is_required = true},
};
static const struct json_schema column_schema =
    JSON_SCHEMA("feature", column_fields, struct import_column);

#define COLUMNS(member) offsetof(struct import_columns, member)
static const struct json_field columns_fields[] = {
    {"form", JSON_TEXT, COLUMNS(form), .is_required = true},
    {"target", JSON_TEXT, COLUMNS(target), .is_required = true},
    {"label", JSON_TEXT, COLUMNS(label)},
    {"width", JSON_U64, COLUMNS(width)},
    {"classes", JSON_TEXTS, COLUMNS(classes), .size_max = IMPORT_CLASSES_MAX},
    {"features", JSON_ARRAY, COLUMNS(features), .size_max = IMPORT_WIDTH_MAX,
     .schema = &column_schema},
    {"words", JSON_TEXTS, COLUMNS(words), .size_max = 1 << 20},
    {"target_mean", JSON_DOUBLE, COLUMNS(target_mean)},
    {"target_deviation", JSON_DOUBLE, COLUMNS(target_deviation)},
};
static const struct json_schema columns_schema =
    JSON_SCHEMA_LENIENT("columns", columns_fields, struct import_columns);

int import_columns_read(struct arena *arena, struct text json, struct import_columns *out_columns,
                        struct error *error)
{
    *out_columns = (struct import_columns){.target_deviation = 1};
    if (json_read(arena, json, &columns_schema, out_columns, error) < 0)
        return -1;
    const struct import_column *features = out_columns->features.items;
    for (size_t i = 0; i < out_columns->features.count; i++)
        if (!(features[i].deviation > 0))
            return error_set(error, ERROR_INVALID, "columns: the deviation of column %zu", i + 1);
    if (!(out_columns->target_deviation > 0))
        return error_set(error, ERROR_INVALID, "columns: the target's deviation");
    return 0;
}

static int fit_features(struct import *import, const struct import_columns *columns,
                        struct error *error)
{
    const struct import_column *features = columns->features.items;
    if (import->feature_count != columns->features.count)
        return error_set(
            error, ERROR_INVALID,
            "%u columns or categories, not %zu (each word of a one-hot column must occur in "
            "the test as well; train.read.categories: hashed needs no such list)",
            import->feature_count, columns->features.count);
    for (uint32_t i = 0; i < import->feature_count; i++)
        if (!text_equal(text_of(import->features[i].name), features[i].name))
            return error_set(error, ERROR_INVALID, "column or category %u has another name", i + 1);
    if (import->form == IMPORT_SPARSE && import->width > columns->width)
        return error_set(error, ERROR_INVALID, "%u places, more than %llu", import->width,
                         (unsigned long long)columns->width);
    if (import->form == IMPORT_SPARSE)
        import->width = (uint32_t)columns->width;
    return 0;
}

static void renumber(struct import_rows *rows, const int32_t *places)
{
    int32_t *targets = (int32_t *)(void *)rows->targets.data;
    for (uint32_t i = 0; i < rows->count; i++)
        targets[i] = places[targets[i]];
}

static int fit_classes(struct import *import, const struct import_columns *columns,
                       struct error *error)
{
    const struct text *classes = columns->classes.items;
    const size_t count = import->class_names.count;
    if (count == 0 || columns->classes.count == 0) { /* labels are numbers as they are */
        return 0;
    }
    int32_t *places = calloc(count, sizeof(*places));
    ASSERT(places);
    size_t unknown = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < columns->classes.count &&
               !text_equal(classes[at], import->class_names.names[i]))
            at++;
        unknown += at == columns->classes.count;
        places[i] = (int32_t)at;
    }
    if (unknown == 0) {
        renumber(&import->train, places);
        renumber(&import->test, places);
        import->classes = (uint32_t)columns->classes.count;
    }
    free(places);
    return unknown == 0 ? 0
                        : error_set(error, ERROR_INVALID, "%zu of its %zu labels are not known",
                                    unknown, count);
}

int import_fit(struct import *import, const struct import_columns *columns, struct error *error)
{
    if (!text_is(columns->form, import_form_name(import->form)) ||
        !text_is(columns->target, import_target_name(import->target)))
        return error_set(error, ERROR_INVALID,
                         "%s that tell a %s, not " TEXT_FORMAT " that tell a " TEXT_FORMAT,
                         import_form_name(import->form), import_target_name(import->target),
                         TEXT_ARGS(columns->form), TEXT_ARGS(columns->target));
    if (fit_features(import, columns, error) < 0)
        return -1;
    return import->target == IMPORT_CLASS ? fit_classes(import, columns, error) : 0;
}
