/*
 * Small objects of S3, held in memory: read whole, put, put once, taken away.
 *
 * Put once is a PUT with "If-None-Match: *": of all who put at the same time one is let in, the
 * others are told by status 412. Where an answer got lost, what is there may be one's own.
 */
#include "net/http.h"
#include "source/remote_internal.h"

#include <string.h>

struct object_call {
    const char *method;
    struct text body;
    bool is_once;
};

static void write_path(struct text path, struct buffer *url)
{
    struct text part;
    while (path.size > 0 && path.data[0] == '/') {
        path = (struct text){path.data + 1, path.size - 1};
        const char *slash = memchr(path.data, '/', path.size);
        part = (struct text){path.data, slash ? (size_t)(slash - path.data) : path.size};
        buffer_append_byte(url, '/');
        http_percent_encode(part, url);
        path = (struct text){path.data + part.size, path.size - part.size};
    }
}

static int judge(struct remote *remote, const struct object_call *call,
                 struct http_response *response, struct error *error)
{
    if (call->is_once && response->status == 412)
        return error_set(error, ERROR_CONFLICT, "there is something already");
    if (call->is_once && response->status == 409) /* another put is under way */
        return error_set(error, ERROR_UNAVAILABLE, "somebody else is putting it");
    return remote_judge_put(remote, response, error);
}

static int call_once(struct remote_reading *reading, void *context, struct error *error)
{
    const struct object_call *call = context;
    struct remote *remote = reading->remote;
    struct remote_request request = {0};
    char hash[REMOTE_HASH_TEXT_SIZE];
    struct http_response response AUTO_HTTP_RESPONSE;
    struct buffer url AUTO_BUFFER;
    http_response_init(&response);
    buffer_init(&url, sizeof(request.url));
    remote_s3_write_url(remote, &url);
    write_path(remote->place.path, &url);
    if (buffer_check(&url, error) < 0 ||
        text_copy(buffer_text(&url), request.url, sizeof(request.url), error) < 0)
        return -1;
    remote_hash_hex(call->body, hash);
    remote_add_header(&request, "Content-Type", TEXT("application/octet-stream"));
    if (call->is_once)
        remote_add_header(&request, "If-None-Match", TEXT("*"));
    remote_s3_sign(remote, hash, &request);
    struct http_call_options options = {
        .method = call->method, .body = call->body, .is_body_kept = true};
    if (remote_exchange(reading, &request, &options, &response, error) < 0)
        return -1;
    return judge(remote, call, &response, error);
}

static int insist(struct remote *remote, struct object_call *call, struct error *error)
{
    char name[PLACE_NAME_SIZE];
    struct remote_reading reading = remote_whole(remote);
    if (remote->place.kind != PLACE_S3 || place_is_folder(&remote->place))
        return error_set(error, ERROR_INVALID, "%s: objects are s3://bucket/...",
                         place_describe(text_of(remote->address), name));
    return remote_insist(&reading, call_once, call, error);
}

int remote_put_bytes(struct remote *remote, struct text bytes, bool is_once, struct error *error)
{
    struct object_call call = {"PUT", {bytes.size ? bytes.data : "", bytes.size}, is_once};
    return insist(remote, &call, error);
}

int remote_delete(struct remote *remote, struct error *error)
{
    struct object_call call = {.method = "DELETE", .body = TEXT("")};
    return insist(remote, &call, error);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int take(void *context, uint64_t offset, struct text bytes, struct error *error)
{
    struct buffer *out = context;
    ASSERT(offset == out->size);
    buffer_append_text(out, bytes);
    return buffer_check(out, error);
}

static int restart(void *context, struct error *error __attribute__((unused)))
{
    buffer_clear(context);
    return 0;
}

int remote_read_all(struct remote *remote, struct buffer *out, struct error *error)
{
    struct remote_reading reading = remote_whole(remote);
    buffer_clear(out);
    reading.sink = (struct remote_sink){.take = take, .restart = restart, .context = out};
    return remote_run(&reading, error);
}
