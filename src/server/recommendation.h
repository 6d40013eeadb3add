/*
 * Recommendation: which machines for a job, by FC²'s rules or from what past runs showed. Pure: all
 * it needs is in the request, and what it finds lives in the arena.
 */
#pragma once

#include "base/arena.h"
#include "recommend/cluster.h"
#include "recommend/frontier.h"
#include "recommend/trial.h"

enum recommend_rule {
    RULE_AUTO, /* by what runs showed; the others are the paper's */
    RULE_COST_OPT,
    RULE_TIME_OPT,
    RULE_SCALA_OPT,
    RULE_SCALA_OPT_M,
    RULE_COUNT,
};
const char *recommend_rule_name(enum recommend_rule rule); /* auto, cost-opt, ... */
extern const char *const recommend_rule_names[];           /* by rule, ended by NULL */

enum { RECOMMENDATION_SHOWN_MAX = 32, RECOMMENDATION_ADVICE_MAX = ADVICE_COUNT + 8 };

/* Of the whole job; 0: none. */
struct recommendation_limits {
    int64_t max_hourly_micro, max_total_micro, max_run_ms;
};

/* A kind of which some are leased to others. */
struct busy_kind {
    struct candidate candidate; /* as many as are */
    int64_t since_ms, until_ms; /* the latter at the latest, of all of them */
};

struct recommendation_request {
    enum recommend_rule rule;
    struct wish wish;
    uint32_t share_milli; /* of the server's link, of the paper's rules */
    struct recommend_job job;
    struct recommendation_limits own; /* the job file's */
    double least_s;                   /* of training, whatever is learnt; 0: none */
    bool is_target_known;             /* false: all epochs are counted in place of an accuracy */
    const struct candidate *candidates;
    size_t candidate_count;
    const struct busy_kind *busy;
    size_t busy_count;
    int64_t now_ms;
    struct server_place server;
    const struct observation *observations;
    size_t observation_count;
    struct predict_error errors;
};

struct recommendation_advice {
    const char *code;
    const char *text;
};

struct recommendation {
    struct choice *choices; /* rising in time; those of which none is both faster and cheaper, or of
                               the paper's rules one for each type */
    size_t choice_count;
    size_t chosen;     /* of them */
    size_t considered; /* clusters */
    const char *why;
    struct recommendation_advice advice[RECOMMENDATION_ADVICE_MAX];
    size_t advice_count;
    struct trial_plan trial;
    uint32_t observation_count; /* runs of this job, in any variation */
};

/* INVALID, NOT_FOUND or EXHAUSTED as of recommend/frontier.h and recommend/cluster.h. */
MUST_CHECK int recommendation_make(struct arena *arena,
                                   const struct recommendation_request *request,
                                   struct recommendation *out_recommendation, struct error *error);

/* What a job with these machines has to keep to: the lesser of the wish's and its own. A budget in
 * all bounds its time too, for the market holds what the longest run costs. */
struct recommendation_limits recommendation_limits_of(const struct recommendation_request *request,
                                                      const struct choice *choice);

/* Says so where machines that are busy would do clearly better, and how long they are. */
void recommendation_advise_busy(struct arena *arena, const struct recommendation_request *request,
                                struct recommendation *recommendation);

void recommendation_advise(struct recommendation *recommendation, const char *code,
                           const char *text);
/* What advice says to people, in the arena. */
const char *recommendation_advice_text(struct arena *arena, const struct advice *advice);
