#include "client/follow.h"

#include "base/assert.h"
#include "client/sse.h"
#include "net/loop.h"
#include "runtime/job_spec.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { DRAW_MS = 200, ASK_MS = 5000, RETRY_MIN_MS = 250, RETRY_MAX_MS = 5000, AWAY_MS = 120000 };
enum { AWAY_TOLD_MS = 1000 };

struct follow {
    const struct follow_options *options;
    struct loop *loop;
    struct http_client *http;
    struct http_transfer *transfer; /* NULL while none runs */
    struct http_transfer *asking;   /* the same, for the job itself */
    bool is_ask_due;                /* once more after that */
    bool is_stream_new;             /* no event arrived yet */
    struct loop_signal *interrupt, *terminate;
    struct loop_timer *draw_timer, *ask_timer, *retry_timer, *timeout_timer;
    struct sse_reader sse;
    struct progress_view view;
    struct api_job job;
    struct text json;
    struct arena *arenas[2]; /* the job as asked last lies in arenas[0]; the other is reused */
    int64_t retry_ms;
    int64_t away_since_ns; /* 0: the market answers */
    int64_t away_since_ms; /* the same, UTC */
    bool has_told_away;
    enum follow_end end;
    struct error failure;
    bool has_failed;
    bool was_interrupted;
};

/* ---- The view ---------------------------------------------------------------------------------
 */

static void copy_words(char *out, size_t size, struct text text)
{
    snprintf(out, size, "%.*s", (int)(text.size < size ? text.size : size), text.data);
    text_make_plain(out);
}

static struct progress_lender *find_lender(struct progress_view *view, uint64_t lease)
{
    for (uint32_t i = 0; i < view->lender_count; i++)
        if (view->lenders[i].lease == lease)
            return &view->lenders[i];
    return NULL;
}

static void set_lender(struct progress_view *view, const struct api_lease *lease)
{
    struct progress_lender *lender = find_lender(view, lease->id);
    if (!lender) {
        if (view->lender_count == PROGRESS_LENDERS_MAX)
            return;
        lender = &view->lenders[view->lender_count++];
        *lender = (struct progress_lender){.lease = lease->id};
    }
    copy_words(lender->name, sizeof(lender->name), lease->machine_name);
    lender->is_server = text_equal(lease->role, TEXT("server"));
    lender->rank = lease->rank;
    lender->is_silent = lease->is_unreachable;
    lender->is_gone = text_equal(lease->outcome, TEXT("failed")) ||
                      text_equal(lease->outcome, TEXT("lost")) ||
                      text_equal(lease->outcome, TEXT("reclaimed"));
    lender->steps = lease->steps > lender->steps ? lease->steps : lender->steps;
    lender->samples = lease->samples > lender->samples ? lease->samples : lender->samples;
    lender->commits = lease->commits > lender->commits ? lease->commits : lender->commits;
    if (lease->steps_per_second > 0.0)
        lender->steps_per_second = lease->steps_per_second;
}

/* Of a rank's leases the next one is who took its place. */
static void set_successors(struct progress_view *view)
{
    for (uint32_t i = 0; i < view->lender_count; i++) {
        struct progress_lender *lender = &view->lenders[i], *next = NULL;
        for (uint32_t k = 0; k < view->lender_count && lender->is_gone; k++) {
            struct progress_lender *other = &view->lenders[k];
            if (other->is_server == lender->is_server && other->rank == lender->rank &&
                other->lease > lender->lease && (!next || other->lease < next->lease))
                next = other;
        }
        lender->has_successor = next != NULL;
        if (next)
            memcpy(next->after, lender->name, sizeof(next->after));
    }
}

static void set_expectations(struct progress_view *view, struct text spec_json)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct job_spec spec;
    struct error ignored;
    if (spec_json.size == 0 || job_spec_read(arena, spec_json, &spec, &ignored) < 0)
        return; /* a newer market's job: shown without expectations */
    view->expected_ms = job_spec_expected_run_ms(&spec);
    view->target_accuracy = spec.train.target.accuracy;
    view->target_loss = spec.train.target.loss;
    view->is_number = text_is(spec.train.predict, "number");
    view->min_ms = spec.train.target.min_time_ms;
}

void follow_view_set(struct progress_view *view, const struct api_job *job, int64_t now_ms)
{
    copy_words(view->name, sizeof(view->name), job->name);
    copy_words(view->state, sizeof(view->state), job->state);
    copy_words(view->reason, sizeof(view->reason), job->reason);
    if (job->started_ms)
        view->elapsed_ms = (job->ended_ms ? job->ended_ms : now_ms) - job->started_ms;
    if (isfinite(job->loss))
        view->loss = job->loss;
    if (isfinite(job->test_accuracy))
        view->test_accuracy = job->test_accuracy;
    view->spent_micro = job->spent_micro;
    view->held_micro = job->held_micro;
    if (view->expected_ms == 0)
        set_expectations(view, job->spec);
    const struct api_lease *leases = job->leases.items;
    for (size_t i = 0; i < job->leases.count; i++)
        set_lender(view, &leases[i]);
    set_successors(view);
}

/* ---- Asking the job itself --------------------------------------------------------------------
 */

static void stop_with(struct follow *follow, enum follow_end end)
{
    follow->end = end;
    loop_stop(follow->loop);
}

static void fail(struct follow *follow, const struct error *reason)
{
    follow->failure = *reason;
    follow->has_failed = true;
    loop_stop(follow->loop);
}

static void tell_reach(struct follow *follow, const char *reason)
{
    follow->has_told_away = reason != NULL;
    if (follow->options->on_reach)
        follow->options->on_reach(follow->options->context, follow->away_since_ms, reason);
}

static void set_reached(struct follow *follow)
{
    follow->away_since_ns = 0;
    if (follow->has_told_away)
        tell_reach(follow, NULL);
}

/* True when the market has been away too long. */
static bool is_away_too_long(struct follow *follow, const struct error *reason)
{
    const int64_t now_ns = clock_monotonic_ns(&clock_system);
    if (follow->away_since_ns == 0) {
        follow->away_since_ns = now_ns;
        follow->away_since_ms = clock_utc_ms(&clock_system);
    }
    if (!follow->has_told_away && now_ns - follow->away_since_ns >= AWAY_TOLD_MS * INT64_C(1000000))
        tell_reach(follow, reason->message);
    const int64_t away_ms = follow->options->away_ms ? follow->options->away_ms : AWAY_MS;
    return now_ns - follow->away_since_ns > away_ms * 1000000;
}

/* The answer lies in arenas[1]. */
static void take_job(struct follow *follow, const struct api_job *job, struct text json)
{
    struct arena *arena = follow->arenas[1];
    set_reached(follow);
    follow->arenas[1] = follow->arenas[0];
    follow->arenas[0] = arena;
    follow->job = *job;
    follow->json = json;
    if (follow->options->on_job)
        follow->options->on_job(follow->options->context, &follow->job);
    follow_view_set(&follow->view, job, clock_utc_ms(&clock_system));
    if (api_job_is_final(job->state))
        stop_with(follow, FOLLOW_JOB_ENDED);
}

static void not_told(struct follow *follow, const struct error *error)
{
    if (error->code != ERROR_UNAVAILABLE || is_away_too_long(follow, error))
        fail(follow, error);
}

static const char *job_path(const struct follow *follow, char out[64])
{
    snprintf(out, 64, "/v1/jobs/%" PRIu64, follow->options->job);
    return out;
}

/* Before the loop runs. */
static void ask_first(struct follow *follow)
{
    char path[64];
    struct api_job job = api_job_unknown();
    struct client_answer answer = {&api_job_schema, &job, {0}};
    struct error error;
    if (client_get(follow->options->client, follow->arenas[1], job_path(follow, path), &answer,
                   &error) < 0)
        not_told(follow, &error);
    else
        take_job(follow, &job, answer.json);
}

static int read_answer(struct follow *follow, const struct http_response *response,
                       const struct error *reason, struct api_job *out_job, struct text *out_json,
                       struct error *error)
{
    if (!response) {
        *error = *reason;
        return error_wrap(error, "the market at %s", client_server(follow->options->client));
    }
    if (client_check_status(response->status, buffer_text(&response->body), error) < 0)
        return -1;
    arena_clear(follow->arenas[1]);
    *out_json = arena_copy_text(follow->arenas[1], buffer_text(&response->body));
    if (json_read(follow->arenas[1], *out_json, &api_job_schema, out_job, error) == 0)
        return 0;
    error->code = ERROR_CORRUPT;
    return error_wrap(error, "the market's answer");
}

static void on_answer(void *context, struct http_response *response, const struct error *reason)
{
    struct follow *follow = context;
    struct api_job job = api_job_unknown();
    struct text json;
    struct error error;
    follow->asking = NULL;
    if (read_answer(follow, response, reason, &job, &json, &error) < 0)
        not_told(follow, &error);
    else
        take_job(follow, &job, json);
    if (follow->is_ask_due)
        loop_timer_start(follow->ask_timer, 0);
}

/* A market that does not answer keeps nobody from what comes from elsewhere. */
static void ask(struct follow *follow)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    char path[64];
    struct client_call call;
    struct error error;
    follow->is_ask_due = follow->asking != NULL;
    if (follow->asking)
        return;
    if (client_prepare(follow->options->client, arena, job_path(follow, path), &call, &error) < 0 ||
        http_client_start(follow->http, &call.options, on_answer, follow, &follow->asking, &error) <
            0)
        not_told(follow, &error);
}

/* ---- Events -----------------------------------------------------------------------------------
 */

static void take_metric(struct follow *follow, const struct api_event *event)
{
    struct progress_view *view = &follow->view;
    if (text_equal(event->role, TEXT("server"))) {
        if (isfinite(event->loss))
            view->loss = event->loss;
        if (isfinite(event->test_accuracy))
            view->test_accuracy = event->test_accuracy;
        return;
    }
    struct progress_lender *lender = find_lender(view, event->lease);
    if (!lender)
        return;
    lender->steps = event->steps;
    lender->samples = event->samples;
    lender->commits = event->commits;
    if (event->steps_per_second > 0.0)
        lender->steps_per_second = event->steps_per_second;
}

static void on_event(void *context, const char *name, struct text data)
{
    struct follow *follow = context;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct api_event event = api_event_unknown();
    struct error ignored;
    const bool is_log = !strcmp(name, "log");
    const struct json_schema *schema = is_log ? &api_log_event_schema : &api_event_schema;
    /* What cannot be read is left out: asking the job again makes up for it. */
    if (json_read(arena, data, schema, &event, &ignored) < 0 || event.job != follow->options->job)
        return;
    if (is_log) {
        if (follow->options->on_log)
            follow->options->on_log(follow->options->context, &event);
    } else if (!strcmp(name, "metric")) {
        take_metric(follow, &event);
        if (follow->options->on_metric)
            follow->options->on_metric(follow->options->context, &event);
    } else if (!strcmp(name, "bill")) {
        if (event.spent_micro >= 0)
            follow->view.spent_micro = event.spent_micro;
        follow->view.held_micro = event.held_micro;
    } else if (!strcmp(name, "state")) {
        loop_timer_start(follow->ask_timer, 0);
    }
}

static int on_chunk(void *context, struct text chunk)
{
    struct follow *follow = context;
    follow->retry_ms = RETRY_MIN_MS;
    set_reached(follow);
    if (follow->is_stream_new && follow->options->on_stream)
        follow->options->on_stream(follow->options->context, &follow->job);
    follow->is_stream_new = false;
    sse_reader_feed(&follow->sse, chunk);
    return 0;
}

static void on_stream_end(void *context, struct http_response *response, const struct error *reason)
{
    struct follow *follow = context;
    follow->transfer = NULL;
    struct error error;
    if (response &&
        client_check_status(response->status, buffer_text(&response->body), &error) < 0 &&
        error.code != ERROR_UNAVAILABLE) {
        fail(follow, &error);
        return;
    }
    if (reason && is_away_too_long(follow, reason)) {
        fail(follow, reason);
        return;
    }
    loop_timer_start(follow->retry_timer, follow->retry_ms);
    follow->retry_ms = follow->retry_ms * 2 < RETRY_MAX_MS ? follow->retry_ms * 2 : RETRY_MAX_MS;
}

static void start_stream(struct follow *follow)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    char path[64];
    snprintf(path, sizeof(path), "/v1/jobs/%" PRIu64 "/events", follow->options->job);
    struct client_call call;
    struct error error;
    if (client_prepare(follow->options->client, arena, path, &call, &error) < 0) {
        fail(follow, &error);
        return;
    }
    call.options.timeout_ms = -1;
    call.options.idle_timeout_ms = 30000; /* the market sends a comment every 10 s */
    call.options.on_chunk = on_chunk;
    call.options.context = follow;
    sse_reader_done(&follow->sse);
    sse_reader_init(&follow->sse, on_event, follow);
    follow->is_stream_new = true;
    if (http_client_start(follow->http, &call.options, on_stream_end, follow, &follow->transfer,
                          &error) < 0)
        fail(follow, &error);
}

/* ---- The loop ---------------------------------------------------------------------------------
 */

static void on_draw(void *context)
{
    struct follow *follow = context;
    if (follow->job.started_ms && !follow->job.ended_ms)
        follow->view.elapsed_ms = clock_utc_ms(&clock_system) - follow->job.started_ms;
    const int64_t now_ns = clock_monotonic_ns(&clock_system);
    follow->view.away_ms =
        follow->away_since_ns > 0 ? (now_ns - follow->away_since_ns) / 1000000 : 0;
    if (follow->options->on_view)
        follow->options->on_view(follow->options->view_context, &follow->view, false);
    loop_timer_start(follow->draw_timer, DRAW_MS);
}

static void on_ask(void *context)
{
    struct follow *follow = context;
    ask(follow);
    loop_timer_start(follow->ask_timer, ASK_MS);
}

/* The stream broke: what was missed is asked for. */
static void on_retry(void *context)
{
    struct follow *follow = context;
    loop_timer_start(follow->ask_timer, 0);
    start_stream(follow);
}

static void on_interrupt(void *context)
{
    struct follow *follow = context;
    const struct follow_options *options = follow->options;
    const bool is_first = !follow->was_interrupted;
    follow->was_interrupted = true;
    if (!is_first || !options->on_interrupt || !options->on_interrupt(options->context))
        stop_with(follow, FOLLOW_INTERRUPTED);
}

static void on_timeout(void *context)
{
    stop_with(context, FOLLOW_TIMED_OUT);
}

static int open_follow(struct follow *follow, struct error *error)
{
    if (loop_open(&clock_system, &follow->loop, error) < 0)
        return -1;
    if (!follow->options->leaves_signals &&
        (loop_signal_open(follow->loop, SIGINT, on_interrupt, follow, &follow->interrupt, error) <
             0 ||
         loop_signal_open(follow->loop, SIGTERM, on_interrupt, follow, &follow->terminate, error) <
             0))
        return -1;
    const struct http_client_options http = {.loop = follow->loop, .concurrent_max = 8};
    follow->http = http_client_new(&http);
    follow->draw_timer = loop_timer_new(follow->loop, on_draw, follow);
    follow->ask_timer = loop_timer_new(follow->loop, on_ask, follow);
    follow->retry_timer = loop_timer_new(follow->loop, on_retry, follow);
    follow->timeout_timer = loop_timer_new(follow->loop, on_timeout, follow);
    return 0;
}

static void close_follow(struct follow *follow)
{
    if (follow->http && follow->options->on_end)
        follow->options->on_end(follow->options->context);
    http_client_free(follow->http);
    loop_timer_free(follow->draw_timer);
    loop_timer_free(follow->ask_timer);
    loop_timer_free(follow->retry_timer);
    loop_timer_free(follow->timeout_timer);
    loop_signal_free(follow->interrupt);
    loop_signal_free(follow->terminate);
    loop_free(follow->loop);
    sse_reader_done(&follow->sse);
    arena_free(follow->arenas[0]);
    arena_free(follow->arenas[1]);
}

static int run_follow(struct follow *follow, struct error *error)
{
    if (open_follow(follow, error) < 0)
        return -1;
    if (follow->options->on_begin)
        follow->options->on_begin(follow->options->context, follow->loop, follow->http);
    ask_first(follow);
    if (follow->has_failed) {
        *error = follow->failure;
        return -1;
    }
    if (!api_job_is_final(follow->job.state)) {
        if (follow->options->timeout_ms)
            loop_timer_start(follow->timeout_timer, follow->options->timeout_ms);
        loop_timer_start(follow->ask_timer, ASK_MS);
        on_draw(follow);
        start_stream(follow);
        if (!follow->has_failed && loop_run(follow->loop, error) < 0)
            return -1;
    }
    if (follow->has_failed) {
        *error = follow->failure;
        return -1;
    }
    return 0;
}

int job_follow(struct arena *arena, const struct follow_options *options,
               struct follow_result *out_result, struct error *error)
{
    struct follow follow = {
        .options = options,
        .view = {.loss = (double)NAN, .test_accuracy = (double)NAN},
        .arenas = {arena_new(0), arena_new(0)},
        .retry_ms = RETRY_MIN_MS,
    };
    sse_reader_init(&follow.sse, on_event, &follow);
    const int result = run_follow(&follow, error);
    if (options->on_view && follow.view.state[0])
        options->on_view(options->view_context, &follow.view, true);
    if (result == 0) {
        *out_result = (struct follow_result){.end = follow.end, .view = follow.view};
        out_result->json = arena_copy_text(arena, follow.json);
        out_result->job = api_job_unknown();
        /* It was read before; a market that was away all the time said nothing. */
        const int again = follow.json.size ? json_read(arena, out_result->json, &api_job_schema,
                                                       &out_result->job, error)
                                           : 0;
        ASSERT(again == 0);
    }
    close_follow(&follow);
    return result;
}
