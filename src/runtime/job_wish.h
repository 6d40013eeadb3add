/*
 * Job wishes: the fields of a job file whose values are short phrases, from text and back.
 *
 *     accelerators  "T4", "T4:2", "T4:16GB+:2", "24GB+:1", "T4:0.5"   model, least memory, count
 *     start         "now", "by 2026-11-20T18:00Z", "by 6h", "cheapest before 2026-11-21T08:00Z"
 *     num_nodes     "3", "2..8"
 *
 * What is written by one of the format functions reads back to the same value.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"
#include "market/job.h"

/* GPUs of each worker. */
struct job_accelerators {
    struct text model;    /* empty: any */
    int64_t count_milli;  /* 0: none are wanted */
    int64_t memory_bytes; /* of each, at least; 0: any */
};

struct job_start_wish {
    enum job_start kind;
    int64_t at_ms;     /* the deadline; 0: relative, or none */
    int64_t within_ms; /* the deadline, counted from when the market takes the job; 0: none */
};

struct job_nodes {
    uint64_t least;
    uint64_t most; /* 0: not given */
};

enum { JOB_WISH_TEXT_SIZE = 128 };

/* The model lives in the arena. INVALID with an example. */
MUST_CHECK int job_accelerators_parse(struct arena *arena, struct text text,
                                      struct job_accelerators *out, struct error *error);
const char *job_accelerators_format(const struct job_accelerators *accelerators,
                                    char out[JOB_WISH_TEXT_SIZE]);

MUST_CHECK int job_start_parse(struct text text, struct job_start_wish *out, struct error *error);
const char *job_start_format(const struct job_start_wish *start, char out[JOB_WISH_TEXT_SIZE]);
/* The instant, 0 for none. INVALID when it is not after now. */
MUST_CHECK int job_start_deadline(const struct job_start_wish *start, int64_t now_ms,
                                  int64_t *out_deadline_ms, struct error *error);

/* Says nothing of the range. */
MUST_CHECK int job_nodes_parse(struct text text, struct job_nodes *out, struct error *error);

/* The shortest decimal of thousandths: 1500 is "1.5". */
const char *job_milli_format(int64_t milli, char out[JOB_WISH_TEXT_SIZE]);
