/*
 * Recommendation, what is busy: machines that others have leased and that would do better.
 *
 * They are weighed beside those that are free, as if they were, under the chosen policy.
 */
#include "base/buffer.h"
#include "base/units.h"
#include "server/recommendation.h"

#include <inttypes.h>
#include <math.h>

static const double better_least = 0.05; /* of the cost or the time: less is nothing */

/* Those that are free first, then those that are busy. */
static const struct candidate *join(struct arena *arena,
                                    const struct recommendation_request *request)
{
    const size_t free_count = request->candidate_count;
    struct candidate *all = arena_alloc(arena, (free_count + request->busy_count) * sizeof(*all));
    for (size_t i = 0; i < free_count; i++)
        all[i] = request->candidates[i];
    for (size_t i = 0; i < request->busy_count; i++)
        all[free_count + i] = request->busy[i].candidate;
    return all;
}

/* Of what is to be small: by how much the other is better, as a share. */
static double gain_of(const struct wish *wish, const struct choice *now, const struct choice *later)
{
    const bool is_time = wish->kind == WISH_FASTEST;
    const double had =
        is_time ? now->prediction.seconds.expected : now->prediction.cost_micro.expected;
    const double other =
        is_time ? later->prediction.seconds.expected : later->prediction.cost_micro.expected;
    return had > 0 ? 1 - other / had : 0;
}

struct waiting {
    const char *names;          /* "1 x 4c@1.1" */
    int64_t since_ms, until_ms; /* of all of them */
    uint32_t count;
};

static struct waiting waiting_of(struct arena *arena, const struct recommendation_request *request,
                                 const struct candidate *all, const struct choice *choice)
{
    struct waiting waiting = {.names = ""};
    for (uint32_t i = 0; i < choice->plan.part_count; i++) {
        const struct cluster_part *part = &choice->plan.parts[i];
        const size_t place = (size_t)(part->candidate - all);
        if (place < request->candidate_count)
            continue;
        const struct busy_kind *busy = &request->busy[place - request->candidate_count];
        waiting.names =
            arena_format(arena, "%s%s%" PRIu32 " x %s", waiting.names,
                         waiting.count > 0 ? " + " : "", part->count, busy->candidate.name);
        if (waiting.count == 0 || busy->since_ms < waiting.since_ms)
            waiting.since_ms = busy->since_ms;
        if (busy->until_ms > waiting.until_ms)
            waiting.until_ms = busy->until_ms;
        waiting.count += part->count;
    }
    return waiting;
}

static const char *words_of(struct arena *arena, const struct recommendation_request *request,
                            const struct waiting *waiting, const struct choice *choice, double gain)
{
    char since[UNITS_TEXT_SIZE], until[UNITS_TEXT_SIZE], cost[UNITS_TEXT_SIZE];
    char time[UNITS_TEXT_SIZE];
    const bool is_time = request->wish.kind == WISH_FASTEST;
    const int64_t had_ms = request->now_ms - waiting->since_ms;
    const int64_t left_ms = waiting->until_ms - request->now_ms;
    return arena_format(
        arena,
        "%s would be better, but %s: leased for %s now, for %s more at most; with %s %s "
        "take%s about %s and %s, %.0f %% %s",
        waiting->names, waiting->count > 1 ? "they are busy" : "is busy",
        units_format_duration(had_ms > 0 ? had_ms : 0, since),
        units_format_duration(left_ms > 0 ? left_ms : 0, until), waiting->count > 1 ? "them" : "it",
        request->is_target_known ? "the job" : "all of its epochs",
        request->is_target_known ? "s" : "",
        units_format_duration(llround(1000 * choice->prediction.seconds.expected), time),
        units_format_credits(llround(choice->prediction.cost_micro.expected), cost), 100 * gain,
        is_time ? "sooner once it runs" : "less");
}

void recommendation_advise_busy(struct arena *arena, const struct recommendation_request *request,
                                struct recommendation *recommendation)
{
    const struct choice *chosen = &recommendation->choices[recommendation->chosen];
    struct frontier frontier;
    struct error none_is_better;
    if (request->busy_count == 0 || request->rule != RULE_AUTO || request->wish.kind == WISH_SAFEST)
        return;
    const struct candidate *all = join(arena, request);
    const struct frontier_request asked = {.candidates = all,
                                           .candidate_count =
                                               request->candidate_count + request->busy_count,
                                           .fits = chosen->fit,
                                           .fit_count = 1,
                                           .server = request->server,
                                           .wish = request->wish};
    if (frontier_find(arena, &asked, &frontier, &none_is_better) < 0)
        return;
    const struct waiting waiting = waiting_of(arena, request, all, &frontier.chosen);
    const double gain = gain_of(&request->wish, chosen, &frontier.chosen);
    const double wait_s = 1e-3 * (double)(waiting.until_ms - request->now_ms);
    const double deadline_s = request->wish.deadline_s;
    if (waiting.count == 0 || gain < better_least ||
        (deadline_s > 0 && wait_s + frontier.chosen.prediction.seconds.expected > deadline_s))
        return;
    recommendation_advise(recommendation, "busy-better",
                          words_of(arena, request, &waiting, &frontier.chosen, gain));
}
