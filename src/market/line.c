#include "market/line.h"

#include "base/assert.h"

#include <stdlib.h>

void line_done(struct line *line)
{
    free(line->jobs);
    *line = (struct line){0};
}

bool line_is_before(const struct job *left, const struct job *right)
{
    const int64_t a = queue_score(job_rushes(left), left->turn.tag);
    const int64_t b = queue_score(job_rushes(right), right->turn.tag);
    return a != b ? a > b : left->id < right->id;
}

/* Places count from 1, so that 0 means outside. */
static void put(struct line *line, size_t at, struct job *job)
{
    line->jobs[at] = job;
    job->line_place = (uint32_t)at + 1;
}

static void rise(struct line *line, size_t at, struct job *job)
{
    for (; at > 0 && line_is_before(job, line->jobs[(at - 1) / 2]); at = (at - 1) / 2)
        put(line, at, line->jobs[(at - 1) / 2]);
    put(line, at, job);
}

static void sink(struct line *line, size_t at, struct job *job)
{
    for (size_t child; (child = 2 * at + 1) < line->count; at = child) {
        if (child + 1 < line->count && line_is_before(line->jobs[child + 1], line->jobs[child]))
            child++;
        if (!line_is_before(line->jobs[child], job))
            break;
        put(line, at, line->jobs[child]);
    }
    put(line, at, job);
}

void line_add(struct line *line, struct job *job)
{
    if (job->line_place)
        return;
    if (line->count == line->capacity) {
        line->capacity = line->capacity ? line->capacity * 2 : 64;
        line->jobs = realloc(line->jobs, line->capacity * sizeof(struct job *));
        ASSERT(line->jobs && line->capacity < UINT32_MAX);
    }
    rise(line, line->count++, job);
}

void line_remove(struct line *line, struct job *job)
{
    if (!job->line_place)
        return;
    const size_t at = job->line_place - 1;
    job->line_place = 0;
    struct job *last = line->jobs[--line->count];
    if (last == job)
        return;
    if (at > 0 && line_is_before(last, line->jobs[(at - 1) / 2]))
        rise(line, at, last);
    else
        sink(line, at, last);
}

struct job *line_first(const struct line *line)
{
    return line->count ? line->jobs[0] : NULL;
}
