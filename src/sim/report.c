#include "sim/report.h"

#include "base/assert.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

struct report_table *report_add_table(struct report *report, const char *name,
                                      const struct report_column *columns, size_t column_count,
                                      const char *title_format, ...)
{
    ASSERT(report->table_count < REPORT_TABLES_MAX && column_count <= REPORT_COLUMNS_MAX);
    struct report_table *table = &report->tables[report->table_count++];
    table->name = name;
    table->columns = columns;
    table->column_count = column_count;
    table->row_count = 0;
    va_list arguments;
    va_start(arguments, title_format);
    const int size = vsnprintf(table->title, sizeof(table->title), title_format, arguments);
    va_end(arguments);
    ASSERT(size >= 0 && (size_t)size < sizeof(table->title));
    return table;
}

struct report_row *report_add_row(struct report_table *table, const char *label_format, ...)
{
    ASSERT(table->row_count < REPORT_ROWS_MAX);
    struct report_row *row = &table->rows[table->row_count++];
    for (size_t i = 0; i < REPORT_COLUMNS_MAX; i++)
        row->values[i] = (double)NAN;
    va_list arguments;
    va_start(arguments, label_format);
    const int size = vsnprintf(row->label, sizeof(row->label), label_format, arguments);
    va_end(arguments);
    ASSERT(size >= 0 && (size_t)size < sizeof(row->label));
    return row;
}

static void add_figure(struct report *report, const struct report_figure *figure)
{
    ASSERT(report->figure_count < REPORT_FIGURES_MAX);
    report->figures[report->figure_count++] = *figure;
}

void report_add_goal(struct report *report, const char *name, double value, bool is_at_most,
                     double goal)
{
    add_figure(report, &(struct report_figure){name, value, goal, is_at_most});
}

void report_add_figure(struct report *report, const char *name, double value)
{
    add_figure(report, &(struct report_figure){name, value, (double)NAN, false});
}

bool report_figure_is_met(const struct report_figure *figure)
{
    if (isnan(figure->goal))
        return true;
    return figure->is_at_most ? figure->value <= figure->goal : figure->value >= figure->goal;
}

const char *report_cell(struct arena *arena, enum report_kind kind, double value)
{
    if (isnan(value))
        return "-";
    switch (kind) {
    case REPORT_NUMBER:
        return arena_format(arena, "%.2f", value);
    case REPORT_SHARE:
        return arena_format(arena, "%.1f %%", 100 * value);
    case REPORT_COUNT:
        return arena_format(arena, "%.0f", value);
    }
    UNREACHABLE("a kind of cell that is not written");
}

static void write_table(const struct report_table *table, struct json_writer *writer)
{
    json_object_begin(writer);
    json_field_string(writer, "name", table->name);
    json_field_string(writer, "title", table->title);
    json_key(writer, "rows");
    json_array_begin(writer);
    for (size_t i = 0; i < table->row_count; i++) {
        json_object_begin(writer);
        json_field_string(writer, "label", table->rows[i].label);
        for (size_t k = 0; k < table->column_count; k++)
            json_field_double(writer, table->columns[k].key, table->rows[i].values[k]);
        json_object_end(writer);
    }
    json_array_end(writer);
    json_object_end(writer);
}

void report_write_json(const struct report *report, struct json_writer *writer)
{
    json_key(writer, "figures");
    json_object_begin(writer);
    for (size_t i = 0; i < report->figure_count; i++)
        json_field_double(writer, report->figures[i].name, report->figures[i].value);
    json_object_end(writer);
    json_key(writer, "missed");
    json_array_begin(writer);
    for (size_t i = 0; i < report->figure_count; i++)
        if (!report_figure_is_met(&report->figures[i]))
            json_string(writer, report->figures[i].name);
    json_array_end(writer);
    json_key(writer, "tables");
    json_array_begin(writer);
    for (size_t i = 0; i < report->table_count; i++)
        write_table(&report->tables[i], writer);
    json_array_end(writer);
}
