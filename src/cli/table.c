#include "cli/table.h"

#include "base/assert.h"
#include "cli/output.h"

#include <string.h>

/* Columns that may be cut or broken keep at least so much; the last often has sentences. */
enum { CUT_WIDTH_MIN = 10, TEXT_WIDTH_MIN = 24, GAP = 2 };

struct column {
    const char *title;
    bool is_right, is_cut, is_flowing, is_last, is_left_out;
    int drop; /* 0: stays */
    size_t width;
};

void table_init(struct table *table, struct arena *arena, const char *const *titles)
{
    *table = (struct table){.arena = arena};
    while (titles[table->column_count]) {
        ASSERT(table->column_count < TABLE_COLUMNS_MAX);
        table->titles[table->column_count] = titles[table->column_count];
        table->column_count++;
    }
}

void table_row(struct table *table, const char *const *cells)
{
    if (table->row_count == TABLE_ROWS_MAX)
        return;
    if (table->row_count == table->row_capacity) {
        const size_t capacity = table->row_capacity ? 2 * table->row_capacity : 16;
        const size_t row_size = table->column_count * sizeof(*table->cells);
        const char **grown = arena_alloc(table->arena, capacity * row_size);
        if (table->row_count)
            memcpy(grown, table->cells, table->row_count * row_size);
        table->cells = grown;
        table->row_capacity = capacity;
    }
    for (size_t i = 0; i < table->column_count; i++) {
        ASSERT(cells[i]);
        table->cells[table->row_count * table->column_count + i] = cells[i];
    }
    ASSERT(!cells[table->column_count]);
    table->row_count++;
}

/* ---- Fitting --------------------------------------------------------------------------------- */

static const char *cell_at(const struct table *table, size_t row, size_t column)
{
    return table->cells[row * table->column_count + column];
}

static struct column measure(const struct table *table, size_t index)
{
    struct column column = {.title = table->titles[index],
                            .is_last = index + 1 == table->column_count};
    for (;; column.title++) {
        if (*column.title == '>')
            column.is_right = true;
        else if (*column.title == '~')
            column.is_cut = true;
        else if (*column.title == '+')
            column.is_flowing = true;
        else if (*column.title == '/')
            column.drop = *++column.title - '0';
        else
            break;
    }
    ASSERT(column.drop >= 0 && column.drop <= 9);
    ASSERT(!column.is_flowing || column.is_last);
    column.width = output_width(column.title);
    for (size_t row = 0; row < table->row_count; row++) {
        const size_t width = output_width(cell_at(table, row, index));
        column.width = width > column.width ? width : column.width;
    }
    return column;
}

static size_t total_width(const struct column *columns, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        if (!columns[i].is_left_out)
            total += columns[i].width + (total ? GAP : 0);
    return total;
}

/* How much narrower a column may become. */
static size_t slack(const struct column *column)
{
    const size_t least = column->is_flowing || column->is_last ? TEXT_WIDTH_MIN : CUT_WIDTH_MIN;
    if (column->is_left_out || !(column->is_cut || column->is_flowing) || column->width <= least)
        return 0;
    return column->width - least;
}

/* Takes `excess` from the widest columns that may be cut; all have that much together. */
static void narrow(struct column *columns, size_t count, size_t excess)
{
    for (; excess > 0; excess--) {
        struct column *widest = NULL;
        for (size_t i = 0; i < count; i++)
            if (slack(&columns[i]) > 0 && (!widest || columns[i].width > widest->width))
                widest = &columns[i];
        ASSERT(widest);
        widest->width--;
    }
}

static struct column *next_to_drop(struct column *columns, size_t count)
{
    struct column *next = NULL;
    for (size_t i = 0; i < count; i++)
        if (!columns[i].is_left_out && columns[i].drop > 0 &&
            (!next || columns[i].drop > next->drop))
            next = &columns[i];
    return next;
}

static void fit(struct column *columns, size_t count, size_t width_max)
{
    for (;;) {
        const size_t total = total_width(columns, count);
        if (total <= width_max)
            return;
        size_t available = 0;
        for (size_t i = 0; i < count; i++)
            available += slack(&columns[i]);
        if (available >= total - width_max) {
            narrow(columns, count, total - width_max);
            return;
        }
        struct column *column = next_to_drop(columns, count);
        if (!column) {
            narrow(columns, count, available);
            return;
        }
        column->is_left_out = true;
    }
}

/* ---- Printing -------------------------------------------------------------------------------- */

/* Bytes of the first `width` code points. */
static size_t prefix_size(const char *text, size_t width)
{
    size_t size = 0;
    for (size_t taken = 0; text[size]; size++) {
        taken += ((unsigned char)text[size] & 0xc0) != 0x80;
        if (taken > width)
            break;
    }
    return size;
}

static void print_cell(const struct column *column, const char *cell, bool is_last, FILE *file)
{
    const size_t used = output_width(cell);
    const size_t padding = column->width > used ? column->width - used : 0;
    if (used > column->width)
        fprintf(file, "%.*s…", (int)prefix_size(cell, column->width - 1), cell);
    else if (column->is_right)
        fprintf(file, "%*s%s", (int)padding, "", cell);
    else
        fprintf(file, "%s%*s", cell, is_last ? 0 : (int)padding, "");
    if (!is_last)
        fprintf(file, "%*s", GAP, "");
}

/* The last column of a line, over as many lines as it takes. */
static void print_flowing(const struct column *column, const char *cell, size_t indent, FILE *file)
{
    while (output_width(cell) > column->width) {
        size_t size = prefix_size(cell, column->width);
        while (size > 0 && cell[size] != ' ')
            size--;
        if (size == 0) /* one long word */
            size = prefix_size(cell, column->width);
        fprintf(file, "%.*s\n%*s", (int)size, cell, (int)indent, "");
        cell += size + strspn(cell + size, " ");
    }
    fputs(cell, file);
}

static void print_line(const struct column *columns, size_t count, const char *const *cells,
                       FILE *file)
{
    size_t last = count; /* nothing is printed after the last text: no spaces at the end */
    while (last > 1 && (columns[last - 1].is_left_out || !cells[last - 1][0]))
        last--;
    for (size_t i = 0; i < last; i++) {
        if (columns[i].is_left_out)
            continue;
        if (columns[i].is_flowing)
            print_flowing(&columns[i], cells[i], total_width(columns, i) + (i ? GAP : 0), file);
        else
            print_cell(&columns[i], cells[i], i + 1 == last, file);
    }
}

size_t table_print(const struct table *table, FILE *file, size_t width_max, bool has_color,
                   const char **out_left_out)
{
    struct column columns[TABLE_COLUMNS_MAX];
    const char *titles[TABLE_COLUMNS_MAX];
    const size_t count = table->column_count;
    for (size_t i = 0; i < count; i++) {
        columns[i] = measure(table, i);
        titles[i] = columns[i].title;
    }
    if (width_max > 0)
        fit(columns, count, width_max);
    if (has_color)
        fputs("\033[1m", file);
    print_line(columns, count, titles, file);
    fputs(has_color ? "\033[0m\n" : "\n", file);
    for (size_t row = 0; row < table->row_count; row++) {
        print_line(columns, count, &table->cells[row * count], file);
        fputc('\n', file);
    }
    size_t left_out = 0;
    *out_left_out = "";
    for (size_t i = 0; i < count; i++)
        if (columns[i].is_left_out)
            *out_left_out = arena_format(table->arena, "%s%s%s", *out_left_out,
                                         left_out++ ? ", " : "", columns[i].title);
    return left_out;
}

void table_show(const struct table *table, const struct cli *cli)
{
    const char *left_out;
    if (table_print(table, stdout, output_columns(cli, stdout), output_has_color(cli, stdout),
                    &left_out) > 0)
        output_note(cli, "Not shown: %s; --wide shows all.", left_out);
}
