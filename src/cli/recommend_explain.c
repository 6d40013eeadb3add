#include "cli/recommend_explain.h"

#include "cli/output.h"

#include <inttypes.h>
#include <math.h>

static const double factor_least = 0.005; /* nearer to 1 it is not worth a word */

static const char *step_time(struct arena *arena, double seconds)
{
    return seconds < 1 ? arena_format(arena, "%.3g ms", 1000 * seconds)
                       : arena_format(arena, "%.3g s", seconds);
}

static const char *count(struct arena *arena, double value)
{
    return arena_format(arena, value < 100 ? "%.3g" : "%.0f", value);
}

static const char *plural(double value)
{
    return value > 0.995 && value < 1.005 ? "" : "s";
}

const char *recommend_explain_step(struct arena *arena, const struct api_cluster_workers *workers)
{
    const char *from = workers->runs > 0
                           ? arena_format(arena, "as %" PRIu64 " run%s of this model showed there",
                                          workers->runs, workers->runs > 1 ? "s" : "")
                           : "reckoned from its speed, for no run of this model was there";
    return arena_format(arena, "%s: %s, %s; a push and its answer %s",
                        output_text(arena, workers->type), step_time(arena, workers->step_s), from,
                        step_time(arena, workers->push_s));
}

const char *recommend_explain_speed(struct arena *arena, const struct api_cluster *cluster)
{
    const struct api_cluster_figures *figures = &cluster->figures;
    const struct api_cluster_workers *workers = cluster->workers.items;
    uint64_t all = 0;
    for (size_t i = 0; i < cluster->workers.count; i++)
        all += workers[i].count;
    return arena_format(
        arena,
        "%" PRIu64 " worker%s compute%s %s steps a second; beside a push every %s step%s and "
        "waiting %s are left, %.0f %%",
        all, all == 1 ? "" : "s", all == 1 ? "s" : "", count(arena, figures->compute_steps_per_s),
        count(arena, figures->steps_per_push), plural(figures->steps_per_push),
        count(arena, figures->steps_per_s),
        100 * figures->steps_per_s / fmax(figures->compute_steps_per_s, 1e-300));
}

static double steps_of(const struct api_cluster_figures *figures)
{
    return figures->samples / (figures->batch > 0 ? (double)figures->batch : 1);
}

static const char *factor(struct arena *arena, double value, const char *why)
{
    return fabs(value - 1) < factor_least ? "" : arena_format(arena, ", x %.2f %s", value, why);
}

const char *recommend_explain_work(struct arena *arena, const struct api_cluster_figures *figures)
{
    const double plain_s = steps_of(figures) / fmax(figures->steps_per_s, 1e-300);
    const double reckoned_s = plain_s * figures->correction * figures->loss_factor;
    const char *words =
        arena_format(arena, "%s steps at %s a second are %s%s%s", count(arena, steps_of(figures)),
                     count(arena, figures->steps_per_s), recommend_view_seconds(arena, plain_s),
                     factor(arena, figures->correction, "by what past predictions were off"),
                     factor(arena, figures->loss_factor, "for workers that are lost meanwhile"));
    if (figures->work_s > reckoned_s * (1 + factor_least))
        return arena_format(arena, "%s; it trains for %s all the same (min_time)", words,
                            recommend_view_seconds(arena, figures->least_s));
    return reckoned_s > plain_s * (1 + factor_least) || reckoned_s < plain_s * (1 - factor_least)
               ? arena_format(arena, "%s: %s", words,
                              recommend_view_seconds(arena, figures->work_s))
               : words;
}

static const char *price(struct arena *arena, const struct api_cluster *cluster)
{
    const struct api_cluster_workers *workers = cluster->workers.items;
    const char *words = output_credits(arena, cluster->server.price_micro_per_hour);
    for (size_t i = 0; i < cluster->workers.count; i++)
        words = arena_format(arena, "%s + %" PRIu64 " x %s", words, workers[i].count,
                             output_credits(arena, workers[i].price_micro_per_hour));
    return words;
}

void recommend_explain_print(const struct cli *cli, const struct api_cluster *cluster,
                             bool is_bound)
{
    struct arena *arena = cli->arena;
    const struct api_cluster_figures *figures = &cluster->figures;
    const struct api_cluster_workers *workers = cluster->workers.items;
    const double expected_s = figures->start_s + figures->work_s;
    if (!(expected_s > 0)) {
        output_problem(cli,
                       "this market is of an older version: it does not say how that comes about");
        return;
    }
    printf("\nHow the chosen one's time and cost come about, as expected:\n");
    for (size_t i = 0; i < cluster->workers.count; i++)
        output_field(cli, "Step:     ", "%s", recommend_explain_step(arena, &workers[i]));
    output_field(cli, "Speed:    ", "%s", recommend_explain_speed(arena, cluster));
    output_field(cli, "Samples:  ", "%s %s, in batches of %" PRIu64 ": %s steps",
                 count(arena, figures->samples),
                 is_bound ? "of all epochs, for nothing is known of the target" : "until the end",
                 figures->batch, count(arena, steps_of(figures)));
    output_field(cli, "Work:     ", "%s", recommend_explain_work(arena, figures));
    output_field(cli, "In all:   ", "%s to start and to end + %s of work = %s",
                 recommend_view_seconds(arena, figures->start_s),
                 recommend_view_seconds(arena, figures->work_s),
                 recommend_view_seconds(arena, expected_s));
    output_field(cli,
                 "Price:    ", "%s (the server's + the workers') = %s an hour; for %s that is %s",
                 price(arena, cluster), output_amount(cli, cluster->cost_micro_per_hour),
                 recommend_view_seconds(arena, expected_s),
                 output_amount(cli, cluster->cost_micro.expected));
}
