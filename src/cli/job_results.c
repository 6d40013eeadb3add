#include "cli/job_results.h"

#include "base/scope.h"
#include "cli/output.h"
#include "client/artifact.h"
#include "runtime/result_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LISTED_MAX = 10000, NOTED_LINES_MAX = 10, NOTED_BYTES_MAX = 8 << 10, TAIL_BYTES = 2000 };

int job_results_list(const struct cli *cli, struct client *client, uint64_t job,
                     struct json_array *out_artifacts, struct text *out_json, struct error *error)
{
    const char *path = arena_format(cli->arena, "/v1/jobs/%" PRIu64 "/artifacts", job);
    return client_list(client, cli->arena, path, &api_artifact_page_schema, LISTED_MAX,
                       out_artifacts, out_json, error);
}

const char *job_results_count(struct arena *arena, const struct json_array *artifacts)
{
    const struct api_artifact *items = artifacts->items;
    size_t count = 0;
    uint64_t size = 0;
    for (size_t i = 0; i < artifacts->count; i++)
        if (!result_name_is_left_out(items[i].name)) {
            count++;
            size += items[i].size;
        }
    if (count == 0)
        return NULL;
    return arena_format(arena, "%zu file%s, %s", count, count == 1 ? "" : "s",
                        output_bytes(arena, size < INT64_MAX ? (int64_t)size : INT64_MAX));
}

void job_results_note_tail(const struct cli *cli, struct client *client, uint64_t job,
                           const struct api_lease *lease)
{
    struct error error;
    struct api_log_part part = {0};
    struct client_answer answer = {&api_log_part_schema, &part, {0}};
    const char *path =
        arena_format(cli->arena, "/v1/jobs/%" PRIu64 "/logs?lease=%" PRIu64 "&last=%d", job,
                     lease->id, TAIL_BYTES);
    if (client_get(client, cli->arena, path, &answer, &error) < 0) {
        output_note(cli,
                    "Its log cannot be read now (%s): souk job logs %" PRIu64 " --rank %" PRIu64,
                    error.message, job, lease->rank);
        return;
    }
    const struct text text = text_trim(part.text);
    output_note(cli,
                "%s, rank %" PRIu64 " on %s, all of it: souk job logs %" PRIu64 " --rank %" PRIu64,
                text.size ? "The last lines" : "It printed nothing", lease->rank,
                output_text(cli->arena, lease->machine_name), job, lease->rank);
    if (text.size && !cli->common.quiet) {
        output_foreign(stderr, text);
        fputc('\n', stderr);
    }
}

static int note_list(const struct cli *cli, struct client *client, uint64_t job,
                     const struct api_artifact *list, struct error *error)
{
    char bytes[NOTED_BYTES_MAX];
    AUTO_FD int fd = memfd_create("left-out", MFD_CLOEXEC);
    if (fd < 0 || artifact_download(cli->arena, client, job, list, fd, error) < 0)
        return -1;
    const ssize_t size = pread(fd, bytes, sizeof(bytes), 0);
    struct text line, rest = {bytes, size > 0 ? (size_t)size : 0};
    size_t count = 0;
    while (count < NOTED_LINES_MAX && text_cut(rest, '\n', &line, &rest)) {
        output_note(cli, "Left out: %s", output_text(cli->arena, line));
        count++;
    }
    if (rest.size > 0)
        output_note(cli, "... and more: souk job fetch %" PRIu64 " %s", job,
                    output_text(cli->arena, list->name));
    return 0;
}

void job_results_note_left_out(const struct cli *cli, struct client *client, uint64_t job,
                               const struct json_array *artifacts)
{
    const struct api_artifact *items = artifacts->items;
    for (size_t i = 0; i < artifacts->count; i++) {
        struct error error = {0};
        if (result_name_is_left_out(items[i].name) &&
            note_list(cli, client, job, &items[i], &error) < 0)
            output_note(cli, "Files were left out; which, is in %s, which cannot be read: %s",
                        output_text(cli->arena, items[i].name), error.message);
    }
}
