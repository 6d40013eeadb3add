/* Groups: making one, inviting, joining, leaving; and who is in it. */
#include "server/call.h"
#include "server/handlers.h"
#include "server/query.h"
#include "server/view.h"

#define GROUP_CODE_MS (INT64_C(7) * 24 * 3600 * 1000)

/* Members see who the others are; to others a group is its name. */
static int write_group(struct server *server, struct arena *arena, uint64_t id,
                       struct json_writer *writer, struct error *error)
{
    const struct store_value *group = NULL;
    const struct store_filter filter = {"group_id", STORE_EQUAL, store_integer((int64_t)id)};
    const struct store_query query = {.table = &tables[TABLE_ACCOUNTS],
                                      .filters = &filter,
                                      .filter_count = 1,
                                      .limit = GROUP_MEMBERS_MAX};
    struct query_rows members;
    if (query_id(server, arena, TABLE_GROUPS, id, "group", &group, error) < 0 ||
        query_all(server, arena, &query, &members, error) < 0)
        return -1;
    json_object_begin(writer);
    json_field_i64(writer, "id", group[GROUPS_ID].integer);
    json_field_text(writer, "name", group[GROUPS_NAME].bytes);
    json_field_i64(writer, "created_ms", group[GROUPS_CREATED_MS].integer);
    json_field_i64(writer, "owner", group[GROUPS_OWNER].integer);
    json_key(writer, "members");
    json_array_begin(writer);
    for (size_t i = 0; i < members.count; i++) {
        json_object_begin(writer);
        json_field_i64(writer, "id", members.items[i][ACCOUNTS_ID].integer);
        json_field_text(writer, "name", members.items[i][ACCOUNTS_NAME].bytes);
        json_object_end(writer);
    }
    json_array_end(writer);
    json_object_end(writer);
    return 0;
}

static void reply_group(struct server *server, struct http_request *request, uint64_t id,
                        int status)
{
    struct view_answer answer;
    struct error error;
    view_answer_begin(&answer);
    if (write_group(server, http_request_arena(request), id, &answer.writer, &error) == 0) {
        view_answer_send(&answer, request, status);
        return;
    }
    http_reply_error(request, &error);
    buffer_done(&answer.body);
}

static void group_shown(struct call *call, struct http_request *request)
{
    reply_group(call->server, request, call->request.subject, 201);
    call_free(call);
}

void handle_group_get(struct http_request *request, void *context)
{
    const struct store_value *row = NULL;
    struct error error;
    if (query_id(context, http_request_arena(request), TABLE_ACCOUNTS,
                 route_caller(request)->account, "account", &row, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    if (!row[ACCOUNTS_GROUP_ID].integer)
        http_reply_problem(request, 404, "not_found", "this account is in no group");
    else
        reply_group(context, request, (uint64_t)row[ACCOUNTS_GROUP_ID].integer, 200);
}

struct new_group {
    struct text name;
};
static const struct json_field new_group_fields[] = {
    {"name", JSON_TEXT, offsetof(struct new_group, name), .is_required = true, .size_max = 64},
};
static const struct json_schema new_group_schema =
    JSON_SCHEMA("group", new_group_fields, struct new_group);

void handle_group_create(struct http_request *request, void *context)
{
    AUTO(call) struct call *call = call_new(context, request);
    struct new_group body = {0};
    struct error error;
    if (json_read(call->arena, http_request_body(request), &new_group_schema, &body, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    call->request.command = (struct command){
        .kind = COMMAND_CREATE_GROUP,
        .create_group = {.account = call->caller.account, .name = body.name},
    };
    call_start_take(TAKE(call), group_shown);
}

/* ---- Codes ----------------------------------------------------------------------------------- */

static void code_created(struct call *call, struct http_request *request)
{
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_field_string(&answer.writer, "code", call->context);
    json_field_i64(&answer.writer, "expires_ms", call->request.now_ms + GROUP_CODE_MS);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 201);
    call_free(call);
}

/* Core thread: the time runs from the instant that a repeat finds again. */
static int prepare_code(struct engine_request *request, const struct core *core,
                        struct error *error)
{
    (void)core;
    (void)error;
    request->command.add_code.expires_ms = request->now_ms + GROUP_CODE_MS;
    return 0;
}

void handle_group_code_create(struct http_request *request, void *context)
{
    struct call *call = call_new(context, request);
    char *code = arena_alloc(call->arena, KEYS_TOKEN_SIZE);
    call_token(call, "group", code);
    call->context = code;
    call->prepare = prepare_code;
    call->request.command = (struct command){
        .kind = COMMAND_ADD_CODE,
        .add_code = {.kind = CODE_KIND_GROUP, .account = call->caller.account},
    };
    token_hash(text_of(code), call->request.command.add_code.hash);
    call_start_take(call, code_created);
}

struct group_code {
    struct text code;
};
static const struct json_field group_code_fields[] = {
    {"code", JSON_TEXT, offsetof(struct group_code, code), .is_required = true, .size_max = 128},
};
static const struct json_schema group_code_schema =
    JSON_SCHEMA("group", group_code_fields, struct group_code);

void handle_group_join(struct http_request *request, void *context)
{
    AUTO(call) struct call *call = call_new(context, request);
    struct group_code body = {0};
    struct error error;
    if (json_read(call->arena, http_request_body(request), &group_code_schema, &body, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    call->request.command = (struct command){
        .kind = COMMAND_JOIN_GROUP,
        .join_group = {.account = call->caller.account},
    };
    token_hash(body.code, call->request.command.join_group.code_hash);
    call_start_take(TAKE(call), group_shown);
}

void handle_group_leave(struct http_request *request, void *context)
{
    struct call *call = call_new(context, request);
    call->request.command = (struct command){
        .kind = COMMAND_LEAVE_GROUP,
        .leave_group = {.account = call->caller.account},
    };
    call_start_take(call, call_reply_nothing);
}

void handle_group_remove(struct http_request *request, void *context)
{
    uint64_t member = 0;
    if (route_id(request, "a member's", &member) < 0)
        return;
    struct call *call = call_new(context, request);
    call->request.command = (struct command){
        .kind = COMMAND_LEAVE_GROUP,
        .leave_group = {.account = call->caller.account, .member = member},
    };
    call_start_take(call, call_reply_nothing);
}
