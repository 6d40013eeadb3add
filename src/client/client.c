#include "client/client.h"

#include "base/assert.h"
#include "base/memory.h"
#include "client/api.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { RESPONSE_MAX = 16 << 20, PAGE_SIZE = 500 };

struct client {
    char server[CLIENT_URL_MAX]; /* without a slash at the end */
    char *authorization;         /* "Bearer ...", or NULL */
    char fingerprint[65];        /* empty: none */
    struct http_session *session;
    const volatile int32_t *stop; /* NULL: none */
    int problem_status;
    char problem[CLIENT_PROBLEM_SIZE];
};

static int check_options(const struct client_options *options, struct error *error)
{
    if (!options->server)
        return error_set(
            error, ERROR_INVALID,
            "no market is known; give --server URL, or run: souk account open --server URL "
            "--name NAME");
    const struct text url = text_of(options->server);
    if (!text_starts_with(url, TEXT("http://")) && !text_starts_with(url, TEXT("https://")))
        return error_set(error, ERROR_INVALID,
                         "--server: \"%.60s\" is not an address like https://market.example:7600",
                         options->server);
    uint8_t bytes[32];
    if (options->fingerprint &&
        text_hex_decode(text_of(options->fingerprint), bytes, sizeof(bytes), error) < 0)
        return error_set(error, ERROR_INVALID, "--fingerprint: must be 64 lower-case hex digits");
    for (const char *at = options->token; at && *at; at++)
        if (!isgraph((unsigned char)*at))
            return error_set(error, ERROR_INVALID, "--token: may not contain spaces");
    return 0;
}

int client_open(const struct client_options *options, struct client **out_client,
                struct error *error)
{
    if (check_options(options, error) < 0)
        return -1;
    AUTO(client) struct client *client = memory_zeroed(1, sizeof(*client));
    struct text server = text_of(options->server);
    while (server.size && server.data[server.size - 1] == '/')
        server.size--;
    if (text_copy(server, client->server, sizeof(client->server), error) < 0)
        return error_wrap(error, "--server");
    if (options->fingerprint && text_copy(text_of(options->fingerprint), client->fingerprint,
                                          sizeof(client->fingerprint), error) < 0)
        return error_wrap(error, "--fingerprint");
    if (options->token && asprintf(&client->authorization, "Bearer %s", options->token) < 0)
        client->authorization = NULL;
    ASSERT(!options->token || client->authorization);
    client->session = http_session_new();
    client->stop = options->stop;
    *out_client = TAKE(client);
    return 0;
}

int client_clone_stoppable(const struct client *client, const volatile int32_t *stop,
                           struct client **out_client, struct error *error)
{
    const char *bearer = client->authorization ? client->authorization + strlen("Bearer ") : NULL;
    const struct client_options options = {.server = client->server,
                                           .token = bearer,
                                           .fingerprint =
                                               client->fingerprint[0] ? client->fingerprint : NULL,
                                           .stop = stop};
    return client_open(&options, out_client, error);
}

int client_clone(const struct client *client, struct client **out_client, struct error *error)
{
    return client_clone_stoppable(client, client->stop, out_client, error);
}

const char *client_problem(const struct client *client, int *out_status)
{
    *out_status = client->problem_status;
    return client->problem;
}

void client_free(struct client *client)
{
    if (!client)
        return;
    http_session_free(client->session);
    if (client->authorization)
        explicit_bzero(client->authorization, strlen(client->authorization));
    free(client->authorization);
    free(client);
}

const char *client_server(const struct client *client)
{
    return client->server;
}

const char *client_escape(struct arena *arena, struct text text)
{
    char *out = arena_alloc(arena, 3 * text.size + 1);
    char *at = out;
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char byte = (unsigned char)text.data[i];
        if (byte < 0x80 && (isalnum(byte) || strchr("-._~", byte)))
            *at++ = (char)byte;
        else
            at += snprintf(at, 4, "%%%02X", byte);
    }
    return out;
}

int client_prepare(const struct client *client, struct arena *arena, const char *path,
                   struct client_call *out_call, struct error *error)
{
    *out_call = (struct client_call){0};
    const char *url = arena_format(arena, "%s%s", client->server, path);
    if (strlen(url) >= CLIENT_URL_MAX)
        return error_set(error, ERROR_INVALID, "the address is too long");
    out_call->options = (struct http_call_options){
        .url = url,
        .response_max = RESPONSE_MAX,
        .pinned_fingerprint =
            client->fingerprint[0] && text_starts_with(text_of(client->server), TEXT("https://"))
                ? client->fingerprint
                : NULL,
    };
    size_t count = 0;
    if (client->authorization)
        out_call->headers[count++] = (struct http_header){"Authorization", client->authorization};
    out_call->headers[count++] = (struct http_header){"Accept", "application/json"};
    out_call->options.headers = out_call->headers;
    out_call->options.header_count = count;
    return 0;
}

/* ---- Problems ---------------------------------------------------------------------------------
 */

struct problem {
    struct text detail;
    struct text title;
    struct text code;
};

static const struct json_field problem_fields[] = {
    {"detail", JSON_TEXT, offsetof(struct problem, detail), .size_max = 4096},
    {"title", JSON_TEXT, offsetof(struct problem, title)},
    {"code", JSON_TEXT, offsetof(struct problem, code)},
};
static const struct json_schema problem_schema =
    JSON_SCHEMA_LENIENT("problem", problem_fields, struct problem);

static enum error_code code_of_status(int status)
{
    switch (status) {
    case 401:
    case 403:
        return ERROR_REFUSED;
    case 402:
    case 413:
    case 429:
    case 507:
        return ERROR_EXHAUSTED;
    case 404:
        return ERROR_NOT_FOUND;
    case 409:
        return ERROR_CONFLICT;
    default:
        return status >= 500 ? ERROR_UNAVAILABLE : ERROR_INVALID;
    }
}

static enum error_code code_of_problem(struct text code, int status)
{
    for (int i = ERROR_NONE + 1; i < ERROR_CODE_COUNT; i++)
        if (text_equal(code, text_of(error_code_name((enum error_code)i))))
            return (enum error_code)i;
    return code_of_status(status);
}

int client_check_status(int status, struct text body, struct error *error)
{
    if (status >= 200 && status < 300)
        return 0;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct problem problem = {0};
    struct error ignored;
    if (json_read(arena, body, &problem_schema, &problem, &ignored) < 0 ||
        (problem.detail.size == 0 && problem.title.size == 0))
        return error_set(error, code_of_status(status), "the market answered with status %d",
                         status);
    const struct text words = problem.detail.size ? problem.detail : problem.title;
    if (status == 401)
        return error_set(error, ERROR_REFUSED, "%.*s; sign in: souk account login --name NAME",
                         (int)(words.size < 160 ? words.size : 160), words.data);
    return error_set(error, code_of_problem(problem.code, status), "%.*s",
                     (int)(words.size < 250 ? words.size : 250), words.data);
}

/* ---- Requests ---------------------------------------------------------------------------------
 */

struct request {
    const char *method;
    const char *path;
    const char *content_encoding; /* NULL: none */
    const char *content_type;
    struct text body;
    bool is_idempotent_post; /* gets a key */
};

static int make_key(char out[33], struct error *error)
{
    uint8_t bytes[16];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return error_set_errno(error, errno, "take random bytes");
    text_hex_encode(bytes, sizeof(bytes), out);
    return 0;
}

static bool is_stopped(void *context)
{
    const struct client *client = context;
    return client->stop && *client->stop != 0;
}

static int check_answer(struct client *client, const struct http_response *response,
                        struct error *error)
{
    const struct text body = buffer_text(&response->body);
    client->problem_status = 0;
    client->problem[0] = '\0';
    if (client_check_status(response->status, body, error) == 0)
        return 0;
    client->problem_status = response->status;
    if (body.size < sizeof(client->problem))
        snprintf(client->problem, sizeof(client->problem), "%.*s", TEXT_ARGS(body));
    return -1;
}

/* On success the response's status is 2xx. */
static int call(struct client *client, const struct request *request,
                struct http_response *response, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct client_call prepared;
    if (client_prepare(client, arena, request->path, &prepared, error) < 0)
        return -1;
    char key[33];
    size_t *count = &prepared.options.header_count;
    if (request->content_type)
        prepared.headers[(*count)++] = (struct http_header){"Content-Type", request->content_type};
    if (request->content_encoding)
        prepared.headers[(*count)++] =
            (struct http_header){"Content-Encoding", request->content_encoding};
    if (request->is_idempotent_post) {
        if (make_key(key, error) < 0)
            return -1;
        prepared.headers[(*count)++] = (struct http_header){"Idempotency-Key", key};
    }
    prepared.options.method = request->method;
    prepared.options.body = request->body;
    prepared.options.is_stopped = client->stop ? is_stopped : NULL;
    prepared.options.context = client;
    client->problem_status = 0;
    int result = http_session_call(client->session, &prepared.options, response, error);
    /* A kept connection may have been closed meanwhile; with the key a second try is safe. */
    if (result < 0 && error->code == ERROR_UNAVAILABLE) {
        http_response_done(response);
        http_response_init(response);
        result = http_session_call(client->session, &prepared.options, response, error);
    }
    if (result < 0 && error->code == ERROR_REFUSED && !client->fingerprint[0])
        return error_set(error, ERROR_REFUSED,
                         "the market at %.80s shows a certificate that no authority vouches for; "
                         "give --fingerprint (\"souk serve\" prints it at its start, \"souk "
                         "machines add\" in its command)",
                         client->server);
    if (result < 0)
        return error_wrap(error, "the market at %s", client->server);
    return check_answer(client, response, error);
}

static int call_for_answer(struct client *client, struct arena *arena,
                           const struct request *request, struct client_answer *answer,
                           struct error *error)
{
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    if (call(client, request, &response, error) < 0)
        return -1;
    answer->json = arena_copy_text(arena, buffer_text(&response.body));
    if (!answer->schema)
        return 0;
    if (json_read(arena, answer->json, answer->schema, answer->value, error) < 0) {
        error->code = ERROR_CORRUPT;
        return error_wrap(error, "the market's answer");
    }
    return 0;
}

int client_get(struct client *client, struct arena *arena, const char *path,
               struct client_answer *answer, struct error *error)
{
    const struct request request = {.method = "GET", .path = path};
    return call_for_answer(client, arena, &request, answer, error);
}

int client_post(struct client *client, struct arena *arena, const char *path, struct text body,
                struct client_answer *answer, struct error *error)
{
    const struct request request = {
        .method = "POST",
        .path = path,
        .content_type = body.data ? "application/json" : NULL,
        .body = body.data ? body : TEXT(""),
        .is_idempotent_post = true,
    };
    return call_for_answer(client, arena, &request, answer, error);
}

int client_send(struct client *client, struct arena *arena, const char *method, const char *path,
                struct text body, struct client_answer *answer, struct error *error)
{
    struct client_answer ignored = {0};
    const struct request request = {
        .method = method,
        .path = path,
        .content_type = body.data ? "application/json" : NULL,
        .body = body.data ? body : TEXT(""),
    };
    return call_for_answer(client, arena, &request, answer ? answer : &ignored, error);
}

int client_patch(struct client *client, struct arena *arena, const char *path, struct text body,
                 struct client_answer *answer, struct error *error)
{
    return client_send(client, arena, "PATCH", path, body, answer, error);
}

int client_delete(struct client *client, const char *path, struct error *error)
{
    const struct request request = {.method = "DELETE", .path = path};
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    return call(client, &request, &response, error);
}

int client_put_bytes(struct client *client, const char *path, struct text body,
                     const char *content_encoding, struct error *error)
{
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    const struct request request = {
        .method = "PUT",
        .path = path,
        .content_type = "application/octet-stream",
        .content_encoding = content_encoding,
        .body = body,
    };
    return call(client, &request, &response, error);
}

/* ---- Lists ------------------------------------------------------------------------------------
 */

struct raw_page {
    struct text items;
};
static const struct json_field raw_page_fields[] = {
    {"items", JSON_ANY, offsetof(struct raw_page, items), .is_required = true,
     .size_max = RESPONSE_MAX},
};
static const struct json_schema raw_page_schema =
    JSON_SCHEMA_LENIENT("list", raw_page_fields, struct raw_page);

static size_t item_size(const struct json_schema *schema)
{
    for (size_t i = 0; i < schema->field_count; i++)
        if (schema->fields[i].kind == JSON_ARRAY)
            return schema->fields[i].schema->struct_size;
    return 0;
}

static void append_items(struct arena *arena, struct json_array *all, const struct json_array *more,
                         size_t size)
{
    char *joined = arena_alloc(arena, (all->count + more->count) * size + 1);
    if (all->count)
        memcpy(joined, all->items, all->count * size);
    if (more->count)
        memcpy(joined + all->count * size, more->items, more->count * size);
    *all = (struct json_array){joined, all->count + more->count};
}

static int append_raw(struct arena *arena, struct text json, struct buffer *out,
                      struct error *error)
{
    struct raw_page raw = {0};
    if (json_read(arena, json, &raw_page_schema, &raw, error) < 0)
        return -1;
    /* "[...]" without its brackets. */
    const struct text inside = text_trim((struct text){raw.items.data + 1, raw.items.size - 2});
    if (inside.size && out->size > strlen("{\"items\":["))
        buffer_append_byte(out, ',');
    buffer_append_text(out, inside);
    return 0;
}

int client_each_page(struct client *client, const char *path, const struct json_schema *schema,
                     size_t count_max, client_page_callback *callback, void *context,
                     struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const char separator = strchr(path, '?') ? '&' : '?';
    char cursor[CLIENT_URL_MAX] = "";
    for (size_t count = 0; count < count_max;) {
        const size_t left = count_max - count;
        arena_clear(arena);
        const char *page_path = arena_format(arena, "%s%climit=%zu%s%s", path, separator,
                                             left < PAGE_SIZE ? left : (size_t)PAGE_SIZE,
                                             cursor[0] ? "&cursor=" : "", cursor);
        struct api_page *page = arena_alloc(arena, schema->struct_size);
        struct client_answer answer = {schema, page, {0}};
        if (client_get(client, arena, page_path, &answer, error) < 0)
            return -1;
        const int result = callback(context, page, answer.json, error);
        if (result != 0)
            return result < 0 ? -1 : 0;
        if (page->next_cursor.size == 0)
            return 0;
        count += page->items.count;
        const char *escaped = client_escape(arena, page->next_cursor);
        if (strlen(escaped) >= sizeof(cursor))
            return error_set(error, ERROR_CORRUPT, "the server's next_cursor is too long");
        memcpy(cursor, escaped, strlen(escaped) + 1);
    }
    return 0;
}

int client_list(struct client *client, struct arena *arena, const char *path,
                const struct json_schema *schema, size_t count_max, struct json_array *out_items,
                struct text *out_json, struct error *error)
{
    struct json_array items = {0};
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 4 * (size_t)RESPONSE_MAX);
    buffer_append_string(&json, "{\"items\":[");
    const char separator = strchr(path, '?') ? '&' : '?';
    const char *cursor = "";
    for (size_t page_index = 0; page_index < CLIENT_PAGES_MAX; page_index++) {
        const size_t left = count_max - items.count;
        const char *page_path = arena_format(arena, "%s%climit=%zu%s%s", path, separator,
                                             left < PAGE_SIZE ? left : (size_t)PAGE_SIZE,
                                             cursor[0] ? "&cursor=" : "", cursor);
        struct api_page page = {0};
        struct client_answer answer = {schema, &page, {0}};
        if (client_get(client, arena, page_path, &answer, error) < 0 ||
            append_raw(arena, answer.json, &json, error) < 0)
            return -1;
        append_items(arena, &items, &page.items, item_size(schema));
        if (page.next_cursor.size == 0 || items.count >= count_max)
            break;
        cursor = client_escape(arena, page.next_cursor);
    }
    buffer_append_string(&json, "]}");
    if (buffer_check(&json, error) < 0)
        return error_wrap(error, "the list is too long");
    *out_items = items;
    *out_json = arena_copy_text(arena, buffer_text(&json));
    return 0;
}

/* ---- Downloads --------------------------------------------------------------------------------
 */

struct download {
    struct client *client;
    int fd;
    int errno_value;
};

static bool is_download_stopped(void *context)
{
    const struct download *download = context;
    return is_stopped(download->client);
}

static int write_chunk(void *context, struct text chunk)
{
    struct download *download = context;
    while (chunk.size) {
        const ssize_t count = write(download->fd, chunk.data, chunk.size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            download->errno_value = errno;
            return -1;
        }
        chunk.data += count;
        chunk.size -= (size_t)count;
    }
    return 0;
}

int client_download(struct client *client, const char *path, int fd, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct client_call prepared;
    if (client_prepare(client, arena, path, &prepared, error) < 0)
        return -1;
    struct download download = {.client = client, .fd = fd};
    prepared.options.timeout_ms = -1;
    prepared.options.idle_timeout_ms = 30000;
    prepared.options.on_chunk = write_chunk;
    prepared.options.is_stopped = client->stop ? is_download_stopped : NULL;
    prepared.options.context = &download;
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    const int result = http_session_call(client->session, &prepared.options, &response, error);
    if (download.errno_value)
        return error_set_errno(error, download.errno_value, "write what came");
    if (result < 0)
        return -1;
    return check_answer(client, &response, error);
}
