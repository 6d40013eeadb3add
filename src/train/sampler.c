#include "train/sampler.h"

#include "base/assert.h"
#include "base/random.h"

#include <stdlib.h>

/* Seeds that differ in any of the three give unrelated orders; part 0 is the epoch's own. */
static void sampler_random(const struct sampler *sampler, uint64_t part, struct random *out_random)
{
    random_init(out_random, sampler->seed);
    random_init(out_random, random_u64(out_random) + sampler->epoch);
    if (part)
        random_init(out_random, random_u64(out_random) + part);
}

static uint32_t block_size(const struct sampler *sampler, uint32_t block)
{
    const uint32_t first = block * sampler->block_records;
    const uint32_t left = sampler->count - first;
    return left < sampler->block_records ? left : sampler->block_records;
}

/* The last block, which may be short, may lie in any window: windows differ by its size. */
static void fill_window(struct sampler *sampler)
{
    const uint32_t begin = sampler->window_number * sampler->window_blocks;
    uint32_t count = 0;
    for (uint32_t i = begin; i < begin + sampler->window_blocks && i < sampler->block_count; i++) {
        const uint32_t block = sampler->blocks[i], size = block_size(sampler, block);
        const uint32_t first = sampler->first + block * sampler->block_records;
        dataset_expect(sampler->dataset, first, size);
        for (uint32_t k = 0; k < size; k++)
            sampler->order[count++] = first + k;
    }
    struct random random;
    sampler_random(sampler, sampler->window_number + (uint64_t)1, &random);
    random_shuffle(&random, sampler->order, count);
    sampler->window_count = count;
}

static void begin_epoch(struct sampler *sampler)
{
    struct random random;
    sampler_random(sampler, 0, &random);
    sampler->window_first = sampler->window_number = 0;
    if (!sampler->blocks) {
        for (uint32_t i = 0; i < sampler->count; i++)
            sampler->order[i] = sampler->first + i;
        random_shuffle(&random, sampler->order, sampler->count);
        sampler->window_count = sampler->count;
        return;
    }
    for (uint32_t i = 0; i < sampler->block_count; i++)
        sampler->blocks[i] = i;
    random_shuffle(&random, sampler->blocks, sampler->block_count);
    fill_window(sampler);
}

static void next_window(struct sampler *sampler)
{
    sampler->window_first += sampler->window_count;
    sampler->window_number++;
    fill_window(sampler);
}

int sampler_init(struct sampler *sampler, const struct dataset *dataset, uint32_t first,
                 uint32_t count, uint64_t seed, struct error *error)
{
    const uint32_t all = dataset_shape(dataset)->count;
    const size_t bytes = dataset_record_bytes(dataset);
    if (count == 0 || first >= all || count > all - first)
        return error_set(error, ERROR_INVALID, "records %u + %u are not within the %u there are",
                         first, count, all);
    *sampler = (struct sampler){.dataset = dataset, .first = first, .count = count, .seed = seed};
    uint32_t room = count;
    if (bytes * count > SAMPLER_WINDOW_BYTES) {
        sampler->block_records =
            bytes < SAMPLER_BLOCK_BYTES ? (uint32_t)(SAMPLER_BLOCK_BYTES / bytes) : 1;
        sampler->window_blocks = SAMPLER_WINDOW_BYTES / SAMPLER_BLOCK_BYTES;
        sampler->block_count = (count - 1) / sampler->block_records + 1;
        sampler->blocks = malloc(sizeof(*sampler->blocks) * sampler->block_count);
        ASSERT(sampler->blocks);
        room = sampler->block_records * sampler->window_blocks;
    }
    sampler->order = malloc(sizeof(*sampler->order) * room);
    ASSERT(sampler->order);
    begin_epoch(sampler);
    return 0;
}

void sampler_done(struct sampler *sampler)
{
    free(sampler->blocks);
    free(sampler->order);
    *sampler = (struct sampler){0};
}

void sampler_next(struct sampler *sampler, uint32_t *out_indices, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sampler->position == sampler->count) {
            sampler->position = 0;
            sampler->epoch++;
            begin_epoch(sampler);
        } else if (sampler->position == sampler->window_first + sampler->window_count) {
            next_window(sampler);
        }
        out_indices[i] = sampler->order[sampler->position++ - sampler->window_first];
    }
}

int sampler_seek(struct sampler *sampler, uint64_t epoch, uint32_t position, struct error *error)
{
    if (position > sampler->count)
        return error_set(error, ERROR_INVALID, "position %u is past the %u records of an epoch",
                         position, sampler->count);
    sampler->epoch = epoch;
    begin_epoch(sampler);
    while (position > sampler->window_first + sampler->window_count)
        next_window(sampler);
    sampler->position = position;
    return 0;
}
