#include "function/invoke_server.h"

#include "base/json_schema.h"
#include "base/log.h"
#include "base/memory.h"
#include "function/work.h"
#include "net/http_server.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MAX = 1 << 16 };

struct invoke_server {
    struct loop *loop;
    struct host *host;
    struct http_server *http;
    char name[65];
    char *token;
};

/* What waits for the host. */
struct waiting {
    struct invoke_server *server;
    uint64_t request; /* 0: nobody waits */
    bool wants_log;
};

/* ---- Answers --------------------------------------------------------------------------------- */

static void add_header(struct http_request *request, const char *name, const char *value)
{
    struct error error;
    if (http_reply_header(request, name, value, &error) < 0)
        log_event(LOG_WARN, "header_lost", "name=%s reason=\"%s\"", name, error.message);
}

static void reply_error(struct http_request *request, int status, const char *type,
                        const char *message)
{
    struct buffer body AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&body, ANSWER_MAX);
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_field_string(&writer, "Type", status >= 500 ? "Service" : "User");
    json_field_string(&writer, "Message", message);
    if (status == 429)
        json_field_string(&writer, "Reason", "ReservedFunctionConcurrentInvocationLimitExceeded");
    json_object_end(&writer);
    add_header(request, "X-Amzn-Errortype", type);
    if (status == 429)
        add_header(request, "Retry-After", "1");
    http_reply_take(request, status, "application/json", &body);
}

/* The lines Lambda writes about a call, of which who asks gets the end. */
static void add_log(struct http_request *request, const struct host_result *result)
{
    char start[64] = "", text[512], coded[sodium_base64_ENCODED_LEN(sizeof(text), 1)];
    if (result->is_cold)
        snprintf(start, sizeof(start), "\tInit Duration: %.2f ms", (double)result->start_us / 1000);
    const int size = snprintf(
        text, sizeof(text),
        "START RequestId: %s Version: $LATEST\nEND RequestId: %s\n"
        "REPORT RequestId: %s\tDuration: %.2f ms\tBilled Duration: %" PRId64
        " ms\tMemory Size: %u MB\tMax Memory Used: %" PRId64 " MB%s\t\n",
        result->id, result->id, result->id, (double)result->duration_us / 1000, result->billed_ms,
        result->memory_mb, (result->memory_peak_bytes + (1 << 20) - 1) >> 20, start);
    sodium_bin2base64(coded, sizeof(coded), (const uint8_t *)text, (size_t)size,
                      sodium_base64_VARIANT_ORIGINAL);
    add_header(request, "X-Amz-Log-Result", coded);
}

static void on_result(void *context, const struct host_result *result)
{
    struct waiting *waiting = context;
    struct http_request *request =
        waiting->request ? http_server_find(waiting->server->http, waiting->request) : NULL;
    log_event(LOG_DEBUG, "called",
              "request=%s failed=%d cold=%d start_us=%" PRId64 " duration_us=%" PRId64, result->id,
              result->is_failed, result->is_cold, result->start_us, result->duration_us);
    if (request) {
        add_header(request, "X-Amzn-Requestid", result->id);
        add_header(request, "X-Amz-Executed-Version", "$LATEST");
        if (result->is_failed)
            add_header(request, "X-Amz-Function-Error", "Unhandled");
        if (waiting->wants_log)
            add_log(request, result);
        http_reply(request, 200, "application/json", result->payload);
    }
    free(waiting);
}

/* ---- Requests -------------------------------------------------------------------------------- */

static bool is_this_function(struct http_request *request, const struct invoke_server *server)
{
    const struct text name = http_request_parameter(request, "name");
    char words[192];
    if (text_is(name, server->name))
        return true;
    snprintf(words, sizeof(words), "Function not found: the one here is \"%s\"", server->name);
    reply_error(request, 404, "ResourceNotFoundException", words);
    return false;
}

static void handle_invoke(struct http_request *request, void *context)
{
    struct invoke_server *server = context;
    const struct text type = http_request_header(request, "X-Amz-Invocation-Type");
    const bool is_event = text_is(type, "Event");
    struct error error;
    if (!is_this_function(request, server))
        return;
    if (type.size && !is_event && !text_is(type, "RequestResponse") && !text_is(type, "DryRun")) {
        reply_error(request, 400, "InvalidParameterValueException",
                    "X-Amz-Invocation-Type: RequestResponse, Event or DryRun");
        return;
    }
    if (text_is(type, "DryRun")) {
        http_reply_static(request, 204, "application/json", TEXT(""));
        return;
    }
    struct waiting *waiting = memory_zeroed(1, sizeof(*waiting));
    waiting->server = server;
    waiting->request = is_event ? 0 : http_request_id(request);
    waiting->wants_log = text_is(http_request_header(request, "X-Amz-Log-Type"), "Tail");
    if (host_call(server->host, http_request_body(request), on_result, waiting, &error) < 0) {
        free(waiting);
        if (error.code == ERROR_EXHAUSTED)
            reply_error(request, 429, "TooManyRequestsException", "Rate Exceeded.");
        else
            reply_error(request, 500, "ServiceException", error.message);
    } else if (is_event) {
        http_reply_static(request, 202, "application/json", TEXT(""));
    }
}

struct configuration {
    int64_t memory_mb, time_s;
};

#define CONFIGURATION(member) offsetof(struct configuration, member)
static const struct json_field configuration_fields[] = {
    {"MemorySize", JSON_I64, CONFIGURATION(memory_mb), .minimum = HOST_MEMORY_MB_MIN,
     .maximum = HOST_MEMORY_MB_MAX},
    {"Timeout", JSON_I64, CONFIGURATION(time_s), .minimum = 1, .maximum = HOST_TIME_MS_MAX / 1000},
};
static const struct json_schema configuration_schema =
    JSON_SCHEMA("configuration", configuration_fields, struct configuration);

static void reply_configuration(struct http_request *request, const struct invoke_server *server)
{
    struct buffer body AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&body, ANSWER_MAX);
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_field_string(&writer, "FunctionName", server->name);
    json_field_string(&writer, "Version", "$LATEST");
    json_field_string(&writer, "State", "Active");
    json_field_string(&writer, "LastUpdateStatus", "Successful");
    json_field_u64(&writer, "MemorySize", host_memory_mb(server->host));
    json_field_i64(&writer, "Timeout", host_time_ms(server->host) / 1000);
    json_object_end(&writer);
    http_reply_take(request, 200, "application/json", &body);
}

static void handle_configuration(struct http_request *request, void *context)
{
    const struct invoke_server *server = context;
    if (is_this_function(request, server))
        reply_configuration(request, server);
}

static void handle_configure(struct http_request *request, void *context)
{
    struct invoke_server *server = context;
    struct error error;
    struct configuration wanted = {.memory_mb = host_memory_mb(server->host)};
    if (!is_this_function(request, server))
        return;
    if (json_read(http_request_arena(request), http_request_body(request), &configuration_schema,
                  &wanted, &error) < 0 ||
        host_configure(server->host, (uint32_t)wanted.memory_mb,
                       wanted.time_s ? wanted.time_s * 1000 : host_time_ms(server->host),
                       &error) < 0)
        reply_error(request, 400, "InvalidParameterValueException", error.message);
    else
        reply_configuration(request, server);
}

/* Who has no token sends no body. */
static void on_headers(struct http_request *request, void *context)
{
    const struct invoke_server *server = context;
    const struct text given = http_request_header(request, "Authorization");
    const struct text prefix = TEXT("Bearer ");
    const bool is_known =
        text_starts_with(given, prefix) &&
        text_equal_secret((struct text){given.data + prefix.size, given.size - prefix.size},
                          text_of(server->token));
    if (!is_known)
        reply_error(request, 403, "AccessDeniedException",
                    "the token is missing or wrong: Authorization: Bearer TOKEN");
}

static void on_too_large(struct http_request *request, void *context)
{
    (void)context;
    reply_error(request, 413, "RequestTooLargeException", "a request has 65536 bytes at most");
}

static void handle_unknown(struct http_request *request, void *context)
{
    (void)context;
    reply_error(request, 404, "ResourceNotFoundException", "there is no such call here");
}

#define FUNCTION_PATH "/2015-03-31/functions/{name}/"
enum { BODY_MAX = WORK_JSON_MAX };
static const struct http_route routes[] = {
    {"POST", FUNCTION_PATH "invocations", BODY_MAX, handle_invoke},
    {"GET", FUNCTION_PATH "configuration", 0, handle_configuration},
    {"PUT", FUNCTION_PATH "configuration", BODY_MAX, handle_configure},
    {"GET", "/{rest...}", 0, handle_unknown},
    {"POST", "/{rest...}", BODY_MAX, handle_unknown},
    {"PUT", "/{rest...}", BODY_MAX, handle_unknown},
};

/* ---- Life ------------------------------------------------------------------------------------ */

int invoke_server_open(const struct invoke_server_options *options,
                       struct invoke_server **out_server, struct error *error)
{
    AUTO(invoke_server) struct invoke_server *server = memory_zeroed(1, sizeof(*server));
    server->loop = options->loop;
    server->host = options->host;
    server->token = strdup(options->token);
    if (text_copy(text_of(options->name), server->name, sizeof(server->name), error) < 0)
        return -1;
    const struct http_server_options http = {
        .loop = options->loop,
        .listen = options->listen,
        .routes = routes,
        .route_count = sizeof(routes) / sizeof(*routes),
        .context = server,
        .on_headers = on_headers,
        .on_too_large = on_too_large,
        .certificate_pem = options->certificate_pem,
        .key_pem = options->key_pem,
        .ignores_sigpipe = true,
        /* A call may take as long as it may; so does its connection. */
        .idle_timeout_s = 2 * HOST_TIME_MS_MAX / 1000,
    };
    if (http_server_open(&http, &server->http, error) < 0)
        return -1;
    *out_server = TAKE(server);
    return 0;
}

void invoke_server_free(struct invoke_server *server)
{
    if (!server)
        return;
    http_server_free(server->http);
    if (server->token)
        sodium_memzero(server->token, strlen(server->token));
    free(server->token);
    free(server);
}

uint16_t invoke_server_port(const struct invoke_server *server)
{
    return http_server_port(server->http);
}
