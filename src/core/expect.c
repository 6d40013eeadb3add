/*
 * When a job that waits is expected to start: those before it in the line are given their room one
 * by one, as it will be free if every lease runs as long as it may.
 *
 * It is for people only, so a line too long to walk for one answer has no expectation.
 */
#include "core/core_internal.h"

#include <stdlib.h>

enum { AHEAD_MAX = 64, LEASES_MAX = 512 };

struct expectation {
    const struct job *jobs[AHEAD_MAX]; /* before it, in their order */
    size_t count;
    size_t lease_count;
};

static size_t leases_of(const struct job_request *request)
{
    return (size_t)request->num_nodes + job_request_servers(request);
}

/* A request that is no job yet comes last, but before those that do not rush if it does. */
static bool is_before(const struct job *other, const struct job *job,
                      const struct job_request *request)
{
    if (job)
        return other != job && line_is_before(other, job);
    return !request->is_rush || job_rushes(other);
}

static int compare_turns(const void *left, const void *right)
{
    const struct job *a = *(const struct job *const *)left, *b = *(const struct job *const *)right;
    return line_is_before(b, a) - line_is_before(a, b);
}

static bool find_those_before(const struct core *core, const struct job *job,
                              const struct job_request *request, struct expectation *expectation)
{
    expectation->lease_count = leases_of(request);
    for (size_t i = 0; i < core->line.count; i++) {
        const struct job *other = core->line.jobs[i];
        if (!is_before(other, job, request))
            continue;
        expectation->lease_count += leases_of(&other->request);
        if (expectation->count == AHEAD_MAX)
            return false;
        expectation->jobs[expectation->count++] = other;
    }
    if (expectation->count > 1)
        qsort(expectation->jobs, expectation->count, sizeof(*expectation->jobs), compare_turns);
    return expectation->lease_count <= LEASES_MAX;
}

int64_t core_expected_start_ms(const struct core *core, const struct job *job,
                               const struct match_wish *wish)
{
    struct expectation expectation = {0};
    if (!find_those_before(core, job, wish->request, &expectation))
        return 0;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct match_line line = {.capacity = expectation.lease_count};
    line.leases = arena_alloc(arena, line.capacity * sizeof(*line.leases));
    for (size_t i = 0; i < expectation.count; i++) {
        const struct match_wish before = core_wish_of(core, expectation.jobs[i]);
        match_expect(core->matcher, arena, &before, &line);
    }
    const int64_t start_ms = match_expect(core->matcher, arena, wish, &line);
    return start_ms > core->time_ms ? start_ms : 0;
}
