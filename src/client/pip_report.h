/*
 * Pip report: what pip says it would install (`pip install --dry-run --report`): of an index, which
 * others have too, or of files that lie here.
 */
#pragma once

#include "base/arena.h"
#include "runtime/package_lock.h"

enum { PIP_REPORT_SIZE_MAX = 64 << 20 };

struct pip_report {
    struct package_lock lock; /* of an index; sorted */
    const char **files;       /* the wheels that lie here */
    size_t file_count;
};

/* INVALID for what is no report, and for packages of neither: of a repository, a folder, an address
 * of their own, or without a hash. */
MUST_CHECK int pip_report_read(struct arena *arena, struct text json, struct pip_report *out_report,
                               struct error *error);
