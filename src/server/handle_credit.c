/* Credits that go from one account to another. */
#include "ledger/ledger.h"
#include "server/call.h"
#include "server/handlers.h"
#include "server/query.h"
#include "server/view.h"

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
    const struct store_filter filters[] = {
        {"account", STORE_EQUAL, store_integer((int64_t)call->caller.account)},
        {"sequence", STORE_EQUAL, store_integer((int64_t)call->request.subject)},
    };
    const struct store_query query = {
        .table = &tables[TABLE_ENTRIES], .filters = filters, .filter_count = 2, .limit = 1};
    struct query_rows rows;
    struct error error;
    int result = query_all(call->server, call->arena, &query, &rows, &error);
    if (result == 0 && rows.count != 1)
        result = error_set(&error, ERROR_NOT_FOUND, "the entry is not in the statement");
    if (result < 0) {
        http_reply_error(request, &error);
        call_free(call);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    view_entry(&answer.writer, rows.items[0]);
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
    if (result < 0) {
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
