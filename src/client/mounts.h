/*
 * Mounts: the files of a job's file_mounts, from here or from an address, brought into its bundle.
 *
 * Each becomes one input (runtime/mount_index.h): an index and the bytes of all files, in a file
 * without a name.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "client/upload.h"
#include "runtime/job_spec.h"

/* What is known to be wrong before anything is read. */
MUST_CHECK int mounts_check(const struct job_spec *spec, struct error *error);

/* Adds them to spec->inputs. EXHAUSTED when one is larger than 64 GiB or has more than 30,000
 * files; INVALID when one that is shared has fewer files, or lines, than the job has ranks. */
MUST_CHECK int mounts_upload(struct arena *arena, const struct upload_options *options,
                             struct job_spec *spec, struct error *error);
