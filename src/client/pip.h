/* Pip: runs the one of the python3 that is found here, for what a job's requirements name. */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* What it says goes to the file `output`. UNAVAILABLE when there is no python3; INVALID with pip's
 * last word when it fails. `stop` ends it, and that with CONFLICT, once it is not 0; NULL: nothing
 * does. */
MUST_CHECK int pip_run(char **arguments, const char *output, const volatile int32_t *stop,
                       struct error *error);
