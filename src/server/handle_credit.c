/* Credits: the account's statement, and what it gives to another. */
#include "ledger/ledger.h"
#include "server/answers.h"
#include "server/call.h"
#include "server/handlers.h"
#include "server/query.h"
#include "server/view.h"

#include <inttypes.h>

/* ---- The statement --------------------------------------------------------------------------- */

/* 0 when the parameter is not there. */
static int read_number(const struct http_request *request, const char *name, uint64_t *out_number,
                       struct error *error)
{
    const struct text text = http_request_query(request, name);
    *out_number = 0;
    if (!text.data)
        return 0;
    if (text_parse_u64(text, out_number, error) < 0 || *out_number == 0)
        return error_set(error, ERROR_INVALID, "%s must be a number from 1 on", name);
    return 0;
}

static int read_query(const struct http_request *request, struct statement_query *out_query,
                      struct error *error)
{
    const uint64_t account = route_caller(request)->account;
    uint64_t job, machine, before;
    uint32_t limit;
    if (read_number(request, "job", &job, error) < 0 ||
        read_number(request, "machine", &machine, error) < 0 ||
        read_number(request, "cursor", &before, error) < 0 ||
        query_limit(request, &limit, error) < 0)
        return -1;
    if (job && machine)
        return error_set(error, ERROR_INVALID, "ask for a job or for a machine, not for both");
    *out_query = (struct statement_query){.subject = job       ? job
                                                     : machine ? machine
                                                               : account,
                                          .account = account,
                                          .before = before,
                                          .limit = limit};
    return 0;
}

void handle_account_entries(struct http_request *request, void *context)
{
    struct server *server = context;
    if (answers_reply(server->answers, request))
        return;
    struct statement_query query;
    struct statement statement;
    struct error error;
    int result = read_query(request, &query, &error);
    if (result == 0)
        answers_note_key(server->answers, TABLE_STATEMENTS, query.subject);
    if (result == 0 &&
        statement_read(server->reader, http_request_arena(request), &query, &statement, &error) < 0)
        result = query_hide_failure(&error);
    if (result < 0) {
        http_reply_error(request, &error);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    query_page_begin(&answer.writer);
    for (size_t i = 0; i < statement.count; i++)
        view_entry(&answer.writer, &statement.items[i], query.account);
    struct query_rows end = {0};
    if (statement.next)
        end.next_cursor =
            text_of(arena_format(http_request_arena(request), "%" PRIu64, statement.next));
    query_page_end(&answer.writer, &end);
    answers_send(server->answers, &answer, request);
}

/* ---- Transfers ------------------------------------------------------------------------------- */

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
    struct view_answer answer;
    view_answer_begin(&answer);
    view_entry(&answer.writer, &entry, call->caller.account);
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
