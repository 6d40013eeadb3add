/*
 * Command files: what a borrower's program starts with.
 */
#pragma once

#include "worker/worker_internal.h"

/* Into the working folder, where this process is. */
MUST_CHECK int command_unpack_files(const struct work *work, struct error *error);
/* Puts the targets of file_mounts into this process's folder. */
MUST_CHECK int command_link_mounts(const struct work *work, struct error *error);
