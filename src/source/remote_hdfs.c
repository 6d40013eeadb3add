/*
 * HDFS by WebHDFS: the name node tells a file's status, and redirects who opens it to a data node.
 */
#include "source/aws.h"
#include "source/hdfs_answer.h"
#include "source/remote_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HTTP_PORT = 9870, HTTPS_PORT = 9871, DEPTH_MAX = 8 };

#define LIST_BYTES_MAX ((size_t)64 << 20)

static bool has_port(struct text authority)
{
    const char *colon = memrchr(authority.data, ':', authority.size);
    const char *bracket = memrchr(authority.data, ']', authority.size);
    return colon && (!bracket || colon > bracket);
}

int remote_hdfs_write_url(const struct remote *remote, struct text path, const char *operation,
                          char out[REMOTE_URL_SIZE], struct error *error)
{
    const struct place *place = &remote->place;
    const struct remote_credentials *credentials = &remote->credentials;
    struct buffer url AUTO_BUFFER;
    buffer_init(&url, REMOTE_URL_SIZE);
    buffer_append_format(&url, "%s://" TEXT_FORMAT, place->is_secure ? "https" : "http",
                         TEXT_ARGS(place->authority));
    if (!has_port(place->authority))
        buffer_append_format(&url, ":%d", place->is_secure ? HTTPS_PORT : HTTP_PORT);
    buffer_append_string(&url, "/webhdfs/v1");
    aws_encode(path, "/", &url);
    buffer_append_format(&url, "?op=%s", operation);
    if (credentials->hdfs_token[0]) {
        buffer_append_string(&url, "&delegation=");
        aws_encode(text_of(credentials->hdfs_token), "", &url);
    } else if (credentials->hdfs_user[0]) {
        buffer_append_string(&url, "&user.name=");
        aws_encode(text_of(credentials->hdfs_user), "", &url);
    }
    return buffer_check(&url, error) < 0
               ? -1
               : text_copy(buffer_text(&url), out, REMOTE_URL_SIZE, error);
}

static int prepare(const struct remote_reading *reading, struct remote_request *out_request,
                   struct error *error)
{
    char operation[96];
    if (reading->end == REMOTE_END)
        snprintf(operation, sizeof(operation), "OPEN&offset=%" PRIu64, reading->position);
    else
        snprintf(operation, sizeof(operation), "OPEN&offset=%" PRIu64 "&length=%" PRIu64,
                 reading->position, reading->end - reading->position);
    return remote_hdfs_write_url(reading->remote, reading->remote->place.path, operation,
                                 out_request->url, error);
}

static bool explain(struct remote *remote __attribute__((unused)), struct http_response *response,
                    struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct text exception = hdfs_answer_exception(arena, buffer_text(&response->body));
    if (text_is(exception, "StandbyException"))
        error_fill(error, ERROR_REFUSED, "this name node only stands by; name the active one");
    else if (text_is(exception, "AccessControlException"))
        error_fill(error, ERROR_REFUSED,
                   "the file's permissions forbid it; HADOOP_USER_NAME names who asks");
    else if (error->code == ERROR_REFUSED && exception.size)
        error_fill(error, ERROR_REFUSED, "the server refuses it: " TEXT_FORMAT,
                   TEXT_ARGS(exception));
    return false;
}

/* Nothing that a data node sends tells one file from the next of its name: its status does. */
static int check(struct remote_reading *reading, struct error *error)
{
    struct remote *remote = reading->remote;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct remote_request request = {0};
    struct http_call_options options = {0};
    struct http_response response AUTO_HTTP_RESPONSE;
    struct hdfs_status status;
    http_response_init(&response);
    if (remote_hdfs_write_url(remote, remote->place.path, "GETFILESTATUS", request.url, error) <
            0 ||
        remote_exchange(reading, &request, &options, &response, error) < 0)
        return -1;
    if (response.status != 200) {
        remote_refuse(response.status, error);
        (void)explain(remote, &response, error);
        return -1;
    }
    if (hdfs_answer_status(arena, buffer_text(&response.body), &status, error) < 0)
        return -1;
    if (status.is_folder)
        return error_set(error, ERROR_INVALID,
                         "it is a folder; with a slash behind it, its files "
                         "are read");
    struct remote_identity found = {.is_known = true, .size = status.length};
    snprintf(found.last_modified, sizeof(found.last_modified), "%" PRId64,
             status.modification_time);
    reading->is_changed = remote->identity.is_known &&
                          (found.size != remote->identity.size ||
                           strcmp(found.last_modified, remote->identity.last_modified) != 0);
    if (!reading->is_changed)
        remote->identity = found;
    return 0;
}

/* ---- Folders --------------------------------------------------------------------------------- */

struct folder {
    struct remote_listing *listing;
    struct text path; /* from the root, with a slash behind it */
    const struct hdfs_status *list;
    size_t count;
};

static int ask_folder(struct remote_reading *reading, void *context, struct error *error)
{
    struct remote *remote = reading->remote;
    struct folder *folder = context;
    struct remote_request request = {0};
    struct http_call_options options = {.response_max = LIST_BYTES_MAX};
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    if (remote_hdfs_write_url(remote, folder->path, "LISTSTATUS", request.url, error) < 0 ||
        remote_exchange(reading, &request, &options, &response, error) < 0)
        return -1;
    if (response.status == 200)
        return hdfs_answer_list(folder->listing->arena, buffer_text(&response.body), &folder->list,
                                &folder->count, error);
    remote_refuse(response.status, error);
    (void)explain(remote, &response, error);
    return -1;
}

/* `below`: the part of the path that is not the remote's own. */
static int list_below(struct remote_reading *reading, struct remote_listing *listing,
                      struct text below, int depth, struct error *error)
{
    struct arena *arena = listing->arena;
    struct folder folder = {.listing = listing};
    folder.path = text_of(arena_format(arena, TEXT_FORMAT TEXT_FORMAT,
                                       TEXT_ARGS(reading->remote->place.path), TEXT_ARGS(below)));
    if (remote_insist(reading, ask_folder, &folder, error) < 0)
        return -1;
    for (size_t i = 0; i < folder.count; i++) {
        const struct hdfs_status *status = &folder.list[i];
        const struct text name =
            text_of(arena_format(arena, TEXT_FORMAT TEXT_FORMAT "%s", TEXT_ARGS(below),
                                 TEXT_ARGS(status->name), status->is_folder ? "/" : ""));
        if (!status->name.size)
            return error_set(error, ERROR_INVALID,
                             "it is a file: without the slash behind it, it "
                             "is read");
        if (status->is_folder && depth == DEPTH_MAX)
            return error_set(error, ERROR_EXHAUSTED, "its folders are more than %d deep",
                             DEPTH_MAX);
        if (status->is_folder ? list_below(reading, listing, name, depth + 1, error) < 0
                              : remote_listing_add(listing, name, status->length, error) < 0)
            return -1;
    }
    return 0;
}

static int list(struct remote_reading *reading, struct remote_listing *listing, struct error *error)
{
    return list_below(reading, listing, (struct text){"", 0}, /* depth= */ 0, error);
}

const struct remote_scheme remote_hdfs = {.prepare = prepare,
                                          .check = check,
                                          .explain = explain,
                                          .list = list,
                                          .put = remote_hdfs_put,
                                          .is_offset_in_url = true};
