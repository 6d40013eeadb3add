#include "server/query.h"

#include "base/log.h"
#include "server/answers.h"
#include "server/row_cache.h"

#include <inttypes.h>

enum { LIMIT_DEFAULT = 50, LIMIT_MAX = 500, CURSOR_SIZE_MAX = 4096 };

void query_rows_add(struct query_rows_builder *rows, const struct store_row *row)
{
    if (rows->count == rows->capacity) {
        const size_t capacity = rows->capacity ? 2 * rows->capacity : 16;
        const struct store_value **items = arena_alloc(rows->arena, capacity * sizeof(*items));
        if (rows->count)
            memcpy(items, rows->items, rows->count * sizeof(*items));
        rows->items = items;
        rows->capacity = capacity;
    }
    const size_t column_count = row->table->column_count;
    struct store_value *values = arena_alloc(rows->arena, column_count * sizeof(*values));
    for (size_t i = 0; i < column_count; i++) {
        values[i] = row->values[i];
        if (values[i].type == STORE_TEXT || values[i].type == STORE_BLOB)
            values[i].bytes = values[i].is_null
                                  ? (struct text){0}
                                  : arena_copy_text(rows->arena, row->values[i].bytes);
    }
    rows->items[rows->count++] = values;
}

static int add_row(const struct store_row *row, void *context, struct error *error)
{
    (void)error;
    query_rows_add(context, row);
    return 0;
}

int query_hide_failure(struct error *error)
{
    log_event(LOG_ERROR, "read_failed", "error=\"%s\"", error->message);
    return error_set(error, ERROR_UNAVAILABLE, "the market cannot read its store; try again later");
}

int query_look(struct server *server, struct arena *arena, const struct store_query *query,
               store_row_callback *callback, void *context, const struct query_rows_builder *rows,
               struct query_rows *out_rows, struct error *error)
{
    answers_note(server->answers, query);
    struct buffer cursor AUTO_BUFFER;
    buffer_init(&cursor, CURSOR_SIZE_MAX);
    if (store_read_rows(server->reader, query, callback, context, &cursor, error) < 0)
        return error->code == ERROR_INVALID ? -1 : query_hide_failure(error);
    *out_rows = (struct query_rows){
        .items = rows->items,
        .count = rows->count,
        .next_cursor = arena_copy_text(arena, buffer_text(&cursor)),
    };
    return 0;
}

int query_all(struct server *server, struct arena *arena, const struct store_query *query,
              struct query_rows *out_rows, struct error *error)
{
    struct query_rows_builder rows = {.arena = arena};
    return query_look(server, arena, query, add_row, &rows, &rows, out_rows, error);
}

static int read_first(struct server *server, struct arena *arena, const struct store_query *query,
                      const struct store_value **out_values, struct error *error)
{
    struct query_rows_builder rows = {.arena = arena};
    if (store_read_rows(server->reader, query, add_row, &rows, NULL, error) < 0)
        return query_hide_failure(error);
    *out_values = rows.count ? rows.items[0] : NULL;
    return 0;
}

static int find_first(struct server *server, struct arena *arena, const struct store_query *query,
                      const struct store_value **out_values, struct error *error)
{
    answers_note(server->answers, query);
    return read_first(server, arena, query, out_values, error);
}

static int find_cached(struct server *server, struct arena *arena, const struct store_query *query,
                       const struct store_value **out_values, struct error *error)
{
    const enum table table = (enum table)(query->table - tables);
    answers_note(server->answers, query);
    *out_values = row_cache_find(server->rows, arena, table, &query->filters[0]);
    if (*out_values)
        return 0;
    struct version_marks marks;
    version_marks_clear(&marks, server->versions);
    version_marks_add(&marks, server->versions, query);
    if (find_first(server, arena, query, out_values, error) < 0)
        return -1;
    /* Inside store_reader_begin the row may be older than the marks. */
    if (*out_values && !store_reader_is_begun(server->reader))
        row_cache_put(server->rows, table, &query->filters[0], &marks, *out_values);
    return 0;
}

int query_one(struct server *server, struct arena *arena, enum table table, const char *column,
              struct store_value value, const struct store_value **out_values, struct error *error)
{
    const struct store_filter filter = {.column = column, .compare = STORE_EQUAL, .value = value};
    const struct store_query query = {
        .table = &tables[table], .filters = &filter, .filter_count = 1, .limit = 1};
    return server->rows && row_cache_takes(table, &filter)
               ? find_cached(server, arena, &query, out_values, error)
               : find_first(server, arena, &query, out_values, error);
}

int query_id(struct server *server, struct arena *arena, enum table table, uint64_t id,
             const char *noun, const struct store_value **out_values, struct error *error)
{
    const struct store_value *values = NULL;
    if (id <= INT64_MAX && query_one(server, arena, table, tables[table].columns[0].name,
                                     store_integer((int64_t)id), &values, error) < 0)
        return -1;
    if (!values)
        return error_set(error, ERROR_NOT_FOUND, "%s %" PRIu64 " does not exist", noun, id);
    *out_values = values;
    return 0;
}

int query_limit(const struct http_request *request, uint32_t *out_limit, struct error *error)
{
    const struct text limit = http_request_query(request, "limit");
    uint64_t count = LIMIT_DEFAULT;
    if (limit.data && (text_parse_u64(limit, &count, error) < 0 || count < 1 || count > LIMIT_MAX))
        return error_set(error, ERROR_INVALID, "limit must be a number from 1 to %d", LIMIT_MAX);
    *out_limit = (uint32_t)count;
    return 0;
}

int query_page(struct http_request *request, struct server *server, struct arena *arena,
               struct store_query *query, struct query_rows *out_rows, struct error *error)
{
    if (query_limit(request, &query->limit, error) < 0)
        return -1;
    query->after = http_request_query(request, "cursor");
    return query_all(server, arena, query, out_rows, error);
}

int query_read_name(struct server *server, struct arena *arena, enum table table, uint64_t id,
                    struct text *out_name, struct error *error)
{
    const size_t column = table == TABLE_GROUPS     ? (size_t)GROUPS_NAME
                          : table == TABLE_ACCOUNTS ? (size_t)ACCOUNTS_NAME
                                                    : (size_t)MACHINES_NAME;
    const struct store_value *values = NULL;
    if (id <= INT64_MAX && query_one(server, arena, table, tables[table].columns[0].name,
                                     store_integer((int64_t)id), &values, error) < 0)
        return -1;
    *out_name = values ? values[column].bytes : TEXT("");
    return 0;
}

struct text query_name(struct server *server, struct arena *arena, enum table table, uint64_t id)
{
    struct error error;
    struct text name = TEXT("");
    if (query_read_name(server, arena, table, id, &name, &error) < 0) {
        log_event(LOG_WARN, "name_unreadable", "table=%s id=%" PRIu64, tables[table].name, id);
        answers_forget(server->answers);
    }
    return name;
}

int query_fixed(struct server *server, struct arena *arena, enum table table, uint64_t id,
                const struct store_value **out_values, struct error *error)
{
    const struct store_filter filter = {tables[table].columns[0].name, STORE_EQUAL,
                                        store_integer((int64_t)id)};
    const struct store_query query = {
        .table = &tables[table], .filters = &filter, .filter_count = 1, .limit = 1};
    return read_first(server, arena, &query, out_values, error);
}

void query_page_begin(struct json_writer *writer)
{
    json_object_begin(writer);
    json_key(writer, "items");
    json_array_begin(writer);
}

void query_page_end(struct json_writer *writer, const struct query_rows *rows)
{
    json_array_end(writer);
    json_key(writer, "next_cursor");
    if (rows->next_cursor.size)
        json_text(writer, rows->next_cursor);
    else
        json_null(writer);
    json_object_end(writer);
}
