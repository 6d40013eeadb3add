/* Chunks by hash: uploading, fetching, asking which are missing. */
#include "base/assert.h"
#include "base/json_schema.h"
#include "base/log.h"
#include "server/call.h"
#include "server/handlers.h"
#include "server/holdings.h"
#include "server/query.h"
#include "server/view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { MISSING_MAX = 4096 };

static int read_hash(struct http_request *request, struct blob_hash *out_hash)
{
    struct error error;
    if (blob_hash_parse(http_request_parameter(request, "hash"), out_hash, &error) == 0)
        return 0;
    http_reply_problem(request, 400, "invalid",
                       "a chunk is named by its BLAKE2b-256 as 64 lower-case hex digits");
    return -1;
}

static int put_body(struct server *server, const struct blob_hash *hash, enum blob_coding coding,
                    struct text body, struct error *error)
{
    struct blob_hash stored;
    return coding == BLOB_CODING_ZSTD ? blob_store_put_frame(server->blobs, hash, body, error)
                                      : blob_store_put(server->blobs, hash, body, &stored, error);
}

/* Who stores what is there already must have it all the same: its name is no proof. */
static int check_body(const struct blob_hash *hash, enum blob_coding coding, struct text body,
                      struct error *error)
{
    struct blob_hash found;
    struct buffer plain AUTO_BUFFER;
    buffer_init(&plain, BLOB_BYTES_MAX);
    if (coding == BLOB_CODING_ZSTD) {
        if (blob_decode(body, &plain, error) < 0)
            return -1;
        body = buffer_text(&plain);
    }
    blob_hash_of(body.data, body.size, &found);
    if (!blob_hash_equal(&found, hash))
        return error_set(error, ERROR_INVALID, "these bytes are not the chunk of that name");
    return 0;
}

struct stored {
    struct server *server;
    uint64_t request;
    struct blob_hash hash;
};

/* Who did not name the chunk is told its name. */
static void reply_stored(struct http_request *request, int status, const struct blob_hash *hash)
{
    char hex[BLOB_HASH_TEXT_SIZE];
    if (http_request_parameter(request, "hash").data) {
        http_reply(request, status, "application/json", TEXT(""));
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_field_string(&answer.writer, "hash", blob_hash_format(hash, hex));
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, status);
}

static void answer_stored(void *context, const struct error *error)
{
    struct stored *stored = context;
    struct http_request *request =
        stored->server->http ? http_server_find(stored->server->http, stored->request) : NULL;
    if (request && error)
        http_reply_error(request, error);
    else if (request)
        reply_stored(request, 201, &stored->hash);
    free(stored);
}

/* Answered when it is on disk. */
static int store_body(struct server *server, struct http_request *request,
                      const struct blob_hash *hash, enum blob_coding coding, struct error *error)
{
    const struct text body = http_request_body(request);
    if (blob_store_use(server->blobs, hash) ? check_body(hash, coding, body, error) < 0
                                            : put_body(server, hash, coding, body, error) < 0)
        return -1;
    struct stored *stored = malloc(sizeof(*stored));
    ASSERT(stored);
    *stored = (struct stored){server, http_request_id(request), *hash};
    const struct caller *caller = route_caller(request);
    const bool is_checkpoint = http_request_header(request, BLOB_CHECKPOINT_HEADER).size > 0;
    const struct holder holder = {.account = caller->account,
                                  .job = is_checkpoint ? caller->job : caller->server_of};
    holdings_add(server->holdings, holder, hash, body.size, answer_stored, stored);
    return 0;
}

static void store_chunk(struct server *server, struct http_request *request,
                        const struct blob_hash *hash, enum blob_coding coding)
{
    struct error error;
    if (holdings_check_room(server->holdings, route_caller(request)->account, hash,
                            http_request_body(request).size, &error) < 0) {
        if (error.code == ERROR_EXHAUSTED)
            http_reply_problem(request, 507, "storage_full", error.message);
        else
            http_reply_error(request, &error);
    } else if (store_body(server, request, hash, coding, &error) == 0) {
        return;
    } else if (error.code == ERROR_EXHAUSTED) {
        log_event(LOG_WARN, "chunk_refused", "error=\"%s\"", error.message);
        http_reply_problem(request, 507, "storage_full",
                           "the market has no room for more chunks; nothing was stored, try "
                           "again later");
    } else {
        http_reply_error(request, &error);
    }
}

/* True: the account has it for good, and the request was answered; or it could not be told. */
static bool reply_kept(struct server *server, struct http_request *request,
                       const struct blob_hash *hash)
{
    struct error error;
    bool is_kept = false;
    if (holdings_keeps(server->holdings, route_caller(request)->account, hash, &is_kept, &error) <
        0) {
        http_reply_error(request, &error);
        return true;
    }
    if (!is_kept || !blob_store_use(server->blobs, hash))
        return false;
    reply_stored(request, 200, hash);
    return true;
}

void handle_chunk_put(struct http_request *request, void *context)
{
    struct server *server = context;
    struct blob_hash hash;
    struct error error;
    enum blob_coding coding;
    if (read_hash(request, &hash) < 0 || reply_kept(server, request, &hash))
        return;
    if (blob_coding_parse(http_request_header(request, "Content-Encoding"), &coding, &error) < 0)
        http_reply_problem(request, 415, "unsupported", error.message);
    else
        store_chunk(server, request, &hash, coding);
}

void handle_chunk_post(struct http_request *request, void *context)
{
    struct server *server = context;
    const struct text body = http_request_body(request);
    struct blob_hash hash;
    if (http_request_header(request, "Content-Encoding").size) {
        http_reply_problem(request, 415, "unsupported",
                           "a chunk that the market is to name comes as it is");
        return;
    }
    if (!body.size) {
        http_reply_problem(request, 400, "invalid", "a chunk has 1 byte to 4 MiB");
        return;
    }
    blob_hash_of(body.data, body.size, &hash);
    if (!reply_kept(server, request, &hash))
        store_chunk(server, request, &hash, BLOB_CODING_PLAIN);
}

/* The bytes of a chunk in one of its codings; each has a tag of its own, for ranges. */
struct chunk_reply {
    struct blob_file file; /* fd -1: the plain bytes are in `plain` */
    struct buffer plain;
    uint64_t size_bytes;
    char tag[BLOB_HASH_TEXT_SIZE + 40];
};

/* A frame is sent as it was put. For a caller that takes none it is unpacked: rare, as our own
 * programs all do. */
static int open_reply(struct server *server, struct http_request *request,
                      const struct blob_hash *hash, struct chunk_reply *reply, struct error *error)
{
    char text[BLOB_HASH_TEXT_SIZE];
    if (blob_store_open_blob(server->blobs, hash, &reply->file, error) < 0)
        return -1;
    reply->size_bytes = reply->file.size_bytes;
    snprintf(reply->tag, sizeof(reply->tag), "\"%s\"", blob_hash_format(hash, text));
    if (reply->file.coding == BLOB_CODING_PLAIN)
        return 0;
    if (http_accepts_coding(http_request_header_list(request, "Accept-Encoding"), TEXT("zstd"))) {
        /* Two frames of the same bytes need not be the same. */
        snprintf(reply->tag, sizeof(reply->tag), "\"%s.zstd.%" PRIu64 "\"", text,
                 reply->size_bytes);
        return 0;
    }
    close(TAKE_FD(reply->file.fd));
    reply->file.coding = BLOB_CODING_PLAIN;
    if (blob_store_read(server->blobs, hash, &reply->plain, error) < 0)
        return -1;
    reply->size_bytes = reply->plain.size;
    return 0;
}

static int add_reply_headers(struct http_request *request, const struct chunk_reply *reply,
                             struct error *error)
{
    if (http_reply_header(request, "Cache-Control", "private, max-age=31536000, immutable", error) <
            0 ||
        http_reply_header(request, "Vary", "Accept-Encoding", error) < 0 ||
        http_reply_header(request, "Accept-Ranges", "bytes", error) < 0 ||
        http_reply_header(request, "ETag", reply->tag, error) < 0)
        return -1;
    return reply->file.coding == BLOB_CODING_PLAIN
               ? 0
               : http_reply_header(request, "Content-Encoding",
                                   blob_coding_name(reply->file.coding), error);
}

static void send_reply(struct http_request *request, struct chunk_reply *reply, int status,
                       const struct http_range *range)
{
    static const char type[] = "application/octet-stream";
    if (reply->file.fd >= 0)
        http_reply_file_take(request, status, type, TAKE_FD(reply->file.fd), range->first,
                             range->size);
    else
        http_reply(request, status, type,
                   (struct text){(const char *)reply->plain.data + range->first, range->size});
}

/* A range counts if it is of these very bytes. */
static enum http_range_kind wanted_range(const struct http_request *request,
                                         const struct chunk_reply *reply,
                                         struct http_range *out_range)
{
    const struct text condition = http_request_header(request, "If-Range");
    *out_range = (struct http_range){0, reply->size_bytes};
    if (condition.data && !text_equal(condition, text_of(reply->tag)))
        return HTTP_RANGE_WHOLE;
    return http_range_read(http_request_header(request, "Range"), reply->size_bytes, out_range);
}

static void answer_range(struct http_request *request, struct chunk_reply *reply)
{
    struct error error;
    struct http_range range;
    char told[80];
    const enum http_range_kind kind = wanted_range(request, reply, &range);
    if (kind == HTTP_RANGE_OUTSIDE) {
        snprintf(told, sizeof(told), "bytes */%" PRIu64, reply->size_bytes);
        if (http_reply_header(request, "Content-Range", told, &error) < 0)
            http_reply_error(request, &error);
        else
            http_reply_problem(request, 416, "invalid", "the chunk ends before that");
        return;
    }
    snprintf(told, sizeof(told), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, range.first,
             range.first + range.size - 1, reply->size_bytes);
    if (add_reply_headers(request, reply, &error) < 0 ||
        (kind == HTTP_RANGE_PART && http_reply_header(request, "Content-Range", told, &error) < 0))
        http_reply_error(request, &error);
    else
        send_reply(request, reply, kind == HTTP_RANGE_PART ? 206 : 200, &range);
}

void handle_chunk_get(struct http_request *request, void *context)
{
    struct server *server = context;
    struct blob_hash hash;
    if (read_hash(request, &hash) < 0)
        return;
    struct error error;
    bool is_held = false;
    struct chunk_reply reply = {.file = {.fd = -1}};
    if (holdings_has(server->holdings, route_caller(request)->account, &hash, &is_held, &error) <
        0) {
        http_reply_error(request, &error);
        return;
    }
    if (!is_held || !blob_store_use(server->blobs, &hash)) {
        http_reply_problem(request, 404, "not_found",
                           "this account has no such chunk: it has not sent it, or it is gone");
        return;
    }
    buffer_init(&reply.plain, BLOB_BYTES_MAX);
    if (open_reply(server, request, &hash, &reply, &error) < 0)
        http_reply_error(request, &error);
    else
        answer_range(request, &reply);
    auto_close_fd(&reply.file.fd);
    buffer_done(&reply.plain);
}

struct missing {
    struct json_array hashes;
};
static const struct json_field missing_fields[] = {
    {"hashes", JSON_TEXTS, offsetof(struct missing, hashes), .is_required = true,
     .size_max = MISSING_MAX},
};
static const struct json_schema missing_schema =
    JSON_SCHEMA("missing", missing_fields, struct missing);

void handle_chunks_missing(struct http_request *request, void *context)
{
    struct server *server = context;
    struct missing body = {0};
    struct error error;
    if (json_read(http_request_arena(request), http_request_body(request), &missing_schema, &body,
                  &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    /* What a lease leaves no job claims before it is left. */
    int (*const find)(struct holdings *, uint64_t, const struct blob_hash *, bool *,
                      struct error *) =
        route_caller(request)->lease ? holdings_keeps : holdings_has;
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_key(&answer.writer, "hashes");
    json_array_begin(&answer.writer);
    for (size_t i = 0; i < body.hashes.count; i++) {
        const struct text name = ((const struct text *)body.hashes.items)[i];
        struct blob_hash hash;
        if (blob_hash_parse(name, &hash, &error) < 0) {
            buffer_done(&answer.body);
            http_reply_error(request, &error);
            return;
        }
        bool is_held = false;
        if (find(server->holdings, route_caller(request)->account, &hash, &is_held, &error) < 0) {
            buffer_done(&answer.body);
            http_reply_error(request, &error);
            return;
        }
        if (!is_held)
            json_text(&answer.writer, name);
    }
    json_array_end(&answer.writer);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 200);
}
