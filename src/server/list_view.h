/*
 * List view: a page of a table's rows as JSON, by one description for each list.
 *
 *     to add a filter or an order: a line in the list's table, and the parameter in
 *     docs/openapi/openapi.json
 *
 * Filters on columns with an index are the store's; the others are applied to the rows as they
 * come, at most LIST_VIEW_LOOK_MAX of them for one page: such a page may have fewer items than
 * asked for, even none, while next_cursor says that there is more to look at. Main thread.
 */
#pragma once

#include "server/query.h"
#include "server/view.h"

enum { LIST_VIEW_LOOK_MAX = 2000, LIST_VIEW_FILTER_MAX = 16 };

enum list_view_kind {
    LIST_VIEW_MINE,   /* ?mine=true: the column is the caller's account */
    LIST_VIEW_FLAG,   /* true or false: the column is 1 or 0 */
    LIST_VIEW_NUMBER, /* from 1 on */
    LIST_VIEW_TEXT,   /* of an indexed column */
    LIST_VIEW_START,  /* how a name in an indexed column begins; the rows come in its order */
    LIST_VIEW_WITHIN, /* text that stands in the column, in small letters or large; at most
                         `maximum` bytes */
    LIST_VIEW_CHOICE, /* a word of `choice` */
    LIST_VIEW_LEAST,  /* a number from 0 to `maximum`: the column's or less */
    LIST_VIEW_MOST,   /* likewise, the column's or more; a column that is 0 is not known */
    LIST_VIEW_LABELS, /* words with a comma between, each in the column or in `column_too` */
};

struct list_view_filter {
    const char *parameter;
    const char *column;
    enum list_view_kind kind;
    const char *(*choice)(int index); /* the words, for 0 to choice_count - 1 */
    int choice_count;
    int64_t maximum;
    bool is_zero_good;      /* of LIST_VIEW_MOST: 0 is a number like others */
    const char *column_too; /* of LIST_VIEW_LABELS */
};

/* An order other than by key: ?sort= with this word. The column has an index. */
struct list_view_sort {
    const char *word;
    const char *column;
    bool is_descending;
    bool leaves_out_zero; /* rows of which the column is not known */
};

typedef void list_view_write(struct server *server, struct arena *arena, uint64_t account,
                             const struct store_value *row, struct json_writer *writer);

struct list_view {
    enum table table;
    bool is_descending;
    const struct list_view_filter *filters;
    size_t filter_count; /* at most LIST_VIEW_FILTER_MAX */
    const struct list_view_sort *sorts;
    size_t sort_count;
    list_view_write *write;
};

/* The page the request asks for, of the rows for which `fixed` (NULL: all) holds. INVALID names the
 * parameter that is wrong. */
MUST_CHECK int list_view_read(struct http_request *request, struct server *server,
                              struct arena *arena, const struct list_view *list,
                              const struct store_filter *fixed, struct query_rows *out_rows,
                              struct error *error);
/* Reads and answers, from memory if it can. After answers_reply said no. */
void list_view_send(struct http_request *request, struct server *server,
                    const struct list_view *list, const struct store_filter *fixed);
