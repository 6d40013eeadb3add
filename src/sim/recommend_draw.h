/*
 * Recommend draw: which jobs, machines and wishes the cases of a recommend sim have.
 */
#pragma once

#include "sim/recommend_sim.h"

/* The first run of a family: one worker under bsp, whose curve sets the target. */
struct world_run draw_first(const struct world *world, uint32_t family);
/* An earlier run of it, until the target, on other machines, with other batches and policies. */
struct world_run draw_earlier(const struct world *world, uint32_t family, uint32_t index);
/* A case: its job, kinds, clusters and the kind of its wish; limits need outcomes. */
void draw_case(const struct world *world, uint32_t index, struct recommend_case *out_case);
/* The limits of its wish, from what its clusters really take. */
void draw_limits(const struct world *world, struct recommend_case *drawn);
