#include "cli/run_follow.h"

#include "base/assert.h"
#include "base/map.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/rank_log.h"
#include "client/direct.h"
#include "client/follow.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { QUIET_MS = 5000, WORDS_SIZE = 400 };

struct run {
    struct cli *cli;
    struct client *client;
    struct rank_log *log;
    uint64_t job;
    uint64_t last_lease; /* the newest seen */
    bool is_relayed;     /* the machines are not dialled */
    bool is_aside;       /* standard output is not for this */

    /* While it is followed. */
    struct http_client *http;
    struct direct *direct; /* NULL: not wanted */
    struct map fills;      /* struct fill by lease, owned */
    size_t direct_count;   /* leases that were read so */
    struct loop_timer *quiet;
    char waits_for[WORDS_SIZE]; /* as the job was last seen; empty: it runs */
    char said[WORDS_SIZE];      /* of that */
};

/* What is missing of a rank's log, asked for. */
struct fill {
    struct run *run;
    uint64_t lease, rank;
    struct http_transfer *transfer;
};

/* The lease of the same rank before it; NULL: it is the first. */
static const struct api_lease *predecessor(const struct api_job *job, const struct api_lease *lease)
{
    const struct api_lease *leases = job->leases.items, *found = NULL;
    for (size_t i = 0; i < job->leases.count; i++)
        if (leases[i].rank == lease->rank && leases[i].id < lease->id &&
            (!found || leases[i].id > found->id))
            found = &leases[i];
    return found;
}

static void fill_begin(struct run *run, uint64_t lease, uint64_t rank);

static bool take_part(const struct fill *fill, const struct http_response *response)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct api_log_part part = {0};
    struct error ignored; /* it is asked for again with the next part that comes */
    if (!response || response->status != 200 ||
        json_read(arena, buffer_text(&response->body), &api_log_part_schema, &part, &ignored) < 0 ||
        part.text.size == 0)
        return false;
    const struct rank_log_text text = {part.offset, part.next_offset, part.text};
    return rank_log_take_text(fill->run->log, fill->lease, fill->rank, &text);
}

static void fill_on_answer(void *context, struct http_response *response,
                           const struct error *reason)
{
    struct fill *fill = context;
    struct run *run = fill->run;
    const uint64_t lease = fill->lease, rank = fill->rank;
    (void)reason;
    const bool has_more = take_part(fill, response);
    map_remove(&run->fills, lease);
    free(fill);
    if (has_more)
        fill_begin(run, lease, rank);
}

/* Fetches the rest of one lease's log in the background. The rank may have a newer lease. */
static void fill_begin(struct run *run, uint64_t lease, uint64_t rank)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct client_call call;
    struct error ignored;
    if (map_get(&run->fills, lease))
        return;
    const char *path =
        arena_format(arena, "/v1/jobs/%" PRIu64 "/logs?lease=%" PRIu64 "&offset=%" PRIu64, run->job,
                     lease, rank_log_next(run->log, lease));
    struct fill *fill = calloc(1, sizeof(*fill));
    ASSERT(fill);
    *fill = (struct fill){.run = run, .lease = lease, .rank = rank};
    if (client_prepare(run->client, arena, path, &call, &ignored) < 0 ||
        http_client_start(run->http, &call.options, fill_on_answer, fill, &fill->transfer,
                          &ignored) < 0) {
        free(fill);
        return;
    }
    map_put(&run->fills, lease, fill);
}

/* ---- What it waits for ----------------------------------------------------------------------- */

static void note_wait(struct run *run, const struct api_job *job)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct api_lease *leases = job->leases.items;
    run->waits_for[0] = '\0';
    if (text_is(job->state, "pending")) {
        snprintf(run->waits_for, WORDS_SIZE, "Job %" PRIu64 " waits%s%s", run->job,
                 job->reason.size ? ": " : "", output_text(arena, job->reason));
        return;
    }
    for (size_t i = 0; i < job->leases.count && !run->waits_for[0]; i++) {
        const struct api_lease *lease = &leases[i];
        const bool is_held = text_is(lease->yield, "frozen") || text_is(lease->yield, "paused") ||
                             text_is(lease->yield, "paused_remotely");
        if (text_is(lease->state, "ended") || !(is_held || lease->is_unreachable))
            continue;
        snprintf(run->waits_for, WORDS_SIZE, "rank %" PRIu64 " on \"%s\" %s", lease->rank,
                 output_text(arena, lease->machine_name),
                 is_held ? "is held still: the machine's owner needs it"
                         : "does not answer the market");
    }
}

/* Nothing came for a while: then why, once for each reason. */
static void on_quiet(void *context)
{
    struct run *run = context;
    if (run->waits_for[0] && strcmp(run->waits_for, run->said) != 0)
        output_note(run->cli, "%s", run->waits_for);
    memcpy(run->said, run->waits_for, WORDS_SIZE);
    loop_timer_start(run->quiet, QUIET_MS);
}

/* ---- Following ------------------------------------------------------------------------------- */

/* A rank that was moved begins anew: what it says from then on is another run's. */
static void on_job(void *context, const struct api_job *job)
{
    struct run *run = context;
    const struct api_lease *leases = job->leases.items;
    uint64_t newest = run->last_lease;
    for (size_t i = 0; i < job->leases.count; i++) {
        const struct api_lease *lease = &leases[i], *before = predecessor(job, lease);
        newest = lease->id > newest ? lease->id : newest;
        if (lease->id <= run->last_lease || !before)
            continue;
        output_note(run->cli, "rank %" PRIu64 " on \"%s\" was %s%s%s; it starts again on \"%s\".",
                    lease->rank, output_text(run->cli->arena, before->machine_name),
                    output_text(run->cli->arena, before->outcome), before->reason.size ? ": " : "",
                    output_text(run->cli->arena, before->reason),
                    output_text(run->cli->arena, lease->machine_name));
    }
    run->last_lease = newest;
    note_wait(run, job);
    for (size_t i = 0; i < job->leases.count; i++)
        if (rank_log_is_waiting(run->log, leases[i].id))
            fill_begin(run, leases[i].id, leases[i].rank);
    if (run->direct)
        direct_set_job(run->direct, job);
}

/* A rank may have printed its last line while we were disconnected: ask for it. */
static void on_stream(void *context, const struct api_job *job)
{
    struct run *run = context;
    const struct api_lease *leases = job->leases.items;
    for (size_t i = 0; i < job->leases.count; i++)
        if (!text_is(leases[i].state, "ended"))
            fill_begin(run, leases[i].id, leases[i].rank);
}

/* Brings one rank's log up to date; what cannot be had now comes later. */
static void fetch_rest(struct run *run, uint64_t lease, uint64_t rank)
{
    for (;;) {
        AUTO(arena) struct arena *arena = arena_new(0);
        struct api_log_part part = {0};
        struct client_answer answer = {&api_log_part_schema, &part, {0}};
        const uint64_t offset = rank_log_next(run->log, lease);
        const char *path =
            arena_format(arena, "/v1/jobs/%" PRIu64 "/logs?rank=%" PRIu64 "&offset=%" PRIu64,
                         run->job, rank, offset);
        struct error error;
        if (client_get(run->client, arena, path, &answer, &error) < 0) {
            output_note(run->cli, "rank %" PRIu64 ": %s", rank, error.message);
            return;
        }
        if (part.text.size == 0)
            return;
        const struct rank_log_text text = {offset, part.next_offset, part.text};
        rank_log_take_text(run->log, lease, rank, &text);
    }
}

static void on_log(void *context, const struct api_event *event)
{
    struct run *run = context;
    uint64_t rank = 0;
    struct error error;
    const struct rank_log_text text = {event->offset, event->next_offset, event->text};
    loop_timer_start(run->quiet, QUIET_MS);
    if (text_parse_u64(event->rank, &rank, &error) == 0 &&
        !rank_log_take_text(run->log, event->lease, rank, &text))
        fill_begin(run, event->lease, rank);
}

static uint64_t next_of(void *context, uint64_t lease)
{
    return rank_log_next(((const struct run *)context)->log, lease);
}

static bool on_direct(void *context, uint64_t lease, uint64_t rank, uint64_t offset,
                      struct text bytes)
{
    struct run *run = context;
    loop_timer_start(run->quiet, QUIET_MS);
    const bool is_taken = rank_log_take_ahead(run->log, lease, rank, offset, bytes);
    if (rank_log_is_waiting(run->log, lease))
        fill_begin(run, lease, rank);
    return is_taken;
}

static void on_begin(void *context, struct loop *loop, struct http_client *http)
{
    struct run *run = context;
    run->http = http;
    run->quiet = loop_timer_new(loop, on_quiet, run);
    loop_timer_start(run->quiet, QUIET_MS);
    const struct direct_options options = {.client = run->client,
                                           .loop = loop,
                                           .http = http,
                                           .job = run->job,
                                           .next = next_of,
                                           .on_bytes = on_direct,
                                           .context = run};
    if (!run->is_relayed)
        run->direct = direct_new(&options);
}

static void on_end(void *context)
{
    struct run *run = context;
    run->direct_count = run->direct ? direct_count(run->direct) : 0;
    direct_free(TAKE(run->direct));
    loop_timer_free(TAKE(run->quiet));
    for (size_t i = 0; i < run->fills.count; i++) {
        struct fill *fill = run->fills.entries[i].value;
        http_transfer_cancel(fill->transfer);
        free(fill);
    }
    map_done(&run->fills);
}

static bool on_interrupt(void *context)
{
    const struct run *run = context;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct api_job job = api_job_unknown();
    struct client_answer answer = {&api_job_schema, &job, {0}};
    struct error error;
    if (client_post(run->client, arena,
                    arena_format(arena, "/v1/jobs/%" PRIu64 "/cancel", run->job), (struct text){0},
                    &answer, &error) < 0) {
        output_note(run->cli, "Job %" PRIu64 " goes on: %s", run->job, error.message);
        return false;
    }
    output_note(run->cli, "Stopping job %" PRIu64 "; Ctrl-C again to leave it to the market.",
                run->job);
    return true;
}

/* The newest of each rank has the rest of what that rank said. */
static void print_rest(struct run *run, const struct api_job *job)
{
    const struct api_lease *leases = job->leases.items;
    for (size_t i = 0; i < job->leases.count; i++) {
        bool is_newest = true;
        for (size_t k = i + 1; k < job->leases.count; k++)
            is_newest = is_newest && leases[k].rank != leases[i].rank;
        if (!is_newest)
            continue;
        rank_log_add(run->log, leases[i].id, leases[i].rank);
        fetch_rest(run, leases[i].id, leases[i].rank);
    }
    rank_log_finish(run->log);
}

static int finish(struct run *run, const struct follow_result *result)
{
    struct cli *cli = run->cli;
    if (result->end != FOLLOW_JOB_ENDED) {
        output_note(cli, "Job %" PRIu64 " ends without you. See it: souk job wait %" PRIu64,
                    run->job, run->job);
        return 128 + SIGINT;
    }
    const int exit_code = job_view_exit_code(&result->job);
    print_rest(run, &result->job);
    if (cli->common.json && !run->is_aside) {
        output_json(result->json);
        return exit_code;
    }
    const char *state = output_text(cli->arena, result->job.state);
    const char *reason = output_text(cli->arena, result->job.reason);
    const char *direct =
        run->direct_count == 0 ? ""
        : run->direct_count == 1
            ? "; 1 rank read directly"
            : arena_format(cli->arena, "; %zu ranks read directly", run->direct_count);
    const char *end = arena_format(
        cli->arena, "Job %" PRIu64 " %s%s%s; it cost %s (souk job show %" PRIu64 ")%s.", run->job,
        state, reason[0] ? ": " : "", reason, output_amount(cli, result->job.spent_micro), run->job,
        direct);
    if (exit_code)
        output_problem(cli, "%s", end);
    else
        output_note(cli, "%s", end);
    return exit_code;
}

int run_follow(struct cli *cli, struct client *client, const struct run_follow_options *wanted,
               struct error *error)
{
    FILE *file = cli->common.json || wanted->is_aside ? stderr : stdout;
    const struct rank_log_options shown = {
        .file = file,
        .has_color = output_has_color(cli, file),
        .is_plain = isatty(fileno(file)),
        .is_single = wanted->is_single,
    };
    AUTO(rank_log) struct rank_log *log = rank_log_new(&shown);
    struct run run = {
        .cli = cli,
        .client = client,
        .log = log,
        .job = wanted->job,
        .is_relayed = wanted->is_relayed,
        .is_aside = wanted->is_aside,
    };
    map_init(&run.fills);
    const struct follow_options options = {.client = client,
                                           .job = wanted->job,
                                           .on_log = on_log,
                                           .on_stream = on_stream,
                                           .on_job = on_job,
                                           .on_begin = on_begin,
                                           .on_end = on_end,
                                           .on_interrupt = on_interrupt,
                                           .context = &run};
    struct follow_result result;
    if (job_follow(cli->arena, &options, &result, error) < 0)
        return -1;
    return finish(&run, &result);
}
