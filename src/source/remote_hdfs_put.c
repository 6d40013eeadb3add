/*
 * HDFS, writing: the name node says where (CREATE), and the data node it names takes the bytes. A
 * file of that name is replaced; folders above it are made.
 */
#include "source/remote_internal.h"

static int create(struct remote_reading *reading, void *context, struct error *error)
{
    struct remote *remote = reading->remote;
    const struct text *bytes = context;
    struct remote_request request = {.stays = true}, there = {.stays = true};
    struct http_call_options asking = {.method = "PUT", .body = TEXT("")};
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    if (remote_hdfs_write_url(remote, remote->place.path, "CREATE&overwrite=true", request.url,
                              error) < 0 ||
        remote_exchange(reading, &request, &asking, &response, error) < 0)
        return -1;
    if (response.status != 307 && response.status != 201) {
        if (remote_judge_put(remote, &response, error) < 0)
            return -1;
        return error_set(error, ERROR_CORRUPT, "the name node does not say where to put it");
    }
    there = request;
    there.header_count = 0;
    if (remote_follow(remote, &response, &there, error) < 0)
        return -1;
    remote_add_header(&there, "Content-Type", TEXT("application/octet-stream"));
    struct http_call_options sending = {.method = "PUT", .body = *bytes, .is_body_kept = true};
    if (remote_exchange(reading, &there, &sending, &response, error) < 0)
        return -1;
    return remote_judge_put(remote, &response, error);
}

int remote_hdfs_put(struct remote_reading *reading, struct text bytes, struct error *error)
{
    return remote_insist(reading, create, &bytes, error);
}
