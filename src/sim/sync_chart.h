/*
 * Sync chart: loss over virtual time, one line for each run, as SVG.
 */
#pragma once

#include "base/buffer.h"
#include "sim/sync_run.h"

#include <stddef.h>

struct sync_chart_line {
    const char *label; /* "adsp" */
    const struct sync_run_result *result;
};

struct sync_chart {
    const char *title;
    double target_loss; /* 0: none */
    const struct sync_chart_line *lines;
    size_t line_count;
};

void sync_chart_write(const struct sync_chart *chart, struct buffer *out);
