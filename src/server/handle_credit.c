/* Credits: what an account gives to another. */
#include "ledger/ledger.h"
#include "server/call.h"
#include "server/handle_statement.h"
#include "server/handlers.h"
#include "server/query.h"

struct new_transfer {
    struct text to;
    int64_t amount_micro;
    struct text memo;
};
static const struct json_field new_transfer_fields[] = {
    {"to", JSON_TEXT, offsetof(struct new_transfer, to), .is_required = true, .size_max = 64},
    {"amount_microcredits", JSON_I64, offsetof(struct new_transfer, amount_micro),
     .is_required = true, .minimum = 1, .maximum = LEDGER_SUPPLY_MAX},
    {"memo", JSON_TEXT, offsetof(struct new_transfer, memo), .size_max = LEDGER_MEMO_SIZE - 1},
};
static const struct json_schema new_transfer_schema =
    JSON_SCHEMA("transfer", new_transfer_fields, struct new_transfer);

/* The entry as the payer's statement shows it. */
static void transfer_made(struct call *call, struct http_request *request)
{
    struct statement_entry entry;
    struct error error;
    if (statement_read_entry(call->server->reader, call->request.subject, &entry, &error) < 0) {
        (void)query_hide_failure(&error);
        http_reply_error(request, &error);
        call_free(call);
        return;
    }
    const struct view_entry view =
        handle_entry_view(call->server, call->arena, &entry, call->caller.account);
    struct view_answer answer;
    view_answer_begin(&answer);
    view_entry(&answer.writer, &view);
    view_answer_send(&answer, request, 201);
    call_free(call);
}

void handle_transfer_create(struct http_request *request, void *context)
{
    struct server *server = context;
    AUTO(call) struct call *call = call_new(server, request);
    struct new_transfer body = {0};
    const struct store_value *payee = NULL;
    struct error error;
    int result =
        json_read(call->arena, http_request_body(request), &new_transfer_schema, &body, &error);
    if (result == 0)
        result = query_one(server, call->arena, TABLE_ACCOUNTS, "name", store_text(body.to), &payee,
                           &error);
    if (result == 0 && !payee)
        result = error_set(&error, ERROR_NOT_FOUND,
                           "to: there is no account named \"" TEXT_FORMAT "\"", TEXT_ARGS(body.to));
    if (result < 0 || !payee) {
        http_reply_error(request, &error);
        return;
    }
    call->request.command = (struct command){
        .kind = COMMAND_TRANSFER,
        .transfer = {.from = call->caller.account,
                     .to = (uint64_t)payee[ACCOUNTS_ID].integer,
                     .amount_micro = body.amount_micro,
                     .memo = body.memo},
    };
    call_start_take(TAKE(call), transfer_made);
}
