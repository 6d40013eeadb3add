/*
 * The Invoke API over HTTP: a host's by its token, Lambda's signed (SigV4, service lambda).
 */
#include "base/assert.h"
#include "base/json_schema.h"
#include "base/memory.h"
#include "function/host.h"
#include "function/invoker.h"
#include "function/work.h"
#include "net/http_client.h"
#include "net/url.h"
#include "source/remote.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    URL_SIZE = 512,
    HEADERS_MAX = 6,
    CALL_EXTRA_MS = 30000, /* beyond what a function may take: it starts and the answer travels */
    CONFIGURE_MS = 60000,
    PAUSE_MS = 250, /* between two looks whether Lambda has taken a configuration */
    LOG_MAX = 4096,
    CONFIGURATION_SIZE = 64,
};

struct http_invoker {
    struct invoker invoker;
    struct http_client *client;
    char base[URL_SIZE]; /* URL/2015-03-31/functions/NAME */
    char authorization[320];
    char fingerprint[80];
    struct remote_credentials credentials;
    struct http_wait *waits; /* of calls under way */
    int64_t time_ms;
    char configured[CONFIGURATION_SIZE]; /* what was taken last; "": nothing yet */
};

struct http_wait {
    struct http_wait *next, **place; /* where the list names it */
    invoke_function *callback;
    void *context;
    bool is_unreached; /* nothing was asked */
};

/* ---- What comes ------------------------------------------------------------------------------ */

/* "...\tNAME: 12 MB\t": the whole number after the name. */
static int64_t report_number(struct text line, const char *name)
{
    const char *found = memmem(line.data, line.size, name, strlen(name));
    if (!found)
        return -1;
    struct text rest = {found + strlen(name),
                        line.size - (size_t)(found - line.data) - strlen(name)};
    struct text number, unit;
    struct error ignored; /* then there is none */
    uint64_t value;
    rest = text_trim(rest);
    text_cut(rest, ' ', &number, &unit);
    return text_parse_u64(number, &value, &ignored) == 0 && value < INT32_MAX ? (int64_t)value : -1;
}

bool invoke_report_read(struct text log, struct invoke_report *out_report)
{
    const char *found = memmem(log.data, log.size, "REPORT RequestId:", 17);
    if (!found)
        return false;
    struct text rest = {found, log.size - (size_t)(found - log.data)}, line, behind;
    text_cut(rest, '\n', &line, &behind);
    const struct invoke_report report = {
        .billed_ms = report_number(line, "\tBilled Duration:"),
        .memory_mb = report_number(line, "\tMemory Size:"),
        .memory_peak_mb = report_number(line, "\tMax Memory Used:"),
        .is_cold = memmem(line.data, line.size, "\tInit Duration:", 15) != NULL,
    };
    if (report.billed_ms < 0)
        return false;
    *out_report = report;
    return true;
}

static void take_report(const struct http_response *response, struct invoke_result *result)
{
    char log[LOG_MAX + 1];
    size_t size;
    struct invoke_report report;
    if (sodium_base642bin((uint8_t *)log, LOG_MAX, response->log_result,
                          strlen(response->log_result), NULL, &size, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0 ||
        !invoke_report_read((struct text){log, size}, &report))
        return;
    result->billed_ms = report.billed_ms;
    result->is_cold = report.is_cold;
    if (report.memory_mb > 0)
        result->memory_mb = report.memory_mb;
    if (report.memory_peak_mb >= 0)
        result->memory_peak_bytes = report.memory_peak_mb << 20;
}

static void wait_free(struct http_wait *wait)
{
    *wait->place = wait->next;
    if (wait->next)
        wait->next->place = wait->place;
    free(wait);
}

static void on_response(void *context, struct http_response *response, const struct error *reason)
{
    struct http_wait *wait = context;
    const struct http_wait told = *wait;
    char words[160];
    struct invoke_result result = {
        .outcome = INVOKE_LOST, .billed_ms = -1, .memory_peak_bytes = -1};
    wait_free(wait);
    if (!response) {
        result.reason = reason->message;
        result.billed_ms = told.is_unreached ? 0 : -1;
        if (told.is_unreached)
            result.outcome = INVOKE_THROTTLED;
    } else if (response->status == 200) {
        result.outcome = response->function_error[0] ? INVOKE_FAILED : INVOKE_ANSWERED;
        result.payload = buffer_text(&response->body);
        result.reason = "";
        take_report(response, &result);
    } else {
        snprintf(words, sizeof(words), "status %d: %.*s", response->status,
                 (int)(response->body.size < 100 ? response->body.size : 100),
                 (const char *)response->body.data);
        text_make_plain(words);
        result.reason = words;
        /* Refused before it was called; a server's own failure may come after. */
        if (response->status >= 400 && response->status < 500)
            result.outcome = response->status == 429 ? INVOKE_THROTTLED : INVOKE_FAILED;
        result.billed_ms = result.outcome == INVOKE_LOST ? -1 : 0;
    }
    told.callback(told.context, &result);
}

/* ---- What is asked --------------------------------------------------------------------------- */

struct ask {
    char url[URL_SIZE + 32];
    struct http_header headers[HEADERS_MAX];
    struct http_signing signing;
    struct http_call_options options;
};

/* `ask` stays where it is while it is used. */
static void prepare(const struct http_invoker *http, const char *method, const char *call,
                    struct text body, struct ask *ask)
{
    size_t count = 0;
    snprintf(ask->url, sizeof(ask->url), "%s/%s", http->base, call);
    ask->headers[count++] = (struct http_header){"Content-Type", "application/json"};
    ask->options = (struct http_call_options){.method = method, .url = ask->url, .body = body};
    if (http->authorization[0])
        ask->headers[count++] = (struct http_header){"Authorization", http->authorization};
    if (http->fingerprint[0])
        ask->options.pinned_fingerprint = http->fingerprint;
    if (http->credentials.access_key[0]) {
        const char *region = http->credentials.region;
        ask->signing = (struct http_signing){.service = "lambda",
                                             .region = region[0] ? region : "us-east-1",
                                             .access_key = http->credentials.access_key,
                                             .secret_key = http->credentials.secret_key};
        ask->options.signing = &ask->signing;
        if (http->credentials.session_token[0])
            ask->headers[count++] =
                (struct http_header){"X-Amz-Security-Token", http->credentials.session_token};
    }
    ask->options.headers = ask->headers;
    ask->options.header_count = count;
}

static int http_invoke(struct invoker *invoker, struct text request, invoke_function *callback,
                       void *context, struct error *error)
{
    struct http_invoker *http = (struct http_invoker *)invoker;
    struct ask ask;
    prepare(http, "POST", "invocations", request, &ask);
    ask.headers[ask.options.header_count++] =
        (struct http_header){"X-Amz-Invocation-Type", "RequestResponse"};
    ask.headers[ask.options.header_count++] = (struct http_header){"X-Amz-Log-Type", "Tail"};
    ask.options.timeout_ms = http->time_ms + CALL_EXTRA_MS;
    ask.options.response_max = WORK_JSON_MAX;
    struct http_wait *wait = memory_zeroed(1, sizeof(*wait));
    *wait = (struct http_wait){http->waits, &http->waits, callback, context, false};
    ask.options.is_unreached = &wait->is_unreached;
    if (wait->next)
        wait->next->place = &wait->next;
    http->waits = wait;
    if (http_client_start(http->client, &ask.options, on_response, wait, NULL, error) < 0) {
        wait_free(wait);
        return -1;
    }
    return 0;
}

/* Lambda takes a configuration some time after it has answered, and none until then. */
enum asked { ASKED_REFUSED, ASKED_PENDING, ASKED_TAKEN };

struct taken {
    struct text status, reason;
    uint64_t memory_mb;
    struct json_array architectures; /* of struct text; Lambda's functions have one */
};
static const struct json_field taken_fields[] = {
    {"LastUpdateStatus", JSON_TEXT, offsetof(struct taken, status)},
    {"LastUpdateStatusReason", JSON_TEXT, offsetof(struct taken, reason)},
    {"MemorySize", JSON_U64, offsetof(struct taken, memory_mb), .is_required = true,
     .maximum = INT32_MAX},
    {"Architectures", JSON_TEXTS, offsetof(struct taken, architectures), .size_max = 4},
};
static const struct json_schema taken_schema =
    JSON_SCHEMA_LENIENT("configuration", taken_fields, struct taken);

static int ask_configuration(struct http_invoker *http, const char *method, struct text body,
                             uint32_t memory_mb, enum asked *out_asked, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct taken taken = {.status = TEXT("Successful")};
    struct ask ask;
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    prepare(http, method, "configuration", body, &ask);
    if (http_call(&ask.options, &response, error) < 0)
        return error_wrap(error, "the function's configuration");
    if (response.status == 409) { /* the one before is still being taken */
        *out_asked = ASKED_REFUSED;
        return 0;
    }
    if (response.status != 200)
        return error_set(error,
                         response.status == 404   ? ERROR_NOT_FOUND
                         : response.status == 403 ? ERROR_REFUSED
                                                  : ERROR_UNAVAILABLE,
                         "the function's configuration: status %d: %.*s", response.status,
                         (int)(response.body.size < 150 ? response.body.size : 150),
                         (const char *)response.body.data);
    if (json_read(arena, buffer_text(&response.body), &taken_schema, &taken, error) < 0)
        return error_wrap(error, "the function's configuration");
    if (text_is(taken.status, "Failed"))
        return error_set(error, ERROR_UNAVAILABLE,
                         "the function's configuration was not taken: %.*s",
                         (int)(taken.reason.size < 150 ? taken.reason.size : 150),
                         taken.reason.data ? taken.reason.data : "no reason is told");
    *out_asked = text_is(taken.status, "Successful") ? ASKED_TAKEN : ASKED_PENDING;
    const struct text *architectures = taken.architectures.items;
    http->invoker.is_arm64 = taken.architectures.count && text_is(architectures[0], "arm64");
    if (*out_asked == ASKED_TAKEN && taken.memory_mb != memory_mb)
        return error_set(error, ERROR_CONFLICT,
                         "the function has %" PRIu64 " MB, not the %u MB it was given: somebody "
                         "else configures it",
                         taken.memory_mb, memory_mb);
    return 0;
}

static int http_configure(struct invoker *invoker, uint32_t memory_mb, int64_t time_ms,
                          struct error *error)
{
    struct http_invoker *http = (struct http_invoker *)invoker;
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    char body[CONFIGURATION_SIZE];
    snprintf(body, sizeof(body), "{\"MemorySize\":%u,\"Timeout\":%" PRId64 "}", memory_mb,
             (time_ms + 999) / 1000);
    /* Lambda ends all instances of a function that is configured, if by what it has: so it is only
     * looked at when that would change nothing. */
    enum asked asked = strcmp(body, http->configured) == 0 ? ASKED_PENDING : ASKED_REFUSED;
    http->configured[0] = '\0';
    for (int waited_ms = 0; waited_ms < CONFIGURE_MS; waited_ms += PAUSE_MS) {
        const bool is_put = asked == ASKED_REFUSED;
        if (ask_configuration(http, is_put ? "PUT" : "GET",
                              is_put ? text_of(body) : (struct text){0}, memory_mb, &asked,
                              error) < 0)
            return -1;
        if (asked == ASKED_TAKEN) {
            snprintf(http->configured, sizeof(http->configured), "%s", body);
            return 0;
        }
        nanosleep(&pause, NULL);
    }
    return error_set(error, ERROR_UNAVAILABLE,
                     "the function's configuration is not taken after %d s", CONFIGURE_MS / 1000);
}

static void http_free(struct invoker *invoker)
{
    struct http_invoker *http = (struct http_invoker *)invoker;
    http_client_free(http->client);
    for (struct http_wait *wait = http->waits, *next; wait; wait = next) {
        next = wait->next;
        free(wait);
    }
    remote_credentials_wipe(&http->credentials);
    sodium_memzero(http->authorization, sizeof(http->authorization));
    free(http);
}

static const struct invoker_ops http_ops = {http_invoke, http_configure, http_free};

int invoker_open_http(const struct invoker_http_options *options, struct invoker **out_invoker,
                      struct error *error)
{
    if (options->token && options->url && !url_is_private(text_of(options->url)))
        return error_set(error, ERROR_INVALID,
                         "%.200s: a token goes to https:// alone, or to this machine; anybody on "
                         "the way could read it",
                         options->url);
    struct http_invoker *http = memory_zeroed(1, sizeof(*http));
    http->invoker.ops = &http_ops;
    http->time_ms = options->time_ms ? options->time_ms : HOST_TIME_MS_MAX;
    if (options->credentials && !options->token)
        http->credentials = *options->credentials;
    const char *region = http->credentials.region[0] ? http->credentials.region : "us-east-1";
    size_t url_size = options->url ? strlen(options->url) : 0;
    while (url_size > 0 && options->url[url_size - 1] == '/')
        url_size--;
    int size = options->url
                   ? snprintf(http->base, sizeof(http->base), "%.*s/2015-03-31/functions/%s",
                              (int)url_size, options->url, options->name)
                   : snprintf(http->base, sizeof(http->base),
                              "https://lambda.%s.amazonaws.com/2015-03-31/functions/%s", region,
                              options->name);
    int result = size < (int)sizeof(http->base)
                     ? 0
                     : error_set(error, ERROR_INVALID, "the function's address is too long");
    if (result == 0 && options->token &&
        snprintf(http->authorization, sizeof(http->authorization), "Bearer %s", options->token) >=
            (int)sizeof(http->authorization))
        result = error_set(error, ERROR_INVALID, "the token is too long");
    if (result == 0 && options->pinned_fingerprint)
        result = text_copy(text_of(options->pinned_fingerprint), http->fingerprint,
                           sizeof(http->fingerprint), error);
    if (result < 0) {
        free(http);
        return -1;
    }
    http->client = http_client_new(&(struct http_client_options){
        .loop = options->loop, .concurrent_max = options->concurrent_max});
    *out_invoker = &http->invoker;
    return 0;
}
