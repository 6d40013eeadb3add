/* souk job fetch: what a job left. */
#include "cli/api.h"
#include "cli/connect.h"
#include "cli/output.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fetch_options {
    uint64_t id;
    const char *output;
    struct option_list names;
};

static const struct option fetch_options[] = {
    {"id", OPTION_U64, offsetof(struct fetch_options, id), "JOB", .help = "The job's number.",
     .minimum = 1, .maximum = INT64_MAX, .is_positional = true, .is_required = true},
    {"names", OPTION_LIST, offsetof(struct fetch_options, names), "NAME",
     .help = "Only these files; all by default.", .is_positional = true},
    {"output", OPTION_PATH, offsetof(struct fetch_options, output), "DIR", ".",
     "Folder to put the files into.", .letter = 'o'},
};

/* The market's names become file names here: nothing may leave the folder. */
static bool is_file_name(struct text name)
{
    if (name.size == 0 || name.size > 160 || name.data[0] == '.')
        return false;
    for (size_t i = 0; i < name.size; i++) {
        const unsigned char c = (unsigned char)name.data[i];
        if (c >= 0x80 || !(isalnum(c) || c == '-' || c == '_' || c == '.'))
            return false;
    }
    return true;
}

static bool is_wanted(const struct option_list *names, struct text name)
{
    for (size_t i = 0; i < names->count; i++)
        if (text_equal(name, text_of(names->items[i])))
            return true;
    return names->count == 0;
}

/* Beside its name first, so that a file is there whole or not at all. */
static int fetch_one(const struct cli *cli, struct client *client,
                     const struct fetch_options *wanted, const struct api_artifact *artifact,
                     struct error *error)
{
    struct arena *arena = cli->arena;
    if (!is_file_name(artifact->name))
        return error_set(error, ERROR_CORRUPT, "the market names a file \"%s\"; it is not fetched",
                         output_text(arena, artifact->name));
    const char *name = arena_copy_string(arena, artifact->name);
    struct text folder = text_of(wanted->output);
    while (folder.size > 1 && text_ends_with(folder, TEXT("/")))
        folder.size--;
    const char *path = arena_format(arena, "%.*s/%s", TEXT_ARGS(folder), name);
    const char *part = arena_format(arena, "%s.part", path);
    AUTO_FD int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return error_set_errno(error, errno, "write \"%.150s\"", part);
    const char *from = arena_format(arena, "/v1/jobs/%" PRIu64 "/artifacts/%s", wanted->id, name);
    int result = client_download(client, from, fd, error);
    struct stat info;
    if (result == 0 && fstat(fd, &info) == 0 && (uint64_t)info.st_size != artifact->size)
        result =
            error_set(error, ERROR_CORRUPT, "\"%s\" came with %" PRIu64 " of %" PRIu64 " bytes",
                      name, (uint64_t)info.st_size, artifact->size);
    if (result == 0 && (fsync(fd) < 0 || rename(part, path) < 0))
        result = error_set_errno(error, errno, "write \"%.150s\"", path);
    if (result < 0) {
        unlink(part);
        return -1;
    }
    output_note(cli, "%s: %s", path, output_bytes(arena, (int64_t)artifact->size));
    return 0;
}

/* Why there was nothing to fetch, by how the job stands. */
static int say_nothing_there(const struct cli *cli, struct client *client,
                             const struct fetch_options *wanted, const struct json_array *artifacts,
                             struct error *error)
{
    struct arena *arena = cli->arena;
    struct api_job job = api_job_unknown();
    struct client_answer answer = {&api_job_schema, &job, {0}};
    if (artifacts->count > 0) {
        const struct api_artifact *first = artifacts->items;
        return error_set(
            error, ERROR_NOT_FOUND, "job %" PRIu64 " left no file of that name; it has \"%.60s\"%s",
            wanted->id, output_text(arena, first->name), artifacts->count > 1 ? " and others" : "");
    }
    if (client_get(client, arena, arena_format(arena, "/v1/jobs/%" PRIu64, wanted->id), &answer,
                   error) < 0)
        return -1;
    if (!api_job_is_final(job.state))
        return error_set(error, ERROR_NOT_FOUND,
                         "job %" PRIu64 " is %s and has left nothing yet: souk job wait %" PRIu64,
                         wanted->id, output_text(arena, job.state), wanted->id);
    return error_set(error, ERROR_NOT_FOUND, "job %" PRIu64 " has ended (%s) and left no files%s",
                     wanted->id, output_text(arena, job.state),
                     job.model.size ? ""
                                    : "; what a command puts into $SOUK_OUTPUT_DIR is kept, "
                                      "\"souk job logs\" shows what it printed");
}

static int run_fetch(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct fetch_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct json_array artifacts;
    struct text json;
    const char *path = arena_format(cli->arena, "/v1/jobs/%" PRIu64 "/artifacts", wanted->id);
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_list(client, cli->arena, path, &api_artifact_page_schema, 10000, &artifacts, &json,
                    error) < 0)
        return -1;
    if (mkdir(wanted->output, 0755) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "make folder \"%.150s\"", wanted->output);
    size_t fetched = 0;
    for (size_t i = 0; i < artifacts.count; i++) {
        const struct api_artifact *artifact = (const struct api_artifact *)artifacts.items + i;
        if (!is_wanted(&wanted->names, artifact->name))
            continue;
        if (fetch_one(cli, client, wanted, artifact, error) < 0)
            return -1;
        fetched++;
    }
    if (fetched == 0)
        return say_nothing_there(cli, client, wanted, &artifacts, error);
    if (cli->common.json)
        output_json(json);
    return 0;
}

const struct command command_job_fetch = {
    .name = "job fetch",
    .summary = "Fetches what a job left: the trained model and its card.",
    .example = "souk job fetch 7 -o model",
    COMMAND_OPTIONS(fetch_options, fetch_options),
    .run = run_fetch,
};
