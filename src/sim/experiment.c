#include "sim/experiment.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *name;
    enum workload_kind kind;
    int64_t load_milli;
} rows[EXPERIMENT_ROWS] = {
    {"nasa-0.8", WORKLOAD_NASA, 800},           {"nasa-1.5", WORKLOAD_NASA, 1500},
    {"alibaba-0.8", WORKLOAD_ALIBABA, 800},     {"alibaba-1.5", WORKLOAD_ALIBABA, 1500},
    {"synthetic-0.8", WORKLOAD_SYNTHETIC, 800}, {"synthetic-1.5", WORKLOAD_SYNTHETIC, 1500},
};

const char *experiment_row_name(int row)
{
    ASSERT(row >= 0 && row < EXPERIMENT_ROWS);
    return rows[row].name;
}

struct workload *experiment_row_workload(const struct experiment_options *options, int row)
{
    ASSERT(row >= 0 && row < EXPERIMENT_ROWS);
    return workload_new(options->traces,
                        &(struct workload_options){.kind = rows[row].kind,
                                                   .load_milli = rows[row].load_milli,
                                                   .day_count = options->day_count,
                                                   .seed = options->seed});
}

void experiment_say(const struct experiment_options *options, const char *format, ...)
{
    if (!options->progress)
        return;
    char words[160];
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(words, sizeof(words), format, arguments);
    va_end(arguments);
    ASSERT(size >= 0);
    options->progress(options->context, words);
}
