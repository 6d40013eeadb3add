/*
 * souk train: the job of a job file, trained here, in one process and without a market.
 */
#include "base/file.h"
#include "base/json.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/train_data.h"
#include "client/upload.h"
#include "runtime/job_model.h"
#include "source/place.h"
#include "train/local_run.h"
#include "train/model_card.h"
#include "train/tfevents.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DRAW_MS = 100 };

struct train_options {
    const char *file, *output, *resume, *dataset_dir, *tensorboard;
    int64_t checkpoint_ms;
    uint64_t measure_steps;
};

#define TRAIN(member) offsetof(struct train_options, member)
static const struct option train_options[] = {
    {"file", OPTION_PATH, TRAIN(file), "FILE",
     .help = "The job file (docs/job-file.md); - is standard input.", .is_positional = true,
     .is_required = true},
    {"output", OPTION_PATH, TRAIN(output), "DIR", ".",
     "Folder for model.safetensors, card.json and checkpoint.", .letter = 'o'},
    {"resume", OPTION_PATH, TRAIN(resume), "FILE",
     .help = "Go on exactly where this checkpoint of the same job stood."},
    {"tensorboard", OPTION_PATH, TRAIN(tensorboard), "DIR",
     .help = "Write metrics as TensorBoard's event files into DIR/NAME."},
    {"checkpoint_every", OPTION_DURATION, TRAIN(checkpoint_ms), "DURATION", "30s",
     "Between two checkpoints.", .minimum = 100, .maximum = 86400000},
    {"measure_every", OPTION_U64, TRAIN(measure_steps), "STEPS",
     .help = "Steps between two measurements on the test data; by default an epoch, or a tenth of "
             "the run.",
     .minimum = 1, .maximum = INT64_MAX},
    {"dataset_dir", OPTION_PATH, TRAIN(dataset_dir), "DIR",
     .help = "Folder with the data set's files, instead of where its package puts them."},
};

struct training {
    struct cli *cli;
    const struct train_options *options;
    struct job_spec spec;
    struct model_spec model;
    struct train_data *data;
    struct local_run *run;
    struct progress *progress;
    struct tfevents *events;
    struct progress_view view;
    char checkpoint[PATH_MAX];
    int64_t saved_ns;
};

static volatile sig_atomic_t is_interrupted;

static void on_signal(int number)
{
    (void)number;
    is_interrupted = 1;
}

/* ---- what it shows ----------------------------------------------------------------------------
 */

static void note_reading(void *context, const char *what)
{
    output_note(context, "%s", what);
}

static void view_update(struct training *training)
{
    const struct local_run_status *status = local_run_status(training->run);
    struct progress_view *view = &training->view;
    view->elapsed_ms = status->elapsed_ms;
    view->done = status->epochs / (double)training->spec.train.epochs;
    view->loss = status->loss;
    if (status->measurements > 0)
        view->test_accuracy = status->test.accuracy;
    view->lenders[0].steps = status->steps;
    view->lenders[0].samples = status->samples;
    view->lenders[0].steps_per_second = status->steps_per_second;
}

static void view_init(struct training *training)
{
    struct progress_view *view = &training->view;
    const struct job_train *train = &training->spec.train;
    *view = (struct progress_view){
        .state = "running",
        .loss = (double)NAN,
        .test_accuracy = (double)NAN,
        .target_accuracy = train->target.accuracy,
        .target_loss = train->target.loss,
        .is_number = training->model.loss == LOSS_MSE,
        .is_local = true,
        .lenders = {{.name = "here"}},
        .lender_count = 1,
    };
    snprintf(view->name, sizeof(view->name), TEXT_FORMAT, TEXT_ARGS(training->spec.name));
    const struct progress_options shown = {
        .file = stderr,
        .is_terminal = isatty(STDERR_FILENO),
        .has_color = output_has_color(training->cli, stderr),
        .is_quiet = training->cli->common.quiet,
    };
    training->progress = progress_new(&shown);
}

static int metrics_write(struct training *training, enum local_run_event event, struct error *error)
{
    const struct local_run_status *status = local_run_status(training->run);
    if (!training->events)
        return 0;
    const bool is_measured = event == LOCAL_RUN_MEASURED;
    const double unknown = (double)NAN;
    const struct tfevents_scalar scalars[] = {
        {"train/loss", status->loss},
        {"train/steps_per_second",
         status->steps_per_second > 0 ? status->steps_per_second : unknown},
        {"test/loss", is_measured ? status->test.loss : unknown},
        {training->view.is_number ? "test/r2" : "test/accuracy",
         is_measured ? status->test.accuracy : unknown},
    };
    return tfevents_write(training->events, clock_utc_ms(&clock_system), status->samples, scalars,
                          sizeof(scalars) / sizeof(*scalars), error);
}

/* ---- files ------------------------------------------------------------------------------------
 */

static int path_in(const struct training *training, const char *name, char out[PATH_MAX],
                   struct error *error)
{
    if (snprintf(out, PATH_MAX, "%s/%s", training->options->output, name) >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "--output: the path is too long");
    return 0;
}

static int save_columns(const struct training *training, struct error *error)
{
    char path[PATH_MAX];
    if (!training->data->has_parts)
        return 0;
    const struct text part = buffer_text(&training->data->parts.columns);
    if (path_in(training, "columns.json", path, error) < 0)
        return -1;
    return file_replace(path, &part, 1, 0644, error);
}

static int save_model(const struct training *training, struct error *error)
{
    const struct local_run_status *status = local_run_status(training->run);
    const struct job_train *train = &training->spec.train;
    struct arena *arena = training->cli->arena;
    const struct model_card card = {
        .spec = training->model,
        .job_name = arena_copy_string(arena, training->spec.name),
        .data = arena_copy_string(arena, upload_name(train->data)),
        .policy = "local",
        .mean = training->data->mean,
        .deviation = training->data->deviation,
        .test_accuracy = status->test.accuracy,
        .test_loss = status->test.loss,
        .samples = status->samples,
        .steps = status->steps,
        .train_seconds = (double)status->elapsed_ms / 1000,
        .workers = 1,
        .batch = (uint32_t)train->batch,
        .lr = train->optimizer.lr,
        .momentum = train->optimizer.momentum,
        .weight_decay = train->optimizer.weight_decay,
        .seed = train->seed,
        .finished_utc_ms = clock_utc_ms(&clock_system),
    };
    if (model_card_export(training->options->output, &card, local_run_parameters(training->run),
                          error) < 0)
        return -1;
    return save_columns(training, error);
}

static int save_checkpoint(struct training *training, struct error *error)
{
    training->saved_ns = clock_monotonic_ns(&clock_system);
    return local_run_save(training->run, training->checkpoint, error);
}

/* ---- training ---------------------------------------------------------------------------------
 */

static int run_open(struct training *training, struct kernel_set *kernels, struct error *error)
{
    const struct train_options *options = training->options;
    const struct job_train *train = &training->spec.train;
    struct local_run_options run = {
        .trainer = {.spec = training->model,
                    .batch = (uint32_t)train->batch,
                    .seed = train->seed,
                    .augment = job_train_augment(train)},
        .train = training->data->train,
        .test = training->data->test,
        .epochs = train->epochs,
        .target = job_train_target(train),
        .min_time_ms = train->target.min_time_ms,
        .measure_steps = options->measure_steps,
        .clock = &clock_system,
    };
    job_train_optimizer(train, &run.trainer.optimizer);
    if (local_run_open(kernels, &run, &training->run, error) < 0)
        return -1;
    if (!options->resume)
        return 0;
    if (local_run_resume(training->run, options->resume, error) < 0)
        return error_wrap(error, "--resume");
    output_note(training->cli, "Goes on at step %" PRIu64 ".",
                local_run_status(training->run)->steps);
    return 0;
}

/* 0: it ended. 1: it was interrupted. */
static int run_all(struct training *training, struct error *error)
{
    const int64_t every_ns = training->options->checkpoint_ms * 1000000;
    training->saved_ns = clock_monotonic_ns(&clock_system);
    for (;;) {
        const enum local_run_event event = local_run_advance(training->run, DRAW_MS, error);
        if (event == LOCAL_RUN_FAILED)
            return -1;
        view_update(training);
        if (event == LOCAL_RUN_ENDED)
            return 0;
        progress_draw(training->progress, &training->view);
        if (metrics_write(training, event, error) < 0)
            return -1;
        struct error lost; /* a full disk costs the checkpoint, not the training */
        if (clock_monotonic_ns(&clock_system) - training->saved_ns >= every_ns &&
            local_run_is_sound(training->run) && save_checkpoint(training, &lost) < 0)
            output_problem(training->cli, "%s", lost.message);
        if (is_interrupted)
            return 1;
    }
}

static void print_json(const struct training *training, const char *end, bool has_model)
{
    const struct local_run_status *status = local_run_status(training->run);
    struct buffer out AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&out, 1 << 16);
    json_writer_init(&writer, &out);
    json_object_begin(&writer);
    json_field_text(&writer, "name", training->spec.name);
    json_field_string(&writer, "end", end);
    json_field_string(&writer, "reason", status->reason);
    json_field_u64(&writer, "steps", status->steps);
    json_field_u64(&writer, "samples", status->samples);
    json_field_double(&writer, "epochs", status->epochs);
    json_field_double(&writer, "train_loss", status->loss);
    if (status->measurements > 0) {
        json_field_double(&writer, "test_loss", status->test.loss);
        json_field_double(&writer, "test_accuracy", status->test.accuracy);
        json_field_double(&writer, "test_error", status->test.error);
    }
    json_field_double(&writer, "seconds", 1e-3 * (double)status->elapsed_ms);
    json_field_string(&writer, "output", training->options->output);
    json_field_bool(&writer, "has_model", has_model);
    json_object_end(&writer);
    output_json(buffer_text(&out));
}

static void print_result(const struct training *training)
{
    const struct cli *cli = training->cli;
    const struct local_run_status *status = local_run_status(training->run);
    const struct job_target *target = &training->spec.train.target;
    const bool has_target =
        target->accuracy > 0 || target->loss > 0 || target->error > 0 || target->perplexity > 0;
    output_field(cli, "Ended:    ", "%s%s", status->reason,
                 has_target && status->end == LOCAL_RUN_EPOCHS ? "; the target is not reached"
                                                               : "");
    output_field(cli, "Steps:    ", "%s in %s", output_number(cli->arena, status->steps),
                 output_duration(cli->arena, status->elapsed_ms));
    if (training->view.is_number)
        output_field(cli, "Test:     ", "loss %.4f, R2 %.4f", status->test.loss,
                     status->test.accuracy);
    else
        output_field(cli, "Test:     ", "loss %.4f, accuracy %.2f %%", status->test.loss,
                     100 * status->test.accuracy);
    output_field(cli, "Model:    ", "%s/model.safetensors", training->options->output);
}

static int finish_diverged(struct training *training, struct error *error)
{
    char advice[96];
    const bool has_model = local_run_parameters(training->run) != NULL;
    job_train_diverged_advice(&training->spec.train, advice, sizeof(advice));
    if (has_model && save_model(training, error) < 0)
        return -1;
    snprintf(training->view.state, sizeof(training->view.state), "failed");
    progress_end(training->progress, &training->view);
    if (training->cli->common.json)
        print_json(training, "diverged", has_model);
    output_problem(training->cli, "souk: the loss is not finite at step %" PRIu64 "; %s; %s",
                   local_run_status(training->run)->steps + 1,
                   has_model ? "the last good model is kept" : "no model was measured before",
                   advice);
    return CLI_EXIT_FAILED;
}

static int finish_interrupted(struct training *training, struct error *error)
{
    if (save_checkpoint(training, error) < 0)
        return -1;
    snprintf(training->view.state, sizeof(training->view.state), "stopped");
    progress_end(training->progress, &training->view);
    if (training->cli->common.json)
        print_json(training, "interrupted", false);
    const struct train_options *options = training->options;
    output_note(training->cli, "Go on: souk train %s -o %s%s%s --resume %s", options->file,
                options->output, options->dataset_dir ? " --dataset-dir " : "",
                options->dataset_dir ? options->dataset_dir : "", training->checkpoint);
    return 128 + SIGINT;
}

static int finish(struct training *training, int how, struct error *error)
{
    const struct local_run_status *status = local_run_status(training->run);
    if (how == 1)
        return finish_interrupted(training, error);
    if (status->end == LOCAL_RUN_DIVERGED)
        return finish_diverged(training, error);
    if (save_checkpoint(training, error) < 0 || save_model(training, error) < 0)
        return -1;
    snprintf(training->view.state, sizeof(training->view.state), "succeeded");
    progress_end(training->progress, &training->view);
    if (training->cli->common.json)
        print_json(training, local_run_end_name(status->end), true);
    else
        print_result(training);
    if (training->events)
        output_note(training->cli, "Its metrics: tensorboard --logdir %s",
                    training->options->tensorboard);
    return 0;
}

static int prepare(struct training *training, struct error *error)
{
    const struct train_options *options = training->options;
    struct arena *arena = training->cli->arena;
    int layer;
    if (job_view_read_file(training->cli, options->file, &training->spec, error) < 0)
        return -1;
    if (job_spec_is_command(&training->spec))
        return error_set(error, ERROR_INVALID,
                         "\"%.100s\" runs a command of its own: souk train takes jobs with train:",
                         options->file);
    if (job_train_peer(&training->spec.train).size > 0)
        return error_set(error, ERROR_INVALID,
                         "train.data: it lies at lenders, and never leaves them: souk job submit");
    if (!place_is_address(training->spec.train.data))
        output_note(training->cli, "Opens " TEXT_FORMAT ".", TEXT_ARGS(training->spec.train.data));
    if (train_data_open(arena, &training->spec, options->dataset_dir, note_reading, training->cli,
                        &training->data, error) < 0 ||
        job_train_model(&training->spec.train, &training->data->shape, &training->model, &layer,
                        error) < 0)
        return -1;
    if (mkdir(options->output, 0777) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "--output: make the folder \"%.150s\"",
                               options->output);
    if (path_in(training, "checkpoint", training->checkpoint, error) < 0)
        return -1;
    if (!options->tensorboard)
        return 0;
    const char *folder = arena_format(arena, "%s/" TEXT_FORMAT, options->tensorboard,
                                      TEXT_ARGS(training->spec.name));
    if (tfevents_open(folder, clock_utc_ms(&clock_system), &training->events, error) < 0)
        return error_wrap(error, "--tensorboard");
    return 0;
}

static void training_done(struct training *training)
{
    progress_free(training->progress);
    tfevents_free(training->events);
    local_run_free(training->run);
    train_data_free(training->data);
}

static int run_train(void *context, const void *options, struct error *error)
{
    AUTO(kernel_set) struct kernel_set *kernels = NULL;
    __attribute__((cleanup(training_done))) struct training training = {.cli = context,
                                                                        .options = options};
    if (prepare(&training, error) < 0 || kernel_set_open(NULL, &kernels, error) < 0 ||
        run_open(&training, kernels, error) < 0)
        return -1;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    view_init(&training);
    const int how = run_all(&training, error);
    const int result = how < 0 ? -1 : finish(&training, how, error);
    local_run_free(training.run); /* before the kernels */
    training.run = NULL;
    return result;
}

const struct command command_train = {
    .name = "train",
    .summary = "Trains the model of a job file here, without a market.",
    .details =
        "One process on this machine: every model, reader and optimizer that a job may name; what "
        "the file says of workers, synchronisation and the market is left aside. The same seed "
        "gives the same model, bit for bit. Ctrl-C leaves a checkpoint to go on from. Exit code 1 "
        "means that the loss was not finite any more.",
    .example = "souk train examples/fashion-mnist.yaml -o model --tensorboard runs",
    COMMAND_OPTIONS(train_options, train_options),
    .run = run_train,
};
