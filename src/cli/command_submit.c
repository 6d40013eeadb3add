/* souk job submit: from a job file to a trained model. */
#include "cli/connect.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/submit.h"
#include "client/upload.h"
#include "runtime/job_file.h"

#include <inttypes.h>

struct submit_options {
    const char *file;
    const char *dataset_dir;
    const char *resume;
    const char *tensorboard;
    struct option_list secrets;
    bool is_detached;
    bool is_yes;
    bool expects_room;
    bool is_relayed;
};

static const struct option submit_options[] = {
    {"file", OPTION_PATH, offsetof(struct submit_options, file), "FILE",
     .help = "The job file (docs/job-file.md); - is standard input.", .is_positional = true,
     .is_required = true},
    {"detach", OPTION_FLAG, offsetof(struct submit_options, is_detached),
     .help = "Return once the job is submitted.", .letter = 'd'},
    {"yes", OPTION_FLAG, offsetof(struct submit_options, is_yes),
     .help = "Do not ask before credits are held.", .letter = 'y'},
    {"expect_room", OPTION_FLAG, offsetof(struct submit_options, expects_room),
     .help = "Refuse, with exit code 7, when it could not start now."},
    {"no_direct", OPTION_FLAG, offsetof(struct submit_options, is_relayed),
     .help = "Send the data to the market alone, and no lender's machine from here."},
    {"resume", OPTION_PATH, offsetof(struct submit_options, resume), "FILE",
     .help = "Go on from this checkpoint of a job with the same model, on as many workers as you "
             "like."},
    {"secret", OPTION_LIST, offsetof(struct submit_options, secrets), "NAME[=VALUE]",
     .help = "A variable that every rank of your own program has, and that is never shown; without "
             "a value, the one of this environment.",
     .fields = "secrets", .keeps_commas = true, .hides_value = true},
    {"tensorboard", OPTION_PATH, offsetof(struct submit_options, tensorboard), "DIR",
     .help = "Write its metrics as TensorBoard's event files into DIR/job-JOB while it runs."},
    {"dataset_dir", OPTION_PATH, offsetof(struct submit_options, dataset_dir), "DIR",
     .help = "Folder with the data set's files, instead of where its package puts them."},
};

static int run_submit(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct submit_options *wanted = options;
    struct job_spec spec;
    if (job_view_read_file(cli, wanted->file, &spec, error) < 0)
        return -1;
    const bool needs_data = !job_spec_is_command(&spec) && spec.input_count == 0;
    if (needs_data && upload_check_data(&spec, wanted->dataset_dir, error) < 0)
        return -1;
    if (wanted->resume && upload_check_checkpoint(wanted->resume, &spec, error) < 0)
        return error_wrap(error, "--resume");
    AUTO(client) struct client *client = NULL;
    if (cli_connect(cli, true, &client, error) < 0)
        return -1;
    const struct submit_wish wish = {.question = "Submit this job?",
                                     .dataset_dir = wanted->dataset_dir,
                                     .resume = wanted->resume,
                                     .secrets = &wanted->secrets,
                                     .is_yes = wanted->is_yes,
                                     .expects_room = wanted->expects_room,
                                     .is_serving = !wanted->is_detached && !wanted->is_relayed};
    struct submission result AUTO_SUBMISSION;
    const int submitted = submit_job(cli, client, &spec, &wish, &result, error);
    if (submitted != 0)
        return submitted;
    if (!wanted->is_detached)
        return job_view_follow(cli, client, result.job, 0, wanted->tensorboard, error);
    if (cli->common.json)
        output_json(result.json);
    else
        printf("%" PRIu64 "\n", result.job);
    return 0;
}

const struct command command_job_submit = {
    .name = "job submit",
    .summary = "Submits a job and follows it to its end.",
    .details = "Shows what it may cost and asks first. Its data set is sent to the market unless "
               "the market has it; data at https://, s3:// and hdfs:// are fetched here first. "
               "Ctrl-C ends the watching, not the job. Exit code 1 means that "
               "the job failed, 6 that it costs more than it may or than you have, 7 that it "
               "could not start now (--expect-room), 9 that you said no.",
    .example = "souk job submit examples/fashion-mnist.yaml",
    COMMAND_OPTIONS(submit_options, submit_options),
    .run = run_submit,
};
