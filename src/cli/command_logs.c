/*
 * souk job logs: what a rank of a job wrote.
 *
 * A rank that was given anew has several leases, each with a log of its own: they are printed one
 * after the other, and who follows goes on with the successor.
 */
#include "base/json.h"
#include "cli/connect.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "client/api.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct logs_options {
    uint64_t id;
    const char *rank;
    uint64_t lease; /* 0: all of the rank */
    bool is_following;
};

static const struct option logs_options[] = {
    {"id", OPTION_U64, offsetof(struct logs_options, id), "JOB", .help = "The job's number.",
     .minimum = 1, .maximum = INT64_MAX, .is_positional = true, .is_required = true},
    {"rank", OPTION_TEXT, offsetof(struct logs_options, rank), "RANK", "0",
     "Whose log: a worker's rank, server (the lead), server-1 (of the second range), replica, or "
     "all, one after the other."},
    {"lease", OPTION_U64, offsetof(struct logs_options, lease), "LEASE",
     .help = "Only this lease's, whatever its rank.", .minimum = 1, .maximum = INT64_MAX},
    {"follow", OPTION_FLAG, offsetof(struct logs_options, is_following),
     .help = "Go on until the log ends.", .letter = 'f'},
};

enum { FOLLOW_PERIOD_MS = 500, FOLLOW_AWAY_MS = 120000, LOGS_SIZE_MAX = 64 << 20 };

struct logs {
    const struct cli *cli;
    struct client *client;
    const struct logs_options *wanted;
    struct buffer all; /* with --json the parts are gathered, and printed as one value at the end */
    struct api_log_part last;
    uint64_t lease; /* the last that was looked at; 0: none yet */
    bool has_left;  /* nobody reads any more */
    int away_count;
};

static void pause_ms(long ms)
{
    const struct timespec span = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&span, NULL);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static int print_part(struct logs *logs, const struct api_log_part *part, struct error *error)
{
    logs->last = *part;
    logs->last.text = (struct text){0}; /* it lives no longer than its part */
    if (logs->cli->common.json) {
        buffer_append_text(&logs->all, part->text);
        return buffer_check(&logs->all, error);
    }
    if (isatty(STDOUT_FILENO))
        output_foreign(stdout, part->text);
    else
        fwrite(part->text.data, 1, part->text.size, stdout);
    logs->has_left = fflush(stdout) != 0;
    return logs->has_left ? output_finish(error) : 0;
}

/* While it follows, a market that restarts is waited for: 0 to ask again. */
static int wait_for_market(struct logs *logs, const struct error *reason)
{
    if (!logs->wanted->is_following || reason->code != ERROR_UNAVAILABLE ||
        ++logs->away_count > FOLLOW_AWAY_MS / FOLLOW_PERIOD_MS)
        return -1;
    pause_ms(FOLLOW_PERIOD_MS);
    return 0;
}

/* All there is of one lease's log; of one that is followed, to its end. */
static int print_lease(struct logs *logs, uint64_t lease, bool is_followed, struct error *error)
{
    uint64_t offset = 0;
    for (;;) {
        AUTO(arena) struct arena *arena = arena_new(0);
        struct api_log_part part = {0};
        struct client_answer answer = {&api_log_part_schema, &part, {0}};
        const char *path =
            arena_format(arena, "/v1/jobs/%" PRIu64 "/logs?lease=%" PRIu64 "&offset=%" PRIu64,
                         logs->wanted->id, lease, offset);
        if (client_get(logs->client, arena, path, &answer, error) < 0) {
            if (wait_for_market(logs, error) < 0)
                return -1;
            continue;
        }
        logs->away_count = 0;
        if (print_part(logs, &part, error) < 0)
            return -1;
        const bool has_moved = part.next_offset > offset;
        offset = part.next_offset;
        if (logs->has_left || part.is_end || (!has_moved && !is_followed))
            return 0;
        /* The market keeps logs to be read by offset: asking again is how to follow one. */
        if (!has_moved)
            pause_ms(FOLLOW_PERIOD_MS);
    }
}

/* ---- Leases ---------------------------------------------------------------------------------- */

static bool wants_all(const struct logs_options *wanted)
{
    return strcmp(wanted->rank, "all") == 0;
}

static bool is_wanted(const struct logs *logs, const struct api_lease *lease)
{
    if (logs->wanted->lease > 0)
        return lease->id == logs->wanted->lease;
    return wants_all(logs->wanted) || job_view_has_rank(lease, text_of(logs->wanted->rank));
}

/* The oldest of those wanted that were not looked at yet; NULL: none. */
static const struct api_lease *next_lease(const struct logs *logs, const struct api_job *job)
{
    const struct api_lease *leases = job->leases.items, *next = NULL;
    for (size_t i = 0; i < job->leases.count; i++)
        if (is_wanted(logs, &leases[i]) && leases[i].id > logs->lease &&
            (!next || leases[i].id < next->id))
            next = &leases[i];
    return next;
}

static size_t count_leases(const struct logs *logs, const struct api_job *job)
{
    const struct api_lease *leases = job->leases.items;
    size_t count = 0;
    for (size_t i = 0; i < job->leases.count; i++)
        count += is_wanted(logs, &leases[i]);
    return count;
}

/* Prints what the leases wrote that the job has by now. */
static int print_leases(struct logs *logs, const struct api_job *job, struct error *error)
{
    const struct cli *cli = logs->cli;
    const struct api_lease *lease = next_lease(logs, job);
    while (lease && !logs->has_left) {
        const bool has_others = count_leases(logs, job) > 1;
        logs->lease = lease->id;
        const struct api_lease *next = next_lease(logs, job);
        if (has_others)
            output_note(cli, "Lease %" PRIu64 "%s%s on %s, %s%s%s:", lease->id,
                        wants_all(logs->wanted) ? ", " : "",
                        wants_all(logs->wanted) ? job_view_role(cli->arena, lease) : "",
                        output_text(cli->arena, lease->machine_name),
                        output_text(cli->arena,
                                    text_is(lease->state, "ended") ? lease->outcome : lease->state),
                        lease->reason.size ? ": " : "", output_text(cli->arena, lease->reason));
        if (print_lease(logs, lease->id, logs->wanted->is_following && !next, error) < 0)
            return -1;
        lease = next;
    }
    return 0;
}

static int check_found(const struct logs *logs, const struct api_job *job, struct error *error)
{
    if (job->leases.count == 0)
        return error_set(error, ERROR_NOT_FOUND, "this job has no leases yet, so there is no log");
    if (count_leases(logs, job) > 0)
        return 0;
    if (logs->wanted->lease > 0)
        return error_set(error, ERROR_NOT_FOUND, "this job has no lease %" PRIu64,
                         logs->wanted->lease);
    return error_set(error, ERROR_NOT_FOUND,
                     "this job has no such rank: give a worker's number, server, server-1, "
                     "replica or all");
}

/* Whether a successor may come; `job` has no lease that is news. */
static bool may_go_on(const struct logs *logs, const struct api_job *job)
{
    const struct api_lease *leases = job->leases.items;
    if (!logs->wanted->is_following || logs->wanted->lease > 0 || api_job_is_final(job->state))
        return false;
    for (size_t i = 0; i < job->leases.count; i++)
        if (leases[i].id == logs->lease)
            return !text_is(leases[i].outcome, "succeeded");
    return true;
}

static int print_all(struct logs *logs, struct error *error)
{
    while (!logs->has_left) {
        AUTO(arena) struct arena *arena = arena_new(0);
        struct api_job job = api_job_unknown();
        struct client_answer answer = {&api_job_schema, &job, {0}};
        const char *path = arena_format(arena, "/v1/jobs/%" PRIu64, logs->wanted->id);
        if (client_get(logs->client, arena, path, &answer, error) < 0) {
            if (wait_for_market(logs, error) < 0)
                return -1;
            continue;
        }
        logs->away_count = 0;
        if (check_found(logs, &job, error) < 0)
            return -1;
        if (next_lease(logs, &job)) {
            if (print_leases(logs, &job, error) < 0)
                return -1;
        } else if (may_go_on(logs, &job)) {
            pause_ms(FOLLOW_PERIOD_MS);
        } else {
            return 0;
        }
    }
    return 0;
}

static int finish_logs(struct logs *logs, struct error *error)
{
    if (!logs->cli->common.json)
        return 0;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, (size_t)8 * LOGS_SIZE_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_object_begin(&writer);
    json_field_u64(&writer, "lease", logs->lease);
    json_field_text(&writer, "text", buffer_text(&logs->all));
    json_field_u64(&writer, "next_offset", logs->last.next_offset);
    json_field_bool(&writer, "is_end", logs->last.is_end);
    json_object_end(&writer);
    if (buffer_check(&json, error) < 0)
        return -1;
    output_json(buffer_text(&json));
    return 0;
}

static int run_logs(void *context, const void *options, struct error *error)
{
    struct logs logs = {.cli = context, .wanted = options};
    AUTO(client) struct client *client = NULL;
    if (wants_all(logs.wanted) && logs.wanted->is_following)
        return error_set(error, ERROR_INVALID, "--follow goes with one rank, not with all");
    if (cli_connect(context, true, &client, error) < 0)
        return -1;
    logs.client = client;
    buffer_init(&logs.all, LOGS_SIZE_MAX);
    int result = print_all(&logs, error);
    if (result == 0)
        result = finish_logs(&logs, error);
    buffer_done(&logs.all);
    return result;
}

const struct command command_job_logs = {
    .name = "job logs",
    .summary = "Prints what a worker or the parameter server of a job wrote.",
    .details = "A rank that was given to another machine has several leases: their logs come one "
               "after the other, the oldest first, and -f goes on with a successor.",
    .example = "souk job logs 7 --rank server -f",
    COMMAND_OPTIONS(logs_options, logs_options),
    .run = run_logs,
};
