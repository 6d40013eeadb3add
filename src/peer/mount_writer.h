/*
 * Mount writer: the files of a job's mount, made from the bytes of all of them.
 *
 * Names and sizes are the borrower's (runtime/mount_index.h has checked them): nothing is made but
 * below the folder given, through no link, and nothing that is there already is touched.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"
#include "runtime/mount_index.h"

struct mount_writer;

/* Files of `part` at FOLDER/TARGET, a single one as TARGET itself. `index` outlives it. */
MUST_CHECK int mount_writer_open(const char *folder, struct text target,
                                 const struct mount_index *index, const struct mount_part *part,
                                 struct mount_writer **out_writer, struct error *error);
/* Their next bytes, in the index's order; no more than the part has. */
MUST_CHECK int mount_writer_put(struct mount_writer *writer, struct text bytes,
                                struct error *error);
/* Once all bytes were put: the empty files at the end. */
MUST_CHECK int mount_writer_finish(struct mount_writer *writer, struct error *error);
void mount_writer_free(struct mount_writer *writer); /* NULL is fine */
DEFINE_AUTO(mount_writer);
