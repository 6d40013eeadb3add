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

/* ---- Columns --------------------------------------------------------------------------------- */

static bool are_features_equal(const struct import *import, const struct import_columns *columns)
{
    const struct import_column *features = columns->features.items;
    if (import->feature_count != columns->features.count)
        return false;
    for (uint32_t i = 0; i < import->feature_count; i++)
        if (!text_equal(text_of(import->features[i].name), features[i].name))
            return false;
    return true;
}

/* Of "kind=ash", a place of the one-hot column "kind", that column; of a number its name. */
static struct text column_of(struct text feature)
{
    struct text column, place;
    text_cut(feature, '=', &column, &place);
    return column;
}

/* Whether one of the import's features is of that column. */
static bool has_column(const struct import *import, struct text column)
{
    for (uint32_t i = 0; i < import->feature_count; i++)
        if (text_equal(column_of(text_of(import->features[i].name)), column))
            return true;
    return false;
}

/* Where each feature of the import lies among the columns'. Only names that the columns have are
 * told: the others are the data's. */
static int find_places(const struct import *import, const struct import_columns *columns,
                       uint32_t *out_places, struct error *error)
{
    const struct import_column *features = columns->features.items;
    for (size_t i = 0; i < columns->features.count; i++) {
        const struct text column = column_of(features[i].name);
        if (!has_column(import, column))
            return error_set(error, ERROR_INVALID,
                             "they lack the column " TEXT_FORMAT " of train.test",
                             TEXT_ARGS(column));
    }
    for (uint32_t i = 0; i < import->feature_count; i++) {
        const struct text name = text_of(import->features[i].name), column = column_of(name);
        bool is_column_known = false;
        size_t at = 0;
        for (; at < columns->features.count && !text_equal(features[at].name, name); at++)
            is_column_known |= text_equal(column_of(features[at].name), column);
        if (at == columns->features.count && is_column_known)
            return error_set(error, ERROR_INVALID,
                             "their column " TEXT_FORMAT " has a word that train.test lacks: add "
                             "a row with each word to it, or use train.read.categories: hashed",
                             TEXT_ARGS(column));
        if (at == columns->features.count)
            return error_set(error, ERROR_INVALID,
                             "they have a column that train.test lacks: leave it out by "
                             "train.read.skip");
        out_places[i] = (uint32_t)at;
    }
    return 0;
}

/* Moves each row's numbers to their places; where it has none it is 0, as without that word. */
static int spread_rows(struct import_rows *rows, uint32_t own_width, const uint32_t *places,
                       uint32_t width, struct error *error)
{
    struct spool spread = {0};
    for (uint32_t row = 0; row < rows->count; row++) {
        void *room;
        if (spool_reserve(&spread, width * sizeof(float), &room, error) < 0) {
            spool_done(&spread);
            return -1;
        }
        const float *own = (const float *)(const void *)rows->values.data + (size_t)row * own_width;
        float *values = room;
        memset(values, 0, width * sizeof(float));
        for (uint32_t i = 0; i < own_width; i++)
            values[places[i]] = own[i];
        spool_advance(&spread, width * sizeof(float));
    }
    spool_done(&rows->values);
    rows->values = spread;
    return 0;
}

static int spread_features(struct import *import, const struct import_columns *columns,
                           const uint32_t *places, struct error *error)
{
    const struct import_column *names = columns->features.items;
    const uint32_t width = (uint32_t)columns->features.count;
    if (spread_rows(&import->train, import->width, places, width, error) < 0 ||
        spread_rows(&import->test, import->width, places, width, error) < 0)
        return -1;
    struct import_feature *features = calloc(width, sizeof(*features));
    ASSERT(features);
    for (uint32_t i = 0; i < width; i++)
        snprintf(features[i].name, sizeof(features[i].name), TEXT_FORMAT, TEXT_ARGS(names[i].name));
    for (uint32_t i = 0; i < import->feature_count; i++)
        features[places[i]].is_scaled = import->features[i].is_scaled;
    free(import->features);
    import->features = features;
    import->feature_count = import->width = width;
    return 0;
}

static int fit_features(struct import *import, const struct import_columns *columns,
                        struct error *error)
{
    if (!are_features_equal(import, columns)) {
        const bool is_table = import->form == IMPORT_FLOATS && import->feature_count > 0 &&
                              import->feature_count == import->width && columns->features.count > 0;
        if (!is_table)
            return error_set(error, ERROR_INVALID, "other columns than train.test has");
        uint32_t *places = calloc(import->feature_count, sizeof(*places));
        ASSERT(places);
        const int result = find_places(import, columns, places, error) < 0
                               ? -1
                               : spread_features(import, columns, places, error);
        free(places);
        if (result < 0)
            return -1;
    }
    if (import->form == IMPORT_SPARSE && import->width > columns->width)
        return error_set(error, ERROR_INVALID, "%u places, more than %llu", import->width,
                         (unsigned long long)columns->width);
    if (import->form == IMPORT_SPARSE)
        import->width = (uint32_t)columns->width;
    return 0;
}

/* ---- Classes --------------------------------------------------------------------------------- */

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
