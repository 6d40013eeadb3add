/*
 * Inside of a frontier: the search (frontier_search.c), the pick by wish (frontier_pick.c) and what
 * is said about it (frontier_advice.c).
 */
#pragma once

#include "recommend/frontier.h"

/* All choices of which none is both faster and cheaper, rising in time. */
void frontier_search(struct arena *arena, const struct frontier_request *request,
                     struct frontier *frontier);
void frontier_advise(const struct frontier_request *request, struct frontier *frontier);
