/* What `souk sim sync` shows of its runs: a table, JSON, curves. */
#include "base/file.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/sim_sync.h"
#include "cli/table.h"
#include "sim/sync_chart.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SVG_BYTES_MAX = 16 << 20, JSON_BYTES_MAX = 64 << 20 };

static bool is_better(const struct sync_run_result *left, const struct sync_run_result *right)
{
    const bool has_left = isfinite(left->target_s), has_right = isfinite(right->target_s);
    if (has_left != has_right)
        return has_left;
    if (has_left)
        return left->target_s < right->target_s;
    return left->loss < right->loss || (isnan(right->loss) && !isnan(left->loss));
}

/* The best of each policy and seed, in the order asked for; returns how many. */
static size_t best_runs(const struct sim_sync *plan, size_t best[SIM_SYNC_RUNS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < plan->run_count; i++) {
        size_t n = 0;
        while (n < count && (plan->names[best[n]].seed != plan->names[i].seed ||
                             strcmp(plan->names[best[n]].policy, plan->names[i].policy) != 0))
            n++;
        if (n == count)
            best[count++] = i;
        else if (is_better(&plan->results[i], &plan->results[best[n]]))
            best[n] = i;
    }
    return count;
}

static const char *time_cell(struct arena *arena, const struct sync_run_result *result)
{
    if (isfinite(result->target_s))
        return arena_format(arena, "%.1f", result->target_s);
    return result->end == SYNC_RUN_DIVERGED ? "diverged"
                                            : arena_format(arena, "> %.0f", result->elapsed_s);
}

void sim_sync_print(const struct sim_sync *plan)
{
    struct arena *arena = plan->cli->arena;
    size_t best[SIM_SYNC_RUNS_MAX];
    const size_t count = best_runs(plan, best);
    struct table shown;
    table_init(&shown, arena,
               (const char *const[]){"policy", ">rate", ">seed", ">seconds to target", ">steps",
                                     ">commits", ">MB", ">waiting", ">loss", ">accuracy", NULL});
    for (size_t i = 0; i < count; i++) {
        const struct sync_run_result *result = &plan->results[best[i]];
        const struct sim_sync_run *name = &plan->names[best[i]];
        TABLE_ROW(&shown, name->policy, arena_format(arena, "%g", name->rate),
                  arena_format(arena, "%" PRIu64, name->seed), time_cell(arena, result),
                  arena_format(arena, "%" PRIu64, result->steps),
                  arena_format(arena, "%" PRIu64, result->commits),
                  arena_format(arena, "%.0f", 1e-6 * (double)result->bytes),
                  arena_format(arena, "%.1f %%", 100 * result->waiting_share),
                  arena_format(arena, "%.4f", result->loss),
                  arena_format(arena, "%.3f", result->accuracy));
    }
    printf("%s: %" PRIu32 " machines, H = %.2f, a mean step takes %.3g s; %s on %s, target %g\n",
           plan->profile.name[0] ? plan->profile.name : plan->wanted->profile,
           plan->profile.machine_count, sync_profile_heterogeneity(&plan->profile),
           1e-9 * (double)sync_profile_mean_step_ns(&plan->profile),
           model_kind_names[plan->wanted->model], plan->wanted->data, plan->target_loss);
    table_show(&shown, plan->cli);
    for (size_t i = 0; i < count; i++)
        if (plan->results[best[i]].status.reason[0])
            printf("%s: %s\n", plan->names[best[i]].policy, plan->results[best[i]].status.reason);
}

static void write_run(const struct sim_sync *plan, size_t index, struct json_writer *writer)
{
    const struct sync_run_result *result = &plan->results[index];
    json_object_begin(writer);
    json_field_string(writer, "policy", plan->names[index].policy);
    json_field_double(writer, "rate", plan->names[index].rate);
    json_field_u64(writer, "seed", plan->names[index].seed);
    json_field_string(writer, "end", sync_run_end_name(result->end));
    json_field_double(writer, "target_s", result->target_s);
    json_field_double(writer, "elapsed_s", result->elapsed_s);
    json_field_double(writer, "loss", result->loss);
    json_field_double(writer, "accuracy", result->accuracy);
    json_field_u64(writer, "steps", result->steps);
    json_field_u64(writer, "samples", result->samples);
    json_field_u64(writer, "commits", result->commits);
    json_field_u64(writer, "bytes", result->bytes);
    json_field_u64(writer, "joins", result->joins);
    json_field_u64(writer, "leaves", result->leaves);
    json_field_double(writer, "waiting_share", result->waiting_share);
    json_field_string(writer, "chosen", result->status.policy);
    json_field_string(writer, "reason", result->status.reason);
    json_field_string(writer, "fingerprint",
                      arena_format(plan->cli->arena, "%016" PRIx64, result->fingerprint));
    if (plan->wanted->curve) {
        json_key(writer, "curve");
        json_array_begin(writer);
        for (size_t n = 0; n < result->point_count; n++) {
            json_array_begin(writer);
            json_double(writer, result->points[n].at_s);
            json_double(writer, result->points[n].loss);
            json_array_end(writer);
        }
        json_array_end(writer);
    }
    json_object_end(writer);
}

int sim_sync_print_json(const struct sim_sync *plan, struct error *error)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, JSON_BYTES_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &out);
    json_object_begin(&writer);
    json_field_string(&writer, "profile", plan->wanted->profile);
    json_field_u64(&writer, "machines", plan->profile.machine_count);
    json_field_double(&writer, "heterogeneity", sync_profile_heterogeneity(&plan->profile));
    json_field_double(&writer, "mean_step_s",
                      1e-9 * (double)sync_profile_mean_step_ns(&plan->profile));
    json_field_string(&writer, "model", model_kind_names[plan->wanted->model]);
    json_field_string(&writer, "data", plan->wanted->data);
    json_field_double(&writer, "target_loss", plan->target_loss);
    json_key(&writer, "runs");
    json_array_begin(&writer);
    for (size_t i = 0; i < plan->run_count; i++)
        write_run(plan, i, &writer);
    json_array_end(&writer);
    json_object_end(&writer);
    if (buffer_check(&out, error) < 0)
        return -1;
    output_json(buffer_text(&out));
    return 0;
}

int sim_sync_draw(const struct sim_sync *plan, struct error *error)
{
    struct arena *arena = plan->cli->arena;
    size_t best[SIM_SYNC_RUNS_MAX];
    const size_t count = best_runs(plan, best);
    struct sync_chart_line *lines = arena_alloc(arena, count * sizeof(*lines));
    for (size_t i = 0; i < count; i++) {
        const struct sim_sync_run *name = &plan->names[best[i]];
        lines[i].result = &plan->results[best[i]];
        lines[i].label = plan->seed_count > 1
                             ? arena_format(arena, "%s #%" PRIu64, name->policy, name->seed)
                             : name->policy;
    }
    const struct sync_chart chart = {
        .title =
            arena_format(arena, "%s on %s, %" PRIu32 " machines, H = %.2f (%s)",
                         model_kind_names[plan->wanted->model], plan->wanted->data,
                         plan->profile.machine_count, sync_profile_heterogeneity(&plan->profile),
                         plan->profile.name[0] ? plan->profile.name : plan->wanted->profile),
        .target_loss = plan->target_loss,
        .lines = lines,
        .line_count = count,
    };
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, SVG_BYTES_MAX);
    sync_chart_write(&chart, &out);
    const struct text svg = buffer_text(&out);
    if (buffer_check(&out, error) < 0 || file_replace(plan->wanted->svg, &svg, 1, 0644, error) < 0)
        return error_wrap(error, "--svg");
    return 0;
}
