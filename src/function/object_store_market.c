/*
 * Objects in a market's own store, by its REST API; the connection is kept.
 *
 * An object larger than one request may bring is put in parts, under names that no key has, of
 * which the market then makes the object in one step (docs/api.md). A market that is away, busy or
 * starting anew is asked again.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/json_schema.h"
#include "base/memory.h"
#include "base/random.h"
#include "function/object_store_internal.h"
#include "net/http_client.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PART_BYTES = 4000000, /* of one request */
    URL_SIZE = 1024,
    ATTEMPTS_DEFAULT = 6,
    PAUSE_MS = 200, /* after the first attempt; then twice as long */
    PAUSE_MS_MAX = 5000,
    IDLE_MS = 30000,
    PROBLEM_MAX = 16 << 10,
    TAG_SIZE = 17, /* of parts, with the zero byte */
};

struct market_store {
    struct object_store store;
    struct http_session *session;
    char *server, *authorization, *fingerprint; /* fingerprint NULL: not pinned */
    uint32_t attempts_max;
    bool (*is_stopped)(void *context); /* or NULL */
    void *context;
    struct random random; /* of pauses */
};

static struct market_store *market_of(struct object_store *store)
{
    return (struct market_store *)store;
}

/* ---- One request ----------------------------------------------------------------------------- */

/* Where the body of a GET goes: to memory, or to a file. */
struct sink {
    struct buffer *out; /* NULL: to the file */
    int fd;
    size_t size, size_max; /* of the file */
};

struct request {
    const char *method, *key;
    const char *query; /* "?..." or "" */
    const char *range; /* NULL: none */
    bool is_once;
    struct text body;  /* of a PUT */
    struct sink *sink; /* of a GET */
};

/* What the callbacks of one exchange have. */
struct exchange {
    struct market_store *market;
    struct sink *sink;
    bool is_too_long, has_failed; /* the file */
};

struct problem {
    struct text detail;
};
static const struct json_field problem_fields[] = {
    {"detail", JSON_TEXT, offsetof(struct problem, detail), .size_max = PROBLEM_MAX},
};
static const struct json_schema problem_schema =
    JSON_SCHEMA_LENIENT("problem", problem_fields, struct problem);

/* By what the caller should do. */
static enum error_code code_of(int status)
{
    switch (status) {
    case 401:
    case 403:
        return ERROR_REFUSED;
    case 404:
        return ERROR_NOT_FOUND;
    case 412:
        return ERROR_CONFLICT;
    case 413:
    case 507:
        return ERROR_EXHAUSTED;
    case 416:
        return ERROR_CORRUPT;
    default:
        return status == 429 || status >= 500 ? ERROR_UNAVAILABLE : ERROR_INVALID;
    }
}

static int refuse(const struct request *request, const struct http_response *response,
                  struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct problem problem = {0};
    struct error ignored; /* then the status says it alone */
    const enum error_code code = code_of(response->status);
    if (code == ERROR_CONFLICT)
        return error_set(error, code, "there is \"%s\" already", request->key);
    if (json_read(arena, buffer_text(&response->body), &problem_schema, &problem, &ignored) < 0 ||
        !problem.detail.size)
        return error_set(error, code, "\"%s\": the market answered with status %d", request->key,
                         response->status);
    return error_set(error, code, "\"%s\": the market says: %.*s", request->key,
                     (int)(problem.detail.size < 160 ? problem.detail.size : 160),
                     problem.detail.data);
}

static size_t sink_max(const struct sink *sink)
{
    return sink->out ? sink->out->size_max : sink->size_max;
}

/* Empties it for another attempt. */
static int sink_begin(struct sink *sink, struct error *error)
{
    sink->size = 0;
    if (sink->out)
        buffer_clear(sink->out);
    else if (ftruncate(sink->fd, 0) < 0 || lseek(sink->fd, 0, SEEK_SET) < 0)
        return error_set_errno(error, errno, "empty the file");
    return 0;
}

static bool write_whole(int fd, struct text bytes)
{
    while (bytes.size > 0) {
        const ssize_t size = write(fd, bytes.data, bytes.size);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return false;
        bytes.data += size;
        bytes.size -= (size_t)size;
    }
    return true;
}

static int take_chunk(void *context, struct text chunk)
{
    struct exchange *exchange = context;
    struct sink *sink = exchange->sink;
    if (!sink)
        return 0;
    exchange->is_too_long = chunk.size > sink_max(sink) - sink->size;
    if (exchange->is_too_long)
        return -1;
    sink->size += chunk.size;
    if (sink->out)
        buffer_append_text(sink->out, chunk);
    else
        exchange->has_failed = !write_whole(sink->fd, chunk);
    return exchange->has_failed ? -1 : 0;
}

/* What is too long is not even begun with. */
static int look_at_head(void *context, const struct http_response *head)
{
    struct exchange *exchange = context;
    exchange->is_too_long = exchange->sink && head->body_bytes > 0 &&
                            (uint64_t)head->body_bytes > sink_max(exchange->sink);
    return exchange->is_too_long ? -1 : 0;
}

static bool is_stopped(void *context)
{
    const struct market_store *market = ((struct exchange *)context)->market;
    return market->is_stopped && market->is_stopped(market->context);
}

static int attempt(struct market_store *market, const struct request *request,
                   struct http_response *response, struct error *error)
{
    char url[URL_SIZE];
    struct http_header headers[4] = {{"Authorization", market->authorization}};
    size_t header_count = 1;
    if (request->range)
        headers[header_count++] = (struct http_header){"Range", request->range};
    if (request->is_once)
        headers[header_count++] = (struct http_header){"If-None-Match", "*"};
    if (request->body.data)
        headers[header_count++] = (struct http_header){"Content-Type", "application/octet-stream"};
    snprintf(url, sizeof(url), "%s/v1/objects/%s%s", market->server, request->key, request->query);
    struct exchange exchange = {.market = market, .sink = request->sink};
    if (request->sink && sink_begin(request->sink, error) < 0)
        return -1;
    const struct http_call_options options = {
        .method = request->method,
        .url = url,
        .headers = headers,
        .header_count = header_count,
        .body = request->body,
        .is_body_kept = true,
        .response_max = PROBLEM_MAX,
        .timeout_ms = -1,
        .idle_timeout_ms = IDLE_MS,
        .pinned_fingerprint = market->fingerprint,
        .on_head = look_at_head,
        .on_chunk = take_chunk,
        .is_stopped = is_stopped,
        .context = &exchange,
    };
    if (http_session_call(market->session, &options, response, error) == 0)
        return response->status / 100 == 2 ? 0 : refuse(request, response, error);
    if (exchange.is_too_long && request->sink)
        return error_set(error, ERROR_EXHAUSTED, "\"%s\" is longer than %zu bytes", request->key,
                         sink_max(request->sink));
    if (exchange.has_failed)
        return error_set(error, ERROR_EXHAUSTED, "\"%s\": its bytes cannot be written",
                         request->key);
    return -1;
}

static void pause_before(struct market_store *market, uint32_t failed, int64_t retry_after_s)
{
    int64_t pause_ms = PAUSE_MS;
    for (uint32_t i = 1; i < failed && pause_ms < PAUSE_MS_MAX; i++)
        pause_ms *= 2;
    /* Half of it to all of it, so that many who failed together do not come together. */
    pause_ms = pause_ms / 2 + (int64_t)random_below(&market->random, (uint64_t)pause_ms / 2 + 1);
    if (retry_after_s * 1000 > pause_ms)
        pause_ms = retry_after_s * 1000;
    if (pause_ms > PAUSE_MS_MAX)
        pause_ms = PAUSE_MS_MAX;
    const struct timespec span = {.tv_sec = pause_ms / 1000, .tv_nsec = pause_ms % 1000 * 1000000};
    nanosleep(&span, NULL);
}

static int ask(struct market_store *market, const struct request *request, struct error *error)
{
    for (uint32_t failed = 1;; failed++) {
        struct http_response response AUTO_HTTP_RESPONSE;
        http_response_init(&response);
        response.retry_after_s = -1;
        if (attempt(market, request, &response, error) == 0)
            return 0;
        if (error->code != ERROR_UNAVAILABLE || failed >= market->attempts_max)
            return -1;
        if (is_stopped(&(struct exchange){.market = market}))
            return error_set(error, ERROR_CONFLICT, "stopped");
        pause_before(market, failed, response.retry_after_s);
    }
}

/* ---- What a store does ----------------------------------------------------------------------- */

static int market_read(struct object_store *store, const char *key, struct buffer *out,
                       struct error *error)
{
    struct sink sink = {.out = out};
    const struct request request = {.method = "GET", .key = key, .query = "", .sink = &sink};
    return ask(market_of(store), &request, error);
}

static int market_fetch(struct object_store *store, const char *key, int fd, size_t bytes_max,
                        struct error *error)
{
    struct sink sink = {.fd = fd, .size_max = bytes_max};
    const struct request request = {.method = "GET", .key = key, .query = "", .sink = &sink};
    return ask(market_of(store), &request, error);
}

static int market_read_part(struct object_store *store, const char *key, uint64_t offset, void *out,
                            size_t size, struct error *error)
{
    char range[64];
    struct buffer bytes AUTO_BUFFER;
    if (!size)
        return 0;
    buffer_init(&bytes, size);
    struct sink sink = {.out = &bytes};
    snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64, offset, offset + size - 1);
    const struct request request = {
        .method = "GET", .key = key, .query = "", .range = range, .sink = &sink};
    if (ask(market_of(store), &request, error) < 0)
        return -1;
    if (bytes.size != size)
        return error_set(error, ERROR_CORRUPT, "\"%s\" ends too early", key);
    memcpy(out, bytes.data, size);
    return 0;
}

static int market_delete(struct object_store *store, const char *key, struct error *error)
{
    const struct request request = {.method = "DELETE", .key = key, .query = ""};
    return ask(market_of(store), &request, error);
}

static int put_part(struct market_store *market, const char *key, struct text bytes,
                    struct error *error)
{
    const struct request request = {
        .method = "PUT", .key = key, .query = "", .is_once = true, .body = bytes};
    /* Nobody else has the tag: one that is there is an attempt's whose answer was lost. */
    return ask(market, &request, error) < 0 && error->code != ERROR_CONFLICT ? -1 : 0;
}

/* A part that stays goes with all that nobody reads. */
static void forget_parts(struct object_store *store, const char *key, const char *tag, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[OBJECT_KEY_SIZE + TAG_SIZE + 8];
        struct error ignored;
        snprintf(name, sizeof(name), "%s.%s.%zu", key, tag, i);
        if (market_delete(store, name, &ignored) < 0)
            return;
    }
}

static int put_in_parts(struct object_store *store, const char *key, struct text bytes,
                        bool is_once, struct error *error)
{
    struct market_store *market = market_of(store);
    uint8_t chance[(TAG_SIZE - 1) / 2];
    char tag[TAG_SIZE], query[64], name[OBJECT_KEY_SIZE + TAG_SIZE + 8];
    const size_t count = (bytes.size + PART_BYTES - 1) / PART_BYTES;
    const struct request look = {.method = "HEAD", .key = key, .query = ""};
    if (is_once && ask(market, &look, error) == 0)
        return error_set(error, ERROR_CONFLICT, "there is \"%s\" already", key);
    if (is_once && error->code != ERROR_NOT_FOUND)
        return -1;
    randombytes_buf(chance, sizeof(chance));
    text_hex_encode(chance, sizeof(chance), tag);
    int result = 0;
    size_t put = 0;
    for (; result == 0 && put < count; put++) {
        const size_t first = put * PART_BYTES;
        const size_t left = bytes.size - first;
        const struct text part = {bytes.data + first, left < PART_BYTES ? left : PART_BYTES};
        snprintf(name, sizeof(name), "%s.%s.%zu", key, tag, put);
        result = put_part(market, name, part, error);
    }
    snprintf(query, sizeof(query), "?parts=%zu&of=%s", count, tag);
    const struct request whole = {
        .method = "PUT", .key = key, .query = query, .is_once = is_once, .body = TEXT("")};
    if (result == 0)
        result = ask(market, &whole, error);
    if (result < 0)
        forget_parts(store, key, tag, put);
    return result;
}

static int market_put(struct object_store *store, const char *key, struct text bytes, bool is_once,
                      struct error *error)
{
    if (bytes.size > PART_BYTES)
        return put_in_parts(store, key, bytes, is_once, error);
    const struct request request = {.method = "PUT",
                                    .key = key,
                                    .query = "",
                                    .is_once = is_once,
                                    .body = bytes.data ? bytes : TEXT("")};
    return ask(market_of(store), &request, error);
}

/* A map takes no memory of the file's size: its pages are the file's own. */
static int market_put_file(struct object_store *store, const char *key, int fd, struct error *error)
{
    struct stat found;
    if (fstat(fd, &found) < 0)
        return error_set_errno(error, errno, "look at the file");
    const size_t size = (size_t)found.st_size;
    if (size == 0)
        return market_put(store, key, TEXT(""), /* is_once= */ false, error);
    void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return error_set_errno(error, errno, "read the file");
    const int result =
        market_put(store, key, (struct text){bytes, size}, /* is_once= */ false, error);
    munmap(bytes, size);
    return result;
}

static void free_secret(char *text)
{
    if (text)
        sodium_memzero(text, strlen(text));
    free(text);
}

static void market_free(struct object_store *store)
{
    struct market_store *market = market_of(store);
    http_session_free(market->session);
    free(market->server);
    free_secret(market->authorization);
    free(market->fingerprint);
    free(market);
}

static const struct object_store_ops market_ops = {
    .read = market_read,
    .read_part = market_read_part,
    .put = market_put,
    .fetch = market_fetch,
    .put_file = market_put_file,
    .delete = market_delete,
    .free = market_free,
};

int object_store_open_market(const struct object_store_options *options,
                             struct object_store **out_store, struct error *error)
{
    const struct object_market *wanted = options->market;
    enum { AUTHORIZATION_SIZE = 512 };
    if (sodium_init() < 0)
        return error_set(error, ERROR_UNAVAILABLE, "libsodium cannot be initialised");
    if (!wanted || !wanted->server || !wanted->server[0])
        return error_set(error, ERROR_INVALID, "the store \"market\": no market is known here");
    if (!wanted->token || !wanted->token[0])
        return error_set(error, ERROR_REFUSED, "the store \"market\": there is no token for it");
    if (strlen(wanted->server) > URL_SIZE / 2 ||
        strlen(wanted->token) > AUTHORIZATION_SIZE - sizeof("Bearer "))
        return error_set(error, ERROR_INVALID, "the store \"market\": its address is too long");
    struct market_store *market = memory_zeroed(1, sizeof(*market));
    market->store.ops = &market_ops;
    market->session = http_session_new();
    market->attempts_max = options->attempts_max ? options->attempts_max : ATTEMPTS_DEFAULT;
    market->is_stopped = options->is_stopped;
    market->context = options->context;
    market->server = strdup(wanted->server);
    market->fingerprint =
        wanted->fingerprint && wanted->fingerprint[0] ? strdup(wanted->fingerprint) : NULL;
    market->authorization = memory_zeroed(1, AUTHORIZATION_SIZE);
    snprintf(market->authorization, AUTHORIZATION_SIZE, "Bearer %s", wanted->token);
    uint64_t seed;
    randombytes_buf(&seed, sizeof(seed));
    random_init(&market->random, seed);
    for (size_t size = strlen(market->server); size && market->server[size - 1] == '/';)
        market->server[--size] = '\0';
    *out_store = &market->store;
    return 0;
}
