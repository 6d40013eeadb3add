/* Objects by name: putting, reading, deleting, listing (objects.h). */
#include "base/memory.h"
#include "server/call.h"
#include "server/handlers.h"
#include "server/objects.h"
#include "server/query.h"
#include "server/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Who may --------------------------------------------------------------------------------- */

/* What is under KIND/JOB, of the kinds that a job of functions has (function/object_store.h). */
static bool is_of_job(struct text name, const char *kind, const char *job)
{
    struct text first, second, rest;
    if (!text_cut(name, '/', &first, &rest))
        return false;
    (void)text_cut(rest, '/', &second, &rest); /* jobs/JOB ends there */
    return text_equal(first, text_of(kind)) && text_equal(second, text_of(job));
}

static bool may_ask(const struct caller *caller, struct text name, bool is_update)
{
    static const char *const kinds[] = {"updates", "jobs", "data", "models"};
    if (!caller->objects_job[0])
        return true;
    for (size_t i = 0; i < (is_update ? 1 : sizeof(kinds) / sizeof(*kinds)); i++)
        if (is_of_job(name, kinds[i], caller->objects_job))
            return true;
    return false;
}

/* The request's name, if it is one and the caller may; -1: that was answered. `is_change`:
 * functions change updates alone. */
static int read_name(struct http_request *request, bool is_change, struct object_name *out_name)
{
    const struct caller *caller = route_caller(request);
    const struct text name = http_request_parameter(request, "name");
    struct error error;
    if (objects_check_name(name, &error) < 0) {
        http_reply_error(request, &error);
        return -1;
    }
    if (!may_ask(caller, name, is_change && caller->is_function)) {
        http_reply_problem(
            request, 403, "refused",
            "this token is for the objects of one job: functions read those, and put "
            "updates");
        return -1;
    }
    *out_name = (struct object_name){caller->account, name};
    return 0;
}

/* ---- Putting --------------------------------------------------------------------------------- */

static void refuse_full(struct http_request *request, const struct error *error)
{
    if (error->code == ERROR_EXHAUSTED)
        http_reply_problem(request, 507, "storage_full", error->message);
    else
        http_reply_error(request, error);
}

/* Puts what is in the body. */
static void put_body(struct server *server, struct http_request *request,
                     struct objects_change *change)
{
    const struct text body = http_request_body(request);
    struct error error;
    const int64_t added_bytes = (int64_t)body.size - (int64_t)change->before.size_bytes;
    if (objects_check_room(server->objects, change->name.account, added_bytes, &error) < 0 ||
        objects_write(server->objects, body, &change->writer, &error) < 0) {
        refuse_full(request, &error);
        return;
    }
    change->now = (struct object){.exists = true, .size_bytes = body.size};
    objects_apply(server->objects, request, change);
}

/* What becomes an object. */
struct parts {
    struct blob_hash *blobs;
    size_t count;
    uint64_t size_bytes;
};

static int add_part(struct server *server, struct http_request *request,
                    const struct object_name *name, struct parts *parts, struct error *error)
{
    struct object part;
    if (objects_find(server->objects, http_request_arena(request), name, &part, error) < 0)
        return -1;
    if (!part.exists)
        return error_set(error, ERROR_NOT_FOUND, "a part of the object is not there");
    if (part.blob_count != 1)
        return error_set(error, ERROR_INVALID, "a part of the object has parts itself");
    parts->blobs[parts->count++] = part.blobs[0];
    parts->size_bytes += part.size_bytes;
    return 0;
}

static int read_parts(struct http_request *request, const struct object_name *name,
                      struct objects_change *change, struct error *error)
{
    struct arena *arena = http_request_arena(request);
    const struct text tag = http_request_query(request, "of");
    uint64_t count;
    if (text_parse_u64(http_request_query(request, "parts"), &count, error) < 0 || count == 0 ||
        count > OBJECTS_PARTS_MAX)
        return error_set(error, ERROR_INVALID, "parts: from 1 to %d", OBJECTS_PARTS_MAX);
    struct text *parts = arena_alloc(arena, count * sizeof(*parts));
    for (uint64_t i = 0; i < count; i++) {
        parts[i] = text_of(arena_format(arena, TEXT_FORMAT "." TEXT_FORMAT ".%" PRIu64,
                                        TEXT_ARGS(name->name), TEXT_ARGS(tag), i));
        if (!tag.size || objects_check_name(parts[i], error) < 0)
            return error_set(error, ERROR_INVALID, "of: the tag of the parts, as in NAME.TAG.0");
    }
    change->parts = parts;
    change->part_count = count;
    return 0;
}

/* Makes one of the parts that were put before it. */
static void put_parts(struct server *server, struct http_request *request,
                      struct objects_change *change)
{
    struct error error;
    struct object_name part = change->name;
    struct parts parts = {0};
    if (read_parts(request, &change->name, change, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    parts.blobs = arena_alloc(http_request_arena(request), change->part_count * BLOB_HASH_SIZE);
    for (size_t i = 0; i < change->part_count; i++) {
        part.name = change->parts[i];
        if (objects_wait(server->objects, &part, request))
            return;
        if (add_part(server, request, &part, &parts, &error) < 0) {
            http_reply_error(request, &error);
            return;
        }
    }
    change->now = (struct object){.exists = true,
                                  .size_bytes = parts.size_bytes,
                                  .blob_count = parts.count,
                                  .blobs = parts.blobs};
    objects_apply(server->objects, request, change);
}

void handle_object_put(struct http_request *request, void *context)
{
    struct server *server = context;
    struct objects_change change = {0};
    struct error error;
    const struct text condition = http_request_header(request, "If-None-Match");
    const bool is_once = text_equal(condition, TEXT("*"));
    if (read_name(request, /* is_change= */ true, &change.name) < 0)
        return;
    if ((condition.size && !is_once) || (route_caller(request)->is_function && !is_once)) {
        http_reply_problem(request, condition.size ? 400 : 403,
                           condition.size ? "invalid" : "refused",
                           condition.size ? "If-None-Match: only * is known here"
                                          : "functions put an object once: If-None-Match: *");
        return;
    }
    if (objects_wait(server->objects, &change.name, request))
        return;
    if (objects_find(server->objects, http_request_arena(request), &change.name, &change.before,
                     &error) < 0)
        http_reply_error(request, &error);
    else if (change.before.exists && is_once)
        http_reply_problem(request, 412, "exists", "there is an object of that name already");
    else if (http_request_query(request, "parts").data)
        put_parts(server, request, &change);
    else
        put_body(server, request, &change);
}

void handle_object_delete(struct http_request *request, void *context)
{
    struct server *server = context;
    struct objects_change change = {.is_gone = true};
    struct error error;
    if (read_name(request, /* is_change= */ true, &change.name) < 0)
        return;
    if (route_caller(request)->is_function)
        http_reply_problem(request, 403, "refused", "functions delete nothing");
    else if (objects_wait(server->objects, &change.name, request))
        return;
    else if (objects_find(server->objects, http_request_arena(request), &change.name,
                          &change.before, &error) < 0)
        http_reply_error(request, &error);
    else if (change.before.exists)
        objects_apply(server->objects, request, &change);
    else
        http_reply(request, 204, "application/json", TEXT(""));
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Bytes of an object's blobs, one after the other, as they are sent. */
struct object_source {
    struct server *server;
    size_t blob_count, at;
    int fd;          /* of the blob `at`; -1: not open */
    uint64_t offset; /* in it */
    struct blob_hash blobs[];
};

static void source_free(void *context)
{
    struct object_source *source = context;
    if (source->fd >= 0)
        close(source->fd);
    free(source);
}

static ssize_t source_read(void *context, char *out, size_t size)
{
    struct object_source *source = context;
    while (source->at < source->blob_count) {
        struct blob_file file;
        struct error error;
        if (source->fd < 0) {
            if (blob_store_open_blob(source->server->blobs, &source->blobs[source->at], &file,
                                     &error) < 0)
                return -1;
            source->fd = file.fd;
        }
        const ssize_t got = pread(source->fd, out, size, (off_t)source->offset);
        if (got > 0) {
            source->offset += (uint64_t)got;
            return got;
        }
        if (got < 0 && errno != EINTR)
            return -1;
        if (got == 0) {
            close(TAKE_FD(source->fd));
            source->at++;
            source->offset = OBJECTS_SALT_SIZE;
        }
    }
    return -1;
}

static int source_open(struct server *server, const struct object *object, uint64_t first,
                       struct http_source *out_source, struct error *error)
{
    struct object_source *source =
        memory_zeroed(1, sizeof(*source) + object->blob_count * BLOB_HASH_SIZE);
    source->server = server;
    source->fd = -1;
    source->blob_count = object->blob_count;
    memcpy(source->blobs, object->blobs, object->blob_count * BLOB_HASH_SIZE);
    for (; source->at < source->blob_count; source->at++) {
        uint64_t bytes;
        if (blob_store_size(server->blobs, &source->blobs[source->at], &bytes, error) < 0) {
            source_free(source);
            return -1;
        }
        if (first < bytes - OBJECTS_SALT_SIZE)
            break;
        first -= bytes - OBJECTS_SALT_SIZE;
    }
    source->offset = OBJECTS_SALT_SIZE + first;
    *out_source = (struct http_source){.read = source_read, .free = source_free, .context = source};
    return 0;
}

/* Most objects are one blob: its file is sent as it is. */
static int send_bytes(struct server *server, struct http_request *request, int status,
                      const struct object *object, const struct http_range *range,
                      struct error *error)
{
    static const char type[] = "application/octet-stream";
    struct blob_file file;
    struct http_source source;
    if (object->blob_count == 1) {
        if (blob_store_open_blob(server->blobs, &object->blobs[0], &file, error) < 0)
            return -1;
        http_reply_file_take(request, status, type, file.fd, range->first + OBJECTS_SALT_SIZE,
                             range->size);
        return 0;
    }
    if (source_open(server, object, range->first, &source, error) < 0)
        return -1;
    http_reply_source_take(request, status, type, range->size, &source);
    return 0;
}

static int send_range(struct server *server, struct http_request *request,
                      const struct object *object, struct error *error)
{
    struct http_range range = {0, object->size_bytes};
    char told[80];
    const enum http_range_kind kind =
        http_range_read(http_request_header(request, "Range"), object->size_bytes, &range);
    if (http_reply_header(request, "Accept-Ranges", "bytes", error) < 0)
        return -1;
    if (kind == HTTP_RANGE_OUTSIDE)
        snprintf(told, sizeof(told), "bytes */%" PRIu64, object->size_bytes);
    else
        snprintf(told, sizeof(told), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, range.first,
                 range.first + range.size - 1, object->size_bytes);
    if (kind != HTTP_RANGE_WHOLE && http_reply_header(request, "Content-Range", told, error) < 0)
        return -1;
    if (kind != HTTP_RANGE_OUTSIDE)
        return send_bytes(server, request, kind == HTTP_RANGE_PART ? 206 : 200, object, &range,
                          error);
    http_reply_problem(request, 416, "invalid", "the object ends before that");
    return 0;
}

/* Reading any of it is a use of all. */
static bool use_blobs(struct server *server, const struct object *object)
{
    bool is_whole = true;
    for (size_t i = 0; i < object->blob_count; i++)
        is_whole = blob_store_use(server->blobs, &object->blobs[i]) && is_whole;
    return is_whole;
}

void handle_object_get(struct http_request *request, void *context)
{
    struct server *server = context;
    struct object_name name;
    struct object object;
    struct error error;
    if (read_name(request, /* is_change= */ false, &name) < 0)
        return;
    int result = objects_find(server->objects, http_request_arena(request), &name, &object, &error);
    if (result == 0 && (!object.exists || !use_blobs(server, &object)))
        http_reply_problem(request, 404, "not_found", "there is no object of that name");
    else if (result == 0)
        result = send_range(server, request, &object, &error);
    if (result < 0)
        http_reply_error(request, &error);
}

/* ---- Listing --------------------------------------------------------------------------------- */

void handle_object_list(struct http_request *request, void *context)
{
    struct server *server = context;
    struct arena *arena = http_request_arena(request);
    const struct text prefix = http_request_query(request, "prefix");
    /* Names have no byte that follows 'z'. */
    const char *end = arena_format(arena, TEXT_FORMAT "\x7f", TEXT_ARGS(prefix));
    const struct store_filter filters[] = {
        {"account", STORE_EQUAL, store_integer((int64_t)route_caller(request)->account)},
        {"name", STORE_GREATER_OR_EQUAL, store_text(prefix)},
        {"name", STORE_LESS, store_text(text_of(end))},
    };
    struct store_query query = {
        .table = &tables[TABLE_OBJECTS], .filters = filters, .filter_count = 3};
    struct query_rows rows;
    struct error error;
    if (query_page(request, server, arena, &query, &rows, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    query_page_begin(&answer.writer);
    for (size_t i = 0; i < rows.count; i++) {
        json_object_begin(&answer.writer);
        json_field_text(&answer.writer, "name", rows.items[i][OBJECTS_NAME].bytes);
        json_field_i64(&answer.writer, "size_bytes", rows.items[i][OBJECTS_SIZE_BYTES].integer);
        json_field_i64(&answer.writer, "stored_ms", rows.items[i][OBJECTS_STORED_MS].integer);
        json_object_end(&answer.writer);
    }
    query_page_end(&answer.writer, &rows);
    view_answer_send(&answer, request, 200);
}
