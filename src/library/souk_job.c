/* A job on its way into a market, and what it left on its way back. */
#include "base/json.h"
#include "client/api.h"
#include "client/artifact.h"
#include "client/secrets.h"
#include "client/submission.h"
#include "client/upload.h"
#include "library/handle.h"
#include "runtime/job_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ARTIFACTS_MAX = 10000, JSON_MAX = 4 << 20, MISTAKES_MAX = 256 << 10 };

/* ---- Reading ----------------------------------------------------------------------------------
 */

/* Adds the mistake of one line if it and what ends the JSON have room. */
static bool add_mistake(struct buffer *json, struct text line, const char *name)
{
    struct buffer one AUTO_BUFFER;
    buffer_init(&one, SOUK_ERROR_PROBLEM_SIZE);
    struct json_writer writer;
    const struct job_mistake mistake = job_mistake_read(line, name);
    json_writer_init(&writer, &one);
    job_mistake_write(&writer, &mistake);
    const bool is_first = json->data[json->size - 1] == '[';
    if (one.is_overflowed || json->size + one.size + sizeof(",]}") > json->size_max)
        return false;
    buffer_append_string(json, is_first ? "" : ",");
    buffer_append_text(json, buffer_text(&one));
    return true;
}

static void fill_mistakes(struct souk_error *out, struct text first, struct text rest,
                          const char *name)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, sizeof(out->problem));
    buffer_append_string(&json, "{\"mistakes\":[");
    bool has_room = add_mistake(&json, first, name);
    for (struct text line; has_room && text_cut(rest, '\n', &line, &rest);)
        has_room = add_mistake(&json, line, name);
    buffer_append_string(&json, "]}");
    memcpy(out->problem, buffer_string(&json), json.size + 1);
}

static int read_job(struct arena *arena, const struct souk_job_text *given,
                    struct job_spec *out_spec, struct souk_error *out_error)
{
    struct souk_job_text job;
    struct error error;
    handle_options(&job, sizeof(job), given);
    if (!job.yaml && !job.name)
        return handle_fail_with(out_error, SOUK_INVALID, "neither a job nor a file is named");
    const char *name = job.name ? job.name : "job";
    struct buffer more AUTO_BUFFER;
    buffer_init(&more, MISTAKES_MAX);
    const int result = job.yaml
                           ? job_file_parse(arena, text_of(job.yaml), name, out_spec, &more, &error)
                           : job_file_read(arena, name, out_spec, &more, &error);
    if (result == 0)
        return 0;
    const struct job_mistake mistake = job_mistake_read(text_of(error.message), name);
    handle_fail(out_error, &error);
    if (out_error) {
        out_error->line = (int32_t)mistake.line;
        out_error->column = (int32_t)mistake.column;
        if (more.size)
            fill_mistakes(out_error, text_of(error.message), buffer_text(&more), name);
    }
    return -1;
}

int souk_job_validate(const struct souk_job_text *job, char **out_yaml,
                      struct souk_error *out_error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct job_spec spec;
    struct error error;
    struct buffer yaml AUTO_BUFFER;
    buffer_init(&yaml, 2 * (size_t)JOB_SPEC_SIZE_MAX);
    if (read_job(arena, job, &spec, out_error) < 0)
        return -1;
    if (!out_yaml)
        return 0;
    if (job_file_write(arena, &spec, &yaml, &error) < 0 || buffer_check(&yaml, &error) < 0)
        return handle_fail(out_error, &error);
    *out_yaml = handle_text(buffer_text(&yaml));
    return 0;
}

/* ---- Sending ----------------------------------------------------------------------------------
 */

int souk_client_quote(struct souk_client *client, const struct souk_job_text *job, char **out_json,
                      struct souk_error *out_error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    AUTO(client) struct client *own = NULL;
    struct job_spec spec;
    struct api_quote quote;
    struct text json;
    struct error error;
    if (read_job(arena, job, &spec, out_error) < 0)
        return -1;
    if (client_clone(client->client, &own, &error) < 0)
        return handle_fail(out_error, &error);
    if (submission_quote(arena, own, &spec, &quote, &json, &error) < 0)
        return handle_fail_request(out_error, &error, own);
    *out_json = handle_text(json);
    return 0;
}

static bool is_stopped(const volatile int32_t *stop)
{
    return stop && *stop != 0;
}

static void fill_stoppable(struct souk_error *out, const struct error *error,
                           const struct client *client, const volatile int32_t *stop)
{
    if (is_stopped(stop))
        handle_fill_with(out, SOUK_STOPPED, "stopped by the caller");
    else
        handle_fill_request(out, error, client);
}

/* What would be refused anyway is refused before anything is sent. */
static int submit(struct arena *arena, struct client *client, struct job_spec *spec,
                  const struct submission_options *options, struct submission *out_submission,
                  struct error *error)
{
    struct api_quote quote;
    struct text json;
    const bool needs_data = !job_spec_is_command(spec) && spec->input_count == 0;
    if ((needs_data && upload_check_data(spec, options->dataset_dir, error) < 0) ||
        (options->resume && upload_check_checkpoint(options->resume, spec, error) < 0) ||
        secrets_fill(arena, spec, NULL, 0, error) < 0 || submission_check(spec, error) < 0 ||
        submission_quote(arena, client, spec, &quote, &json, error) < 0 ||
        submission_check_money(spec, &quote, "credits", error) < 0)
        return -1;
    return submission_send(arena, client, spec, options, out_submission, error);
}

int souk_client_submit(struct souk_client *client, const struct souk_job_text *job,
                       const struct souk_submit_options *options, uint64_t *out_job,
                       struct souk_error *out_error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    AUTO(client) struct client *own = NULL;
    struct souk_submit_options wanted;
    struct job_spec spec;
    struct error error = {0};
    handle_options(&wanted, sizeof(wanted), options);
    if (read_job(arena, job, &spec, out_error) < 0)
        return -1;
    if (client_clone_stoppable(client->client, wanted.stop, &own, &error) < 0)
        return handle_fail(out_error, &error);
    const struct submission_options sending = {.dataset_dir = wanted.dataset_dir,
                                               .resume = wanted.resume,
                                               .on_note = wanted.on_note,
                                               .context = wanted.context,
                                               .leaves_signals = true,
                                               .stop = wanted.stop};
    struct submission submission AUTO_SUBMISSION = {0};
    if (is_stopped(wanted.stop) || submit(arena, own, &spec, &sending, &submission, &error) < 0) {
        fill_stoppable(out_error, &error, own, wanted.stop);
        return -1;
    }
    *out_job = submission.job;
    return 0;
}

/* ---- Fetching ---------------------------------------------------------------------------------
 */

static int fetch_all(struct arena *arena, struct client *client, uint64_t job,
                     const struct souk_fetch_options *wanted, struct json_writer *paths,
                     struct error *error)
{
    const char *folder = wanted->folder ? wanted->folder : ".";
    struct json_array artifacts;
    struct text json;
    size_t count = 0;
    if (client_list(client, arena, arena_format(arena, "/v1/jobs/%" PRIu64 "/artifacts", job),
                    &api_artifact_page_schema, ARTIFACTS_MAX, &artifacts, &json, error) < 0)
        return -1;
    if (mkdir(folder, 0755) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "make folder \"%.150s\"", folder);
    for (size_t i = 0; i < artifacts.count; i++) {
        const struct api_artifact *artifact = (const struct api_artifact *)artifacts.items + i;
        const char *path;
        if (wanted->name && !text_equal(artifact->name, text_of(wanted->name)))
            continue;
        if (artifact_fetch(arena, client, job, artifact, folder, &path, error) < 0)
            return -1;
        json_string(paths, path);
        count++;
    }
    return count ? 0
                 : error_set(error, ERROR_NOT_FOUND, "job %" PRIu64 " has left %s", job,
                             artifacts.count ? "no file of that name" : "no files");
}

int souk_client_fetch(struct souk_client *client, uint64_t job,
                      const struct souk_fetch_options *options, char **out_json,
                      struct souk_error *out_error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    AUTO(client) struct client *own = NULL;
    struct souk_fetch_options wanted;
    struct error error = {0};
    struct buffer json AUTO_BUFFER;
    struct json_writer paths;
    handle_options(&wanted, sizeof(wanted), options);
    buffer_init(&json, JSON_MAX);
    json_writer_init(&paths, &json);
    if (client_clone_stoppable(client->client, wanted.stop, &own, &error) < 0)
        return handle_fail(out_error, &error);
    json_array_begin(&paths);
    if (is_stopped(wanted.stop) || fetch_all(arena, own, job, &wanted, &paths, &error) < 0) {
        fill_stoppable(out_error, &error, own, wanted.stop);
        return -1;
    }
    json_array_end(&paths);
    if (buffer_check(&json, &error) < 0)
        return handle_fail(out_error, &error);
    if (out_json)
        *out_json = handle_text(buffer_text(&json));
    return 0;
}
