#include "sim/trace_lines.h"

#include "base/assert.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

struct trace_lines {
    gzFile file;
    uint64_t number;
    char path[200];
    char line[TRACE_LINE_MAX + 2];
};

int trace_lines_open(const char *path, struct trace_lines **out_lines, struct error *error)
{
    gzFile file = gzopen(path, "rb");
    if (!file)
        return error_set_errno(error, errno, "open \"%.150s\"", path);
    struct trace_lines *lines = calloc(1, sizeof(*lines));
    ASSERT(lines);
    lines->file = file;
    snprintf(lines->path, sizeof(lines->path), "%.150s", path);
    *out_lines = lines;
    return 0;
}

void trace_lines_free(struct trace_lines *lines)
{
    if (!lines)
        return;
    gzclose(lines->file);
    free(lines);
}

uint64_t trace_lines_number(const struct trace_lines *lines)
{
    return lines->number;
}

int trace_lines_refuse(const struct trace_lines *lines, const char *reason, struct error *error)
{
    return error_set(error, ERROR_CORRUPT, "%.150s, line %" PRIu64 ": %.60s", lines->path,
                     lines->number, reason);
}

int trace_lines_next(struct trace_lines *lines, struct text *out_line, bool *out_is_end,
                     struct error *error)
{
    *out_is_end = !gzgets(lines->file, lines->line, sizeof(lines->line));
    if (*out_is_end) {
        int code = Z_OK;
        gzerror(lines->file, &code);
        if (code != Z_OK && code != Z_STREAM_END)
            return error_set(error, ERROR_CORRUPT, "%.150s ends in the middle of its gzip stream",
                             lines->path);
        return 0;
    }
    lines->number++;
    size_t size = strlen(lines->line);
    if (size == sizeof(lines->line) - 1)
        return trace_lines_refuse(lines, "longer than 64 KiB", error);
    while (size > 0 && (lines->line[size - 1] == '\n' || lines->line[size - 1] == '\r'))
        size--;
    *out_line = (struct text){lines->line, size};
    return 0;
}
