/*
 * Train data: a job's data set opened here, as a worker and the parameter server would see it
 * together: a name of the catalogue, or a file or folder, read and scaled as for the market.
 */
#pragma once

#include "base/scope.h"
#include "client/upload.h"
#include "train/dataset.h"
#include "train/import_parts.h"

struct train_data {
    struct dataset *train, *test;
    struct dataset_shape shape;    /* its count is 0 */
    double mean, deviation;        /* of bytes of images; deviation 0: they are none */
    bool has_parts;                /* of a file: `parts` */
    struct import_parts parts;     /* columns among them */
    int files[DATASET_PART_COUNT]; /* descriptors of the parts; -1: none */
};

/* Fills in the spec's shape, too. `dataset_dir` as of --dataset-dir; `on_reading` as of upload.h,
 * may be NULL. */
MUST_CHECK int train_data_open(struct arena *arena, struct job_spec *spec, const char *dataset_dir,
                               void (*on_reading)(void *context, const char *what), void *context,
                               struct train_data **out_data, struct error *error);
void train_data_free(struct train_data *data); /* NULL is fine */
DEFINE_AUTO(train_data);
