/* souk demo: a market, three unequal lenders and one real training job, on this machine. */
#include "base/clock.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/demo_job.h"
#include "cli/demo_market.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "client/api.h"
#include "client/follow.h"
#include "client/upload.h"
#include "runtime/job_file.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct demo_options {
    const char *listen;
    const char *dataset_dir;
    const char *job;
    const char *temporary_dir;
    bool is_kept;
};

static const struct option demo_options[] = {
    {"keep", OPTION_FLAG, offsetof(struct demo_options, is_kept),
     .help = "Leave the market and its page up after the job, until Ctrl-C."},
    {"listen", OPTION_TEXT, offsetof(struct demo_options, listen), "HOST:PORT", "127.0.0.1:0",
     "Where the page is served; port 0 takes a free one."},
    {"job", OPTION_PATH, offsetof(struct demo_options, job), "FILE",
     .help = "Another job file for the three lenders."},
    {"temporary_dir", OPTION_PATH, offsetof(struct demo_options, temporary_dir), "DIR", "/tmp",
     "Where the demo's own folder is made.", .environment = "TMPDIR"},
    {"dataset_dir", OPTION_PATH, offsetof(struct demo_options, dataset_dir), "DIR",
     .help = "Folder with the data set's files, instead of where its package puts them."},
};

/* What one run came to. */
struct demo_result {
    int64_t upload_ms;
    int64_t submitted_ms;
    struct follow_result follow;
    struct api_bill bill;
};

/* What a shell shows for a program ended by Ctrl-C. */
enum { EXIT_INTERRUPTED = 130 };

static int read_job(struct cli *cli, const struct demo_options *wanted, struct job_spec *spec,
                    struct error *error)
{
    if (wanted->job)
        return job_view_read_file(cli, wanted->job, spec, error);
    return job_file_parse(cli->arena, demo_job_text(), "fashion-mnist.yaml", spec, NULL, error);
}

static int submit(struct demo_market *market, const struct demo_options *wanted,
                  struct job_spec *spec, struct demo_result *result, struct error *error)
{
    struct cli *cli = market->cli;
    const int64_t started_ms = clock_utc_ms(&clock_system);
    AUTO(bundle) struct bundle *bundle = bundle_new();
    const struct upload_options upload = {.bundle = bundle, .folder = wanted->dataset_dir};
    if (upload_data(cli->arena, &upload, spec, error) < 0 ||
        bundle_send(bundle, market->borrower, error) < 0)
        return -1;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    job_spec_write(spec, &json);
    if (buffer_check(&json, error) < 0)
        return -1;
    result->submitted_ms = clock_utc_ms(&clock_system);
    result->upload_ms = result->submitted_ms - started_ms;
    result->follow.job = api_job_unknown();
    struct client_answer answer = {&api_job_schema, &result->follow.job, {0}};
    return client_post(market->borrower, cli->arena, "/v1/jobs", buffer_text(&json), &answer,
                       error);
}

static int follow(struct demo_market *market, struct demo_result *result, struct error *error)
{
    struct cli *cli = market->cli;
    const struct progress_options shown = {
        .file = stderr,
        .is_terminal = isatty(STDERR_FILENO),
        .has_color = output_has_color(cli, stderr),
        .is_quiet = cli->common.quiet,
        .clock = &clock_system,
    };
    AUTO(progress) struct progress *progress = progress_new(&shown);
    const struct follow_options options = {.client = market->borrower,
                                           .job = result->follow.job.id,
                                           .on_view = progress_take_view,
                                           .view_context = progress};
    if (job_follow(cli->arena, &options, &result->follow, error) < 0)
        return -1;
    if (result->follow.end != FOLLOW_JOB_ENDED)
        return EXIT_INTERRUPTED;

    const char *path = arena_format(cli->arena, "/v1/jobs/%" PRIu64 "/bill", result->follow.job.id);
    struct client_answer answer = {&api_bill_schema, &result->bill, {0}};
    return client_get(market->borrower, cli->arena, path, &answer, error);
}

static double train_seconds(const struct api_job *job)
{
    return job->first_step_ms ? (double)(job->ended_ms - job->first_step_ms) / 1000.0 : 0.0;
}

/* The parameter server's figures are sums over the workers: shown as its own they would count
 * twice. */
static bool is_worker(const struct api_lease *lease)
{
    return lease && text_equal(lease->role, TEXT("worker"));
}

static const struct api_lease *find_lease(const struct api_job *job,
                                          const struct api_bill_line *line)
{
    const struct api_lease *leases = job->leases.items;
    for (size_t i = 0; i < job->leases.count; i++)
        if (text_equal(leases[i].machine_name, line->machine_name) &&
            text_equal(leases[i].role, line->role))
            return &leases[i];
    return NULL;
}

/* Of the job: leases run side by side, so the longest one's. */
static uint64_t tick_count(const struct api_bill *bill)
{
    const struct api_bill_line *lines = bill->lines.items;
    uint64_t ticks = 0;
    for (size_t i = 0; i < bill->lines.count; i++)
        if (lines[i].ticks > ticks)
            ticks = lines[i].ticks;
    return ticks;
}

static void write_json(struct json_writer *writer, const struct demo_result *result)
{
    const struct api_job *job = &result->follow.job;
    const struct api_bill *bill = &result->bill;
    json_object_begin(writer);
    json_field_text(writer, "state", job->state);
    json_field_double(writer, "test_accuracy", job->test_accuracy);
    json_field_double(writer, "train_seconds", train_seconds(job));
    json_field_i64(writer, "upload_ms", result->upload_ms);
    json_field_i64(writer, "submit_to_first_step_ms", job->first_step_ms - result->submitted_ms);
    json_field_u64(writer, "ticks", tick_count(bill));
    json_key(writer, "lenders");
    json_array_begin(writer);
    const struct api_bill_line *lines = bill->lines.items;
    for (size_t i = 0; i < bill->lines.count; i++) {
        const struct api_lease *lease = find_lease(job, &lines[i]);
        json_object_begin(writer);
        json_field_text(writer, "name", lines[i].machine_name);
        json_field_text(writer, "role", lines[i].role);
        json_field_double(writer, "cpu_share", lease ? (double)lease->cores_milli / 1000.0 : 0.0);
        json_field_u64(writer, "steps", is_worker(lease) ? lease->steps : 0);
        json_field_u64(writer, "commits", is_worker(lease) ? lease->commits : 0);
        json_field_u64(writer, "ticks", lines[i].ticks);
        json_field_i64(writer, "earned_microcredits", lines[i].earned_micro);
        json_object_end(writer);
    }
    json_array_end(writer);
    json_field_i64(writer, "fee_microcredits", bill->fee_micro);
    json_field_i64(writer, "spent_microcredits", bill->spent_micro);
    json_field_i64(writer, "ledger_sum_microcredits", bill->ledger_sum_micro);
    json_object_end(writer);
}

static int print_json(const struct demo_result *result, struct error *error)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 1 << 16);
    struct json_writer writer;
    json_writer_init(&writer, &json);
    write_json(&writer, result);
    if (buffer_check(&json, error) < 0)
        return -1;
    output_json(buffer_text(&json));
    return 0;
}

static void print_lenders(struct cli *cli, const struct demo_result *result)
{
    struct table table;
    static const char *const titles[] = {"~LENDER",  ">CPU",   "ROLE",    ">STEPS",
                                         ">COMMITS", ">TICKS", ">EARNED", NULL};
    table_init(&table, cli->arena, titles);
    const struct api_bill_line *lines = result->bill.lines.items;
    for (size_t i = 0; i < result->bill.lines.count; i++) {
        const struct api_lease *lease = find_lease(&result->follow.job, &lines[i]);
        const int64_t percent = lease ? lease->cores_milli / 10 : 0;
        TABLE_ROW(&table, output_text(cli->arena, lines[i].machine_name),
                  arena_format(cli->arena, "%" PRId64 " %%", percent),
                  output_text(cli->arena, lines[i].role),
                  is_worker(lease) ? output_number(cli->arena, lease->steps) : "",
                  is_worker(lease) ? output_number(cli->arena, lease->commits) : "",
                  output_number(cli->arena, lines[i].ticks),
                  output_credits(cli->arena, lines[i].earned_micro));
    }
    table_show(&table, cli);
}

/* earned + fee = spent, and all accounts together are zero. */
static bool is_balanced(const struct api_bill *bill)
{
    int64_t earned = 0;
    const struct api_bill_line *lines = bill->lines.items;
    for (size_t i = 0; i < bill->lines.count; i++)
        earned += lines[i].earned_micro;
    return earned + bill->fee_micro == bill->spent_micro && bill->ledger_sum_micro == 0;
}

static void print_result(struct cli *cli, const struct demo_result *result)
{
    const struct api_job *job = &result->follow.job;
    const struct api_bill *bill = &result->bill;
    putchar('\n');
    output_field(cli, "",
                 "Test accuracy %.2f %% after %.1f s of training; first step %" PRId64
                 " ms after the submit (data sent in %" PRId64 " ms).",
                 job->test_accuracy * 100.0, train_seconds(job),
                 job->first_step_ms - result->submitted_ms, result->upload_ms);
    putchar('\n');
    print_lenders(cli, result);
    putchar('\n');
    output_field(cli, "",
                 "The borrower paid %s credits of the %s held; the lenders earned %s, the market's "
                 "fee is %s.",
                 output_credits(cli->arena, bill->spent_micro),
                 output_credits(cli->arena, bill->quoted_micro),
                 output_credits(cli->arena, bill->spent_micro - bill->fee_micro),
                 output_credits(cli->arena, bill->fee_micro));
    printf(is_balanced(bill) ? "All accounts together: 0. The books balance.\n"
                             : "The books do NOT balance.\n");
}

static int wait_for_signal(const struct demo_market *market)
{
    struct signalfd_siginfo info;
    return read(market->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? 0 : -1;
}

static int run_job(struct demo_market *market, const struct demo_options *wanted,
                   struct error *error)
{
    struct cli *cli = market->cli;
    struct job_spec spec;
    struct demo_result result = {0};
    if (read_job(cli, wanted, &spec, error) < 0 ||
        upload_check_data(&spec, wanted->dataset_dir, error) < 0 ||
        demo_market_open(market, error) < 0)
        return market->is_interrupted ? EXIT_INTERRUPTED : -1;
    output_note(cli, "The live page, to open within a minute:\n%s\n", market->page_url);
    if (submit(market, wanted, &spec, &result, error) < 0)
        return -1;
    const int followed = follow(market, &result, error);
    if (followed != 0)
        return followed;
    const struct api_job *job = &result.follow.job;
    if (!text_equal(job->state, TEXT("succeeded")))
        return error_set(error, ERROR_UNAVAILABLE, "the job %.*s: %.*s", TEXT_ARGS(job->state),
                         TEXT_ARGS(job->reason));
    if (cli->common.json) {
        if (print_json(&result, error) < 0)
            return -1;
    } else {
        print_result(cli, &result);
    }
    if (!is_balanced(&result.bill))
        return error_set(error, ERROR_CORRUPT, "the books do not balance");
    return 0;
}

static int run_demo(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct demo_options *wanted = options;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);

    struct demo_market market = {
        .cli = cli,
        .program = "/proc/self/exe",
        .listen = wanted->listen,
        .temporary_dir = wanted->temporary_dir,
        .signal_fd = signalfd(-1, &signals, SFD_CLOEXEC),
        .server = DEMO_PROCESS_NONE,
        .lenders = {{"heron", "1", 1000, DEMO_PROCESS_NONE},
                    {"wren", "0.5", 500, DEMO_PROCESS_NONE},
                    {"robin", "0.25", 250, DEMO_PROCESS_NONE}},
    };
    if (market.signal_fd < 0)
        return error_set(error, ERROR_UNAVAILABLE, "cannot watch for signals");
    int result = run_job(&market, wanted, error);
    if (result == 0 && wanted->is_kept) {
        if (output_finish(error) < 0)
            result = -1;
        if (result == 0 && demo_market_open_page(&market, error) == 0)
            output_note(cli, "\nThe market stays up until Ctrl-C:\n%s", market.page_url);
        else
            result = -1;
        if (result == 0 && wait_for_signal(&market) < 0)
            result = error_set(error, ERROR_UNAVAILABLE, "cannot wait for Ctrl-C");
    }
    demo_market_close(&market);
    close(market.signal_fd);
    return result;
}

const struct command command_demo = {
    .name = "demo",
    .summary = "Runs a market, three unequal lenders and one training job on this machine.",
    .details = "Starts `souk serve` and three `souk lend` on loopback, lending 100 %, 50 % and "
               "25 % of a core, and trains LeNet-5 on Fashion-MNIST across them. Everything lies "
               "in a temporary folder and is gone at the end.",
    .example = "souk demo --keep",
    COMMAND_OPTIONS(demo_options, demo_options),
    .run = run_demo,
};
