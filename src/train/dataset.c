#include "train/dataset.h"

#include "base/assert.h"
#include "train/idx_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dataset {
    struct idx *images, *labels;
    struct dataset_shape shape;
    size_t element_count;         /* elements of one */
    float scale, shift;           /* pixel = byte * scale + shift; of floats nothing is changed */
    struct dataset_arrays arrays; /* instead of files */
};

static int check_labels(const struct idx *labels, uint32_t classes, struct error *error)
{
    for (uint32_t i = 0; i < labels->header.sizes[0]; i++)
        if (*idx_record(labels, i) >= classes)
            return error_set(error, ERROR_INVALID, "label %u of record %u is not below %u",
                             *idx_record(labels, i), i, classes);
    return 0;
}

static int check_shapes(const struct dataset_options *options, const struct idx *images,
                        const struct idx *labels, struct error *error)
{
    if (images->header.rank < 2 ||
        (images->header.rank == 2 && images->header.element != IDX_FLOAT))
        return error_set(error, ERROR_INVALID, "\"%s\": rank %u is no set of images",
                         options->images_path, images->header.rank);
    if (labels->header.rank != 1 || labels->header.element != IDX_BYTE)
        return error_set(error, ERROR_INVALID, "\"%s\": rank %u is no list of labels",
                         options->labels_path, labels->header.rank);
    if (images->header.sizes[0] != labels->header.sizes[0])
        return error_set(error, ERROR_INVALID, "%u images but %u labels", images->header.sizes[0],
                         labels->header.sizes[0]);
    if (images->header.sizes[0] == 0)
        return error_set(error, ERROR_INVALID, "\"%s\" holds no images", options->images_path);
    if (check_labels(labels, options->classes, error) < 0)
        return error_wrap(error, "\"%s\"", options->labels_path);
    return 0;
}

int dataset_open(const struct dataset_options *options, struct dataset **out_dataset,
                 struct error *error)
{
    if (!(options->deviation > 0))
        return error_set(error, ERROR_INVALID, "dataset: deviation %g is not above 0",
                         options->deviation);
    AUTO(dataset) struct dataset *dataset = calloc(1, sizeof(*dataset));
    ASSERT(dataset != NULL);
    const size_t size_max = options->size_max ? options->size_max : DATASET_SIZE_MAX;
    if (idx_open(options->images_path, size_max, &dataset->images, error) < 0 ||
        idx_open(options->labels_path, size_max, &dataset->labels, error) < 0 ||
        check_shapes(options, dataset->images, dataset->labels, error) < 0)
        return -1;
    const struct idx_header *header = &dataset->images->header;
    const uint32_t rank = header->rank;
    dataset->shape = (struct dataset_shape){
        .count = header->sizes[0],
        .channels = rank == 4 ? header->sizes[1] : 1,
        .height = rank > 2 ? header->sizes[rank - 2] : 1,
        .width = header->sizes[rank - 1],
        .classes = options->classes,
    };
    dataset->element_count = header->record_size / idx_element_size(header->element);
    dataset->scale = (float)(1.0 / (255.0 * options->deviation));
    dataset->shift = (float)(-options->mean / options->deviation);
    *out_dataset = TAKE(dataset);
    return 0;
}

static int check_arrays(const struct dataset_shape *shape, const struct dataset_arrays *arrays,
                        size_t element_count, struct error *error)
{
    const size_t each = dataset_labels_each(shape);
    for (size_t i = 0; i < shape->count * element_count; i++) {
        const float value = arrays->inputs[i];
        if (!isfinite(value))
            return error_set(error, ERROR_INVALID, "record %zu has a number that is not finite",
                             i / element_count);
        if (shape->vocabulary &&
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
    if (!arrays->inputs || has_values != (arrays->values != NULL) ||
        has_values == (arrays->labels != NULL) || (has_values && shape->values == 0))
        return error_set(error, ERROR_INVALID, "dataset: inputs or targets are missing");
    if (check_arrays(shape, arrays, element_count, error) < 0)
        return error_wrap(error, "dataset");
    struct dataset *dataset = calloc(1, sizeof(*dataset));
    ASSERT(dataset != NULL);
    dataset->shape = *shape;
    dataset->arrays = *arrays;
    dataset->element_count = element_count;
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

static void gather_arrays(const struct dataset *dataset, const uint32_t *indices, uint32_t count,
                          float *out_inputs, int32_t *out_labels)
{
    const size_t size = dataset->element_count, each = dataset_labels_each(&dataset->shape);
    for (uint32_t n = 0; n < count; n++) {
        DEBUG_ASSERT(indices[n] < dataset->shape.count);
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
    ASSERT(dataset->shape.target == DATASET_VALUES && dataset->arrays.values);
    for (uint32_t n = 0; n < count; n++)
        memcpy(out_values + n * each, dataset->arrays.values + indices[n] * each,
               sizeof(float) * each);
}

void dataset_gather(const struct dataset *dataset, const uint32_t *indices, uint32_t count,
                    float *out_images, int32_t *out_labels)
{
    const size_t size = dataset->element_count;
    if (dataset->arrays.inputs) {
        gather_arrays(dataset, indices, count, out_images, out_labels);
        return;
    }
    const bool is_float = dataset->images->header.element == IDX_FLOAT;
    for (uint32_t n = 0; n < count; n++) {
        DEBUG_ASSERT(indices[n] < dataset->shape.count);
        const uint8_t *restrict bytes = idx_record(dataset->images, indices[n]);
        float *restrict image = out_images + n * size;
        if (is_float)
            for (size_t i = 0; i < size; i++)
                image[i] = idx_float(bytes + i * sizeof(float));
        else
            for (size_t i = 0; i < size; i++)
                image[i] = (float)bytes[i] * dataset->scale + dataset->shift;
        out_labels[n] = *idx_record(dataset->labels, indices[n]);
    }
}

/* Seeds that differ in any of the two give unrelated orders. */
static void sampler_shuffle(struct sampler *sampler)
{
    struct random random;
    random_init(&random, sampler->seed);
    random_init(&random, random_u64(&random) + sampler->epoch);
    for (uint32_t i = 0; i < sampler->count; i++)
        sampler->order[i] = sampler->first + i;
    random_shuffle(&random, sampler->order, sampler->count);
}

int sampler_init(struct sampler *sampler, const struct dataset *dataset, uint32_t first,
                 uint32_t count, uint64_t seed, struct error *error)
{
    const uint32_t all = dataset->shape.count;
    if (count == 0 || first >= all || count > all - first)
        return error_set(error, ERROR_INVALID, "records %u + %u are not within the %u there are",
                         first, count, all);
    uint32_t *order = malloc(sizeof(*order) * count);
    ASSERT(order != NULL);
    *sampler = (struct sampler){.order = order, .first = first, .count = count, .seed = seed};
    sampler_shuffle(sampler);
    return 0;
}

void sampler_done(struct sampler *sampler)
{
    free(sampler->order);
    *sampler = (struct sampler){0};
}

void sampler_next(struct sampler *sampler, uint32_t *out_indices, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sampler->position == sampler->count) {
            sampler->position = 0;
            sampler->epoch++;
            sampler_shuffle(sampler);
        }
        out_indices[i] = sampler->order[sampler->position++];
    }
}

int sampler_seek(struct sampler *sampler, uint64_t epoch, uint32_t position, struct error *error)
{
    if (position > sampler->count)
        return error_set(error, ERROR_INVALID, "position %u is past the %u records of an epoch",
                         position, sampler->count);
    sampler->epoch = epoch;
    sampler->position = position;
    sampler_shuffle(sampler);
    return 0;
}
