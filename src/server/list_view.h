/*
 * List view: a page of a table's rows as JSON, by one description for each list.
 *
 *     to add a filter: a line in the list's table, and the parameter in docs/openapi/openapi.json
 *
 * Filters on columns with an index are the store's; the others are applied to the rows as they
 * come, at most LIST_VIEW_LOOK_MAX of them for one page: such a page may have fewer items than
 * asked for, even none, while next_cursor says that there is more to look at. Main thread.
 */
#pragma once

#include "server/query.h"
#include "server/view.h"

enum { LIST_VIEW_LOOK_MAX = 2000 };

enum list_view_kind {
    LIST_VIEW_MINE,   /* ?mine=true: the column is the caller's account */
    LIST_VIEW_NUMBER, /* from 1 on */
    LIST_VIEW_TEXT,   /* of an indexed column */
    LIST_VIEW_CHOICE, /* a word of `choice` */
};

struct list_view_filter {
    const char *parameter;
    const char *column;
    enum list_view_kind kind;
    const char *(*choice)(int index); /* the words, for 0 to choice_count - 1 */
    int choice_count;
};

typedef void list_view_write(struct server *server, struct arena *arena, uint64_t account,
                             const struct store_value *row, struct json_writer *writer);

struct list_view {
    enum table table;
    bool is_descending;
    const struct list_view_filter *filters;
    size_t filter_count;
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
