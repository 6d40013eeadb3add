/* Statements: the entries of an account, a job or a machine, with what they add up to. */
#include "server/handle_statement.h"

#include "base/csv.h"
#include "base/log.h"
#include "ledger/ledger.h"
#include "server/answers.h"
#include "server/handle_job.h"
#include "server/handlers.h"
#include "server/query.h"
#include "server/routes.h"

#include <inttypes.h>

enum { CSV_SIZE_MAX = 4 << 20 };

enum subject { SUBJECT_ACCOUNT, SUBJECT_JOB, SUBJECT_MACHINE };

struct asked {
    enum subject subject;
    struct statement_query query;
    bool is_csv;
    bool is_owner;                 /* of the job or machine */
    const struct store_value *row; /* its */
};

/* ---- What is asked for ----------------------------------------------------------------------- */

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

/* A job's or a machine's by the path or the query, else the account's. */
static int read_subject(const struct http_request *request, struct asked *asked,
                        struct error *error)
{
    const struct text id = http_request_parameter(request, "id");
    uint64_t job, machine;
    if (id.data) {
        const bool is_job = text_starts_with(http_request_path(request), TEXT("/v1/jobs/"));
        asked->subject = is_job ? SUBJECT_JOB : SUBJECT_MACHINE;
        if (text_parse_u64(id, &asked->query.subject, error) < 0 || !asked->query.subject)
            return error_set(error, ERROR_NOT_FOUND, "an id is a number");
        return 0;
    }
    if (read_number(request, "job", &job, error) < 0 ||
        read_number(request, "machine", &machine, error) < 0)
        return -1;
    if (job && machine)
        return error_set(error, ERROR_INVALID, "ask for a job or for a machine, not for both");
    asked->subject = job ? SUBJECT_JOB : machine ? SUBJECT_MACHINE : SUBJECT_ACCOUNT;
    asked->query.subject = job ? job : machine ? machine : asked->query.account;
    return 0;
}

static int read_kinds(const struct http_request *request, uint32_t *out_kinds, struct error *error)
{
    struct text rest = http_request_query(request, "kind"), word;
    *out_kinds = 0;
    for (bool has_more = rest.data; has_more;) {
        has_more = text_cut(rest, ',', &word, &rest);
        enum ledger_entry_kind kind = 0;
        while (kind < LEDGER_ENTRY_KIND_COUNT &&
               !text_equal(word, text_of(ledger_entry_kind_name(kind))))
            kind++;
        if (kind == LEDGER_ENTRY_KIND_COUNT)
            return error_set(error, ERROR_INVALID,
                             "kind must be one or more, with commas between, of: grant, hold, "
                             "post, fee, void, release, transfer, reclaim, refund");
        *out_kinds |= 1U << kind;
    }
    return 0;
}

static int read_choice(const struct http_request *request, const char *name, const char *usual,
                       const char *other, bool *out_is_other, struct error *error)
{
    const struct text text = http_request_query(request, name);
    *out_is_other = text_equal(text, text_of(other));
    if (text.data && !*out_is_other && !text_equal(text, text_of(usual)))
        return error_set(error, ERROR_INVALID, "%s must be %s or %s", name, usual, other);
    return 0;
}

/* EVENT, and of an account's statement .BALANCE, where the page before ended. */
static int read_cursor(const struct http_request *request, struct asked *asked, struct error *error)
{
    struct text cursor = http_request_query(request, "cursor"), event, balance;
    if (!cursor.data)
        return 0;
    const bool has_balance = text_cut(cursor, '.', &event, &balance);
    if (has_balance != (asked->subject == SUBJECT_ACCOUNT) ||
        text_parse_u64(event, &asked->query.start, error) < 0 || asked->query.start == 0 ||
        (has_balance && text_parse_i64(balance, &asked->query.balance_micro, error) < 0))
        return error_set(error, ERROR_INVALID, "cursor: it is not one of this list");
    return 0;
}

static int read_asked(const struct http_request *request, struct asked *out, struct error *error)
{
    *out = (struct asked){.query = {.account = route_caller(request)->account}};
    uint32_t limit = 0;
    if (read_subject(request, out, error) < 0 ||
        read_kinds(request, &out->query.kinds, error) < 0 ||
        read_choice(request, "order", "newest", "oldest", &out->query.is_oldest_first, error) < 0 ||
        read_choice(request, "format", "json", "csv", &out->is_csv, error) < 0 ||
        read_cursor(request, out, error) < 0 || query_limit(request, &limit, error) < 0)
        return -1;
    out->query.limit = limit;
    return 0;
}

/* ---- Whose it is ----------------------------------------------------------------------------- */

/* Read with the entries, so that both show one state; only an entry changes it, so it needs no note
 * of its own. */
static int read_balance(struct server *server, struct arena *arena, struct asked *asked,
                        struct error *error)
{
    const struct store_value *row = NULL;
    asked->is_owner = true;
    if (asked->query.is_oldest_first || asked->query.start)
        return 0; /* from nothing, or in the cursor */
    if (query_fixed(server, arena, TABLE_ACCOUNTS, asked->query.account, &row, error) < 0)
        return -1;
    if (row)
        asked->query.balance_micro = row[ACCOUNTS_GRANTED_MICRO].integer +
                                     row[ACCOUNTS_EARNED_MICRO].integer +
                                     row[ACCOUNTS_HELD_MICRO].integer;
    return 0;
}

/* Its owner, and who was paid for working for it; to others there is no such job. */
static int find_job(struct server *server, struct arena *arena, struct asked *asked,
                    struct error *error)
{
    const uint64_t account = asked->query.account;
    struct query_rows leases = {0};
    if (query_id(server, arena, TABLE_JOBS, asked->query.subject, "job", &asked->row, error) < 0)
        return -1;
    asked->is_owner = (uint64_t)asked->row[JOBS_ACCOUNT].integer == account;
    if (asked->is_owner)
        return 0;
    if (handle_job_leases(server, arena, asked->query.subject, &leases, error) < 0)
        return -1;
    for (size_t i = 0; i < leases.count; i++)
        if ((uint64_t)leases.items[i][LEASES_PAYEE].integer == account)
            return 0;
    return error_set(error, ERROR_NOT_FOUND, "job %" PRIu64 " does not exist",
                     asked->query.subject);
}

static int find_subject(struct server *server, struct arena *arena, struct asked *asked,
                        struct error *error)
{
    switch (asked->subject) {
    case SUBJECT_ACCOUNT:
        return read_balance(server, arena, asked, error);
    case SUBJECT_JOB:
        return find_job(server, arena, asked, error);
    case SUBJECT_MACHINE:
        break;
    }
    if (query_id(server, arena, TABLE_MACHINES, asked->query.subject, "machine", &asked->row,
                 error) < 0)
        return -1;
    asked->is_owner = (uint64_t)asked->row[MACHINES_OWNER].integer == asked->query.account;
    return 0;
}

static int read_statement(struct server *server, struct arena *arena, struct asked *asked,
                          struct statement *out, struct error *error)
{
    answers_note_key(server->answers, TABLE_STATEMENTS, asked->query.subject);
    if (find_subject(server, arena, asked, error) < 0)
        return -1;
    if (statement_read(server->reader, arena, &asked->query, out, error) < 0)
        return query_hide_failure(error);
    const bool is_empty = !out->count && !out->next && !asked->query.start && !asked->query.kinds;
    if (is_empty && !asked->is_owner)
        return error_set(error, ERROR_NOT_FOUND,
                         "machine %" PRIu64 " is another's, and was never paid by this account",
                         asked->query.subject);
    return 0;
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* The last ones looked up: entries that belong together stand together. */
struct names {
    struct server *server;
    struct arena *arena;
    uint64_t job;
    struct text job_name;
    uint64_t lease, machine;
};

static int look_up_job(struct names *names, uint64_t job, uint64_t account, struct error *error)
{
    const struct store_value *row = NULL;
    if (job == names->job)
        return 0;
    if (query_fixed(names->server, names->arena, TABLE_JOBS, job, &row, error) < 0)
        return -1;
    names->job = job;
    /* What others call their jobs is theirs to know. */
    const bool is_own = row && (uint64_t)row[JOBS_ACCOUNT].integer == account;
    names->job_name = is_own ? row[JOBS_NAME].bytes : TEXT("");
    return 0;
}

static int look_up_lease(struct names *names, uint64_t lease, struct error *error)
{
    const struct store_value *row = NULL;
    if (lease == names->lease)
        return 0;
    if (query_fixed(names->server, names->arena, TABLE_LEASES, lease, &row, error) < 0)
        return -1;
    names->lease = lease;
    names->machine = row ? (uint64_t)row[LEASES_MACHINE].integer : 0;
    return 0;
}

static int describe(struct names *names, const struct statement_entry *shown, uint64_t account,
                    struct view_entry *out, struct error *error)
{
    const bool is_release = shown->entry.kind == LEDGER_ENTRY_RELEASE;
    *out = (struct view_entry){.shown = shown, .account = account};
    if (look_up_job(names, shown->entry.job, account, error) < 0 ||
        look_up_lease(names, shown->entry.lease, error) < 0)
        return -1;
    if (is_release &&
        statement_read_proven(names->server->reader, shown->event, &out->machine, error) < 0)
        return query_hide_failure(error);
    out->job_name = names->job_name;
    if (!is_release)
        out->machine = names->machine;
    if (query_read_name(names->server, names->arena, TABLE_ACCOUNTS,
                        view_entry_other(shown, account), &out->other_name, error) < 0)
        return -1;
    return out->machine ? query_read_name(names->server, names->arena, TABLE_MACHINES, out->machine,
                                          &out->machine_name, error)
                        : 0;
}

static int describe_all(struct server *server, struct arena *arena, const struct asked *asked,
                        const struct statement *statement, struct view_entry **out_entries,
                        struct error *error)
{
    struct names names = {.server = server, .arena = arena};
    struct view_entry *entries = arena_alloc(arena, statement->count * sizeof(*entries));
    for (size_t i = 0; i < statement->count; i++)
        if (describe(&names, &statement->items[i], asked->query.account, &entries[i], error) < 0)
            return -1;
    *out_entries = entries;
    return 0;
}

struct view_entry handle_entry_view(struct server *server, struct arena *arena,
                                    const struct statement_entry *entry, uint64_t account)
{
    struct names names = {.server = server, .arena = arena};
    struct view_entry view;
    struct error error;
    /* What it tells of is done: it is told without names rather than refused. */
    if (describe(&names, entry, account, &view, &error) < 0)
        log_event(LOG_WARN, "names_unreadable", "event=%" PRIu64 " error=\"%s\"", entry->event,
                  error.message);
    return view;
}

/* ---- Answers --------------------------------------------------------------------------------- */

static struct text write_cursor(struct arena *arena, const struct asked *asked,
                                const struct statement *statement)
{
    if (!statement->next)
        return (struct text){0};
    if (asked->subject != SUBJECT_ACCOUNT)
        return text_of(arena_format(arena, "%" PRIu64, statement->next));
    return text_of(
        arena_format(arena, "%" PRIu64 ".%" PRId64, statement->next, statement->balance_micro));
}

static void write_kinds(uint32_t kinds, struct buffer *out)
{
    const char *before = "&kind=";
    for (enum ledger_entry_kind kind = 0; kind < LEDGER_ENTRY_KIND_COUNT; kind++)
        if (kinds & 1U << kind) {
            buffer_append_format(out, "%s%s", before, ledger_entry_kind_name(kind));
            before = ",";
        }
}

/* The next page's address, relative to this one (RFC 8288). */
static void add_link(struct http_request *request, const struct asked *asked, struct text cursor)
{
    struct error error;
    struct buffer link AUTO_BUFFER;
    buffer_init(&link, 1024);
    buffer_append_format(&link, "<" TEXT_FORMAT "?format=csv&limit=%zu",
                         TEXT_ARGS(http_request_path(request)), asked->query.limit);
    if (asked->subject != SUBJECT_ACCOUNT && !http_request_parameter(request, "id").data)
        buffer_append_format(&link, "&%s=%" PRIu64,
                             asked->subject == SUBJECT_JOB ? "job" : "machine",
                             asked->query.subject);
    if (asked->query.is_oldest_first)
        buffer_append_string(&link, "&order=oldest");
    write_kinds(asked->query.kinds, &link);
    buffer_append_format(&link, "&cursor=" TEXT_FORMAT ">; rel=\"next\"", TEXT_ARGS(cursor));
    if (http_reply_header(request, "Link", buffer_string(&link), &error) < 0)
        log_event(LOG_WARN, "header_refused", "error=\"%s\"", error.message);
}

static void send_csv(struct server *server, struct http_request *request, const struct asked *asked,
                     const struct statement *statement, const struct view_entry *entries)
{
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, CSV_SIZE_MAX);
    struct csv_writer writer;
    csv_writer_init(&writer, &body);
    if (!asked->query.start) /* pages can be put one after the other */
        entry_csv_head(&writer);
    for (size_t i = 0; i < statement->count; i++) {
        const struct entry_csv row = view_entry_csv(&entries[i]);
        entry_csv_row(&writer, &row);
    }
    if (statement->next)
        add_link(request, asked, write_cursor(http_request_arena(request), asked, statement));
    answers_forget(server->answers);
    http_reply_take(request, 200, "text/csv; charset=utf-8", &body);
}

/* Of the whole statement, for whom it is all about; others would learn what is not theirs. */
static void write_sums(struct json_writer *writer, const struct asked *asked)
{
    const struct store_value *row = asked->row;
    json_key(writer, "sums");
    if (!row || !asked->is_owner) {
        json_null(writer);
        return;
    }
    const bool is_job = asked->subject == SUBJECT_JOB;
    json_object_begin(writer);
    json_field_i64(writer, "held_microcredits", is_job ? row[JOBS_SUM_HELD_MICRO].integer : 0);
    json_field_i64(writer, "posted_microcredits",
                   row[is_job ? (size_t)JOBS_SUM_POSTED_MICRO : MACHINES_EARNED_MICRO].integer);
    json_field_i64(writer, "fee_microcredits",
                   row[is_job ? (size_t)JOBS_SUM_FEE_MICRO : MACHINES_FEE_MICRO].integer);
    json_field_i64(writer, "voided_microcredits", is_job ? row[JOBS_SUM_VOIDED_MICRO].integer : 0);
    json_object_end(writer);
}

static void write_balances(struct json_writer *writer, const struct asked *asked,
                           const struct statement *statement)
{
    const int64_t begin = asked->query.balance_micro, end = statement->balance_micro;
    const bool is_rising = asked->query.is_oldest_first;
    /* Entries left out would stand between them. */
    const bool is_known = asked->subject == SUBJECT_ACCOUNT && !asked->query.kinds;
    json_key(writer, "opening_microcredits");
    is_known ? json_i64(writer, is_rising ? begin : end) : json_null(writer);
    json_key(writer, "closing_microcredits");
    is_known ? json_i64(writer, is_rising ? end : begin) : json_null(writer);
}

static void send_json(struct server *server, struct http_request *request,
                      const struct asked *asked, const struct statement *statement,
                      const struct view_entry *entries)
{
    struct view_answer answer;
    view_answer_begin(&answer);
    struct json_writer *writer = &answer.writer;
    json_object_begin(writer);
    write_balances(writer, asked, statement);
    write_sums(writer, asked);
    json_key(writer, "items");
    json_array_begin(writer);
    for (size_t i = 0; i < statement->count; i++)
        view_entry(writer, &entries[i]);
    const struct query_rows end = {.next_cursor =
                                       write_cursor(http_request_arena(request), asked, statement)};
    query_page_end(writer, &end);
    answers_send(server->answers, &answer, request);
}

void handle_entries(struct http_request *request, void *context)
{
    struct server *server = context;
    if (answers_reply(server->answers, request))
        return;
    struct asked asked = {0};
    struct statement statement = {0};
    struct view_entry *entries = NULL;
    struct arena *arena = http_request_arena(request);
    struct error error;
    int result = read_asked(request, &asked, &error);
    if (result == 0 && store_reader_begin(server->reader, &error) < 0)
        result = query_hide_failure(&error);
    else if (result == 0) {
        result = read_statement(server, arena, &asked, &statement, &error);
        store_reader_end(server->reader);
    }
    if (result == 0)
        result = describe_all(server, arena, &asked, &statement, &entries, &error);
    if (result < 0)
        http_reply_error(request, &error);
    else if (asked.is_csv)
        send_csv(server, request, &asked, &statement, entries);
    else
        send_json(server, request, &asked, &statement, entries);
}
