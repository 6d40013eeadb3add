/*
 * Upload of a file or folder of the borrower's: it is read and scaled here, and sent as the parts
 * of a data set.
 */
#pragma once

#include "client/upload.h"
#include "train/import_parts.h"

/* Where the file lies: below `folder` when that is given. */
const char *upload_table_path(struct arena *arena, const struct job_train *train,
                              const char *folder);

/* As job_import_read, of what lies at an address too. */
MUST_CHECK int upload_read(struct arena *arena, const struct upload_options *options,
                           const char *path, struct job_spec *spec, struct import_parts *out_parts,
                           struct error *error);

/* As upload_data, which calls it; also fills in the shape: train.features, train.classes ... */
MUST_CHECK int upload_table(struct arena *arena, const struct upload_options *options,
                            struct job_spec *spec, struct error *error);

/* As upload_check_data, which calls it. */
MUST_CHECK int upload_check_table(const struct job_spec *spec, const char *folder,
                                  struct error *error);

/* The same of the file or folder at `path`. */
MUST_CHECK int upload_import(struct arena *arena, const struct upload_options *options,
                             const char *path, struct job_spec *spec, struct error *error);
