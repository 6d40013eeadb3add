#include "recommend/frontier.h"

#include "base/assert.h"
#include "base/units.h"
#include "recommend/frontier_internal.h"

const char *wish_kind_name(enum wish_kind kind)
{
    static const char *const names[WISH_COUNT] = {
        [WISH_CHEAPEST] = "cheapest",
        [WISH_FASTEST] = "fastest",
        [WISH_SAFEST] = "safest",
    };
    ASSERT(kind < WISH_COUNT);
    return names[kind];
}

/* The least an hour of anything: for whoever asks for less. */
static int refuse_hour(const struct frontier_request *request, struct error *error)
{
    int64_t least = INT64_MAX;
    char amount[UNITS_TEXT_SIZE];
    for (size_t i = 0; i < request->candidate_count; i++)
        if (request->candidates[i].price_micro_per_hour < least)
            least = request->candidates[i].price_micro_per_hour;
    return error_set(error, ERROR_EXHAUSTED,
                     "the budget does not pay for a server and one worker: %s an hour do",
                     units_format_credits(least + request->server.price_micro_per_hour, amount));
}

static bool is_steady(const struct candidate *candidate)
{
    return !(candidate->losses_per_hour > 0 || candidate->lifetime_s > 0);
}

/* The same with the machines that never go, and which of the request's each is. */
static struct frontier_request only_steady(struct arena *arena,
                                           const struct frontier_request *request,
                                           const struct candidate ***out_origins)
{
    const size_t count = request->candidate_count;
    struct candidate *steady = arena_alloc(arena, count * sizeof(*steady));
    const struct candidate **origins = arena_alloc(arena, count * sizeof(*origins));
    struct frontier_request less = *request;
    less.candidate_count = 0;
    for (size_t i = 0; i < count; i++)
        if (is_steady(&request->candidates[i])) {
            origins[less.candidate_count] = &request->candidates[i];
            steady[less.candidate_count++] = request->candidates[i];
        }
    less.candidates = steady;
    *out_origins = origins;
    return less;
}

static void search_steady(struct arena *arena, const struct frontier_request *request,
                          struct frontier *frontier)
{
    const struct candidate **origins;
    const struct frontier_request less = only_steady(arena, request, &origins);
    if (less.candidate_count == 0)
        return;
    frontier_search(arena, &less, frontier);
    for (size_t i = 0; i < frontier->choice_count; i++)
        for (uint32_t n = 0; n < frontier->choices[i].plan.part_count; n++) {
            struct cluster_part *part = &frontier->choices[i].plan.parts[n];
            part->candidate = origins[part->candidate - less.candidates];
        }
}

/* What is safest may be dearer and slower than what is on the frontier: machines that stay are
 * looked at for themselves too. */
static int pick(struct arena *arena, const struct frontier_request *request,
                struct frontier *frontier, struct error *error)
{
    struct frontier steady = {0};
    size_t index = 0;
    if (request->wish.kind == WISH_SAFEST)
        search_steady(arena, request, &steady);
    const size_t own = frontier->choice_count, count = own + steady.choice_count;
    struct choice *all = arena_alloc(arena, count * sizeof(*all));
    for (size_t i = 0; i < count; i++)
        all[i] = i < own ? frontier->choices[i] : steady.choices[i - own];
    if (frontier_pick(all, count, &request->wish, &index, error) < 0)
        return -1;
    frontier->chosen = all[index];
    frontier->considered += steady.considered;
    return 0;
}

int frontier_find(struct arena *arena, const struct frontier_request *request,
                  struct frontier *out_frontier, struct error *error)
{
    const struct wish *wish = &request->wish;
    struct frontier frontier = {0};
    ASSERT(request->fit_count > 0);
    if (request->candidate_count == 0)
        return error_set(error, ERROR_NOT_FOUND, "no machine is on offer");
    if (wish->kind == WISH_FASTEST && wish->budget_micro_per_hour == 0 && wish->budget_micro == 0 &&
        wish->worker_max == 0)
        return error_set(error, ERROR_INVALID,
                         "the fastest is the one that costs most: give a budget an hour, a budget "
                         "in all or a limit of workers");
    frontier_search(arena, request, &frontier);
    if (frontier.choice_count == 0)
        return refuse_hour(request, error);
    if (pick(arena, request, &frontier, error) < 0)
        return -1;
    frontier_advise(request, &frontier);
    *out_frontier = frontier;
    return 0;
}
