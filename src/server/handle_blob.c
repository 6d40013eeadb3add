/* Chunks by hash: uploading, fetching, asking which are missing. */
#include "base/assert.h"
#include "base/json_schema.h"
#include "base/log.h"
#include "server/call.h"
#include "server/handlers.h"
#include "server/query.h"
#include "server/view.h"

#include <inttypes.h>
#include <stdlib.h>

#define ACCOUNT_QUOTA_BYTES (INT64_C(16) << 30)

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

/* Bytes an account stored; from its row at first use. */
static int64_t *usage_of(struct server *server, struct arena *arena, uint64_t account,
                         struct error *error)
{
    int64_t *bytes = map_get(&server->usage, account);
    if (bytes)
        return bytes;
    const struct store_value *row = NULL;
    if (query_one(server, arena, TABLE_USAGE, "account", store_integer((int64_t)account), &row,
                  error) < 0)
        return NULL;
    bytes = calloc(1, sizeof(*bytes));
    ASSERT(bytes);
    *bytes = row ? row[USAGE_BYTES].integer : 0;
    map_put(&server->usage, account, bytes);
    return bytes;
}

struct usage_row {
    uint64_t account;
    int64_t bytes;
};

static void put_usage(void *context, struct store_batch *batch)
{
    const struct usage_row *usage = context;
    const struct store_value row[USAGE_COLUMN_COUNT] = {
        [USAGE_ACCOUNT] = store_integer((int64_t)usage->account),
        [USAGE_BYTES] = store_integer(usage->bytes),
    };
    store_batch_put(batch, &tables[TABLE_USAGE], row, USAGE_COLUMN_COUNT);
}

static void add_usage(struct server *server, uint64_t account, int64_t *bytes, size_t added)
{
    *bytes += (int64_t)added;
    struct usage_row *usage = calloc(1, sizeof(*usage));
    ASSERT(usage);
    *usage = (struct usage_row){.account = account, .bytes = *bytes};
    server_put_rows(server, put_usage, usage, free);
}

void handle_chunk_put(struct http_request *request, void *context)
{
    struct server *server = context;
    const struct caller *caller = route_caller(request);
    struct blob_hash hash;
    if (read_hash(request, &hash) < 0)
        return;
    if (blob_store_has(server->blobs, &hash)) {
        http_reply(request, 200, "application/json", TEXT(""));
        return;
    }
    struct error error;
    const struct text body = http_request_body(request);
    int64_t *used = usage_of(server, http_request_arena(request), caller->account, &error);
    if (!used) {
        http_reply_error(request, &error);
        return;
    }
    const int64_t quota = server->options.account_quota_bytes > 0
                              ? server->options.account_quota_bytes
                              : ACCOUNT_QUOTA_BYTES;
    if (*used + (int64_t)body.size > quota) {
        http_reply_problem(request, 507, "storage_full",
                           "this account has used up what it may store on this market");
        return;
    }
    if (blob_store_put(server->blobs, &hash, body, &hash, &error) < 0) {
        if (error.code == ERROR_EXHAUSTED) {
            log_event(LOG_WARN, "chunk_refused", "error=\"%s\"", error.message);
            http_reply_problem(request, 507, "storage_full",
                               "the market has no room for more chunks; nothing was stored, try "
                               "again later");
        } else {
            http_reply_error(request, &error);
        }
        return;
    }
    add_usage(server, caller->account, used, body.size);
    http_reply(request, 201, "application/json", TEXT(""));
}

void handle_chunk_get(struct http_request *request, void *context)
{
    struct server *server = context;
    struct blob_hash hash;
    if (read_hash(request, &hash) < 0)
        return;
    struct error error;
    int fd = -1;
    uint64_t size = 0;
    if (blob_store_open_blob(server->blobs, &hash, &fd, &size, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    if (http_reply_header(request, "Cache-Control", "private, max-age=31536000, immutable",
                          &error) < 0)
        log_event(LOG_WARN, "header_refused", "error=\"%s\"", error.message);
    http_reply_file_take(request, 200, "application/octet-stream", fd, 0, size);
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
        if (!blob_store_has(server->blobs, &hash))
            json_text(&answer.writer, name);
    }
    json_array_end(&answer.writer);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 200);
}
