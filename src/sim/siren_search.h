/*
 * Siren search: the schedules that are found by trying many in the world itself: the best constant,
 * the best linear decay and the best linear growth. Nothing of that is charged to them.
 *
 * Better is who reaches the target in more episodes, then who takes less time. With noise the
 * episodes they are found on are other ones than those they are judged on.
 */
#pragma once

#include "learn/scheduler.h"
#include "sim/siren.h"

struct siren_episodes {
    const struct siren_world *world;
    int64_t budget_micro;
    bool is_noisy;
    uint64_t first; /* their numbers, one after the other */
    uint32_t count; /* 1 without noise */
};

enum { SIREN_EPISODES_MAX = 256 };

struct siren_score {
    uint32_t reached_count;
    double time_s; /* mean over the episodes, also of those that did not reach the target */
    double times_s[SIREN_EPISODES_MAX]; /* of each; NAN where the target was not reached */
    double cost;                        /* mean, credits */
    double epoch_count;
    uint32_t function_min, function_max;
    int64_t passed_micro; /* the most that any episode spent beyond its budget: never above 0 */
};

/* How one run ends under a scheduler, which sees each epoch. `states`: room for epoch_max, filled
 * with how the run stood after each epoch; or NULL. */
struct siren siren_run(const struct siren_options *options, struct scheduler *scheduler,
                       struct epoch_state *states);

bool siren_score_is_better(const struct siren_score *one, const struct siren_score *other);
/* A scheduler for each episode, made by `make`. */
struct siren_score siren_score(const struct siren_episodes *episodes,
                               struct scheduler *(*make)(const void *context), const void *context);

/* 0 functions when no constant reaches the target in any episode. */
struct epoch_choice siren_best_constant(const struct siren_episodes *episodes);
struct scheduler_decay siren_best_decay(const struct siren_episodes *episodes,
                                        struct epoch_choice constant, double constant_epochs);
/* The other way: from fewer functions to more. */
struct scheduler_decay siren_best_growth(const struct siren_episodes *episodes,
                                         struct epoch_choice constant, double constant_epochs);
