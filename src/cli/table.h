/*
 * Table: rows for people, fitted to their terminal.
 *
 * Columns are as wide as their widest cell. Marks before a column's title say what else holds:
 *
 *     >   aligned right: numbers
 *     ~   cut short with "…" where room is short
 *     +   broken between words over several lines where room is short; the last column only
 *     /n  left out where room is short, n from 1 to 9; the highest first
 *
 * A table without a terminal, or with --wide, is never cut.
 */
#pragma once

#include "cli/cli.h"

#include <stdio.h>

enum { TABLE_COLUMNS_MAX = 20, TABLE_ROWS_MAX = 100000 };

struct table {
    struct arena *arena;
    size_t column_count;
    const char *titles[TABLE_COLUMNS_MAX]; /* with their marks */
    const char **cells;                    /* row by row */
    size_t row_count, row_capacity;
};

/* `titles` ends with NULL. Everything lives in the arena. */
void table_init(struct table *table, struct arena *arena, const char *const *titles);
/* One cell per column, ended by NULL; cells live as long as the table. */
void table_row(struct table *table, const char *const *cells);

#define TABLE_ROW(table, ...) table_row((table), (const char *const[]){__VA_ARGS__, NULL})

/* To standard output, as wide as its terminal; a note names the columns that were left out. */
void table_show(const struct table *table, const struct cli *cli);

/* Not wider than `width_max` as far as marks allow; 0: as wide as it is. Returns how many columns
 * were left out and sets their titles, joined by ", ", in the arena. */
size_t table_print(const struct table *table, FILE *file, size_t width_max, bool has_color,
                   const char **out_left_out);
