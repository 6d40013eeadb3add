/*
 * souk model predict: what a trained model tells of every record of a file, as lines.
 *
 * The file appears under its name once it is whole: until then it lies beside it, and goes when
 * something fails or the command is interrupted.
 */
#include "base/clock.h"
#include "cli/output.h"
#include "cli/predict_job.h"
#include "train/predict_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MISSING_REFUSE, MISSING_MEAN };
static const char *const missing_names[] = {"refuse", "mean", NULL};

/* All parts are open at once. */
enum { NODES_MAX = 500 };

struct predict_options {
    const char *model, *data, *output, *format, *shard;
    bool has_probabilities, is_raw;
    int missing;
    struct run_options run; /* of the job; no nodes: here */
};

#define PREDICT(member) offsetof(struct predict_options, member)
static const struct option predict_options[] = {
    {"model", OPTION_PATH, PREDICT(model), "MODEL",
     .help = "A model.safetensors, a folder that holds one, or a checkpoint.",
     .is_positional = true, .is_required = true},
    {"data", OPTION_PATH, PREDICT(data), "FILE",
     .help = "The records: any file or folder that training reads (docs/data.md).",
     .is_required = true},
    {"output", OPTION_PATH, PREDICT(output), "FILE",
     .help = "Where the lines go; by default standard output.", .letter = 'o'},
    {"probabilities", OPTION_FLAG, PREDICT(has_probabilities),
     .help = "Tell the probability of every class."},
    {"missing", OPTION_CHOICE, PREDICT(missing), "HOW", "refuse",
     "What a missing number of a table is: refused, or the mean of the rows it was trained on.",
     .choices = missing_names},
    {"format", OPTION_TEXT, PREDICT(format), "FORMAT",
     .help = "How the data are read, where nothing tells: csv, libsvm, npy, idx, images, text."},
    {"shard", OPTION_TEXT, PREDICT(shard), "K/N",
     .help = "Tell only every Nth record, from the Kth on, counted from 0: for N ranks of a job."},
    {"raw", OPTION_FLAG, PREDICT(is_raw),
     .help = "Take numbers as the model does, and tell them so; without it they are scaled as in "
             "training."},
    {"nodes", OPTION_U64, PREDICT(run.nodes), "N",
     .help = "Ask on so many lent machines, each a part of the records; without it, here.",
     .letter = 'n', .minimum = 1, .maximum = NODES_MAX, .fields = "num_nodes"},
    {"cpus", OPTION_TEXT, PREDICT(run.cpus), "CORES", "1+",
     "Cores of each machine: 2 is exactly two, 2+ at least two."},
    {"memory", OPTION_TEXT, PREDICT(run.memory), "SIZE", "0.25+",
     "Memory of each, in GiB or with a unit."},
    {"disk", OPTION_TEXT, PREDICT(run.disk), "SIZE", "1",
     "Disk of each, in GiB or with a unit: for model, data and what is told.",
     .fields = "disk_size"},
    {"labels", OPTION_LIST, PREDICT(run.labels), "LABEL", .help = "What each machine must have."},
    {"max_run_time", OPTION_DURATION, PREDICT(run.max_run_time_ms), "TIME", "1h",
     "It is stopped after this; credits for it are held at the start."},
    {"max_total_cost", OPTION_CREDITS, PREDICT(run.max_total_cost_micro), "CREDITS",
     .help = "Credits it may cost in all."},
    {"max_hourly_cost", OPTION_CREDITS, PREDICT(run.max_hourly_cost_micro), "CREDITS",
     .help = "Credits an hour for all machines together."},
    {"spare", OPTION_FLAG, PREDICT(run.is_spare),
     .help = "Run for nothing on unsold time that is given away, with less than 1 credit."},
    {"start", OPTION_TEXT, PREDICT(run.start), "WHEN", "now",
     "When: now; \"by 6h\", when there is room until then; \"cheapest before 1d\"."},
    {"name", OPTION_TEXT, PREDICT(run.name), "NAME", "predict", "What to call the job."},
    {"wait", OPTION_FLAG, PREDICT(run.is_waiting),
     .help = "Wait in line when the machines are not free now."},
    {"no_direct", OPTION_FLAG, PREDICT(run.is_relayed), .help = "Talk to the market alone."},
    {"yes", OPTION_FLAG, PREDICT(run.is_yes), .help = "Do not ask before credits are held.",
     .letter = 'y'},
};

/* Read by the handler of signals. */
static char aside[PATH_MAX];

struct sink {
    FILE *file;
    const char *path; /* NULL: written as it comes */
    bool is_aside;
    bool has_failed; /* as `error` says, which is not about the data */
    bool has_left;   /* whoever read standard output */
    struct error error;
};

static void on_signal(int number)
{
    unlink(aside);
    raise(number); /* as it would have ended: the handler is gone by now */
}

static int sink_aside(struct sink *sink, struct error *error)
{
    const struct sigaction action = {.sa_handler = on_signal,
                                     .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
    if (snprintf(aside, sizeof(aside), "%s.XXXXXX", sink->path) >= (int)sizeof(aside))
        return error_set(error, ERROR_INVALID, "--output: the path is too long");
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    const int fd = mkostemp(aside, O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "create a file beside \"%.200s\"", sink->path);
    sink->is_aside = true;
    const mode_t mask = umask(0);
    umask(mask);
    sink->file = fdopen(fd, "w");
    if (fchmod(fd, 0666 & ~mask) == 0 && sink->file)
        return 0;
    error_set_errno(error, errno, "\"%.200s\"", sink->path);
    if (!sink->file)
        close(fd);
    return -1;
}

/* A pipe or device is no file that could appear whole. */
static int sink_open(struct sink *sink, const char *path, struct error *error)
{
    struct stat status;
    *sink = (struct sink){.file = stdout, .path = path};
    if (!path || strcmp(path, "-") == 0)
        return 0;
    if (stat(path, &status) < 0 || S_ISREG(status.st_mode))
        return sink_aside(sink, error);
    sink->file = fopen(path, "we");
    return sink->file ? 0 : error_set_errno(error, errno, "open \"%.200s\"", path);
}

static int sink_write(void *context, struct text lines, struct error *error)
{
    struct sink *sink = context;
    if (lines.size == 0 || fwrite(lines.data, 1, lines.size, sink->file) == lines.size)
        return 0;
    const int problem = errno;
    if (sink->file == stdout) { /* said here, and not once more at the end of the program */
        clearerr(stdout);
        __fpurge(stdout);
    }
    sink->has_failed = true;
    sink->has_left = sink->file == stdout && problem == EPIPE;
    if (sink->file == stdout)
        error_set_errno(&sink->error, problem, "write to standard output");
    else
        error_set_errno(&sink->error, problem, "write \"%.200s\"", sink->path);
    *error = sink->error;
    return -1;
}

static int sink_end(struct sink *sink, struct error *error)
{
    if (sink->file == stdout)
        return output_finish(error);
    FILE *file = TAKE(sink->file);
    const bool is_written = fflush(file) == 0 && (!sink->is_aside || fsync(fileno(file)) == 0);
    const int problem = errno;
    if (fclose(file) != 0 || !is_written)
        return error_set_errno(error, is_written ? errno : problem, "write \"%.200s\"", sink->path);
    if (sink->is_aside && rename(aside, sink->path) < 0)
        return error_set_errno(error, errno, "rename to \"%.200s\"", sink->path);
    sink->is_aside = false;
    return 0;
}

static void sink_done(struct sink *sink)
{
    if (sink->file && sink->file != stdout)
        fclose(sink->file);
    if (sink->is_aside)
        unlink(aside);
}

static void show_score(const struct cli *cli, const struct predictor *predictor,
                       const struct predict_score *score, double seconds)
{
    output_note(cli, "%s records in %.2f s: %.0f records/s",
                output_number(cli->arena, score->records), seconds,
                (double)score->records / (seconds > 1e-9 ? seconds : 1e-9));
    if (score->labelled == 0)
        return;
    const char *of = score->labelled == score->records
                         ? ""
                         : arena_format(cli->arena, " of the %s with a label",
                                        output_number(cli->arena, score->labelled));
    if (predictor_spec(predictor)->loss == LOSS_MSE && isnan(score->r2))
        output_note(cli, "error %.6g%s", score->error, of);
    else if (predictor_spec(predictor)->loss == LOSS_MSE)
        output_note(cli, "error %.6g, R2 %.4f%s", score->error, score->r2, of);
    else
        output_note(cli, "accuracy %.2f %%%s",
                    100.0 * (double)score->right / (double)score->labelled, of);
    if (score->unlearnt > 0)
        output_note(cli, "%s labels are none that the model has learnt, and count as wrong",
                    output_number(cli->arena, score->unlearnt));
}

static int read_shard(const char *shard, struct predict_lines_options *lines, struct error *error)
{
    struct text index, count;
    struct error ignored;
    if (!shard)
        return 0;
    if (!text_cut(text_of(shard), '/', &index, &count) ||
        text_parse_u64(index, &lines->shard, &ignored) < 0 ||
        text_parse_u64(count, &lines->shard_count, &ignored) < 0 ||
        lines->shard >= lines->shard_count)
        return error_set(error, ERROR_INVALID,
                         "--shard: \"%.40s\" is not K/N with K from 0 and below N", shard);
    return 0;
}

static int predict(const struct cli *cli, const struct predict_options *wanted, struct sink *sink,
                   struct error *error)
{
    AUTO(predictor) struct predictor *predictor = NULL;
    AUTO(predict_lines) struct predict_lines *lines = NULL;
    if (predictor_open(wanted->model, wanted->is_raw, &predictor, error) < 0)
        return -1;
    struct predict_lines_options shown = {.predictor = predictor,
                                          .is_json = cli->common.json,
                                          .has_all = wanted->has_probabilities,
                                          .write = sink_write,
                                          .context = sink};
    if (read_shard(wanted->shard, &shown, error) < 0 ||
        predict_lines_open(&shown, &lines, error) < 0 || sink_open(sink, wanted->output, error) < 0)
        return -1;
    const struct predict_data_options data = {.path = wanted->data,
                                              .format = wanted->format,
                                              .predictor = predictor,
                                              .is_raw = wanted->is_raw,
                                              .fills_means = wanted->missing == MISSING_MEAN,
                                              .take = predict_lines_take,
                                              .context = lines};
    const int64_t start_ns = clock_monotonic_ns(&clock_system);
    if (predict_data_read(&data, error) < 0 || predict_lines_end(lines, error) < 0 ||
        sink_end(sink, error) < 0)
        return -1;
    struct predict_score score = predict_lines_score(lines);
    if (wanted->is_raw && predictor_spec(predictor)->loss == LOSS_MSE)
        score.labelled = 0; /* labels are not as the model tells numbers */
    show_score(cli, predictor, &score,
               1e-9 * (double)(clock_monotonic_ns(&clock_system) - start_ns));
    return 0;
}

/* That the model can be asked is known before anything is paid for it. */
static int check_model(const struct predict_options *wanted, struct error *error)
{
    AUTO(predictor) struct predictor *predictor = NULL;
    AUTO(predict_lines) struct predict_lines *lines = NULL;
    if (wanted->shard)
        return error_set(error, ERROR_INVALID, "--shard: with --nodes each machine has its own");
    if (predictor_open(wanted->model, wanted->is_raw, &predictor, error) < 0)
        return -1;
    const struct predict_lines_options shown = {.predictor = predictor,
                                                .has_all = wanted->has_probabilities};
    return predict_lines_open(&shown, &lines, error);
}

static int predict_elsewhere(struct cli *cli, const struct predict_options *wanted,
                             struct sink *sink, struct error *error)
{
    const struct predict_job_options job = {.model = wanted->model,
                                            .data = wanted->data,
                                            .format = wanted->format,
                                            .has_probabilities = wanted->has_probabilities,
                                            .is_raw = wanted->is_raw,
                                            .fills_means = wanted->missing == MISSING_MEAN,
                                            .run = &wanted->run,
                                            .command = &command_model_predict,
                                            .write = sink_write,
                                            .context = sink};
    if (check_model(wanted, error) < 0 || sink_open(sink, wanted->output, error) < 0)
        return -1;
    const int result = predict_job(cli, &job, error);
    return result == 0 ? sink_end(sink, error) : result;
}

/* What only a job has. */
static int check_here(const struct run_options *run, struct error *error)
{
    if (run->max_total_cost_micro || run->max_hourly_cost_micro || run->is_spare ||
        run->is_waiting || run->labels.count || run->is_relayed)
        return error_set(error, ERROR_INVALID,
                         "--nodes: say on how many lent machines; without "
                         "it the model is asked here, for nothing");
    return 0;
}

static int run_predict(void *context, const void *options, struct error *error)
{
    const struct predict_options *wanted = options;
    struct sink sink = {0};
    if (!wanted->run.nodes && check_here(&wanted->run, error) < 0)
        return -1;
    const int result = wanted->run.nodes ? predict_elsewhere(context, wanted, &sink, error)
                                         : predict(context, wanted, &sink, error);
    sink_done(&sink);
    if (sink.has_failed)
        *error = sink.error;
    return sink.has_left ? 0 : result;
}

const struct command command_model_predict = {
    .name = "model predict",
    .summary = "Tells what a trained model makes of every record of a file.",
    .details =
        "One line of CSV for each record, in the data's order: its index from 0, the class or "
        "number told, and of a class its probability; with --json one JSON object a line. "
        "Columns, words and sizes of images are those the model learnt by. Standard error "
        "has the speed and, where the data have labels, how right it was. A file named by "
        "-o appears once it is whole. With -n the records are told by lent machines: what it may "
        "cost is shown and asked first, model and data are sent to them, each tells its part, "
        "another one that of a machine that was lost, and the parts come back in the data's "
        "order. Exit codes are then those of souk run.",
    .example = "souk model predict model --data flowers.csv -n 4 -o told.csv",
    COMMAND_OPTIONS(predict_options, predict_options),
    .run = run_predict,
};
