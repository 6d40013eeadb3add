/*
 * Recommend explain: how the time and the cost of a cluster come about, in figures that add up.
 */
#pragma once

#include "cli/recommend_view.h"

/* `is_bound`: all epochs are counted, for no run has reached the target. */
void recommend_explain_print(const struct cli *cli, const struct api_cluster *cluster,
                             bool is_bound);

/* Its lines, each in the arena: of one worker; of all; of the work. */
const char *recommend_explain_step(struct arena *arena, const struct api_cluster_workers *workers);
const char *recommend_explain_speed(struct arena *arena, const struct api_cluster *cluster);
const char *recommend_explain_work(struct arena *arena, const struct api_cluster_figures *figures);
