#include "base/assert.h"
#include "net/http_server_internal.h"

#include <stdlib.h>
#include <string.h>

struct http_body {
    uint32_t reference_count;
    size_t size;
    _Alignas(max_align_t) char data[];
};

struct http_body *http_body_new(struct text text)
{
    struct http_body *body = malloc(sizeof(*body) + text.size);
    ASSERT(body);
    body->reference_count = 1;
    body->size = text.size;
    if (text.size)
        memcpy(body->data, text.data, text.size);
    return body;
}

void http_body_unref(struct http_body *body)
{
    if (!body)
        return;
    ASSERT(body->reference_count > 0);
    if (--body->reference_count == 0)
        free(body);
}

size_t http_body_size(const struct http_body *body)
{
    return body->size;
}

/* libmicrohttpd hands the bytes back, not the body. */
static void release_data(void *data)
{
    http_body_unref((struct http_body *)(void *)((char *)data - offsetof(struct http_body, data)));
}

void http_reply_body(struct http_request *request, int status, const char *content_type,
                     struct http_body *body)
{
    body->reference_count++;
    struct MHD_Response *response =
        request->server->mhd->MHD_create_response_from_buffer_with_free_callback(
            body->size, body->data, release_data);
    if (!response)
        http_body_unref(body);
    http_reply_finish(request, status, content_type, response);
}
