#include "net/http_server_internal.h"

struct text http_request_method(const struct http_request *request)
{
    return request->method;
}

struct text http_request_path(const struct http_request *request)
{
    return request->path;
}

struct text http_request_parameter(const struct http_request *request, const char *name)
{
    const struct text wanted = text_of(name);
    for (size_t i = 0; i < request->match.parameter_count; i++)
        if (text_equal(request->match.parameters[i].name, wanted))
            return request->match.parameters[i].value;
    return (struct text){0};
}

void http_request_target(const struct http_request *request, struct buffer *out)
{
    buffer_append(out, request->path.data, request->path.size + 1);
    for (const struct http_pair *pair = request->query; pair; pair = pair->next) {
        buffer_append(out, pair->name.data, pair->name.size + 1);
        buffer_append(out, pair->value.data, pair->value.size + 1);
    }
}

struct text http_request_query(const struct http_request *request, const char *name)
{
    const struct text wanted = text_of(name);
    for (const struct http_pair *pair = request->query; pair; pair = pair->next)
        if (text_equal(pair->name, wanted))
            return pair->value;
    return (struct text){0};
}

static struct text look_up(const struct http_request *request, enum MHD_ValueKind kind,
                           const char *name)
{
    return text_of(
        request->server->mhd->MHD_lookup_connection_value(request->connection, kind, name));
}

struct text http_request_header(const struct http_request *request, const char *name)
{
    return look_up(request, MHD_HEADER_KIND, name);
}

enum { HEADER_LIST_SIZE_MAX = 64 << 10 };

struct header_list {
    const char *name;
    struct buffer text;
};

static enum MHD_Result add_line(void *context, enum MHD_ValueKind kind, const char *name,
                                const char *value)
{
    struct header_list *list = context;
    (void)kind;
    if (value && strcasecmp(name, list->name) == 0)
        buffer_append_format(&list->text, "%s%s", list->text.size ? "," : "", value);
    return MHD_YES;
}

struct text http_request_header_list(const struct http_request *request, const char *name)
{
    struct header_list list = {.name = name};
    buffer_init(&list.text, HEADER_LIST_SIZE_MAX);
    request->server->mhd->MHD_get_connection_values(request->connection, MHD_HEADER_KIND, add_line,
                                                    &list);
    const struct text joined =
        arena_copy_text(http_request_arena(request), buffer_text(&list.text));
    buffer_done(&list.text);
    return joined;
}

struct text http_request_cookie(const struct http_request *request, const char *name)
{
    return look_up(request, MHD_COOKIE_KIND, name);
}

struct text http_request_body(const struct http_request *request)
{
    return buffer_text(&request->body);
}

const struct address *http_request_remote(const struct http_request *request)
{
    return &request->remote;
}

const struct http_route *http_request_route(const struct http_request *request)
{
    return request->match.route;
}

struct http_server *http_request_server(const struct http_request *request)
{
    return request->server;
}

bool http_request_is_secure(const struct http_request *request)
{
    return request->server->options.certificate_pem != NULL;
}

int64_t http_request_started_ns(const struct http_request *request)
{
    return request->started_ns;
}

struct arena *http_request_arena(const struct http_request *request)
{
    return request->arena;
}

void http_request_set_user(struct http_request *request, void *user)
{
    request->user = user;
}

void *http_request_user(const struct http_request *request)
{
    return request->user;
}

uint64_t http_request_id(const struct http_request *request)
{
    return request->id;
}
