/*
 * Job import: a file or folder of the borrower's, read and scaled as its job says, and what becomes
 * of it: the parts of a data set, and the shape that goes into the job.
 *
 * The same where `souk job submit` reads, and where the market does it for somebody.
 */
#pragma once

#include "runtime/job_spec.h"
#include "train/import_parts.h"

/* Where the market's reader finds its job and leaves what it made, inside its sandbox. */
#define JOB_IMPORT_FOLDER "/import"

/* What the market is told of a path: its last name; a folder keeps the slash behind it. */
struct text job_data_name(struct text path);

/* Told what was read, in sentences for people; may be NULL. */
typedef void job_import_note(void *context, const char *what);

/* Reads and scales it; also fills in the shape: train.features, train.classes ... INVALID, CORRUPT
 * with the reader's words behind "train.data: ": what, and in which line or at which byte. On
 * success the caller calls import_parts_done. */
MUST_CHECK int job_import_read(struct arena *arena, const char *path, struct job_spec *spec,
                               job_import_note *note, void *context, struct import_parts *out_parts,
                               struct error *error);

/* One of the files that a job's data travel in. */
struct job_part {
    const char *name;  /* the input's: "train-images" */
    const char *title; /* for people: "training inputs" */
    const char *media_type;
    enum job_split split;
    uint64_t header_bytes, record_bytes;
    struct text bytes;
};

enum { JOB_PARTS_MAX = DATASET_PART_COUNT + 1 };
#define JOB_PART_COLUMNS "columns"
#define JOB_PART_MOUNT   "mount" /* of a mount that the market packs: all of it */

/* Of idx bytes, which must stay; CORRUPT when they are none. */
MUST_CHECK int job_part_of_idx(enum dataset_part part, struct text bytes, struct job_part *out_part,
                               struct error *error);
/* How further rows are brought into the same shape; `is_shared`: the workers need it too. */
struct job_part job_part_of_columns(struct text json, bool is_shared);

/* Of data at lenders only the test is the borrower's. */
MUST_CHECK int job_import_parts(const struct job_train *train, const struct import_parts *parts,
                                struct job_part out_parts[JOB_PARTS_MAX], size_t *out_count,
                                struct error *error);
