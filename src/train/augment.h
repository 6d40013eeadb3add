/*
 * Augment: images moved and mirrored at random, so that a model sees more of them than there are.
 */
#pragma once

#include "base/error.h"
#include "train/dataset.h"

#include <stdbool.h>
#include <stdint.h>

struct augment {
    uint32_t
        crop;  /* each is padded by so many black pixels, and cut to its size anywhere; 0: not */
    bool flip; /* half of them are mirrored, left to right */
};

/* INVALID: such data are no images, or too small to be moved so far. */
MUST_CHECK int augment_check(const struct augment *augment, const struct dataset_shape *shape,
                             struct error *error);

/* In place. What happens to the image at place n follows from the seed and n alone. */
void augment_images(const struct augment *augment, const struct dataset *dataset, uint64_t seed,
                    uint32_t count, float *images);
