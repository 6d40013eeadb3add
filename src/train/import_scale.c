/* Import scale: what the numbers of a selection are, so that training sees them around 0. */
#include "base/assert.h"
#include "train/import_scale_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A value that is one of a column's; false: it has none, or a sparse row has not this place. */
bool selection_column_of(const struct import *import, size_t place, uint32_t *out_column)
{
    *out_column =
        import->form == IMPORT_SPARSE ? (uint32_t)place : (uint32_t)(place % import->width);
    return *out_column < import->feature_count && import->features[*out_column].is_scaled;
}

size_t import_sparse_entries(const struct import_rows *rows, uint32_t row, const float **out_values,
                             const uint32_t **out_indices)
{
    const uint64_t *starts = (const uint64_t *)(const void *)rows->starts.data;
    *out_values = (const float *)(const void *)rows->values.data + starts[row];
    *out_indices = (const uint32_t *)(const void *)rows->indices.data + starts[row];
    return starts[row + 1] - starts[row];
}

/* The entries of one row: of a dense one all of its places, without indices. */
static size_t selection_row_entries(const struct selection *train, uint32_t row,
                                    const float **out_values, const uint32_t **out_indices)
{
    const struct import *import = train->import;
    if (import->form == IMPORT_SPARSE)
        return import_sparse_entries(train->rows, row, out_values, out_indices);
    const size_t each = (size_t)import->height * import->width;
    *out_values = (const float *)(const void *)train->rows->values.data + row * each;
    *out_indices = NULL;
    return each;
}

static double end_scale(double squares, double mean, uint64_t count)
{
    const double deviation = count ? sqrt(squares / (double)count) : 0;
    return deviation > 1e-12 * fabs(mean) ? deviation : 1; /* one that never changes stays */
}

/* Two passes: the squares of large values would drown what lies between them. A column that never
 * changes is left where it is. */
void selection_measure(const struct selection *train, struct scale *scales)
{
    const struct import *import = train->import;
    uint64_t *counts = calloc(import->feature_count, sizeof(*counts));
    ASSERT(counts);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < train->count; i++) {
            const float *values;
            const uint32_t *indices;
            uint32_t column;
            const size_t entries = selection_row_entries(train, train->order[i], &values, &indices);
            for (size_t k = 0; k < entries; k++) {
                if (!selection_column_of(import, indices ? indices[k] : k, &column))
                    continue;
                const double away = (double)values[k] - scales[column].mean;
                if (pass == 0) {
                    scales[column].deviation += (double)values[k]; /* the sum, for now */
                    counts[column]++;
                } else {
                    scales[column].deviation += away * away;
                }
            }
        }
        for (uint32_t k = 0; k < import->feature_count; k++) {
            struct scale *scale = &scales[k];
            if (pass == 0)
                *scale = (struct scale){counts[k] ? scale->deviation / (double)counts[k] : 0, 0};
            else
                scale->deviation = end_scale(scale->deviation, scale->mean, counts[k]);
            if (pass == 1 && !import->features[k].is_scaled)
                *scale = (struct scale){0, 1};
        }
    }
    free(counts);
}

double import_target_of(const struct import *import, const struct import_rows *rows, uint32_t row)
{
    const uint8_t *at = rows->targets.data + (size_t)row * 4;
    int32_t label;
    float number;
    memcpy(&label, at, sizeof(label));
    memcpy(&number, at, sizeof(number));
    return import->target == IMPORT_NUMBER ? (double)number : label;
}

struct scale selection_measure_target(const struct selection *train)
{
    struct scale scale = {0, 0};
    for (uint32_t i = 0; i < train->count; i++)
        scale.mean += import_target_of(train->import, train->rows, train->order[i]) / train->count;
    for (uint32_t i = 0; i < train->count; i++) {
        const double away =
            import_target_of(train->import, train->rows, train->order[i]) - scale.mean;
        scale.deviation += away * away;
    }
    scale.deviation = end_scale(scale.deviation, scale.mean, train->count);
    return scale;
}

/* Bytes are few: their counts tell all. */
void import_parts_measure_bytes(struct import_parts *parts, const struct spool *bytes)
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
