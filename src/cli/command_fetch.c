/* souk job fetch: what a job left. */
#include "cli/connect.h"
#include "cli/output.h"
#include "client/api.h"
#include "client/artifact.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

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

static bool is_wanted(const struct option_list *names, struct text name)
{
    for (size_t i = 0; i < names->count; i++)
        if (text_equal(name, text_of(names->items[i])))
            return true;
    return names->count == 0;
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
        const char *fetched_path;
        if (artifact_fetch(cli->arena, client, wanted->id, artifact, wanted->output, &fetched_path,
                           error) < 0)
            return -1;
        output_note(cli, "%s: %s", fetched_path, output_bytes(cli->arena, (int64_t)artifact->size));
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
