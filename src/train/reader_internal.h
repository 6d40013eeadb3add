/* Readers' own: the rows of reader.c's table, and the parts that fuzz targets and tests call. */
#pragma once

#include "train/reader.h"

extern const struct reader reader_idx, reader_cifar, reader_cifar_strips, reader_csv, reader_libsvm,
    reader_text, reader_images, reader_npy;

/* A file, or bytes where `path` is NULL; opened as often as a reader passes over it. */
struct reader_source {
    const char *path;
    struct text bytes;
};
MUST_CHECK int reader_source_open(const struct reader_source *source, uint64_t size_max,
                                  struct data_stream **out_stream, struct error *error);

MUST_CHECK int reader_csv_read(const struct reader_source *source,
                               const struct import_options *options, struct import *out_import,
                               struct error *error);
MUST_CHECK int reader_libsvm_read(const struct reader_source *source,
                                  const struct import_options *options, struct import *out_import,
                                  struct error *error);

/* The names in a folder that do not begin with a dot, sorted; at most READER_NAMES_MAX. */
enum { READER_NAMES_MAX = 4 << 20, READER_PATH_SIZE = 4096 };
struct reader_names {
    char **names;
    size_t count;
};
MUST_CHECK int reader_names_read(const char *folder, struct reader_names *out_names,
                                 struct error *error);
void reader_names_done(struct reader_names *names);
#define AUTO_NAMES __attribute__((cleanup(reader_names_done)))

/* "FOLDER/NAME"; INVALID when it is too long. `out` has READER_PATH_SIZE. */
MUST_CHECK int reader_join(const char *folder, const char *name, char *out, struct error *error);
bool reader_is_file(const char *folder, const char *name);
bool reader_is_folder(const char *folder, const char *name);
/* `name` as it is, or with .gz or .zst; false: none is there. `out` has READER_PATH_SIZE. */
bool reader_find_file(const char *folder, const char *name, char *out);

/* Whether a comma-separated list has the word. */
bool reader_list_has(const char *list, const char *word);

/* Records of `label_bytes` (2: CIFAR-100) and 3 x 32 x 32 bytes. */
MUST_CHECK int reader_cifar_read(const struct reader_source *source, uint32_t label_bytes,
                                 uint64_t size_max, struct import_rows *rows, struct error *error);
/* A JSON list of numbers below `classes`, as targets. */
MUST_CHECK int reader_labels_read(struct text json, uint32_t classes, struct import_rows *rows,
                                  struct error *error);
/* Lines of LABEL <tab> TEXT. */
MUST_CHECK int reader_text_read(const struct reader_source *source,
                                const struct import_options *options, struct import *out_import,
                                struct error *error);
/* The bytes of a .npz file. */
MUST_CHECK int reader_npz_read(struct text bytes, const struct import_options *options,
                               struct import *out_import, struct error *error);
