/* souk wallet statement: the account's entries, and those of a job or a machine. */
#include "base/json.h"
#include "cli/connect.h"
#include "cli/output.h"
#include "cli/table.h"
#include "client/api.h"
#include "server/entry_csv.h"

#include <errno.h>

enum { LIMIT_TABLE = 50, JSON_SIZE_MAX = 256 << 20 };

struct statement_options {
    uint64_t job;
    uint64_t machine;
    const char *kind;
    bool is_oldest_first;
    uint64_t limit; /* 0: not given */
    bool is_csv;
};

static const struct option statement_options[] = {
    {"job", OPTION_U64, offsetof(struct statement_options, job), "ID",
     .help = "Only what belongs to this job."},
    {"machine", OPTION_U64, offsetof(struct statement_options, machine), "ID",
     .help = "Only what was paid for this machine."},
    {"kind", OPTION_TEXT, offsetof(struct statement_options, kind), "KIND",
     .help = "Only grant, hold, post, fee, void, release, transfer, reclaim or refund; several "
             "with commas "
             "between."},
    {"oldest_first", OPTION_FLAG, offsetof(struct statement_options, is_oldest_first),
     .help = "Begin with the oldest."},
    {"limit", OPTION_U64, offsetof(struct statement_options, limit), "COUNT",
     .help = "Show at most so many: 50 if not given, and all with --csv.", .minimum = 1,
     .maximum = 1000000000},
    {"csv", OPTION_FLAG, offsetof(struct statement_options, is_csv),
     .help = "Print all entries as CSV (RFC 4180), for spreadsheets."},
};

/* ---- CSV ------------------------------------------------------------------------------------- */

static void write_csv_entry(struct csv_writer *writer, const struct api_entry *entry)
{
    entry_csv_row(writer, &(struct entry_csv){
                              .id = entry->id,
                              .at_ms = entry->at_ms,
                              .kind = entry->kind,
                              .amount_micro = entry->amount_micro,
                              .direction = entry->direction,
                              .job = entry->job,
                              .job_name = entry->job_name,
                              .lease = entry->lease,
                              .machine = entry->machine,
                              .machine_name = entry->machine_name,
                              .other_account = entry->other_account,
                              .other_account_name = entry->other_account_name,
                              .withheld_micro = entry->withheld_micro,
                              .memo = entry->memo,
                          });
}

/* Each page goes out as it comes. */
static int print_csv_page(void *context, const struct api_page *page, struct text json,
                          struct error *error)
{
    (void)json;
    bool *has_head = context;
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, SIZE_MAX);
    struct csv_writer writer;
    csv_writer_init(&writer, &out);
    if (!*has_head)
        entry_csv_head(&writer);
    *has_head = true;
    for (size_t i = 0; i < page->items.count; i++)
        write_csv_entry(&writer, (const struct api_entry *)page->items.items + i);
    if (fwrite(out.data, 1, out.size, stdout) != out.size || fflush(stdout) != 0)
        return error_set_errno(error, errno, "write to standard output");
    return 0;
}

/* ---- Table and JSON -------------------------------------------------------------------------- */

struct shown {
    struct cli *cli;
    struct table table;
    struct buffer json; /* the entries of all pages */
    bool is_oldest_first;
    size_t page_count;
    int64_t opening_micro, closing_micro;
    struct api_sums sums;
};

static void keep_balances(struct shown *shown, const struct api_entry_page *page)
{
    if (!shown->page_count || !shown->is_oldest_first)
        shown->opening_micro = page->opening_micro;
    if (!shown->page_count || shown->is_oldest_first)
        shown->closing_micro = page->closing_micro;
    shown->sums = page->sums;
    shown->page_count++;
}

/* A name beside its number, where both are known. */
static const char *named(struct arena *arena, uint64_t id, struct text name)
{
    if (!id)
        return "-";
    if (!name.size)
        return output_number(arena, id);
    return arena_format(arena, "%s %s", output_number(arena, id), output_text(arena, name));
}

static int show_page(void *context, const struct api_page *page, struct text json,
                     struct error *error)
{
    (void)json;
    (void)error;
    struct shown *shown = context;
    struct arena *arena = shown->cli->arena;
    for (size_t i = 0; i < page->items.count; i++) {
        const struct api_entry *entry = (const struct api_entry *)page->items.items + i;
        TABLE_ROW(&shown->table, output_number(arena, entry->id),
                  output_instant(arena, entry->at_ms), output_text(arena, entry->kind),
                  output_credits(arena, entry->amount_micro), output_text(arena, entry->direction),
                  output_text(arena, entry->other_account_name),
                  named(arena, entry->job, entry->job_name),
                  named(arena, entry->machine, entry->machine_name),
                  entry->lease ? output_number(arena, entry->lease) : "-",
                  entry->withheld_micro ? output_credits(arena, entry->withheld_micro) : "-",
                  output_text(arena, entry->memo));
    }
    keep_balances(shown, (const struct api_entry_page *)page);
    return 0;
}

/* With entries left out, what is shown does not lead from one balance to the other. */
static bool has_balance(const struct statement_options *wanted)
{
    return !wanted->job && !wanted->machine && !wanted->kind;
}

static int show_table(struct cli *cli, const struct statement_options *wanted,
                      struct client *client, const char *path, struct error *error)
{
    struct shown shown = {.cli = cli, .is_oldest_first = wanted->is_oldest_first};
    if (cli_learn_unit(cli, client, error) < 0)
        return -1;
    table_init(&shown.table, cli->arena,
               (const char *const[]){">ENTRY", "AT", "KIND", output_unit(cli)->column, "WAY",
                                     "~/5WITH", "~JOB", "~/4MACHINE", ">/9LEASE", ">/6WITHHELD",
                                     "~/3MEMO", NULL});
    if (client_each_page(client, path, &api_entry_page_schema,
                         wanted->limit ? wanted->limit : LIMIT_TABLE, show_page, &shown, error) < 0)
        return -1;
    table_show(&shown.table, cli);
    const struct api_sums *sums = &shown.sums;
    if (has_balance(wanted))
        printf("Balance: %s before these, %s after, what is held included\n",
               output_amount(cli, shown.opening_micro),
               output_credits(cli->arena, shown.closing_micro));
    else if (!wanted->kind && (sums->held_micro || sums->posted_micro))
        printf("In all: held %s, posted %s, fee %s, voided %s\n",
               output_credits(cli->arena, sums->held_micro),
               output_credits(cli->arena, sums->posted_micro),
               output_credits(cli->arena, sums->fee_micro),
               output_credits(cli->arena, sums->voided_micro));
    return 0;
}

struct raw_statement {
    struct text items;
};
static const struct json_field raw_fields[] = {
    {"items", JSON_ANY, offsetof(struct raw_statement, items), .is_required = true,
     .size_max = JSON_SIZE_MAX},
};
static const struct json_schema raw_schema =
    JSON_SCHEMA_LENIENT("statement", raw_fields, struct raw_statement);

static int collect_json(void *context, const struct api_page *page, struct text json,
                        struct error *error)
{
    struct shown *shown = context;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct raw_statement raw = {0};
    if (json_read(arena, json, &raw_schema, &raw, error) < 0)
        return -1;
    /* "[...]" without its brackets. */
    const struct text inside = text_trim((struct text){raw.items.data + 1, raw.items.size - 2});
    if (inside.size && shown->json.size)
        buffer_append_byte(&shown->json, ',');
    buffer_append_text(&shown->json, inside);
    keep_balances(shown, (const struct api_entry_page *)page);
    return 0;
}

static int show_json(struct cli *cli, const struct statement_options *wanted, struct client *client,
                     const char *path, struct error *error)
{
    struct shown shown = {.cli = cli, .is_oldest_first = wanted->is_oldest_first};
    buffer_init(&shown.json, JSON_SIZE_MAX);
    int result =
        client_each_page(client, path, &api_entry_page_schema,
                         wanted->limit ? wanted->limit : LIMIT_TABLE, collect_json, &shown, error);
    if (result == 0)
        result = buffer_check(&shown.json, error);
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, SIZE_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &out);
    json_object_begin(&writer);
    if (has_balance(wanted)) {
        json_field_i64(&writer, "opening_microcredits", shown.opening_micro);
        json_field_i64(&writer, "closing_microcredits", shown.closing_micro);
    } else if (wanted->job || wanted->machine) {
        json_key(&writer, "sums");
        json_object_begin(&writer);
        json_field_i64(&writer, "held_microcredits", shown.sums.held_micro);
        json_field_i64(&writer, "posted_microcredits", shown.sums.posted_micro);
        json_field_i64(&writer, "fee_microcredits", shown.sums.fee_micro);
        json_field_i64(&writer, "voided_microcredits", shown.sums.voided_micro);
        json_object_end(&writer);
    }
    json_key(&writer, "items");
    json_raw(&writer, text_of(arena_format(cli->arena, "[" TEXT_FORMAT "]",
                                           TEXT_ARGS(buffer_text(&shown.json)))));
    json_object_end(&writer);
    if (result == 0)
        output_json(buffer_text(&out));
    buffer_done(&shown.json);
    return result;
}

/* ---- The command ----------------------------------------------------------------------------- */

static const char *write_path(struct cli *cli, const struct statement_options *wanted)
{
    const char *path = "/v1/account/entries?";
    if (wanted->job || wanted->machine)
        path = arena_format(cli->arena, "/v1/%s/%s/entries?", wanted->job ? "jobs" : "machines",
                            output_number(cli->arena, wanted->job ? wanted->job : wanted->machine));
    return arena_format(cli->arena, "%sorder=%s%s%s", path,
                        wanted->is_oldest_first ? "oldest" : "newest", wanted->kind ? "&kind=" : "",
                        wanted->kind ? client_escape(cli->arena, text_of(wanted->kind)) : "");
}

static int run_statement(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct statement_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    const char *path = write_path(cli, wanted);
    bool has_head = false;
    if (wanted->job && wanted->machine)
        return error_set(error, ERROR_INVALID, "give --job or --machine, not both");
    if (wanted->is_csv && cli->common.json)
        return error_set(error, ERROR_INVALID, "give --csv or --json, not both");
    if (cli_connect(cli, true, &client, error) < 0)
        return -1;
    if (wanted->is_csv)
        return client_each_page(client, path, &api_entry_page_schema,
                                wanted->limit ? wanted->limit : SIZE_MAX, print_csv_page, &has_head,
                                error);
    if (cli->common.json)
        return show_json(cli, wanted, client, path, error);
    return show_table(cli, wanted, client, path, error);
}

const struct command command_wallet_statement = {
    .name = "wallet statement",
    .summary = "Lists the account's entries, newest first.",
    .details =
        "Of the whole account with its balance before and after, unless --kind leaves entries "
        "out, or of one job or machine "
        "with what was held, posted, taken as fee and voided in all.",
    .example = "souk wallet statement --job 7",
    COMMAND_OPTIONS(statement_options, statement_options),
    .run = run_statement,
};
