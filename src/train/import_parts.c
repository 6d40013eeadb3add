#include "train/import_parts.h"

#include "base/assert.h"
#include "base/json.h"
#include "base/random.h"
#include "train/idx_reader.h"
#include "train/import_scale_internal.h"
#include "train/words.h"

#include <stdlib.h>
#include <string.h>

/* ---- Order ----------------------------------------------------------------------------------- */

struct sort_key {
    double target;
    uint32_t row;
};

static int compare_keys(const void *left, const void *right)
{
    const struct sort_key *a = left, *b = right;
    if (a->target != b->target)
        return a->target < b->target ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Of rows in a random order the first `skew` share is sorted by its target and dealt evenly among
 * the others: wherever a shard is cut, that share of it lies close together. */
static void skew_order(const struct import *import, uint32_t *order, uint32_t count, double skew)
{
    const uint32_t some = (uint32_t)(skew * count);
    struct sort_key *keys = calloc(count, sizeof(*keys));
    uint32_t *others = calloc(count, sizeof(*others));
    ASSERT(keys && others);
    for (uint32_t i = 0; i < some; i++)
        keys[i] = (struct sort_key){import_target_of(import, &import->train, order[i]), order[i]};
    qsort(keys, some, sizeof(*keys), compare_keys);
    memcpy(others, order + some, (count - some) * sizeof(*others));
    for (uint32_t i = 0, sorted = 0, other = 0; i < count; i++) {
        const bool is_due = sorted < (uint64_t)some * (i + 1) / count;
        order[i] = is_due ? keys[sorted++].row : others[other++];
    }
    free(keys);
    free(others);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static void put_bits(uint8_t *out, const void *value)
{
    uint32_t bits;
    memcpy(&bits, value, sizeof(bits));
    bits = __builtin_bswap32(bits);
    memcpy(out, &bits, sizeof(bits));
}

static float scaled(const struct selection *selection, size_t place, float value)
{
    uint32_t column;
    if (!selection->scales || !selection_column_of(selection->import, place, &column))
        return value;
    const struct scale *scale = &selection->scales[column];
    return (float)(((double)value - scale->mean) / scale->deviation);
}

static void put_sparse(const struct selection *selection, uint32_t row, uint8_t *out)
{
    const float *values;
    const uint32_t *indices;
    const size_t entries = import_sparse_entries(selection->rows, row, &values, &indices);
    const size_t wide =
        selection->entries ? 2 * (size_t)selection->entries : (size_t)selection->import->width;
    memset(out, 0, wide * sizeof(float));
    for (size_t i = 0; i < entries; i++) {
        const float place = (float)indices[i], value = scaled(selection, indices[i], values[i]);
        if (selection->entries) {
            put_bits(out + i * sizeof(float), &place);
            put_bits(out + (selection->entries + i) * sizeof(float), &value);
        } else {
            put_bits(out + indices[i] * sizeof(float), &value);
        }
    }
}

static void put_row(const struct selection *selection, uint32_t row, size_t elements, uint8_t *out)
{
    const struct import *import = selection->import;
    const uint8_t *data = selection->rows->values.data;
    if (import->form == IMPORT_BYTES) {
        memcpy(out, data + row * elements, elements);
    } else if (import->form == IMPORT_SPARSE) {
        put_sparse(selection, row, out);
    } else if (import->form == IMPORT_TOKENS) {
        for (size_t i = 0; i < elements; i++)
            put_bits(out + i * 4, data + (row * elements + i) * 4);
    } else {
        const float *from = (const float *)(const void *)data + row * elements;
        for (size_t i = 0; i < elements; i++) {
            const float value = scaled(selection, i, from[i]);
            put_bits(out + i * 4, &value);
        }
    }
}

static int begin_file(struct spool *file, const struct idx_header *header, uint32_t count,
                      struct error *error)
{
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, IDX_HEADER_SIZE_MAX);
    idx_append_header(&bytes, header, count);
    return spool_append(file, bytes.data, bytes.size, error);
}

static int write_values(const struct selection *selection, struct spool *file, struct error *error)
{
    const struct import *import = selection->import;
    const bool is_image =
        import->form == IMPORT_BYTES || import->height > 1 || import->channels > 1;
    struct idx_header header = {.rank = selection->entries ? 3
                                        : is_image         ? 4
                                                           : 2,
                                .element = import->form == IMPORT_BYTES    ? IDX_BYTE
                                           : import->form == IMPORT_TOKENS ? IDX_INT
                                                                           : IDX_FLOAT};
    header.sizes[1] = selection->entries ? 2 : is_image ? import->channels : import->width;
    header.sizes[2] = selection->entries ? selection->entries : import->height;
    header.sizes[3] = import->width;
    const size_t elements = selection->entries
                                ? 2 * (size_t)selection->entries
                                : (size_t)import->channels * import->height * import->width;
    const size_t size = elements * idx_element_size(header.element);
    if (begin_file(file, &header, selection->count, error) < 0)
        return -1;
    for (uint32_t i = 0; i < selection->count; i++) {
        void *room;
        if (spool_reserve(file, size, &room, error) < 0)
            return -1;
        put_row(selection, selection->order[i], elements, room);
        spool_advance(file, size);
    }
    return 0;
}

static int write_targets(const struct selection *selection, struct spool *file, struct error *error)
{
    const struct import *import = selection->import;
    const bool is_byte =
        import->target == IMPORT_NEXT || (import->target == IMPORT_CLASS && import->classes <= 256);
    const struct idx_header header = {.rank = 1,
                                      .element = is_byte                           ? IDX_BYTE
                                                 : import->target == IMPORT_NUMBER ? IDX_FLOAT
                                                                                   : IDX_INT};
    if (begin_file(file, &header, selection->count, error) < 0)
        return -1;
    for (uint32_t i = 0; i < selection->count; i++) {
        const uint8_t *from = selection->rows->targets.data + (size_t)selection->order[i] * 4;
        uint8_t bytes[4] = {0};
        if (import->target == IMPORT_NUMBER) {
            const double number = import_target_of(import, selection->rows, selection->order[i]);
            const float value =
                (float)((number - selection->target.mean) / selection->target.deviation);
            put_bits(bytes, &value);
        } else if (import->target == IMPORT_CLASS) { /* tokens are their own targets */
            put_bits(bytes, from);
        }
        const size_t size = is_byte ? 1 : 4;
        if (spool_append(file, bytes + 4 - size, size, error) < 0)
            return -1;
    }
    return 0;
}

/* ---- Columns --------------------------------------------------------------------------------- */

static void write_plain(struct json_writer *writer, struct text name)
{
    char copy[IMPORT_FEATURE_NAME_SIZE] = "";
    memcpy(copy, name.data, name.size < sizeof(copy) ? name.size : sizeof(copy) - 1);
    text_make_plain(copy);
    json_string(writer, copy);
}

static void write_names(struct json_writer *writer, const char *key, const struct map *names)
{
    json_key(writer, key);
    json_array_begin(writer);
    for (size_t i = 0; i < names->count; i++)
        write_plain(writer, names->names[i]);
    json_array_end(writer);
}

/* How texts become tokens: the words in their order, or the number of their hashes. */
static void write_words(struct json_writer *writer, const struct import *import)
{
    json_field_string(writer, "unit", import_unit_name(import->unit));
    if (import->words.count == 0) {
        json_field_u64(writer, "buckets", import->vocabulary - TOKEN_WORD_FIRST);
        return;
    }
    json_key(writer, "words");
    words_write(writer, import->unit, &import->words);
}

static int write_columns(const struct import *import, const struct scale *scales,
                         const struct scale *target, struct buffer *out, struct error *error)
{
    struct json_writer writer;
    buffer_init(out, IMPORT_COLUMNS_SIZE_MAX);
    json_writer_init(&writer, out);
    json_object_begin(&writer);
    json_field_string(&writer, "form", import_form_name(import->form));
    json_field_string(&writer, "target", import_target_name(import->target));
    json_field_string(&writer, "label", import->target_name);
    json_field_u64(&writer, "width", import->width);
    write_names(&writer, "classes", &import->class_names);
    json_key(&writer, "features");
    json_array_begin(&writer);
    for (uint32_t i = 0; i < import->feature_count; i++) {
        json_object_begin(&writer);
        json_field_string(&writer, "name", import->features[i].name);
        json_field_double(&writer, "mean", scales ? scales[i].mean : 0);
        json_field_double(&writer, "deviation", scales ? scales[i].deviation : 1);
        json_object_end(&writer);
    }
    json_array_end(&writer);
    if (import->form == IMPORT_TOKENS)
        write_words(&writer, import);
    if (import->target == IMPORT_NUMBER) {
        json_field_double(&writer, "target_mean", target->mean);
        json_field_double(&writer, "target_deviation", target->deviation);
    }
    json_object_end(&writer);
    buffer_append_byte(out, '\n');
    return buffer_check(out, error);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static uint32_t entries_most(const struct import_rows *rows, uint32_t most)
{
    const uint64_t *starts = (const uint64_t *)(const void *)rows->starts.data;
    for (uint32_t i = 0; i < rows->count; i++)
        if (starts[i + 1] - starts[i] > most)
            most = (uint32_t)(starts[i + 1] - starts[i]); /* IMPORT_ROW_ENTRIES_MAX at most */
    return most;
}

/* 0: the rows are written dense. */
static uint32_t entries_kept(const struct import *import)
{
    if (import->form != IMPORT_SPARSE || import->width <= IMPORT_DENSE_WIDTH_MAX)
        return 0;
    return entries_most(&import->test, entries_most(&import->train, 1));
}

struct dataset_shape import_parts_shape(const struct import *import)
{
    const uint32_t entries = entries_kept(import);
    struct dataset_shape shape = {
        .count = import->train.count + import->test.count,
        .channels = import->channels,
        .height = entries ? 2 : import->height,
        .width = entries ? entries : import->width,
        .vocabulary = entries                         ? import->width
                      : import->form == IMPORT_TOKENS ? import->vocabulary
                                                      : 0,
    };
    switch (import->target) {
    case IMPORT_CLASS:
        shape.classes = import->classes;
        break;
    case IMPORT_NUMBER:
        shape.target = DATASET_VALUES;
        shape.values = 1;
        break;
    case IMPORT_NEXT:
        shape.target = DATASET_STEPS;
        shape.classes = import->vocabulary;
        shape.steps = --shape.width; /* the last token is only told */
        break;
    case IMPORT_TARGET_COUNT:
        UNREACHABLE("a target that is none");
    }
    return shape;
}

static int write_selection(struct import_parts *parts, const struct selection *selection,
                           bool is_train, struct error *error)
{
    const int values = is_train ? DATASET_TRAIN_IMAGES : DATASET_TEST_IMAGES;
    const int labels = is_train ? DATASET_TRAIN_LABELS : DATASET_TEST_LABELS;
    if (write_values(selection, &parts->files[values], error) < 0)
        return -1;
    return write_targets(selection, &parts->files[labels], error);
}

/* By the rows that train, or those there are; or as the columns of others say. */
static void choose_scales(const struct import_parts_options *options, struct selection *train,
                          struct selection *test, struct scale *scales)
{
    const struct selection *rows = train->count ? train : test;
    const struct import_columns *columns = options->columns;
    const struct import_column *features = columns ? columns->features.items : NULL;
    struct scale target = {0, 1};
    if (scales && !columns)
        selection_measure(rows, scales);
    for (uint32_t i = 0; scales && columns && i < train->import->feature_count; i++)
        scales[i] = (struct scale){features[i].mean, features[i].deviation};
    if (train->import->target == IMPORT_NUMBER)
        target = columns ? (struct scale){columns->target_mean, columns->target_deviation}
                         : selection_measure_target(rows);
    train->scales = test->scales = scales;
    train->target = test->target = target;
}

static uint32_t count_test(const struct import *import, enum import_split split)
{
    const uint32_t count = import->train.count, tenth = count / IMPORT_ROWS_MIN;
    if (split == IMPORT_SPLIT_ALL_TEST)
        return count;
    if (split == IMPORT_SPLIT_ALL_TRAIN || import->test.count)
        return 0;
    return tenth < IMPORT_TEST_ROWS_MAX ? tenth : IMPORT_TEST_ROWS_MAX;
}

static int fill(struct import_parts *parts, const struct import *import,
                const struct import_parts_options *options, uint32_t *order, struct scale *scales,
                struct error *error)
{
    const bool has_test = import->test.count > 0 && options->split == IMPORT_SPLIT_TENTH;
    const uint32_t count = import->train.count;
    const uint32_t test_count = count_test(import, options->split);
    struct random random;
    random_init(&random, options->seed);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    random_shuffle(&random, order, count);
    if (options->label_skew > 0 && import->target != IMPORT_NEXT)
        skew_order(import, order + test_count, count - test_count, options->label_skew);
    uint32_t entries = entries_kept(import);
    if (entries && options->entries && entries > options->entries)
        return error_set(error, ERROR_INVALID, "a sparse row has %u entries, more than %u", entries,
                         options->entries);
    entries = entries && options->entries ? options->entries : entries;
    struct selection train = {import, &import->train, order + test_count, count - test_count, NULL,
                              {0, 1}, entries};
    struct selection test = {import, &import->train, order, test_count, NULL, {0, 1}, entries};
    uint32_t *test_order = NULL;
    if (has_test) {
        test_order = malloc(import->test.count * sizeof(*test_order));
        ASSERT(test_order);
        for (uint32_t i = 0; i < import->test.count; i++)
            test_order[i] = i;
        test.rows = &import->test;
        test.order = test_order;
        test.count = import->test.count;
    }
    choose_scales(options, &train, &test, scales);
    parts->target_mean = train.target.mean;
    parts->target_deviation = train.target.deviation;
    parts->deviation = 1;
    if (import->form == IMPORT_BYTES)
        import_parts_measure_bytes(parts, &import->train.values);
    const int result =
        write_selection(parts, &train, true, error) < 0 ||
                write_selection(parts, &test, false, error) < 0 ||
                write_columns(import, scales, &train.target, &parts->columns, error) < 0
            ? -1
            : 0;
    free(test_order);
    return result;
}

struct dataset_shape import_parts_shape_shared(const struct import *import)
{
    struct dataset_shape shape = import_parts_shape(import);
    uint32_t room = 1;
    while (room < shape.width)
        room *= 2;
    if (entries_kept(import))
        shape.width = room;
    return shape;
}

int import_parts_init(struct import_parts *parts, const struct import *import,
                      const struct import_parts_options *options, struct error *error)
{
    *parts = (struct import_parts){0};
    buffer_init(&parts->columns, 0);
    const bool is_scaled =
        (import->form == IMPORT_FLOATS && import->feature_count == import->width) ||
        (import->form == IMPORT_SPARSE && import->feature_count);
    uint32_t *order = malloc(import->train.count * sizeof(*order));
    struct scale *scales = is_scaled ? calloc(import->feature_count, sizeof(*scales)) : NULL;
    ASSERT(order && (scales || !is_scaled));
    const int result = fill(parts, import, options, order, scales, error);
    free(order);
    free(scales);
    if (result < 0)
        import_parts_done(parts);
    return result;
}

void import_parts_done(struct import_parts *parts)
{
    for (int i = 0; i < DATASET_PART_COUNT; i++)
        spool_done(&parts->files[i]);
    buffer_done(&parts->columns);
}
