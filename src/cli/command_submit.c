/* souk job submit: from a job file to a trained model. */
#include "base/units.h"
#include "cli/connect.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/upload.h"
#include "runtime/job_file.h"

#include <inttypes.h>

struct submit_options {
    const char *file;
    const char *dataset_dir;
    bool is_detached;
    bool is_yes;
    bool expects_room;
};

static const struct option submit_options[] = {
    {"file", OPTION_PATH, offsetof(struct submit_options, file), "FILE",
     .help = "The job file (docs/job-file.md); - is standard input.", .is_positional = true,
     .is_required = true},
    {"detach", OPTION_FLAG, offsetof(struct submit_options, is_detached),
     .help = "Return once the job is submitted.", .letter = 'd'},
    {"yes", OPTION_FLAG, offsetof(struct submit_options, is_yes),
     .help = "Do not ask before credits are held.", .letter = 'y'},
    {"expect_room", OPTION_FLAG, offsetof(struct submit_options, expects_room),
     .help = "Refuse, with exit code 7, when it could not start now."},
    {"dataset_dir", OPTION_PATH, offsetof(struct submit_options, dataset_dir), "DIR",
     .help = "Folder with the data set's files, instead of where its package puts them."},
};

static void append_amounts(struct buffer *plan, struct arena *arena, const struct job_spec *spec)
{
    const struct job_resources *resources = &spec->resources;
    char accelerators[JOB_WISH_TEXT_SIZE] = "";
    if (resources->accelerators.count_milli > 0)
        job_accelerators_format(&resources->accelerators, accelerators);
    buffer_append_format(
        plan, "  machines  %s x %s%s cores, %s%s memory%s%s; one parameter server\n",
        output_workers(arena, spec->num_nodes, spec->num_nodes_max),
        output_cores(arena, resources->cpus_milli.value),
        resources->cpus_milli.is_at_least ? "+" : "",
        output_bytes(arena, resources->memory_bytes.value),
        resources->memory_bytes.is_at_least ? "+" : "", accelerators[0] ? ", " : "", accelerators);
}

/* What is held, what it costs where it would run, and the most it can ever cost. */
static void append_price(struct buffer *plan, struct arena *arena, const struct job_spec *spec,
                         const struct api_quote *quote)
{
    const char *run = output_duration(arena, quote->max_run_ms);
    if (quote->placed_micro > 0)
        buffer_append_format(
            plan,
            "  price     %s credits for %s on the machines free now (%s an hour);\n"
            "            likely %s\n",
            output_credits(arena, quote->placed_micro), run,
            output_credits(arena, quote->placed_hourly_micro),
            output_credits(arena, quote->expected_micro));
    else
        buffer_append_format(plan,
                             "  price     %s credits are held for %s of the least it asks for; "
                             "more, up to the most, once its machines are known\n",
                             output_credits(arena, quote->wish_micro), run);
    if (spec->market.max_total_cost_micro > 0)
        buffer_append_format(plan, "  at most   %s credits (max_total_cost); you have %s\n",
                             output_credits(arena, spec->market.max_total_cost_micro),
                             output_credits(arena, quote->available_micro));
    else
        buffer_append_format(plan,
                             "  at most   the %s credits you have: it names no max_total_cost\n",
                             output_credits(arena, quote->available_micro));
}

static void append_start(struct buffer *plan, struct arena *arena, const struct job_spec *spec,
                         const struct api_quote *quote)
{
    char wish[JOB_WISH_TEXT_SIZE];
    buffer_append_format(plan, "  start     %s%s\n", job_start_format(&spec->market.start, wish),
                         spec->market.rush ? ", ahead of a queue for double the first hour" : "");
    if (quote->can_start)
        return;
    buffer_append_format(plan, "            but it has to wait: %s\n",
                         output_text(arena, quote->reason));
    if (quote->nearest.size > 0)
        buffer_append_format(plan, "            nearest: %s\n", output_text(arena, quote->nearest));
    if (quote->expected_start_ms > 0)
        buffer_append_format(
            plan, "            expected to start: %s, if all before it run as long as they may\n",
            output_instant(arena, quote->expected_start_ms));
    if (quote->is_lacking)
        buffer_append_string(plan,
                             "  Warning   too few machines here could ever serve it: it waits "
                             "until others come. \"start: by 2d\" under market in the job "
                             "file ends the wait\n");
}

static const char *write_plan(const struct cli *cli, const struct client *client,
                              const struct job_spec *spec, const struct api_quote *quote)
{
    struct arena *arena = cli->arena;
    struct buffer plan AUTO_BUFFER;
    buffer_init(&plan, 8192);
    buffer_append_format(&plan, "Plan for \"%.*s\" at %s\n", TEXT_ARGS(spec->name),
                         client_server(client));
    buffer_append_format(&plan, "  training  %.*s on %.*s, policy %.*s\n",
                         TEXT_ARGS(spec->train.model), TEXT_ARGS(spec->train.data),
                         TEXT_ARGS(spec->sync.policy));
    append_amounts(&plan, arena, spec);
    append_price(&plan, arena, spec, quote);
    append_start(&plan, arena, spec, quote);
    return arena_copy_string(arena, buffer_text(&plan));
}

static int write_spec(const struct job_spec *spec, struct buffer *json, struct error *error)
{
    buffer_clear(json);
    job_spec_write(spec, json);
    return buffer_check(json, error);
}

static void note_part(void *context, const char *name, uint64_t size_bytes, uint64_t sent_bytes)
{
    const struct cli *cli = context;
    char size[UNITS_TEXT_SIZE], sent[UNITS_TEXT_SIZE];
    if (sent_bytes == 0)
        output_note(cli, "%s: %s, in the market already", name,
                    units_format_bytes((int64_t)size_bytes, size));
    else
        output_note(cli, "%s: %s, sent %s", name, units_format_bytes((int64_t)size_bytes, size),
                    units_format_bytes((int64_t)sent_bytes, sent));
}

/* What the market would refuse anyway, before any data is sent. */
static int check_money(const struct cli *cli, const struct job_spec *spec,
                       const struct api_quote *quote, struct error *error)
{
    struct arena *arena = cli->arena;
    const struct job_market *limits = &spec->market;
    const bool is_placed = quote->placed_micro > 0;
    const int64_t total_micro = is_placed ? quote->placed_micro : quote->wish_micro;
    const int64_t hourly_micro = is_placed ? quote->placed_hourly_micro : quote->wish_hourly_micro;
    if (limits->max_total_cost_micro > 0 && total_micro > limits->max_total_cost_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "it may cost %s credits over its longest run of %s, more than its "
                         "max_total_cost of %s; nothing was sent",
                         output_credits(arena, total_micro),
                         output_duration(arena, quote->max_run_ms),
                         output_credits(arena, limits->max_total_cost_micro));
    if (limits->max_hourly_cost_micro > 0 && hourly_micro > limits->max_hourly_cost_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "it would cost %s credits an hour, more than its max_hourly_cost of %s; "
                         "nothing was sent",
                         output_credits(arena, hourly_micro),
                         output_credits(arena, limits->max_hourly_cost_micro));
    if (total_micro > quote->available_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "it may cost %s credits over its longest run of %s, and you have %s; "
                         "nothing was sent",
                         output_credits(arena, total_micro),
                         output_duration(arena, quote->max_run_ms),
                         output_credits(arena, quote->available_micro));
    return 0;
}

static int check_room(const struct cli *cli, const struct submit_options *wanted,
                      const struct api_quote *quote, struct error *error)
{
    if (!wanted->expects_room || quote->can_start)
        return 0;
    return error_set(error, ERROR_UNAVAILABLE, "it could not start now: %s; nothing was sent",
                     output_text(cli->arena, quote->reason));
}

/* 0 to go ahead; CLI_EXIT_DECLINED when the person said no. */
static int confirm(const struct cli *cli, struct client *client, const struct job_spec *spec,
                   const struct submit_options *wanted, struct buffer *json, struct error *error)
{
    struct api_quote quote = {0};
    struct client_answer answer = {&api_quote_schema, &quote, {0}};
    if (write_spec(spec, json, error) < 0 ||
        client_post(client, cli->arena, "/v1/quotes", buffer_text(json), &answer, error) < 0)
        return -1;
    const char *plan = write_plan(cli, client, spec, &quote);
    if (check_money(cli, spec, &quote, error) < 0 || check_room(cli, wanted, &quote, error) < 0) {
        if (!cli->common.quiet)
            output_plan(cli, plan);
        return -1;
    }
    return output_confirm(cli, wanted->is_yes, plan, "Submit this job?", error);
}

static int run_submit(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct submit_options *wanted = options;
    struct job_spec spec;
    if (job_view_read_file(cli, wanted->file, &spec, error) < 0)
        return -1;
    const bool needs_upload = spec.input_count == 0;
    if (needs_upload && upload_check_data(&spec, wanted->dataset_dir, error) < 0)
        return -1;
    AUTO(client) struct client *client = NULL;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    if (cli_connect(cli, true, &client, error) < 0)
        return -1;
    const int confirmed = confirm(cli, client, &spec, wanted, &json, error);
    if (confirmed != 0)
        return confirmed;
    const struct upload_options upload = {
        .client = client, .folder = wanted->dataset_dir, .on_part = note_part, .context = cli};
    if (needs_upload && upload_data(cli->arena, &upload, &spec, error) < 0)
        return -1;
    struct api_job job = api_job_unknown();
    struct client_answer answer = {&api_job_schema, &job, {0}};
    if (write_spec(&spec, &json, error) < 0 ||
        client_post(client, cli->arena, "/v1/jobs", buffer_text(&json), &answer, error) < 0)
        return -1;
    output_note(cli, "Submitted job %" PRIu64 ".", job.id);
    if (!wanted->is_detached)
        return job_view_follow(cli, client, job.id, 0, error);
    if (cli->common.json)
        output_json(answer.json);
    else
        printf("%" PRIu64 "\n", job.id);
    return 0;
}

const struct command command_job_submit = {
    .name = "job submit",
    .summary = "Submits a job and follows it to its end.",
    .details = "Shows what it may cost and asks first. Its data set is sent to the market unless "
               "the market has it. Ctrl-C ends the watching, not the job. Exit code 1 means that "
               "the job failed, 6 that it costs more than it may or than you have, 7 that it "
               "could not start now (--expect-room), 9 that you said no.",
    .example = "souk job submit examples/fashion-mnist.yaml",
    COMMAND_OPTIONS(submit_options, submit_options),
    .run = run_submit,
};
