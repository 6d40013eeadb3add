/*
 * Function token: the file that a function host and who calls it share, of mode 0600.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"

/* The token in the file, in the arena. NOT_FOUND; REFUSED when others can read it. */
MUST_CHECK int function_token_read(struct arena *arena, const char *path, const char **out_token,
                                   struct error *error);
/* The same; a file that is not there is made, with a new token. */
MUST_CHECK int function_token_make(struct arena *arena, const char *path, const char **out_token,
                                   struct error *error);
