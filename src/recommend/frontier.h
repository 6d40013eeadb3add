/*
 * Frontier: the clusters of which none is both faster and cheaper, and the one that suits a wish.
 *
 * All numbers of workers of each candidate are weighed, then mixtures of the best of them.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "recommend/predict.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wish_kind {
    WISH_CHEAPEST, /* before the deadline and within the budgets, where there are any */
    WISH_FASTEST,  /* likewise */
    WISH_SAFEST,   /* the narrowest range and the least to lose, at most twice the cheapest */
    WISH_COUNT,
};
const char *wish_kind_name(enum wish_kind kind); /* cheapest, fastest, safest */

struct wish {
    enum wish_kind kind;
    int64_t budget_micro_per_hour; /* of all machines; 0: none */
    int64_t budget_micro;          /* in all; 0: none */
    double deadline_s;             /* 0: none; kept by four of five outcomes */
    uint32_t worker_max;           /* 0: CLUSTER_WORKERS_MAX */
};

struct choice {
    struct cluster_plan plan;
    const struct fit *fit; /* of its policy */
    struct prediction prediction;
    int64_t price_micro_per_hour; /* of all machines, the server's too */
};

/* What the shell says in words. */
enum advice_code {
    ADVICE_ONE_MACHINE, /* one worker is best; figure: what two would cost, times one's */
    ADVICE_LINK_FULL,   /* more workers bring hardly anything: figure workers fill the server's link
                         */
    ADVICE_WAITING,     /* workers wait for the slowest; figure: share of their time */
    ADVICE_LARGE_BATCH, /* more workers learn little more; figure: workers at which the
                           samples needed have doubled */
    ADVICE_FUNCTION_DEAR,  /* functions cost more; figure: times the chosen */
    ADVICE_FUNCTION_SLOW,  /* their bytes take longer than their work; figure: share of it */
    ADVICE_SPOT_RISK,      /* of losing a worker; figure: probability */
    ADVICE_TRIAL_FIRST,    /* hardly anything is known; figure: high over low */
    ADVICE_DEADLINE_TIGHT, /* nothing keeps it surely; figure: seconds of the fastest, high */
    ADVICE_SHORT_JOB,      /* the start takes longer than the work; figure: share of the time */
    ADVICE_COUNT,
};
const char *advice_code_name(enum advice_code code); /* one-machine, link-full, ... */

struct advice {
    enum advice_code code;
    double figure;
};

struct frontier_request {
    const struct candidate *candidates;
    size_t candidate_count;
    const struct fit *fits; /* one for each policy in question */
    size_t fit_count;
    struct server_place server;
    struct wish wish;
};

struct frontier {
    struct choice *choices; /* rising in time, falling in cost */
    size_t choice_count;
    struct choice chosen;
    struct advice advice[ADVICE_COUNT];
    size_t advice_count;
    size_t considered; /* clusters */
};

/*
 * The choice that suits the wish best: of those that keep to its limits by four of five outcomes,
 * or where there are none, those expected to. EXHAUSTED when none is, with the nearest that is.
 */
MUST_CHECK int frontier_pick(const struct choice *choices, size_t count, const struct wish *wish,
                             size_t *out_index, struct error *error);

/*
 * What it holds lives in the arena. INVALID for a wish that names nothing to keep to;
 * NOT_FOUND without a candidate; EXHAUSTED when no cluster is within the budget or before the
 * deadline, with the nearest that is.
 */
MUST_CHECK int frontier_find(struct arena *arena, const struct frontier_request *request,
                             struct frontier *out_frontier, struct error *error);
