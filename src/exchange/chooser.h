/*
 * Chooser: which codec a worker's vectors travel by under `compress: auto`, by what its pushes
 * show.
 *
 * A push that came in slowly says little: a busy processor at either end looks like a slow link.
 * One that came in fast says that the link is at least as fast. So the rate is what the best
 * quarter of the last pushes reached (the very best may have waited in a buffer), and a codec is
 * changed only when several looks in a row, or of a slow link a long one, say the same.
 *
 * Pure: bytes and times in, a codec out.
 */
#pragma once

#include "exchange/codec.h"

enum {
    CHOOSER_STEPS_HIDDEN = 12,
    CHOOSER_PUSHES = 16,          /* that are remembered */
    CHOOSER_LOOKS = 8,            /* that have to agree */
    CHOOSER_BYTES_MIN = 64 << 10, /* less says nothing of a link, and costs little on any */
    CHOOSER_UNSEEN_MAX = 64,      /* such pushes in a row; then a longer one is tried */
};

struct chooser_link {
    size_t count;            /* floats of a vector */
    double bytes_per_second; /* either way; 0: not known yet */
    double interval_s;       /* from one push to the next; 0: not known yet */
    double step_s;           /* of the worker; 0: not known */
    double density;          /* of top-k */
    bool is_hidden;          /* computing goes on while a push is under way */
    enum codec codec;        /* by which the interval was seen */
};

/*
 * Where the worker waits for its answers, the codec of the most progress in a second: vectors there
 * and back take their time in addition to the rest of the interval, coding included, and a push is
 * worth the less the more of it comes late. Where computing goes on meanwhile, the least lossy
 * under which they take no more than a third of the interval or CHOOSER_STEPS_HIDDEN steps, or the
 * one that takes least: policies that overlap space their pushes by how long one takes, so that a
 * share of the interval alone would have every codec give way to the next.
 */
enum codec chooser_best(const struct chooser_link *link);

struct chooser_push {
    uint64_t bytes;
    int64_t took_ns;     /* from its first byte to its last */
    int64_t interval_ns; /* since the one before was whole; 0: there was none */
    int64_t step_ns;
    bool is_hidden;
};

struct chooser {
    size_t count;
    double density;
    enum codec codec;
    double rates[CHOOSER_PUSHES],
        intervals_s[CHOOSER_PUSHES]; /* of the last; intervals 0: unknown */
    uint32_t seen;
    uint32_t unseen; /* too short, in a row */
    enum codec wanted;
    uint32_t looks; /* in a row that want it */
    int64_t looks_ns;
};

void chooser_init(struct chooser *chooser, size_t count, double density, enum codec first);
/* A push has come; returns the codec for the next ones. */
enum codec chooser_take(struct chooser *chooser, const struct chooser_push *push);
