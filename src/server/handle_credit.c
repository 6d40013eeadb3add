/* Credits: statements, and what an account gives to another. */
#include "base/csv.h"
#include "base/log.h"
#include "ledger/ledger.h"
#include "server/answers.h"
#include "server/call.h"
#include "server/handlers.h"
#include "server/query.h"
#include "server/view.h"

#include <inttypes.h>

enum { CSV_SIZE_MAX = 4 << 20 };

/* ---- Statements --------------------------------------------------------------------------- */

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

/* Whose statement: a job's or a machine's by the path or the query, else the account's. */
static int read_subject(const struct http_request *request, uint64_t account, uint64_t *out_subject,
                        struct error *error)
{
    const struct text id = http_request_parameter(request, "id");
    uint64_t job, machine;
    if (id.data) {
        if (text_parse_u64(id, out_subject, error) < 0 || !*out_subject)
            return error_set(error, ERROR_NOT_FOUND, "an id is a number");
        return 0;
    }
    if (read_number(request, "job", &job, error) < 0 ||
        read_number(request, "machine", &machine, error) < 0)
        return -1;
    if (job && machine)
        return error_set(error, ERROR_INVALID, "ask for a job or for a machine, not for both");
    *out_subject = job ? job : machine ? machine : account;
    return 0;
}

static int read_query(const struct http_request *request, struct statement_query *out_query,
                      struct error *error)
{
    const uint64_t account = route_caller(request)->account;
    uint64_t subject, before;
    uint32_t limit;
    if (read_subject(request, account, &subject, error) < 0 ||
        read_number(request, "cursor", &before, error) < 0 ||
        query_limit(request, &limit, error) < 0)
        return -1;
    *out_query = (struct statement_query){
        .subject = subject, .account = account, .before = before, .limit = limit};
    return 0;
}

/* The next page's address, relative to this one (RFC 8288). */
static void add_link(struct http_request *request, const struct statement_query *query,
                     uint64_t next)
{
    struct error error;
    const struct text path = http_request_path(request);
    const char *subject = "";
    if (query->subject != query->account && !http_request_parameter(request, "id").data)
        subject = arena_format(http_request_arena(request), "&%s=%" PRIu64,
                               http_request_query(request, "job").data ? "job" : "machine",
                               query->subject);
    const char *link =
        arena_format(http_request_arena(request),
                     "<" TEXT_FORMAT "?format=csv&limit=%zu%s&cursor=%" PRIu64 ">; rel=\"next\"",
                     TEXT_ARGS(path), query->limit, subject, next);
    if (http_reply_header(request, "Link", link, &error) < 0)
        log_event(LOG_WARN, "header_refused", "error=\"%s\"", error.message);
}

static void send_csv(struct http_request *request, const struct statement_query *query,
                     const struct statement *statement)
{
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, CSV_SIZE_MAX);
    struct csv_writer writer;
    csv_writer_init(&writer, &body);
    if (!query->before) /* pages can be put one after the other */
        view_entry_csv_head(&writer);
    for (size_t i = 0; i < statement->count; i++)
        view_entry_csv(&writer, &statement->items[i], query->account);
    if (statement->next)
        add_link(request, query, statement->next);
    http_reply_take(request, 200, "text/csv; charset=utf-8", &body);
}

static void send_json(struct server *server, struct http_request *request,
                      const struct statement_query *query, const struct statement *statement)
{
    struct view_answer answer;
    view_answer_begin(&answer);
    query_page_begin(&answer.writer);
    for (size_t i = 0; i < statement->count; i++)
        view_entry(&answer.writer, &statement->items[i], query->account);
    struct query_rows end = {0};
    if (statement->next)
        end.next_cursor =
            text_of(arena_format(http_request_arena(request), "%" PRIu64, statement->next));
    query_page_end(&answer.writer, &end);
    answers_send(server->answers, &answer, request);
}

void handle_entries(struct http_request *request, void *context)
{
    struct server *server = context;
    if (answers_reply(server->answers, request))
        return;
    const struct text format = http_request_query(request, "format");
    const bool is_csv = text_equal(format, TEXT("csv"));
    struct statement_query query;
    struct statement statement;
    struct error error;
    int result = read_query(request, &query, &error);
    if (result == 0 && format.data && !is_csv && !text_equal(format, TEXT("json")))
        result = error_set(&error, ERROR_INVALID, "format must be json or csv");
    if (result == 0)
        answers_note_key(server->answers, TABLE_STATEMENTS, query.subject);
    if (result == 0 &&
        statement_read(server->reader, http_request_arena(request), &query, &statement, &error) < 0)
        result = query_hide_failure(&error);
    if (result < 0)
        http_reply_error(request, &error);
    else if (is_csv)
        send_csv(request, &query, &statement);
    else
        send_json(server, request, &query, &statement);
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
