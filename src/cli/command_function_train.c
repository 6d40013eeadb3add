/*
 * souk function train: the job of a job file, trained on functions: here, on a function host, or on
 * AWS Lambda.
 */
#include "base/json.h"
#include "cli/function_here.h"
#include "cli/function_job.h"
#include "cli/function_market.h"
#include "cli/function_schedule.h"
#include "cli/function_token.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "client/bring.h"
#include "client/upload.h"
#include "function/driver.h"
#include "function/earlier.h"
#include "function/lesson.h"
#include "market/price.h"
#include "runtime/job_model.h"
#include "source/remote.h"
#include "train/model_card.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVALUATION_BATCH = 256 };

struct train_command {
    const char *file, *output, *dataset_dir, *store, *state_dir, *url, *name, *token_file, *resume;
    const char *agent, *save_agent;
    struct option_list earlier;
    bool is_lambda, keeps_updates;
    uint64_t functions, functions_last, memory_mb, memory_least_mb, memory_last_mb, staleness, span;
    int64_t time_ms, cpu_milli, budget_micro, core_micro, ram_micro, rate_milli, margin_milli;
    int schedule;
};

#define TRAIN(member) offsetof(struct train_command, member)
static const struct option train_options[] = {
    {"file", OPTION_PATH, TRAIN(file), "FILE",
     .help = "The job file (docs/job-file.md); - is standard input.", .is_positional = true,
     .is_required = true},
    {"output", OPTION_PATH, TRAIN(output), "DIR", ".",
     "Folder for model.safetensors and card.json.", .letter = 'o'},
    {"functions", OPTION_U64, TRAIN(functions), "COUNT", "8", "Functions at a time.", .minimum = 1,
     .maximum = DRIVER_FUNCTIONS_MAX},
    {"memory", OPTION_U64, TRAIN(memory_mb), "MB", "256",
     "Memory of a function; it has MB / 1769 of a core.", .minimum = HOST_MEMORY_MB_MIN,
     .maximum = HOST_MEMORY_MB_MAX},
    {"memory_least", OPTION_U64, TRAIN(memory_least_mb), "MB",
     .help = "Planner, agent and auto choose the memory, too, from this to --memory; by default "
             "it is --memory.",
     .minimum = HOST_MEMORY_MB_MIN, .maximum = HOST_MEMORY_MB_MAX},
    {"schedule", OPTION_CHOICE, TRAIN(schedule), "NAME", "auto",
     "How both change from epoch to epoch: constant; decay, evenly to --functions-last and "
     "--memory-last; grow, twice as many in every epoch from an eighth of --functions on; for a "
     "job with target.loss, with --functions at most, planner, which fits what it sees and plans "
     "the rest, or agent, which learned to choose and goes on learning, and needs --budget. auto "
     "is planner, and constant for a job without target.loss.",
     .choices = function_schedule_names},
    {"functions_last", OPTION_U64, TRAIN(functions_last), "COUNT", "1",
     "Functions of the last epoch, with --schedule decay.", .minimum = 1,
     .maximum = DRIVER_FUNCTIONS_MAX},
    {"memory_last", OPTION_U64, TRAIN(memory_last_mb), "MB",
     .help = "Memory in the last epoch, with --schedule decay; by default --memory."},
    {"agent", OPTION_PATH, TRAIN(agent), "FILE",
     .help =
         "The agent of --schedule agent, as souk sim siren and --save-agent keep it; by default "
         "a new one."},
    {"save_agent", OPTION_PATH, TRAIN(save_agent), "FILE",
     .help = "Keeps the agent with what it has learned."},
    {"earlier", OPTION_LIST, TRAIN(earlier), "FILE",
     .help =
         "What an earlier run of this job printed with --json: its epochs are learned from, and "
         "of those of one number of functions the soonest at the target is what planner, agent "
         "and auto are held to."},
    {"margin", OPTION_SHARE, TRAIN(margin_milli), "SHARE", "5%",
     "How much later than by that constant a loss may be reached before it is taken; a share of "
     "its run."},
    {"budget", OPTION_CREDITS, TRAIN(budget_micro), "CREDITS",
     .help = "Never spend more, nor more than market.max_total_cost of the job file; the job then "
             "ends with the best model so far."},
    {"core_price", OPTION_CREDITS, TRAIN(core_micro), "CREDITS",
     .help = "Of a core-hour; by default the market's first price."},
    {"ram_price", OPTION_CREDITS, TRAIN(ram_micro), "CREDITS",
     .help = "Of a GiB-hour of memory; by default the market's first price."},
    {"timeout", OPTION_DURATION, TRAIN(time_ms), "DURATION", "60s", "What a call may take.",
     .minimum = 1000, .maximum = HOST_TIME_MS_MAX},
    {"staleness", OPTION_U64, TRAIN(staleness), "UPDATES",
     .help = "How many updates an update may be late; by default twice the functions."},
    {"span", OPTION_U64, TRAIN(span), "BATCHES",
     .help = "Batches of a call; by default a quarter of a function's share of an epoch."},
    {"rate", OPTION_SHARE, TRAIN(rate_milli), "SHARE", "100%",
     "How much of an update is added to the model, over the number of functions."},
    {"store", OPTION_TEXT, TRAIN(store), "PLACE",
     .help =
         "Where functions and lead meet: s3://bucket/prefix, or the folder of the host; by "
         "default a folder below --state-dir. \"market\": the store of the market that is signed "
         "in to."},
    {"url", OPTION_TEXT, TRAIN(url), "URL",
     .help = "A function host, http://127.0.0.1:9001; by default functions run in this process's "
             "own."},
    {"lambda", OPTION_FLAG, TRAIN(is_lambda),
     .help = "Functions are AWS Lambda's, by AWS_ACCESS_KEY_ID and its kin; --url is another "
             "address of its API."},
    {"name", OPTION_TEXT, TRAIN(name), "NAME", "souk-train", "What the function is called there."},
    {"token_file", OPTION_PATH, TRAIN(token_file), "FILE", "{state}/function/token",
     "File with the host's token."},
    {"cpus", OPTION_CORES, TRAIN(cpu_milli), "CORES",
     .help = "The most a function here has of a core, whatever its memory."},
    {"resume", OPTION_TEXT, TRAIN(resume), "JOB",
     .help = "Go on with this job, whose lead is gone; its name was shown when it began."},
    {"keep_updates", OPTION_FLAG, TRAIN(keeps_updates),
     .help = "Leave every update, and the job itself, in the store."},
    {"state_dir", OPTION_PATH, TRAIN(state_dir), "DIR", "{state}/function/train",
     "Folder for the functions that run here and their store."},
    {"dataset_dir", OPTION_PATH, TRAIN(dataset_dir), "DIR",
     .help = "Folder with the data set's files, instead of where its package puts them."},
};

struct training {
    struct cli *cli;
    const struct train_command *wanted;
    struct job_spec spec;
    struct model_spec model_spec;
    struct train_data *data;
    struct work_job job;
    struct remote_credentials credentials;
    const char *store_place; /* that calls are told of; NULL: the host's own */
    struct object_store *store;
    struct function_market *market; /* NULL: the store is not the market's */
    struct kernel_set *kernels;
    struct model *model; /* measured with */
    struct evaluation_target target;
    struct loop *loop;
    struct function_here *here;
    struct invoker *invoker;
    struct lead *lead;
    struct driver *driver;
    struct function_schedule *schedule;
    double loss_start;
    struct buffer epochs; /* JSON of each */
    int64_t begun_ns;
};

/* ---- What it shows --------------------------------------------------------------------------- */

static void note_reading(void *context, const char *what)
{
    output_note(context, "%s", what);
}

/* Between epochs no call has the old one. */
static void renew_token(struct training *training)
{
    const char *token;
    struct error error;
    if (!training->market)
        return;
    if (function_market_token(training->market, &token, &error) < 0)
        output_note(training->cli, "The functions go on with the token they have: %s",
                    error.message);
    else
        lead_set_token(training->lead, token);
}

static void on_epoch(void *context, const struct driver_report *report)
{
    struct training *training = context;
    const struct function_seen *seen = &report->seen;
    struct json_writer writer;
    struct buffer one AUTO_BUFFER;
    const struct run_epoch epoch = {
        .epoch = report->epoch,
        .is_cut_short = report->is_cut_short,
        .functions = seen->choice.function_count,
        .memory_mb = seen->choice.memory_mb,
        .seconds = seen->total_s,
        .fetch_s = seen->fetch_s,
        .compute_s = seen->compute_s,
        .update_s = seen->update_s,
        .memory_use = seen->memory_use,
        .cpu_use = seen->cpu_use,
        .calls = seen->call_count,
        .failures = seen->failure_count,
        .staleness = report->staleness,
        .test_loss = report->measure.loss,
        .test_accuracy = report->measure.accuracy,
        .cost_micro = seen->cost_micro,
    };
    output_note(training->cli,
                "epoch %" PRIu64 "%s: %u function%s of %u MB, %.1f s, loss %.4f, accuracy %.2f %%, "
                "%" PRIu64 " call%s, %s so far",
                report->epoch + 1, report->is_cut_short ? " (cut short)" : "",
                seen->choice.function_count, seen->choice.function_count == 1 ? "" : "s",
                seen->choice.memory_mb, seen->total_s, report->measure.loss,
                100 * report->measure.accuracy, seen->call_count, seen->call_count == 1 ? "" : "s",
                output_amount(training->cli, report->spent_micro));
    buffer_init(&one, 4096);
    json_writer_init(&writer, &one);
    json_write(&writer, &run_epoch_schema, &epoch);
    if (training->epochs.size)
        buffer_append_byte(&training->epochs, ',');
    buffer_append_text(&training->epochs, buffer_text(&one));
    renew_token(training);
}

static void print_json(const struct training *training, const struct driver_outcome *outcome,
                       double seconds)
{
    struct buffer out AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&out, 8 << 20);
    json_writer_init(&writer, &out);
    json_object_begin(&writer);
    json_field_string(&writer, "job", training->job.name);
    json_field_string(&writer, "end", driver_end_names[outcome->end]);
    json_field_string(&writer, "reason", outcome->reason);
    json_field_string(&writer, "schedule", function_schedule_names[training->wanted->schedule]);
    json_field_string(&writer, "plan", function_schedule_plan(training->schedule));
    json_field_u64(&writer, "epochs_done", outcome->epochs);
    json_field_double(&writer, "test_loss_start", training->loss_start);
    json_field_double(&writer, "test_loss", outcome->best.loss);
    json_field_double(&writer, "test_accuracy", outcome->best.accuracy);
    json_field_u64(&writer, "samples", lead_samples(training->lead));
    json_field_u64(&writer, "updates", lead_version(training->lead));
    json_field_u64(&writer, "calls", outcome->calls);
    json_field_u64(&writer, "failures", outcome->failures);
    json_field_u64(&writer, "throttled", outcome->throttled);
    json_field_u64(&writer, "cold_starts", outcome->cold_starts);
    json_field_i64(&writer, "billed_ms", outcome->billed_ms);
    json_field_i64(&writer, "spent_micro", outcome->spent_micro);
    json_field_double(&writer, "seconds", seconds);
    json_field_string(&writer, "output", training->wanted->output);
    json_key(&writer, "epochs");
    json_array_begin(&writer);
    json_raw(&writer, buffer_text(&training->epochs));
    json_array_end(&writer);
    json_object_end(&writer);
    output_json(buffer_text(&out));
}

/* ---- The model ------------------------------------------------------------------------------- */

static int measure(void *context, const float *parameters, struct driver_measure *out_measure,
                   struct error *error)
{
    struct training *training = context;
    struct evaluation_result result;
    char reached[96];
    memcpy(model_parameters(training->model), parameters,
           sizeof(float) * model_parameter_count(training->model));
    if (evaluation_run(training->model, training->data->test, &result, error) < 0)
        return -1;
    *out_measure = (struct driver_measure){
        .loss = result.loss,
        .accuracy = result.accuracy,
        .is_target = evaluation_reaches(&result, &training->target, reached, sizeof(reached)),
    };
    return 0;
}

static int save_model(const struct training *training, const struct driver_outcome *outcome,
                      double seconds, struct error *error)
{
    const struct job_train *train = &training->spec.train;
    struct arena *arena = training->cli->arena;
    const struct model_card card = {
        .spec = training->model_spec,
        .job_name = arena_copy_string(arena, training->spec.name),
        .data = arena_copy_string(arena, upload_name(train->data)),
        .policy = "hsp",
        .mean = training->data->mean,
        .deviation = training->data->deviation,
        .test_accuracy = outcome->best.accuracy,
        .test_loss = outcome->best.loss,
        .samples = lead_samples(training->lead),
        .steps = lead_samples(training->lead) / train->batch,
        .train_seconds = seconds,
        .workers = (uint32_t)training->wanted->functions,
        .batch = (uint32_t)train->batch,
        .lr = train->optimizer.lr,
        .momentum = train->optimizer.momentum,
        .weight_decay = train->optimizer.weight_decay,
        .seed = train->seed,
        .finished_utc_ms = clock_utc_ms(&clock_system),
    };
    return model_card_export(training->wanted->output, &card, outcome->parameters, error);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int read_job(struct training *training, struct error *error)
{
    const struct train_command *wanted = training->wanted;
    int layer;
    if (job_view_read_file(training->cli, wanted->file, &training->spec, error) < 0)
        return -1;
    if (job_spec_is_command(&training->spec) || job_train_peer(&training->spec.train).size > 0)
        return error_set(error, ERROR_INVALID,
                         "functions train jobs with train: and data that may be sent to them");
    if (train_data_open(training->cli->arena, &training->spec, wanted->dataset_dir, note_reading,
                        training->cli, &training->data, error) < 0 ||
        job_train_model(&training->spec.train, &training->data->shape, &training->model_spec,
                        &layer, error) < 0)
        return -1;
    if (mkdir(wanted->output, 0777) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "--output: make the folder \"%.150s\"",
                               wanted->output);
    training->target = job_train_target(&training->spec.train);
    const struct model_options options = {training->model_spec, EVALUATION_BATCH, false};
    if (kernel_set_open(NULL, &training->kernels, error) < 0)
        return -1;
    return model_open(training->kernels, &options, &training->model, error);
}

static int open_here(struct training *training, const char *folder, struct error *error)
{
    const struct train_command *wanted = training->wanted;
    const struct function_here_options here = {
        .state_dir = arena_format(training->cli->arena, "%s/host", wanted->state_dir),
        .store = training->store_place ? NULL : folder,
        .host = {.loop = training->loop,
                 .memory_mb = (uint32_t)wanted->memory_mb,
                 .time_ms = wanted->time_ms,
                 .concurrency = DRIVER_FUNCTIONS_MAX,
                 .cpu_max_milli = wanted->cpu_milli,
                 .keep_warm_ms = wanted->time_ms,
                 .has_network = training->store_place != NULL,
                 .credentials = &training->credentials,
                 .market_server = training->cli->common.server,
                 .market_fingerprint = training->cli->common.fingerprint,
                 .log_fd = STDERR_FILENO},
    };
    if (function_here_open(&here, &training->here, error) < 0)
        return -1;
    training->invoker = invoker_of_host(training->here->host);
    return 0;
}

/* Where functions run, and where their store is. */
static int open_place(struct training *training, struct error *error)
{
    const struct train_command *wanted = training->wanted;
    struct object_market market = {0};
    const struct text named = wanted->store ? text_of(wanted->store) : (struct text){0};
    const bool is_remote = object_store_is_remote(named);
    const bool is_market = object_store_is_market(named);
    const bool is_here = !wanted->url && !wanted->is_lambda;
    const char *folder = wanted->store
                             ? wanted->store
                             : arena_format(training->cli->arena, "%s/store", wanted->state_dir);
    if (!is_remote && wanted->is_lambda)
        return error_set(error, ERROR_INVALID,
                         "--store: Lambda's functions need s3://..., or market");
    if (!is_remote && !is_here && !wanted->store)
        return error_set(error, ERROR_INVALID,
                         "--store: the folder of the host, which it prints when it starts, "
                         "s3://..., or market");
    if (((is_remote && !is_market) || wanted->is_lambda) &&
        remote_credentials_take_environment(&training->credentials, error) < 0)
        return -1;
    if (is_market && function_market_find(training->cli, &market, error) < 0)
        return error_wrap(error, "--store");
    training->store_place = is_remote ? wanted->store : NULL;
    if (is_here && open_here(training, folder, error) < 0)
        return -1;
    const struct object_store_options store = {
        .place = folder, .credentials = &training->credentials, .market = &market};
    return object_store_open(&store, &training->store, error);
}

static int open_invoker(struct training *training, struct error *error)
{
    const struct train_command *wanted = training->wanted;
    struct invoker_http_options options = {
        .loop = training->loop,
        .url = wanted->url,
        .name = wanted->name,
        .credentials = &training->credentials,
        .pinned_fingerprint = training->cli->common.fingerprint,
        .concurrent_max = DRIVER_FUNCTIONS_MAX,
    };
    if (training->invoker)
        return 0;
    if (!wanted->is_lambda &&
        function_token_read(training->cli->arena, wanted->token_file, &options.token, error) < 0)
        return error_wrap(error, "--token-file");
    return invoker_open_http(&options, &training->invoker, error);
}

static int open_lead(struct training *training, struct error *error)
{
    const struct train_command *wanted = training->wanted;
    char name[WORK_JOB_SIZE];
    const char *token = NULL;
    function_job_name(training->spec.name, name);
    if (function_job_put(training->cli->arena, training->store,
                         wanted->resume ? wanted->resume : name, &training->spec, training->data,
                         wanted->dataset_dir, &training->job, error) < 0)
        return -1;
    if (training->store_place && object_store_is_market(text_of(training->store_place)) &&
        (function_market_open(training->cli, training->job.name, &training->market, error) < 0 ||
         function_market_token(training->market, &token, error) < 0))
        return -1;
    AUTO(lesson) struct lesson *lesson = NULL; /* where the model begins */
    if (lesson_open(training->kernels, &training->job, &lesson, error) < 0)
        return -1;
    const struct lead_options options = {
        .store = training->store,
        .job = &training->job,
        .parameters = lesson_parameters(lesson),
        .parameter_count = lesson_parameter_count(lesson),
        .batch_count = training->job.records / training->spec.train.batch,
        .run = (uint64_t)clock_utc_ms(&clock_system) * LEAD_RUN_STEP,
        .keeps_updates = wanted->keeps_updates,
        .token = token,
    };
    return lead_open(&options, &training->lead, error);
}

static struct bill_price price_of(const struct train_command *wanted)
{
    const struct price_vector cold = price_cold_start();
    return (struct bill_price){
        .core_micro_per_hour = wanted->core_micro ? wanted->core_micro : cold.core_micro,
        .ram_micro_per_hour = wanted->ram_micro ? wanted->ram_micro : cold.ram_micro};
}

/* The command's and the job file's: the smaller of both; 0: there is none. */
static int64_t budget_of(const struct training *training)
{
    const int64_t given = training->wanted->budget_micro;
    const int64_t filed = training->spec.market.max_total_cost_micro;
    return given > 0 && (filed <= 0 || given < filed) ? given : filed;
}

static int open_schedule(struct training *training, struct error *error)
{
    const struct train_command *wanted = training->wanted;
    const struct bill_price price = price_of(wanted);
    const uint64_t memory_last_mb =
        wanted->memory_last_mb ? wanted->memory_last_mb : wanted->memory_mb;
    struct driver_measure start;
    if (wanted->schedule != FUNCTION_SCHEDULE_AGENT && (wanted->agent || wanted->save_agent))
        return error_set(error, ERROR_INVALID, "--agent and --save-agent: with --schedule agent");
    if (measure(training, lead_parameters(training->lead), &start, error) < 0)
        return -1;
    training->loss_start = start.loss;
    const struct function_schedule_options options = {
        .cli = training->cli,
        .kind = (enum function_schedule_kind)wanted->schedule,
        .first = {(uint32_t)wanted->functions, (uint32_t)wanted->memory_mb},
        .last = {(uint32_t)wanted->functions_last, (uint32_t)memory_last_mb},
        .memory_least_mb = (uint32_t)wanted->memory_least_mb,
        .job = training->job.name,
        .epochs = training->spec.train.epochs,
        .seed = training->spec.train.seed,
        .loss_start = start.loss,
        .loss_target = training->target.loss,
        .price = 1e-6 / 3600 *
                 ((double)price.core_micro_per_hour * 1024 / BILL_MB_PER_CORE +
                  (double)price.ram_micro_per_hour),
        .budget_micro = budget_of(training),
        .margin = 1e-3 * (double)wanted->margin_milli,
        .agent_file = wanted->agent,
        .earlier = wanted->earlier,
    };
    return function_schedule_open(&options, &training->schedule, error);
}

static void open_driver(struct training *training)
{
    const struct train_command *wanted = training->wanted;
    const struct driver_options options = {
        .loop = training->loop,
        .lead = training->lead,
        .invoker = training->invoker,
        .store = training->store_place,
        .batch_count = training->job.records / training->spec.train.batch,
        .epochs = training->spec.train.epochs,
        .span_batches = wanted->span,
        .staleness = wanted->staleness,
        .rate = 1e-3 * (double)wanted->rate_milli,
        .seed = training->spec.train.seed,
        .time_ms = wanted->time_ms,
        .price = price_of(wanted),
        .budget_micro = budget_of(training),
        .choose = function_schedule_choose,
        .choose_context = training->schedule,
        .measure = measure,
        .on_epoch = on_epoch,
        .context = training,
    };
    training->driver = driver_new(&options);
}

/* ---- Running --------------------------------------------------------------------------------- */

static void on_signal(void *context)
{
    driver_stop(((struct training *)context)->driver);
}

/* A job that is done leaves nothing; one that may go on says how. */
static void leave_store(struct training *training, const struct driver_outcome *outcome)
{
    const struct train_command *wanted = training->wanted;
    struct error error;
    if (wanted->keeps_updates)
        return;
    const bool is_done = outcome->end == DRIVER_EPOCHS || outcome->end == DRIVER_TARGET;
    if (is_done && lead_clear(training->lead, &error) == 0)
        return;
    const char *store =
        wanted->store ? arena_format(training->cli->arena, " --store %s", wanted->store) : "";
    if (is_done)
        output_note(training->cli, "Not all of the job could be deleted: %s.", error.message);
    else
        output_note(training->cli, "To go on: souk function train %s%s --resume %s", wanted->file,
                    store, training->job.name);
    output_note(training->cli,
                "Its data and models are still in the store; to delete them: souk function forget "
                "%s%s",
                training->job.name, store);
}

static int run_driver(struct training *training, struct error *error)
{
    struct loop_signal *term = NULL, *interrupt = NULL;
    struct driver_outcome outcome = {0};
    output_note(training->cli, "Job %s begins at model %" PRIu64 ".", training->job.name,
                lead_version(training->lead));
    output_note(training->cli, "Schedule %s: %s.",
                function_schedule_names[training->wanted->schedule],
                function_schedule_plan(training->schedule));
    int result = loop_signal_open(training->loop, SIGTERM, on_signal, training, &term, error);
    if (result == 0)
        result = loop_signal_open(training->loop, SIGINT, on_signal, training, &interrupt, error);
    if (result == 0)
        result = driver_run(training->driver, &outcome, error);
    loop_signal_free(term);
    loop_signal_free(interrupt);
    if (result < 0) {
        outcome.end = DRIVER_FAILED;
        leave_store(training, &outcome);
        return -1;
    }
    const double seconds = 1e-9 * (double)(clock_monotonic_ns(&clock_system) - training->begun_ns);
    if (save_model(training, &outcome, seconds, error) < 0)
        return -1;
    if (training->wanted->save_agent &&
        function_schedule_save_agent(training->schedule, training->wanted->save_agent, error) < 0)
        return error_wrap(error, "--save-agent");
    if (training->cli->common.json) {
        print_json(training, &outcome, seconds);
    } else {
        const struct cli *cli = training->cli;
        output_field(cli, "Ended:    ", "%s", outcome.reason);
        output_field(cli, "Test:     ", "loss %.4f, accuracy %.2f %%", outcome.best.loss,
                     100 * outcome.best.accuracy);
        output_field(cli, "Calls:    ", "%" PRIu64 ", %" PRIu64 " cold, %" PRIu64 " failed",
                     outcome.calls, outcome.cold_starts, outcome.failures);
        output_field(cli, "Bill:     ", "%s", output_amount(cli, outcome.spent_micro));
        output_field(cli, "Model:    ", "%s/model.safetensors", training->wanted->output);
    }
    leave_store(training, &outcome);
    return outcome.end == DRIVER_FAILED ? CLI_EXIT_FAILED : 0;
}

/* What runs is ended before what it runs on. */
static void training_done(struct training *training)
{
    driver_free(training->driver);
    function_market_close(training->market);
    function_schedule_free(training->schedule);
    lead_free(training->lead);
    invoker_free(training->invoker);
    function_here_free(training->here);
    object_store_free(training->store);
    model_free(training->model);
    kernel_set_free(training->kernels);
    train_data_free(training->data);
    loop_free(training->loop);
    buffer_done(&training->epochs);
    remote_credentials_wipe(&training->credentials);
}

static int run_train(void *context, const void *options, struct error *error)
{
    const struct train_command *wanted = options;
    __attribute__((cleanup(training_done))) struct training training = {
        .cli = context, .wanted = wanted, .begun_ns = clock_monotonic_ns(&clock_system)};
    buffer_init(&training.epochs, 4 << 20);
    if (loop_open(&clock_system, &training.loop, error) < 0 || read_job(&training, error) < 0 ||
        open_place(&training, error) < 0 || open_invoker(&training, error) < 0 ||
        open_lead(&training, error) < 0 || open_schedule(&training, error) < 0)
        return -1;
    open_driver(&training);
    return run_driver(&training, error);
}

const struct command command_function_train = {
    .name = "function train",
    .summary = "Trains the model of a job file on functions, some for each epoch.",
    .details =
        "Each call takes some batches, steps over them from the newest model on and leaves what "
        "that changed in the store; this program adds each update once and publishes the model. "
        "Calls go on beside each other within an epoch; between epochs their number and size may "
        "change (docs/functions.md). Without --url functions run here, each in a sandbox. "
        "--budget is never passed: what a call may cost at the most is held before it is made; "
        "one that does not hold a single call is refused. "
        "Exit code 1 means that calls failed again and again; the best model so far is kept then, "
        "too.",
    .example = "souk function train examples/fashion-mnist.yaml --functions 8 --budget 0.05",
    COMMAND_OPTIONS(train_options, train_command),
    .run = run_train,
};
