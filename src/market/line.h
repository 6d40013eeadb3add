/*
 * Line: the waiting jobs for which room may be reserved, whose turn comes first in front.
 *
 * A binary heap in the queue's order (queue.h); each job knows its place in it, so that any of them
 * leaves in O(log n). Jobs that are stuck or short of money wait outside, and cost nobody who asks
 * for the first anything.
 */
#pragma once

#include "market/job.h"

/* Zeroed lines are empty. */
struct line {
    struct job **jobs;
    size_t count;
    size_t capacity;
};

void line_done(struct line *line);

/* Whether the left one's turn is before the right one's. */
bool line_is_before(const struct job *left, const struct job *right);

void line_add(struct line *line, struct job *job);    /* nothing happens when it is there */
void line_remove(struct line *line, struct job *job); /* or is not */
struct job *line_first(const struct line *line);      /* NULL: there is none */
