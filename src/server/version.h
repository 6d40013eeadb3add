/*
 * Versions: tell whether anything an answer was made of has changed since.
 *
 * Rows belong to topics: all rows of a table, and those with one value in a column that never
 * changes (a job's account, a lease's job). Every topic has a counter. The core thread moves the
 * counters of the rows of a batch after its commit and before anyone hears of it, so whoever marks
 * the counter, then reads, then finds the counter unmoved, has read what is still true. Topics
 * share counters by hash: a stranger's change may say "changed", never a change "unchanged".
 *
 * Moving and reading are safe from any thread; marks belong to one.
 */
#pragma once

#include "server/tables.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct versions;

struct versions *versions_new(void); /* never NULL */
void versions_free(struct versions *versions);
DEFINE_AUTO(versions);

/* After a commit. */
void versions_commit(struct versions *versions, const struct store_batch *batch);
/* Everything may have changed. */
void versions_move_all(struct versions *versions);
/* For what is shown of a table's row before it is written: by its key. */
void versions_move(struct versions *versions, enum table table, uint64_t key);
/* After a commit that changed what is shown of prices, which are in no table. */
void versions_move_prices(struct versions *versions);

/* What was read. */
struct version_mark {
    uint64_t version;
    uint32_t counter;
};
enum { VERSION_MARKS_MAX = 160 };
struct version_marks {
    uint64_t commits; /* so many when the reading began */
    uint32_t count;
    bool is_overflowed; /* there were more: what was read cannot be kept */
    struct version_mark items[VERSION_MARKS_MAX];
};

void version_marks_clear(struct version_marks *marks, const struct versions *versions);
/* Before the reading. */
void version_marks_add(struct version_marks *marks, const struct versions *versions,
                       const struct store_query *query);
void version_marks_add_key(struct version_marks *marks, const struct versions *versions,
                           enum table table, uint64_t key);
void version_marks_add_prices(struct version_marks *marks, const struct versions *versions);
/* Whether all that was read is one committed state and is marked: asked after the reading. A read
 * inside store_reader_begin sees a state older than a mark made after a commit. */
bool version_marks_are_whole(const struct version_marks *marks, const struct versions *versions);
/* Whether nothing has changed since. */
bool versions_hold(const struct versions *versions, const struct version_mark *marks,
                   size_t mark_count);
