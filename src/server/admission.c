#include "server/admission.h"

#include "base/assert.h"

#include <stdlib.h>

static int compare_blocks(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* The block of which most could go; the newcomer counts, so that its own is taken of two. */
static uint64_t largest_block(const struct admission_guest *guests, size_t count, uint64_t newcomer)
{
    uint64_t blocks[ADMISSION_MAX + 1] = {newcomer};
    size_t block_count = 1, most = 0;
    uint64_t largest = newcomer;
    for (size_t i = 0; i < count; i++)
        if (!guests[i].is_known)
            blocks[block_count++] = guests[i].block;
    qsort(blocks, block_count, sizeof(*blocks), compare_blocks);
    for (size_t i = 0, run = 0; i < block_count; i++) {
        run = i > 0 && blocks[i] == blocks[i - 1] ? run + 1 : 1;
        if (run > most || (run == most && blocks[i] == newcomer)) {
            most = run;
            largest = blocks[i];
        }
    }
    return largest;
}

static struct admission take_place_of(const struct admission_guest *guests, size_t count,
                                      uint64_t block)
{
    struct admission admission = {ADMISSION_FULL, 0};
    for (size_t i = 0; i < count; i++) {
        if (guests[i].block != block || guests[i].is_known)
            continue;
        if (guests[i].is_silent)
            return (struct admission){ADMISSION_INSTEAD, i};
        if (admission.kind == ADMISSION_FULL)
            admission = (struct admission){ADMISSION_INSTEAD, i};
    }
    return admission;
}

struct admission admission_judge(const struct admission_guest *guests, size_t count, uint64_t block)
{
    ASSERT(count <= ADMISSION_MAX);
    size_t of_block = 0;
    for (size_t i = 0; i < count; i++)
        of_block += guests[i].block == block;
    if (of_block >= ADMISSION_BLOCK_MAX)
        return take_place_of(guests, count, block);
    if (count < ADMISSION_MAX)
        return (struct admission){ADMISSION_FREE, 0};
    return take_place_of(guests, count, largest_block(guests, count, block));
}
