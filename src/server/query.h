/*
 * Query: rows of the tables, copied out of the store so that several can be looked at together.
 *
 * Main thread: it uses the server's reader.
 */
#pragma once

#include "base/json.h"
#include "server/server_internal.h"
#include "server/tables.h"

struct query_rows {
    const struct store_value **items; /* each one value per column */
    size_t count;
    struct text next_cursor; /* empty: that was all */
};

/* The first row whose column equals the value; *out_values is NULL when there is none. */
MUST_CHECK int query_one(struct server *server, struct arena *arena, enum table table,
                         const char *column, struct store_value value,
                         const struct store_value **out_values, struct error *error);
/* As query_one by an id; NOT_FOUND "job 7 does not exist" when there is none. */
MUST_CHECK int query_id(struct server *server, struct arena *arena, enum table table, uint64_t id,
                        const char *noun, const struct store_value **out_values,
                        struct error *error);

/* For columns of a row that never change, such as a job's name: an answer made of them alone needs
 * no note of it. *out_values is NULL when there is none. */
MUST_CHECK int query_fixed(struct server *server, struct arena *arena, enum table table,
                           uint64_t id, const struct store_value **out_values, struct error *error);

/* At most query->limit rows. */
MUST_CHECK int query_all(struct server *server, struct arena *arena,
                         const struct store_query *query, struct query_rows *out_rows,
                         struct error *error);
/* ?limit= of a page: 1 to 500, else 50. */
MUST_CHECK int query_limit(const struct http_request *request, uint32_t *out_limit,
                           struct error *error);
/* What the store says names files of this machine: that is for the log, not for who asked. Always
 * returns -1. */
int query_hide_failure(struct error *error);
/* Rows that a callback of one's own chooses, copied into the arena one by one. */
struct query_rows_builder {
    struct arena *arena;
    const struct store_value **items;
    size_t count, capacity;
};
void query_rows_add(struct query_rows_builder *rows, const struct store_row *row);
MUST_CHECK int query_look(struct server *server, struct arena *arena,
                          const struct store_query *query, store_row_callback *callback,
                          void *context, const struct query_rows_builder *rows,
                          struct query_rows *out_rows, struct error *error);
/* A page: ?limit= (1 to 500, else 50) and ?cursor= are taken from the request. */
MUST_CHECK int query_page(struct http_request *request, struct server *server, struct arena *arena,
                          struct store_query *query, struct query_rows *out_rows,
                          struct error *error);

/* Text of an account's, group's or machine's name column; "" when the row is not there. */
MUST_CHECK int query_read_name(struct server *server, struct arena *arena, enum table table,
                               uint64_t id, struct text *out_name, struct error *error);
/* The same for answers that can do without: when it cannot be read that is logged, the name is "",
 * and the answer is not kept. */
struct text query_name(struct server *server, struct arena *arena, enum table table, uint64_t id);

/* {"items":[ ... ],"next_cursor":...}: begin, one value per item, end. */
void query_page_begin(struct json_writer *writer);
void query_page_end(struct json_writer *writer, const struct query_rows *rows);
