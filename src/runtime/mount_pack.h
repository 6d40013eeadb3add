/*
 * Mount pack: the file or folder at a path, made the one file that a mount travels as
 * (mount_index.h).
 *
 * Where `souk job submit` brings it, and where the market fetches it for somebody.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "runtime/mount_index.h"

#define MOUNT_MEDIA_TYPE "application/x-souk-mount"

/* Without slashes behind it: the form in which the others take it. */
const char *mount_pack_path(struct arena *arena, const char *path);

/* Which files there are. EXHAUSTED when they are larger than 64 GiB or more than MOUNT_FILES_MAX;
 * INVALID when there is none, or one that cannot travel. */
MUST_CHECK int mount_pack_gather(struct arena *arena, const char *path,
                                 struct mount_index *out_index, struct error *error);

/* Its lines cannot be told from each other. */
bool mount_pack_is_compressed(const char *path);

/* Of a single file: where its lines begin, so that ranks can share them. INVALID for one that is
 * compressed. */
MUST_CHECK int mount_pack_cut(struct arena *arena, const char *path, struct mount_index *index,
                              struct error *error);

/* CONFLICT when a file has become shorter meanwhile. */
MUST_CHECK int mount_pack_write(const char *path, const struct mount_index *index, int fd,
                                struct error *error);
