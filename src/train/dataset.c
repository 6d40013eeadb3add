#include "train/dataset.h"

#include "base/assert.h"
#include "train/idx_reader.h"

#include <stdlib.h>
#include <string.h>

struct dataset {
    struct idx *images, *labels;
    struct dataset_shape shape;
    size_t element_count; /* elements of one */
    float scale, shift;   /* pixel = byte * scale + shift; of floats nothing is changed */
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

void dataset_gather(const struct dataset *dataset, const uint32_t *indices, uint32_t count,
                    float *out_images, int32_t *out_labels)
{
    const size_t size = dataset->element_count;
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
