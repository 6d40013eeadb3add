/* souk job: validate, schema, list, show, wait, explain, cancel. */
#include "cli/connect.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/profile_view.h"
#include "cli/table.h"
#include "client/api.h"
#include "client/submission.h"
#include "client/upload.h"
#include "runtime/job_file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct job_options {
    uint64_t id;
    int64_t timeout_ms;
    bool is_yes;
    bool has_profile;
    const char *tensorboard;
};

#define JOB_ID_OPTION                                                                              \
    {                                                                                              \
        "id", OPTION_U64, offsetof(struct job_options, id), "JOB",                                 \
            .help = "The job's number.", .minimum = 1, .maximum = INT64_MAX,                       \
            .is_positional = true, .is_required = true                                             \
    }

static const struct option id_options[] = {JOB_ID_OPTION};

static const char *job_path(const struct cli *cli, uint64_t id, const char *rest)
{
    return arena_format(cli->arena, "/v1/jobs/%" PRIu64 "%s", id, rest);
}

/* ---- validate, schema -------------------------------------------------------------------------
 */

struct validate_options {
    const char *file;
};

static const struct option validate_options[] = {
    {"file", OPTION_PATH, offsetof(struct validate_options, file), "FILE",
     .help = "The job file; - is standard input.", .is_positional = true, .is_required = true},
};

/* More cores make a job faster, more memory does not: nobody is sold what it did not ask for. */
static void note_memory(const struct cli *cli, const struct job_spec *spec)
{
    enum { USUAL_BYTES = 256 << 20 };
    const struct job_amount memory = spec->resources.memory_bytes;
    if (memory.is_at_least && memory.value != USUAL_BYTES && !cli->common.json)
        output_field(cli, "",
                     "resources.memory: at least %s is leased, and billed, as %s each: a worker "
                     "that uses more is ended, so name what it needs",
                     output_bytes(cli->arena, memory.value),
                     output_bytes(cli->arena, memory.value));
}

static int run_validate(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct validate_options *wanted = options;
    struct job_spec spec;
    if (job_view_read_file(cli, wanted->file, &spec, error) < 0 ||
        submission_check_files(&spec, error) < 0)
        return -1;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    job_spec_write(&spec, &json);
    if (buffer_check(&json, error) < 0)
        return -1;
    const bool has_more_servers =
        !job_spec_is_command(&spec) && (spec.sync.servers > 1 || spec.sync.replica);
    const char *name = strcmp(wanted->file, "-") != 0 ? wanted->file : "standard input";
    if (cli->common.json)
        output_json(buffer_text(&json));
    else if (job_spec_is_command(&spec))
        output_field(cli, "", "%s is a good job file: runtime " TEXT_FORMAT " on %s worker%s", name,
                     TEXT_ARGS(spec.runtime),
                     output_workers(cli->arena, spec.num_nodes, spec.num_nodes_max),
                     spec.num_nodes == 1 && spec.num_nodes_max <= 1 ? "" : "s");
    else
        output_field(
            cli, "", "%s is a good job file: %.*s on %s worker%s%s%s, policy %.*s, tick %s", name,
            TEXT_ARGS(spec.train.model),
            output_workers(cli->arena, spec.num_nodes, spec.num_nodes_max),
            spec.num_nodes == 1 && spec.num_nodes_max <= 1 ? "" : "s", has_more_servers ? ", " : "",
            has_more_servers ? job_view_servers(cli->arena, &spec.sync) : "",
            TEXT_ARGS(spec.sync.policy), output_duration(cli->arena, job_spec_tick_ms(&spec)));
    note_memory(cli, &spec);
    return 0;
}

const struct command command_job_validate = {
    .name = "job validate",
    .summary = "Checks a job file without submitting it.",
    .details = "The files and folders that it names are looked at, too. With --json the whole job "
               "is printed, defaults filled in. Needs no market.",
    .example = "souk job validate examples/fashion-mnist.yaml",
    COMMAND_OPTIONS(validate_options, validate_options),
    .run = run_validate,
};

static int run_schema(void *context, const void *options, struct error *error)
{
    (void)context;
    (void)options;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 1 << 20);
    job_spec_write_schema(&json);
    if (buffer_check(&json, error) < 0)
        return -1;
    output_json(buffer_text(&json));
    return 0;
}

const struct command command_job_schema = {
    .name = "job schema",
    .summary = "Prints the job file's JSON Schema (2020-12).",
    .example = "souk job schema > job.schema.json",
    .run = run_schema,
};

/* ---- list -------------------------------------------------------------------------------------
 */

struct list_options {
    int state; /* 0: all */
    uint64_t limit;
};

static const char *const states[] = {"all",       "pending", "starting",  "running", "stopping",
                                     "succeeded", "failed",  "cancelled", NULL};

static const struct option list_options[] = {
    {"state", OPTION_CHOICE, offsetof(struct list_options, state), "STATE", "all",
     "Only jobs in this state.", .choices = states},
    {"limit", OPTION_U64, offsetof(struct list_options, limit), "COUNT", "50",
     "Show at most so many.", .minimum = 1, .maximum = 100000},
};

static int run_list(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct list_options *wanted = options;
    struct arena *arena = cli->arena;
    AUTO(client) struct client *client = NULL;
    struct json_array jobs;
    bool is_done;
    const char *path = wanted->state
                           ? arena_format(arena, "/v1/jobs?state=%s", states[wanted->state])
                           : "/v1/jobs";
    if (cli_connect(cli, true, &client, error) < 0 ||
        cli_list(cli, client, path, &api_job_page_schema, wanted->limit, &jobs, &is_done, error) <
            0)
        return -1;
    if (is_done)
        return 0;
    struct table table;
    table_init(&table, arena,
               (const char *const[]){">ID", "~NAME", "STATE", "/8MODEL", "/9POLICY", ">WORKERS",
                                     ">/6ACCURACY", ">SPENT", "/7CREATED", "~REASON", NULL});
    for (size_t i = 0; i < jobs.count; i++) {
        const struct api_job *job = (const struct api_job *)jobs.items + i;
        TABLE_ROW(&table, output_number(arena, job->id), output_text(arena, job->name),
                  output_text(arena, job->state), output_text(arena, job->model),
                  output_text(arena, job->policy), job_view_workers(arena, job),
                  job_view_accuracy(arena, job), output_credits(arena, job->spent_micro),
                  output_instant(arena, job->created_ms), output_text(arena, job->reason));
    }
    table_show(&table, cli);
    if (jobs.count == 0)
        output_note(cli, wanted->state ? "No job is in this state."
                                       : "No job yet; \"souk job submit FILE\" submits one.");
    return 0;
}

const struct command command_job_list = {
    .name = "job list",
    .summary = "Lists this account's jobs, newest first.",
    .example = "souk job list --state running",
    COMMAND_OPTIONS(list_options, list_options),
    .run = run_list,
};

/* ---- show, wait, explain, cancel --------------------------------------------------------------
 */

static const struct option show_options[] = {
    JOB_ID_OPTION,
    {"profile", OPTION_FLAG, offsetof(struct job_options, has_profile),
     .help = "Show what its run showed instead: each worker's step time, what its time went into, "
             "bytes, CPU and memory, and how it compares with what was foretold."},
};

static int show_profile(struct cli *cli, struct client *client, uint64_t id, struct error *error)
{
    struct api_profile profile = {0};
    bool is_done;
    if (cli_get(cli, client, job_path(cli, id, "/profile"), &api_profile_schema, &profile, &is_done,
                error) < 0)
        return -1;
    if (is_done)
        return 0;
    if (cli_learn_unit(cli, client, error) < 0)
        return -1;
    profile_view_print(cli, &profile);
    return 0;
}

static int run_show(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct job_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_job job = api_job_unknown();
    bool is_done;
    if (cli_connect(cli, true, &client, error) < 0)
        return -1;
    if (wanted->has_profile)
        return show_profile(cli, client, wanted->id, error);
    if (cli_get(cli, client, job_path(cli, wanted->id, ""), &api_job_schema, &job, &is_done,
                error) < 0)
        return -1;
    if (is_done)
        return 0;
    if (cli_learn_unit(cli, client, error) < 0)
        return -1;
    job_view_print(cli, &job);
    if (api_job_is_final(job.state))
        job_view_note_results(cli, client, &job);
    return 0;
}

const struct command command_job_show = {
    .name = "job show",
    .summary = "Shows one job and its leases.",
    .example = "souk job show 7 --profile",
    COMMAND_OPTIONS(show_options, job_options),
    .run = run_show,
};

static const struct option wait_options[] = {
    JOB_ID_OPTION,
    {"timeout", OPTION_DURATION, offsetof(struct job_options, timeout_ms), "DURATION",
     .help = "Stop waiting after this (exit code 7); the job goes on.", .minimum = 1,
     .maximum = INT64_C(31622400000)},
    {"tensorboard", OPTION_PATH, offsetof(struct job_options, tensorboard), "DIR",
     .help =
         "Write its metrics as TensorBoard's event files into DIR/job-JOB, what there was too."},
};

static int run_wait(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct job_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    if (cli_connect(cli, true, &client, error) < 0)
        return -1;
    return job_view_follow(cli, client, wanted->id, wanted->timeout_ms, wanted->tensorboard, error);
}

const struct command command_job_wait = {
    .name = "job wait",
    .summary = "Follows a job to its end.",
    .details = "Exit code 0 only when the job succeeded, 1 when it failed or was cancelled.",
    .example = "souk job wait 7 --timeout 10m",
    COMMAND_OPTIONS(wait_options, job_options),
    .run = run_wait,
};

/* Where an ended job ran, and how that ended. */
static int explain_ended(struct cli *cli, struct client *client, uint64_t id, struct error *error)
{
    struct arena *arena = cli->arena;
    struct api_job job = api_job_unknown();
    struct client_answer answer = {&api_job_schema, &job, {0}};
    if (client_get(client, arena, job_path(cli, id, ""), &answer, error) < 0 ||
        cli_learn_unit(cli, client, error) < 0)
        return -1;
    const bool was_done_to = text_equal(job.state, TEXT("cancelled"));
    output_field(cli, "", "Job %" PRIu64 " has %s%s%s%s", id, was_done_to ? "been " : "",
                 output_text(arena, job.state), job.reason.size ? ": " : "",
                 output_text(arena, job.reason));
    if (job.started_ms && job.ended_ms)
        output_field(cli, "", "It ran for %s and cost %s.",
                     output_duration(arena, job.ended_ms - job.started_ms),
                     output_amount(cli, job.spent_micro));
    if (job.leases.count == 0)
        output_field(cli, "", "It was never placed.");
    const struct api_lease *leases = job.leases.items;
    for (size_t i = 0; i < job.leases.count; i++) {
        const struct api_lease *lease = &leases[i];
        output_field(cli, "  ", "%s with %s was %s: %s%s%s",
                     output_text(arena, lease->machine_name),
                     output_core_count(arena, lease->cores_milli), job_view_role(arena, lease),
                     output_text(arena, lease->outcome.size ? lease->outcome : lease->state),
                     lease->reason.size ? ", " : "", output_text(arena, lease->reason));
    }
    return 0;
}

/* Rows that removed nobody say nothing. */
static void print_wishes(struct cli *cli, const struct api_explain *explain)
{
    const struct api_wish *wishes = explain->wishes.items;
    uint64_t before = explain->machine_count;
    const char *role = "";
    struct table table;
    table_init(&table, cli->arena, (const char *const[]){"ROLE", "~WISH", ">MACHINES LEFT", NULL});
    for (size_t i = 0; i < explain->wishes.count; i++) {
        const char *row_role = output_text(cli->arena, wishes[i].role);
        if (strcmp(role, row_role) != 0)
            before = explain->machine_count;
        role = row_role;
        if (wishes[i].machines_left != before)
            TABLE_ROW(&table, role, output_text(cli->arena, wishes[i].wish),
                      arena_format(cli->arena, "%" PRIu64 " of %" PRIu64, wishes[i].machines_left,
                                   before));
        before = wishes[i].machines_left;
    }
    table_show(&table, cli);
}

static void print_wait(struct cli *cli, const struct api_explain *explain)
{
    if (explain->wishes.count > 0)
        print_wishes(cli, explain);
    if (explain->warning.size > 0)
        output_field(cli, "Warning: ", "%s", output_text(cli->arena, explain->warning));
    if (explain->nearest.size > 0)
        output_field(cli, "Nearest: ", "%s", output_text(cli->arena, explain->nearest));
    if (explain->expected_start_ms > 0)
        output_field(cli, "", "Expected to start: %s, if all before it run as long as they may",
                     output_instant(cli->arena, explain->expected_start_ms));
}

static int run_explain(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct job_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_explain explain = {0};
    bool is_done;
    if (cli_connect(cli, true, &client, error) < 0 ||
        cli_get(cli, client, job_path(cli, wanted->id, "/explain"), &api_explain_schema, &explain,
                &is_done, error) < 0)
        return -1;
    if (is_done)
        return 0;
    if (api_job_is_final(explain.state))
        return explain_ended(cli, client, wanted->id, error);
    output_field(cli, "", "Job %" PRIu64 " is %s%s%s", wanted->id,
                 output_text(cli->arena, explain.state), explain.reason.size ? ": " : "",
                 output_text(cli->arena, explain.reason));
    struct text rest = explain.text, line;
    bool has_more = rest.size > 0;
    while (has_more) {
        has_more = text_cut(rest, '\n', &line, &rest);
        output_field(cli, "", "%s", output_text(cli->arena, line));
    }
    print_wait(cli, &explain);
    return 0;
}

const struct command command_job_explain = {
    .name = "job explain",
    .summary = "Says why a job waits, how it was placed, or how it ended.",
    .example = "souk job explain 7",
    COMMAND_OPTIONS(id_options, job_options),
    .run = run_explain,
};

static const struct option cancel_options[] = {
    JOB_ID_OPTION,
    {"yes", OPTION_FLAG, offsetof(struct job_options, is_yes), .help = "Do not ask.",
     .letter = 'y'},
};

static int run_cancel(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct job_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_job job = api_job_unknown();
    struct client_answer answer = {&api_job_schema, &job, {0}};
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_get(client, cli->arena, job_path(cli, wanted->id, ""), &answer, error) < 0 ||
        cli_learn_unit(cli, client, error) < 0)
        return -1;
    if (api_job_is_final(job.state)) {
        const bool was_done_to = text_equal(job.state, TEXT("cancelled"));
        return error_set(error, ERROR_CONFLICT, "job %" PRIu64 " has %s%.*s already", job.id,
                         was_done_to ? "been " : "", TEXT_ARGS(job.state));
    }
    const char *plan = arena_format(
        cli->arena, "Job %" PRIu64 " \"%s\" is %s; %s are spent, %s held come back%s.\n", job.id,
        output_text(cli->arena, job.name), output_text(cli->arena, job.state),
        output_amount(cli, job.spent_micro), output_credits(cli->arena, job.held_micro),
        job.not_before_ms ? ", but for a tenth of what its first slot costs when that begins in "
                            "less than 6 hours: it is booked"
                          : "");
    const int confirmed = output_confirm(cli, wanted->is_yes, plan, "Cancel it?", error);
    if (confirmed != 0)
        return confirmed;
    if (client_post(client, cli->arena, job_path(cli, wanted->id, "/cancel"), (struct text){0},
                    &answer, error) < 0)
        return -1;
    if (cli->common.json)
        output_json(answer.json);
    else
        printf("Job %" PRIu64 " is %s\n", job.id, output_text(cli->arena, job.state));
    return 0;
}

const struct command command_job_cancel = {
    .name = "job cancel",
    .summary = "Stops a job; what was used is paid, the rest comes back.",
    .details = "Exit code 4 means that the job has ended already, 9 that you said no.",
    .example = "souk job cancel 7 -y",
    COMMAND_OPTIONS(cancel_options, job_options),
    .run = run_cancel,
};
