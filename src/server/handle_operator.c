/* What only the operator may: settings, invitations, looking at accounts and freezing them, audits.
 */
#include "server/audits.h"
#include "server/call.h"
#include "server/handlers.h"
#include "server/list_view.h"
#include "server/query.h"
#include "server/view.h"

#define INVITE_MS (INT64_C(30) * 24 * 3600 * 1000)

/* ---- Settings -------------------------------------------------------------------------------- */

/* To add a setting: its field in struct core_settings, and its row here; the core checks ranges. */
#define SETTING(name_, member)                                                                     \
    {                                                                                              \
        .name = (name_), .kind = JSON_I64, .offset = offsetof(struct core_settings, member)        \
    }
/* Where the core has another name for it, the range is said here, by the field's own. */
#define CREDITS(name_, member)                                                                     \
    {                                                                                              \
        .name = (name_), .kind = JSON_I64, .offset = offsetof(struct core_settings, member),       \
        .minimum = 0, .maximum = LEDGER_SUPPLY_MAX                                                 \
    }
static const struct json_field settings_fields[] = {
    CREDITS("grant_microcredits", grant_micro),
    CREDITS("grant_earned_microcredits", grant_earned_micro),
    CREDITS("grant_daily_microcredits", grant_daily_micro),
    SETTING("dormant_ms", dormant_ms),
    SETTING("dormant_step_ms", dormant_step_ms),
    SETTING("dormant_basis_points", dormant_basis_points),
    SETTING("fee_basis_points", fee_basis_points),
    CREDITS("proving_microcredits", proving_micro),
    SETTING("withheld_basis_points", withheld_basis_points),
    SETTING("silence_ms", silence_ms),
    SETTING("lost_ms", lost_ms),
    SETTING("start_ms", start_ms),
    SETTING("grace_ms", grace_ms),
    SETTING("slot_offset_ms", slot_offset_ms),
    SETTING("karma_guarantee_basis_points", karma_guarantee_basis_points),
};
static const struct json_schema settings_schema =
    JSON_SCHEMA("settings", settings_fields, struct core_settings);

struct settings_call {
    struct core_settings settings;
    struct text body; /* of a change: the fields it names */
};

static int look_at_settings(struct engine_request *request, const struct core *core,
                            struct store_batch *batch, struct error *error)
{
    (void)batch;
    (void)error;
    struct settings_call *context = ((struct call *)request)->context;
    context->settings = *core_settings(core);
    return 0;
}

static void settings_shown(struct call *call, struct http_request *request)
{
    const struct settings_call *context = call->context;
    call->server->settings = context->settings; /* for GET /v1/server */
    struct view_answer answer;
    view_answer_begin(&answer);
    json_write(&answer.writer, &settings_schema, &context->settings);
    view_answer_send(&answer, request, 200);
    call_free(call);
}

/* Core thread: what the body leaves out stays as it is now. */
static int prepare_settings(struct engine_request *request, const struct core *core,
                            struct error *error)
{
    struct call *call = (struct call *)request;
    struct settings_call *context = call->context;
    context->settings = *core_settings(core);
    if (json_read(call->arena, context->body, &settings_schema, &context->settings, error) < 0)
        return -1;
    request->command =
        (struct command){.kind = COMMAND_CHANGE_SETTINGS, .change_settings = context->settings};
    return 0;
}

static struct call *settings_call(struct http_request *request, struct server *server)
{
    struct call *call = call_new(server, request);
    struct settings_call *context = arena_alloc(call->arena, sizeof(*context));
    *context =
        (struct settings_call){.body = arena_copy_text(call->arena, http_request_body(request))};
    call->context = context;
    return call;
}

void handle_settings_get(struct http_request *request, void *context)
{
    call_look_take(settings_call(request, context), look_at_settings, settings_shown);
}

void handle_settings_put(struct http_request *request, void *context)
{
    struct call *call = settings_call(request, context);
    call->prepare = prepare_settings;
    call_start_take(call, settings_shown);
}

/* ---- Invitations ----------------------------------------------------------------------------- */

static void invite_created(struct call *call, struct http_request *request)
{
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_field_string(&answer.writer, "invite", call->context);
    json_field_i64(&answer.writer, "expires_ms", call->request.now_ms + INVITE_MS);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 201);
    call_free(call);
}

/* Core thread: the time runs from the instant that a repeat finds again. */
static int prepare_invite(struct engine_request *request, const struct core *core,
                          struct error *error)
{
    (void)core;
    (void)error;
    request->command.add_code.expires_ms = request->now_ms + INVITE_MS;
    return 0;
}

void handle_invite_create(struct http_request *request, void *context)
{
    struct call *call = call_new(context, request);
    char *code = arena_alloc(call->arena, KEYS_TOKEN_SIZE);
    call_token(call, "invite", code);
    call->context = code;
    call->prepare = prepare_invite;
    call->request.command = (struct command){
        .kind = COMMAND_ADD_CODE,
        .add_code = {.kind = CODE_KIND_INVITE, .account = call->caller.account},
    };
    token_hash(text_of(code), call->request.command.add_code.hash);
    call_start_take(call, invite_created);
}

/* ---- Accounts -------------------------------------------------------------------------------- */

static void write_account(struct server *server, struct arena *arena, uint64_t account,
                          const struct store_value *row, struct json_writer *writer)
{
    (void)server;
    (void)arena;
    (void)account;
    view_account(writer, row);
}

static const struct list_view_filter account_filters[] = {{"name", "name", LIST_VIEW_TEXT},
                                                          {"q", "name", LIST_VIEW_START}};
static const struct list_view_sort account_sorts[] = {{"newest", "id", .is_descending = true}};
static const struct list_view account_list = {.table = TABLE_ACCOUNTS,
                                              .filters = account_filters,
                                              .filter_count = 2,
                                              .sorts = account_sorts,
                                              .sort_count = 1,
                                              .write = write_account};

void handle_account_list(struct http_request *request, void *context)
{
    list_view_send(request, context, &account_list, NULL);
}

static void account_changed(struct call *call, struct http_request *request)
{
    const struct store_value *row = NULL;
    struct error error;
    if (query_id(call->server, call->arena, TABLE_ACCOUNTS, call->request.subject, "account", &row,
                 &error) < 0) {
        http_reply_error(request, &error);
        call_free(call);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    view_account(&answer.writer, row);
    view_answer_send(&answer, request, 200);
    call_free(call);
}

struct freeze {
    struct text reason;
};
static const struct json_field freeze_fields[] = {
    {"reason", JSON_TEXT, offsetof(struct freeze, reason), .is_required = true,
     .size_max = ACCOUNT_REASON_SIZE - 1},
};
static const struct json_schema freeze_schema = JSON_SCHEMA("freeze", freeze_fields, struct freeze);

void handle_account_freeze(struct http_request *request, void *context)
{
    uint64_t id = 0;
    if (route_id(request, "an account's", &id) < 0)
        return;
    AUTO(call) struct call *call = call_new(context, request);
    struct freeze body = {0};
    struct error error;
    if (json_read(call->arena, http_request_body(request), &freeze_schema, &body, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    call->request.command = (struct command){
        .kind = COMMAND_FREEZE_ACCOUNT,
        .freeze_account = {.account = id, .reason = body.reason},
    };
    call_start_take(TAKE(call), account_changed);
}

void handle_account_unfreeze(struct http_request *request, void *context)
{
    uint64_t id = 0;
    if (route_id(request, "an account's", &id) < 0)
        return;
    struct call *call = call_new(context, request);
    call->request.command = (struct command){
        .kind = COMMAND_UNFREEZE_ACCOUNT,
        .unfreeze_account = {.account = id},
    };
    call_start_take(call, account_changed);
}

void handle_account_grant(struct http_request *request, void *context)
{
    uint64_t id = 0;
    if (route_id(request, "an account's", &id) < 0)
        return;
    struct call *call = call_new(context, request);
    call->request.command = (struct command){
        .kind = COMMAND_GIVE_GRANT,
        .give_grant = {.account = id},
    };
    call_start_take(call, account_changed);
}

/* ---- Audits ---------------------------------------------------------------------------------- */

static void send_audit(struct server *server, struct http_request *request, int status)
{
    struct view_answer answer;
    view_answer_begin(&answer);
    audits_write(server->audits, &answer.writer);
    view_answer_send(&answer, request, status);
}

void handle_audit_get(struct http_request *request, void *context)
{
    send_audit(context, request, 200);
}

void handle_audit_create(struct http_request *request, void *context)
{
    struct server *server = context;
    struct error error;
    if (audits_start(server->audits, &error) < 0)
        http_reply_error(request, &error);
    else
        send_audit(server, request, 202);
}
