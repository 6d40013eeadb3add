/*
 * Wheels: the packages a job brings, gathered into one archive: wheel files that it names, and what
 * pip here fetches for its requirements. With resources.install index the archive has, in place of
 * what an index has, a list of it: runtime/package_lock.h. Equal wheels and lists give equal
 * archives, so that lenders know what they have installed already.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "runtime/job_spec.h"

enum { WHEELS_MAX = 512 };

/* What is named is there, and is what it should be. */
MUST_CHECK int wheels_check(const struct job_spec *spec, struct error *error);

/* Writes the archive to the file behind `fd`. INVALID for what is no wheel, with pip's last word
 * for requirements that cannot be met by wheels. `stop` ends pip, and that with CONFLICT, once it
 * is not 0; NULL: nothing does. */
MUST_CHECK int wheels_pack(struct arena *arena, const struct job_spec *spec,
                           const volatile int32_t *stop, int fd, size_t *out_count,
                           struct error *error);
