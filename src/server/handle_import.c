/* Imports: what the market reads for a borrower, and what a file looks like. */
#include "base/assert.h"
#include "base/json_schema.h"
#include "base/log.h"
#include "runtime/job_import.h"
#include "server/call.h"
#include "server/handlers.h"
#include "server/import_fetch.h"
#include "server/imports.h"
#include "server/looks.h"
#include "server/view.h"
#include "source/remote.h"
#include "train/look.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- Asking for one -------------------------------------------------------------------------- */

struct import_body {
    struct text files, name, url, sha256, peer;
    struct text secrets, train; /* JSON */
    bool mount;
};
static const struct json_field import_fields[] = {
    {"files", JSON_TEXT, offsetof(struct import_body, files)},
    {"name", JSON_TEXT, offsetof(struct import_body, name)},
    {"url", JSON_TEXT, offsetof(struct import_body, url), .size_max = PLACE_SIZE_MAX},
    {"sha256", JSON_TEXT, offsetof(struct import_body, sha256)},
    {"peer", JSON_TEXT, offsetof(struct import_body, peer), .size_max = 256},
    {"secrets", JSON_ANY, offsetof(struct import_body, secrets)},
    {"train", JSON_ANY, offsetof(struct import_body, train)},
    {"mount", JSON_BOOL, offsetof(struct import_body, mount)},
};
static const struct json_schema import_schema =
    JSON_SCHEMA("import", import_fields, struct import_body);

/* The job that the data are to be read for, checked as jobs are. */
static int write_spec(struct arena *arena, const struct import_body *body, struct import_wish *wish,
                      struct error *error)
{
    const struct text train = text_trim(body->train);
    struct job_spec spec;
    struct json_writer writer;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    if (!train.size)
        return error_set(error, ERROR_INVALID, "import.train: is missing");
    if (train.size < 2 || train.data[0] != '{')
        return error_set(error, ERROR_INVALID, "import.train: must be an object");
    const struct text fields = text_trim((struct text){train.data + 1, train.size - 2});
    json_writer_init(&writer, &json);
    buffer_append_string(&json, "{\"name\":\"import\",\"train\":{\"data\":");
    if (body->peer.size) {
        json_string(&writer, arena_format(arena, "peer://" TEXT_FORMAT, TEXT_ARGS(body->peer)));
        buffer_append_string(&json, ",\"test\":");
        json_writer_init(&writer, &json); /* the comma is there */
    }
    json_text(&writer, job_data_name(
                           text_of(arena_format(arena, "./" TEXT_FORMAT "%s", TEXT_ARGS(body->name),
                                                wish->is_folder_fetched ? "/" : ""))));
    buffer_append_format(&json, "%s" TEXT_FORMAT "}}", fields.size ? "," : "", TEXT_ARGS(fields));
    if (buffer_check(&json, error) < 0 ||
        job_spec_read(arena, buffer_text(&json), &spec, error) < 0)
        return -1;
    buffer_clear(&json);
    job_spec_write(&spec, &json);
    if (buffer_check(&json, error) < 0)
        return -1;
    wish->spec = arena_copy_text(arena, buffer_text(&json));
    return 0;
}

/* ---- What is fetched ------------------------------------------------------------------------- */

enum { CREDENTIALS_MAX = 16, SECRET_SIZE_MAX = 4096 };

/* The secrets that are known, as an object's fields. */
static struct json_schema secrets_schema(struct json_field fields[CREDENTIALS_MAX])
{
    struct json_schema schema = {.name = "import.secrets",
                                 .fields = fields,
                                 .struct_size = CREDENTIALS_MAX * sizeof(struct text)};
    for (const char *name; (name = remote_credential_name(schema.field_count));) {
        ASSERT(schema.field_count < CREDENTIALS_MAX);
        fields[schema.field_count] = (struct json_field){
            .name = name,
            .kind = JSON_TEXT,
            .offset = schema.field_count * sizeof(struct text),
            .size_max = SECRET_SIZE_MAX,
        };
        schema.field_count++;
    }
    return schema;
}

/* Checked here: the process that fetches would say it later. */
static int read_secrets(struct arena *arena, struct text json, struct import_fetch_request *request,
                        struct error *error)
{
    struct json_field fields[CREDENTIALS_MAX];
    const struct json_schema schema = secrets_schema(fields);
    struct text given[CREDENTIALS_MAX] = {0};
    struct remote_credentials tried AUTO_CREDENTIALS = {0};
    struct text *names = arena_alloc(arena, sizeof(given)),
                *values = arena_alloc(arena, sizeof(given));
    size_t count = 0;
    if (json.size && json_read(arena, json, &schema, given, error) < 0)
        return -1;
    for (size_t i = 0; i < schema.field_count; i++) {
        if (!given[i].size)
            continue;
        names[count] = text_of(fields[i].name);
        values[count++] = given[i];
        if (remote_credentials_set(&tried, text_of(fields[i].name), given[i], error) < 0)
            return error_wrap(error, "import.secrets");
    }
    request->names = (struct json_array){names, count};
    request->values = (struct json_array){values, count};
    return 0;
}

/* Of "s3://bucket/sets/faces/" it is "faces". */
static struct text folder_name(const struct place *place)
{
    struct text path = place->path;
    while (path.size && path.data[path.size - 1] == '/')
        path.size--;
    const char *slash = memrchr(path.data, '/', path.size);
    return slash ? (struct text){slash + 1, path.size - (size_t)(slash + 1 - path.data)} : path;
}

static int read_address(struct arena *arena, const struct import_body *body,
                        struct place *out_place, struct text *out_address, struct error *error)
{
    struct text address = body->url;
    if (place_parse(address, out_place, error) < 0)
        return error_wrap(error, "import.url");
    if (out_place->kind == PLACE_FILE)
        return error_set(error, ERROR_INVALID, "import.url: must be on another machine");
    if (out_place->kind == PLACE_HTTP && place_is_folder(out_place))
        return error_set(error, ERROR_INVALID,
                         "import.url: must be one file: a web server lists no folders");
    if (body->sha256.size && out_place->has_hash)
        return error_set(error, ERROR_INVALID, "import.sha256: the url has one already");
    if (body->sha256.size)
        address = text_of(arena_format(arena, TEXT_FORMAT "#sha256=" TEXT_FORMAT,
                                       TEXT_ARGS(address), TEXT_ARGS(body->sha256)));
    if (place_parse(address, out_place, error) < 0)
        return error_wrap(error, "import.sha256");
    *out_address = address;
    return 0;
}

/* Its last name is the file's, unless another is given. */
static int read_fetch(struct server *server, struct arena *arena, struct import_body *body,
                      struct import_wish *wish, struct error *error)
{
    struct import_fetch_request request = {
        .size_max = imports_size_max(server->imports),
        .is_private_allowed = server->options.is_import_private,
    };
    struct place place;
    struct json_writer writer;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, IMPORTS_REQUEST_MAX);
    if (body->files.size)
        return error_set(error, ERROR_INVALID, "import.url: goes without files");
    if (read_address(arena, body, &place, &request.address, error) < 0 ||
        read_secrets(arena, body->secrets, &request, error) < 0)
        return -1;
    request.is_folder = wish->is_folder_fetched = place_is_folder(&place);
    if (!body->name.size)
        body->name = request.is_folder ? folder_name(&place) : place_file_name(&place);
    json_writer_init(&writer, &json);
    json_write(&writer, &import_fetch_schema, &request);
    if (buffer_check(&json, error) < 0)
        return -1;
    wish->fetch = arena_copy_text(arena, buffer_text(&json));
    return 0;
}

/* ---- The wish -------------------------------------------------------------------------------- */

static int read_files(const struct import_body *body, struct import_wish *wish, struct error *error)
{
    if (!body->files.size)
        return error_set(error, ERROR_INVALID, "import.files: is missing, or else url");
    if (body->sha256.size || body->secrets.size)
        return error_set(error, ERROR_INVALID, "import.%s: goes with url",
                         body->sha256.size ? "sha256" : "secrets");
    if (blob_hash_parse(body->files, &wish->manifest, error) < 0)
        return error_wrap(error, "import.files");
    return 0;
}

/* It becomes what it is: nothing is told of how to read it. */
static int check_mount(const struct import_body *body, struct error *error)
{
    if (!body->url.size)
        return error_set(error, ERROR_INVALID,
                         "import.mount: goes with url; what you have is sent packed "
                         "(application/x-souk-mount)");
    if (body->train.size || body->peer.size)
        return error_set(error, ERROR_INVALID, "import.%s: goes without mount",
                         body->train.size ? "train" : "peer");
    return 0;
}

static int read_wish(struct call *call, struct import_body *body, struct import_wish *out_wish,
                     struct error *error)
{
    *out_wish = (struct import_wish){
        .account = call->caller.account,
        .is_mount = body->mount,
        .is_peer = body->peer.size > 0,
        .has_key = call->has_key,
    };
    if (body->mount && check_mount(body, error) < 0)
        return -1;
    memcpy(out_wish->key_hash, call->key_hash, sizeof(out_wish->key_hash));
    memcpy(out_wish->request_hash, call->request_hash, sizeof(out_wish->request_hash));
    if ((body->url.size ? read_fetch(call->server, call->arena, body, out_wish, error)
                        : read_files(body, out_wish, error)) < 0)
        return -1;
    out_wish->name = body->name;
    if (import_name_check(body->name, error) < 0)
        return -1;
    if (!body->mount)
        return write_spec(call->arena, body, out_wish, error);
    out_wish->spec = TEXT("{}");
    return 0;
}

static void send_order(struct http_request *request, struct import_order *order, int status)
{
    struct view_answer answer;
    view_answer_begin(&answer);
    import_order_write(order, &answer.writer);
    view_answer_send(&answer, request, status);
}

static void send_added(struct http_request *request, struct import_order *order)
{
    struct error error;
    const char *path =
        arena_format(http_request_arena(request), "/v1/imports/%" PRIu64, import_order_id(order));
    if (http_reply_header(request, "Location", path, &error) < 0)
        log_event(LOG_WARN, "header_refused", "error=\"%s\"", error.message);
    send_order(request, order, 201);
}

static void refuse(struct http_request *request, const struct error *error)
{
    struct error lost;
    if (error->code != ERROR_EXHAUSTED) {
        http_reply_error(request, error);
        return;
    }
    if (http_reply_header(request, "Retry-After", "10", &lost) < 0)
        log_event(LOG_WARN, "header_refused", "error=\"%s\"", lost.message);
    http_reply_problem(request, 429, "rate_limited", error->message);
}

void handle_import_create(struct http_request *request, void *context)
{
    struct server *server = context;
    AUTO(call) struct call *call = call_new(server, request); /* for its key and arena */
    struct import_body body = {0};
    struct import_wish wish;
    struct import_order *order;
    struct error error;
    if (json_read(call->arena, http_request_body(request), &import_schema, &body, &error) < 0 ||
        read_wish(call, &body, &wish, &error) < 0)
        http_reply_error(request, &error);
    else if (imports_add(server->imports, &wish, &order, &error) < 0)
        refuse(request, &error);
    else
        send_added(request, order);
}

/* ---- One that is there ----------------------------------------------------------------------- */

static void reply_gone(struct http_request *request, uint64_t id)
{
    http_reply_problem(request, 404, "not_found",
                       arena_format(http_request_arena(request),
                                    "import %" PRIu64 " does not exist: it was removed, ended more "
                                    "than an hour ago, or the market was started anew; post it "
                                    "again",
                                    id));
}

void handle_import_get(struct http_request *request, void *context)
{
    const struct server *server = context;
    uint64_t id = 0;
    if (route_id(request, "an import's", &id) < 0)
        return;
    struct import_order *order = imports_find(server->imports, route_caller(request)->account, id);
    if (order)
        send_order(request, order, 200);
    else
        reply_gone(request, id);
}

void handle_import_delete(struct http_request *request, void *context)
{
    const struct server *server = context;
    uint64_t id = 0;
    if (route_id(request, "an import's", &id) < 0)
        return;
    if (imports_remove(server->imports, route_caller(request)->account, id))
        http_reply(request, 204, "application/json", TEXT(""));
    else
        reply_gone(request, id);
}

/* ---- What a file looks like ------------------------------------------------------------------ */

struct look_call {
    struct server *server;
    uint64_t request;
};

static void looked(void *context, const struct look *look, const struct error *error)
{
    struct look_call *call = context;
    struct http_request *request =
        call->server->http ? http_server_find(call->server->http, call->request) : NULL;
    if (request && look) {
        struct view_answer answer;
        view_answer_begin(&answer);
        look_write(&answer.writer, look);
        view_answer_send(&answer, request, 200);
    } else if (request && error->code == ERROR_UNAVAILABLE) {
        http_reply_error(request, error);
    } else if (request) {
        http_reply_problem(request, 422, "invalid", error->message);
    }
    free(call);
}

void handle_import_look(struct http_request *request, void *context)
{
    struct server *server = context;
    const struct text name = http_request_query(request, "name");
    struct error error;
    if (import_name_check(name, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    if (!http_request_body(request).size) {
        http_reply_problem(request, 422, "invalid", "the file is empty");
        return;
    }
    struct look_call *call = malloc(sizeof(*call));
    ASSERT(call);
    *call = (struct look_call){server, http_request_id(request)};
    looks_add(server->looks, name, http_request_body(request), looked, call);
}
