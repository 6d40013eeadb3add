/*
 * Secret: passwords, typed at a terminal without being shown, or as lines of standard input.
 */
#pragma once

#include "cli/cli.h"

/*
 * One line, without its end, in the command's arena. At a terminal `question` is asked on standard
 * error and what is typed is not shown; else the next line of standard input is taken. INVALID when
 * there is none.
 */
MUST_CHECK int secret_read(const struct cli *cli, const char *question, const char **out_secret,
                           struct error *error);
/* A new one: at a terminal asked for twice, since nobody sees a slip of the finger. */
MUST_CHECK int secret_read_new(const struct cli *cli, const char **out_secret, struct error *error);
