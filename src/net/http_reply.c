#include "base/assert.h"
#include "base/library.h"
#include "net/http_server_internal.h"

#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

enum { SOURCE_BLOCK_SIZE = 64 << 10 };

static bool is_header_text(const char *text)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return false;
    return true;
}

int http_reply_header(struct http_request *request, const char *name, const char *value,
                      struct error *error)
{
    if (!is_header_text(name) || !is_header_text(value))
        return error_set(error, ERROR_INVALID, "header has a control character");
    struct http_pair *pair = arena_alloc(request->arena, sizeof(*pair));
    pair->name.data = arena_copy_string(request->arena, text_of(name));
    pair->value.data = arena_copy_string(request->arena, text_of(value));
    pair->next = request->reply_headers;
    request->reply_headers = pair;
    return 0;
}

static void add_header(const struct http_request *request, struct MHD_Response *response,
                       const char *name, const char *value)
{
    /* Fails only for want of memory or for values that were checked before. */
    (void)request->server->mhd->MHD_add_response_header(response, name, value);
}

static bool has_header(const struct http_request *request, const char *name)
{
    for (const struct http_pair *pair = request->reply_headers; pair; pair = pair->next)
        if (strcasecmp(pair->name.data, name) == 0)
            return true;
    return false;
}

void http_reply_finish(struct http_request *request, int status, const char *content_type,
                       struct MHD_Response *response)
{
    const struct mhd_library *mhd = request->server->mhd;
    if (request->status != 0) { /* the first reply stands */
        if (response)
            mhd->MHD_destroy_response(response);
        return;
    }
    ASSERT(status >= 200 && status <= 599);
    request->status = status;
    map_remove(&request->server->waiting, request->id);
    if (response) {
        const struct http_server_options *options = &request->server->options;
        if (content_type)
            add_header(request, response, "Content-Type", content_type);
        for (size_t i = 0; i < options->default_header_count; i++)
            if (!has_header(request, options->default_headers[i].name))
                add_header(request, response, options->default_headers[i].name,
                           options->default_headers[i].value);
        for (const struct http_pair *pair = request->reply_headers; pair; pair = pair->next)
            add_header(request, response, pair->name.data, pair->value.data);
    }
    request->response = response;
    if (request->is_suspended) {
        request->is_suspended = false;
        http_server_resume(request->server, request->connection);
    }
}

static struct MHD_Response *response_of(const struct http_request *request, const void *data,
                                        size_t size, enum MHD_ResponseMemoryMode mode)
{
    return request->server->mhd->MHD_create_response_from_buffer(size, without_const(data), mode);
}

void http_reply(struct http_request *request, int status, const char *content_type,
                struct text body)
{
    http_reply_finish(request, status, content_type,
                      response_of(request, body.data, body.size, MHD_RESPMEM_MUST_COPY));
}

void http_reply_take(struct http_request *request, int status, const char *content_type,
                     struct buffer *body)
{
    struct error error;
    if (buffer_check(body, &error) < 0) {
        http_reply_problem(request, 500, "too_large", "the reply is larger than allowed");
        return;
    }
    struct MHD_Response *response =
        response_of(request, body->data, body->size, MHD_RESPMEM_MUST_FREE);
    if (response) {
        const size_t size_max = body->size_max;
        buffer_init(body, size_max);
    }
    http_reply_finish(request, status, content_type, response);
}

void http_reply_static(struct http_request *request, int status, const char *content_type,
                       struct text body)
{
    http_reply_finish(request, status, content_type,
                      response_of(request, body.data, body.size, MHD_RESPMEM_PERSISTENT));
}

void http_reply_file_take(struct http_request *request, int status, const char *content_type,
                          int fd, uint64_t offset, uint64_t size)
{
    struct MHD_Response *response =
        request->server->mhd->MHD_create_response_from_fd_at_offset64(size, fd, offset);
    if (!response)
        close(fd);
    http_reply_finish(request, status, content_type, response);
}

static ssize_t read_source(void *context, uint64_t position __attribute__((unused)), char *out,
                           size_t size)
{
    const struct http_source *source = context;
    const ssize_t got = source->read(source->context, out, size);
    ASSERT(got != 0 && got <= (ssize_t)size);
    return got > 0 ? got : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void free_source(void *context)
{
    struct http_source *source = context;
    source->free(source->context);
    free(source);
}

void http_reply_source_take(struct http_request *request, int status, const char *content_type,
                            uint64_t size, const struct http_source *source)
{
    struct http_source *taken = malloc(sizeof(*taken));
    ASSERT(taken);
    *taken = *source;
    struct MHD_Response *response = request->server->mhd->MHD_create_response_from_callback(
        size, SOURCE_BLOCK_SIZE, read_source, taken, free_source);
    if (!response)
        free_source(taken);
    http_reply_finish(request, status, content_type, response);
}

void http_reply_problem(struct http_request *request, int status, const char *code,
                        const char *detail)
{
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, 4096);
    http_problem_write(&body, status, code, detail);
    http_reply_take(request, status, "application/problem+json", &body);
}

void http_reply_error(struct http_request *request, const struct error *error)
{
    http_reply_problem(request, error_http_status(error->code), error_code_name(error->code),
                       error->message);
}
