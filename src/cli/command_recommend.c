/* souk recommend: which machines for a job, how long it will take and what it will cost. */
#include "cli/connect.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/recommend_view.h"
#include "cli/submit.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

struct recommend_options {
    const char *file, *budget, *dataset_dir;
    int64_t deadline_ms;
    uint64_t workers;
    int rule, wish;
    const char *worker_type, *server_type;
    struct option_list from;
    bool is_explained, has_trial, is_submitted, is_detached, is_yes;
};

static const char *const rules[] = {"auto",      "cost-opt",    "time-opt",
                                    "scala-opt", "scala-opt-m", NULL};
static const char *const wishes[] = {"cheapest", "fastest", "safest", NULL};

static const struct option recommend_options[] = {
    {"file", OPTION_PATH, offsetof(struct recommend_options, file), "FILE",
     .help = "The job file; - is standard input.", .is_positional = true, .is_required = true},
    {"budget", OPTION_TEXT, offsetof(struct recommend_options, budget), "CREDITS",
     .help =
         "What it may cost: 2/h for all machines an hour, 2 for the whole job; $2/h are dollars.",
     .fields = "budget_micro_per_hour budget_micro budget_usd_micro_per_hour budget_usd_micro"},
    {"deadline", OPTION_DURATION, offsetof(struct recommend_options, deadline_ms), "TIME",
     .help = "How long it may take from its start.", .fields = "deadline_s", .minimum = 1000,
     .maximum = INT64_C(31622400000)},
    {"workers", OPTION_U64, offsetof(struct recommend_options, workers), "COUNT",
     .help = "The most workers to take.", .fields = "worker_max", .minimum = 1, .maximum = 256},
    {"wish", OPTION_CHOICE, offsetof(struct recommend_options, wish), "WISH", "cheapest",
     "What to look for within these limits: the cheapest, the fastest, or the one with the least "
     "risk.",
     .choices = wishes},
    {"rule", OPTION_CHOICE, offsetof(struct recommend_options, rule), "RULE", "auto",
     "How: auto learns from past runs; the others are those of the FC2 paper.", .choices = rules},
    {"worker_type", OPTION_TEXT, offsetof(struct recommend_options, worker_type), "TYPE",
     .help = "Workers of this type alone; scala-opt-m needs it."},
    {"server_type", OPTION_TEXT, offsetof(struct recommend_options, server_type), "TYPE",
     .help = "The parameter server's; else the one with the largest bandwidth."},
    {"from", OPTION_LIST, offsetof(struct recommend_options, from), "KIND",
     .help = "Where workers may come from: market, ec2, ec2-spot, function; the market's alone by "
             "default. Those of clouds are weighed by their catalogue's prices.",
     .fields = "kinds"},
    {"explain", OPTION_FLAG, offsetof(struct recommend_options, is_explained),
     .help = "List all clusters of which none is both faster and cheaper, and how the chosen one's "
             "time and cost come about."},
    {"trial", OPTION_FLAG, offsetof(struct recommend_options, has_trial),
     .help = "Run the job for some seconds on one or two cheap machines first, and recommend by "
             "what that shows."},
    {"submit", OPTION_FLAG, offsetof(struct recommend_options, is_submitted),
     .help = "Submit the job so, and compare what was foretold with what happens."},
    {"detach", OPTION_FLAG, offsetof(struct recommend_options, is_detached),
     .help = "With --submit: return once the job is submitted.", .letter = 'd'},
    {"yes", OPTION_FLAG, offsetof(struct recommend_options, is_yes),
     .help = "Do not ask before credits are held.", .letter = 'y'},
    {"dataset_dir", OPTION_PATH, offsetof(struct recommend_options, dataset_dir), "DIR",
     .help = "With --trial or --submit: folder with the data set's files, instead of where its "
             "package puts them."},
};

/* ---- Asking ---------------------------------------------------------------------------------- */

static int write_body(const struct recommend_options *wanted, const struct job_spec *spec,
                      struct buffer *body, struct error *error)
{
    struct recommend_budget budget = {0};
    struct buffer job AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&job, JOB_SPEC_SIZE_MAX);
    if ((wanted->budget && recommend_budget_read(text_of(wanted->budget), &budget, error) < 0) ||
        submission_write(spec, &job, error) < 0)
        return -1;
    json_writer_init(&writer, body);
    json_object_begin(&writer);
    json_key(&writer, "job");
    json_raw(&writer, buffer_text(&job));
    json_field_string(&writer, "rule", rules[wanted->rule]);
    json_field_string(&writer, "wish", wishes[wanted->wish]);
    if (budget.micro_per_hour > 0)
        json_field_i64(&writer,
                       budget.is_dollars ? "budget_usd_micro_per_hour" : "budget_micro_per_hour",
                       budget.micro_per_hour);
    if (budget.micro > 0)
        json_field_i64(&writer, budget.is_dollars ? "budget_usd_micro" : "budget_micro",
                       budget.micro);
    if (wanted->deadline_ms > 0)
        json_field_double(&writer, "deadline_s", (double)wanted->deadline_ms / 1000);
    if (wanted->workers > 0)
        json_field_u64(&writer, "worker_max", wanted->workers);
    if (wanted->worker_type)
        json_field_string(&writer, "worker_type", wanted->worker_type);
    if (wanted->server_type)
        json_field_string(&writer, "server_type", wanted->server_type);
    if (wanted->from.count > 0) {
        json_key(&writer, "kinds");
        json_array_begin(&writer);
        for (size_t i = 0; i < wanted->from.count; i++)
            json_string(&writer, wanted->from.items[i]);
        json_array_end(&writer);
    }
    json_object_end(&writer);
    return buffer_check(body, error);
}

static int ask(struct cli *cli, struct client *client, const struct recommend_options *wanted,
               const struct job_spec *spec, struct api_recommendation *out_answer,
               struct text *out_json, struct error *error)
{
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, (size_t)2 * JOB_SPEC_SIZE_MAX);
    *out_answer = (struct api_recommendation){0};
    struct client_answer answer = {&api_recommendation_schema, out_answer, {0}};
    if (write_body(wanted, spec, &body, error) < 0 ||
        client_post(client, cli->arena, "/v1/recommendations", buffer_text(&body), &answer, error) <
            0)
        return -1;
    *out_json = answer.json;
    return 0;
}

/* ---- A trial --------------------------------------------------------------------------------- */

static int follow_quietly(struct cli *cli, struct client *client, uint64_t job, struct error *error)
{
    const struct progress_options shown = {
        .file = stderr,
        .unit = output_unit(cli)->name,
        .is_terminal = isatty(STDERR_FILENO),
        .has_color = output_has_color(cli, stderr),
        .is_quiet = cli->common.quiet,
    };
    AUTO(progress) struct progress *progress = progress_new(&shown);
    const struct follow_options options = {
        .client = client, .job = job, .on_view = progress_take_view, .view_context = progress};
    struct follow_result result;
    if (job_follow(cli->arena, &options, &result, error) < 0)
        return -1;
    if (result.end != FOLLOW_JOB_ENDED)
        return error_set(error, ERROR_UNAVAILABLE,
                         "the trial goes on as job %" PRIu64 "; souk job cancel ends it", job);
    if (!text_is(result.job.state, "succeeded"))
        return error_set(error, ERROR_UNAVAILABLE, "the trial, job %" PRIu64 ", has %s: %s", job,
                         output_text(cli->arena, result.job.state),
                         output_text(cli->arena, result.job.reason));
    return 0;
}

/* 0; CLI_EXIT_DECLINED when the person said no. */
static int run_trial(struct cli *cli, struct client *client, const struct recommend_options *wanted,
                     const struct job_spec *spec, const struct api_trial *trial,
                     struct error *error)
{
    static const struct option_list no_secrets;
    struct job_spec short_run = *spec;
    if (recommend_apply(cli->arena, &trial->job, &short_run, error) < 0)
        return error_wrap(error, "no trial");
    recommend_make_trial(cli->arena, trial, &short_run);
    const struct submit_wish wish = {.question = "Run this trial?",
                                     .dataset_dir = wanted->dataset_dir,
                                     .secrets = &no_secrets,
                                     .is_yes = wanted->is_yes,
                                     .expects_room = true,
                                     .is_serving = true};
    struct submission result AUTO_SUBMISSION;
    const int submitted = submit_job(cli, client, &short_run, &wish, &result, error);
    return submitted != 0 ? submitted : follow_quietly(cli, client, result.job, error);
}

/* ---- The job itself -------------------------------------------------------------------------- */

static int remember(struct cli *cli, struct client *client, uint64_t job,
                    const struct api_recommendation *told, struct error *error)
{
    const struct api_cluster *chosen = &told->chosen;
    const struct {
        const char *name;
        double time_s;
        int64_t cost_micro;
    } parts[] = {{"low", chosen->time_s.low, chosen->cost_micro.low},
                 {"expected", chosen->time_s.expected, chosen->cost_micro.expected},
                 {"high", chosen->time_s.high, chosen->cost_micro.high}};
    struct buffer body AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&body, 4096);
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_field_text(&writer, "rule", told->rule);
    json_field_bool(&writer, "is_bound", recommend_view_is_bound(told));
    json_key(&writer, "time_ms");
    json_object_begin(&writer);
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        json_field_i64(&writer, parts[i].name, llround(1000 * fmin(parts[i].time_s, 1e12)));
    json_object_end(&writer);
    json_key(&writer, "cost_micro");
    json_object_begin(&writer);
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        json_field_i64(&writer, parts[i].name, parts[i].cost_micro);
    json_object_end(&writer);
    json_object_end(&writer);
    return client_send(client, cli->arena, "PUT",
                       arena_format(cli->arena, "/v1/jobs/%" PRIu64 "/prediction", job),
                       buffer_text(&body), NULL, error);
}

static int submit_chosen(struct cli *cli, struct client *client,
                         const struct recommend_options *wanted, const struct job_spec *spec,
                         const struct api_recommendation *told, struct error *error)
{
    static const struct option_list no_secrets;
    struct job_spec chosen = *spec;
    struct error not_kept;
    if (recommend_check_lenders(cli->arena, &told->chosen, error) < 0 ||
        recommend_apply(cli->arena, &told->chosen.job, &chosen, error) < 0)
        return -1;
    const struct submit_wish wish = {.question = "Submit this job?",
                                     .dataset_dir = wanted->dataset_dir,
                                     .secrets = &no_secrets,
                                     .is_yes = wanted->is_yes,
                                     .is_serving = !wanted->is_detached};
    struct submission result AUTO_SUBMISSION;
    const int submitted = submit_job(cli, client, &chosen, &wish, &result, error);
    if (submitted != 0)
        return submitted;
    /* The job goes on all the same. */
    if (remember(cli, client, result.job, told, &not_kept) < 0)
        output_problem(cli, "what was foretold could not be kept: %s", not_kept.message);
    if (!wanted->is_detached)
        return job_view_follow(cli, client, result.job, 0, NULL, error);
    if (cli->common.json)
        output_json(result.json);
    else
        printf("%" PRIu64 "\n", result.job);
    return 0;
}

static int run_recommend(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct recommend_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_recommendation told;
    struct job_spec spec;
    struct text json;
    if (job_view_read_file(cli, wanted->file, &spec, error) < 0 ||
        cli_connect(cli, true, &client, error) < 0 || cli_learn_unit(cli, client, error) < 0 ||
        ask(cli, client, wanted, &spec, &told, &json, error) < 0)
        return -1;
    if (wanted->has_trial) {
        const int tried = run_trial(cli, client, wanted, &spec, &told.trial, error);
        if (tried != 0)
            return tried;
        if (ask(cli, client, wanted, &spec, &told, &json, error) < 0)
            return -1;
    }
    if (cli->common.json && !wanted->is_submitted)
        output_json(json);
    else if (!cli->common.json)
        recommend_view_print(cli, &told, wanted->is_explained);
    return wanted->is_submitted ? submit_chosen(cli, client, wanted, &spec, &told, error) : 0;
}

const struct command command_recommend = {
    .name = "recommend",
    .summary =
        "Says which machines to take for a job, how long it will take and what it will cost.",
    .details =
        "Looks at the machines on offer now and learns from past runs of the job and of those like "
        "it; --trial makes a short one where there is none. Time and cost are ranges: eight of ten "
        "runs are meant to lie within. Exit code 2 means that the question or the job file is "
        "wrong, 6 that nothing is within the budget or the deadline, 7 that no machine that suits "
        "is free or the market does not answer, 9 that you said no.",
    .example = "souk recommend examples/fashion-mnist.yaml --budget 2/h --wish fastest",
    COMMAND_OPTIONS(recommend_options, recommend_options),
    .run = run_recommend,
};
