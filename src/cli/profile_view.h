/*
 * Profile view: what a job's run showed, for people.
 */
#pragma once

#include "cli/cli.h"
#include "client/api_profile.h"

/* On standard output: the run, a table of its workers, and how it compares with what was foretold.
 */
void profile_view_print(const struct cli *cli, const struct api_profile *profile);

/* "1.2 MiB/s"; "-" for nothing. */
const char *profile_view_rate(struct arena *arena, double bytes_per_s);
/* "42 % longer than foretold", "as foretold" within half a percent. */
const char *profile_view_error(struct arena *arena, double error, const char *more,
                               const char *less);
