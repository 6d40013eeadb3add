#include "server/audit.h"

#include "base/units.h"
#include "server/engine_load.h"
#include "server/projection.h"
#include "server/tables.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PAGE_ROWS = 1000, SUM_EVENTS = 1024 };

struct audit {
    struct audit_report *report;
    struct store_options options;
    struct store_reader *reader;
    struct core *core;
    struct projection *projection;
    char *offer_accounts;   /* text of the row that is compared */
    char *offer_labels;     /* the same */
    struct buffer snapshot; /* as stored */
};

__attribute__((format(printf, 2, 3))) static void finding(struct audit *audit, const char *format,
                                                          ...)
{
    struct audit_report *report = audit->report;
    if (report->finding_count++ >= AUDIT_FINDING_MAX)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->findings[report->finding_count - 1], AUDIT_FINDING_SIZE, format, arguments);
    va_end(arguments);
}

/* ---- The log --------------------------------------------------------------------------------- */

/* The newest snapshot must be, byte for byte, what the events up to it replay to. */
static void compare_snapshot(struct audit *audit)
{
    struct buffer replayed AUTO_BUFFER;
    buffer_init(&replayed, STORE_SNAPSHOT_BYTES_MAX);
    core_snapshot_write(audit->core, &replayed);
    if (!text_equal(buffer_text(&audit->snapshot), buffer_text(&replayed)))
        finding(audit, "the snapshot at event %" PRIu64 " is not what the events replay to",
                audit->report->snapshot_event);
}

static int count_event(void *context, const struct core *core, const struct event *event,
                       struct error *error)
{
    (void)error;
    struct audit *audit = context;
    struct audit_report *report = audit->report;
    report->event_count++;
    if (event->kind == EVENT_ENTRY_POSTED) {
        report->entry_count++;
        const enum ledger_entry_kind kind = event->entry_posted.kind;
        if (kind == LEDGER_ENTRY_GRANT || kind == LEDGER_ENTRY_FUND)
            report->minted_microcredits += event->entry_posted.amount_micro;
        if (kind == LEDGER_ENTRY_RECLAIM || kind == LEDGER_ENTRY_COST)
            report->minted_microcredits -= event->entry_posted.amount_micro;
    }
    /* Applying the event has computed them from what the events before it add up to. */
    if (event->kind == EVENT_SLOT_CLOSED)
        report->price_count += PRICE_RESOURCE_COUNT;
    if (event->sequence == report->snapshot_event)
        compare_snapshot(audit);
    /* Each entry is checked as it is applied; the sum over all accounts is walked now and then. */
    char sum[UNITS_TEXT_SIZE];
    if (event->sequence % SUM_EVENTS == 0 && core_ledger_sum_micro(core) != 0)
        finding(audit, "after event %" PRIu64 " the accounts sum to %s, not to nothing",
                event->sequence, units_format_credits(core_ledger_sum_micro(core), sum));
    return 0;
}

/* What comes after the events so far: the chain of hashes, what each event does. */
static int replay_on(struct audit *audit, struct error *error)
{
    struct error broken;
    if (engine_replay(audit->reader, audit->report->event_count + 1, audit->core, count_event,
                      audit, &broken) == 0)
        return 0;
    if (broken.code != ERROR_CORRUPT) {
        *error = broken;
        return -1;
    }
    finding(audit, "%s", broken.message);
    return 0;
}

/* One pass from the first event, with the snapshot on the way. */
static int replay(struct audit *audit, struct error *error)
{
    struct store_head head;
    if (store_snapshot_load(audit->reader, &head, &audit->snapshot, error) < 0)
        return -1;
    /* One of another version says nothing to this program, which passes it over. */
    audit->report->snapshot_event =
        core_snapshot_is_ours(buffer_text(&audit->snapshot)) ? head.sequence : 0;
    return replay_on(audit, error);
}

/* ---- The tables ------------------------------------------------------------------------------ */

static bool value_equal(const struct store_value *left, const struct store_value *right)
{
    if (left->type != right->type || left->is_null != right->is_null)
        return false;
    if (left->type == STORE_INTEGER)
        return left->integer == right->integer;
    if (left->type == STORE_REAL)
        return left->real == right->real;
    return text_equal(left->bytes, right->bytes);
}

/* Fills `out` with the row the state calls for; false when the state has no such thing. */
typedef bool expect_function(const struct audit *audit, uint64_t id, struct store_value *out);

struct table_check {
    struct audit *audit;
    const struct store_table *table;
    expect_function *expect;
    uint64_t row_count;
};

/* Amounts are for people, in credits. */
static void different_number(const struct table_check *check, uint64_t id, size_t column,
                             int64_t found, int64_t expected)
{
    const char *name = check->table->columns[column].name;
    const struct text ending = TEXT("_micro");
    const size_t size = strlen(name);
    char shown[UNITS_TEXT_SIZE], right[UNITS_TEXT_SIZE];
    if (size > ending.size && !strcmp(name + size - ending.size, ending.data))
        finding(check->audit, "table %s, row %" PRIu64 ": %.*s is %s, by the events %s",
                check->table->name, id, (int)(size - ending.size), name,
                units_format_credits(found, shown), units_format_credits(expected, right));
    else
        finding(check->audit,
                "table %s, row %" PRIu64 ": %s is %" PRId64 ", by the events %" PRId64,
                check->table->name, id, name, found, expected);
}

static int check_row(const struct store_row *row, void *context, struct error *error)
{
    (void)error;
    struct table_check *check = context;
    struct store_value expected[STORE_COLUMN_MAX];
    const uint64_t id = (uint64_t)row->values[0].integer;
    check->row_count++;
    if (!check->expect(check->audit, id, expected)) {
        finding(check->audit, "table %s has a row %" PRIu64 " that no event made",
                check->table->name, id);
        return 0;
    }
    for (size_t i = 0; i < check->table->column_count; i++) {
        if (value_equal(&row->values[i], &expected[i]))
            continue;
        if (row->values[i].type == STORE_INTEGER)
            different_number(check, id, i, row->values[i].integer, expected[i].integer);
        else
            finding(check->audit, "table %s, row %" PRIu64 ": %s differs from the events",
                    check->table->name, id, check->table->columns[i].name);
    }
    return 0;
}

static int check_table(struct audit *audit, enum table table, expect_function *expect,
                       uint64_t expected_count, struct error *error)
{
    struct table_check check = {.audit = audit, .table = &tables[table], .expect = expect};
    struct buffer cursor AUTO_BUFFER;
    struct buffer next AUTO_BUFFER;
    buffer_init(&cursor, 4096);
    buffer_init(&next, 4096);
    do {
        const struct store_query query = {
            .table = &tables[table], .limit = PAGE_ROWS, .after = buffer_text(&cursor)};
        buffer_clear(&next);
        if (store_read_rows(audit->reader, &query, check_row, &check, &next, error) < 0)
            return -1;
        buffer_clear(&cursor);
        buffer_append_text(&cursor, buffer_text(&next));
    } while (cursor.size);
    if (check.row_count != expected_count)
        finding(audit, "table %s has %" PRIu64 " rows, by the events %" PRIu64, tables[table].name,
                check.row_count, expected_count);
    return 0;
}

static bool expect_account(const struct audit *audit, uint64_t id, struct store_value *out)
{
    const struct account *account = core_account(audit->core, id);
    if (account)
        projection_account_row(audit->core, account, out);
    return account != NULL;
}

static bool expect_machine(const struct audit *audit, uint64_t id, struct store_value *out)
{
    const struct machine *machine = core_machine(audit->core, id);
    if (machine)
        projection_machine_row(audit->projection, machine, audit->offer_labels, out);
    return machine != NULL;
}

static bool expect_offer(const struct audit *audit, uint64_t id, struct store_value *out)
{
    const struct offer *offer = core_offer(audit->core, id);
    if (offer)
        projection_offer_row(offer, audit->offer_accounts, out);
    return offer != NULL;
}

static bool expect_job(const struct audit *audit, uint64_t id, struct store_value *out)
{
    const struct job *job = core_job(audit->core, id);
    if (job)
        projection_job_row(audit->core, job, out);
    return job != NULL;
}

static bool expect_lease(const struct audit *audit, uint64_t id, struct store_value *out)
{
    const struct lease *lease = core_lease(audit->core, id);
    if (lease)
        projection_lease_row(audit->core, lease, out);
    return lease != NULL;
}

static bool expect_token(const struct audit *audit, uint64_t id, struct store_value *out)
{
    const struct token *token = core_token(audit->core, id);
    if (token)
        projection_token_row(token, out);
    return token != NULL;
}

static int compare_tables(struct audit *audit, struct error *error)
{
    const struct core *core = audit->core;
    projection_reset(audit->projection, core);
    /* A store without events has no rows, not even of the two accounts every market has. */
    const uint64_t accounts = audit->report->event_count ? core_account_count(core) : 0;
    if (check_table(audit, TABLE_ACCOUNTS, expect_account, accounts, error) < 0 ||
        check_table(audit, TABLE_TOKENS, expect_token, core_token_count(core), error) < 0 ||
        check_table(audit, TABLE_MACHINES, expect_machine, core_machine_count(core), error) < 0 ||
        check_table(audit, TABLE_OFFERS, expect_offer, core_offer_count(core), error) < 0 ||
        check_table(audit, TABLE_JOBS, expect_job, core_job_count(core), error) < 0 ||
        check_table(audit, TABLE_LEASES, expect_lease, core_lease_count(core), error) < 0)
        return -1;
    return 0;
}

/* In one state of the store: a market that runs has gone on since the long pass. */
static int conclude(struct audit *audit, struct error *error)
{
    struct audit_report *report = audit->report;
    struct store_head head;
    struct error broken;
    char sum[UNITS_TEXT_SIZE];
    if ((!report->finding_count && replay_on(audit, error) < 0) ||
        store_read_head(audit->reader, &head, error) < 0)
        return -1;
    text_hex_encode(head.hash, sizeof(head.hash), report->head_hash);
    if (core_check(audit->core, &broken) < 0)
        finding(audit, "the replayed state breaks its rules: %s", broken.message);
    report->sum_microcredits = core_ledger_sum_micro(audit->core);
    if (report->sum_microcredits)
        finding(audit, "the accounts sum to %s, not to nothing",
                units_format_credits(report->sum_microcredits, sum));
    /* Tables of a log that does not replay cannot agree with it. */
    return report->finding_count ? 0 : compare_tables(audit, error);
}

static int run(struct audit *audit, struct error *error)
{
    struct audit_report *report = audit->report;
    if (store_reader_open(&audit->options, &audit->reader, error) < 0 || replay(audit, error) < 0 ||
        store_reader_begin(audit->reader, error) < 0)
        return -1;
    const int result = conclude(audit, error);
    store_reader_end(audit->reader);
    if (result < 0)
        return -1;
    report->account_count = core_account_count(audit->core);
    report->job_count = core_job_count(audit->core);
    report->lease_count = core_lease_count(audit->core);
    report->is_sound = !report->finding_count;
    if (report->finding_count > AUDIT_FINDING_MAX)
        report->finding_count = AUDIT_FINDING_MAX;
    return 0;
}

int audit_run(const char *data_dir, struct audit_report *out_report, struct error *error)
{
    char path[4096];
    const int size = snprintf(path, sizeof(path), "%s/market.db", data_dir);
    if (size < 0 || size >= (int)sizeof(path))
        return error_set(error, ERROR_INVALID, "the path of the data folder is too long");
    memset(out_report, 0, sizeof(*out_report));
    AUTO(core) struct core *core = core_new();
    AUTO(projection) struct projection *projection = projection_new();
    char offer_accounts[PROJECTION_ACCOUNTS_SIZE];
    char offer_labels[PROJECTION_LABELS_SIZE];
    struct audit audit = {
        .offer_accounts = offer_accounts,
        .offer_labels = offer_labels,
        .report = out_report,
        .options = {.location = path, .schema = &tables_schema},
        .core = core,
        .projection = projection,
    };
    buffer_init(&audit.snapshot, STORE_SNAPSHOT_BYTES_MAX);
    const int result = run(&audit, error);
    buffer_done(&audit.snapshot);
    store_reader_free(audit.reader);
    return result;
}
