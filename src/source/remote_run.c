/*
 * One reading of a range: attempts until it is whole, each an exchange through redirects.
 */
#include "base/clock.h"
#include "source/remote_internal.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
    PAUSE_MS_MAX = 30000,
    RETRY_AFTER_MS_MAX = 60000,
    SLICE_MS = 200, /* between two looks whether it was stopped */
    REFUSAL_BYTES_MAX = 64 << 10,
};

#define USEFUL_BYTES ((uint64_t)1 << 20) /* of an attempt that counts as none */

enum outcome { OUTCOME_DONE, OUTCOME_AGAIN, OUTCOME_FAILED };

/* ---- The caller's hooks ---------------------------------------------------------------------- */

static bool may_dial(void *context, const struct address *address)
{
    struct remote *remote = ((struct remote_reading *)context)->remote;
    pthread_mutex_lock(remote->mutex);
    const bool may = remote->options.may_dial(remote->options.context, address);
    pthread_mutex_unlock(remote->mutex);
    return may;
}

static bool is_stopped(void *context)
{
    struct remote *remote = ((struct remote_reading *)context)->remote;
    if (!remote->options.is_stopped)
        return false;
    pthread_mutex_lock(remote->mutex);
    const bool is = remote->options.is_stopped(remote->options.context);
    pthread_mutex_unlock(remote->mutex);
    return is;
}

static bool may_follow(struct remote *remote, const char *url)
{
    if (!remote->options.may_follow)
        return true;
    pthread_mutex_lock(remote->mutex);
    const bool may = remote->options.may_follow(remote->options.context, url);
    pthread_mutex_unlock(remote->mutex);
    return may;
}

void remote_tell_progress(struct remote *remote, uint64_t done_bytes, uint64_t total_bytes)
{
    if (!remote->options.on_progress)
        return;
    pthread_mutex_lock(remote->mutex);
    remote->options.on_progress(remote->options.context, done_bytes, total_bytes);
    pthread_mutex_unlock(remote->mutex);
}

/* ---- Through redirects ----------------------------------------------------------------------- */

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static bool is_https(const char *url)
{
    return strncasecmp(url, "https://", 8) == 0;
}

int remote_follow(struct remote *remote, const struct http_response *response,
                  struct remote_request *request, struct error *error)
{
    char name[PLACE_NAME_SIZE];
    const char *url = response->redirect;
    place_describe(text_of(url), name);
    if (!url[0])
        return error_set(error, ERROR_CORRUPT, "it redirects without saying where to");
    if (is_https(request->url) && !is_https(url))
        return error_set(error, ERROR_REFUSED, "it redirects from HTTPS to plain HTTP (%s)", name);
    if (!is_https(url) && strncasecmp(url, "http://", 7) != 0)
        return error_set(error, ERROR_REFUSED, "it redirects to what is not HTTP (%s)", name);
    if (!may_follow(remote, url))
        return error_set(error, ERROR_REFUSED, "it redirects to %s, where nobody may go", name);
    return text_copy(text_of(url), request->url, sizeof(request->url), error);
}

int remote_exchange(struct remote_reading *reading, struct remote_request *request,
                    struct http_call_options *options, struct http_response *response,
                    struct error *error)
{
    struct remote *remote = reading->remote;
    /* Some servers refuse who does not say what it is. Where it is signed it is left out: whoever
     * stands between may change it. */
    if (!request->is_signed)
        remote_add_header(request, "User-Agent", TEXT("souk"));
    options->url = request->url;
    options->headers = request->headers;
    options->header_count = request->header_count;
    options->signing = request->is_signed ? &request->signing : NULL;
    if (!options->response_max)
        options->response_max = REFUSAL_BYTES_MAX;
    options->timeout_ms = -1;
    options->connect_timeout_ms = remote->options.connect_timeout_ms;
    options->idle_timeout_ms = remote->options.slow_ms;
    options->bytes_per_s_min = remote->options.bytes_per_s_min;
    options->may_dial = remote->options.may_dial ? may_dial : NULL;
    options->is_stopped = is_stopped;
    options->context = reading;
    for (int hop = 0; hop <= REMOTE_REDIRECTS_MAX; hop++) {
        if (http_session_call(reading->session, options, response, error) < 0)
            return -1;
        /* What was signed is for one server, and a token for no other. */
        if (!is_redirect(response->status) || request->is_signed || request->stays)
            return 0;
        if (remote_follow(remote, response, request, error) < 0)
            return -1;
    }
    return error_set(error, ERROR_REFUSED, "it redirects more than %d times", REMOTE_REDIRECTS_MAX);
}

/* ---- What comes ------------------------------------------------------------------------------ */

static struct remote_identity identity_of(const struct remote_reading *reading,
                                          const struct http_response *head)
{
    struct remote_identity identity = {.is_known = true, .size = REMOTE_END};
    memcpy(identity.etag, head->etag, sizeof(identity.etag));
    memcpy(identity.last_modified, head->last_modified, sizeof(identity.last_modified));
    if (head->status == 206 && head->range_total >= 0)
        identity.size = (uint64_t)head->range_total;
    else if (head->status == 200 && head->body_bytes >= 0)
        identity.size = (uint64_t)head->body_bytes;
    if (reading->remote->scheme->is_offset_in_url)
        identity = reading->remote->identity; /* found by `check` */
    return identity;
}

static bool is_same(const struct remote_identity *left, const struct remote_identity *right)
{
    const bool has_sizes = left->size != REMOTE_END && right->size != REMOTE_END;
    return strcmp(left->etag, right->etag) == 0 &&
           strcmp(left->last_modified, right->last_modified) == 0 &&
           (!has_sizes || left->size == right->size);
}

static int begin_anew(struct remote_reading *reading)
{
    struct error *error = &reading->reason;
    if (!reading->sink.restart)
        return error_set(error, ERROR_CONFLICT, "it changed while it was read");
    reading->position = reading->first;
    return reading->sink.restart(reading->sink.context, error);
}

/* Whether the server begins where it was asked to. */
static int check_place(struct remote_reading *reading, const struct http_response *head)
{
    struct error *error = &reading->reason;
    if (reading->remote->scheme->is_offset_in_url)
        return 0;
    if (head->status == 206)
        return head->range_first == (int64_t)reading->position
                   ? 0
                   : error_set(error, ERROR_CORRUPT, "it sent another part than it was asked for");
    const bool is_part = reading->first > 0 ||
                         (reading->end != REMOTE_END && head->body_bytes != (int64_t)reading->end);
    if (is_part && !reading->is_enough)
        return error_set(error, ERROR_UNAVAILABLE, "it cannot be read in parts");
    if (reading->position == 0)
        return 0;
    /* It knows no ranges, or the file is another: all of it comes. */
    return begin_anew(reading);
}

static int check_size(const struct remote *remote, uint64_t size, struct error *error)
{
    if (size == REMOTE_END || size <= remote->options.size_max)
        return 0;
    return error_set(error, ERROR_EXHAUSTED,
                     "it has %" PRIu64 " bytes, and %" PRIu64 " are the most", size,
                     remote->options.size_max);
}

static int on_head(void *context, const struct http_response *head)
{
    struct remote_reading *reading = context;
    struct remote *remote = reading->remote;
    const struct remote_identity identity = identity_of(reading, head);
    struct error *error = &reading->reason;
    reading->has_head = true;
    reading->is_all_coming = head->status == 200;
    if (check_size(remote, identity.size, error) < 0)
        return -1;
    if (remote->identity.is_known && !is_same(&remote->identity, &identity) &&
        (head->status == 206 || !reading->sink.restart)) {
        reading->is_changed = true;
        return -1;
    }
    if (check_place(reading, head) < 0)
        return -1;
    if (!remote->identity.is_known || head->status == 200) {
        remote->identity = identity;
        memcpy(remote->content_type, head->content_type, sizeof(remote->content_type));
    }
    return 0;
}

static int on_chunk(void *context, struct text chunk)
{
    struct remote_reading *reading = context;
    struct remote *remote = reading->remote;
    struct error *error = &reading->reason;
    if (reading->is_enough && reading->is_all_coming)
        return -1;
    if (chunk.size > remote->options.size_max - reading->position)
        return error_set(error, ERROR_EXHAUSTED, "it is larger than %" PRIu64 " bytes",
                         remote->options.size_max);
    if (reading->end != REMOTE_END && chunk.size > reading->end - reading->position)
        return error_set(error, ERROR_CORRUPT, "it sent more than it was asked for");
    if (reading->sink.take(reading->sink.context, reading->position, chunk, error) < 0)
        return -1;
    reading->position += chunk.size;
    return 0;
}

/* ---- One attempt ----------------------------------------------------------------------------- */

static bool is_passing(int status)
{
    return status == 408 || status == 425 || status == 429 || status == 500 || status == 502 ||
           status == 503 || status == 504;
}

void remote_refuse(int status, struct error *error)
{
    if (is_passing(status))
        error_fill(error, ERROR_UNAVAILABLE, "the server answered with status %d", status);
    else if (status == 404 || status == 410)
        error_fill(error, ERROR_NOT_FOUND, "there is no such file");
    else if (status == 401 || status == 403)
        error_fill(error, ERROR_REFUSED, "the server does not let it be read (status %d)", status);
    else
        error_fill(error, ERROR_REFUSED, "the server answered with status %d", status);
}

static enum outcome judge_refusal(struct remote_reading *reading, struct http_response *response,
                                  struct error *error)
{
    struct remote *remote = reading->remote;
    const int status = response->status;
    if (status == 412 || status == 416) {
        /* Of an empty file no byte can be asked for. */
        if (status == 416 && response->range_total == 0 && reading->position == 0) {
            remote->identity = (struct remote_identity){.is_known = true};
            return OUTCOME_DONE;
        }
        reading->is_changed = true;
        error_fill(error, ERROR_CONFLICT, "it changed while it was read");
        return OUTCOME_AGAIN;
    }
    remote_refuse(status, error);
    if (remote->scheme->explain && remote->scheme->explain(remote, response, error))
        return OUTCOME_AGAIN;
    return is_passing(status) ? OUTCOME_AGAIN : OUTCOME_FAILED;
}

static enum outcome judge_whole(struct remote_reading *reading, const struct http_response *head,
                                struct error *error)
{
    if (!reading->has_head && on_head(reading, head) < 0) {
        *error = reading->reason;
        return reading->is_changed ? OUTCOME_AGAIN : OUTCOME_FAILED;
    }
    const uint64_t size = reading->remote->identity.size;
    const uint64_t end = reading->end < size ? reading->end : size;
    if (reading->is_enough || end == REMOTE_END || reading->position >= end)
        return OUTCOME_DONE;
    error_fill(error, ERROR_UNAVAILABLE, "it ended after %" PRIu64 " of %" PRIu64 " bytes",
               reading->position, end);
    return OUTCOME_AGAIN;
}

/* The exchange broke, or our own side ended it. */
static enum outcome judge_end(const struct remote_reading *reading, struct error *error)
{
    if (reading->is_changed) {
        error_fill(error, ERROR_CONFLICT, "it changed while it was read");
        return OUTCOME_AGAIN;
    }
    if (reading->reason.code != ERROR_NONE) {
        *error = reading->reason;
        return OUTCOME_FAILED;
    }
    if (reading->has_head && reading->is_enough)
        return OUTCOME_DONE;
    return error->code == ERROR_UNAVAILABLE ? OUTCOME_AGAIN : OUTCOME_FAILED;
}

static enum outcome attempt(struct remote_reading *reading, struct http_response *response,
                            struct error *error)
{
    struct remote *remote = reading->remote;
    struct remote_request request = {0};
    struct http_call_options options = {.on_head = on_head, .on_chunk = on_chunk};
    reading->has_head = reading->is_changed = false;
    reading->reason = (struct error){0};
    if (remote->scheme->check && remote->scheme->check(reading, error) < 0)
        return error->code == ERROR_UNAVAILABLE ? OUTCOME_AGAIN : OUTCOME_FAILED;
    if (reading->is_changed) {
        error_fill(error, ERROR_CONFLICT, "it changed while it was read");
        return OUTCOME_AGAIN;
    }
    if (remote->scheme->check && reading->is_enough)
        return check_size(remote, remote->identity.size, error) < 0 ? OUTCOME_FAILED : OUTCOME_DONE;
    if (remote->scheme->prepare(reading, &request, error) < 0)
        return OUTCOME_FAILED;
    if (remote_exchange(reading, &request, &options, response, error) < 0)
        return judge_end(reading, error);
    if (response->status == 200 || response->status == 206)
        return judge_whole(reading, response, error);
    return judge_refusal(reading, response, error);
}

/* ---- Attempts -------------------------------------------------------------------------------- */

static int64_t pause_of(struct remote_reading *reading, uint32_t failed, int64_t retry_after_s)
{
    int64_t pause_ms = reading->remote->options.pause_ms;
    for (uint32_t i = 1; i < failed && pause_ms < PAUSE_MS_MAX; i++)
        pause_ms *= 2;
    if (pause_ms > PAUSE_MS_MAX)
        pause_ms = PAUSE_MS_MAX;
    /* Half of it to all of it, so that many who failed together do not come together. */
    pause_ms = pause_ms / 2 + (int64_t)random_below(&reading->random, (uint64_t)pause_ms / 2 + 1);
    const int64_t asked_ms = retry_after_s > 0 ? retry_after_s * 1000 : 0;
    if (asked_ms > pause_ms)
        pause_ms = asked_ms < RETRY_AFTER_MS_MAX ? asked_ms : RETRY_AFTER_MS_MAX;
    return pause_ms;
}

static int pause_for(struct remote_reading *reading, int64_t pause_ms, struct error *error)
{
    const int64_t until_ns = clock_monotonic_ns(&clock_system) + pause_ms * 1000000;
    int64_t left_ns;
    while ((left_ns = until_ns - clock_monotonic_ns(&clock_system)) > 0) {
        if (is_stopped(reading))
            return error_set(error, ERROR_CONFLICT, "stopped");
        const int64_t slice_ns =
            left_ns < SLICE_MS * INT64_C(1000000) ? left_ns : SLICE_MS * INT64_C(1000000);
        const struct timespec span = {.tv_nsec = slice_ns};
        nanosleep(&span, NULL);
    }
    return 0;
}

static void tell_retry(struct remote *remote, const struct error *reason, int64_t pause_ms)
{
    if (!remote->options.on_retry)
        return;
    pthread_mutex_lock(remote->mutex);
    remote->options.on_retry(remote->options.context, reason, pause_ms);
    pthread_mutex_unlock(remote->mutex);
}

static int fail(const struct remote_reading *reading, struct error *error)
{
    char name[PLACE_NAME_SIZE];
    return error_wrap(error, "%s", place_describe(text_of(reading->remote->address), name));
}

/* The file is another: what was read of it is forgotten, and what is known of it is, too. Of a part
 * it stays: others may be reading theirs. */
static int forget(struct remote_reading *reading, struct error *error)
{
    if (begin_anew(reading) < 0) {
        *error = reading->reason;
        return -1;
    }
    reading->remote->identity = (struct remote_identity){0};
    return 0;
}

/* -1 when it was the last, or it was stopped. */
static int wait_for_next(struct remote_reading *reading, uint32_t failed, int64_t retry_after_s,
                         struct error *error)
{
    if (failed >= reading->remote->options.attempts_max) {
        error_prefix(error, "gave up after %u attempts", failed);
        return -1;
    }
    const int64_t pause_ms = pause_of(reading, failed, retry_after_s);
    tell_retry(reading->remote, error, pause_ms);
    return pause_for(reading, pause_ms, error);
}

int remote_run(struct remote_reading *reading, struct error *error)
{
    struct http_response response AUTO_HTTP_RESPONSE;
    uint32_t changes = 0;
    http_response_init(&response);
    reading->position = reading->first;
    for (uint32_t failed = 0;;) {
        const uint64_t before = reading->position;
        response.retry_after_s = -1;
        const enum outcome outcome = attempt(reading, &response, error);
        if (outcome == OUTCOME_DONE)
            return 0;
        if (outcome == OUTCOME_FAILED)
            return fail(reading, error);
        if (reading->is_changed && (++changes > REMOTE_CHANGES_MAX || forget(reading, error) < 0))
            return fail(reading, error);
        if (reading->position > before && reading->position - before >= USEFUL_BYTES)
            failed = 0;
        if (wait_for_next(reading, ++failed, response.retry_after_s, error) < 0)
            return fail(reading, error);
    }
}

int remote_insist(struct remote_reading *reading,
                  int (*what)(struct remote_reading *reading, void *context, struct error *error),
                  void *context, struct error *error)
{
    for (uint32_t failed = 0; what(reading, context, error) < 0;)
        if (error->code != ERROR_UNAVAILABLE ||
            wait_for_next(reading, ++failed, /* retry_after_s= */ -1, error) < 0)
            return fail(reading, error);
    return 0;
}
