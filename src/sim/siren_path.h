/*
 * Siren path: schedules of which one run each is enough to tell of every memory.
 *
 * The loss does not ask how much memory the functions have, nor what a run costs: so one run tells
 * when the target would be reached with another memory, and for how much. That serves where runs
 * are dear.
 */
#pragma once

#include "sim/siren_search.h"

#include <stddef.h>

/* The run's epochs with another memory, by how long `model` has each take with either. `out_cost`
 * is in microcredits. */
void siren_path_with_memory(const struct epoch_task *task, const struct epoch_model *model,
                            const struct epoch_state *states, uint32_t epoch_count,
                            uint32_t memory_mb, double *out_time_s, double *out_cost_micro);

enum { SIREN_PATHS_MAX = 64 };

/* The best of these, and its memory; 0 functions when none reaches the target in any episode. The
 * worse half is given up after each episode, down to three. */
struct scheduler_decay siren_best_path(const struct siren_episodes *episodes,
                                       const struct scheduler_decay *paths, size_t path_count);
