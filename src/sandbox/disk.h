/*
 * Disk: a folder that holds only so much, whatever is written into it.
 *
 * Root makes it a file system of its own in a file beside it, FOLDER.disk, whose space is taken
 * when it is made: the program inside cannot fill the machine's disk or use up its inodes, and what
 * it was promised is there. Without root, or without loop devices, the folder is an ordinary one,
 * and only the size of each file is limited (sandbox_options.disk_bytes): the caller has to
 * measure.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* True when folders can be bounded here; otherwise `reason` says why not. */
bool disk_can_bound(char *reason, size_t reason_size);

/*
 * Bounds an empty folder, which then belongs to user and group `owner`. EXHAUSTED when the machine
 * has no such room, UNAVAILABLE when it cannot bound folders; the folder is as it was then.
 */
MUST_CHECK int disk_open(const char *folder, int64_t bytes, uint32_t owner, struct error *error);

/* Takes the file system away again with all that is in it, also one that a former process left. A
 * folder that was never bounded stays as it is. */
MUST_CHECK int disk_close(const char *folder, struct error *error);
