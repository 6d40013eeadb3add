/*
 * Progress: shows a running job: a block of lines redrawn in place on a terminal, a plain line now
 * and then elsewhere.
 *
 * `job submit`, `job wait` and `demo` share it. It draws what it is given and knows nothing of
 * where that came from.
 */
#pragma once

#include "base/clock.h"
#include "base/scope.h"
#include "client/progress_view.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress_options {
    FILE *file;       /* standard error as a rule */
    const char *unit; /* of what is spent; NULL: credits */
    bool is_terminal; /* redraw in place */
    bool has_color;
    bool is_quiet;   /* draw nothing */
    uint32_t width;  /* of the terminal; 0: asked for, or 80 */
    int64_t line_ms; /* elsewhere: a line at most this often; 0: 5 s */
    const struct clock *clock;
};

struct progress;
struct progress *progress_new(const struct progress_options *options);
/* Leaves what was drawn on the screen. NULL is fine. */
void progress_free(struct progress *progress);
DEFINE_AUTO(progress);

void progress_draw(struct progress *progress, const struct progress_view *view);
/* Draws a last time whatever was drawn before, and ends the block: what is printed next stands
 * below it. */
void progress_end(struct progress *progress, const struct progress_view *view);
/* The two as one for struct follow_options; `context` is a struct progress. */
void progress_take_view(void *context, const struct progress_view *view, bool is_last);

/* A worker's part of all samples so far, 0 to 1. */
double progress_share(const struct progress_view *view, const struct progress_lender *lender);
