/*
 * Recommend paper: FC²'s experiment (its section 8) in virtual time: its machine types and
 * parameter servers, six workers at most, what each of its rules chooses, and what training then
 * takes and costs; beside what `auto` chooses.
 *
 * A worker's use of bandwidth is measured in a short run of one worker, as the paper does; auto
 * sees the same runs' profiles. Auto asks for the cheapest that is at most a quarter later than
 * Scala-Opt; `best` is the cheapest that is, of all clusters, each trained. Prices are the paper's,
 * in microcredits for a dollar's million.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum paper_rule {
    PAPER_COST,
    PAPER_TIME,
    PAPER_SCALA,
    PAPER_AUTO,        /* under the same policy, tap */
    PAPER_AUTO_POLICY, /* may take adsp as well */
    PAPER_BEST,        /* by trying every cluster, under tap; only where that was asked for */
    PAPER_RULE_COUNT,
};
const char *paper_rule_name(enum paper_rule rule);

enum { PAPER_CASES = 11, PAPER_CHOICE_SIZE = 64 };

struct paper_choice {
    char cluster[PAPER_CHOICE_SIZE]; /* "2 t2.xlarge" */
    double seconds, cost_micro;
};

struct paper_case {
    const char *set;    /* of worker types */
    const char *server; /* its type */
    uint32_t batch;
    bool is_cpu;
    struct paper_choice choices[PAPER_RULE_COUNT];
};

struct paper_result {
    struct paper_case cases[PAPER_CASES];
    uint32_t case_count;
    /* The most that Scala-Opt saves against Time-Opt in a case without GPUs where it takes at most
     * a tenth longer. */
    double saved_most;
    double
        auto_cheaper; /* share of cases in which auto costs less than Scala-Opt, by a hundredth */
    double auto_no_dearer; /* and in which it costs no more */
    double auto_cost;      /* mean over Scala-Opt's */
    double policy_cheaper; /* the first with a policy of auto's choice */
    double policy_cost;
    double
        best_cheaper; /* the first of the best there is; NAN where it was not looked for; so all */
    double best_cost;
    double auto_over_best; /* the most of a case: auto's cost over the best's */
};

struct paper_options {
    uint64_t seed;
    uint32_t case_count; /* the first so many, at most PAPER_CASES */
    bool has_best;       /* a hundred runs and more for each case */
};
MUST_CHECK int recommend_paper(const struct paper_options *options, struct paper_result *out_result,
                               struct error *error);
