/*
 * Report: the tables and figures of experiments, for whoever prints them.
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"

#include <stddef.h>

enum {
    REPORT_COLUMNS_MAX = 11,
    REPORT_ROWS_MAX = 48,
    REPORT_TABLES_MAX = 24,
    REPORT_FIGURES_MAX = 48
};

enum report_kind { REPORT_NUMBER, REPORT_SHARE /* shown in percent */, REPORT_COUNT };

struct report_column {
    const char *title; /* on a terminal */
    const char *key;   /* in JSON */
    enum report_kind kind;
};

struct report_row {
    char label[64];
    double values[REPORT_COLUMNS_MAX]; /* NaN: none */
};

struct report_table {
    const char *name; /* in JSON */
    char title[200];
    const struct report_column *columns;
    size_t column_count;
    struct report_row rows[REPORT_ROWS_MAX];
    size_t row_count;
};

/* One number that a benchmark looks at. */
struct report_figure {
    const char *name;
    double value;
    double goal;
    bool is_at_most; /* else at least */
};

struct report {
    struct report_table tables[REPORT_TABLES_MAX];
    size_t table_count;
    struct report_figure figures[REPORT_FIGURES_MAX];
    size_t figure_count;
};

struct report_table *report_add_table(struct report *report, const char *name,
                                      const struct report_column *columns, size_t column_count,
                                      const char *title_format, ...)
    __attribute__((format(printf, 5, 6)));
/* All values are NaN. */
struct report_row *report_add_row(struct report_table *table, const char *label_format, ...)
    __attribute__((format(printf, 2, 3)));

/* With a goal that it should reach. */
void report_add_goal(struct report *report, const char *name, double value, bool is_at_most,
                     double goal);
/* A figure without a goal. */
void report_add_figure(struct report *report, const char *name, double value);
bool report_figure_is_met(const struct report_figure *figure);

/* One cell as people read it: "0.91", "3.7 %", "12", "-". */
const char *report_cell(struct arena *arena, enum report_kind kind, double value);

void report_write_json(const struct report *report, struct json_writer *writer);
