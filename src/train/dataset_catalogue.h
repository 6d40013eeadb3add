/*
 * Dataset catalogue: the data sets known by name: where Debian keeps them and how to scale them.
 *
 * To add one: a row in dataset_catalogue.c, its name in runtime/job_spec.c. The scaling belongs to
 * the name, so that workers that see only a shard scale as everybody else does.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "train/dataset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dataset_part {
    DATASET_TRAIN_IMAGES,
    DATASET_TRAIN_LABELS,
    DATASET_TEST_IMAGES,
    DATASET_TEST_LABELS,
    DATASET_PART_COUNT,
};

struct dataset_entry {
    const char *name;    /* "fashion-mnist" */
    const char *about;   /* one sentence for people */
    const char *licence; /* SPDX, or what its authors say */
    const char *origin;  /* where it was published */
    uint64_t train_records, test_records;
    /* Of each part's manifest (blob/manifest.h), 64 hex digits: the same bytes for everybody. NULL:
     * how it is split follows from the job's seed. */
    const char *hashes[DATASET_PART_COUNT];
    const char *folder;  /* where its package puts it */
    const char *package; /* for the message when it is not there */
    const char *train_images, *train_labels, *test_images, *test_labels; /* file names */
    uint32_t channels, height, width, classes;
    double mean, deviation;
    bool is_imported; /* a folder for train/reader.h, not the four files: they are NULL */
};

size_t dataset_entry_count(void);
const struct dataset_entry *dataset_entry_at(size_t index);

/* NOT_FOUND, naming those there are. */
MUST_CHECK int dataset_entry_find(struct text name, const struct dataset_entry **out_entry,
                                  struct error *error);

const char *dataset_part_name(enum dataset_part part); /* "train-images" ... */

/* The file of one part under `folder` (NULL: the package's), as it is or without ".gz", whichever
 * exists. NOT_FOUND says which package brings it. */
MUST_CHECK int dataset_entry_path(const struct dataset_entry *entry, const char *folder,
                                  enum dataset_part part, char *out_path, size_t out_size,
                                  struct error *error);
/* Both files of it as one data set, scaled as the entry says. Fails as dataset_entry_path and
 * dataset_open do. */
MUST_CHECK int dataset_entry_open(const struct dataset_entry *entry, const char *folder,
                                  enum dataset_part images, enum dataset_part labels,
                                  struct dataset **out_dataset, struct error *error);
