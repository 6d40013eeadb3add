/* souk job fetch: what a job left. */
#include "cli/connect.h"
#include "cli/job_results.h"
#include "cli/output.h"
#include "client/api.h"
#include "client/artifact.h"
#include "client/results.h"
#include "source/place.h"

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
     "Folder to put the files into, or s3://bucket/folder, hdfs://namenode/folder.", .letter = 'o'},
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

static void note(void *context, const char *what)
{
    output_note(context, "%s", what);
}

/* Into the folder, or to where the address says. */
static int fetch_one(struct cli *cli, struct client *client, const struct fetch_options *wanted,
                     const struct api_artifact *artifact, struct error *error)
{
    const char *place;
    const struct results_target target = {wanted->output, note, cli};
    if ((place_is_address(text_of(wanted->output))
             ? results_put(cli->arena, client, wanted->id, artifact, &target, &place, error)
             : artifact_fetch(cli->arena, client, wanted->id, artifact, wanted->output, &place,
                              error)) < 0)
        return -1;
    output_note(cli, "%s: %s", place, output_bytes(cli->arena, (int64_t)artifact->size));
    return 0;
}

/* Before anything is asked for. */
static int check_output(const struct fetch_options *wanted, struct error *error)
{
    const struct results_target target = {.address = wanted->output};
    if (place_is_address(text_of(wanted->output)))
        return results_check(&target, error) == 0 ? 0 : error_wrap(error, "--output");
    return mkdir(wanted->output, 0755) < 0 && errno != EEXIST
               ? error_set_errno(error, errno, "make folder \"%.150s\"", wanted->output)
               : 0;
}

static int run_fetch(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct fetch_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct json_array artifacts;
    struct text json;
    if (check_output(wanted, error) < 0 || cli_connect(cli, true, &client, error) < 0 ||
        job_results_list(cli, client, wanted->id, &artifacts, &json, error) < 0)
        return -1;
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
    if (wanted->names.count == 0)
        job_results_note_left_out(cli, client, wanted->id, &artifacts);
    if (cli->common.json)
        output_json(json);
    return 0;
}

const struct command command_job_fetch = {
    .name = "job fetch",
    .summary = "Fetches what a job left: the trained model and its card.",
    .details =
        "Files keep the folders that they lay in. What a program left and could not be kept is "
        "named, with the reason. "
        "With -o s3://bucket/folder or hdfs://namenode/folder the files are put there, with the "
        "credentials of the environment (AWS_ACCESS_KEY_ID ..., HADOOP_USER_NAME); one of "
        "that name is replaced.",
    .example = "souk job fetch 7 -o model",
    COMMAND_OPTIONS(fetch_options, fetch_options),
    .run = run_fetch,
};
