#include "train/import.h"

#include "base/assert.h"
#include "train/csv_record.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *import_form_name(enum import_form form)
{
    static const char *const names[IMPORT_FORM_COUNT] = {"bytes", "floats", "tokens", "sparse"};
    ASSERT(form < IMPORT_FORM_COUNT);
    return names[form];
}

const char *import_target_name(enum import_target target)
{
    static const char *const names[IMPORT_TARGET_COUNT] = {"class", "number", "next"};
    ASSERT(target < IMPORT_TARGET_COUNT);
    return names[target];
}

void import_options_default(struct import_options *out_options)
{
    *out_options = (struct import_options){
        .buckets = 65536,
        .vocabulary = 20000,
        .length = 64,
        .ahead = 1,
        .size_max = UINT64_C(64) << 30,
    };
}

void import_rows_done(struct import_rows *rows)
{
    spool_done(&rows->values);
    spool_done(&rows->indices);
    spool_done(&rows->starts);
    spool_done(&rows->targets);
    rows->count = 0;
}

void import_done(struct import *import)
{
    import_rows_done(&import->train);
    import_rows_done(&import->test);
    map_done(&import->class_names);
    map_done(&import->words);
    free(import->features);
    *import = (struct import){0};
}

size_t import_element_size(enum import_form form)
{
    return form == IMPORT_BYTES ? 1 : 4;
}

int import_row_end(struct import_rows *rows, struct error *error)
{
    if (rows->count >= IMPORT_ROWS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "more than %u rows", IMPORT_ROWS_MAX);
    rows->count++;
    return 0;
}

int import_add_class_target(struct import_rows *rows, int32_t value, struct error *error)
{
    return spool_append(&rows->targets, &value, sizeof(value), error);
}

int import_add_number_target(struct import_rows *rows, float value, struct error *error)
{
    return spool_append(&rows->targets, &value, sizeof(value), error);
}

int import_add_sparse(struct import_rows *rows, const uint32_t *indices, const float *values,
                      uint32_t count, struct error *error)
{
    const uint64_t start = rows->values.size / sizeof(*values);
    if (spool_append(&rows->starts, &start, sizeof(start), error) < 0)
        return -1;
    if (count == 0)
        return 0;
    if (spool_append(&rows->indices, indices, count * sizeof(*indices), error) < 0)
        return -1;
    return spool_append(&rows->values, values, count * sizeof(*values), error);
}

/* ---- Classes --------------------------------------------------------------------------------- */

/* A map's values are pointers that are not NULL: number + 1. */
static void *as_value(size_t number)
{
    return (void *)(number + 1); // NOLINT(performance-no-int-to-ptr): a number, never followed
}

int import_class(struct import *import, struct text name, uint32_t classes_max, int32_t *out_class,
                 struct error *error)
{
    void *known = map_get_text(&import->class_names, name);
    if (!known) {
        if (import->class_names.count >= classes_max)
            return error_set(error, ERROR_INVALID,
                             "more than %u different labels: a label is one of a few classes, no "
                             "measure",
                             classes_max);
        if (name.size == 0 || name.size >= IMPORT_NAME_SIZE || !text_is_plain(name))
            return error_set(error, ERROR_INVALID,
                             "a label is empty, longer than %d or no plain UTF-8",
                             IMPORT_NAME_SIZE - 1);
        known = as_value(import->class_names.count);
        map_put_text(&import->class_names, name, known);
    }
    *out_class = (int32_t)((uintptr_t)known - 1);
    return 0;
}

struct class_name {
    struct text name;
    double number;
    bool is_number;
    int32_t old;
};

static int compare_classes(const void *left, const void *right)
{
    const struct class_name *a = left, *b = right;
    if (a->is_number != b->is_number)
        return a->is_number ? -1 : 1;
    if (a->is_number && a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return text_compare(a->name, b->name);
}

static void renumber(struct import_rows *rows, const int32_t *places)
{
    int32_t *targets = (int32_t *)(void *)rows->targets.data;
    for (uint32_t i = 0; i < rows->count; i++)
        targets[i] = places[targets[i]];
}

void import_sort_classes(struct import *import)
{
    const size_t count = import->class_names.count;
    import->classes = (uint32_t)count;
    if (count == 0)
        return;
    struct class_name *names = calloc(count, sizeof(*names));
    int32_t *places = calloc(count, sizeof(*places));
    ASSERT(names && places);
    for (size_t i = 0; i < count; i++) {
        names[i].name = import->class_names.names[i];
        names[i].old = (int32_t)i;
        names[i].is_number = csv_number_parse(names[i].name, &names[i].number);
    }
    qsort(names, count, sizeof(*names), compare_classes);
    struct map sorted;
    map_init(&sorted);
    for (size_t i = 0; i < count; i++) {
        places[names[i].old] = (int32_t)i;
        map_put_text(&sorted, names[i].name, as_value(i));
    }
    renumber(&import->train, places);
    renumber(&import->test, places);
    map_done(&import->class_names);
    import->class_names = sorted;
    free(names);
    free(places);
}

/* ---- The end --------------------------------------------------------------------------------- */

static int check_targets(struct import *import, const struct import_rows *rows, struct error *error)
{
    if (import->target == IMPORT_NEXT || (import->is_asked && rows->targets.size == 0))
        return 0;
    ASSERT(rows->targets.size == (size_t)rows->count * 4);
    if (import->target == IMPORT_NUMBER) {
        const float *numbers = (const float *)(const void *)rows->targets.data;
        for (uint32_t i = 0; i < rows->count; i++)
            if (!isfinite(numbers[i]))
                return error_set(error, ERROR_INVALID, "the target of row %u is not finite", i);
        return 0;
    }
    const int32_t *classes = (const int32_t *)(const void *)rows->targets.data;
    for (uint32_t i = 0; i < rows->count; i++)
        if (classes[i] < 0 || (uint32_t)classes[i] >= import->classes)
            return error_set(error, ERROR_INVALID, "label %d of record %u is not below %u",
                             classes[i], i, import->classes);
    return 0;
}

static int finish_rows(struct import *import, struct import_rows *rows, struct error *error)
{
    if (import->form == IMPORT_SPARSE) {
        const uint64_t end = rows->values.size / sizeof(float);
        if (spool_append(&rows->starts, &end, sizeof(end), error) < 0)
            return -1;
        ASSERT(rows->starts.size == ((size_t)rows->count + 1) * sizeof(uint64_t));
    } else {
        const size_t row = (size_t)import->channels * import->height * import->width;
        ASSERT(rows->values.size == rows->count * row * import_element_size(import->form));
    }
    if (import->form == IMPORT_FLOATS || import->form == IMPORT_SPARSE) {
        const float *values = (const float *)(const void *)rows->values.data;
        for (size_t i = 0; i < rows->values.size / sizeof(float); i++)
            if (!isfinite(values[i]))
                return error_set(error, ERROR_INVALID, "a value of the data is not finite");
    }
    return check_targets(import, rows, error);
}

int import_finish(struct import *import, struct error *error)
{
    const uint32_t least = import->test.count || import->is_asked ? 1 : IMPORT_ROWS_MIN;
    if (import->train.count < least)
        return error_set(error, ERROR_INVALID, "%u row%s too few: at least %u", import->train.count,
                         import->train.count == 1 ? " is" : "s are", least);
    if (import->target == IMPORT_CLASS && import->classes < 2 && !import->is_part &&
        !import->is_asked)
        return error_set(error, ERROR_INVALID,
                         "all labels%s%s%s are alike: there is nothing to tell apart",
                         import->target_name[0] ? " of \"" : "", import->target_name,
                         import->target_name[0] ? "\"" : "");
    if (finish_rows(import, &import->train, error) < 0 ||
        finish_rows(import, &import->test, error) < 0)
        return -1;
    return 0;
}

uint64_t import_hash(struct text column, struct text value)
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (size_t i = 0; i < column.size; i++)
        hash = (hash ^ (uint8_t)column.data[i]) * 0x100000001b3ULL;
    hash = (hash ^ 0x1f) * 0x100000001b3ULL;
    for (size_t i = 0; i < value.size; i++)
        hash = (hash ^ (uint8_t)value.data[i]) * 0x100000001b3ULL;
    /* FNV's low bits of short words differ little: murmur's finish spreads them. */
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdULL;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53ULL;
    return hash ^ hash >> 33;
}
