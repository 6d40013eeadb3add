/*
 * Lend, Slurm beat: a number in a file that changes every two seconds while the daemon lives, by a
 * thread of its own: a controller that keeps the daemon waiting does not make the nodes end.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"

struct lend_slurm_beat;
/* The first beat is written before it returns. */
MUST_CHECK int lend_slurm_beat_open(const char *path, struct lend_slurm_beat **out_beat,
                                    struct error *error);
void lend_slurm_beat_free(struct lend_slurm_beat *beat); /* NULL is fine */
DEFINE_AUTO(lend_slurm_beat);
