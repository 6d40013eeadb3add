/*
 * Siren compare: all schedulers beside each other in one world, with one budget.
 *
 * What each is given:
 *
 *     constant, decay,  the best found by trying (siren_search.h)
 *     growth
 *     bound             the world's constants; below what any schedule can reach without noise;
 *                       not in `sgd`
 *     agent             `agent_rehearsals` episodes, `auto_rehearsals` for auto, in which both
 *     auto              find where to begin and all else (siren_rehearse.h)
 *     planner           nothing: it learns during the run itself
 *
 * Rehearsals have noise where the world has, each scheduler's its own; what counts are other
 * episodes. The constant, decay and growth are found on as many as count, not on the same.
 */
#pragma once

#include "learn/agent.h"
#include "sim/siren_rehearse.h"
#include "sim/siren_search.h"

enum siren_scheduler {
    SIREN_CONSTANT,
    SIREN_BOUND,
    SIREN_DECAY,
    SIREN_GROWTH,
    SIREN_AGENT,
    SIREN_PLANNER,
    SIREN_AUTO,
    SIREN_SCHEDULER_COUNT,
};

extern const char *const siren_scheduler_names[SIREN_SCHEDULER_COUNT + 1]; /* ends with NULL */

struct siren_compare_options {
    const struct siren_world *world;
    int64_t budget_micro;
    bool is_noisy;
    uint64_t seed;
    uint32_t agent_rehearsals; /* SIREN_AGENT_REHEARSALS_MIN or more; 0: no agent is trained */
    uint32_t auto_rehearsals;  /* 0: auto begins as the planner does */
    uint32_t evaluation_count; /* with noise; without, one says all */
    uint32_t wanted_mask;      /* 1 << siren_scheduler; constant and bound always are */
    const struct agent *agent; /* in place of one that is trained; or NULL */
};

struct siren_result {
    bool is_run[SIREN_SCHEDULER_COUNT];
    struct siren_score scores[SIREN_SCHEDULER_COUNT]; /* the bound has a time only */
    struct epoch_choice constant;                     /* 0 functions: none reaches the target */
    bool is_noisy;
    uint32_t evaluation_count;
    struct agent *agent; /* that was trained; or NULL */
};

void siren_compare(const struct siren_compare_options *options, struct siren_result *out_result);
void siren_result_done(struct siren_result *result);

/* How much less time than the constant takes, as a share of it, over the episodes in which both
 * reached the target; NAN where there is none. */
double siren_reduction(const struct siren_result *result, enum siren_scheduler scheduler);
/* That over the bound's reduction; NAN with noise, when luck may pass the bound, and where there is
 * next to nothing to gain. */
double siren_share(const struct siren_result *result, enum siren_scheduler scheduler);
