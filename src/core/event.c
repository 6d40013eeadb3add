/*
 * To add a kind of event: its enumerator and struct in event.h, its fields, its row in the table
 * below, its apply function in apply.c, and a line in event_test's list of examples.
 */
#include "core/event.h"

#include "core/core_internal.h"
#include "core/schema.h"

enum { EVENT_BYTES_MAX = 1 << 20 };

static const char *const kind_names[EVENT_KIND_COUNT + 1] = {
    [EVENT_SETTINGS_CHANGED] = "settings_changed",
    [EVENT_ACCOUNT_OPENED] = "account_opened",
    [EVENT_PASSWORD_SET] = "password_set",
    [EVENT_ACCOUNT_FROZEN] = "account_frozen",
    [EVENT_ACCOUNT_UNFROZEN] = "account_unfrozen",
    [EVENT_ACCOUNT_DELETED] = "account_deleted",
    [EVENT_ACCOUNT_SEEN] = "account_seen",
    [EVENT_GROUP_CREATED] = "group_created",
    [EVENT_GROUP_JOINED] = "group_joined",
    [EVENT_GROUP_LEFT] = "group_left",
    [EVENT_GRANT_GIVEN] = "grant_given",
    [EVENT_GRANT_RELEASED] = "grant_released",
    [EVENT_DORMANCY_ADVANCED] = "dormancy_advanced",
    [EVENT_KARMA_SHARED] = "karma_shared",
    [EVENT_DAY_BEGAN] = "day_began",
    [EVENT_RULES_CHANGED] = "rules_changed",
    [EVENT_COST_BILLED] = "cost_billed",
    [EVENT_TOKEN_ADDED] = "token_added",
    [EVENT_TOKEN_REVOKED] = "token_revoked",
    [EVENT_CODE_ADDED] = "code_added",
    [EVENT_CODE_REMOVED] = "code_removed",
    [EVENT_MACHINE_ENROLLED] = "machine_enrolled",
    [EVENT_MACHINE_PROBED] = "machine_probed",
    [EVENT_PAIR_MEASURED] = "pair_measured",
    [EVENT_MACHINE_STATE_CHANGED] = "machine_state_changed",
    [EVENT_MACHINE_YIELDED] = "machine_yielded",
    [EVENT_MACHINE_PROVEN] = "machine_proven",
    [EVENT_OFFER_SET] = "offer_set",
    [EVENT_OFFER_PAUSED] = "offer_paused",
    [EVENT_OFFER_RENEWED] = "offer_renewed",
    [EVENT_OFFER_TURNED] = "offer_turned",
    [EVENT_OFFER_WITHDRAWN] = "offer_withdrawn",
    [EVENT_JOB_SUBMITTED] = "job_submitted",
    [EVENT_JOB_DUE] = "job_due",
    [EVENT_JOB_WAITS] = "job_waits",
    [EVENT_JOB_NOTED] = "job_noted",
    [EVENT_JOB_STATE_CHANGED] = "job_state_changed",
    [EVENT_LEASE_OFFERED] = "lease_offered",
    [EVENT_LEASE_STARTED] = "lease_started",
    [EVENT_LEASE_TICKED] = "lease_ticked",
    [EVENT_LEASE_STOP_WANTED] = "lease_stop_wanted",
    [EVENT_LEASE_ENDED] = "lease_ended",
    [EVENT_LEASE_PROMOTED] = "lease_promoted",
    [EVENT_JOB_EXTENDED] = "job_extended",
    [EVENT_JOB_RESIZED] = "job_resized",
    [EVENT_LEASE_EXTENDED] = "lease_extended",
    [EVENT_LEASE_RENEWED] = "lease_renewed",
    [EVENT_BOOKING_FORFEITED] = "booking_forfeited",
    [EVENT_ENTRY_POSTED] = "entry_posted",
    [EVENT_SLOT_CLOSED] = "slot_closed",
};

#define ID(name, member)            SCHEMA_ID(name, struct event, member)
#define TIME(name, member)          SCHEMA_TIME(name, struct event, member)
#define MICRO(name, member)         SCHEMA_MICRO(name, struct event, member)
#define ID_OR_NONE(name, member)    SCHEMA_ID_OR_NONE(name, struct event, member)
#define MICRO_OR_NONE(name, member) SCHEMA_MICRO_OR_NONE(name, struct event, member)
#define BOOL(name, member)          SCHEMA_BOOL(name, struct event, member)
#define CHARS(name, member)         SCHEMA_CHARS(name, struct event, member)
#define HEX(name, member)           SCHEMA_HEX(name, struct event, member)
#define CHOICE(name, member, names) SCHEMA_CHOICE(name, struct event, member, names)
#define OBJECT(name, member, which) SCHEMA_OBJECT(name, struct event, member, which)

/* What every event begins with. "kind" is first: the decoder finds the table by it. */
#define HEADER CHOICE("kind", kind, kind_names), ID("sequence", sequence), TIME("time_ms", time_ms)

static const struct json_field settings_changed_fields[] = {
    HEADER,
    OBJECT("settings", settings_changed, schema_settings),
};
static const struct json_field account_opened_fields[] = {
    HEADER,
    ID("account", account_opened.account),
    CHARS("name", account_opened.name),
    ID("address_block", account_opened.address_block),
    BOOL("is_grant_due", account_opened.is_grant_due),
};
static const struct json_field password_set_fields[] = {
    HEADER,
    ID("account", password_set.account),
    CHARS("password", password_set.password),
};
static const struct json_field account_frozen_fields[] = {
    HEADER,
    ID("account", account_frozen.account),
    CHARS("reason", account_frozen.reason),
};
static const struct json_field account_unfrozen_fields[] = {
    HEADER,
    ID("account", account_unfrozen.account),
};
static const struct json_field account_deleted_fields[] = {
    HEADER,
    ID("account", account_deleted.account),
};
static const struct json_field account_seen_fields[] = {
    HEADER,
    ID("account", account_seen.account),
};
static const struct json_field group_created_fields[] = {
    HEADER,
    ID("group", group_created.group),
    ID("account", group_created.account),
    CHARS("name", group_created.name),
};
static const struct json_field group_joined_fields[] = {
    HEADER,
    ID("group", group_joined.group),
    ID("account", group_joined.account),
};
static const struct json_field group_left_fields[] = {
    HEADER,
    ID("group", group_left.group),
    ID("account", group_left.account),
    ID("owner", group_left.owner),
};
static const struct json_field grant_given_fields[] = {
    HEADER,
    ID("account", grant_given.account),
    MICRO("amount_micro", grant_given.amount_micro),
    MICRO("to_earn_micro", grant_given.to_earn_micro),
    BOOL("is_invited", grant_given.is_invited),
};
static const struct json_field grant_released_fields[] = {
    HEADER,
    ID("account", grant_released.account),
    ID("lease", grant_released.lease),
    MICRO("amount_micro", grant_released.amount_micro),
};
static const struct json_field dormancy_advanced_fields[] = {
    HEADER,
    ID("account", dormancy_advanced.account),
    SCHEMA_RANGE("step", struct event, dormancy_advanced.step, 1, INT64_MAX),
    MICRO("amount_micro", dormancy_advanced.amount_micro),
};
static const struct json_field karma_shared_fields[] = {
    HEADER,
    SCHEMA_RANGE("hour", struct event, karma_shared.hour, 0, SCHEMA_TIME_MS_MAX),
    MICRO("share_micro", karma_shared.share_micro),
    SCHEMA_RANGE("member_count", struct event, karma_shared.member_count, 0, INT64_MAX),
};
static const struct json_field day_began_fields[] = {
    HEADER,
    SCHEMA_RANGE("day", struct event, day_began.day, 0, SCHEMA_TIME_MS_MAX),
};
static const struct json_field cost_billed_fields[] = {
    HEADER,
    ID("account", cost_billed.account),
    ID_OR_NONE("machine", cost_billed.machine),
    MICRO("usd_micro", cost_billed.usd_micro),
    MICRO("amount_micro", cost_billed.amount_micro),
    CHARS("bill", cost_billed.bill),
};
static const struct json_field rules_changed_fields[] = {
    HEADER,
    SCHEMA_RANGE("rules", struct event, rules_changed.rules, 1, CORE_RULES_NEWEST + 1),
};
static const struct json_field token_added_fields[] = {
    HEADER,
    ID("token", token_added.token),
    ID("account", token_added.account),
    HEX("hash", token_added.hash),
    SCHEMA_BITS("scopes", struct event, token_added.scopes, TOKEN_SCOPE_ANY),
    TIME("expires_ms", token_added.expires_ms),
    CHARS("label", token_added.label),
    BOOL("is_session", token_added.is_session),
};
static const struct json_field token_revoked_fields[] = {
    HEADER,
    ID("token", token_revoked.token),
};
static const struct json_field code_added_fields[] = {
    HEADER,
    ID("code", code_added.code),
    CHOICE("code_kind", code_added.code_kind, schema_code_kinds),
    ID("account", code_added.account),
    HEX("hash", code_added.hash),
    TIME("expires_ms", code_added.expires_ms),
    ID("group", code_added.group),
};
static const struct json_field code_removed_fields[] = {
    HEADER,
    ID("code", code_removed.code),
    BOOL("is_used", code_removed.is_used),
};
static const struct json_field machine_enrolled_fields[] = {
    HEADER,
    ID("machine", machine_enrolled.machine),
    ID("owner", machine_enrolled.owner),
    CHARS("name", machine_enrolled.name),
    HEX("public_key", machine_enrolled.public_key),
    ID("generation", machine_enrolled.generation),
    OBJECT("probe", machine_enrolled.probe, schema_probe),
};
static const struct json_field machine_probed_fields[] = {
    HEADER,
    ID("machine", machine_probed.machine),
    OBJECT("probe", machine_probed.probe, schema_probe),
};
static const struct json_field pair_measured_fields[] = {
    HEADER,
    ID("low", pair_measured.low),
    ID("high", pair_measured.high),
    SCHEMA_RANGE("rtt_us", struct event, pair_measured.rtt_us, 1, MACHINE_RTT_US_MAX),
};
static const struct json_field machine_state_changed_fields[] = {
    HEADER,
    ID("machine", machine_state_changed.machine),
    CHOICE("state", machine_state_changed.state, schema_machine_states),
};
static const struct json_field machine_yielded_fields[] = {
    HEADER,
    ID("machine", machine_yielded.machine),
    CHOICE("yield", machine_yielded.yield, schema_machine_yields),
};
static const struct json_field machine_proven_fields[] = {
    HEADER,
    ID("machine", machine_proven.machine),
    ID("owner", machine_proven.owner),
    MICRO("amount_micro", machine_proven.amount_micro),
};
static const struct json_field offer_set_fields[] = {
    HEADER,
    ID("offer", offer_set.offer),
    ID("machine", offer_set.machine),
    OBJECT("terms", offer_set.terms, schema_offer_terms),
};
static const struct json_field offer_paused_fields[] = {
    HEADER,
    ID("offer", offer_paused.offer),
    ID("machine", offer_paused.machine),
    TIME("until_ms", offer_paused.until_ms),
};
static const struct json_field offer_renewed_fields[] = {
    HEADER,
    ID("offer", offer_renewed.offer),
    ID("machine", offer_renewed.machine),
    SCHEMA_ARRAY("spans", struct event, offer_renewed.spans, schema_span, WINDOW_SPANS_MAX),
};
static const struct json_field offer_turned_fields[] = {
    HEADER,
    ID("offer", offer_turned.offer),
    ID("machine", offer_turned.machine),
    BOOL("is_open", offer_turned.is_open),
};
static const struct json_field offer_withdrawn_fields[] = {
    HEADER,
    ID("offer", offer_withdrawn.offer),
    ID("machine", offer_withdrawn.machine),
};
static const struct json_field job_submitted_fields[] = {
    HEADER,
    ID("job", job_submitted.job),
    OBJECT("request", job_submitted.request, schema_job_request),
    TIME("start_ms", job_submitted.start_ms),
    MICRO("quote_micro", job_submitted.quote_micro),
};
static const struct json_field job_due_fields[] = {
    HEADER,
    ID("job", job_due.job),
};
static const struct json_field job_waits_fields[] = {
    HEADER,
    ID("job", job_waits.job),
    BOOL("is_short", job_waits.is_short),
    BOOL("is_unhurried", job_waits.is_unhurried),
};
static const struct json_field job_noted_fields[] = {
    HEADER,
    ID("job", job_noted.job),
    CHARS("reason", job_noted.reason),
};
static const struct json_field job_state_changed_fields[] = {
    HEADER,
    ID("job", job_state_changed.job),
    CHOICE("state", job_state_changed.state, schema_job_states),
    CHOICE("outcome", job_state_changed.outcome, schema_job_states),
    CHARS("reason", job_state_changed.reason),
};
static const struct json_field lease_offered_fields[] = {
    HEADER,
    ID("lease", lease_offered.lease),
    ID("job", lease_offered.job),
    ID("machine", lease_offered.machine),
    ID("offer", lease_offered.offer),
    ID("payee", lease_offered.payee),
    ID("fence", lease_offered.fence),
    CHOICE("role", lease_offered.role, schema_lease_roles),
    ID("rank", lease_offered.rank),
    OBJECT("resources", lease_offered.resources, schema_resources),
    OBJECT("units", lease_offered.units, schema_units),
    OBJECT("lock", lease_offered.lock, schema_lock),
    SCHEMA_RANGE("max_run_ms", struct event, lease_offered.max_run_ms, 1, PRICE_RUN_MS_MAX),
    SCHEMA_TIME("start_by_ms", struct event, lease_offered.start_by_ms),
    MICRO("quote_micro", lease_offered.quote_micro),
};
static const struct json_field lease_started_fields[] = {
    HEADER,
    ID("lease", lease_started.lease),
    ID("fence", lease_started.fence),
};
static const struct json_field lease_ticked_fields[] = {
    HEADER,
    ID("lease", lease_ticked.lease),
    ID("job", lease_ticked.job),
    ID("fence", lease_ticked.fence),
    ID("tick_index", lease_ticked.tick_index),
    TIME("wall_ms", lease_ticked.wall_ms),
    MICRO("bill_micro", lease_ticked.bill_micro),
    MICRO("amount_micro", lease_ticked.amount_micro),
    MICRO("fee_micro", lease_ticked.fee_micro),
};
static const struct json_field lease_stop_wanted_fields[] = {
    HEADER,
    ID("lease", lease_stop_wanted.lease),
    ID("job", lease_stop_wanted.job),
    ID("machine", lease_stop_wanted.machine),
    ID("fence", lease_stop_wanted.fence),
    TIME("grace_ms", lease_stop_wanted.grace_ms),
    BOOL("is_reclaim", lease_stop_wanted.is_reclaim),
    CHARS("reason", lease_stop_wanted.reason),
    SCHEMA_FLAG("is_surplus", struct event, lease_stop_wanted.is_surplus),
};
static const struct json_field lease_promoted_fields[] = {
    HEADER,
    ID("lease", lease_promoted.lease),
    ID("job", lease_promoted.job),
    ID("fence", lease_promoted.fence),
};
static const struct json_field job_extended_fields[] = {
    HEADER,
    ID("job", job_extended.job),
    SCHEMA_RANGE("max_run_ms", struct event, job_extended.max_run_ms, 1, PRICE_RUN_MS_MAX),
};
static const struct json_field job_resized_fields[] = {
    HEADER,
    ID("job", job_resized.job),
    SCHEMA_RANGE("workers", struct event, job_resized.workers, 1, JOB_NODES_MAX),
};
static const struct json_field lease_extended_fields[] = {
    HEADER,
    ID("lease", lease_extended.lease),
    ID("job", lease_extended.job),
    ID("machine", lease_extended.machine),
    ID("fence", lease_extended.fence),
    SCHEMA_RANGE("max_run_ms", struct event, lease_extended.max_run_ms, 1, PRICE_RUN_MS_MAX),
    OBJECT("lock", lease_extended.lock, schema_lock),
    MICRO("quote_micro", lease_extended.quote_micro),
};
static const struct json_field lease_renewed_fields[] = {
    HEADER,
    ID("lease", lease_renewed.lease),
    ID("job", lease_renewed.job),
    ID("machine", lease_renewed.machine),
    ID("fence", lease_renewed.fence),
    OBJECT("lock", lease_renewed.lock, schema_lock),
    MICRO("quote_micro", lease_renewed.quote_micro),
};
static const struct json_field lease_ended_fields[] = {
    HEADER,
    ID("lease", lease_ended.lease),
    ID("job", lease_ended.job),
    ID("machine", lease_ended.machine),
    ID("fence", lease_ended.fence),
    CHOICE("outcome", lease_ended.outcome, schema_lease_outcomes),
    CHARS("reason", lease_ended.reason),
    SCHEMA_OR_NONE("exit_code", struct event, lease_ended.exit_code, LEASE_EXIT_CODE_MAX),
};
static const struct json_field booking_forfeited_fields[] = {
    HEADER,
    ID("job", booking_forfeited.job),
    ID_OR_NONE("machine", booking_forfeited.machine),
    MICRO_OR_NONE("amount_micro", booking_forfeited.amount_micro),
};
static const struct json_field entry_posted_fields[] = {
    HEADER,
    ID("entry", entry_posted.sequence),
    CHOICE("entry_kind", entry_posted.kind, schema_entry_kinds),
    ID("from_account", entry_posted.from_account),
    ID("to_account", entry_posted.to_account),
    MICRO("amount_micro", entry_posted.amount_micro),
    MICRO_OR_NONE("granted_micro", entry_posted.granted_micro),
    MICRO_OR_NONE("withheld_micro", entry_posted.withheld_micro),
    ID_OR_NONE("job", entry_posted.job),
    ID_OR_NONE("lease", entry_posted.lease),
    CHARS("memo", entry_posted.memo),
};

#define SLOT(name, member) SCHEMA_RANGE(name, struct event, member, SLOT_INDEX_MIN, SLOT_INDEX_MAX)
static const struct json_field slot_closed_fields[] = {
    HEADER,
    SLOT("slot", slot_closed.slot),
    SLOT("next_slot", slot_closed.next_slot),
    OBJECT("core_inputs", slot_closed.inputs[PRICE_CORE], schema_price_inputs),
    OBJECT("ram_inputs", slot_closed.inputs[PRICE_RAM], schema_price_inputs),
    OBJECT("gpu_inputs", slot_closed.inputs[PRICE_GPU], schema_price_inputs),
    OBJECT("disk_inputs", slot_closed.inputs[PRICE_DISK], schema_price_inputs),
    OBJECT("core_curve", slot_closed.board.curves[PRICE_CORE], schema_price_curve),
    OBJECT("ram_curve", slot_closed.board.curves[PRICE_RAM], schema_price_curve),
    OBJECT("gpu_curve", slot_closed.board.curves[PRICE_GPU], schema_price_curve),
    OBJECT("disk_curve", slot_closed.board.curves[PRICE_DISK], schema_price_curve),
    OBJECT("price", slot_closed.price, schema_price),
};

struct event_row {
    struct json_schema schema;
    event_apply *apply;
};

#define ROW(name)                                                                                  \
    {                                                                                              \
        JSON_SCHEMA(#name, name##_fields, struct event), apply_##name                              \
    }

static const struct event_row rows[EVENT_KIND_COUNT] = {
    [EVENT_SETTINGS_CHANGED] = ROW(settings_changed),
    [EVENT_ACCOUNT_OPENED] = ROW(account_opened),
    [EVENT_PASSWORD_SET] = ROW(password_set),
    [EVENT_ACCOUNT_FROZEN] = ROW(account_frozen),
    [EVENT_ACCOUNT_UNFROZEN] = ROW(account_unfrozen),
    [EVENT_ACCOUNT_DELETED] = ROW(account_deleted),
    [EVENT_ACCOUNT_SEEN] = ROW(account_seen),
    [EVENT_GROUP_CREATED] = ROW(group_created),
    [EVENT_GROUP_JOINED] = ROW(group_joined),
    [EVENT_GROUP_LEFT] = ROW(group_left),
    [EVENT_GRANT_GIVEN] = ROW(grant_given),
    [EVENT_GRANT_RELEASED] = ROW(grant_released),
    [EVENT_DORMANCY_ADVANCED] = ROW(dormancy_advanced),
    [EVENT_KARMA_SHARED] = ROW(karma_shared),
    [EVENT_DAY_BEGAN] = ROW(day_began),
    [EVENT_RULES_CHANGED] = ROW(rules_changed),
    [EVENT_COST_BILLED] = ROW(cost_billed),
    [EVENT_TOKEN_ADDED] = ROW(token_added),
    [EVENT_TOKEN_REVOKED] = ROW(token_revoked),
    [EVENT_CODE_ADDED] = ROW(code_added),
    [EVENT_CODE_REMOVED] = ROW(code_removed),
    [EVENT_MACHINE_ENROLLED] = ROW(machine_enrolled),
    [EVENT_MACHINE_PROBED] = ROW(machine_probed),
    [EVENT_PAIR_MEASURED] = ROW(pair_measured),
    [EVENT_MACHINE_STATE_CHANGED] = ROW(machine_state_changed),
    [EVENT_MACHINE_YIELDED] = ROW(machine_yielded),
    [EVENT_MACHINE_PROVEN] = ROW(machine_proven),
    [EVENT_OFFER_SET] = ROW(offer_set),
    [EVENT_OFFER_PAUSED] = ROW(offer_paused),
    [EVENT_OFFER_RENEWED] = ROW(offer_renewed),
    [EVENT_OFFER_TURNED] = ROW(offer_turned),
    [EVENT_OFFER_WITHDRAWN] = ROW(offer_withdrawn),
    [EVENT_JOB_SUBMITTED] = ROW(job_submitted),
    [EVENT_JOB_DUE] = ROW(job_due),
    [EVENT_JOB_WAITS] = ROW(job_waits),
    [EVENT_JOB_NOTED] = ROW(job_noted),
    [EVENT_JOB_STATE_CHANGED] = ROW(job_state_changed),
    [EVENT_LEASE_OFFERED] = ROW(lease_offered),
    [EVENT_LEASE_STARTED] = ROW(lease_started),
    [EVENT_LEASE_TICKED] = ROW(lease_ticked),
    [EVENT_LEASE_STOP_WANTED] = ROW(lease_stop_wanted),
    [EVENT_LEASE_ENDED] = ROW(lease_ended),
    [EVENT_LEASE_PROMOTED] = ROW(lease_promoted),
    [EVENT_JOB_EXTENDED] = ROW(job_extended),
    [EVENT_JOB_RESIZED] = ROW(job_resized),
    [EVENT_LEASE_EXTENDED] = ROW(lease_extended),
    [EVENT_LEASE_RENEWED] = ROW(lease_renewed),
    [EVENT_BOOKING_FORFEITED] = ROW(booking_forfeited),
    [EVENT_ENTRY_POSTED] = ROW(entry_posted),
    [EVENT_SLOT_CLOSED] = ROW(slot_closed),
};

const char *event_kind_name(enum event_kind kind)
{
    ASSERT(kind < EVENT_KIND_COUNT);
    return kind_names[kind];
}

event_apply *event_apply_function(enum event_kind kind)
{
    ASSERT(kind < EVENT_KIND_COUNT);
    return rows[kind].apply;
}

void event_encode(const struct event *event, struct buffer *out)
{
    ASSERT(event->kind < EVENT_KIND_COUNT);
    struct json_writer writer;
    json_writer_init(&writer, out);
    json_write(&writer, &rows[event->kind].schema, event);
}

/* The kind named at the very beginning, where event_encode puts it. */
static int find_kind(struct text json, enum event_kind *out_kind, struct error *error)
{
    const struct text start = TEXT("{\"kind\":\"");
    struct text name, rest;
    if (text_starts_with(json, start) &&
        text_cut((struct text){json.data + start.size, json.size - start.size}, '"', &name, &rest))
        for (enum event_kind kind = 0; kind < EVENT_KIND_COUNT; kind++)
            if (text_is(name, kind_names[kind])) {
                *out_kind = kind;
                return 0;
            }
    return error_set(error, ERROR_INVALID, "an event begins with a kind that is known");
}

int event_decode(struct arena *arena, struct text json, struct event *out_event,
                 struct error *error)
{
    if (json.size > EVENT_BYTES_MAX)
        return error_set(error, ERROR_INVALID, "an event of %zu bytes is too long", json.size);
    enum event_kind kind;
    if (find_kind(json, &kind, error) < 0)
        return -1;
    /* Zeroed whole, so that the fields' unused bytes are equal as well. */
    memset(out_event, 0, sizeof(*out_event));
    if (json_read_written(arena, json, &rows[kind].schema, out_event, error) < 0)
        return -1;
    if (out_event->kind != kind)
        return error_set(error, ERROR_INVALID, "an event names two kinds");
    return 0;
}
