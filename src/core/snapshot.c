/*
 * Snapshot: the whole state as JSON lines, each {"RECORD":{...}}, in this order:
 *
 *     core      version, counters, settings, price, and how many lines follow
 *     prices, price_close, price_borrower, price_spread
 *     group
 *     account   with its parts in the ledger
 *     token, code, machine, pair, offer, job, hold, lease
 *
 * each kind in the order of ids, the prices' by time or in the order they came. What follows from
 * other fields is not written: a machine's leased resources, a job's list of leases, every index.
 */
#include "core/snapshot_internal.h"

#include <inttypes.h>

enum { VERSION = 20 };

struct core_record {
    int64_t version;
    uint64_t sequence;
    int64_t time_ms;
    uint64_t last_id;
    uint64_t last_fence;
    uint64_t entry_count;
    struct core_settings settings;
    struct price_vector price;
    int64_t day;
    int64_t karma_hour;
    int64_t rules;
    int64_t grant_day;
    int64_t grant_day_micro;
    struct queue_clock queue;
    uint64_t line_count; /* after this one */
};

static const struct json_field core_fields[] = {
    SCHEMA_RANGE("version", struct core_record, version, VERSION, VERSION + 1),
    SCHEMA_ID("sequence", struct core_record, sequence),
    SCHEMA_TIME("time_ms", struct core_record, time_ms),
    SCHEMA_ID("last_id", struct core_record, last_id),
    SCHEMA_ID("last_fence", struct core_record, last_fence),
    SCHEMA_ID("entry_count", struct core_record, entry_count),
    SCHEMA_OBJECT("settings", struct core_record, settings, schema_settings),
    SCHEMA_OBJECT("price", struct core_record, price, schema_price),
    SCHEMA_TIME("day", struct core_record, day),
    SCHEMA_TIME("karma_hour", struct core_record, karma_hour),
    SCHEMA_RANGE("rules", struct core_record, rules, 0, CORE_RULES_NEWEST),
    SCHEMA_TIME("grant_day", struct core_record, grant_day),
    SCHEMA_MICRO("grant_day_micro", struct core_record, grant_day_micro),
    SCHEMA_RANGE("queue_tag", struct core_record, queue.now_tag, 0, QUEUE_TAG_MAX),
    SCHEMA_ID("line_count", struct core_record, line_count),
};
static const struct json_schema core_schema = JSON_SCHEMA("core", core_fields, struct core_record);

/* ---- Writing --------------------------------------------------------------------------------- */

void snapshot_write_line(struct buffer *out, const struct json_schema *schema, const void *record)
{
    struct json_writer writer;
    json_writer_init(&writer, out);
    json_object_begin(&writer);
    json_key(&writer, schema->name);
    json_write(&writer, schema, record);
    json_object_end(&writer);
    buffer_append_byte(out, '\n');
}

static void write_map(struct buffer *out, const struct json_schema *schema, const struct map *map)
{
    for (size_t i = 0; i < map->count; i++)
        snapshot_write_line(out, schema, map->entries[i].value);
}

static uint64_t count_lines(const struct core *core)
{
    uint64_t pair_count = 0;
    for (size_t i = 0; i < core->machines.count; i++)
        pair_count += snapshot_write_pairs(NULL, core->machines.entries[i].value);
    return pair_count + snapshot_price_line_count(core) + core->groups.count +
           core->accounts.count + core->tokens.count + core->codes.count + core->machines.count +
           core->offers.count + core->jobs.count + ledger_hold_count(core->ledger) +
           core->leases.count;
}

void core_snapshot_write(const struct core *core, struct buffer *out)
{
    const struct core_record record = {.version = VERSION,
                                       .sequence = core->sequence,
                                       .time_ms = core->time_ms,
                                       .last_id = core->last_id,
                                       .last_fence = core->last_fence,
                                       .entry_count = ledger_entry_count(core->ledger),
                                       .settings = core->settings,
                                       .price = core->price,
                                       .day = core->day,
                                       .karma_hour = core->karma_hour,
                                       .rules = core->rules,
                                       .grant_day = core->grant_day,
                                       .grant_day_micro = core->grant_day_micro,
                                       .queue = core->queue,
                                       .line_count = count_lines(core)};
    snapshot_write_line(out, &core_schema, &record);
    snapshot_write_prices(core, out);
    write_map(out, &snapshot_group_schema, &core->groups);
    snapshot_write_accounts(core, out);
    write_map(out, &snapshot_token_schema, &core->tokens);
    for (size_t i = 0; i < core->code_list.count; i++)
        snapshot_write_line(out, &snapshot_code_schema, core->code_list.items[i].value);
    write_map(out, &snapshot_machine_schema, &core->machines);
    for (size_t i = 0; i < core->machines.count; i++)
        snapshot_write_pairs(out, core->machines.entries[i].value);
    for (size_t i = 0; i < core->machines.count; i++)
        snapshot_write_offers(out, core->machines.entries[i].value);
    for (size_t i = 0; i < core->jobs.count; i++)
        snapshot_write_job(out, core->jobs.entries[i].value);
    for (size_t i = 0; i < core->jobs.count; i++) {
        const struct ledger_hold *hold = ledger_hold(core->ledger, core->jobs.entries[i].key);
        if (hold)
            snapshot_write_line(out, &snapshot_hold_schema, hold);
    }
    for (size_t i = 0; i < core->leases.count; i++)
        snapshot_write_lease(out, core->leases.entries[i].value);
}

/* ---- Reading --------------------------------------------------------------------------------- */

int snapshot_misfit(struct error *error, const char *noun, uint64_t id)
{
    return error_set(error, ERROR_CORRUPT, "%s %" PRIu64 " does not fit the records before it",
                     noun, id);
}

void *snapshot_copy(const void *record, size_t size)
{
    void *copy = malloc(size);
    ASSERT(copy);
    memcpy(copy, record, size);
    return copy;
}

bool snapshot_follows(const struct core *core, const struct map *map, uint64_t id)
{
    return id > 0 && id <= core->last_id &&
           (map->count == 0 || map->entries[map->count - 1].key < id);
}

struct record_row {
    const struct json_schema *schema;
    snapshot_restore *restore;
};

static const struct record_row record_rows[] = {
    {&snapshot_prices_schema, snapshot_restore_prices},
    {&snapshot_close_schema, snapshot_restore_close},
    {&snapshot_borrower_schema, snapshot_restore_borrower},
    {&snapshot_spread_schema, snapshot_restore_spread},
    {&snapshot_group_schema, snapshot_restore_group},
    {&snapshot_account_schema, snapshot_restore_account},
    {&snapshot_token_schema, snapshot_restore_token},
    {&snapshot_code_schema, snapshot_restore_code},
    {&snapshot_machine_schema, snapshot_restore_machine},
    {&snapshot_pair_schema, snapshot_restore_pair},
    {&snapshot_offer_schema, snapshot_restore_offer},
    {&snapshot_job_schema, snapshot_restore_job},
    {&snapshot_hold_schema, snapshot_restore_hold},
    {&snapshot_lease_schema, snapshot_restore_lease},
};

enum { RECORD_ROW_COUNT = sizeof(record_rows) / sizeof(*record_rows) };

/* Reads {"NAME":{...}} into a zeroed record of the arena. */
static int read_line(struct arena *arena, struct text line, const struct json_schema *schema,
                     void **out_record, struct error *error)
{
    const struct json_field field = {
        .name = schema->name, .kind = JSON_OBJECT, .is_required = true, .schema = schema};
    const struct json_schema wrapper = {
        .name = "snapshot", .fields = &field, .field_count = 1, .struct_size = schema->struct_size};
    void *record = arena_alloc(arena, schema->struct_size);
    if (json_read_written(arena, line, &wrapper, record, error) < 0) {
        error->code = ERROR_CORRUPT;
        return -1;
    }
    *out_record = record;
    return 0;
}

static bool names_record(struct text line, const char *name)
{
    const struct text start = TEXT("{\"");
    const struct text rest = {line.data + start.size, line.size - start.size};
    return text_starts_with(line, start) && text_starts_with(rest, text_of(name)) &&
           rest.size > strlen(name) && rest.data[strlen(name)] == '"';
}

/* Kinds of records come in the order of the table, so the search goes on from the last. */
static int restore_line(struct core *core, struct arena *arena, struct text line, size_t *row,
                        struct error *error)
{
    while (*row < RECORD_ROW_COUNT && !names_record(line, record_rows[*row].schema->name))
        (*row)++;
    if (*row == RECORD_ROW_COUNT)
        return error_set(error, ERROR_CORRUPT, "a record of an unknown kind, or out of order");
    void *record;
    if (read_line(arena, line, record_rows[*row].schema, &record, error) < 0)
        return -1;
    return record_rows[*row].restore(core, record, error);
}

static int restore_head(struct core *core, struct arena *arena, struct text line,
                        uint64_t *out_line_count, struct error *error)
{
    void *record;
    if (read_line(arena, line, &core_schema, &record, error) < 0)
        return -1;
    const struct core_record *head = record;
    if (head->version != VERSION)
        return error_set(error, ERROR_CORRUPT, "snapshot version %" PRId64 " is not %d",
                         head->version, VERSION);
    if (core_settings_check(&head->settings, error) < 0 || head->last_id < ACCOUNT_OPERATOR)
        return error_set(error, ERROR_CORRUPT, "the snapshot's settings or counters are wrong");
    core->sequence = head->sequence;
    core->time_ms = head->time_ms;
    core->last_id = head->last_id;
    core->last_fence = head->last_fence;
    core->settings = head->settings;
    core->price = core->listing.price = head->price;
    core->day = head->day;
    core->karma_hour = head->karma_hour;
    core->rules = head->rules;
    if (core->rules >= CORE_RULES_OWN_PAY)
        ledger_return_own(core->ledger);
    core->grant_day = head->grant_day;
    core->grant_day_micro = head->grant_day_micro;
    core->queue = head->queue;
    ledger_restore_entry_count(core->ledger, head->entry_count);
    *out_line_count = head->line_count;
    return 0;
}

bool core_snapshot_is_ours(struct text snapshot)
{
    char start[40];
    snprintf(start, sizeof(start), "{\"core\":{\"version\":%d,", VERSION);
    return text_starts_with(snapshot, text_of(start));
}

int core_snapshot_read(struct text snapshot, struct core **out_core, struct error *error)
{
    AUTO(core) struct core *core = core_new();
    AUTO(arena) struct arena *arena = arena_new(0);
    struct text line, rest;
    uint64_t line_count = 0, line_number = 0;
    size_t row = 0;
    if (!text_cut(snapshot, '\n', &line, &rest))
        return error_set(error, ERROR_CORRUPT, "the snapshot ends within its first line");
    if (restore_head(core, arena, line, &line_count, error) < 0)
        return error_wrap(error, "snapshot line 1");
    while (text_cut(rest, '\n', &line, &rest)) {
        arena_clear(arena);
        line_number++;
        if (restore_line(core, arena, line, &row, error) < 0)
            return error_wrap(error, "snapshot line %" PRIu64, line_number + 1);
    }
    if (rest.size > 0 || line_number != line_count)
        return error_set(error, ERROR_CORRUPT,
                         "the snapshot has %" PRIu64 " lines after the first, not %" PRIu64,
                         line_number, line_count);
    if (core_check(core, error) < 0)
        return error_wrap(error, "snapshot");
    *out_core = TAKE(core);
    return 0;
}
