#include "cli/job_view.h"

#include "cli/connect.h"
#include "cli/job_results.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "client/tensorboard.h"
#include "runtime/job_file.h"
#include "runtime/job_model.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *lease_state(struct arena *arena, const struct api_lease *lease)
{
    const bool has_ended = text_is(lease->state, "ended");
    /* Its machine's owner holds it still; it goes on. */
    const bool is_held = text_is(lease->yield, "paused") ||
                         text_is(lease->yield, "paused_remotely") ||
                         text_is(lease->yield, "frozen");
    if (lease->is_unreachable)
        return "unreachable";
    if (is_held && !has_ended)
        return text_is(lease->yield, "frozen") ? "frozen" : "paused";
    return output_text(arena, has_ended && lease->outcome.size ? lease->outcome : lease->state);
}

/* Whether its process ended and said with what. */
static bool has_exit_code(const struct api_lease *lease)
{
    return lease->exit_code > 0 || text_is(lease->outcome, "succeeded");
}

/* "12.3s": of a processor, or of a GPU. */
static const char *used_seconds(struct arena *arena, int64_t used_ms)
{
    return used_ms > 0 ? arena_format(arena, "%.1fs", (double)used_ms / 1000) : "-";
}

static void print_ranks(const struct cli *cli, const struct api_job *job)
{
    struct arena *arena = cli->arena;
    struct table table;
    table_init(&table, arena,
               (const char *const[]){">LEASE", "~MACHINE", ">RANK", "STATE", ">EXIT", ">/8CORES",
                                     ">/9TICKS", ">/5CPU", ">/6GPU", ">PAID", NULL});
    const struct api_lease *leases = job->leases.items;
    for (size_t i = 0; i < job->leases.count; i++)
        TABLE_ROW(&table, output_number(arena, leases[i].id),
                  output_text(arena, leases[i].machine_name), output_number(arena, leases[i].rank),
                  lease_state(arena, &leases[i]),
                  has_exit_code(&leases[i]) ? output_number(arena, leases[i].exit_code) : "-",
                  output_cores(arena, leases[i].cores_milli), output_number(arena, leases[i].ticks),
                  used_seconds(arena, leases[i].cpu_ms), used_seconds(arena, leases[i].gpu_ms),
                  output_credits(arena, leases[i].posted_micro));
    table_show(&table, cli);
}

static const char *time_share(struct arena *arena, const struct api_lease *lease, int64_t part_ms)
{
    const int64_t all_ms = lease->compute_ms + lease->transfer_ms + lease->wait_ms;
    return all_ms > 0 ? arena_format(arena, "%.0f%%", 100.0 * (double)part_ms / (double)all_ms)
                      : "-";
}

static void print_leases(const struct cli *cli, const struct api_job *job)
{
    struct arena *arena = cli->arena;
    struct table table;
    table_init(&table, arena,
               (const char *const[]){">LEASE", "~MACHINE", "ROLE", ">/7RANK", "STATE", ">CORES",
                                     ">STEPS", ">/8COMMITS", ">STEPS/S", ">/6COMPUTES",
                                     ">/6TRANSFERS", ">/6WAITS", "/4CODEC", ">/9TICKS", ">/5CPU",
                                     ">/6GPU", ">PAID", NULL});
    const struct api_lease *leases = job->leases.items;
    for (size_t i = 0; i < job->leases.count; i++) {
        const struct api_lease *lease = &leases[i];
        TABLE_ROW(
            &table, output_number(arena, lease->id), output_text(arena, lease->machine_name),
            lease->is_replica ? "replica" : output_text(arena, lease->role),
            output_number(arena, lease->rank), lease_state(arena, lease),
            output_cores(arena, lease->cores_milli), output_number(arena, lease->steps),
            output_number(arena, lease->commits),
            lease->steps_per_second > 0.0 ? arena_format(arena, "%.1f", lease->steps_per_second)
                                          : "-",
            time_share(arena, lease, lease->compute_ms),
            time_share(arena, lease, lease->transfer_ms), time_share(arena, lease, lease->wait_ms),
            lease->codec.size > 0 ? output_text(arena, lease->codec) : "-",
            output_number(arena, lease->ticks), used_seconds(arena, lease->cpu_ms),
            used_seconds(arena, lease->gpu_ms), output_credits(arena, lease->posted_micro));
    }
    table_show(&table, cli);
}

const char *job_view_role(struct arena *arena, const struct api_lease *lease)
{
    if (lease->is_replica)
        return "the replica";
    if (!text_is(lease->role, "server"))
        return arena_format(arena, "worker %" PRIu64, lease->rank);
    return lease->rank == 0 ? "the parameter server"
                            : arena_format(arena, "parameter server %" PRIu64, lease->rank);
}

bool job_view_has_rank(const struct api_lease *lease, struct text rank)
{
    const struct text server = TEXT("server"), range = TEXT("server-");
    struct error ignored; /* no number: of another rank */
    uint64_t number;
    if (lease->is_replica)
        return text_is(rank, "replica");
    const bool is_server = text_equal(lease->role, server);
    if (is_server && lease->rank == 0)
        return text_equal(rank, server);
    if (is_server && !text_starts_with(rank, range))
        return false;
    if (is_server)
        rank = (struct text){rank.data + range.size, rank.size - range.size};
    return text_parse_u64(rank, &number, &ignored) == 0 && number == lease->rank;
}

const char *job_view_misfortune(struct arena *arena, const struct api_lease *lease)
{
    if (!text_is(lease->state, "ended") || text_is(lease->outcome, "succeeded") ||
        text_is(lease->outcome, "stopped"))
        return NULL;
    return arena_format(arena, "%s on %s %s%s%s", job_view_role(arena, lease),
                        output_text(arena, lease->machine_name), output_text(arena, lease->outcome),
                        lease->reason.size ? ": " : "", output_text(arena, lease->reason));
}

const char *job_view_ending(struct arena *arena, const struct api_job *job)
{
    const struct api_lease *leases = job->leases.items;
    for (size_t i = 0; i < job->leases.count && text_is(job->state, "succeeded"); i++)
        if (text_is(leases[i].role, "server") && leases[i].rank == 0 &&
            text_is(leases[i].outcome, "succeeded") && leases[i].reason.size)
            return output_text(arena, leases[i].reason);
    return NULL;
}

/* Why those ended that did not end well: the table has no room for it. */
static void print_misfortunes(const struct cli *cli, const struct api_job *job)
{
    const struct api_lease *leases = job->leases.items;
    for (size_t i = 0; i < job->leases.count; i++) {
        const char *told = job_view_misfortune(cli->arena, &leases[i]);
        if (told)
            output_field(cli, "", "Lease %" PRIu64 ", %s", leases[i].id, told);
    }
}

const struct api_lease *job_view_first_failed(const struct api_job *job)
{
    const struct api_lease *leases = job->leases.items, *first = NULL;
    for (size_t i = 0; i < job->leases.count; i++) {
        const struct api_lease *lease = &leases[i];
        if (!text_is(lease->outcome, "failed") || lease->exit_code == 0 || lease->exit_code > 255)
            continue;
        if (!first || lease->ended_ms < first->ended_ms ||
            (lease->ended_ms == first->ended_ms && lease->rank < first->rank))
            first = lease;
    }
    return first;
}

int job_view_exit_code(const struct api_job *job)
{
    if (text_is(job->state, "succeeded"))
        return 0;
    const struct api_lease *first = job_view_first_failed(job);
    return first ? (int)first->exit_code : CLI_EXIT_FAILED;
}

int job_view_read_file(const struct cli *cli, const char *path, struct job_spec *out_spec,
                       struct error *error)
{
    struct buffer more AUTO_BUFFER;
    buffer_init(&more, 1 << 20);
    if (job_file_read(cli->arena, path, out_spec, &more, error) == 0)
        return 0;
    if (more.size == 0)
        return -1;
    size_t count = 1;
    for (size_t i = 0; i < more.size; i++)
        count += more.data[i] == '\n';
    fprintf(stderr, "%s\n%s", error->message, buffer_string(&more));
    return error_set(error, ERROR_INVALID, "%zu mistakes in \"%.100s\"", count,
                     strcmp(path, "-") != 0 ? path : "standard input");
}

const char *job_view_workers(struct arena *arena, const struct api_job *job)
{
    const char *wanted = output_workers(arena, job->num_nodes, job->num_nodes_max);
    const bool is_elastic = job->num_nodes_max > job->num_nodes;
    const bool runs = text_equal(job->state, TEXT("running"));
    if (!runs || job->worker_count == 0 || (!is_elastic && job->worker_count == job->num_nodes))
        return wanted;
    if (job->workers_wanted > 0)
        return arena_format(arena, "%" PRIu64 " of %" PRIu64 " wanted (%" PRIu64 " to %" PRIu64 ")",
                            job->worker_count, job->workers_wanted, job->num_nodes,
                            job->num_nodes_max);
    return arena_format(arena, "%" PRIu64 " of %s", job->worker_count, wanted);
}

const char *job_view_servers(struct arena *arena, const struct job_sync *sync)
{
    const char *replica = sync->replica ? " and a replica" : "";
    return sync->servers > 1
               ? arena_format(arena, "%" PRIu64 " parameter servers%s", sync->servers, replica)
               : arena_format(arena, "one parameter server%s", replica);
}

/* ", 3 parameter servers"; nothing of a job that has one, as most. */
static const char *servers_of(const struct cli *cli, const struct api_job *job)
{
    struct job_spec spec;
    struct error error; /* of another version of this program: not known */
    if (job->spec.size == 0 || job_spec_read(cli->arena, job->spec, &spec, &error) < 0 ||
        (spec.sync.servers <= 1 && !spec.sync.replica))
        return "";
    return arena_format(cli->arena, ", %s", job_view_servers(cli->arena, &spec.sync));
}

static bool is_spare(const struct cli *cli, const struct api_job *job)
{
    struct job_spec spec;
    struct error error; /* of another version of this program, or not in a list: not known */
    return job->spec.size > 0 && job_spec_read(cli->arena, job->spec, &spec, &error) == 0 &&
           spec.market.spare;
}

/* What it has cost, and the most it can. */
static void print_money(const struct cli *cli, const struct api_job *job)
{
    struct arena *arena = cli->arena;
    if (is_spare(cli, job)) {
        output_field(cli,
                     "Price:    ", "nothing: spare time, until somebody pays for the machines");
        return;
    }
    if (text_equal(job->state, TEXT("pending")))
        output_field(cli, "Held:     ", "%s, for the least it asks for",
                     output_amount(cli, job->held_micro));
    else
        output_field(cli, "Spent:    ", "%s, %s held of %s quoted",
                     output_amount(cli, job->spent_micro), output_credits(arena, job->held_micro),
                     output_credits(arena, job->quoted_micro));
    if (api_job_is_final(job->state))
        return;
    if (job->max_total_micro > 0)
        output_field(cli, "At most:  ", "%s (max_total_cost)",
                     output_amount(cli, job->max_total_micro));
    else
        output_field(cli, "At most:  ", "what the account has; it names no max_total_cost");
}

int64_t job_view_ends_by_ms(const struct api_job *job)
{
    const struct api_lease *leases = job->leases.items;
    int64_t last_ms = 0;
    for (size_t i = 0; i < job->leases.count; i++)
        if (!text_equal(leases[i].state, TEXT("ended")) && leases[i].expires_ms > last_ms)
            last_ms = leases[i].expires_ms;
    return last_ms;
}

/* "; the target is 0.01", or nothing. */
static const char *target_text(struct arena *arena, double target, const char *unit)
{
    return target > 0 ? arena_format(arena, "; the target is %.6g%s", target, unit) : "";
}

/* What the measured figures are of: classes are told rightly or not, numbers are told closely. */
static void print_measures(const struct cli *cli, const struct api_job *job)
{
    struct arena *arena = cli->arena;
    struct job_spec spec;
    struct error ignored;
    enum dataset_target told = DATASET_CLASS;
    struct evaluation_target target = {0};
    if (job->spec.size && job_spec_read(arena, job->spec, &spec, &ignored) == 0) {
        told = job_train_told(&spec.train);
        target = job_train_target(&spec.train);
    }
    if (isfinite(job->loss))
        output_field(cli, "Loss:     ", "%.4f%s", job->loss, target_text(arena, target.loss, ""));
    if (isfinite(job->loss) && told == DATASET_STEPS)
        output_field(cli, "Perplexity:", " %.3f%s", exp(job->loss),
                     target_text(arena, target.perplexity, ""));
    if (isfinite(job->loss) && told == DATASET_VALUES)
        output_field(cli, "Error:    ", "%.6g, the root of the mean square%s",
                     sqrt(job->loss) * (target.unit > 0 ? target.unit : 1),
                     target_text(arena, target.error, ""));
    if (isfinite(job->test_accuracy) && told == DATASET_VALUES)
        output_field(cli, "R^2:      ", "%.4f%s", job->test_accuracy,
                     target_text(arena, target.accuracy, ""));
    else if (isfinite(job->test_accuracy))
        output_field(cli, "Accuracy: ", "%.2f %%%s", 100.0 * job->test_accuracy,
                     target_text(arena, 100.0 * target.accuracy, " %"));
}

const char *job_view_accuracy(struct arena *arena, const struct api_job *job)
{
    const bool is_known =
        job->test_accuracy > 0.0 || job->test_accuracy < 0.0; /* in a list 0: not */
    if (!is_known)
        return "-";
    return text_is(job->predict, "number")
               ? arena_format(arena, "R^2 %.4f", job->test_accuracy)
               : arena_format(arena, "%.2f %%", 100.0 * job->test_accuracy);
}

const char *job_view_pushes(struct arena *arena, const struct api_job *job)
{
    uint64_t clipped = 0, refused = 0;
    const struct api_lease *leases = job->leases.items;
    for (size_t i = 0; i < job->leases.count; i++) {
        clipped += leases[i].clipped;
        refused += leases[i].refused;
    }
    const struct {
        uint64_t count;
        const char *what;
    } counts[] = {
        {clipped, "too long and shortened"},
        {refused, "refused as garbage"},
        {job->checks, "made again by others to check them"},
        {job->checks_undecided, "of these undecided"},
    };
    const char *told = NULL;
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        if (counts[i].count > 0)
            told = arena_format(arena, "%s%s%" PRIu64 " %s", told ? told : "", told ? ", " : "",
                                counts[i].count, counts[i].what);
    return told;
}

static bool is_framework(const struct api_job *job)
{
    return job->runtime.size > 0 && !text_is(job->runtime, "command");
}

void job_view_print(const struct cli *cli, const struct api_job *job)
{
    struct arena *arena = cli->arena;
    output_field(cli, "Job:      ", "%" PRIu64 " \"%s\"", job->id, output_text(arena, job->name));
    output_field(cli, "State:    ", "%s%s%s", output_text(arena, job->state),
                 job->reason.size ? ": " : "", output_text(arena, job->reason));
    const char *workers = arena_format(arena, "%s worker%s", job_view_workers(arena, job),
                                       job->num_nodes == 1 && job->num_nodes_max <= 1 ? "" : "s");
    if (job->model.size > 0)
        output_field(cli, "Training: ", "%s with %s on %s%s", output_text(arena, job->model),
                     output_text(arena, job->policy), workers, servers_of(cli, job));
    else
        output_field(cli, "Runs:     ", "a %s of your own on %s",
                     is_framework(job)
                         ? arena_format(arena, "%s program", output_text(arena, job->runtime))
                         : "command",
                     workers);
    if (job->policy_reason.size > 0)
        output_field(cli, "Policy:   ", "%s", output_text(arena, job->policy_reason));
    output_field(cli, "Created:  ", "%s", output_instant(arena, job->created_ms));
    if (job->started_ms && job->ended_ms)
        output_field(cli, "Ran:      ", "%s",
                     output_duration(arena, job->ended_ms - job->started_ms));
    else if (job->started_ms)
        output_field(cli, "Started:  ", "%s", output_instant(arena, job->started_ms));
    if (job->started_ms && !job->ended_ms && job_view_ends_by_ms(job))
        output_field(cli, "Ends by:  ", "%s", output_instant(arena, job_view_ends_by_ms(job)));
    if (job_view_ending(arena, job))
        output_field(cli, "Ended:    ", "%s", job_view_ending(arena, job));
    if (job->not_before_ms)
        output_field(cli, "Booked:   ", "the slot from %s on",
                     output_instant(arena, job->not_before_ms));
    if (job->first_step_ms)
        output_field(cli, "Waited:   ", "%s until the first step",
                     output_duration(arena, job->first_step_ms - job->created_ms));
    print_measures(cli, job);
    const char *pushes = job_view_pushes(arena, job);
    if (pushes)
        output_field(cli, "Pushes:   ", "%s", pushes);
    print_money(cli, job);
    if (job->leases.count && job->model.size > 0)
        print_leases(cli, job);
    else if (job->leases.count)
        print_ranks(cli, job);
    print_misfortunes(cli, job);
}

int job_view_print_bill(const struct cli *cli, struct client *client, uint64_t job,
                        struct error *error)
{
    struct arena *arena = cli->arena;
    struct api_bill bill = {0};
    struct client_answer answer = {&api_bill_schema, &bill, {0}};
    if (client_get(client, arena, arena_format(arena, "/v1/jobs/%" PRIu64 "/bill", job), &answer,
                   error) < 0)
        return -1;
    struct table table;
    table_init(&table, arena,
               (const char *const[]){"~BILL", "ROLE", ">/9TICKS", ">TIME", ">LENDER GOT", ">FEE",
                                     ">PAID", NULL});
    const struct api_bill_line *lines = bill.lines.items;
    for (size_t i = 0; i < bill.lines.count; i++)
        TABLE_ROW(&table, output_text(arena, lines[i].machine_name),
                  lines[i].is_replica ? "replica" : output_text(arena, lines[i].role),
                  output_number(arena, lines[i].ticks), output_duration(arena, lines[i].billed_ms),
                  output_credits(arena, lines[i].earned_micro),
                  output_credits(arena, lines[i].fee_micro),
                  output_credits(arena, lines[i].posted_micro));
    TABLE_ROW(&table, "total", "", output_number(arena, bill.ticks), "", "",
              output_credits(arena, bill.fee_micro), output_credits(arena, bill.spent_micro));
    table_show(&table, cli);
    printf("%s\n", bill.ledger_sum_micro == 0 ? "The market's books balance."
                                              : "The market's books do NOT balance.");
    return 0;
}

void job_view_note_results(const struct cli *cli, struct client *client, const struct api_job *job)
{
    struct json_array artifacts;
    struct text json;
    struct error error;
    if (job_results_list(cli, client, job->id, &artifacts, &json, &error) < 0) {
        output_note(cli, "What it left is not known now (%s): souk job fetch %" PRIu64,
                    error.message, job->id);
        return;
    }
    const char *count = job_results_count(cli->arena, &artifacts);
    if (count)
        output_note(cli, "The %s (%s): souk job fetch %" PRIu64,
                    job->model.size > 0 ? "model" : "results", count, job->id);
    job_results_note_left_out(cli, client, job->id, &artifacts);
}

static int finish(struct cli *cli, struct client *client, const struct follow_result *result,
                  struct error *error)
{
    const bool is_success = text_equal(result->job.state, TEXT("succeeded"));
    if (cli->common.json) {
        output_json(result->json);
        return is_success ? 0 : CLI_EXIT_FAILED;
    }
    job_view_print(cli, &result->job);
    if (job_view_print_bill(cli, client, result->job.id, error) < 0)
        return -1;
    const struct api_lease *failed = is_success ? NULL : job_view_first_failed(&result->job);
    if (failed)
        job_results_note_tail(cli, client, result->job.id, failed);
    job_view_note_results(cli, client, &result->job);
    if (is_success && result->job.model.size == 0)
        output_note(cli, "What it printed: souk job logs %" PRIu64 " --rank all", result->job.id);
    return is_success ? 0 : CLI_EXIT_FAILED;
}

static void take_metric(void *context, const struct api_event *event)
{
    tensorboard_take(context, event);
}

int job_view_follow(struct cli *cli, struct client *client, uint64_t job, int64_t timeout_ms,
                    const char *tensorboard, struct error *error)
{
    AUTO(tensorboard) struct tensorboard *board = NULL;
    if (tensorboard && tensorboard_open(client, tensorboard, job, &board, error) < 0)
        return -1;
    if (cli_learn_unit(cli, client, error) < 0)
        return -1;
    const struct progress_options shown = {
        .file = stderr,
        .unit = output_unit(cli)->name,
        .is_terminal = isatty(STDERR_FILENO),
        .has_color = output_has_color(cli, stderr),
        .is_quiet = cli->common.quiet,
    };
    AUTO(progress) struct progress *progress = progress_new(&shown);
    const struct follow_options options = {
        .client = client,
        .job = job,
        .on_view = progress_take_view,
        .view_context = progress,
        .timeout_ms = timeout_ms,
        .on_metric = board ? take_metric : NULL,
        .context = board,
    };
    struct follow_result result;
    if (job_follow(cli->arena, &options, &result, error) < 0)
        return -1;
    if (board && tensorboard_finish(board, error) < 0)
        return -1;
    if (board)
        output_note(cli, "Its metrics: tensorboard --logdir %s", tensorboard);
    switch (result.end) {
    case FOLLOW_JOB_ENDED:
        return finish(cli, client, &result, error);
    case FOLLOW_INTERRUPTED:
        output_note(cli,
                    "The job goes on. See it: souk job wait %" PRIu64
                    "; end it: souk job cancel %" PRIu64,
                    job, job);
        return 128 + SIGINT;
    case FOLLOW_TIMED_OUT:
        return error_set(error, ERROR_UNAVAILABLE,
                         "job %" PRIu64 " is still %s after %s; it goes on", job, result.view.state,
                         output_duration(cli->arena, timeout_ms));
    }
    return -1;
}
