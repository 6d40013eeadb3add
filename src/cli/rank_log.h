/*
 * Rank log: prints what the ranks of a job say, line by line, each with its rank before it.
 *
 * Parts come in any order of ranks and from several sources, may come twice, and may be missing;
 * they are put in order by their offsets, and what is missing is asked for by the caller, so that
 * each line is printed once and whole. What a stranger's
 * program prints cannot steer a terminal: control characters are shown as '?', unless output goes
 * to a file or a pipe.
 */
#pragma once

#include "base/scope.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct rank_log;

struct rank_log_options {
    FILE *file;
    bool has_color;
    bool is_plain;  /* control characters are replaced */
    bool is_single; /* of one rank only: no prefix */
};

enum { RANK_LOG_AHEAD_MAX = 1 << 20 }; /* held of one lease */

struct rank_log_text {
    uint64_t offset, next_offset;
    struct text text;
};

struct rank_log *rank_log_new(const struct rank_log_options *options);
void rank_log_free(struct rank_log *log); /* NULL is fine */
DEFINE_AUTO(rank_log);

/* A lease that may say something; told again it changes nothing. */
void rank_log_add(struct rank_log *log, uint64_t lease, uint64_t rank);

/* Where the next part of a lease begins; 0 for one that is not known. */
uint64_t rank_log_next(const struct rank_log *log, uint64_t lease);

/* Bytes from `offset` on. What was printed before is left out; false when something before them is
 * missing: nothing is printed then. */
bool rank_log_take(struct rank_log *log, uint64_t lease, uint64_t rank, uint64_t offset,
                   struct text bytes);

/* The same for the market's text, where each byte that is not UTF-8 has become three: it stands for
 * the bytes up to `next_offset`, and if it was changed so it is printed whole or not at all. */
bool rank_log_take_text(struct rank_log *log, uint64_t lease, uint64_t rank,
                        const struct rank_log_text *text);

/* Bytes that may come before others that are on their way from elsewhere: they are held until
 * those are here. False when they do not follow what is held, or are too many: all that is held is
 * forgotten then. */
bool rank_log_take_ahead(struct rank_log *log, uint64_t lease, uint64_t rank, uint64_t offset,
                         struct text bytes);
/* Something is held until what is missing before it comes. */
bool rank_log_is_waiting(const struct rank_log *log, uint64_t lease);

/* Prints what has no end of line yet. */
void rank_log_finish(struct rank_log *log);
