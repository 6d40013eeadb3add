#include "server/list_view.h"

#include "base/assert.h"
#include "market/labels.h"
#include "market/name.h"
#include "server/answers.h"
#include "server/routes.h"

#include <inttypes.h>
#include <string.h>

/* A filter that is asked for. */
struct asked {
    const struct list_view_filter *filter;
    struct store_value value;
    size_t column, column_too;
};

struct look {
    struct asked asked[LIST_VIEW_FILTER_MAX]; /* on columns without an index */
    size_t asked_count;
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

static int read_number(const struct list_view_filter *filter, struct text text, uint64_t minimum,
                       int64_t maximum, int64_t *out_value, struct error *error)
{
    uint64_t number = 0;
    if (text_parse_u64(text, &number, error) < 0 || number < minimum || number > (uint64_t)maximum)
        return maximum == INT64_MAX
                   ? error_set(error, ERROR_INVALID, "%s must be a number from %" PRIu64 " on",
                               filter->parameter, minimum)
                   : error_set(error, ERROR_INVALID,
                               "%s must be a number from %" PRIu64 " to %" PRId64,
                               filter->parameter, minimum, maximum);
    *out_value = (int64_t)number;
    return 0;
}

/* 0: not asked for. */
static int read_filter(const struct http_request *request, const struct list_view_filter *filter,
                       struct store_value *out, struct error *error)
{
    const struct text text = http_request_query(request, filter->parameter);
    int64_t value = 0;
    if (!text.data)
        return 0;
    switch (filter->kind) {
    case LIST_VIEW_MINE:
    case LIST_VIEW_FLAG:
        value = text_equal(text, TEXT("true"));
        if (!value && !text_equal(text, TEXT("false")))
            return error_set(error, ERROR_INVALID, "%s must be true or false", filter->parameter);
        if (filter->kind == LIST_VIEW_FLAG)
            break;
        if (!value)
            return 0;
        value = (int64_t)route_caller(request)->account;
        break;
    case LIST_VIEW_NUMBER:
        if (read_number(filter, text, 1, INT64_MAX, &value, error) < 0)
            return -1;
        break;
    case LIST_VIEW_LEAST:
    case LIST_VIEW_MOST:
        if (read_number(filter, text, 0, filter->maximum, &value, error) < 0)
            return -1;
        break;
    case LIST_VIEW_CHOICE:
        if (read_choice(filter, text, &value, error) < 0)
            return -1;
        break;
    case LIST_VIEW_LABELS:
        if (text.size == 0 || text.size > OFFER_LABELS_MAX || !offer_are_labels(text))
            return error_set(error, ERROR_INVALID,
                             "%s must be words with one comma between, %d characters at most",
                             filter->parameter, OFFER_LABELS_MAX);
        *out = store_text(text);
        return 1;
    case LIST_VIEW_START:
        if (name_check(text, "", error) < 0)
            return error_set(error, ERROR_INVALID,
                             "%s must be 1 to %d characters of a-z, 0-9 and -, as a name begins",
                             filter->parameter, MARKET_NAME_SIZE - 1);
        *out = store_text(text);
        return 1;
    case LIST_VIEW_WITHIN:
        if (text.size == 0 || text.size > (size_t)filter->maximum)
            return error_set(error, ERROR_INVALID, "%s must be 1 to %" PRId64 " bytes",
                             filter->parameter, filter->maximum);
        *out = store_text(text);
        return 1;
    case LIST_VIEW_TEXT:
        *out = store_text(text);
        return 1;
    }
    *out = store_integer(value);
    return 1;
}

/* By key when none is asked for. */
static int read_sort(const struct http_request *request, const struct list_view *list,
                     const struct list_view_sort **out_sort, struct error *error)
{
    const struct text text = http_request_query(request, "sort");
    *out_sort = NULL;
    if (!text.data || list->sort_count == 0)
        return 0;
    struct buffer words AUTO_BUFFER;
    buffer_init(&words, 256);
    for (size_t i = 0; i < list->sort_count; i++) {
        if (text_equal(text, text_of(list->sorts[i].word))) {
            *out_sort = &list->sorts[i];
            return 0;
        }
        buffer_append_format(&words, "%s%s", i ? ", " : "", list->sorts[i].word);
    }
    return error_set(error, ERROR_INVALID, "sort must be one of: %s", buffer_string(&words));
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool is_within(struct text part, struct text whole)
{
    for (size_t at = 0; at + part.size <= whole.size; at++)
        if (!strncasecmp(whole.data + at, part.data, part.size))
            return true;
    return false;
}

static bool holds(const struct asked *asked, const struct store_value *values)
{
    const struct store_value *value = &values[asked->column];
    switch (asked->filter->kind) {
    case LIST_VIEW_LEAST:
        return value->integer >= asked->value.integer;
    case LIST_VIEW_MOST:
        return value->integer <= asked->value.integer &&
               (value->integer != 0 || asked->filter->is_zero_good);
    case LIST_VIEW_WITHIN:
        return is_within(asked->value.bytes, value->bytes);
    case LIST_VIEW_LABELS:
        return labels_are_in(asked->value.bytes, value->bytes, values[asked->column_too].bytes);
    case LIST_VIEW_TEXT: /* of an indexed column: never here */
    case LIST_VIEW_START:
    case LIST_VIEW_MINE:
    case LIST_VIEW_FLAG:
    case LIST_VIEW_NUMBER:
    case LIST_VIEW_CHOICE:
        break;
    }
    return value->integer == asked->value.integer;
}

static int look_at_row(const struct store_row *row, void *context, struct error *error)
{
    (void)error;
    struct look *look = context;
    for (size_t i = 0; i < look->asked_count; i++)
        if (!holds(&look->asked[i], row->values))
            return 0;
    query_rows_add(&look->rows, row);
    return look->rows.count == look->limit;
}

static bool is_equality(enum list_view_kind kind)
{
    return kind != LIST_VIEW_LEAST && kind != LIST_VIEW_MOST && kind != LIST_VIEW_LABELS &&
           kind != LIST_VIEW_WITHIN;
}

/* From the text itself to before the first that begins otherwise: '{' comes after all that a name
 * may hold. */
static void add_start(struct arena *arena, const struct asked *asked, struct store_filter *indexed,
                      struct store_query *query)
{
    const char *column = asked->filter->column;
    const char *end = arena_format(arena, TEXT_FORMAT "{", TEXT_ARGS(asked->value.bytes));
    ASSERT(query->filter_count + 1 < STORE_FILTER_MAX);
    indexed[query->filter_count++] =
        (struct store_filter){column, STORE_GREATER_OR_EQUAL, asked->value};
    indexed[query->filter_count++] =
        (struct store_filter){column, STORE_LESS, store_text(text_of(end))};
    query->order_column = column;
    query->is_descending = false;
}

/* The store's own filters into `query`, the others into `look`. */
static int read_filters(const struct http_request *request, const struct list_view *list,
                        const struct store_filter *fixed, struct store_filter *indexed,
                        struct store_query *query, struct look *look, struct error *error)
{
    ASSERT(list->filter_count <= LIST_VIEW_FILTER_MAX);
    for (size_t i = 0; i < list->filter_count; i++) {
        const struct list_view_filter *filter = &list->filters[i];
        struct asked asked = {.filter = filter};
        const int is_asked = read_filter(request, filter, &asked.value, error);
        if (is_asked < 0)
            return -1;
        if (!is_asked)
            continue;
        const struct store_column *column = find_column(list->table, filter->column, &asked.column);
        if (filter->column_too)
            find_column(list->table, filter->column_too, &asked.column_too);
        if (filter->kind == LIST_VIEW_START) {
            add_start(look->rows.arena, &asked, indexed, query);
        } else if (is_equality(filter->kind) && is_indexed(column, fixed, list->table)) {
            ASSERT(query->filter_count < STORE_FILTER_MAX);
            indexed[query->filter_count++] =
                (struct store_filter){filter->column, STORE_EQUAL, asked.value};
        } else {
            ASSERT(filter->kind != LIST_VIEW_TEXT);
            look->asked[look->asked_count++] = asked;
        }
    }
    return 0;
}

int list_view_read(struct http_request *request, struct server *server, struct arena *arena,
                   const struct list_view *list, const struct store_filter *fixed,
                   struct query_rows *out_rows, struct error *error)
{
    struct store_filter indexed[STORE_FILTER_MAX];
    struct look look = {.rows = {.arena = arena}};
    struct store_query query = {.table = &tables[list->table],
                                .filters = indexed,
                                .is_descending = list->is_descending,
                                .after = http_request_query(request, "cursor")};
    const struct list_view_sort *sort = NULL;
    if (query_limit(request, &look.limit, error) < 0 || read_sort(request, list, &sort, error) < 0)
        return -1;
    if (fixed)
        indexed[query.filter_count++] = *fixed;
    if (sort) {
        query.order_column = sort->column;
        query.is_descending = sort->is_descending;
        if (sort->leaves_out_zero)
            indexed[query.filter_count++] =
                (struct store_filter){sort->column, STORE_GREATER, store_integer(0)};
    }
    if (read_filters(request, list, fixed, indexed, &query, &look, error) < 0)
        return -1;
    query.limit = look.asked_count ? LIST_VIEW_LOOK_MAX : look.limit;
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
