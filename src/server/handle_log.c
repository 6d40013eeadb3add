/* What the ranks of a job printed: part by part, and the lines that have a text in them. */
#include "base/assert.h"
#include "server/handle_job.h"
#include "server/handlers.h"
#include "server/logs.h"
#include "server/query.h"
#include "server/view.h"

#include <string.h>

/* ---- Whose log ------------------------------------------------------------------------------- */

static const struct store_value *find_rank(const struct query_rows *leases, struct text rank)
{
    const bool is_replica = text_equal(rank, TEXT("replica"));
    const struct store_value *found = NULL; /* the newest, where a rank was given anew */
    for (size_t i = 0; i < leases->count; i++) {
        const struct store_value *row = leases->items[i];
        char name[LEASE_RANK_NAME_SIZE];
        lease_rank_name((enum lease_role)row[LEASES_ROLE].integer,
                        (uint64_t)row[LEASES_RANK].integer, name);
        if (is_replica ? row[LEASES_IS_REPLICA].integer != 0 : text_equal(rank, text_of(name)))
            found = row;
    }
    return found;
}

static const struct store_value *find_lease(const struct query_rows *leases, uint64_t id)
{
    for (size_t i = 0; i < leases->count; i++)
        if ((uint64_t)leases->items[i][LEASES_ID].integer == id)
            return leases->items[i];
    return NULL;
}

/* False: it is given, and no number; a problem was answered. */
static bool read_number(struct http_request *request, const char *key, const char *problem,
                        uint64_t *out_number)
{
    struct error error;
    const struct text given = http_request_query(request, key);
    *out_number = 0;
    if (!given.data || text_parse_u64(given, out_number, &error) == 0)
        return true;
    http_reply_problem(request, 400, "invalid", problem);
    return false;
}

/* Of one lease, or else of the newest of a rank; NULL: a problem was answered. */
static const struct store_value *find_log(struct http_request *request,
                                          const struct query_rows *leases, uint64_t id,
                                          struct text rank)
{
    const struct store_value *lease = id ? find_lease(leases, id) : find_rank(leases, rank);
    if (!lease)
        http_reply_problem(request, 404, "not_found",
                           leases->count == 0 ? "this job has no leases yet, so there is no log"
                           : id               ? "this job has no such lease"
                                : "this job has no such rank: give a worker's number, "
                                  "server, server-1 or replica");
    return lease;
}

/* A request for a lease's log from an offset on. */
struct asked {
    uint64_t job, lease, offset;
    struct text rank;
    bool has_ended;
};

/* False: the request was refused. */
static bool read_asked(struct server *server, struct http_request *request, struct asked *out)
{
    const struct store_value *row = handle_job_find(server, request);
    if (!row)
        return false;
    struct error error;
    struct query_rows leases;
    struct arena *arena = http_request_arena(request);
    uint64_t id;
    *out = (struct asked){.job = (uint64_t)row[JOBS_ID].integer,
                          .rank = http_request_query(request, "rank")};
    if (!read_number(request, "offset", "offset must be a number of bytes", &out->offset) ||
        !read_number(request, "lease", "lease must be a lease's number", &id))
        return false;
    if (handle_job_leases(server, arena, out->job, &leases, &error) < 0) {
        http_reply_error(request, &error);
        return false;
    }
    if (!out->rank.size)
        out->rank = TEXT("0");
    const struct store_value *lease = find_log(request, &leases, id, out->rank);
    if (!lease)
        return false;
    out->lease = (uint64_t)lease[LEASES_ID].integer;
    out->has_ended = lease[LEASES_STATE].integer == LEASE_STATE_ENDED;
    if (id)
        out->rank = text_of(lease_rank_name((enum lease_role)lease[LEASES_ROLE].integer,
                                            (uint64_t)lease[LEASES_RANK].integer,
                                            arena_alloc(arena, LEASE_RANK_NAME_SIZE)));
    return true;
}

static void write_head(struct json_writer *writer, const struct asked *asked, uint64_t next_offset)
{
    json_object_begin(writer);
    json_field_u64(writer, "job", asked->job);
    json_field_text(writer, "rank", asked->rank);
    json_field_u64(writer, "lease", asked->lease);
    json_field_u64(writer, "offset", asked->offset);
    json_field_u64(writer, "next_offset", next_offset);
}

/* Which bytes from the end; size_max 0: those from an offset on are wanted. False: refused. */
static bool read_span(struct http_request *request, struct logs_span *out)
{
    static const char problem[] = "last must be a number of bytes, 1 to 262144, with no offset";
    const bool has_last = http_request_query(request, "last").data != NULL;
    const bool has_before = http_request_query(request, "before").data != NULL;
    if (!read_number(request, "last", problem, &out->size_max) ||
        !read_number(request, "before", "before must be an offset in bytes", &out->before))
        return false;
    if (!has_before || out->before > INT64_MAX)
        out->before = INT64_MAX;
    if (has_before && !has_last) {
        http_reply_problem(request, 400, "invalid", "before goes with last");
        return false;
    }
    const bool is_odd = out->size_max == 0 || out->size_max > LOGS_READ_MAX ||
                        http_request_query(request, "offset").data != NULL;
    if (has_last && is_odd)
        http_reply_problem(request, 400, "invalid", problem);
    return !has_last || !is_odd;
}

/* What begins within a line, or a character, begins with the next where there is one. */
static void begin_at_line(struct buffer *bytes, uint64_t *offset)
{
    const uint8_t *end = *offset ? memchr(bytes->data, '\n', bytes->size) : NULL;
    size_t skip = 0;
    if (end && end + 1 < bytes->data + bytes->size)
        skip = (size_t)(end + 1 - bytes->data);
    else if (*offset)
        while (skip < bytes->size && (bytes->data[skip] & 0xc0) == 0x80)
            skip++;
    buffer_consume(bytes, skip);
    *offset += skip;
}

static int read_last(struct server *server, struct asked *asked, const struct logs_span *span,
                     struct buffer *out, struct error *error)
{
    if (logs_read_last(server->logs, asked->lease, span, out, &asked->offset, error) < 0)
        return -1;
    if (out->size)
        begin_at_line(out, &asked->offset);
    return 0;
}

void handle_job_logs(struct http_request *request, void *context)
{
    struct server *server = context;
    struct asked asked;
    struct logs_span span;
    struct error error;
    if (!read_span(request, &span) || !read_asked(server, request, &asked))
        return;
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, LOGS_READ_MAX);
    const int result = span.size_max
                           ? read_last(server, &asked, &span, &bytes, &error)
                           : logs_read(server->logs, asked.lease, asked.offset, &bytes, &error);
    if (result < 0) {
        http_reply_error(request, &error);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    write_head(&answer.writer, &asked, asked.offset + bytes.size);
    json_field_text(&answer.writer, "text", buffer_text(&bytes));
    json_field_bool(&answer.writer, "is_end", !span.size_max && !bytes.size && asked.has_ended);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 200);
}

/* ---- Looking for lines ----------------------------------------------------------------------- */

enum {
    LINES_MAX = 200,
    LINE_SHOWN_MAX = 4096,
    FIND_MAX = 200,
    LINES_SIZE_MAX = LINES_MAX * (6 * LINE_SHOWN_MAX + 64), /* six bytes of JSON for one */
};

/* ASCII letters of either case are the same. */
static void append_lower(struct buffer *buffer, struct text text)
{
    uint8_t *lower = buffer_reserve(buffer, text.size);
    ASSERT(lower);
    for (size_t i = 0; i < text.size; i++)
        lower[i] = (uint8_t)(text.data[i] >= 'A' && text.data[i] <= 'Z' ? text.data[i] + 'a' - 'A'
                                                                        : text.data[i]);
    buffer_advance(buffer, text.size);
}

/* What is looked through, and for what; both also in lower case. */
struct search {
    struct text bytes, lower, find;
    bool is_last; /* what has no end of line yet is a line, too */
};

/* Returns how far it looked: to the end of the last line. */
static size_t write_lines(struct json_writer *writer, const struct asked *asked,
                          const struct search *search)
{
    const struct text bytes = search->bytes;
    size_t at = 0, found = 0;
    json_array_begin(writer);
    while (at < bytes.size && found < LINES_MAX) {
        const char *end = memchr(bytes.data + at, '\n', bytes.size - at);
        if (!end && !search->is_last)
            break;
        struct text line = {bytes.data + at,
                            end ? (size_t)(end - bytes.data) - at : bytes.size - at};
        const uint64_t offset = asked->offset + at;
        const char *lower = search->lower.data + at;
        at += line.size + (end != NULL);
        if (!memmem(lower, line.size, search->find.data, search->find.size))
            continue;
        line.size = line.size < LINE_SHOWN_MAX ? line.size : LINE_SHOWN_MAX;
        json_object_begin(writer);
        json_field_u64(writer, "offset", offset);
        json_field_text(writer, "text", line);
        json_object_end(writer);
        found++;
    }
    json_array_end(writer);
    return at;
}

void handle_job_log_search(struct http_request *request, void *context)
{
    struct server *server = context;
    struct asked asked;
    struct error error;
    bool is_all;
    if (!read_asked(server, request, &asked))
        return;
    const struct text find = http_request_query(request, "find");
    if (!find.size || find.size > FIND_MAX) {
        http_reply_problem(request, 400, "invalid", "find must be a text of 1 to 200 bytes");
        return;
    }
    struct buffer bytes AUTO_BUFFER, lower AUTO_BUFFER, lines AUTO_BUFFER;
    buffer_init(&bytes, LOGS_LOOK_MAX);
    buffer_init(&lower, LOGS_LOOK_MAX + FIND_MAX);
    buffer_init(&lines, LINES_SIZE_MAX);
    if (logs_look(server->logs, asked.lease, asked.offset, &bytes, &is_all, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    append_lower(&lower, find);
    append_lower(&lower, buffer_text(&bytes));
    /* A line longer than all that is looked at is taken in pieces. */
    const char *looked_at = (const char *)lower.data + find.size;
    const bool has_line = memchr(looked_at, '\n', bytes.size);
    const struct search search = {
        .bytes = buffer_text(&bytes),
        .lower = {looked_at, bytes.size},
        .find = {(const char *)lower.data, find.size},
        .is_last = is_all ? asked.has_ended : !has_line,
    };
    struct json_writer line_writer;
    json_writer_init(&line_writer, &lines);
    const size_t looked = write_lines(&line_writer, &asked, &search);
    struct view_answer answer;
    view_answer_begin(&answer);
    write_head(&answer.writer, &asked, asked.offset + looked);
    json_key(&answer.writer, "lines");
    json_raw(&answer.writer, buffer_text(&lines));
    json_field_bool(&answer.writer, "is_end", is_all && asked.has_ended && looked == bytes.size);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 200);
}
