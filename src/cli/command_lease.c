/* souk machines reclaim, machines report, job extend: changing what runs. */
#include "cli/connect.h"
#include "cli/machine_find.h"
#include "cli/output.h"
#include "client/api.h"

#include <inttypes.h>

/* ---- job extend ------------------------------------------------------------------------------ */

struct extend_options {
    uint64_t id;
    int64_t by_ms;
    bool is_yes;
};

static const struct option extend_options[] = {
    {"id", OPTION_U64, offsetof(struct extend_options, id), "JOB", .help = "The job's number.",
     .minimum = 1, .maximum = INT64_MAX, .is_positional = true, .is_required = true},
    {"by", OPTION_DURATION, offsetof(struct extend_options, by_ms), "TIME",
     .help = "How much longer it may run.", .minimum = 1000, .maximum = INT64_C(31622400000),
     .is_required = true},
    {"yes", OPTION_FLAG, offsetof(struct extend_options, is_yes), .help = "Do not ask.",
     .letter = 'y'},
};

/* What the time that is added may cost, if prices stay as they were quoted; 0: not known. */
static int64_t guess_cost(const struct api_job *job, int64_t by_ms)
{
    const struct api_lease *leases = job->leases.items;
    int64_t run_ms = 0;
    for (size_t i = 0; i < job->leases.count; i++) {
        const int64_t lease_ms =
            leases[i].started_ms > 0 ? leases[i].expires_ms - leases[i].started_ms : 0;
        run_ms = lease_ms > run_ms ? lease_ms : run_ms;
    }
    return run_ms ? (int64_t)((double)job->quoted_micro * (double)by_ms / (double)run_ms) : 0;
}

static int confirm_extend(struct cli *cli, struct client *client,
                          const struct extend_options *wanted, struct error *error)
{
    struct arena *arena = cli->arena;
    struct api_job job = api_job_unknown();
    struct client_answer answer = {&api_job_schema, &job, {0}};
    const char *path = arena_format(arena, "/v1/jobs/%s", output_number(arena, wanted->id));
    if (client_get(client, arena, path, &answer, error) < 0 ||
        cli_learn_unit(cli, client, error) < 0)
        return -1;
    if (api_job_is_final(job.state))
        return error_set(error, ERROR_CONFLICT,
                         "job %" PRIu64 " has ended (%.*s): only one that runs can be extended",
                         job.id, TEXT_ARGS(job.state));
    const int64_t cost_micro = guess_cost(&job, wanted->by_ms);
    const char *more = cost_micro
                           ? arena_format(arena, "about %s more", output_amount(cli, cost_micro))
                           : "what it may cost more";
    const char *plan = arena_format(
        arena,
        "Job %" PRIu64 " \"%s\" would run up to %s longer: %s would be held, beside the %s held "
        "now. What is not used comes back. Whether its lenders' terms and its maxima allow it the "
        "market "
        "says when you agree; if not, nothing changes.\n",
        job.id, output_text(arena, job.name), output_duration(arena, wanted->by_ms), more,
        output_amount(cli, job.held_micro));
    return output_confirm(cli, wanted->is_yes, plan, "Extend it?", error);
}

static int run_extend(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct extend_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_job job = api_job_unknown();
    struct client_answer answer = {&api_job_schema, &job, {0}};
    const char *path =
        arena_format(cli->arena, "/v1/jobs/%s/extend", output_number(cli->arena, wanted->id));
    const char *body = arena_format(cli->arena, "{\"by_ms\":%" PRId64 "}", wanted->by_ms);
    if (cli_connect(cli, true, &client, error) < 0)
        return -1;
    const int confirmed = confirm_extend(cli, client, wanted, error);
    if (confirmed != 0)
        return confirmed;
    if (client_post(client, cli->arena, path, text_of(body), &answer, error) < 0)
        return -1;
    if (cli->common.json)
        output_json(answer.json);
    else
        printf("Job %" PRIu64 " may run %s longer; %s are held, %s quoted in all\n", job.id,
               output_duration(cli->arena, wanted->by_ms), output_amount(cli, job.held_micro),
               output_credits(cli->arena, job.quoted_micro));
    return 0;
}

const struct command command_job_extend = {
    .name = "job extend",
    .summary = "Gives a job that runs more time.",
    .details =
        "Every machine keeps its price and locks those of the time that is added; what it may "
        "cost more is held. It is refused when a lender's terms or the job's maxima do not "
        "allow it.",
    .example = "souk job extend 7 --by 1h",
    COMMAND_OPTIONS(extend_options, extend_options),
    .run = run_extend,
};

/* ---- machines reclaim ------------------------------------------------------------------------ */

struct reclaim_options {
    const char *name;
    bool is_yes;
};

static const struct option reclaim_options[] = {
    {"name", OPTION_TEXT, offsetof(struct reclaim_options, name), "NAME",
     .help = "The machine's name or number.", .is_positional = true, .is_required = true},
    {"yes", OPTION_FLAG, offsetof(struct reclaim_options, is_yes), .help = "Do not ask.",
     .letter = 'y'},
};

static int run_reclaim(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct reclaim_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_machine machine = {0};
    if (cli_connect(cli, true, &client, error) < 0 ||
        machine_find(cli, client, wanted->name, /* is_mine= */ true, &machine, error) < 0)
        return -1;
    const char *plan = arena_format(
        cli->arena,
        "%s of \"%s\" %s leased. Their leases end, what was done is paid, and it counts as "
        "ended by the owner. To lend nothing more, pause the offers too: souk offer pause\n",
        output_core_count(cli->arena, machine.leased_cores_milli), wanted->name,
        machine.leased_cores_milli == 1000 ? "is" : "are");
    const int confirmed = output_confirm(cli, wanted->is_yes, plan, "Take it back?", error);
    if (confirmed != 0)
        return confirmed;
    struct client_answer answer = {0};
    const char *path =
        arena_format(cli->arena, "/v1/machines/%s/reclaim", output_number(cli->arena, machine.id));
    if (client_post(client, cli->arena, path, (struct text){0}, &answer, error) < 0)
        return -1;
    if (cli->common.json)
        output_json(answer.json);
    else
        printf("The leases of \"%s\" are asked to stop\n", wanted->name);
    return 0;
}

const struct command command_machines_reclaim = {
    .name = "machines reclaim",
    .summary = "Takes a machine back: ends all its leases.",
    .details = "Borrowers pay for what was verified and get successors elsewhere.",
    .example = "souk machines reclaim heron",
    COMMAND_OPTIONS(reclaim_options, reclaim_options),
    .run = run_reclaim,
};

/* ---- machines report ------------------------------------------------------------------------- */

struct report_options {
    const char *name;
};

static const struct option report_options[] = {
    {"name", OPTION_TEXT, offsetof(struct report_options, name), "NAME",
     .help = "The machine's name or number.", .is_positional = true, .is_required = true},
};

static int run_report(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct report_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_machine machine = {0};
    bool is_done;
    if (cli_connect(cli, true, &client, error) < 0 ||
        machine_find(cli, client, wanted->name, /* is_mine= */ false, &machine, error) < 0 ||
        cli_post(cli, client,
                 arena_format(cli->arena, "/v1/machines/%" PRIu64 "/reports", machine.id),
                 &api_machine_schema, &machine, &is_done, error) < 0)
        return -1;
    if (!is_done)
        output_note(cli,
                    "The market asks it at once. \"souk machines show %s\" tells what came of it.",
                    wanted->name);
    return 0;
}

const struct command command_machines_report = {
    .name = "machines report",
    .summary = "Says that a machine your job runs on is silent.",
    .details = "The market asks it for a sign of life at once. A machine that gives one is as it "
               "was; one that does not is unreachable, and the job gets a successor.",
    .example = "souk machines report heron",
    COMMAND_OPTIONS(report_options, report_options),
    .run = run_report,
};
