/* A folder of the tests' own, removed with what lies in it. */
#pragma once

#include "base/file.h"
#include "testing/testing.h"
#include "train/reader_internal.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct scratch {
    char folder[64];
    char path[256]; /* of the last file */
};

static inline void scratch_init(struct scratch *scratch)
{
    snprintf(scratch->folder, sizeof(scratch->folder), "/tmp/reader_test.XXXXXX");
    assert_non_null(mkdtemp(scratch->folder));
}

static inline int scratch_remove(const char *path, const struct stat *status, int kind,
                                 struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

static inline void scratch_done(struct scratch *scratch)
{
    // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
    nftw(scratch->folder, scratch_remove, 8, FTW_DEPTH | FTW_PHYS);
}

static inline void scratch_folder(struct scratch *scratch, const char *name)
{
    snprintf(scratch->path, sizeof(scratch->path), "%s/%s", scratch->folder, name);
    assert_int_equal(mkdir(scratch->path, 0700), 0);
}

static inline const char *scratch_write(struct scratch *scratch, const char *name,
                                        struct text bytes)
{
    struct error error;
    snprintf(scratch->path, sizeof(scratch->path), "%s/%s", scratch->folder, name);
    ASSERT_OK(file_replace(scratch->path, &bytes, 1, 0600, &error));
    return scratch->path;
}

static inline void assert_says(const struct error *error, const char *word)
{
    if (!strstr(error->message, word))
        fail_msg("\"%s\" does not say \"%s\"", error->message, word);
}

static inline struct import_options default_options(void)
{
    struct import_options options;
    import_options_default(&options);
    return options;
}

static inline const float *floats_of(const struct import_rows *rows)
{
    return (const float *)(const void *)rows->values.data;
}

static inline const int32_t *tokens_of(const struct import_rows *rows)
{
    return (const int32_t *)(const void *)rows->values.data;
}

static inline const int32_t *classes_of(const struct import_rows *rows)
{
    return (const int32_t *)(const void *)rows->targets.data;
}

static inline const float *numbers_of(const struct import_rows *rows)
{
    return (const float *)(const void *)rows->targets.data;
}
