#include "cli/function_training.h"

#include "cli/function_job.h"
#include "cli/function_token.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "client/upload.h"
#include "market/price.h"
#include "train/model_card.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVALUATION_BATCH = 256 };

/* ---- The model ------------------------------------------------------------------------------- */

int function_training_measure(void *context, const float *parameters,
                              struct driver_measure *out_measure, struct error *error)
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

int function_training_save(const struct training *training, const struct driver_outcome *outcome,
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

static void note_reading(void *context, const char *what)
{
    output_note(context, "%s", what);
}

static int read_job(struct training *training, struct error *error)
{
    const struct train_command *wanted = training->wanted;
    int layer;
    if (job_view_read_file(training->cli, wanted->file, &training->spec, error) < 0)
        return -1;
    if (job_spec_is_command(&training->spec) || job_train_peer(&training->spec.train).size > 0)
        return error_set(
            error, ERROR_INVALID,
            "file: functions train jobs that have train:, and data that may be sent to "
            "them");
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

/* A name that is not there is a slip, not a new job. */
static int check_resumed(const struct training *training, struct error *error)
{
    struct error ignored;
    char key[OBJECT_KEY_SIZE];
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, (size_t)2 * WORK_JSON_MAX);
    if (work_check_job_name(training->wanted->resume, error) < 0)
        return error_wrap(error, "--resume");
    work_job_key(training->wanted->resume, key);
    if (object_store_read(training->store, key, &bytes, &ignored) == 0 ||
        ignored.code != ERROR_NOT_FOUND)
        return 0; /* whatever else is wrong is told where it is read */
    return error_set(error, ERROR_NOT_FOUND, "--resume: there is no job \"%s\" in the store",
                     training->wanted->resume);
}

static int open_lead(struct training *training, struct error *error)
{
    const struct train_command *wanted = training->wanted;
    char name[WORK_JOB_SIZE];
    const char *token = NULL;
    function_job_name(training->spec.name, name);
    if (wanted->resume && check_resumed(training, error) < 0)
        return -1;
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
    if (function_training_measure(training, lead_parameters(training->lead), &start, error) < 0)
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
        .measure = function_training_measure,
        .on_epoch = function_training_on_epoch,
        .context = training,
    };
    training->driver = driver_new(&options);
}

int function_training_open(struct training *training, struct error *error)
{
    if (loop_open(&clock_system, &training->loop, error) < 0 || read_job(training, error) < 0 ||
        open_place(training, error) < 0 || open_invoker(training, error) < 0 ||
        open_lead(training, error) < 0 || open_schedule(training, error) < 0)
        return -1;
    open_driver(training);
    return 0;
}

void function_training_done(struct training *training)
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
