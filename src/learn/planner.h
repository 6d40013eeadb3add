/*
 * Planner: fits the epoch model to what was seen and plans the rest of the run by it, anew before
 * every epoch.
 */
#pragma once

#include "base/scope.h"
#include "learn/epoch_fit.h"
#include "learn/plan.h"

struct planner;

struct planner *planner_new(const struct epoch_task *task, const struct epoch_fit *history);
void planner_free(struct planner *planner); /* NULL is fine */
DEFINE_AUTO(planner);

void planner_see(struct planner *planner, const struct epoch_seen *seen);
/* The next choice and what is to come; an infinite time while the first epochs only try. */
struct plan_outlook planner_look(struct planner *planner, const struct epoch_state *state);
