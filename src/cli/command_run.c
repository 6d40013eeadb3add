/* souk run: leases machines now, sends files, runs a command on each and shows what they say. */
#include "base/json.h"
#include "cli/connect.h"
#include "cli/output.h"
#include "cli/run_follow.h"
#include "cli/submit.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

struct run_options {
    uint64_t nodes;
    const char *name;
    const char *files;
    const char *cpus, *memory, *disk, *gpus, *network, *image, *runtime;
    struct option_list labels, envs, secrets;
    int64_t max_rtt_ms, max_run_time_ms;
    int64_t max_total_cost_micro, max_hourly_cost_micro;
    const char *start;
    bool is_spare, is_waiting, is_detached, is_yes, is_relayed;
    struct option_list command;
};

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
     "What each may reach: none, job (the other copies), open (on no machine yet)."},
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

/* ---- The job --------------------------------------------------------------------------------- */

/* 'it'\''s' */
static void append_quoted(struct buffer *script, const char *word)
{
    buffer_append_string(script, "'");
    for (const char *at = word; *at; at++)
        if (*at == '\'')
            buffer_append_string(script, "'\\''");
        else
            buffer_append(script, at, 1);
    buffer_append_string(script, "'");
}

static void append_script(struct buffer *script, const struct option_list *command)
{
    if (command->count == 0)
        return;
    if (command->count == 1) {
        buffer_append_string(script, command->items[0]);
        return;
    }
    buffer_append_string(script, "exec");
    for (size_t i = 0; i < command->count; i++) {
        buffer_append_string(script, " ");
        append_quoted(script, command->items[i]);
    }
}

/* NAME=value, of a shell script. */
static bool is_assignment(const char *word)
{
    size_t size = 0;
    while (isalnum((unsigned char)word[size]) || word[size] == '_')
        size++;
    return size > 0 && word[size] == '=';
}

/* What a script begins with that is no program. */
static bool is_of_the_shell(const char *word)
{
    static const char *const words[] = {
        "for",  "while", "until",  "if",     "case",  "trap",  "set",     "export", "cd",
        "eval", "exec",  "ulimit", "umask",  "unset", "local", "shift",   "read",   "readonly",
        "wait", "exit",  "return", "source", "alias", "time",  "function"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (!strcmp(word, words[i]))
            return true;
    return is_assignment(word);
}

/* The last part of the command's path, as far as it may stand in a name. Of a script that is the
 * path of its first command, where it begins with one: slashes further on are arguments'. */
static const char *name_of(struct arena *arena, const struct run_options *wanted)
{
    if (wanted->name)
        return wanted->name;
    const char *command = wanted->command.count ? wanted->command.items[0] : wanted->image;
    command += strspn(command, " \t\n");
    const char *word = arena_format(arena, "%.*s", (int)strcspn(command, " \t\n;|&<>()"), command);
    if (wanted->command.count == 1 && is_of_the_shell(word))
        return "command";
    const char *slash = strrchr(word, '/');
    char *name = arena_format(arena, "%.40s", slash ? slash + 1 : word);
    size_t size = 0;
    while (isalnum((unsigned char)name[size]) || (size && strchr("-_.", name[size]) && name[size]))
        size++;
    name[size] = '\0';
    return size ? name : "command";
}

static int write_envs(struct json_writer *writer, struct arena *arena,
                      const struct option_list *envs, struct error *error)
{
    json_key(writer, "envs");
    json_object_begin(writer);
    for (size_t i = 0; i < envs->count; i++) {
        struct text name, value = {0};
        if (!text_cut(text_of(envs->items[i]), '=', &name, &value))
            return error_set(error, ERROR_INVALID, "--env: write it as NAME=VALUE, not \"%.60s\"",
                             envs->items[i]);
        json_field_text(writer, arena_copy_string(arena, name), value);
    }
    json_object_end(writer);
    return 0;
}

static void write_resources(struct json_writer *writer, const struct run_options *wanted)
{
    json_key(writer, "resources");
    json_object_begin(writer);
    json_field_string(writer, "cpus", wanted->cpus);
    json_field_string(writer, "memory", wanted->memory);
    json_field_string(writer, "disk_size", wanted->disk);
    json_field_string(writer, "network", wanted->network);
    if (wanted->gpus)
        json_field_string(writer, "accelerators", wanted->gpus);
    if (wanted->image)
        json_field_string(writer, "image_id", wanted->image);
    json_key(writer, "labels");
    json_array_begin(writer);
    for (size_t i = 0; i < wanted->labels.count; i++)
        json_string(writer, wanted->labels.items[i]);
    json_array_end(writer);
    json_object_end(writer);
}

static void write_market(struct json_writer *writer, struct arena *arena,
                         const struct run_options *wanted)
{
    json_key(writer, "market");
    json_object_begin(writer);
    json_field_string(writer, "max_run_time",
                      arena_format(arena, "%" PRId64 "ms", wanted->max_run_time_ms));
    json_field_string(writer, "start", wanted->start);
    json_field_bool(writer, "spare", wanted->is_spare);
    if (wanted->max_rtt_ms)
        json_field_string(writer, "max_rtt",
                          arena_format(arena, "%" PRId64 "ms", wanted->max_rtt_ms));
    const struct {
        const char *name;
        int64_t micro;
    } limits[] = {{"max_total_cost", wanted->max_total_cost_micro},
                  {"max_hourly_cost", wanted->max_hourly_cost_micro}};
    for (size_t i = 0; i < 2; i++)
        if (limits[i].micro)
            json_field_string(writer, limits[i].name,
                              arena_format(arena, "%" PRId64 ".%06" PRId64,
                                           limits[i].micro / 1000000, limits[i].micro % 1000000));
    json_object_end(writer);
}

/* The flags become the job file they stand for, and are read by its rules. */
static int make_spec(const struct cli *cli, const struct run_options *wanted,
                     struct job_spec *out_spec, struct error *error)
{
    struct buffer json AUTO_BUFFER, script AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    buffer_init(&script, JOB_SCRIPT_SIZE_MAX);
    append_script(&script, &wanted->command);
    if (buffer_check(&script, error) < 0)
        return error_wrap(error, "the command is too long; put it into a script under --files");
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_object_begin(&writer);
    json_field_string(&writer, "name", name_of(cli->arena, wanted));
    json_field_string(&writer, "runtime", wanted->runtime);
    json_field_u64(&writer, "num_nodes", wanted->nodes);
    if (wanted->command.count > 0)
        json_field_text(&writer, "run", buffer_text(&script));
    if (wanted->files)
        json_field_string(&writer, "workdir", wanted->files);
    write_resources(&writer, wanted);
    write_market(&writer, cli->arena, wanted);
    if (write_envs(&writer, cli->arena, &wanted->envs, error) < 0)
        return -1;
    json_object_end(&writer);
    if (buffer_check(&json, error) < 0)
        return -1;
    return job_spec_read(cli->arena, buffer_text(&json), out_spec, error);
}

/* ---- Running it ------------------------------------------------------------------------------ */

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
    if (make_spec(cli, wanted, &spec, error) < 0)
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
