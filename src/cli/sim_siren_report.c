/* What `souk sim siren` shows: tables and JSON. */
#include "base/json.h"
#include "cli/output.h"
#include "cli/sim_siren.h"
#include "cli/table.h"

#include <math.h>
#include <stdio.h>

enum { JSON_BYTES_MAX = 16 << 20 };

/* Means over the seeds for which a constant reaches the target. */
struct row {
    double count, reached, runs, time_s, cost, reduction, share;
    uint32_t function_min, function_max;
};

static void add_cell(struct row *row, const struct siren_result *result, enum siren_scheduler k)
{
    const struct siren_score *score = &result->scores[k];
    row->count++;
    row->reached += score->reached_count;
    row->runs += result->evaluation_count;
    row->time_s += score->time_s;
    row->cost += score->cost;
    row->reduction += siren_reduction(result, k);
    row->share += siren_share(result, k);
    if (row->function_min == 0 || score->function_min < row->function_min)
        row->function_min = score->function_min;
    if (score->function_max > row->function_max)
        row->function_max = score->function_max;
}

static const char *percent(struct arena *arena, double share)
{
    return isnan(share) ? "" : arena_format(arena, "%.1f %%", 100 * share);
}

static void show_row(struct table *shown, struct arena *arena, enum siren_scheduler k,
                     const struct row *row)
{
    if (k == SIREN_BOUND) {
        TABLE_ROW(shown, siren_scheduler_names[k], "", "",
                  arena_format(arena, "%.0f", row->time_s / row->count),
                  percent(arena, row->reduction / row->count), "", "");
        return;
    }
    const char *functions =
        row->function_min == row->function_max
            ? arena_format(arena, "%u", row->function_min)
            : arena_format(arena, "%u-%u", row->function_min, row->function_max);
    TABLE_ROW(shown, siren_scheduler_names[k], functions,
              arena_format(arena, "%.1f", row->cost / row->count),
              arena_format(arena, "%.0f", row->time_s / row->count),
              k == SIREN_CONSTANT ? "" : percent(arena, row->reduction / row->count),
              k == SIREN_CONSTANT ? "" : percent(arena, row->share / row->count),
              arena_format(arena, "%.0f of %.0f", row->reached, row->runs));
}

static void print_budget(const struct sim_siren *plan, int64_t budget_micro)
{
    struct arena *arena = plan->cli->arena;
    struct row rows[SIREN_SCHEDULER_COUNT] = {0};
    size_t none = 0;
    for (size_t i = 0; i < plan->cell_count; i++) {
        const struct sim_siren_cell *cell = &plan->cells[i];
        if (cell->budget_micro != budget_micro)
            continue;
        none += cell->result.constant.function_count == 0;
        for (uint32_t k = 0; k < SIREN_SCHEDULER_COUNT; k++)
            if (cell->result.is_run[k])
                add_cell(&rows[k], &cell->result, k);
    }
    printf("%s, budget %g%s\n", siren_mode_names[plan->wanted->mode], 1e-6 * (double)budget_micro,
           plan->wanted->noise ? ", with noise" : "");
    if (rows[SIREN_CONSTANT].count > 0) {
        struct table shown;
        table_init(&shown, arena,
                   (const char *const[]){"scheduler", ">functions", ">cost", ">seconds",
                                         ">less time", ">of the bound's", ">reached", NULL});
        for (uint32_t k = 0; k < SIREN_SCHEDULER_COUNT; k++)
            if (rows[k].count > 0)
                show_row(&shown, arena, k, &rows[k]);
        table_show(&shown, plan->cli);
    }
    if (none > 0)
        printf("of %zu seeds %zu: no constant reaches the target with this budget\n",
               plan->seed_count, none);
    printf("\n");
}

/* Wang, Niu, Li: Distributed Machine Learning with a Serverless Architecture (INFOCOM 2019). */
static const char *const first_head[] = {"configuration", ">loss", ">seconds", ">cost, $", NULL};
static const char *const first_rows[][5] = {
    {"20 functions", ".009725", "237.40", ".019"},
    {"8-core EC2", ".009779", "307.87", ".029"},
    {"150 functions", ".009699", "50.04", ".031"},
    {"120, then 20, then 10 functions", ".009761", "202.55", ".019"},
};
static const char *const third_head[] = {">budget",  ">grid: functions",  ">cost",
                                         ">seconds", ">Siren: functions", ">cost",
                                         ">seconds", ">less time",        NULL};
static const char *const third_rows[][9] = {
    {"300", "828", "299.89", "2452.3", "652-892", "299.92", "1569.5", "36.0 %"},
    {"200", "482", "199.67", "2816.9", "355-597", "199.73", "2454.4", "12.9 %"},
    {"100", "138", "99.99", "4979.7", "56-258", "99.82", "4480.4", "10.0 %"},
    {"50", "3000", "47.76", "fails", "1293-2995", "49.82", "fails", ""},
};
enum {
    FIRST_ROWS = sizeof(first_rows) / sizeof(*first_rows),
    THIRD_ROWS = sizeof(third_rows) / sizeof(*third_rows),
};

static void print_published(const struct sim_siren *plan)
{
    struct table first, third;
    printf("published, Table I (logistic regression on Lambda)\n");
    table_init(&first, plan->cli->arena, first_head);
    for (size_t i = 0; i < FIRST_ROWS; i++)
        table_row(&first, first_rows[i]);
    table_show(&first, plan->cli);
    printf("\npublished, Table III (simulation)\n");
    table_init(&third, plan->cli->arena, third_head);
    for (size_t i = 0; i < THIRD_ROWS; i++)
        table_row(&third, third_rows[i]);
    table_show(&third, plan->cli);
}

static const char *const first_fields[] = {"configuration", "loss", "time_s", "cost"};
static const char *const third_fields[] = {"budget",      "grid_functions", "grid_cost",
                                           "grid_time_s", "functions",      "cost",
                                           "time_s",      "less_time"};

/* As printed in the paper: every field is a string. */
static void write_published(struct json_writer *writer, const char *const *fields,
                            const char *const *row)
{
    json_object_begin(writer);
    for (size_t i = 0; row[i]; i++)
        json_field_string(writer, fields[i], row[i]);
    json_object_end(writer);
}

void sim_siren_print(const struct sim_siren *plan)
{
    for (size_t i = 0; i < plan->budget_count; i++)
        print_budget(plan, plan->budgets_micro[i]);
    print_published(plan);
}

static void write_row(struct json_writer *writer, const struct siren_result *result,
                      enum siren_scheduler k)
{
    const struct siren_score *score = &result->scores[k];
    json_object_begin(writer);
    json_field_string(writer, "scheduler", siren_scheduler_names[k]);
    json_field_double(writer, "time_s", score->time_s);
    json_field_double(writer, "reduction", siren_reduction(result, k));
    json_field_double(writer, "share_of_bound", siren_share(result, k));
    if (k != SIREN_BOUND) {
        json_field_u64(writer, "reached", score->reached_count);
        json_field_double(writer, "cost", score->cost);
        json_field_double(writer, "epochs", score->epoch_count);
        json_field_u64(writer, "functions_min", score->function_min);
        json_field_u64(writer, "functions_max", score->function_max);
        json_field_bool(writer, "passed_budget", score->passed_micro > 0);
    }
    json_object_end(writer);
}

static void write_cell(struct json_writer *writer, const struct sim_siren_cell *cell)
{
    json_object_begin(writer);
    json_field_u64(writer, "seed", cell->seed);
    json_field_double(writer, "budget", 1e-6 * (double)cell->budget_micro);
    json_field_u64(writer, "runs", cell->result.evaluation_count);
    json_field_bool(writer, "reachable", cell->result.constant.function_count > 0);
    json_field_u64(writer, "constant_functions", cell->result.constant.function_count);
    json_field_u64(writer, "constant_memory_mb", cell->result.constant.memory_mb);
    json_key(writer, "schedulers");
    json_array_begin(writer);
    for (uint32_t k = 0; k < SIREN_SCHEDULER_COUNT; k++)
        if (cell->result.is_run[k])
            write_row(writer, &cell->result, k);
    json_array_end(writer);
    json_object_end(writer);
}

int sim_siren_print_json(const struct sim_siren *plan, struct error *error)
{
    const struct sim_siren_options *wanted = plan->wanted;
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, JSON_BYTES_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &out);
    json_object_begin(&writer);
    json_field_string(&writer, "mode", siren_mode_names[wanted->mode]);
    json_field_bool(&writer, "noise", wanted->noise);
    json_field_bool(&writer, "typical", wanted->typical);
    json_field_u64(&writer, "episodes", wanted->episodes);
    json_field_u64(&writer, "rehearsals", wanted->rehearsals);
    json_key(&writer, "results");
    json_array_begin(&writer);
    for (size_t i = 0; i < plan->cell_count; i++)
        write_cell(&writer, &plan->cells[i]);
    json_array_end(&writer);
    json_key(&writer, "published_table_1");
    json_array_begin(&writer);
    for (size_t i = 0; i < FIRST_ROWS; i++)
        write_published(&writer, first_fields, first_rows[i]);
    json_array_end(&writer);
    json_key(&writer, "published_table_3");
    json_array_begin(&writer);
    for (size_t i = 0; i < THIRD_ROWS; i++)
        write_published(&writer, third_fields, third_rows[i]);
    json_array_end(&writer);
    json_object_end(&writer);
    if (buffer_check(&out, error) < 0)
        return -1;
    output_json(buffer_text(&out));
    return 0;
}
