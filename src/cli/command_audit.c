/* souk audit: proves a market's books from its first event. */
#include "base/json.h"
#include "cli/output.h"
#include "server/audit.h"

#include <inttypes.h>
#include <unistd.h>

struct audit_options {
    const char *data_dir;
};

static const struct option audit_options[] = {
    {"data", OPTION_PATH, offsetof(struct audit_options, data_dir), "DIR", "{data}/market",
     "The market's folder.", .environment = "SOUK_MARKET_DATA"},
};

static void print_json(const struct audit_report *report)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 1 << 16);
    struct json_writer writer;
    json_writer_init(&writer, &out);
    json_object_begin(&writer);
    json_field_bool(&writer, "is_sound", report->is_sound);
    json_field_u64(&writer, "events", report->event_count);
    json_field_u64(&writer, "accounts", report->account_count);
    json_field_u64(&writer, "jobs", report->job_count);
    json_field_u64(&writer, "leases", report->lease_count);
    json_field_u64(&writer, "entries", report->entry_count);
    json_field_u64(&writer, "prices", report->price_count);
    json_field_u64(&writer, "snapshot_event", report->snapshot_event);
    json_field_i64(&writer, "minted_microcredits", report->minted_microcredits);
    json_field_i64(&writer, "ledger_sum_microcredits", report->sum_microcredits);
    json_field_string(&writer, "head_hash", report->head_hash);
    json_key(&writer, "findings");
    json_array_begin(&writer);
    for (uint32_t i = 0; i < report->finding_count; i++)
        json_string(&writer, report->findings[i]);
    json_array_end(&writer);
    json_object_end(&writer);
    output_json(buffer_text(&out));
}

static void print_report(const struct cli *cli, const struct audit_report *report)
{
    printf("Events:   %" PRIu64 ", chain ends in %.16s\n", report->event_count, report->head_hash);
    printf("Accounts: %" PRIu64 "   jobs: %" PRIu64 "   leases: %" PRIu64 "   entries: %" PRIu64
           "\n",
           report->account_count, report->job_count, report->lease_count, report->entry_count);
    printf("Prices:   %" PRIu64 ", each computed again from what was wanted and lent\n",
           report->price_count);
    printf("Bills:    each price lock, quote and tick computed again from the prices\n");
    printf("Minted:   %s credits\n", output_credits(cli->arena, report->minted_microcredits));
    printf("Sum:      %s credits\n", output_credits(cli->arena, report->sum_microcredits));
    for (uint32_t i = 0; i < report->finding_count; i++)
        printf("Finding:  %s\n", report->findings[i]);
    printf("%s\n", report->is_sound ? "The books balance." : "The books are NOT sound.");
}

static int run_audit(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct audit_options *wanted = options;
    struct audit_report *report = arena_alloc(cli->arena, sizeof(*report));
    const char *database = arena_format(cli->arena, "%s/market.db", wanted->data_dir);
    if (access(database, F_OK) < 0)
        return error_set(error, ERROR_NOT_FOUND,
                         "there is no market in \"%.150s\"; give its folder with --data",
                         wanted->data_dir);
    if (audit_run(wanted->data_dir, report, error) < 0)
        return -1;
    if (cli->common.json)
        print_json(report);
    else
        print_report(cli, report);
    return report->is_sound ? 0 : CLI_EXIT_FAILED;
}

const struct command command_audit = {
    .name = "audit",
    .summary = "Verifies a market's ledger from its first entry.",
    .details = "Reads the market's folder only: the chain of hashes is checked, every event is "
               "replayed, every price and bill computed again, and the result compared with the "
               "snapshot and the tables. Exit code 1 means that something is wrong.",
    .example = "souk audit --data /var/lib/souk",
    COMMAND_OPTIONS(audit_options, audit_options),
    .run = run_audit,
};
