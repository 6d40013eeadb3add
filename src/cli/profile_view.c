#include "cli/profile_view.h"

#include "cli/output.h"
#include "cli/table.h"

#include <inttypes.h>
#include <math.h>

const char *profile_view_rate(struct arena *arena, double bytes_per_s)
{
    return bytes_per_s >= 1 ? arena_format(arena, "%s/s", output_bytes(arena, (int64_t)bytes_per_s))
                            : "-";
}

const char *profile_view_error(struct arena *arena, double error, const char *more,
                               const char *less)
{
    const double percent = 100 * fabs(error);
    if (percent < 0.5)
        return "as foretold";
    return arena_format(arena, "%.0f %% %s than foretold", percent, error > 0 ? more : less);
}

static const char *share(struct arena *arena, const struct api_profile_worker *worker,
                         int64_t part_ms)
{
    const int64_t all_ms = worker->compute_ms + worker->transfer_ms + worker->wait_ms;
    return all_ms > 0 ? arena_format(arena, "%.0f%%", 100.0 * (double)part_ms / (double)all_ms)
                      : "-";
}

/* "0.48 of 0.5" */
static const char *use(struct arena *arena, double used, int64_t had_milli)
{
    if (had_milli <= 0)
        return "-";
    return arena_format(arena, "%.2f of %s", used, output_cores(arena, had_milli));
}

/* "12.3 ms"; "-": it made none. */
static const char *step_time(struct arena *arena, double step_ms)
{
    if (!(step_ms > 0))
        return "-";
    if (step_ms < 1)
        return arena_format(arena, "%.0f us", 1000 * step_ms);
    return arena_format(arena, "%.*f ms", step_ms < 100 ? 1 : 0, step_ms);
}

static void print_workers(const struct cli *cli, const struct api_profile *profile)
{
    struct arena *arena = cli->arena;
    const struct api_profile_worker *workers = profile->workers.items;
    struct table table;
    table_init(&table, arena,
               (const char *const[]){"~MACHINE", "ROLE", ">/7RANK", ">STEPS", ">STEP", ">COMPUTES",
                                     ">TRANSFERS", ">WAITS", ">/5SENDS", ">/5RECEIVES", ">CPU",
                                     ">/6GPU", ">/4MEMORY", ">/8LOSS", "/9CODEC", ">PAID", NULL});
    for (size_t i = 0; i < profile->workers.count; i++) {
        const struct api_profile_worker *worker = &workers[i];
        TABLE_ROW(&table, output_text(arena, worker->machine_name),
                  worker->is_replica ? "replica" : output_text(arena, worker->role),
                  output_number(arena, worker->rank), output_number(arena, worker->steps),
                  step_time(arena, worker->step_ms), share(arena, worker, worker->compute_ms),
                  share(arena, worker, worker->transfer_ms), share(arena, worker, worker->wait_ms),
                  profile_view_rate(arena, worker->sent_bytes_per_s),
                  profile_view_rate(arena, worker->received_bytes_per_s),
                  use(arena, worker->cores_used, worker->cores_milli),
                  use(arena, worker->gpus_used, worker->gpus_milli),
                  worker->memory_peak_bytes > 0 ? output_bytes(arena, worker->memory_peak_bytes)
                                                : "-",
                  worker->loss > 0 ? arena_format(arena, "%.4f", worker->loss) : "-",
                  worker->codec.size ? output_text(arena, worker->codec) : "-",
                  output_credits(arena, worker->posted_micro));
    }
    table_show(&table, cli);
    if (profile->lease_count > profile->workers.count)
        output_note(cli, "%" PRIu64 " more leases are not shown.",
                    profile->lease_count - profile->workers.count);
}

static void print_prediction(const struct cli *cli, const struct api_prediction *prediction)
{
    struct arena *arena = cli->arena;
    if (!prediction->rule.size)
        return;
    if (prediction->is_bound)
        output_field(cli, "Foretold: ", "at most %s, at most %s, by %s",
                     output_duration(arena, prediction->time_ms.high),
                     output_amount(cli, prediction->cost_micro.high),
                     output_text(arena, prediction->rule));
    else
        output_field(cli, "Foretold: ", "%s (%s to %s), %s (%s to %s), by %s",
                     output_duration(arena, prediction->time_ms.expected),
                     output_duration(arena, prediction->time_ms.low),
                     output_duration(arena, prediction->time_ms.high),
                     output_amount(cli, prediction->cost_micro.expected),
                     output_credits(arena, prediction->cost_micro.low),
                     output_credits(arena, prediction->cost_micro.high),
                     output_text(arena, prediction->rule));
    if (prediction->is_over)
        output_field(cli, "It was:   ", "%s, %s; %s, %s",
                     output_duration(arena, prediction->actual_time_ms),
                     profile_view_error(arena, prediction->time_error, "longer", "shorter"),
                     output_amount(cli, prediction->actual_cost_micro),
                     profile_view_error(arena, prediction->cost_error, "more", "less"));
}

static void print_learning(const struct cli *cli, const struct api_profile *profile)
{
    const bool is_measured = profile->loss_per_step < 0 || profile->loss_per_step > 0;
    if (is_measured)
        output_field(cli, "Loss:     ", "%.4f; %+.3g a step, %+.3g a second", profile->loss,
                     profile->loss_per_step, profile->loss_per_second);
    else if (profile->loss > 0)
        output_field(cli, "Loss:     ", "%.4f", profile->loss);
}

void profile_view_print(const struct cli *cli, const struct api_profile *profile)
{
    struct arena *arena = cli->arena;
    const struct text policy =
        profile->policy_in_force.size ? profile->policy_in_force : profile->policy;
    if (profile->batch > 0)
        output_field(cli, "Job:      ", "%" PRIu64 ": %s on %s, batch %" PRIu64 ", policy %s",
                     profile->job, output_text(arena, profile->model),
                     output_text(arena, profile->data), profile->batch, output_text(arena, policy));
    else
        output_field(cli, "Job:      ", "%" PRIu64 ": a program of its own", profile->job);
    output_field(cli, "Signature:", " %s", output_text(arena, profile->signature));
    if (profile->parameter_count > 0)
        output_field(cli, "Model:    ", "%" PRIu64 " parameters", profile->parameter_count);
    if (profile->first_step_ms > 0 && profile->started_ms > 0)
        output_field(cli, "First step:", " %s after its start",
                     output_duration(arena, profile->first_step_ms > profile->started_ms
                                                ? profile->first_step_ms - profile->started_ms
                                                : 0));
    if (profile->steps > 0)
        output_field(cli,
                     "Trained:  ", "%s: %" PRIu64 " steps, %" PRIu64 " pushes, %" PRIu64 " samples",
                     output_duration(arena, profile->elapsed_ms), profile->steps, profile->pushes,
                     profile->samples);
    print_learning(cli, profile);
    print_prediction(cli, &profile->prediction);
    print_workers(cli, profile);
}
