#include "train/dataset.h"

#include "base/assert.h"
#include "base/memory.h"
#include "train/idx_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct dataset {
    struct idx *images, *labels;
    struct dataset_shape shape;
    size_t element_count;         /* elements of one */
    float scale, shift;           /* pixel = byte * scale + shift; of floats nothing is changed */
    struct dataset_arrays arrays; /* instead of files */
};

/* ---- Files ----------------------------------------------------------------------------------- */

/* Where a record's element lies, for messages. */
static size_t byte_of(const struct idx *idx, const uint8_t *element)
{
    return (size_t)(element - idx->bytes);
}

static int check_label(const struct dataset_options *options, const struct idx *labels,
                       uint32_t record, struct error *error)
{
    const uint8_t *at = idx_record(labels, record);
    if (labels->header.element == IDX_FLOAT)
        return isfinite(idx_float(at))
                   ? 0
                   : error_set(error, ERROR_INVALID,
                               "the target of record %u is not finite (byte %zu)", record,
                               byte_of(labels, at));
    const int32_t label = labels->header.element == IDX_BYTE ? *at : idx_int(at);
    if (label < 0)
        return error_set(error, ERROR_INVALID, "label %d of record %u is below 0 (byte %zu)", label,
                         record, byte_of(labels, at));
    if ((uint32_t)label >= options->classes)
        return error_set(error, ERROR_INVALID, "label %d of record %u is not below %u (byte %zu)",
                         label, record, options->classes, byte_of(labels, at));
    return 0;
}

static int check_labels(const struct dataset_options *options, const struct idx *labels,
                        const struct idx *images, struct error *error)
{
    const bool has_values = options->target == DATASET_VALUES;
    if (labels->header.rank != 1 || (labels->header.element == IDX_FLOAT) != has_values)
        return error_set(error, ERROR_INVALID,
                         "\"%s\": rank %u of element type 0x%02x is no list "
                         "of %s",
                         options->labels_path, labels->header.rank,
                         (unsigned)labels->header.element, has_values ? "numbers" : "labels");
    if (images->header.sizes[0] != labels->header.sizes[0])
        return error_set(error, ERROR_INVALID, "%u images but %u labels", images->header.sizes[0],
                         labels->header.sizes[0]);
    for (uint32_t i = 0; i < labels->header.sizes[0]; i++)
        if (check_label(options, labels, i, error) < 0)
            return error_wrap(error, "\"%s\"", options->labels_path);
    return 0;
}

static int check_whole(const struct dataset_options *options, const struct idx *images,
                       const uint8_t *at, double number, struct error *error)
{
    if (number >= 0 && number < options->vocabulary && number == floor(number))
        return 0;
    return error_set(error, ERROR_INVALID, "%s %g of record %zu is not below %u (byte %zu)",
                     images->header.element == IDX_INT ? "token" : "place", number,
                     (byte_of(images, at) - images->header.header_size) /
                         images->header.record_size,
                     options->vocabulary, byte_of(images, at));
}

/* What layers index with must be within bounds; what they compute with must be numbers. */
static int check_elements(const struct dataset_options *options, const struct idx *images,
                          struct error *error)
{
    const struct idx_header *header = &images->header;
    const size_t each = header->record_size / 4;
    if (header->element == IDX_BYTE)
        return 0;
    for (uint32_t i = 0; i < header->sizes[0]; i++) {
        const uint8_t *record = idx_record(images, i);
        for (size_t k = 0; k < each; k++) {
            const uint8_t *at = record + 4 * k;
            const bool is_token = header->element == IDX_INT;
            const float number = is_token ? (float)idx_int(at) : idx_float(at);
            if (!isfinite(number))
                return error_set(error, ERROR_INVALID,
                                 "record %u has a number that is not finite (byte %zu)", i,
                                 byte_of(images, at));
            if ((is_token || (options->vocabulary && k < each / 2)) &&
                check_whole(options, images, at, (double)number, error) < 0)
                return -1;
        }
    }
    return 0;
}

static int check_images(const struct dataset_options *options, const struct idx *images,
                        struct error *error)
{
    const struct idx_header *header = &images->header;
    const bool is_token = header->element == IDX_INT;
    const bool is_sparse = options->vocabulary && !is_token;
    if (header->rank < 2 || (header->rank == 2 && header->element == IDX_BYTE) ||
        (is_token && (header->rank != 2 || !options->vocabulary)) ||
        (is_sparse &&
         (header->rank != 3 || header->sizes[1] != 2 || header->element != IDX_FLOAT)) ||
        (options->target == DATASET_STEPS && (!is_token || header->sizes[1] < 2)))
        return error_set(error, ERROR_INVALID, "rank %u of element type 0x%02x is no set of %s",
                         header->rank, (unsigned)header->element,
                         is_sparse             ? "sparse rows"
                         : options->vocabulary ? "tokens"
                                               : "images");
    if (header->sizes[0] == 0)
        return error_set(error, ERROR_INVALID, "it holds no records");
    return check_elements(options, images, error);
}

static struct dataset_shape shape_of(const struct dataset_options *options,
                                     const struct idx_header *header)
{
    const uint32_t rank = header->rank;
    struct dataset_shape shape = {
        .count = header->sizes[0],
        .channels = rank == 4 ? header->sizes[1] : 1,
        .height = rank > 2 ? header->sizes[rank - 2] : 1,
        .width = header->sizes[rank - 1],
        .classes = options->target == DATASET_VALUES ? 0 : options->classes,
        .vocabulary = options->vocabulary,
        .target = options->target,
        .values = options->target == DATASET_VALUES,
    };
    if (options->target == DATASET_STEPS)
        shape.steps = --shape.width; /* the last token is only told */
    return shape;
}

static void scaling_set(struct dataset *dataset, double mean, double deviation)
{
    dataset->scale = (float)(1.0 / (255.0 * deviation));
    dataset->shift = (float)(-mean / deviation);
}

int dataset_open(const struct dataset_options *options, struct dataset **out_dataset,
                 struct error *error)
{
    if (!(options->deviation > 0))
        return error_set(error, ERROR_INVALID, "dataset: deviation %g is not above 0",
                         options->deviation);
    AUTO(dataset) struct dataset *dataset = memory_zeroed(1, sizeof(*dataset));
    const size_t size_max = options->size_max ? options->size_max : DATASET_SIZE_MAX;
    if (idx_open(options->images_path, size_max, &dataset->images, error) < 0)
        return -1;
    if (check_images(options, dataset->images, error) < 0)
        return error_wrap(error, "\"%s\"", options->images_path);
    if (options->target != DATASET_STEPS &&
        (idx_open(options->labels_path, size_max, &dataset->labels, error) < 0 ||
         check_labels(options, dataset->labels, dataset->images, error) < 0))
        return -1;
    const struct idx_header *header = &dataset->images->header;
    dataset->shape = shape_of(options, header);
    dataset->element_count =
        (size_t)dataset->shape.channels * dataset->shape.height * dataset->shape.width;
    scaling_set(dataset, options->mean, options->deviation);
    *out_dataset = TAKE(dataset);
    return 0;
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

static int check_arrays(const struct dataset_shape *shape, const struct dataset_arrays *arrays,
                        size_t element_count, struct error *error)
{
    const size_t each = dataset_labels_each(shape);
    /* Of sparse rows the first half are places, and the rest any numbers. */
    const size_t token_count = shape->height == 2 ? element_count / 2 : element_count;
    for (size_t i = 0; arrays->inputs && i < shape->count * element_count; i++) {
        const float value = arrays->inputs[i];
        if (!isfinite(value))
            return error_set(error, ERROR_INVALID, "record %zu has a number that is not finite",
                             i / element_count);
        if (shape->vocabulary && i % element_count < token_count &&
            (value < 0 || value >= (float)shape->vocabulary || value != floorf(value)))
            return error_set(error, ERROR_INVALID, "token %g of record %zu is not below %u",
                             (double)value, i / element_count, shape->vocabulary);
    }
    for (size_t i = 0; i < shape->count * each; i++)
        if (arrays->labels[i] < 0 || (uint32_t)arrays->labels[i] >= shape->classes)
            return error_set(error, ERROR_INVALID, "label %d of record %zu is not below %u",
                             arrays->labels[i], i / each, shape->classes);
    for (size_t i = 0; arrays->values && i < (size_t)shape->count * shape->values; i++)
        if (!isfinite(arrays->values[i]))
            return error_set(error, ERROR_INVALID, "the target of record %zu is not finite",
                             i / shape->values);
    return 0;
}

int dataset_open_arrays(const struct dataset_shape *shape, const struct dataset_arrays *arrays,
                        struct dataset **out_dataset, struct error *error)
{
    const bool has_values = shape->target == DATASET_VALUES;
    const size_t element_count = (size_t)shape->channels * shape->height * shape->width;
    if (shape->count == 0 || element_count == 0)
        return error_set(error, ERROR_INVALID, "dataset: no records");
    if ((arrays->inputs != NULL) == (arrays->pixels != NULL) ||
        has_values != (arrays->values != NULL) || has_values == (arrays->labels != NULL) ||
        (has_values && shape->values == 0))
        return error_set(error, ERROR_INVALID, "dataset: inputs or targets are missing");
    if (arrays->pixels && !(arrays->deviation > 0))
        return error_set(error, ERROR_INVALID, "dataset: deviation %g is not above 0",
                         arrays->deviation);
    if (check_arrays(shape, arrays, element_count, error) < 0)
        return error_wrap(error, "dataset");
    struct dataset *dataset = calloc(1, sizeof(*dataset));
    ASSERT(dataset != NULL);
    dataset->shape = *shape;
    dataset->arrays = *arrays;
    dataset->element_count = element_count;
    if (arrays->pixels)
        scaling_set(dataset, arrays->mean, arrays->deviation);
    *out_dataset = dataset;
    return 0;
}

void dataset_free(struct dataset *dataset)
{
    if (!dataset)
        return;
    idx_free(dataset->images);
    idx_free(dataset->labels);
    free(dataset);
}

const struct dataset_shape *dataset_shape(const struct dataset *dataset)
{
    return &dataset->shape;
}

static void scale_pixels(const struct dataset *dataset, const uint8_t *restrict bytes,
                         float *restrict image)
{
    for (size_t i = 0; i < dataset->element_count; i++)
        image[i] = (float)bytes[i] * dataset->scale + dataset->shift;
}

static void gather_arrays(const struct dataset *dataset, const uint32_t *indices, uint32_t count,
                          float *out_inputs, int32_t *out_labels)
{
    const size_t size = dataset->element_count, each = dataset_labels_each(&dataset->shape);
    for (uint32_t n = 0; n < count; n++) {
        DEBUG_ASSERT(indices[n] < dataset->shape.count);
        if (dataset->arrays.pixels)
            scale_pixels(dataset, dataset->arrays.pixels + indices[n] * size,
                         out_inputs + n * size);
        else
            memcpy(out_inputs + n * size, dataset->arrays.inputs + indices[n] * size,
                   sizeof(float) * size);
        if (each)
            memcpy(out_labels + n * each, dataset->arrays.labels + indices[n] * each,
                   sizeof(int32_t) * each);
    }
}

void dataset_gather_values(const struct dataset *dataset, const uint32_t *indices, uint32_t count,
                           float *out_values)
{
    const size_t each = dataset->shape.values;
    ASSERT(dataset->shape.target == DATASET_VALUES);
    for (uint32_t n = 0; n < count; n++)
        if (dataset->arrays.values)
            memcpy(out_values + n * each, dataset->arrays.values + indices[n] * each,
                   sizeof(float) * each);
        else
            out_values[n] = idx_float(idx_record(dataset->labels, indices[n]));
}

/* The image's elements as floats, from what the file has. */
static void read_record(const struct dataset *dataset, const uint8_t *restrict bytes,
                        float *restrict out)
{
    const size_t size = dataset->element_count;
    switch (dataset->images->header.element) {
    case IDX_BYTE:
        scale_pixels(dataset, bytes, out);
        break;
    case IDX_INT:
        for (size_t i = 0; i < size; i++)
            out[i] = (float)idx_int(bytes + i * sizeof(float));
        break;
    case IDX_FLOAT:
        for (size_t i = 0; i < size; i++)
            out[i] = idx_float(bytes + i * sizeof(float));
        break;
    }
}

static void read_labels(const struct dataset *dataset, uint32_t index, int32_t *out_labels)
{
    if (dataset->shape.target == DATASET_STEPS) {
        const uint8_t *tokens = idx_record(dataset->images, index);
        for (size_t i = 0; i < dataset->shape.steps; i++)
            out_labels[i] = idx_int(tokens + 4 * (i + 1));
    } else if (dataset->shape.target == DATASET_CLASS) {
        const uint8_t *label = idx_record(dataset->labels, index);
        *out_labels = dataset->labels->header.element == IDX_BYTE ? *label : idx_int(label);
    }
}

void dataset_gather(const struct dataset *dataset, const uint32_t *indices, uint32_t count,
                    float *out_images, int32_t *out_labels)
{
    const size_t each = dataset_labels_each(&dataset->shape);
    if (!dataset->images) {
        gather_arrays(dataset, indices, count, out_images, out_labels);
        return;
    }
    for (uint32_t n = 0; n < count; n++) {
        DEBUG_ASSERT(indices[n] < dataset->shape.count);
        read_record(dataset, idx_record(dataset->images, indices[n]),
                    out_images + n * dataset->element_count);
        read_labels(dataset, indices[n], out_labels + n * each);
    }
}

float dataset_black(const struct dataset *dataset)
{
    const bool has_bytes = dataset->images ? dataset->images->header.element == IDX_BYTE
                                           : dataset->arrays.pixels != NULL;
    return has_bytes ? dataset->shift : 0;
}

size_t dataset_record_bytes(const struct dataset *dataset)
{
    return dataset->images ? dataset->images->header.record_size : 0;
}

void dataset_expect(const struct dataset *dataset, uint32_t first, uint32_t count)
{
    if (!dataset->images || count == 0)
        return;
    enum { PAGE = 4096 };
    const uintptr_t begin = (uintptr_t)idx_record(dataset->images, first) & ~(uintptr_t)(PAGE - 1);
    const uintptr_t end = (uintptr_t)idx_record(dataset->images, first + count - 1) +
                          dataset->images->header.record_size;
    /* Advice only: without it the pages come as they are touched. */
    (void)madvise((void *)begin, end - begin, MADV_WILLNEED); // NOLINT(performance-no-int-to-ptr)
}
