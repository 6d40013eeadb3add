/* souk sim: the market's own code in virtual time. */
#include "base/json.h"
#include "cli/output.h"
#include "cli/table.h"
#include "sim/experiment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum wanted_experiment {
    WANTED_ALL,
    WANTED_GAIN,
    WANTED_STEP,
    WANTED_HERDING,
    WANTED_WITHHOLDING,
    WANTED_SELF_RENT,
    WANTED_LYING,
    WANTED_MONTHS,
};

static const char *const experiment_names[] = {
    "all", "gain", "step", "herding", "withholding", "self-rent", "lying", "months", NULL,
};

static int (*const experiments[])(const struct experiment_options *, struct report *,
                                  struct error *) = {
    NULL,
    experiment_gain,
    experiment_step,
    experiment_herding,
    experiment_withholding,
    experiment_self_rent,
    experiment_lying,
    experiment_months,
};

struct sim_market_options {
    int experiment;
    struct option_list rows;
    uint64_t seed;
    uint64_t days;
    const char *data;
    bool invented;
};

static const struct option sim_market_options[] = {
    {"experiment", OPTION_CHOICE, offsetof(struct sim_market_options, experiment), "NAME", "all",
     "Which question is asked.", .choices = experiment_names},
    {"rows", OPTION_LIST, offsetof(struct sim_market_options, rows), "ROW",
     .help = "Only these workloads of the gain: nasa-0.8, nasa-1.5, alibaba-0.8, alibaba-1.5, "
             "synthetic-0.8, synthetic-1.5."},
    {"seed", OPTION_U64, offsetof(struct sim_market_options, seed), "NUMBER", "4",
     "What all chance follows from."},
    {"days", OPTION_U64, offsetof(struct sim_market_options, days), "NUMBER",
     .help = "Only so many days of each workload; without it, all of it.", .minimum = 1,
     .maximum = 366},
    {"data", OPTION_PATH, offsetof(struct sim_market_options, data), "DIR", NULL,
     "The folder with job-traces and spot-traces.", .environment = "SOUK_DATA"},
    {"invented", OPTION_FLAG, offsetof(struct sim_market_options, invented),
     .help = "Small made-up traces in place of measured ones."},
};

static void say(void *context, const char *words)
{
    const struct cli *cli = context;
    if (cli->common.quiet)
        return;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s", words);
    else
        fprintf(stderr, "%s\n", words);
}

static int read_rows(const struct option_list *rows, uint32_t *out_mask, struct error *error)
{
    *out_mask = rows->count > 0 ? 0 : (1U << EXPERIMENT_ROWS) - 1;
    for (size_t i = 0; i < rows->count; i++) {
        int row = 0;
        while (row < EXPERIMENT_ROWS && strcmp(experiment_row_name(row), rows->items[i]) != 0)
            row++;
        if (row == EXPERIMENT_ROWS)
            return error_set(error, ERROR_INVALID,
                             "--rows: \"%.40s\" is none of nasa-0.8, nasa-1.5, alibaba-0.8, "
                             "alibaba-1.5, synthetic-0.8, synthetic-1.5",
                             rows->items[i]);
        *out_mask |= 1U << row;
    }
    return 0;
}

static void print_table(const struct cli *cli, const struct report_table *table)
{
    const char *titles[REPORT_COLUMNS_MAX + 2] = {""};
    for (size_t i = 0; i < table->column_count; i++)
        titles[i + 1] = table->columns[i].title;
    titles[table->column_count + 1] = NULL;
    struct table shown;
    table_init(&shown, cli->arena, titles);
    for (size_t i = 0; i < table->row_count; i++) {
        const char *cells[REPORT_COLUMNS_MAX + 2] = {table->rows[i].label};
        for (size_t k = 0; k < table->column_count; k++)
            cells[k + 1] =
                report_cell(cli->arena, table->columns[k].kind, table->rows[i].values[k]);
        cells[table->column_count + 1] = NULL;
        table_row(&shown, cells);
    }
    printf("%s\n", table->title);
    table_show(&shown, cli);
    printf("\n");
}

static void print_figures(const struct cli *cli, const struct report *report)
{
    struct table shown;
    table_init(&shown, cli->arena, (const char *const[]){"figure", ">seen", ">goal", "", NULL});
    for (size_t i = 0; i < report->figure_count; i++) {
        const struct report_figure *figure = &report->figures[i];
        const bool has_goal = !isnan(figure->goal);
        TABLE_ROW(&shown, figure->name, arena_format(cli->arena, "%.3f", figure->value),
                  has_goal ? arena_format(cli->arena, "%s %.2f",
                                          figure->is_at_most ? "at most" : "at least", figure->goal)
                           : "",
                  !has_goal                      ? ""
                  : report_figure_is_met(figure) ? "met"
                                                 : "missed");
    }
    table_show(&shown, cli);
}

static void print_json(const struct sim_market_options *wanted, const struct report *report)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 1 << 20);
    struct json_writer writer;
    json_writer_init(&writer, &out);
    json_object_begin(&writer);
    json_field_string(&writer, "experiment", experiment_names[wanted->experiment]);
    json_field_u64(&writer, "seed", wanted->seed);
    json_field_u64(&writer, "days", wanted->days);
    json_field_bool(&writer, "invented", wanted->invented);
    report_write_json(report, &writer);
    json_object_end(&writer);
    output_json(buffer_text(&out));
}

static int read_traces(const struct sim_market_options *wanted, struct workload_traces **out_traces,
                       struct error *error)
{
    if (wanted->invented) {
        *out_traces = workload_traces_invent(wanted->seed);
        return 0;
    }
    if (!wanted->data)
        return error_set(error, ERROR_INVALID,
                         "name the folder of the traces with --data or SOUK_DATA, or take made-up "
                         "ones with --invented");
    return workload_traces_read(wanted->data, out_traces, error);
}

static int run_sim_market(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct sim_market_options *wanted = options;
    struct experiment_options asked = {
        .seed = wanted->seed, .day_count = (int64_t)wanted->days, .progress = say, .context = cli};
    AUTO(workload_traces) struct workload_traces *traces = NULL;
    if (read_rows(&wanted->rows, &asked.row_mask, error) < 0 ||
        read_traces(wanted, &traces, error) < 0)
        return -1;
    asked.traces = traces;
    struct report *report = arena_alloc(cli->arena, sizeof(*report));
    for (int i = WANTED_GAIN; i <= WANTED_MONTHS; i++)
        if ((wanted->experiment == WANTED_ALL || wanted->experiment == i) &&
            experiments[i](&asked, report, error) < 0)
            return -1;
    if (!cli->common.quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
    if (cli->common.json) {
        print_json(wanted, report);
        return 0;
    }
    for (size_t i = 0; i < report->table_count; i++)
        print_table(cli, &report->tables[i]);
    print_figures(cli, report);
    return 0;
}

const struct command command_sim_market = {
    .name = "sim market",
    .summary = "Replays traces through the market's own code and compares price rules.",
    .details = "The same core as in `souk serve`, in virtual time. The same seed gives the same "
               "figures. What is measured and what is assumed stands in docs/simulation.md.",
    .example = "souk sim market --experiment gain --rows nasa-1.5 --data traces",
    COMMAND_OPTIONS(sim_market_options, sim_market_options),
    .run = run_sim_market,
};
