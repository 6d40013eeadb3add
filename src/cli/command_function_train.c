/*
 * souk function train: the job of a job file, trained on functions: here, on a function host, or on
 * AWS Lambda.
 */
#include "cli/function_training.h"
#include "cli/output.h"

#include <inttypes.h>
#include <signal.h>

/* A million credits. */
#define CREDITS_MAX_MICRO INT64_C(1000000000000)
#define TRAIN(member)     offsetof(struct train_command, member)
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
             "ends with the best model so far.",
     .minimum = 1, .maximum = CREDITS_MAX_MICRO},
    {"core_price", OPTION_CREDITS, TRAIN(core_micro), "CREDITS",
     .help = "Of a core-hour; by default the market's first price.", .minimum = 1,
     .maximum = CREDITS_MAX_MICRO},
    {"ram_price", OPTION_CREDITS, TRAIN(ram_micro), "CREDITS",
     .help = "Of a GiB-hour of memory; by default the market's first price.", .minimum = 1,
     .maximum = CREDITS_MAX_MICRO},
    {"timeout", OPTION_DURATION, TRAIN(time_ms), "DURATION", "60s", "What a call may take.",
     .minimum = 1000, .maximum = HOST_TIME_MS_MAX},
    {"staleness", OPTION_U64, TRAIN(staleness), "UPDATES",
     .help = "How many updates an update may be late; by default twice the functions."},
    {"span", OPTION_U64, TRAIN(span), "BATCHES",
     .help = "Batches of a call; by default a quarter of a function's share of an epoch."},
    {"rate", OPTION_SHARE, TRAIN(rate_milli), "SHARE", "100%",
     "How much of an update is added to the model, over the number of functions.", .minimum = 1,
     .maximum = 1000000},
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

/* A job that did not begin leaves nothing, but for one that had begun before. */
static bool forget_new(struct training *training)
{
    struct error ignored; /* it is told what is left */
    return training->lead && !training->wanted->resume && !training->wanted->keeps_updates &&
           lead_clear(training->lead, &ignored) == 0;
}

static int run_driver(struct training *training, struct error *error)
{
    struct loop_signal *term = NULL, *interrupt = NULL;
    struct driver_outcome outcome = {0};
    output_note(training->cli, "Job %s %s at model %" PRIu64 ".", training->job.name,
                training->wanted->resume ? "goes on" : "begins", lead_version(training->lead));
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
        if (!forget_new(training))
            leave_store(training, &outcome);
        return -1;
    }
    const double seconds = 1e-9 * (double)(clock_monotonic_ns(&clock_system) - training->begun_ns);
    if (function_training_save(training, &outcome, seconds, error) < 0)
        return -1;
    if (training->wanted->save_agent &&
        function_schedule_save_agent(training->schedule, training->wanted->save_agent, error) < 0)
        return error_wrap(error, "--save-agent");
    function_training_print(training, &outcome, seconds);
    leave_store(training, &outcome);
    return outcome.end == DRIVER_FAILED ? CLI_EXIT_FAILED : 0;
}

static int run_train(void *context, const void *options, struct error *error)
{
    __attribute__((cleanup(function_training_done))) struct training training = {
        .cli = context, .wanted = options, .begun_ns = clock_monotonic_ns(&clock_system)};
    buffer_init(&training.epochs, 4 << 20);
    if (function_training_open(&training, error) == 0)
        return run_driver(&training, error);
    forget_new(&training);
    return -1;
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
