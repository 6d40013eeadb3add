/*
 * Rows of a table, by a plan.
 *
 * A plan's shape (everything but its values) decides the SQL, so the statement is kept under the
 * shape and the SQL is written only the first time. One statement sees one committed state by
 * itself: no transaction is opened around it.
 */
#include "base/assert.h"
#include "store/store_sqlite_internal.h"

enum { SHAPE_SIZE_MAX = 8 + 2 * STORE_FILTER_MAX };

static const char *const compare_sql[STORE_COMPARE_COUNT] = {
    [STORE_EQUAL] = "=",
    [STORE_LESS] = "<",
    [STORE_GREATER] = ">",
    [STORE_LESS_OR_EQUAL] = "<=",
    [STORE_GREATER_OR_EQUAL] = ">=",
};

static bool is_null_search(const struct store_plan_filter *filter)
{
    return filter->value.is_null && filter->compare == STORE_EQUAL;
}

/* Begins with a byte no SQL begins with. */
static size_t plan_shape(const struct store_plan *plan, const struct store_schema *schema,
                         uint8_t out[SHAPE_SIZE_MAX])
{
    size_t size = 0;
    out[size++] = 1;
    out[size++] = (uint8_t)(plan->table - schema->tables);
    out[size++] =
        (uint8_t)(plan->is_descending | plan->has_order << 1 | plan->has_cursor << 2 |
                  (plan->has_cursor && plan->has_order && plan->order_value.is_null) << 3);
    out[size++] = plan->has_order ? (uint8_t)plan->order_index : 0;
    for (size_t i = 0; i < plan->filter_count; i++) {
        out[size++] = (uint8_t)plan->filters[i].column_index;
        out[size++] =
            (uint8_t)((int)plan->filters[i].compare | (is_null_search(&plan->filters[i]) ? 16 : 0));
    }
    return size;
}

/* SQL under construction, with the values its parameters will get. */
struct sqlite_query {
    struct buffer *sql; /* NULL: the values alone are wanted */
    struct store_value values[2 * STORE_FILTER_MAX + STORE_COLUMN_MAX + 4];
    size_t value_count;
};

#define ADD(query_, ...)                                                                           \
    do {                                                                                           \
        if ((query_)->sql)                                                                         \
            buffer_append_format((query_)->sql, __VA_ARGS__);                                      \
    } while (0)

static void add_value(struct sqlite_query *query, const struct store_value *value)
{
    ASSERT(query->value_count < sizeof(query->values) / sizeof(*query->values));
    query->values[query->value_count++] = *value;
    ADD(query, "?%zu", query->value_count);
}

/* One value in all rows of the plan: it orders nothing, and with it SQLite would not see that the
 * rest of the key is a range of an index. */
static bool is_fixed(const struct store_plan *plan, size_t column_index)
{
    for (size_t i = 0; i < plan->filter_count; i++)
        if (plan->filters[i].column_index == column_index &&
            plan->filters[i].compare == STORE_EQUAL && !plan->filters[i].value.is_null)
            return true;
    return false;
}

/* The key columns that order the plan's rows, each after `separator` but the first. */
static size_t add_key_columns(struct sqlite_query *query, const struct store_plan *plan,
                              const char *suffix, bool is_first)
{
    const struct store_table *table = plan->table;
    size_t count = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        if (!table->columns[i].is_key || is_fixed(plan, i))
            continue;
        ADD(query, "%s\"%s\"%s", is_first && !count ? "" : ", ", table->columns[i].name, suffix);
        count++;
    }
    return count;
}

static void add_key_values(struct sqlite_query *query, const struct store_plan *plan, bool is_first)
{
    const struct store_table *table = plan->table;
    for (size_t i = 0, key_number = 0; i < table->column_count; i++) {
        if (!table->columns[i].is_key)
            continue;
        if (!is_fixed(plan, i)) {
            ADD(query, "%s", is_first ? "" : ", ");
            add_value(query, &plan->key_values[key_number]);
            is_first = false;
        }
        key_number++;
    }
}

static bool is_key_fixed(const struct store_plan *plan)
{
    for (size_t i = 0; i < plan->table->column_count; i++)
        if (plan->table->columns[i].is_key && !is_fixed(plan, i))
            return false;
    return true;
}

static void add_tuple_compare(struct sqlite_query *query, const struct store_plan *plan,
                              bool has_order)
{
    if (!has_order && is_key_fixed(plan)) { /* the one row there can be was the cursor's */
        ADD(query, "0");
        return;
    }
    ADD(query, "(");
    if (has_order)
        ADD(query, "\"%s\"", plan->table->columns[plan->order_index].name);
    add_key_columns(query, plan, "", !has_order);
    ADD(query, ") %s (", plan->is_descending ? "<" : ">");
    if (has_order)
        add_value(query, &plan->order_value);
    add_key_values(query, plan, !has_order);
    ADD(query, ")");
}

/* Rows after the cursor. Nulls come first going up and last going down, and a comparison with null
 * is never true, so a column that may be null needs its own cases. */
static void add_cursor(struct sqlite_query *query, const struct store_plan *plan)
{
    const struct store_column *order = &plan->table->columns[plan->order_index];
    const bool is_after_null = plan->has_order && plan->order_value.is_null;
    ADD(query, " AND (");
    if (is_after_null)
        ADD(query, "\"%s\" %s ", order->name,
            plan->is_descending ? "IS NULL AND" : "IS NOT NULL OR");
    add_tuple_compare(query, plan, plan->has_order && !is_after_null);
    if (plan->has_order && order->is_optional && !is_after_null && plan->is_descending)
        ADD(query, " OR \"%s\" IS NULL", order->name);
    ADD(query, ")");
}

static void add_order(struct sqlite_query *query, const struct store_plan *plan)
{
    if (!plan->has_order && is_key_fixed(plan))
        return;
    const char *suffix = plan->is_descending ? " DESC" : "";
    ADD(query, " ORDER BY ");
    if (plan->has_order)
        ADD(query, "\"%s\"%s", plan->table->columns[plan->order_index].name, suffix);
    add_key_columns(query, plan, suffix, !plan->has_order);
}

static void add_select(struct sqlite_query *query, const struct store_plan *plan)
{
    const struct store_table *table = plan->table;
    ADD(query, "SELECT ");
    for (size_t i = 0; query->sql && i < table->column_count; i++)
        ADD(query, "%s\"%s\"", i ? ", " : "", table->columns[i].name);
    ADD(query, " FROM \"%s\" WHERE 1", table->name);
    for (size_t i = 0; i < plan->filter_count; i++) {
        const struct store_plan_filter *filter = &plan->filters[i];
        ADD(query, " AND \"%s\" %s ", table->columns[filter->column_index].name,
            is_null_search(filter) ? "IS" : compare_sql[filter->compare]);
        add_value(query, &filter->value);
    }
}

/* SQLite sees no range of an index in a comparison of order and key together: it would step over
 * every row with the cursor's own value again, of which there may be very many. */
static bool has_equals_apart(const struct store_plan *plan)
{
    return plan->has_cursor && plan->has_order && !is_key_fixed(plan) &&
           !plan->table->columns[plan->order_index].is_optional;
}

static void add_both_parts(struct sqlite_query *query, const struct store_plan *plan)
{
    const char *order = plan->table->columns[plan->order_index].name;
    const char *after = plan->is_descending ? "<" : ">";
    add_select(query, plan);
    ADD(query, " AND \"%s\" = ", order);
    add_value(query, &plan->order_value);
    ADD(query, " AND (");
    add_key_columns(query, plan, "", true);
    ADD(query, ") %s (", after);
    add_key_values(query, plan, true);
    ADD(query, ") UNION ALL ");
    add_select(query, plan);
    ADD(query, " AND \"%s\" %s ", order, after);
    add_value(query, &plan->order_value);
}

static void build_query(struct sqlite_query *query, const struct store_plan *plan)
{
    if (has_equals_apart(plan)) {
        add_both_parts(query, plan);
    } else {
        add_select(query, plan);
        if (plan->has_cursor)
            add_cursor(query, plan);
    }
    add_order(query, plan);
    ADD(query, " LIMIT ");
    const struct store_value limit = store_integer(plan->limit);
    add_value(query, &limit);
}

static int find_statement(struct sqlite_reader *reader, const struct store_plan *plan,
                          struct sqlite_query *query, sqlite3_stmt **out_statement,
                          struct error *error)
{
    uint8_t shape[SHAPE_SIZE_MAX];
    const struct text key = {(const char *)shape, plan_shape(plan, reader->reader.schema, shape)};
    if (sqlite_prepare_as(&reader->connection, key, NULL, out_statement, error) < 0)
        return -1;
    if (*out_statement) {
        build_query(query, plan);
        return 0;
    }
    struct buffer sql AUTO_BUFFER;
    buffer_init(&sql, 1 << 16);
    query->sql = &sql;
    build_query(query, plan);
    const char *string = buffer_string(&sql);
    query->sql = NULL;
    if (buffer_check(&sql, error) < 0)
        return -1;
    return sqlite_prepare_as(&reader->connection, key, string, out_statement, error);
}

static struct store_value read_value(sqlite3_stmt *statement, int index,
                                     const struct store_column *column)
{
    if (column->is_optional && sqlite3_column_type(statement, index) == SQLITE_NULL)
        return store_null(column->type);
    if (column->type == STORE_INTEGER)
        return store_integer(sqlite3_column_int64(statement, index));
    if (column->type == STORE_REAL)
        return store_real(sqlite3_column_double(statement, index));
    return (struct store_value){.type = column->type, .bytes = sqlite_column(statement, index)};
}

static int step_rows(struct sqlite_connection *connection, sqlite3_stmt *statement,
                     const struct store_table *table, store_row_callback *callback, void *context,
                     struct error *error)
{
    int result;
    while ((result = sqlite_step(connection, statement, error)) == 1) {
        struct store_value values[STORE_COLUMN_MAX];
        for (size_t i = 0; i < table->column_count; i++)
            values[i] = read_value(statement, (int)i, &table->columns[i]);
        const struct store_row row = {table, values};
        const int answer = callback(&row, context, error);
        if (answer != 0) {
            sqlite3_reset(statement);
            return answer < 0 ? -1 : 0;
        }
    }
    return result;
}

int sqlite_read_rows(struct store_reader *reader, const struct store_plan *plan,
                     store_row_callback *callback, void *context, struct error *error)
{
    struct sqlite_reader *self = sqlite_reader_of(reader);
    struct sqlite_query query;
    query.sql = NULL;
    query.value_count = 0;
    sqlite3_stmt *statement = NULL;
    if (find_statement(self, plan, &query, &statement, error) < 0)
        return -1;
    for (size_t i = 0; i < query.value_count; i++)
        if (sqlite_bind(&self->connection, statement, (int)i + 1, &query.values[i], error) < 0)
            return -1;
    return step_rows(&self->connection, statement, plan->table, callback, context, error);
}
