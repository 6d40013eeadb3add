/*
 * Upload: reads what a job needs, a data set of the catalogue, a CSV file, a folder's files or an
 * image, into a bundle, which is then sent.
 *
 * Each part of a data set becomes a manifest of raw idx records, so that every worker can fetch its
 * own range; a folder becomes one archive, in a file without a name.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "client/bundle.h"
#include "runtime/job_spec.h"

#include <stdbool.h>

struct upload_options {
    struct bundle *bundle;
    const char *folder; /* of the data set's files; NULL: where its package puts them */
    /* Told before and after a file is read that takes long to; may be NULL. */
    void (*on_reading)(void *context, const char *what);
    void *context;
    bool leaves_signals;          /* Ctrl-C and SIGTERM are the caller's own */
    const volatile int32_t *stop; /* ends what is fetched once it is not 0; NULL: nothing does */
};

/* Fills spec->inputs, in the arena. NOT_FOUND: the data set or one of its files is not there. */
MUST_CHECK int upload_data(struct arena *arena, const struct upload_options *options,
                           struct job_spec *spec, struct error *error);

/* Adds the files of the folder spec->workdir, or of the archive or folder at that address, to
 * spec->inputs. NOT_FOUND: there is no such folder;
 * EXHAUSTED: it is larger than 4 GiB or has more than 30,000 files. */
MUST_CHECK int upload_files(struct arena *arena, const struct upload_options *options,
                            struct job_spec *spec, struct error *error);

/* Adds the image spec->resources.image_id names, a file or an OCI layout's folder, to spec->inputs.
 */
MUST_CHECK int upload_image(struct arena *arena, const struct upload_options *options,
                            struct job_spec *spec, struct error *error);
/* Fails as that would for what is not there, or no image at first sight. */
MUST_CHECK int upload_check_image(struct text path, struct error *error);

/* Adds the wheels that spec->requirements and spec->wheels name to spec->inputs. */
MUST_CHECK int upload_wheels(struct arena *arena, const struct upload_options *options,
                             struct job_spec *spec, struct error *error);

/* A file that becomes an input whole, its records bytes. */
struct upload_file {
    int fd;           /* may be closed then */
    const char *name; /* for people; lives as long as the bundle */
    const char *media_type;
    uint64_t header_bytes;
    bool is_others; /* others may change it: it is not served */
};
MUST_CHECK int upload_add_file(const struct upload_options *options, const struct upload_file *file,
                               struct job_input *input, struct error *error);
/* A new one at the end of the list, which is a copy. */
MUST_CHECK int upload_add_input(struct arena *arena, struct job_spec *spec, struct text name,
                                enum job_split split, struct job_input **out_input,
                                struct error *error);

/* Adds the checkpoint, which the parameter server goes on from, to spec->inputs. CORRUPT when it is
 * none, INVALID when it is of another model than the job's, or has learnt all the job's epochs. */
MUST_CHECK int upload_checkpoint(struct arena *arena, const struct upload_options *options,
                                 const char *path, struct job_spec *spec, struct error *error);

/* Fails as that would, as far as is known before the data are read. */
MUST_CHECK int upload_check_checkpoint(const char *path, const struct job_spec *spec,
                                       struct error *error);

/* As job_data_name, of an address too: its query may be a secret, and its host is nobody's concern.
 */
struct text upload_name(struct text name);

/* Fails as upload_data would for data that is not there, without reading it. */
MUST_CHECK int upload_check_data(const struct job_spec *spec, const char *folder,
                                 struct error *error);
