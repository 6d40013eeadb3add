#include "cli/bench.h"

#include "base/assert.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/table.h"

#include <stdlib.h>

void bench_print(const struct cli *cli, const struct bench_figure *figures, size_t count)
{
    if (cli->common.json) {
        struct buffer json AUTO_BUFFER;
        buffer_init(&json, 1 << 16);
        struct json_writer writer;
        json_writer_init(&writer, &json);
        json_object_begin(&writer);
        for (size_t i = 0; i < count; i++)
            json_field_double(&writer, figures[i].name, figures[i].value);
        json_object_end(&writer);
        output_json(buffer_text(&json));
        return;
    }
    struct table table;
    table_init(&table, cli->arena, (const char *const[]){"FIGURE", ">MEASURED", "GOAL", NULL});
    for (size_t i = 0; i < count; i++)
        TABLE_ROW(&table, figures[i].name,
                  arena_format(cli->arena, "%.*f", figures[i].digits, figures[i].value),
                  figures[i].goal ? figures[i].goal : "");
    table_show(&table, cli);
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

double bench_median(double *values, size_t count)
{
    ASSERT(count > 0);
    qsort(values, count, sizeof(*values), compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
