/*
 * Bench: how `souk bench NAME` prints what it measured: a table with goals for people, one object
 * of all figures for --json.
 *
 * To add a bench: a command "bench NAME" as cli.h says; bench/NAME.py runs it beside its rivals.
 */
#pragma once

#include "cli/cli.h"

struct bench_figure {
    const char *name; /* the JSON field */
    double value;
    int digits;       /* shown after the point */
    const char *goal; /* for people, like "<= 8"; NULL: none */
};

void bench_print(const struct cli *cli, const struct bench_figure *figures, size_t count);

/* Of `count` values, which it sorts. */
double bench_median(double *values, size_t count);
