/*
 * Slurm library: libslurm, loaded when a partition is lent and by nobody else.
 *
 * Its structs differ from one release of Slurm to the next, so only the one whose headers this was
 * built with is opened.
 */
#pragma once

#include "base/error.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#define SLURM_FUNCTIONS(X)                                                                         \
    X(slurm_init)                                                                                  \
    X(slurm_fini)                                                                                  \
    X(slurm_get_errno)                                                                             \
    X(slurm_strerror)                                                                              \
    X(slurm_load_jobs)                                                                             \
    X(slurm_free_job_info_msg)                                                                     \
    X(slurm_load_node)                                                                             \
    X(slurm_free_node_info_msg)                                                                    \
    X(slurm_load_partitions)                                                                       \
    X(slurm_free_partition_info_msg)                                                               \
    X(slurm_load_reservations)                                                                     \
    X(slurm_free_reservation_info_msg)                                                             \
    X(slurm_init_job_desc_msg)                                                                     \
    X(slurm_submit_batch_job)                                                                      \
    X(slurm_free_submit_response_response_msg)                                                     \
    X(slurm_kill_job)

struct slurm_library {
#define X(name) __typeof__(name) *name; /* NOLINT(bugprone-macro-parentheses) */
    SLURM_FUNCTIONS(X)
#undef X
};

/* Loaded once for the process and never released. */
MUST_CHECK int slurm_library_load(const struct slurm_library **out_library, struct error *error);
