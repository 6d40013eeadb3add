/* souk run: leases machines now, sends files, runs a command on each and shows what they say. */
#include "cli/connect.h"
#include "cli/output.h"
#include "cli/run_follow.h"
#include "cli/run_spec.h"
#include "cli/submit.h"

#include <inttypes.h>
#include <string.h>

static const struct option run_options[] = {
    {"nodes", OPTION_U64, offsetof(struct run_options, nodes), "N", "1",
     "How many machines, each with one copy of the command.", .letter = 'n', .minimum = 1,
     .maximum = 1000, .fields = "num_nodes"},
    {"files", OPTION_PATH, offsetof(struct run_options, files), "DIR",
     .help = "A folder whose files every copy gets; the command starts in it.",
     .fields = "workdir"},
    {"cpus", OPTION_TEXT, offsetof(struct run_options, cpus), "CORES", "1+",
     "Cores of each: 2 is exactly two, 2+ at least two."},
    {"memory", OPTION_TEXT, offsetof(struct run_options, memory), "SIZE", "0.25+",
     "Memory of each, in GiB or with a unit."},
    {"disk", OPTION_TEXT, offsetof(struct run_options, disk), "SIZE", "1",
     "Disk of each, in GiB or with a unit.", .fields = "disk_size"},
    {"gpus", OPTION_TEXT, offsetof(struct run_options, gpus), "GPUS",
     .help = "GPUs of each: 1, of any model; T4:1; 24GB+:1.", .fields = "accelerators"},
    {"labels", OPTION_LIST, offsetof(struct run_options, labels), "LABEL",
     .help = "What each machine must have: python3-torch, cuda-12."},
    {"network", OPTION_TEXT, offsetof(struct run_options, network), "NETWORK", "none",
     "What each may reach: none, job (the other copies), open (the Internet, where a lender "
     "permits it)."},
    {"runtime", OPTION_TEXT, offsetof(struct run_options, runtime), "RUNTIME", "command",
     "How the copies find one another: command, or a framework's way: torch, tensorflow, spark, "
     "mpi. A "
     "framework brings --network job."},
    {"image", OPTION_PATH, offsetof(struct run_options, image), "IMAGE",
     .help = "Run in this image, on machines that permit it: a file of docker save or podman save, "
             "or a folder with an OCI layout. Without a command, what the image says.",
     .fields = "image_id"},
    {"max_rtt", OPTION_DURATION, offsetof(struct run_options, max_rtt_ms), "TIME",
     .help = "The longest round trip between any two of the machines, by a direct path or the "
             "market; they are tried with one another first.",
     .minimum = 1, .maximum = 60000},
    {"env", OPTION_LIST, offsetof(struct run_options, envs), "NAME=VALUE",
     .help = "A variable of the command's environment.", .fields = "envs", .letter = 'e',
     .keeps_commas = true},
    {"secret", OPTION_LIST, offsetof(struct run_options, secrets), "NAME[=VALUE]",
     .help = "Likewise one that is never shown; without a value, the one of this environment.",
     .fields = "secrets", .keeps_commas = true, .hides_value = true},
    {"max_run_time", OPTION_DURATION, offsetof(struct run_options, max_run_time_ms), "TIME", "1h",
     "It is stopped after this; credits for it are held at the start."},
    {"max_total_cost", OPTION_CREDITS, offsetof(struct run_options, max_total_cost_micro),
     "CREDITS", .help = "Credits it may cost in all."},
    {"max_hourly_cost", OPTION_CREDITS, offsetof(struct run_options, max_hourly_cost_micro),
     "CREDITS", .help = "Credits an hour for all machines together."},
    {"spare", OPTION_FLAG, offsetof(struct run_options, is_spare),
     .help = "Run for nothing on unsold time that is given away, with less than 1 credit; whoever "
             "pays ends it at any moment."},
    {"start", OPTION_TEXT, offsetof(struct run_options, start), "WHEN", "now",
     "When: now; \"by 6h\", when there is room until then; \"cheapest before 1d\". All but now "
     "wait."},
    {"name", OPTION_TEXT, offsetof(struct run_options, name), "NAME",
     .help = "What to call it; by default the command's program."},
    {"wait", OPTION_FLAG, offsetof(struct run_options, is_waiting),
     .help = "Wait in line when the machines are not free now."},
    {"detach", OPTION_FLAG, offsetof(struct run_options, is_detached),
     .help = "Return once it is submitted, with its number.", .letter = 'd'},
    {"no_direct", OPTION_FLAG, offsetof(struct run_options, is_relayed),
     .help = "Talk to the market alone: neither read what the copies print from their machines nor "
             "send them the files from here."},
    {"yes", OPTION_FLAG, offsetof(struct run_options, is_yes),
     .help = "Do not ask before credits are held.", .letter = 'y'},
    {"command", OPTION_LIST, offsetof(struct run_options, command), "COMMAND",
     .help = "The command and its arguments, after --; one argument alone is a shell script.",
     .is_positional = true},
};

/* What the market advised was for a job file. */
static void name_flags(struct error *error)
{
    struct buffer words AUTO_BUFFER;
    buffer_init(&words, sizeof(error->message) - 1);
    options_name_advice(&command_run, text_of(error->message), &words);
    struct error too_long;
    if (buffer_check(&words, &too_long) == 0)
        snprintf(error->message, sizeof(error->message), "%s", buffer_string(&words));
}

static int run_run(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct run_options *wanted = options;
    struct job_spec spec;
    if (wanted->command.count == 0 && !wanted->image)
        return error_set(error, ERROR_INVALID, "COMMAND is missing; or give --image");
    if (run_spec_make(cli->arena, wanted, &spec, error) < 0)
        return -1;
    AUTO(client) struct client *client = NULL;
    if (cli_connect(cli, true, &client, error) < 0)
        return -1;
    const bool starts_now = !strcmp(wanted->start, "now") && !wanted->is_waiting;
    const struct submit_wish wish = {.question = "Run this?",
                                     .secrets = &wanted->secrets,
                                     .is_yes = wanted->is_yes,
                                     .expects_room = starts_now,
                                     .is_serving = !wanted->is_detached && !wanted->is_relayed,
                                     .command = &command_run};
    struct submission result AUTO_SUBMISSION;
    const int submitted = submit_job(cli, client, &spec, &wish, &result, error);
    if (submitted < 0)
        name_flags(error);
    if (submitted != 0)
        return submitted;
    if (!wanted->is_detached)
        return run_follow(cli, client,
                          &(struct run_follow_options){.job = result.job,
                                                       .is_single = wanted->nodes == 1,
                                                       .is_relayed = wanted->is_relayed},
                          error);
    if (cli->common.json)
        output_json(result.json);
    else
        printf("%" PRIu64 "\n", result.job);
    return 0;
}

const struct command command_run = {
    .name = "run",
    .summary = "Leases machines now, runs a command on each, and shows what they say.",
    .details =
        "Shows what it may cost and asks first. Each copy runs in a sandbox of its own, in a copy "
        "of the folder given by --files, and finds its place in SOUK_RANK and SOUK_WORLD_SIZE. "
        "What it leaves in SOUK_OUTPUT_DIR is fetched by souk job fetch. Ctrl-C stops all copies. "
        "When one fails the others are stopped, and its exit status is that of souk run: of "
        "several the first that failed, 128 + n when signal n ended it. It is 1 when the run was "
        "stopped before its end. Before it starts, 6 means that it costs more than it may or than "
        "you have, 7 that the machines are not free now (--wait waits for them), 9 that you said "
        "no.",
    .example = "souk run -n 4 --max-rtt 50ms --files . -- python3 train.py --epochs 3",
    COMMAND_OPTIONS(run_options, run_options),
    .run = run_run,
};
