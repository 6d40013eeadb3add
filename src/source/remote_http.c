#include "source/remote_internal.h"

#include <inttypes.h>
#include <stdio.h>

void remote_add_header(struct remote_request *request, const char *name, struct text value)
{
    char *kept = request->values[request->header_count];
    snprintf(kept, REMOTE_HEADER_SIZE, TEXT_FORMAT, TEXT_ARGS(value));
    request->headers[request->header_count++] = (struct http_header){name, kept};
}

/* Only a strong one says that every byte is the same (RFC 9110, 13.1.5). */
static bool is_strong(const char *etag)
{
    return etag[0] == '"';
}

void remote_add_range(const struct remote_reading *reading, const char *condition,
                      struct remote_request *request)
{
    const struct remote_identity *identity = &reading->remote->identity;
    char range[64];
    if (reading->position == 0 && reading->end == REMOTE_END)
        return;
    if (reading->end == REMOTE_END)
        snprintf(range, sizeof(range), "bytes=%" PRIu64 "-", reading->position);
    else
        snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64, reading->position,
                 reading->end - 1);
    remote_add_header(request, "Range", text_of(range));
    if (!identity->is_known)
        return;
    if (is_strong(identity->etag))
        remote_add_header(request, condition, text_of(identity->etag));
    else if (identity->last_modified[0] && strcmp(condition, "If-Range") == 0)
        remote_add_header(request, condition, text_of(identity->last_modified));
}

static int prepare(const struct remote_reading *reading, struct remote_request *out_request,
                   struct error *error)
{
    const struct text address = text_of(reading->remote->address);
    struct text url;
    struct text hash;
    (void)text_cut(address, '#', &url, &hash);
    if (text_copy(url, out_request->url, sizeof(out_request->url), error) < 0)
        return -1;
    remote_add_range(reading, "If-Range", out_request);
    return 0;
}

const struct remote_scheme remote_http = {.prepare = prepare};
