#include "sim/sync_data.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>

enum { SLICE = 256 };

/* All labels; images are scaled on the way and forgotten. */
static int32_t *labels_of(const struct dataset *dataset)
{
    const struct dataset_shape *shape = dataset_shape(dataset);
    const size_t size = (size_t)shape->channels * shape->height * shape->width;
    int32_t *labels = calloc(shape->count, sizeof(*labels));
    float *images = calloc(size * SLICE, sizeof(*images));
    ASSERT(labels && images);
    for (uint32_t first = 0; first < shape->count; first += SLICE) {
        uint32_t indices[SLICE];
        const uint32_t count = shape->count - first < SLICE ? shape->count - first : SLICE;
        for (uint32_t i = 0; i < count; i++)
            indices[i] = first + i;
        dataset_gather(dataset, indices, count, images, labels + first);
    }
    free(images);
    return labels;
}

/* Counting sort: records of one label keep their order. */
static void sort_by_label(const struct dataset *dataset, uint32_t *records, uint32_t count)
{
    const uint32_t classes = dataset_shape(dataset)->classes;
    int32_t *labels = labels_of(dataset);
    uint32_t *sorted = calloc(count ? count : 1, sizeof(*sorted));
    ASSERT(sorted);
    uint32_t next = 0;
    for (uint32_t label = 0; label < classes; label++)
        for (uint32_t i = 0; i < count; i++)
            if (labels[records[i]] == (int32_t)label)
                sorted[next++] = records[i];
    ASSERT(next == count);
    for (uint32_t i = 0; i < count; i++)
        records[i] = sorted[i];
    free(sorted);
    free(labels);
}

static uint32_t part_begin(uint32_t count, uint32_t parts, uint32_t part)
{
    return (uint32_t)((uint64_t)count * part / parts);
}

/* `mixed` has the pool of mixed records first, the sorted ones behind it. */
static void deal(struct sync_data *data, const uint32_t *mixed, uint32_t even_count,
                 uint32_t sorted_count, struct random *random)
{
    const uint32_t shards = data->shard_count;
    uint32_t *turns = calloc(shards, sizeof(*turns)); /* which classes go where */
    ASSERT(turns);
    for (uint32_t i = 0; i < shards; i++)
        turns[i] = i;
    random_shuffle(random, turns, shards);
    uint32_t next = 0;
    for (uint32_t i = 0; i < shards; i++) {
        data->shards[i].first = next;
        for (uint32_t n = part_begin(even_count, shards, i);
             n < part_begin(even_count, shards, i + 1); n++)
            data->records[next++] = mixed[n];
        for (uint32_t n = part_begin(sorted_count, shards, turns[i]);
             n < part_begin(sorted_count, shards, turns[i] + 1); n++)
            data->records[next++] = mixed[even_count + n];
        data->shards[i].count = next - data->shards[i].first;
    }
    ASSERT(next == even_count + sorted_count);
    free(turns);
}

int sync_data_open(const struct sync_data_options *options, struct sync_data **out_data,
                   struct error *error)
{
    const uint32_t count = dataset_shape(options->train)->count;
    const uint32_t held = dataset_shape(options->test)->count;
    if (!(options->skew >= 0 && options->skew <= 1))
        return error_set(error, ERROR_INVALID, "a skew of %g is not from 0 to 1", options->skew);
    if (options->shard_count < 1 || count / 2 < options->shard_count)
        return error_set(error, ERROR_INVALID, "%u records are too few for %u machines", count,
                         options->shard_count);
    if (held < 3)
        return error_set(error, ERROR_INVALID, "%u test records are too few to measure on", held);
    AUTO(sync_data) struct sync_data *data = memory_zeroed(1, sizeof(*data));
    *data = (struct sync_data){
        .train = options->train,
        .test = options->test,
        .records = calloc(count, sizeof(*data->records)),
        .shards = calloc(options->shard_count, sizeof(*data->shards)),
        .shard_count = options->shard_count,
    };
    uint32_t *mixed = calloc(count, sizeof(*mixed));
    ASSERT(data->records && data->shards && mixed);
    for (uint32_t i = 0; i < count; i++)
        mixed[i] = i;
    struct random random;
    random_init(&random, options->seed);
    random_shuffle(&random, mixed, count);
    const uint32_t sorted_count = (uint32_t)lround(options->skew * count);
    if (sorted_count > 0)
        sort_by_label(options->train, mixed + (count - sorted_count), sorted_count);
    deal(data, mixed, count - sorted_count, sorted_count, &random);
    free(mixed);
    const uint32_t curve = held / 3 * 2;
    data->curve.count = curve < SYNC_CURVE_RECORDS ? curve : SYNC_CURVE_RECORDS;
    data->policy.first = data->curve.count;
    data->policy.count = held - curve < SYNC_POLICY_RECORDS ? held - curve : SYNC_POLICY_RECORDS;
    *out_data = TAKE(data);
    return 0;
}

void sync_data_free(struct sync_data *data)
{
    if (!data)
        return;
    free(data->records);
    free(data->shards);
    free(data);
}
