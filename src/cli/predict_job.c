#include "cli/predict_job.h"

#include "base/clock.h"
#include "base/file.h"
#include "cli/connect.h"
#include "cli/output.h"
#include "cli/predict_merge.h"
#include "cli/run_follow.h"
#include "cli/submit.h"
#include "client/artifact.h"
#include "sandbox/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOLD "told" /* what a rank leaves; the market calls it rank3-told */

enum { DEPTH_MAX = 16, ARTIFACTS_MAX = 10000 };

/* A folder of ours that is gone with the call. */
struct scratch {
    char folder[64];
};

static int scratch_open(struct scratch *scratch, struct error *error)
{
    snprintf(scratch->folder, sizeof(scratch->folder), "/var/tmp/souk-predict-XXXXXX");
    if (mkdtemp(scratch->folder))
        return 0;
    scratch->folder[0] = '\0';
    return error_set_errno(error, errno, "make a folder in /var/tmp");
}

static void scratch_done(struct scratch *scratch)
{
    struct error ignored; /* what is left is in the folder for such files */
    if (scratch->folder[0] && folder_remove(scratch->folder, &ignored) < 0)
        return;
}

/* ---- What the ranks get ---------------------------------------------------------------------- */

static int stage_file(const char *from, const char *to, struct error *error)
{
    if (linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    AUTO_FD int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return error_set_errno(error, errno, "open \"%.150s\"", from);
    AUTO_FD int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out < 0)
        return error_set_errno(error, errno, "make \"%.150s\"", to);
    return file_copy(in, out, error) < 0 ? error_wrap(error, "\"%.150s\"", from) : 0;
}

static int stage(const char *from, const char *to, int depth, struct error *error);

static int stage_folder(const char *from, const char *to, int depth, struct error *error)
{
    struct dirent **items = NULL;
    const int count = scandir(from, &items, NULL, alphasort);
    int result = count < 0 ? error_set_errno(error, errno, "read \"%.150s\"", from) : 0;
    if (result == 0 && mkdir(to, 0700) < 0)
        result = error_set_errno(error, errno, "make \"%.150s\"", to);
    for (int i = 0; i < count; i++) {
        const char *name = items[i]->d_name;
        char inner_from[PATH_MAX], inner_to[PATH_MAX];
        const bool fits = snprintf(inner_from, PATH_MAX, "%s/%s", from, name) < PATH_MAX &&
                          snprintf(inner_to, PATH_MAX, "%s/%s", to, name) < PATH_MAX;
        if (result == 0 && !fits)
            result =
                error_set(error, ERROR_INVALID, "the paths below \"%.100s\" are too long", from);
        if (result == 0 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            result = stage(inner_from, inner_to, depth + 1, error);
        free(items[i]);
    }
    free(items);
    return result;
}

static int stage(const char *from, const char *to, int depth, struct error *error)
{
    struct stat status;
    if (stat(from, &status) < 0)
        return error_set_errno(error, errno, "\"%.150s\"", from);
    if (depth > DEPTH_MAX)
        return error_set(error, ERROR_INVALID, "the folders below \"%.100s\" are too deep", from);
    if (S_ISDIR(status.st_mode))
        return stage_folder(from, to, depth, error);
    if (!S_ISREG(status.st_mode))
        return error_set(error, ERROR_INVALID, "\"%.150s\" is neither a file nor a folder", from);
    return stage_file(from, to, error);
}

/* "rows.csv" of "data/rows.csv". */
static const char *last_name(struct arena *arena, const char *path)
{
    struct text text = text_of(path);
    while (text.size > 1 && text.data[text.size - 1] == '/')
        text.size--;
    const char *slash = memrchr(text.data, '/', text.size);
    if (slash)
        text = (struct text){slash + 1, text.size - (size_t)(slash + 1 - text.data)};
    return text.size == 0 || text.data[0] == '.' ? "records" : arena_copy_string(arena, text);
}

/* The model's own file, and what says of it how records go in. */
static int stage_model(struct arena *arena, const struct scratch *scratch, const char *model,
                       struct error *error)
{
    static const char *const beside[] = {"card.json", "columns.json"};
    struct stat status;
    const bool is_folder = stat(model, &status) == 0 && S_ISDIR(status.st_mode);
    const char *slash = strrchr(model, '/');
    const char *folder =
        is_folder ? arena_format(arena, "%s/", model)
                  : arena_format(arena, "%.*s", slash ? (int)(slash + 1 - model) : 0, model);
    const char *file = is_folder ? arena_format(arena, "%smodel.safetensors", folder) : model;
    const char *target = arena_format(arena, "%s/model", scratch->folder);
    if (mkdir(target, 0700) < 0)
        return error_set_errno(error, errno, "make \"%s\"", target);
    if (stage(file, arena_format(arena, "%s/model.safetensors", target), 0, error) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(beside) / sizeof(*beside); i++) {
        const char *from = arena_format(arena, "%s%s", folder, beside[i]);
        if (access(from, F_OK) == 0 &&
            stage(from, arena_format(arena, "%s/%s", target, beside[i]), 0, error) < 0)
            return -1;
    }
    return 0;
}

static const char *write_script(struct cli *cli, const struct predict_job_options *options,
                                const char *data)
{
    struct buffer script AUTO_BUFFER;
    buffer_init(&script, JOB_SCRIPT_SIZE_MAX);
    buffer_append_string(&script, "exec /souk model predict model/model.safetensors --data data/");
    run_spec_quote(&script, data);
    buffer_append_format(&script,
                         " --shard \"$SOUK_RANK/%" PRIu64 "\" -o \"$SOUK_OUTPUT_DIR/" TOLD "\"",
                         options->run->nodes);
    if (options->format) {
        buffer_append_string(&script, " --format ");
        run_spec_quote(&script, options->format);
    }
    buffer_append_string(&script, options->has_probabilities ? " --probabilities" : "");
    buffer_append_string(&script, options->is_raw ? " --raw" : "");
    buffer_append_string(&script, options->fills_means ? " --missing mean" : "");
    buffer_append_string(&script, cli->common.json ? " --json" : "");
    return arena_copy_string(cli->arena, buffer_text(&script));
}

/* ---- What they told -------------------------------------------------------------------------- */

static const struct api_artifact *find_told(struct arena *arena, const struct json_array *artifacts,
                                            size_t rank)
{
    const char *name = arena_format(arena, "rank%zu-" TOLD, rank);
    const struct api_artifact *items = artifacts->items;
    for (size_t i = 0; i < artifacts->count; i++)
        if (text_is(items[i].name, name))
            return &items[i];
    return NULL;
}

static int fetch_told(struct cli *cli, struct client *client, uint64_t job, size_t count,
                      const char *folder, const char **out_paths, struct error *error)
{
    struct json_array artifacts;
    struct text json;
    const char *path = arena_format(cli->arena, "/v1/jobs/%" PRIu64 "/artifacts", job);
    if (client_list(client, cli->arena, path, &api_artifact_page_schema, ARTIFACTS_MAX, &artifacts,
                    &json, error) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const struct api_artifact *told = find_told(cli->arena, &artifacts, i);
        if (!told)
            return error_set(error, ERROR_CORRUPT,
                             "rank %zu left nothing (souk job logs %" PRIu64 ")", i, job);
        if (artifact_fetch(cli->arena, client, job, told, folder, &out_paths[i], error) < 0)
            return -1;
    }
    return 0;
}

static int bring_told(struct cli *cli, struct client *client,
                      const struct predict_job_options *options, uint64_t job, int64_t start_ns,
                      struct error *error)
{
    __attribute__((cleanup(scratch_done))) struct scratch scratch = {""};
    const size_t count = options->run->nodes;
    const char **paths = arena_alloc(cli->arena, count * sizeof(*paths));
    uint64_t records = 0;
    if (scratch_open(&scratch, error) < 0 ||
        fetch_told(cli, client, job, count, scratch.folder, paths, error) < 0)
        return -1;
    const struct predict_merge_options merging = {.paths = paths,
                                                  .count = count,
                                                  .is_json = cli->common.json,
                                                  .write = options->write,
                                                  .context = options->context};
    if (predict_merge(&merging, &records, error) < 0)
        return error_wrap(error, "job %" PRIu64, job);
    const double seconds = 1e-9 * (double)(clock_monotonic_ns(&clock_system) - start_ns);
    output_note(cli, "%s records by %zu machine%s in %.2f s", output_number(cli->arena, records),
                count, count == 1 ? "" : "s", seconds);
    return 0;
}

int predict_job(struct cli *cli, const struct predict_job_options *options, struct error *error)
{
    __attribute__((cleanup(scratch_done))) struct scratch scratch = {""};
    const char *data = last_name(cli->arena, options->data);
    const char *script = write_script(cli, options, data);
    struct run_options run = *options->run;
    struct job_spec spec;
    if (scratch_open(&scratch, error) < 0 ||
        stage_model(cli->arena, &scratch, options->model, error) < 0)
        return -1;
    const char *folder = arena_format(cli->arena, "%s/data", scratch.folder);
    if (mkdir(folder, 0700) < 0)
        return error_set_errno(error, errno, "make \"%s\"", folder);
    if (stage(options->data, arena_format(cli->arena, "%s/%s", folder, data), 0, error) < 0)
        return -1;
    run.files = scratch.folder;
    run.command = (struct option_list){&script, 1};
    run.network = "none";
    run.runtime = "command";
    if (run_spec_make(cli->arena, &run, &spec, error) < 0)
        return -1;
    AUTO(client) struct client *client = NULL;
    if (cli_connect(cli, true, &client, error) < 0)
        return -1;
    const int64_t start_ns = clock_monotonic_ns(&clock_system);
    const struct submit_wish wish = {.question = "Ask it of these machines?",
                                     .secrets = &run.secrets,
                                     .is_yes = run.is_yes,
                                     .expects_room = !strcmp(run.start, "now") && !run.is_waiting,
                                     .is_serving = !run.is_relayed,
                                     .command = options->command};
    struct submission result AUTO_SUBMISSION;
    const int submitted = submit_job(cli, client, &spec, &wish, &result, error);
    if (submitted != 0)
        return submitted;
    const struct run_follow_options following = {.job = result.job,
                                                 .is_single = run.nodes == 1,
                                                 .is_relayed = run.is_relayed,
                                                 .is_aside = true};
    const int ended = run_follow(cli, client, &following, error);
    return ended != 0 ? ended : bring_told(cli, client, options, result.job, start_ns, error);
}
