/*
 * Frontier, the pick: which of some choices suits a wish best.
 */
#include "base/assert.h"
#include "base/units.h"
#include "recommend/frontier.h"

#include <inttypes.h>
#include <math.h>

static const double late_most = 0.2; /* outcomes that may miss a limit, if others miss it less */
static const double fifth_normal = 0.8416;
static const double safe_cost_most = 2; /* times the cheapest */
static const double risk_weight = 0.5;  /* of a sure loss, in deviations of the time */

/* How far a choice keeps to the limits of a wish. */
enum keeping { KEEPS_NOT, KEEPS_HALF /* expected to */, KEEPS /* by four of five outcomes */ };

static enum keeping keeping_of(const struct choice *choice, const struct wish *wish)
{
    const struct prediction *told = &choice->prediction;
    enum keeping keeping = KEEPS;
    if (wish->budget_micro_per_hour > 0 &&
        choice->price_micro_per_hour > wish->budget_micro_per_hour)
        return KEEPS_NOT;
    if (wish->deadline_s > 0) {
        if (told->seconds.expected > wish->deadline_s)
            return KEEPS_NOT;
        if (prediction_late_share(told, wish->deadline_s) > late_most)
            keeping = KEEPS_HALF;
    }
    if (wish->budget_micro > 0) {
        const double budget = (double)wish->budget_micro;
        if (told->cost_micro.expected > budget)
            return KEEPS_NOT;
        if (told->cost_micro.expected * exp(fifth_normal * told->deviation) > budget)
            keeping = KEEPS_HALF;
    }
    return keeping;
}

/* What is to be small. */
static double score_of(const struct choice *choice, const struct wish *wish, double cheapest)
{
    const struct prediction *told = &choice->prediction;
    switch (wish->kind) {
    case WISH_CHEAPEST:
        return told->cost_micro.expected;
    case WISH_FASTEST:
        return told->seconds.expected;
    case WISH_SAFEST:
        return told->cost_micro.expected > safe_cost_most * cheapest
                   ? (double)HUGE_VAL
                   : told->deviation + risk_weight * told->risk;
    case WISH_COUNT:
        break;
    }
    ASSERT(wish->kind < WISH_COUNT);
    return 0;
}

static int refuse(const struct choice *choices, size_t count, const struct wish *wish,
                  struct error *error)
{
    double cheapest = HUGE_VAL, fastest = HUGE_VAL;
    int64_t least = INT64_MAX;
    char amount[UNITS_TEXT_SIZE], time[UNITS_TEXT_SIZE];
    for (size_t i = 0; i < count; i++) {
        cheapest = fmin(cheapest, choices[i].prediction.cost_micro.expected);
        fastest = fmin(fastest, choices[i].prediction.seconds.expected);
        if (choices[i].price_micro_per_hour < least)
            least = choices[i].price_micro_per_hour;
    }
    units_format_credits(llround(cheapest), amount);
    units_format_duration(llround(1000 * fastest), time);
    if (wish->budget_micro_per_hour > 0 && least > wish->budget_micro_per_hour)
        return error_set(error, ERROR_EXHAUSTED,
                         "no cluster costs so little an hour: the least is %s",
                         units_format_credits(least, amount));
    if (wish->budget_micro > 0 && cheapest > (double)wish->budget_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "no cluster does it for so little: the cheapest takes %s", amount);
    if (wish->deadline_s > 0 && fastest > wish->deadline_s)
        return error_set(error, ERROR_EXHAUSTED, "no cluster is done by then: the fastest takes %s",
                         time);
    return error_set(error, ERROR_EXHAUSTED,
                     "no cluster keeps to all of that: the cheapest takes %s, the fastest %s",
                     amount, time);
}

int frontier_pick(const struct choice *choices, size_t count, const struct wish *wish,
                  size_t *out_index, struct error *error)
{
    enum keeping best = KEEPS_NOT;
    double cheapest = HUGE_VAL, least = HUGE_VAL;
    if (count == 0)
        return error_set(error, ERROR_NOT_FOUND, "no cluster to choose from");
    for (size_t i = 0; i < count; i++) {
        const enum keeping keeping = keeping_of(&choices[i], wish);
        if (keeping > best)
            best = keeping;
        if (keeping != KEEPS_NOT)
            cheapest = fmin(cheapest, choices[i].prediction.cost_micro.expected);
    }
    if (best == KEEPS_NOT)
        return refuse(choices, count, wish, error);
    for (size_t i = 0; i < count; i++) {
        const double score = score_of(&choices[i], wish, cheapest);
        if (keeping_of(&choices[i], wish) == best && score < least) {
            least = score;
            *out_index = i;
        }
    }
    return 0;
}
