/* Recommendation, in words: what its advice says to people. */
#include "base/assert.h"
#include "base/units.h"
#include "server/recommendation.h"

#include <math.h>

static const char *percent(struct arena *arena, double share)
{
    return arena_format(arena, "%.0f %%", 100 * share);
}

const char *recommendation_advice_text(struct arena *arena, const struct advice *advice)
{
    const double figure = advice->figure;
    char text[UNITS_TEXT_SIZE];
    switch (advice->code) {
    case ADVICE_ONE_MACHINE:
        if (figure < 1.05)
            return "one machine is best: two would cost as much for the same model";
        return arena_format(
            arena, "one machine is best: two would cost %.1f times as much for the same model",
            figure);
    case ADVICE_LINK_FULL:
        return arena_format(arena,
                            "%.0f worker%s the parameter server's link: more bring hardly anything",
                            figure, figure > 1 ? "s fill" : " fills");
    case ADVICE_WAITING:
        return arena_format(arena, "workers stand still for %s of their time, for the slowest",
                            percent(arena, figure));
    case ADVICE_LARGE_BATCH:
        return arena_format(arena,
                            "distribution helps little: from %.0f worker%s on twice as many need "
                            "nearly twice the samples",
                            figure, lround(figure) == 1 ? "" : "s");
    case ADVICE_FUNCTION_DEAR:
        return arena_format(arena, "functions would cost %.1f times as much", figure);
    case ADVICE_FUNCTION_SLOW:
        return arena_format(arena,
                            "functions are a bad idea: they would spend %s of their time on the "
                            "way to the parameter server",
                            percent(arena, figure));
    case ADVICE_SPOT_RISK:
        return arena_format(arena, "a worker is lost before the end with a chance of %s",
                            percent(arena, figure));
    case ADVICE_TRIAL_FIRST:
        return arena_format(arena,
                            "hardly anything is known of this job: the upper end of its time is "
                            "%.0f times the lower; a trial tells more",
                            figure);
    case ADVICE_DEADLINE_TIGHT:
        return arena_format(arena, "nothing keeps the deadline surely: the fastest may take %s",
                            units_format_duration(llround(1000 * figure), text));
    case ADVICE_SHORT_JOB:
        return arena_format(arena, "the job is short: its start takes %s of its time",
                            percent(arena, figure));
    case ADVICE_COUNT:
        break;
    }
    UNREACHABLE("advice that there is not");
}
