/*
 * Command environment: the variables that a borrower's script finds.
 */
#pragma once

#include "blob/image_document.h"
#include "runtime/launch.h"
#include "worker/worker_internal.h"

/* Ends with NULL; lives in the work's arena. `launch` NULL: of no framework. */
char **command_environment(const struct work *work, const struct image_config *image,
                           const struct launch *launch);
