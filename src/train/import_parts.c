#include "train/import_parts.h"

#include "base/assert.h"
#include "base/json.h"
#include "base/random.h"
#include "train/idx_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_SIZE_MAX = 16 << 20 };

struct scale {
    double mean, deviation;
};

/* Some rows of an import, in an order. */
struct selection {
    const struct import *import;
    const struct import_rows *rows;
    const uint32_t *order;
    uint32_t count;
    const struct scale *scales; /* [width]; NULL: as they are */
};

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

static double target_of(const struct import *import, const struct import_rows *rows, uint32_t row)
{
    const uint8_t *at = rows->targets.data + (size_t)row * 4;
    int32_t label;
    float number;
    memcpy(&label, at, sizeof(label));
    memcpy(&number, at, sizeof(number));
    return import->target == IMPORT_NUMBER ? (double)number : label;
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
        keys[i] = (struct sort_key){target_of(import, &import->train, order[i]), order[i]};
    qsort(keys, some, sizeof(*keys), compare_keys);
    memcpy(others, order + some, (count - some) * sizeof(*others));
    for (uint32_t i = 0, sorted = 0, other = 0; i < count; i++) {
        const bool is_due = sorted < (uint64_t)some * (i + 1) / count;
        order[i] = is_due ? keys[sorted++].row : others[other++];
    }
    free(keys);
    free(others);
}

/* ---- Scale ----------------------------------------------------------------------------------- */

/* Two passes: the squares of large values would drown what lies between them. A column that never
 * changes is left where it is. */
static void measure(const struct selection *train, struct scale *scales)
{
    const struct import *import = train->import;
    const float *values = (const float *)(const void *)train->rows->values.data;
    const uint32_t width = import->width;
    for (uint32_t i = 0; i < train->count; i++)
        for (uint32_t k = 0; k < width; k++)
            scales[k].mean += (double)values[(size_t)train->order[i] * width + k];
    for (uint32_t k = 0; k < width; k++)
        scales[k].mean /= train->count;
    for (uint32_t i = 0; i < train->count; i++)
        for (uint32_t k = 0; k < width; k++) {
            const double away =
                (double)values[(size_t)train->order[i] * width + k] - scales[k].mean;
            scales[k].deviation += away * away;
        }
    for (uint32_t k = 0; k < width; k++) {
        scales[k].deviation = sqrt(scales[k].deviation / train->count);
        if (!(scales[k].deviation > 1e-12 * fabs(scales[k].mean)))
            scales[k].deviation = 1;
        if (!import->features[k].is_scaled)
            scales[k] = (struct scale){0, 1};
    }
}

/* Bytes are few: their counts tell all. */
static void measure_bytes(struct import_parts *parts, const struct spool *bytes)
{
    uint64_t counts[256] = {0};
    double sum = 0, squares = 0;
    for (size_t i = 0; i < bytes->size; i++)
        counts[bytes->data[i]]++;
    for (int i = 0; i < 256; i++)
        sum += (double)counts[i] * i / 255;
    parts->mean = sum / (double)bytes->size;
    for (int i = 0; i < 256; i++)
        squares += (double)counts[i] * (i / 255.0 - parts->mean) * (i / 255.0 - parts->mean);
    parts->deviation = sqrt(squares / (double)bytes->size);
    if (!(parts->deviation > 1e-6))
        parts->deviation = 1;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static void put_bits(uint8_t *out, const void *value)
{
    uint32_t bits;
    memcpy(&bits, value, sizeof(bits));
    bits = __builtin_bswap32(bits);
    memcpy(out, &bits, sizeof(bits));
}

static void put_sparse(const struct import_rows *rows, uint32_t row, uint32_t width, uint8_t *out)
{
    const uint64_t *starts = (const uint64_t *)(const void *)rows->starts.data;
    const uint32_t *indices = (const uint32_t *)(const void *)rows->indices.data;
    const float *values = (const float *)(const void *)rows->values.data;
    memset(out, 0, width * sizeof(float));
    for (uint64_t i = starts[row]; i < starts[row + 1]; i++)
        put_bits(out + indices[i] * sizeof(float), &values[i]);
}

static void put_row(const struct selection *selection, uint32_t row, size_t elements, uint8_t *out)
{
    const struct import *import = selection->import;
    const uint8_t *data = selection->rows->values.data;
    if (import->form == IMPORT_BYTES) {
        memcpy(out, data + row * elements, elements);
    } else if (import->form == IMPORT_SPARSE) {
        put_sparse(selection->rows, row, import->width, out);
    } else {
        const uint8_t *from = data + row * elements * 4;
        for (size_t i = 0; i < elements; i++) {
            float value;
            memcpy(&value, from + i * 4, sizeof(value));
            if (selection->scales)
                value = (float)(((double)value - selection->scales[i].mean) /
                                selection->scales[i].deviation);
            put_bits(out + i * 4, selection->scales ? (const void *)&value : from + i * 4);
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
    struct idx_header header = {.rank = is_image ? 4 : 2,
                                .element = import->form == IMPORT_BYTES    ? IDX_BYTE
                                           : import->form == IMPORT_TOKENS ? IDX_INT
                                                                           : IDX_FLOAT};
    header.sizes[1] = is_image ? import->channels : import->width;
    header.sizes[2] = import->height;
    header.sizes[3] = import->width;
    const size_t elements = (size_t)import->channels * import->height * import->width;
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
        if (import->target != IMPORT_NEXT) /* the tokens are their own targets */
            put_bits(bytes, from);
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

static int write_columns(const struct import *import, const struct scale *scales,
                         struct buffer *out, struct error *error)
{
    struct json_writer writer;
    buffer_init(out, COLUMNS_SIZE_MAX);
    json_writer_init(&writer, out);
    json_object_begin(&writer);
    json_field_string(&writer, "form", import_form_name(import->form));
    json_field_string(&writer, "target", import_target_name(import->target));
    json_field_string(&writer, "label", import->target_name);
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
    if (import->words.count)
        write_names(&writer, "words", &import->words);
    json_object_end(&writer);
    buffer_append_byte(out, '\n');
    return buffer_check(out, error);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static int write_selection(struct import_parts *parts, const struct selection *selection,
                           bool is_train, struct error *error)
{
    const int values = is_train ? DATASET_TRAIN_IMAGES : DATASET_TEST_IMAGES;
    const int labels = is_train ? DATASET_TRAIN_LABELS : DATASET_TEST_LABELS;
    if (write_values(selection, &parts->files[values], error) < 0)
        return -1;
    return write_targets(selection, &parts->files[labels], error);
}

static int fill(struct import_parts *parts, const struct import *import,
                const struct import_parts_options *options, uint32_t *order, struct scale *scales,
                struct error *error)
{
    const bool has_test = import->test.count > 0;
    const uint32_t count = import->train.count;
    uint32_t test_count = has_test ? 0 : count / IMPORT_ROWS_MIN;
    if (test_count > IMPORT_TEST_ROWS_MAX)
        test_count = IMPORT_TEST_ROWS_MAX;
    struct random random;
    random_init(&random, options->seed);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    random_shuffle(&random, order, count);
    if (options->label_skew > 0 && import->target != IMPORT_NEXT)
        skew_order(import, order + test_count, count - test_count, options->label_skew);
    struct selection train = {import, &import->train, order + test_count, count - test_count, NULL};
    struct selection test = {import, &import->train, order, test_count, NULL};
    uint32_t *test_order = NULL;
    if (has_test) {
        test_order = malloc(import->test.count * sizeof(*test_order));
        ASSERT(test_order);
        for (uint32_t i = 0; i < import->test.count; i++)
            test_order[i] = i;
        test = (struct selection){import, &import->test, test_order, import->test.count, NULL};
    }
    if (scales) {
        measure(&train, scales);
        train.scales = test.scales = scales;
    }
    parts->deviation = 1;
    if (import->form == IMPORT_BYTES)
        measure_bytes(parts, &import->train.values);
    const int result = write_selection(parts, &train, true, error) < 0 ||
                               write_selection(parts, &test, false, error) < 0 ||
                               write_columns(import, scales, &parts->columns, error) < 0
                           ? -1
                           : 0;
    free(test_order);
    return result;
}

int import_parts_init(struct import_parts *parts, const struct import *import,
                      const struct import_parts_options *options, struct error *error)
{
    *parts = (struct import_parts){0};
    buffer_init(&parts->columns, 0);
    if (import->form == IMPORT_SPARSE && import->width > IMPORT_DENSE_WIDTH_MAX)
        return error_set(
            error, ERROR_INVALID,
            "sparse rows of %u places are more than the %d that a built-in model takes",
            import->width, IMPORT_DENSE_WIDTH_MAX);
    const bool is_scaled = import->form == IMPORT_FLOATS && import->feature_count == import->width;
    uint32_t *order = malloc(import->train.count * sizeof(*order));
    struct scale *scales = is_scaled ? calloc(import->width, sizeof(*scales)) : NULL;
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
