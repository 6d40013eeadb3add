/* The plan and the question; client/submission.h does the rest. */
#include "cli/submit.h"

#include "cli/connect.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "client/secrets.h"
#include "source/place.h"

#include <inttypes.h>

static void append_amounts(struct buffer *plan, struct arena *arena, const struct job_spec *spec)
{
    const struct job_resources *resources = &spec->resources;
    char accelerators[JOB_WISH_TEXT_SIZE] = "";
    if (resources->accelerators.count_milli > 0)
        job_accelerators_format(&resources->accelerators, accelerators);
    const bool is_any =
        resources->accelerators.model.size == 0 && resources->accelerators.memory_bytes == 0;
    buffer_append_format(
        plan, "  machines  %s x %s%s core%s, %s memory%s%s%s%s%s\n",
        output_workers(arena, spec->num_nodes, spec->num_nodes_max),
        output_cores(arena, resources->cpus_milli.value),
        resources->cpus_milli.is_at_least ? "+" : "",
        resources->cpus_milli.value == 1000 && !resources->cpus_milli.is_at_least ? "" : "s",
        output_bytes(arena, resources->memory_bytes.value), accelerators[0] ? ", " : "",
        accelerators,
        !accelerators[0] || !is_any                   ? ""
        : resources->accelerators.count_milli == 1000 ? " GPU"
                                                      : " GPUs",
        job_spec_is_command(spec) ? "" : "; ",
        job_spec_is_command(spec) ? "" : job_view_servers(arena, &spec->sync));
}

/* What is started for it, and what a dollar counts for where machines are a cloud's. */
static void append_cloud(struct buffer *plan, const struct cli *cli, const struct job_spec *spec,
                         const struct api_quote *quote)
{
    const struct job_resources *resources = &spec->resources;
    if (resources->infra.size)
        buffer_append_format(plan,
                             "  cloud     %" PRIu64 " x " TEXT_FORMAT
                             "%s, started for it; it takes the whole of each\n",
                             spec->num_nodes, TEXT_ARGS(resources->instance_type),
                             resources->use_spot ? " (spot)" : "");
    if (quote->credits_micro_per_usd > 0)
        buffer_append_format(plan, "  rate      $1 of a cloud machine's price is %s\n",
                             output_amount(cli, quote->credits_micro_per_usd));
}

/* What is held, what it costs where it would run, and the most it can ever cost. */
static void append_price(struct buffer *plan, const struct cli *cli, const struct job_spec *spec,
                         const struct api_quote *quote)
{
    struct arena *arena = cli->arena;
    const char *run = output_duration(arena, quote->max_run_ms);
    if (spec->market.spare) {
        buffer_append_string(plan, "  price     nothing: spare time is free\n");
        return;
    }
    if (quote->placed_micro > 0)
        buffer_append_format(plan,
                             "  price     %s for %s on the machines free now (%s an hour);\n"
                             "            likely %s\n",
                             output_amount(cli, quote->placed_micro), run,
                             output_credits(arena, quote->placed_hourly_micro),
                             output_credits(arena, quote->expected_micro));
    else
        buffer_append_format(plan,
                             "  price     %s are held for %s of the least it asks for; "
                             "more, up to the most, once its machines are known\n",
                             output_amount(cli, quote->wish_micro), run);
    if (spec->market.max_total_cost_micro > 0)
        buffer_append_format(plan, "  at most   %s (max_total_cost); you have %s\n",
                             output_amount(cli, spec->market.max_total_cost_micro),
                             output_credits(arena, quote->available_micro));
    else
        buffer_append_format(plan, "  at most   the %s you have: it names no max_total_cost\n",
                             output_amount(cli, quote->available_micro));
}

/* `may_wait`: it is sent although it cannot start now. */
static void append_start(struct buffer *plan, struct arena *arena, const struct job_spec *spec,
                         const struct api_quote *quote, bool may_wait)
{
    char wish[JOB_WISH_TEXT_SIZE];
    buffer_append_format(plan, "  start     %s%s\n", job_start_format(&spec->market.start, wish),
                         spec->market.rush    ? ", ahead of a queue for double the first hour"
                         : spec->market.spare ? ", on spare time: for nothing, until somebody pays"
                                              : "");
    if (quote->can_start)
        return;
    struct text rest = quote->reason, line;
    for (bool has_more = true, is_first = true; has_more; is_first = false) {
        has_more = text_cut(rest, '\n', &line, &rest);
        buffer_append_format(plan, "            %s%s\n",
                             !is_first  ? ""
                             : may_wait ? "but it has to wait: "
                                        : "but it cannot: ",
                             output_text(arena, line));
    }
    if (quote->nearest.size > 0)
        buffer_append_format(plan, "            nearest: %s\n", output_text(arena, quote->nearest));
    if (quote->expected_start_ms > 0)
        buffer_append_format(
            plan, "            expected to start: %s, if all before it run as long as they may\n",
            output_instant(arena, quote->expected_start_ms));
    if (quote->is_lacking)
        buffer_append_format(plan, "  Warning   too few machines here could ever serve it%s\n",
                             may_wait ? ": it waits until others come. \"start: by 2d\" under "
                                        "market in the job file ends the wait"
                                      : ", free or not");
}

/* What several servers and a replica are for, where the machines free now do not give it. */
static void append_servers(struct buffer *plan, const struct job_spec *spec,
                           const struct api_quote *quote)
{
    if (!quote->can_start || job_spec_is_command(spec))
        return;
    if (spec->sync.servers > 1 && quote->server_machines == 1)
        buffer_append_format(plan,
                             "  Warning   its %" PRIu64 " parameter servers would share one "
                             "machine, and its line: no other has room now\n",
                             spec->sync.servers);
    if (spec->sync.replica && !quote->has_replica_room)
        buffer_append_string(plan, "  Warning   no machine besides the parameter server's has room "
                                   "for the replica now: it begins without one\n");
}

enum { SHOWN_SCRIPT_SIZE = 60 };

/* A job file of somebody else may take any variable under any name: it is told which. */
static void append_secrets(struct buffer *plan, struct arena *arena, const struct job_spec *spec)
{
    if (!spec->secret_count)
        return;
    buffer_append_string(plan, "  secrets   ");
    for (size_t i = 0; i < spec->secret_count; i++) {
        const struct job_env *secret = &spec->secrets[i];
        const bool is_renamed = secret->origin.size && !text_equal(secret->origin, secret->name);
        buffer_append_format(plan, "%s%s%s%s", i ? ", " : "", output_text(arena, secret->name),
                             is_renamed ? " from $" : "",
                             is_renamed ? output_text(arena, secret->origin) : "");
    }
    buffer_append_string(plan, ", for every rank\n");
}

/* The first line of what runs, or what is trained. */
static void append_work(struct buffer *plan, struct arena *arena, const struct job_spec *spec)
{
    if (!job_spec_is_command(spec)) {
        char place[PLACE_NAME_SIZE];
        const struct text data = place_is_address(spec->train.data)
                                     ? text_of(place_describe(spec->train.data, place))
                                     : spec->train.data;
        buffer_append_format(plan, "  training  %.*s on %.*s, policy %.*s\n",
                             TEXT_ARGS(spec->train.model), TEXT_ARGS(data),
                             TEXT_ARGS(spec->sync.policy));
        return;
    }
    struct text line = spec->run.size ? spec->run : TEXT("what the image says"), rest = {0};
    const bool has_more = text_cut(line, '\n', &line, &rest) && text_trim(rest).size > 0;
    const bool is_cut = line.size > SHOWN_SCRIPT_SIZE;
    line.size = is_cut ? SHOWN_SCRIPT_SIZE : line.size;
    buffer_append_format(plan, "  runs      %s%s\n", output_text(arena, line),
                         is_cut || has_more ? " ..." : "");
    if (spec->resources.image_id.size)
        buffer_append_format(plan, "  image     %s\n",
                             output_text(arena, spec->resources.image_id));
    if (spec->requirements.size || spec->wheels.size)
        buffer_append_format(plan, "  packages  %s%s%s, installed for every rank\n",
                             output_text(arena, spec->requirements),
                             spec->requirements.size && spec->wheels.size ? " and " : "",
                             output_text(arena, spec->wheels));
    char place[PLACE_NAME_SIZE];
    for (size_t i = 0; i < spec->file_mount_count; i++) {
        const struct job_mount *mount = &spec->file_mounts[i];
        buffer_append_format(plan, "  mount     %s from %s%s\n", output_text(arena, mount->target),
                             place_is_address(mount->source) ? place_describe(mount->source, place)
                             : mount->source.size            ? output_text(arena, mount->source)
                                                             : "the market",
                             mount->shard ? ", each rank its part" : "");
    }
    append_secrets(plan, arena, spec);
    if (spec->workdir.size)
        buffer_append_format(plan, "  files     of %s, on every rank\n",
                             place_is_address(spec->workdir) ? place_describe(spec->workdir, place)
                                                             : output_text(arena, spec->workdir));
}

static int append_same(struct buffer *plan, const struct cli *cli, struct client *client,
                       const struct job_spec *spec, struct error *error)
{
    uint64_t id;
    int64_t age_ms = 0;
    if (submission_find_same(cli->arena, client, spec, &id, &age_ms, error) < 0)
        return -1;
    if (id)
        buffer_append_format(plan,
                             "  Warning   job %" PRIu64 ", submitted %s ago, is the same: this "
                             "would be one more\n",
                             id, output_duration(cli->arena, age_ms - age_ms % 1000));
    return 0;
}

/* NULL with *error. */
static const char *write_plan(const struct cli *cli, struct client *client,
                              const struct job_spec *spec, const struct submit_wish *wanted,
                              const struct api_quote *quote, struct error *error)
{
    struct arena *arena = cli->arena;
    struct buffer plan AUTO_BUFFER, terms AUTO_BUFFER;
    buffer_init(&plan, 64 << 10); /* names of all mounts and secrets */
    buffer_init(&terms, 8192);
    buffer_append_format(&plan, "Plan for \"%.*s\" at %s\n", TEXT_ARGS(spec->name),
                         client_server(client));
    append_work(&plan, arena, spec);
    append_amounts(&plan, arena, spec);
    append_cloud(&terms, cli, spec, quote);
    append_price(&terms, cli, spec, quote);
    append_start(&terms, arena, spec, quote, !wanted->expects_room);
    append_servers(&terms, spec, quote);
    if (quote->warning.size > 0)
        buffer_append_format(&terms, "  Warning   %s\n", output_text(arena, quote->warning));
    if (wanted->command)
        options_name_advice(wanted->command, buffer_text(&terms), &plan);
    else
        buffer_append_text(&plan, buffer_text(&terms));
    if (append_same(&plan, cli, client, spec, error) < 0)
        return NULL;
    return arena_copy_string(arena, buffer_text(&plan));
}

static void note_reading(void *context, const char *what)
{
    output_note(context, "%s", what);
}

static int check_room(const struct cli *cli, const struct submit_wish *wanted,
                      const struct api_quote *quote, struct error *error)
{
    if (!wanted->expects_room || quote->can_start)
        return 0;
    return error_set(error, ERROR_UNAVAILABLE, "it could not start now: %s; nothing was sent",
                     output_text(cli->arena, quote->reason));
}

/* 0 to go ahead; CLI_EXIT_DECLINED when the person said no. */
static int confirm(struct cli *cli, struct client *client, const struct job_spec *spec,
                   const struct submit_wish *wanted, struct error *error)
{
    struct api_quote quote;
    struct text json;
    if (submission_quote(cli->arena, client, spec, &quote, &json, error) < 0 ||
        cli_learn_unit(cli, client, error) < 0)
        return -1;
    const char *plan = write_plan(cli, client, spec, wanted, &quote, error);
    if (!plan)
        return -1;
    if (submission_check_money(spec, &quote, output_unit(cli)->name, error) < 0 ||
        check_room(cli, wanted, &quote, error) < 0) {
        if (!cli->common.quiet)
            output_plan(cli, plan);
        return -1;
    }
    return output_confirm(cli, wanted->is_yes, plan, wanted->question, error);
}

int submit_job(struct cli *cli, struct client *client, struct job_spec *spec,
               const struct submit_wish *wanted, struct submission *out_submission,
               struct error *error)
{
    const struct submission_options options = {.dataset_dir = wanted->dataset_dir,
                                               .resume = wanted->resume,
                                               .is_serving = wanted->is_serving,
                                               .on_note = note_reading,
                                               .context = cli};
    *out_submission = (struct submission){0};
    if (secrets_fill(cli->arena, spec, wanted->secrets->items, wanted->secrets->count, error) < 0 ||
        submission_check(spec, error) < 0)
        return -1;
    const int confirmed = confirm(cli, client, spec, wanted, error);
    if (confirmed != 0)
        return confirmed;
    if (submission_send(cli->arena, client, spec, &options, out_submission, error) < 0)
        return -1;
    output_note(cli, "Submitted job %" PRIu64 ".", out_submission->job);
    return 0;
}
