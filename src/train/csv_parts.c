#include "train/csv_parts.h"

#include "base/assert.h"
#include "base/json.h"
#include "base/random.h"
#include "train/idx_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_SIZE_MAX = 1 << 20 };

struct scale {
    double mean, deviation;
};

/* Two passes: the squares of large values would drown what lies between them. A column that never
 * changes is left where it is. */
static void measure(const struct csv_table *table, const uint32_t *rows, uint32_t count,
                    struct scale *scales)
{
    const uint32_t width = table->feature_count;
    memset(scales, 0, width * sizeof(*scales));
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < width; k++)
            scales[k].mean += (double)table->values[(size_t)rows[i] * width + k];
    for (uint32_t k = 0; k < width; k++)
        scales[k].mean /= count;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < width; k++) {
            const double away = (double)table->values[(size_t)rows[i] * width + k] - scales[k].mean;
            scales[k].deviation += away * away;
        }
    for (uint32_t k = 0; k < width; k++) {
        scales[k].deviation = sqrt(scales[k].deviation / count);
        if (!(scales[k].deviation > 1e-12 * fabs(scales[k].mean)))
            scales[k].deviation = 1;
    }
}

static void put_float(uint8_t *out, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits = __builtin_bswap32(bits);
    memcpy(out, &bits, sizeof(bits));
}

static int write_rows(const struct csv_table *table, const uint32_t *rows, uint32_t count,
                      const struct scale *scales, struct buffer *values, struct buffer *labels,
                      struct error *error)
{
    const uint32_t width = table->feature_count;
    const struct idx_header value_header = {
        .rank = 2, .sizes = {count, width}, .element = IDX_FLOAT};
    const struct idx_header label_header = {.rank = 1, .sizes = {count}, .element = IDX_BYTE};
    buffer_init(values, SIZE_MAX / 2);
    buffer_init(labels, SIZE_MAX / 2);
    idx_append_header(values, &value_header, count);
    idx_append_header(labels, &label_header, count);
    const size_t size = (size_t)count * width * sizeof(float);
    uint8_t *value = buffer_reserve(values, size), *label = buffer_reserve(labels, count);
    if (!value || !label)
        return error_set(error, ERROR_EXHAUSTED, "no memory for %u rows", count);
    for (uint32_t i = 0; i < count; i++) {
        const float *row = table->values + (size_t)rows[i] * width;
        for (uint32_t k = 0; k < width; k++, value += sizeof(float))
            put_float(value, (float)(((double)row[k] - scales[k].mean) / scales[k].deviation));
        label[i] = table->labels[rows[i]];
    }
    buffer_advance(values, size);
    buffer_advance(labels, count);
    return 0;
}

static int write_columns(const struct csv_table *table, const struct scale *scales,
                         struct buffer *out, struct error *error)
{
    struct json_writer writer;
    buffer_init(out, COLUMNS_SIZE_MAX);
    json_writer_init(&writer, out);
    json_object_begin(&writer);
    json_field_string(&writer, "label", table->label_name);
    json_key(&writer, "classes");
    json_array_begin(&writer);
    for (uint32_t i = 0; i < table->class_count; i++)
        json_string(&writer, table->class_names[i]);
    json_array_end(&writer);
    json_key(&writer, "features");
    json_array_begin(&writer);
    for (uint32_t i = 0; i < table->feature_count; i++) {
        json_object_begin(&writer);
        json_field_string(&writer, "name", table->feature_names[i]);
        json_field_double(&writer, "mean", scales[i].mean);
        json_field_double(&writer, "deviation", scales[i].deviation);
        json_object_end(&writer);
    }
    json_array_end(&writer);
    json_object_end(&writer);
    buffer_append_byte(out, '\n');
    return buffer_check(out, error);
}

static int fill_parts(struct csv_parts *parts, const struct csv_table *table, uint32_t *rows,
                      struct scale *scales, uint64_t seed, struct error *error)
{
    const uint32_t count = table->row_count;
    uint32_t test_count = count / CSV_TABLE_ROWS_MIN;
    if (test_count > CSV_TEST_ROWS_MAX)
        test_count = CSV_TEST_ROWS_MAX;
    struct random random;
    random_init(&random, seed);
    for (uint32_t i = 0; i < count; i++)
        rows[i] = i;
    random_shuffle(&random, rows, count);
    const uint32_t *train = rows + test_count;
    measure(table, train, count - test_count, scales);
    if (write_rows(table, train, count - test_count, scales, &parts->files[DATASET_TRAIN_IMAGES],
                   &parts->files[DATASET_TRAIN_LABELS], error) < 0 ||
        write_rows(table, rows, test_count, scales, &parts->files[DATASET_TEST_IMAGES],
                   &parts->files[DATASET_TEST_LABELS], error) < 0)
        return -1;
    return write_columns(table, scales, &parts->columns, error);
}

int csv_parts_init(struct csv_parts *parts, const struct csv_table *table, uint64_t seed,
                   struct error *error)
{
    ASSERT(table->row_count >= CSV_TABLE_ROWS_MIN);
    *parts = (struct csv_parts){0};
    uint32_t *rows = malloc(table->row_count * sizeof(*rows));
    struct scale *scales = malloc(table->feature_count * sizeof(*scales));
    const int result = rows && scales ? fill_parts(parts, table, rows, scales, seed, error)
                                      : error_set(error, ERROR_EXHAUSTED, "no memory for %u rows",
                                                  table->row_count);
    free(rows);
    free(scales);
    if (result < 0)
        csv_parts_done(parts);
    return result;
}

void csv_parts_done(struct csv_parts *parts)
{
    for (int i = 0; i < DATASET_PART_COUNT; i++)
        buffer_done(&parts->files[i]);
    buffer_done(&parts->columns);
}
