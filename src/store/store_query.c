#include "base/assert.h"
#include "store/store_internal.h"

size_t store_table_key_index(const struct store_table *table, size_t key_number)
{
    size_t index = 0;
    for (size_t seen = 0; index < table->column_count; index++)
        if (table->columns[index].is_key && seen++ == key_number)
            break;
    ASSERT(index < table->column_count);
    return index;
}

size_t store_table_key_count(const struct store_table *table)
{
    size_t count = 0;
    for (size_t i = 0; i < table->column_count; i++)
        count += table->columns[i].is_key;
    return count;
}

static int find_column(const struct store_table *table, const char *name, size_t *out_index,
                       struct error *error)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (!strcmp(table->columns[i].name, name)) {
            *out_index = i;
            return 0;
        }
    return error_set(error, ERROR_INVALID, "\"%s\" has no column \"%.64s\"", table->name, name);
}

static int plan_filter(const struct store_table *table, const struct store_filter *filter,
                       struct store_plan_filter *out, struct error *error)
{
    if (find_column(table, filter->column, &out->column_index, error) < 0)
        return -1;
    const struct store_column *column = &table->columns[out->column_index];
    if (filter->value.type != column->type)
        return error_set(error, ERROR_INVALID, "column \"%s\" is compared with a value of type %s",
                         column->name, store_type_name(filter->value.type));
    ASSERT(filter->compare < STORE_COMPARE_COUNT);
    out->compare = filter->compare;
    out->value = filter->value;
    return 0;
}

static int plan_query(struct arena *arena, const struct store_schema *schema,
                      const struct store_query *query, struct store_plan *plan, struct error *error)
{
    const struct store_table *table = query->table;
    ASSERT(schema && table >= schema->tables && table < schema->tables + schema->table_count);
    *plan = (struct store_plan){.table = table, .is_descending = query->is_descending};
    if (query->filter_count > STORE_FILTER_MAX)
        return error_set(error, ERROR_INVALID, "more than %d filters", STORE_FILTER_MAX);
    for (size_t i = 0; i < query->filter_count; i++)
        if (plan_filter(table, &query->filters[i], &plan->filters[i], error) < 0)
            return -1;
    plan->filter_count = query->filter_count;
    if (query->limit > STORE_ROW_LIMIT_MAX)
        return error_set(error, ERROR_INVALID, "the limit is at most %d", STORE_ROW_LIMIT_MAX);
    plan->limit = query->limit ? query->limit : STORE_ROW_LIMIT_MAX;
    if (query->order_column) {
        if (find_column(table, query->order_column, &plan->order_index, error) < 0)
            return -1;
        plan->has_order = plan->order_index != store_table_key_index(table, 0);
    }
    if (query->after.size > 0)
        return store_cursor_decode(arena, query->after, plan, error);
    return 0;
}

/* Hands rows on until the page is full, and then looks for one more. */
struct page {
    const struct store_plan *plan;
    uint32_t limit;
    uint32_t row_count;
    bool is_full;
    bool has_more;
    store_row_callback *callback;
    void *context;
    struct buffer *cursor; /* NULL: not wanted */
};

static int page_row(const struct store_row *row, void *context, struct error *error)
{
    struct page *page = context;
    if (page->is_full) {
        page->has_more = true;
        return 1;
    }
    const int result = page->callback(row, page->context, error);
    if (result < 0)
        return -1;
    page->row_count++;
    page->is_full = result > 0 || page->row_count == page->limit;
    if (!page->is_full)
        return 0;
    return page->cursor ? store_cursor_encode(page->plan, row, page->cursor, error) : 1;
}

int store_read_rows(struct store_reader *reader, const struct store_query *query,
                    store_row_callback *callback, void *context, struct buffer *out_next_cursor,
                    struct error *error)
{
    AUTO(arena) struct arena *arena = query->after.size ? arena_new(0) : NULL;
    struct store_plan plan;
    if (plan_query(arena, reader->schema, query, &plan, error) < 0)
        return -1;
    struct buffer cursor AUTO_BUFFER;
    buffer_init(&cursor, SIZE_MAX);
    struct page page = {
        .plan = &plan,
        .limit = plan.limit,
        .callback = callback,
        .context = context,
        .cursor = out_next_cursor ? &cursor : NULL,
    };
    plan.limit += out_next_cursor != NULL;
    const int result = reader->ops->read_rows(reader, &plan, page_row, &page, error);
    if (result < 0 || !out_next_cursor || !page.has_more)
        return result;
    buffer_append_text(out_next_cursor, buffer_text(&cursor));
    return buffer_check(out_next_cursor, error);
}
