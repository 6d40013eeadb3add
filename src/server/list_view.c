#include "server/list_view.h"

#include "base/assert.h"
#include "server/answers.h"
#include "server/routes.h"

#include <string.h>

struct look {
    const struct store_filter *filters; /* on columns without an index */
    size_t filter_count;
    size_t columns[STORE_FILTER_MAX];
    uint32_t limit;
    struct query_rows_builder rows;
};

static const struct store_column *find_column(enum table table, const char *name, size_t *out_index)
{
    for (size_t i = 0; i < tables[table].column_count; i++)
        if (!strcmp(tables[table].columns[i].name, name)) {
            *out_index = i;
            return &tables[table].columns[i];
        }
    ASSERT(false);
    return NULL;
}

/* Whether the store finds rows by it without looking at others. */
static bool is_indexed(const struct store_column *column, const struct store_filter *fixed,
                       enum table table)
{
    if (column->is_indexed)
        return true;
    size_t index;
    if (!fixed)
        return false;
    const struct store_column *first = find_column(table, fixed->column, &index);
    return first->indexed_with && !strcmp(first->indexed_with, column->name);
}

/* ---- What is asked for ----------------------------------------------------------------------- */

static int read_choice(const struct list_view_filter *filter, struct text text, int64_t *out_value,
                       struct error *error)
{
    struct buffer words AUTO_BUFFER;
    buffer_init(&words, 256);
    for (int i = 0; i < filter->choice_count; i++) {
        if (text_equal(text, text_of(filter->choice(i)))) {
            *out_value = i;
            return 0;
        }
        buffer_append_format(&words, "%s%s", i ? ", " : "", filter->choice(i));
    }
    return error_set(error, ERROR_INVALID, "%s must be one of: %s", filter->parameter,
                     buffer_string(&words));
}

/* 0: not asked for. */
static int read_filter(const struct http_request *request, const struct list_view_filter *filter,
                       struct store_filter *out, struct error *error)
{
    const struct text text = http_request_query(request, filter->parameter);
    uint64_t number = 0;
    int64_t value = 0;
    if (!text.data)
        return 0;
    switch (filter->kind) {
    case LIST_VIEW_MINE:
        if (text_equal(text, TEXT("false")))
            return 0;
        if (!text_equal(text, TEXT("true")))
            return error_set(error, ERROR_INVALID, "%s must be true or false", filter->parameter);
        value = (int64_t)route_caller(request)->account;
        break;
    case LIST_VIEW_NUMBER:
        if (text_parse_u64(text, &number, error) < 0 || number == 0 || number > INT64_MAX)
            return error_set(error, ERROR_INVALID, "%s must be a number from 1 on",
                             filter->parameter);
        value = (int64_t)number;
        break;
    case LIST_VIEW_TEXT:
        *out = (struct store_filter){filter->column, STORE_EQUAL, store_text(text)};
        return 1;
    case LIST_VIEW_CHOICE:
        if (read_choice(filter, text, &value, error) < 0)
            return -1;
        break;
    }
    *out = (struct store_filter){filter->column, STORE_EQUAL, store_integer(value)};
    return 1;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int look_at_row(const struct store_row *row, void *context, struct error *error)
{
    (void)error;
    struct look *look = context;
    for (size_t i = 0; i < look->filter_count; i++)
        if (row->values[look->columns[i]].integer != look->filters[i].value.integer)
            return 0;
    query_rows_add(&look->rows, row);
    return look->rows.count == look->limit;
}

int list_view_read(struct http_request *request, struct server *server, struct arena *arena,
                   const struct list_view *list, const struct store_filter *fixed,
                   struct query_rows *out_rows, struct error *error)
{
    struct store_filter indexed[STORE_FILTER_MAX], others[STORE_FILTER_MAX];
    struct look look = {.filters = others, .rows = {.arena = arena}};
    struct store_query query = {.table = &tables[list->table],
                                .filters = indexed,
                                .is_descending = list->is_descending,
                                .after = http_request_query(request, "cursor")};
    ASSERT(list->filter_count < STORE_FILTER_MAX);
    if (query_limit(request, &look.limit, error) < 0)
        return -1;
    if (fixed)
        indexed[query.filter_count++] = *fixed;
    for (size_t i = 0; i < list->filter_count; i++) {
        struct store_filter filter;
        const int is_asked = read_filter(request, &list->filters[i], &filter, error);
        if (is_asked < 0)
            return -1;
        if (!is_asked)
            continue;
        size_t index;
        if (is_indexed(find_column(list->table, filter.column, &index), fixed, list->table)) {
            indexed[query.filter_count++] = filter;
        } else {
            ASSERT(filter.value.type == STORE_INTEGER);
            look.columns[look.filter_count] = index;
            others[look.filter_count++] = filter;
        }
    }
    query.limit = look.filter_count ? LIST_VIEW_LOOK_MAX : look.limit;
    return query_look(server, arena, &query, look_at_row, &look, &look.rows, out_rows, error);
}

void list_view_send(struct http_request *request, struct server *server,
                    const struct list_view *list, const struct store_filter *fixed)
{
    struct arena *arena = http_request_arena(request);
    struct query_rows rows;
    struct error error;
    if (list_view_read(request, server, arena, list, fixed, &rows, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    query_page_begin(&answer.writer);
    for (size_t i = 0; i < rows.count; i++)
        list->write(server, arena, route_caller(request)->account, rows.items[i], &answer.writer);
    query_page_end(&answer.writer, &rows);
    answers_send(server->answers, &answer, request);
}
