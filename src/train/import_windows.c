#include "train/import_windows.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What comes after the rows is told from each window of them. */
struct series {
    const float *rows, *targets;
    uint32_t count, width;
    uint32_t window, ahead;
};

static int add_window(const struct series *series, uint32_t first, struct import_rows *out,
                      struct error *error)
{
    const uint32_t width = series->width + 1;
    void *room;
    if (spool_reserve(&out->values, sizeof(float) * series->window * width, &room, error) < 0)
        return -1;
    float *at = room;
    for (uint32_t i = first; i < first + series->window; i++, at += width) {
        memcpy(at, series->rows + (size_t)i * series->width, sizeof(float) * series->width);
        at[series->width] = series->targets[i];
    }
    spool_advance(&out->values, sizeof(float) * series->window * width);
    if (import_add_number_target(out, series->targets[first + series->window - 1 + series->ahead],
                                 error) < 0)
        return -1;
    return import_row_end(out, error);
}

static void add_feature(struct import *import)
{
    struct import_feature *features =
        realloc(import->features, (import->feature_count + (size_t)2) * sizeof(*features));
    ASSERT(features);
    import->features = features;
    struct import_feature *added = &features[import->feature_count++];
    *added = (struct import_feature){.is_scaled = true};
    snprintf(added->name, sizeof(added->name), "%s", import->target_name);
}

int import_make_windows(struct import *import, uint32_t window, uint32_t ahead, struct error *error)
{
    if (import->form != IMPORT_FLOATS || import->height != 1 || import->target != IMPORT_NUMBER)
        return error_set(error, ERROR_INVALID,
                         "windows are of rows of numbers, and tell a number (train.predict)");
    const struct series series = {
        .rows = (const float *)(const void *)import->train.values.data,
        .targets = (const float *)(const void *)import->train.targets.data,
        .count = import->train.count,
        .width = import->width,
        .window = window,
        .ahead = ahead,
    };
    const uint64_t needed = (uint64_t)window + ahead - 1;
    if (series.count < needed + IMPORT_ROWS_MIN)
        return error_set(error, ERROR_INVALID,
                         "%u rows are too few for windows of %u that tell %u ahead", series.count,
                         window, ahead);
    const uint32_t count = series.count - (uint32_t)needed;
    uint32_t test_count = count / IMPORT_ROWS_MIN;
    test_count = test_count < IMPORT_TEST_ROWS_MAX ? test_count : IMPORT_TEST_ROWS_MAX;
    struct import_rows train = {0}, test = {0};
    int result = 0;
    for (uint32_t i = 0; i < count && result == 0; i++)
        result = add_window(&series, i, i < count - test_count ? &train : &test, error);
    if (result < 0) {
        import_rows_done(&train);
        import_rows_done(&test);
        return -1;
    }
    import_rows_done(&import->train);
    import->train = train;
    import->test = test;
    add_feature(import);
    import->height = window;
    import->width++;
    return 0;
}
