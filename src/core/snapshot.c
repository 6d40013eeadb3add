/*
 * Snapshot: the whole state as JSON lines, each {"RECORD":{...}}, in this order:
 *
 *     core      version, counters, settings, price, and how many lines follow
 *     prices, price_close, price_borrower, price_spread
 *     group
 *     account   with its parts in the ledger
 *     token, code, machine, offer, job, hold, lease
 *
 * each kind in the order of ids, the prices' by time or in the order they came. What follows from
 * other fields is not written: a machine's leased resources, a job's list of leases, every index.
 */
#include "core/snapshot_internal.h"

#include <inttypes.h>

enum { VERSION = 8 };

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
    int64_t grant_day;
    int64_t grant_day_micro;
    struct queue_clock queue;
    uint64_t line_count; /* after this one */
};

struct account_record {
    struct account account;
    struct ledger_account parts;
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
    SCHEMA_TIME("grant_day", struct core_record, grant_day),
    SCHEMA_MICRO("grant_day_micro", struct core_record, grant_day_micro),
    SCHEMA_RANGE("queue_tag", struct core_record, queue.now_tag, 0, QUEUE_TAG_MAX),
    SCHEMA_ID("line_count", struct core_record, line_count),
};
static const struct json_schema core_schema = JSON_SCHEMA("core", core_fields, struct core_record);

static const struct json_field group_fields[] = {
    SCHEMA_ID("id", struct group, id),
    SCHEMA_CHARS("name", struct group, name),
    SCHEMA_ID("owner", struct group, owner),
    SCHEMA_TIME("created_ms", struct group, created_ms),
};
static const struct json_schema group_schema = JSON_SCHEMA("group", group_fields, struct group);

static const struct json_field account_fields[] = {
    SCHEMA_ID("id", struct account_record, account.id),
    SCHEMA_CHARS("name", struct account_record, account.name),
    SCHEMA_TIME("opened_ms", struct account_record, account.opened_ms),
    SCHEMA_ID("address_block", struct account_record, account.address_block),
    SCHEMA_ID("group", struct account_record, account.group),
    SCHEMA_TIME("deleted_ms", struct account_record, account.deleted_ms),
    SCHEMA_CHARS("former_name", struct account_record, account.former_name),
    SCHEMA_CHARS("password", struct account_record, account.password),
    SCHEMA_CHARS("freeze_reason", struct account_record, account.freeze_reason),
    SCHEMA_CHOICE("grant", struct account_record, account.grant, schema_grant_states),
    SCHEMA_TIME("granted_ms", struct account_record, account.granted_ms),
    SCHEMA_MICRO("to_earn_micro", struct account_record, account.to_earn_micro),
    SCHEMA_TIME("seen_ms", struct account_record, account.seen_ms),
    SCHEMA_RANGE("dormant_steps", struct account_record, account.dormant_steps, 0, INT64_MAX),
    SCHEMA_RANGE("spent_mark_1_micro", struct account_record, account.spent_marks_micro[0], 0,
                 INT64_MAX),
    SCHEMA_RANGE("spent_mark_2_micro", struct account_record, account.spent_marks_micro[1], 0,
                 INT64_MAX),
    SCHEMA_RANGE("spent_mark_3_micro", struct account_record, account.spent_marks_micro[2], 0,
                 INT64_MAX),
    SCHEMA_RANGE("spent_mark_4_micro", struct account_record, account.spent_marks_micro[3], 0,
                 INT64_MAX),
    SCHEMA_RANGE("karma_spent_micro", struct account_record, account.karma_spent_micro, 0,
                 INT64_MAX),
    SCHEMA_TIME("dormant_step_ms", struct account_record, account.dormant_step_ms),
    SCHEMA_RANGE("queue_finish_tag", struct account_record, account.queue_finish_tag, 0,
                 QUEUE_TAG_MAX),
    SCHEMA_RANGE("granted_micro", struct account_record, parts.granted_micro, -LEDGER_SUPPLY_MAX,
                 LEDGER_SUPPLY_MAX),
    SCHEMA_MICRO("earned_micro", struct account_record, parts.earned_micro),
    SCHEMA_MICRO("withheld_micro", struct account_record, parts.withheld_micro),
    SCHEMA_MICRO("held_micro", struct account_record, parts.held_micro),
    SCHEMA_RANGE("earned_total_micro", struct account_record, parts.earned_total_micro, 0,
                 INT64_MAX),
    SCHEMA_RANGE("spent_total_micro", struct account_record, parts.spent_total_micro, 0, INT64_MAX),
    SCHEMA_BOOL("is_frozen", struct account_record, parts.is_frozen),
    SCHEMA_BOOL("is_closed", struct account_record, parts.is_closed),
};
static const struct json_schema account_schema =
    JSON_SCHEMA("account", account_fields, struct account_record);

static const struct json_field token_fields[] = {
    SCHEMA_ID("id", struct token, id),
    SCHEMA_ID("account", struct token, account),
    SCHEMA_HEX("hash", struct token, hash),
    SCHEMA_BITS("scopes", struct token, scopes, TOKEN_SCOPE_ALL),
    SCHEMA_TIME("expires_ms", struct token, expires_ms),
    SCHEMA_TIME("added_ms", struct token, added_ms),
    SCHEMA_BOOL("is_revoked", struct token, is_revoked),
    SCHEMA_BOOL("is_session", struct token, is_session),
    SCHEMA_CHARS("label", struct token, label),
};
static const struct json_schema token_schema = JSON_SCHEMA("token", token_fields, struct token);

static const struct json_field code_fields[] = {
    SCHEMA_ID("id", struct code, id),
    SCHEMA_CHOICE("kind", struct code, kind, schema_code_kinds),
    SCHEMA_ID("account", struct code, account),
    SCHEMA_HEX("hash", struct code, hash),
    SCHEMA_TIME("expires_ms", struct code, expires_ms),
    SCHEMA_ID("group", struct code, group),
};
static const struct json_schema code_schema = JSON_SCHEMA("code", code_fields, struct code);

#define COUNT(name_, member) SCHEMA_RANGE(name_, struct reputation, member, 0, INT64_MAX)
static const struct json_field reputation_fields[] = {
    COUNT("completed", completed),
    COUNT("lost", lost),
    COUNT("reclaimed", reclaimed),
    COUNT("failed", failed),
    COUNT("completed_milli", completed_milli),
    COUNT("lost_milli", lost_milli),
    COUNT("reclaimed_milli", reclaimed_milli),
    COUNT("leased_ms", leased_ms),
    COUNT("delivered_ms", delivered_ms),
    COUNT("ticks", ticks),
    COUNT("earned_micro", earned_micro),
};
#undef COUNT
static const struct json_schema reputation_schema =
    JSON_SCHEMA("reputation", reputation_fields, struct reputation);

static const struct json_field machine_fields[] = {
    SCHEMA_ID("id", struct machine, id),
    SCHEMA_ID("owner", struct machine, owner),
    SCHEMA_CHARS("name", struct machine, name),
    SCHEMA_HEX("public_key", struct machine, public_key),
    SCHEMA_ID("generation", struct machine, generation),
    SCHEMA_OBJECT("probe", struct machine, probe, schema_probe),
    SCHEMA_OBJECT("reputation", struct machine, reputation, reputation_schema),
    SCHEMA_CHOICE("state", struct machine, state, schema_machine_states),
    SCHEMA_TIME("enrolled_ms", struct machine, enrolled_ms),
    SCHEMA_TIME("state_changed_ms", struct machine, state_changed_ms),
    SCHEMA_TIME("counted_ms", struct machine, counted_ms),
};
static const struct json_schema machine_schema =
    JSON_SCHEMA("machine", machine_fields, struct machine);

/* An offer, which points to its machine. */
struct offer_record {
    uint64_t machine;
    struct offer offer;
};

static const struct json_field offer_fields[] = {
    SCHEMA_ID("id", struct offer_record, offer.id),
    SCHEMA_ID("machine", struct offer_record, machine),
    SCHEMA_OBJECT("terms", struct offer_record, offer.terms, schema_offer_terms),
    SCHEMA_BOOL("is_open", struct offer_record, offer.is_open),
    SCHEMA_TIME("turns_ms", struct offer_record, offer.turns_ms),
    SCHEMA_ID("last_lease", struct offer_record, offer.last_lease),
};
static const struct json_schema offer_schema =
    JSON_SCHEMA("offer", offer_fields, struct offer_record);

static const struct json_field job_fields[] = {
    SCHEMA_ID("id", struct job, id),
    SCHEMA_OBJECT("request", struct job, request, schema_job_request),
    SCHEMA_CHOICE("state", struct job, state, schema_job_states),
    SCHEMA_RANGE("queue_tag", struct job, turn.tag, 0, QUEUE_TAG_MAX),
    SCHEMA_RANGE("queue_finish_tag", struct job, turn.finish_tag, 0, QUEUE_TAG_MAX),
    SCHEMA_CHOICE("outcome", struct job, outcome, schema_job_states),
    SCHEMA_CHARS("reason", struct job, reason),
    SCHEMA_MICRO("quote_micro", struct job, quote_micro),
    SCHEMA_TIME("submitted_ms", struct job, submitted_ms),
    SCHEMA_TIME("start_ms", struct job, start_ms),
    SCHEMA_TIME("matched_ms", struct job, matched_ms),
    SCHEMA_TIME("started_ms", struct job, started_ms),
    SCHEMA_TIME("stopping_ms", struct job, stopping_ms),
    SCHEMA_TIME("ended_ms", struct job, ended_ms),
    SCHEMA_MICRO("posted_micro", struct job, posted_micro),
    SCHEMA_MICRO("cancel_fee_micro", struct job, cancel_fee_micro),
    SCHEMA_MICRO("fee_micro", struct job, fee_micro),
};
static const struct json_schema job_schema = JSON_SCHEMA("job", job_fields, struct job);

static const struct json_field hold_fields[] = {
    SCHEMA_ID("job", struct ledger_hold, job),
    SCHEMA_ID("account", struct ledger_hold, account),
    SCHEMA_MICRO("granted_micro", struct ledger_hold, granted_micro),
    SCHEMA_MICRO("earned_micro", struct ledger_hold, earned_micro),
};
static const struct json_schema hold_schema = JSON_SCHEMA("hold", hold_fields, struct ledger_hold);

static const struct json_field lease_fields[] = {
    SCHEMA_ID("id", struct lease, id),
    SCHEMA_ID("job", struct lease, job),
    SCHEMA_ID("machine", struct lease, machine),
    SCHEMA_ID("offer", struct lease, offer),
    SCHEMA_ID("payee", struct lease, payee),
    SCHEMA_ID("fence", struct lease, fence),
    SCHEMA_CHOICE("role", struct lease, role, schema_lease_roles),
    SCHEMA_ID("rank", struct lease, rank),
    SCHEMA_CHOICE("state", struct lease, state, schema_lease_states),
    SCHEMA_CHOICE("outcome", struct lease, outcome, schema_lease_outcomes),
    SCHEMA_CHARS("reason", struct lease, reason),
    SCHEMA_TIME("stop_wanted_ms", struct lease, stop_wanted_ms),
    SCHEMA_BOOL("is_reclaimed", struct lease, is_reclaimed),
    SCHEMA_RANGE("max_run_ms", struct lease, max_run_ms, 1, PRICE_RUN_MS_MAX),
    SCHEMA_OBJECT("resources", struct lease, resources, schema_resources),
    SCHEMA_OBJECT("units", struct lease, units, schema_units),
    SCHEMA_OBJECT("lock", struct lease, lock, schema_lock),
    SCHEMA_MICRO("quote_micro", struct lease, quote_micro),
    SCHEMA_TIME("offered_ms", struct lease, offered_ms),
    SCHEMA_TIME("start_by_ms", struct lease, start_by_ms),
    SCHEMA_TIME("started_ms", struct lease, started_ms),
    SCHEMA_TIME("ended_ms", struct lease, ended_ms),
    SCHEMA_ID("tick_index", struct lease, tick_index),
    SCHEMA_TIME("wall_ms", struct lease, wall_ms),
    SCHEMA_MICRO("posted_micro", struct lease, posted_micro),
    SCHEMA_MICRO("fee_micro", struct lease, fee_micro),
};
static const struct json_schema lease_schema = JSON_SCHEMA("lease", lease_fields, struct lease);

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

static void write_offers(struct buffer *out, const struct machine *machine)
{
    for (size_t i = 0; i < machine->offer_count; i++) {
        const struct offer_record record = {machine->id, *machine->offers[i]};
        snapshot_write_line(out, &offer_schema, &record);
    }
}

static uint64_t count_lines(const struct core *core)
{
    return snapshot_price_line_count(core) + core->groups.count + core->accounts.count +
           core->tokens.count + core->codes.count + core->machines.count + core->offers.count +
           core->jobs.count + ledger_hold_count(core->ledger) + core->leases.count;
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
                                       .grant_day = core->grant_day,
                                       .grant_day_micro = core->grant_day_micro,
                                       .queue = core->queue,
                                       .line_count = count_lines(core)};
    snapshot_write_line(out, &core_schema, &record);
    snapshot_write_prices(core, out);
    write_map(out, &group_schema, &core->groups);
    for (size_t i = 0; i < core->accounts.count; i++) {
        const struct account *account = core->accounts.entries[i].value;
        const struct account_record both = {*account, *ledger_account(core->ledger, account->id)};
        snapshot_write_line(out, &account_schema, &both);
    }
    write_map(out, &token_schema, &core->tokens);
    for (size_t i = 0; i < core->code_list.count; i++)
        snapshot_write_line(out, &code_schema, core->code_list.items[i].value);
    write_map(out, &machine_schema, &core->machines);
    for (size_t i = 0; i < core->machines.count; i++)
        write_offers(out, core->machines.entries[i].value);
    write_map(out, &job_schema, &core->jobs);
    for (size_t i = 0; i < core->jobs.count; i++) {
        const struct ledger_hold *hold = ledger_hold(core->ledger, core->jobs.entries[i].key);
        if (hold)
            snapshot_write_line(out, &hold_schema, hold);
    }
    write_map(out, &lease_schema, &core->leases);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int misfit(struct error *error, const char *noun, uint64_t id)
{
    return error_set(error, ERROR_CORRUPT, "%s %" PRIu64 " does not fit the records before it",
                     noun, id);
}

static void *allocate_copy(const void *record, size_t size)
{
    void *copy = malloc(size);
    ASSERT(copy);
    memcpy(copy, record, size);
    return copy;
}

/* Records of one kind come in the order of ids, none beyond the counter. */
static bool follows(const struct core *core, const struct map *map, uint64_t id)
{
    return id > 0 && id <= core->last_id &&
           (map->count == 0 || map->entries[map->count - 1].key < id);
}

static int restore_group(struct core *core, const void *record, struct error *error)
{
    const struct group *stored = record;
    const struct text name = text_of(stored->name);
    if (!follows(core, &core->groups, stored->id) || core_group_by_name(core, name) ||
        name_check(name, "group", error) < 0)
        return misfit(error, "group", stored->id);
    struct group *group = allocate_copy(stored, sizeof(*stored));
    group->member_count = 0; /* counted by the accounts that follow */
    map_put(&core->groups, group->id, group);
    map_put_text(&core->groups_by_name, name, group);
    return 0;
}

/* What the market's own accounts can have beside their credits. */
static void restore_own_account(struct account *own, const struct account *stored)
{
    memcpy(own->password, stored->password, sizeof(own->password));
    own->seen_ms = stored->seen_ms;
    own->group = stored->group;
    memcpy(own->spent_marks_micro, stored->spent_marks_micro, sizeof(own->spent_marks_micro));
    own->karma_spent_micro = stored->karma_spent_micro;
}

static int restore_account(struct core *core, const void *record, struct error *error)
{
    struct account_record both = *(const struct account_record *)record;
    both.parts.id = both.account.id;
    struct group *group = map_get(&core->groups, both.account.group);
    if (both.account.group && !group)
        return misfit(error, "account", both.account.id);
    if (group)
        group->member_count++;
    const struct text name =
        text_of(both.account.deleted_ms ? both.account.former_name : both.account.name);
    if (both.account.id == ACCOUNT_MINT || both.account.id == ACCOUNT_OPERATOR) {
        struct account *own = map_get(&core->accounts, both.account.id);
        ASSERT(own);
        if (!text_equal(name, text_of(own->name)) || both.account.opened_ms != 0)
            return misfit(error, "account", both.account.id);
        restore_own_account(own, &both.account);
        own->queue_finish_tag = both.account.queue_finish_tag;
        return ledger_restore_account(core->ledger, &both.parts, error);
    }
    if (!follows(core, &core->accounts, both.account.id) || core_account_by_name(core, name) ||
        name_check(name, "account", error) < 0)
        return misfit(error, "account", both.account.id);
    if (ledger_restore_account(core->ledger, &both.parts, error) < 0)
        return -1;
    struct account *account = allocate_copy(&both.account, sizeof(both.account));
    map_put(&core->accounts, account->id, account);
    map_put_text(&core->accounts_by_name, name, account);
    core_index_account(core, account);
    return 0;
}

static int restore_token(struct core *core, const void *record, struct error *error)
{
    const struct token *stored = record;
    if (!follows(core, &core->tokens, stored->id) || !core_account(core, stored->account) ||
        core_token_by_hash(core, stored->hash))
        return misfit(error, "token", stored->id);
    struct token *token = allocate_copy(stored, sizeof(*stored));
    map_put(&core->tokens, token->id, token);
    map_put_text(&core->tokens_by_hash, core_bytes(token->hash, sizeof(token->hash)), token);
    if (!token->is_revoked)
        core_attach_token(map_get(&core->accounts, token->account), token);
    return 0;
}

static int restore_code(struct core *core, const void *record, struct error *error)
{
    const struct code *stored = record;
    if (!follows(core, &core->codes, stored->id) || !core_account(core, stored->account) ||
        core_code_by_hash(core, stored->hash) ||
        (stored->kind == CODE_KIND_GROUP) != (core_group(core, stored->group) != NULL))
        return misfit(error, "code", stored->id);
    struct code *code = allocate_copy(stored, sizeof(*stored));
    map_put(&core->codes, code->id, code);
    map_put_text(&core->codes_by_hash, core_bytes(code->hash, sizeof(code->hash)), code);
    id_list_add(&core->code_list, code->id, code);
    ((struct account *)map_get(&core->accounts, code->account))->code_count++;
    return 0;
}

static int restore_machine(struct core *core, const void *record, struct error *error)
{
    const struct machine *stored = record;
    const struct text name = text_of(stored->name);
    if (!follows(core, &core->machines, stored->id) || !core_account(core, stored->owner) ||
        core_machine_by_name(core, name) || core_machine_by_key(core, stored->public_key) ||
        name_check(name, "machine", error) < 0 || probe_check(&stored->probe, error) < 0)
        return misfit(error, "machine", stored->id);
    struct machine *machine = allocate_copy(stored, sizeof(*stored));
    machine->is_barred = account_is_frozen(core_account(core, stored->owner));
    map_put(&core->machines, machine->id, machine);
    map_put_text(&core->machines_by_name, name, machine);
    map_put_text(&core->machines_by_key, core_bytes(machine->public_key, MACHINE_KEY_SIZE),
                 machine);
    core_index_machine(core, machine, core->time_ms);
    return 0;
}

static int restore_offer(struct core *core, const void *record, struct error *error)
{
    const struct offer_record *stored = record;
    struct machine *machine = map_get(&core->machines, stored->machine);
    if (!machine || stored->offer.id == 0 || stored->offer.id > core->last_id ||
        core_offer(core, stored->offer.id) || machine->offer_count == MACHINE_OFFERS_MAX ||
        offer_terms_check(&stored->offer.terms, &machine->probe, /* now_ms= */ 0, error) < 0)
        return misfit(error, "offer", stored->offer.id);
    struct offer *offer = allocate_copy(&stored->offer, sizeof(stored->offer));
    offer->machine = machine;
    offer->terms = offer_terms_copy(&stored->offer.terms);
    map_put(&core->offers, offer->id, offer);
    machine_add_offer(machine, offer);
    if (offer->turns_ms > 0)
        id_list_add(&core->turning, offer->id, offer);
    listing_update(&core->listing, offer, core->time_ms);
    return 0;
}

static int restore_job(struct core *core, const void *record, struct error *error)
{
    const struct job *stored = record;
    uint8_t key[CORE_JOB_KEY_SIZE];
    const bool has_key = core_job_key(&stored->request, key);
    if (!follows(core, &core->jobs, stored->id) || !core_account(core, stored->request.account) ||
        job_request_check(&stored->request, error) < 0 ||
        (has_key && map_get_text(&core->jobs_by_key, core_bytes(key, sizeof(key)))))
        return misfit(error, "job", stored->id);
    struct job *job = allocate_copy(stored, sizeof(*stored));
    char *spec = calloc(1, stored->request.spec.size + 1);
    ASSERT(spec);
    if (stored->request.spec.size)
        memcpy(spec, stored->request.spec.data, stored->request.spec.size);
    job->request.spec.data = spec;
    map_put(&core->jobs, job->id, job);
    if (has_key)
        map_put_text(&core->jobs_by_key, core_bytes(key, sizeof(key)), job);
    core_set_job_timers(core, job);
    core_index_job(core, job);
    return 0;
}

static int restore_hold(struct core *core, const void *record, struct error *error)
{
    return ledger_restore_hold(core->ledger, record, error);
}

static int restore_lease(struct core *core, const void *record, struct error *error)
{
    const struct lease *stored = record;
    struct job *job = map_get(&core->jobs, stored->job);
    struct machine *machine = map_get(&core->machines, stored->machine);
    if (!follows(core, &core->leases, stored->id) || !job || !machine || stored->fence == 0 ||
        stored->fence > core->last_fence || job->lease_count >= JOB_LEASES_MAX ||
        (stored->role == LEASE_ROLE_WORKER && stored->rank > job->worker_count))
        return misfit(error, "lease", stored->id);
    struct lease *lease = allocate_copy(stored, sizeof(*stored));
    map_put(&core->leases, lease->id, lease);
    core_attach_lease(core, job, machine, lease, core->time_ms);
    core_index_workers(core, job);
    return 0;
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
    {&group_schema, restore_group},
    {&account_schema, restore_account},
    {&token_schema, restore_token},
    {&code_schema, restore_code},
    {&machine_schema, restore_machine},
    {&offer_schema, restore_offer},
    {&job_schema, restore_job},
    {&hold_schema, restore_hold},
    {&lease_schema, restore_lease},
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
    core->grant_day = head->grant_day;
    core->grant_day_micro = head->grant_day_micro;
    core->queue = head->queue;
    ledger_restore_entry_count(core->ledger, head->entry_count);
    *out_line_count = head->line_count;
    return 0;
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
