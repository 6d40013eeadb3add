/*
 * Software: folders of the owner's that jobs may use, each "LABEL=DIR": a venv, a JDK, a Spark. A
 * lease whose job asks for the label sees the folder read-only at the same path, and finds the
 * programs of its bin first. The market is told the label and never the path.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"

#include <stddef.h>

enum { SOFTWARE_MAX = 8, SOFTWARE_LABEL_SIZE_MAX = 40 };

/* INVALID: not LABEL=DIR, a label twice, too many, no folder, a path that has links in it, or one
 * that a sandbox has of its own. NOT_FOUND, REFUSED: it is not there, leases may not read it, or it
 * holds or is part of `state_dir`. */
MUST_CHECK int software_check(const char *const *items, size_t count, const char *state_dir,
                              struct error *error);

/* The paths, at most SOFTWARE_MAX, of the items that `labels`, with commas between, asks for. */
size_t software_choose(const char *const *items, size_t count, struct text labels,
                       struct text out_paths[SOFTWARE_MAX]);

enum { SOFTWARE_VARIABLES_MAX = 3 };
/* PATH with the folders' bin before `path`, and of the first that is one VIRTUAL_ENV and JAVA_HOME.
 * Returns how many "NAME=value" those are. */
size_t software_environment(struct arena *arena, const struct text *paths, size_t count,
                            const char *path, const char *out_variables[SOFTWARE_VARIABLES_MAX]);
