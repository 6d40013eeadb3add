#include "server/view.h"

#include "base/assert.h"
#include "base/log.h"
#include "ledger/ledger.h"
#include "market/account.h"
#include "market/job.h"
#include "market/slot.h"
#include "server/tables.h"

enum { ANSWER_SIZE_MAX = 16 << 20 };

/* A column under a literal key. */
#define field(writer_, key_, row_, column_)                                                        \
    json_keyed_i64(writer_, JSON_KEY(key_), (row_)[column_].integer)
#define text_field(writer_, key_, row_, column_)                                                   \
    json_keyed_text(writer_, JSON_KEY(key_), (row_)[column_].bytes)

void view_account(struct json_writer *writer, const struct store_value *row)
{
    const int64_t granted = row[ACCOUNTS_GRANTED_MICRO].integer;
    const int64_t earned = row[ACCOUNTS_EARNED_MICRO].integer;
    const int64_t withheld = row[ACCOUNTS_WITHHELD_MICRO].integer;
    json_object_begin(writer);
    field(writer, "id", row, ACCOUNTS_ID);
    text_field(writer, "name", row, ACCOUNTS_NAME);
    field(writer, "created_ms", row, ACCOUNTS_OPENED_MS);
    json_keyed_i64(writer, JSON_KEY("available_microcredits"), granted + earned - withheld);
    field(writer, "held_microcredits", row, ACCOUNTS_HELD_MICRO);
    json_keyed_i64(writer, JSON_KEY("granted_microcredits"), granted);
    json_keyed_i64(writer, JSON_KEY("withheld_microcredits"), withheld);
    json_keyed_i64(writer, JSON_KEY("transferable_microcredits"), earned - withheld);
    field(writer, "earned_microcredits", row, ACCOUNTS_EARNED_TOTAL_MICRO);
    field(writer, "spent_microcredits", row, ACCOUNTS_SPENT_TOTAL_MICRO);
    json_field_string(writer, "grant",
                      grant_state_name((enum grant_state)row[ACCOUNTS_GRANT_STATE].integer));
    field(writer, "to_earn_microcredits", row, ACCOUNTS_TO_EARN_MICRO);
    field(writer, "group", row, ACCOUNTS_GROUP_ID);
    json_field_bool(writer, "is_operator", row[ACCOUNTS_ID].integer == ACCOUNT_OPERATOR);
    json_field_bool(writer, "has_password", row[ACCOUNTS_PASSWORD].bytes.size > 0);
    text_field(writer, "frozen", row, ACCOUNTS_FREEZE_REASON);
    field(writer, "dormant_steps", row, ACCOUNTS_DORMANT_STEPS);
    field(writer, "dormant_step_ms", row, ACCOUNTS_DORMANT_STEP_MS);
    json_object_end(writer);
}

struct bit_name {
    uint64_t bit;
    const char *name;
};

static const struct bit_name scope_names[] = {
    {TOKEN_SCOPE_READ, "read"},       {TOKEN_SCOPE_LEND, "lend"},
    {TOKEN_SCOPE_BORROW, "borrow"},   {TOKEN_SCOPE_OPERATE, "operate"},
    {TOKEN_SCOPE_OBJECTS, "objects"}, /* not to be asked for: POST /v1/objects/tokens makes it */
};
static const struct bit_name role_names[] = {
    {MACHINE_ROLE_WORKER, "worker"},
    {MACHINE_ROLE_SERVER, "server"},
};

static void write_bits(struct json_writer *writer, const struct bit_name *names, size_t count,
                       uint64_t bits)
{
    json_array_begin(writer);
    for (size_t i = 0; i < count; i++)
        if (bits & names[i].bit)
            json_string(writer, names[i].name);
    json_array_end(writer);
}

static int read_bits(const struct json_array *texts, const struct bit_name *names, size_t count,
                     const char *noun, uint64_t *out_bits, struct error *error)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < texts->count; i++) {
        const struct text text = ((const struct text *)texts->items)[i];
        size_t found = count;
        for (size_t j = 0; j < count; j++)
            if (text_equal(text, text_of(names[j].name)))
                found = j;
        if (found == count)
            return error_set(error, ERROR_INVALID, "\"" TEXT_FORMAT "\" is not a %s",
                             TEXT_ARGS(text), noun);
        bits |= names[found].bit;
    }
    *out_bits = bits;
    return 0;
}

void view_scopes(struct json_writer *writer, uint64_t scopes)
{
    write_bits(writer, scope_names, 5, scopes);
}

const char *view_scope_name(uint64_t scopes)
{
    for (size_t i = 0; i < sizeof(scope_names) / sizeof(*scope_names); i++)
        if (scopes & scope_names[i].bit)
            return scope_names[i].name;
    ASSERT(false);
    return "";
}

void view_roles(struct json_writer *writer, uint64_t roles)
{
    write_bits(writer, role_names, 2, roles);
}

int view_read_scopes(const struct json_array *names, uint64_t *out_scopes, struct error *error)
{
    return read_bits(names, scope_names, 4, "scope: read, lend, borrow, operate", out_scopes,
                     error);
}

int view_read_roles(const struct json_array *names, uint64_t *out_roles, struct error *error)
{
    return read_bits(names, role_names, 2, "role: worker, server", out_roles, error);
}

void view_token(struct json_writer *writer, const struct view_token *token)
{
    const struct store_value *row = token->row;
    json_object_begin(writer);
    field(writer, "id", row, TOKENS_ID);
    text_field(writer, "name", row, TOKENS_LABEL);
    json_key(writer, "scopes");
    view_scopes(writer, (uint64_t)row[TOKENS_SCOPES].integer);
    field(writer, "created_ms", row, TOKENS_ADDED_MS);
    field(writer, "expires_ms", row, TOKENS_EXPIRES_MS);
    json_keyed_i64(writer, JSON_KEY("last_used_ms"), token->last_used_ms);
    json_field_bool(writer, "is_current", token->is_current);
    json_object_end(writer);
}

static void view_probe(struct json_writer *writer, const struct store_value *row)
{
    json_object_begin(writer);
    field(writer, "cores_milli", row, MACHINES_CORES_MILLI);
    field(writer, "ram_bytes", row, MACHINES_RAM_BYTES);
    field(writer, "disk_bytes", row, MACHINES_DISK_BYTES);
    field(writer, "gpus_milli", row, MACHINES_GPUS_MILLI);
    field(writer, "speed_weight_milli", row, MACHINES_SPEED_WEIGHT_MILLI);
    text_field(writer, "cpu_model", row, MACHINES_CPU_MODEL);
    text_field(writer, "labels", row, MACHINES_LABELS);
    text_field(writer, "gpu_model", row, MACHINES_GPU_MODEL);
    field(writer, "gpu_ram_bytes", row, MACHINES_GPU_RAM_BYTES);
    field(writer, "bandwidth_kbit", row, MACHINES_BANDWIDTH_KBIT);
    field(writer, "rtt_us", row, MACHINES_RTT_US);
    field(writer, "ram_bytes_per_s", row, MACHINES_RAM_BYTES_PER_S);
    json_field_string(writer, "network",
                      offer_network_name((enum offer_network)row[MACHINES_NETWORK].integer));
    json_field_bool(writer, "images", row[MACHINES_IMAGES].integer != 0);
    json_object_end(writer);
}

static void view_lent(struct json_writer *writer, const struct store_value *row)
{
    json_object_begin(writer);
    field(writer, "cores_milli", row, MACHINES_OFFER_CORES_MILLI);
    field(writer, "ram_bytes", row, MACHINES_OFFER_RAM_BYTES);
    field(writer, "disk_bytes", row, MACHINES_OFFER_DISK_BYTES);
    field(writer, "gpus_milli", row, MACHINES_OFFER_GPUS_MILLI);
    json_key(writer, "roles");
    view_roles(writer, (uint64_t)row[MACHINES_OFFER_ROLES].integer);
    json_field_bool(writer, "paused", row[MACHINES_OFFER_IS_PAUSED].integer != 0);
    json_key(writer, "minimum");
    json_object_begin(writer);
    field(writer, "core_micro", row, MACHINES_MINIMUM_CORE_MICRO);
    field(writer, "ram_micro", row, MACHINES_MINIMUM_RAM_MICRO);
    field(writer, "gpu_micro", row, MACHINES_MINIMUM_GPU_MICRO);
    field(writer, "disk_micro", row, MACHINES_MINIMUM_DISK_MICRO);
    json_object_end(writer);
    json_object_end(writer);
}

static void view_free(struct json_writer *writer, const struct store_value *row)
{
    json_object_begin(writer);
    field(writer, "cores_milli", row, MACHINES_FREE_CORES_MILLI);
    field(writer, "ram_bytes", row, MACHINES_FREE_RAM_BYTES);
    field(writer, "gpus_milli", row, MACHINES_FREE_GPUS_MILLI);
    field(writer, "disk_bytes", row, MACHINES_FREE_DISK_BYTES);
    json_object_end(writer);
}

static void view_reputation(struct json_writer *writer, const struct store_value *row)
{
    json_object_begin(writer);
    field(writer, "reliability_milli", row, MACHINES_RELIABILITY_MILLI);
    field(writer, "completed", row, MACHINES_COMPLETED);
    field(writer, "lost", row, MACHINES_LOST);
    field(writer, "reclaimed", row, MACHINES_RECLAIMED);
    field(writer, "failed", row, MACHINES_FAILED);
    field(writer, "completed_milli", row, MACHINES_COMPLETED_MILLI);
    field(writer, "lost_milli", row, MACHINES_LOST_MILLI);
    field(writer, "reclaimed_milli", row, MACHINES_RECLAIMED_MILLI);
    field(writer, "leased_ms", row, MACHINES_LEASED_MS);
    field(writer, "delivered_ms", row, MACHINES_DELIVERED_MS);
    field(writer, "ticks", row, MACHINES_TICKS);
    json_field_bool(writer, "is_proven", row[MACHINES_IS_UNPROVEN].integer == 0);
    field(writer, "verified_microcredits", row, MACHINES_VERIFIED_MICRO);
    field(writer, "withheld_microcredits", row, MACHINES_WITHHELD_MICRO);
    json_object_end(writer);
}

void view_machine(struct json_writer *writer, const struct view_machine *machine)
{
    const struct store_value *row = machine->row;
    field(writer, "id", row, MACHINES_ID);
    text_field(writer, "name", row, MACHINES_NAME);
    field(writer, "account", row, MACHINES_OWNER);
    json_keyed_text(writer, JSON_KEY("account_name"), machine->account_name);
    json_field_bool(writer, "is_mine", machine->is_mine);
    json_field_string(writer, "state",
                      machine_state_name((enum machine_state)row[MACHINES_STATE].integer));
    const enum machine_yield yield = (enum machine_yield)row[MACHINES_YIELD].integer;
    json_field_string(
        writer, "yield",
        machine_yield_name(machine->is_mine ? yield : machine_yield_for_others(yield)));
    json_field_i64(writer, "paused_until_ms", machine->paused_until_ms);
    json_field_string(
        writer, "availability",
        machine_availability_name((enum machine_availability)row[MACHINES_AVAILABILITY].integer));
    json_key(writer, "fresh_s");
    if (machine->is_heard)
        json_i64(writer, machine->fresh_s);
    else
        json_null(writer);
    json_key(writer, "probe");
    view_probe(writer, row);
    json_key(writer, "offer");
    view_lent(writer, row);
    json_key(writer, "free");
    view_free(writer, row);
    text_field(writer, "offer_labels", row, MACHINES_OFFER_LABELS);
    field(writer, "offer_count", row, MACHINES_OFFER_COUNT);
    json_field_string(writer, "offer_state",
                      view_offer_state_name((enum offer_state)row[MACHINES_OFFER_STATE].integer));
    field(writer, "offer_state_until_ms", row, MACHINES_OFFER_TURNS_MS);
    field(writer, "leased_cores_milli", row, MACHINES_LEASED_CORES_MILLI);
    field(writer, "leased_ram_bytes", row, MACHINES_LEASED_RAM_BYTES);
    field(writer, "lease_count", row, MACHINES_LEASE_COUNT);
    field(writer, "created_ms", row, MACHINES_ENROLLED_MS);
    field(writer, "state_changed_ms", row, MACHINES_STATE_CHANGED_MS);
    field(writer, "earned_microcredits", row, MACHINES_EARNED_MICRO);
    json_key(writer, "reputation");
    view_reputation(writer, row);
}

void view_count(struct json_writer *writer, const char *key, uint64_t count)
{
    if (count > 0)
        json_field_u64(writer, key, count);
}

/* A value nothing was reported for is null, not 0. */
static void measured(struct json_writer *writer, const char *key, bool is_known, double value)
{
    json_key(writer, key);
    if (is_known)
        json_double(writer, value);
    else
        json_null(writer);
}

void view_job_fields(struct json_writer *writer, const struct view_job *job)
{
    static const struct live_job silent;
    const struct store_value *row = job->row;
    const struct live_job *live = job->live ? job->live : &silent;
    field(writer, "id", row, JOBS_ID);
    text_field(writer, "name", row, JOBS_NAME);
    field(writer, "account", row, JOBS_ACCOUNT);
    json_field_string(writer, "state", job_state_name((enum job_state)row[JOBS_STATE].integer));
    json_keyed_text(writer, JSON_KEY("reason"),
                    job->reason.size ? job->reason : row[JOBS_REASON].bytes);
    field(writer, "num_nodes", row, JOBS_NUM_NODES);
    field(writer, "num_nodes_max", row, JOBS_NUM_NODES_MAX);
    field(writer, "worker_count", row, JOBS_WORKER_COUNT);
    field(writer, "workers_wanted", row, JOBS_WORKERS_WANTED);
    text_field(writer, "runtime", row, JOBS_RUNTIME);
    text_field(writer, "policy", row, JOBS_POLICY);
    text_field(writer, "model", row, JOBS_MODEL);
    text_field(writer, "predict", row, JOBS_PREDICT);
    field(writer, "created_ms", row, JOBS_SUBMITTED_MS);
    field(writer, "not_before_ms", row, JOBS_NOT_BEFORE_MS);
    field(writer, "started_ms", row, JOBS_STARTED_MS);
    json_keyed_i64(writer, JSON_KEY("first_step_ms"), live->first_step_ms);
    field(writer, "ended_ms", row, JOBS_ENDED_MS);
    field(writer, "held_microcredits", row, JOBS_HELD_MICRO);
    field(writer, "spent_microcredits", row, JOBS_POSTED_MICRO);
    field(writer, "quoted_microcredits", row, JOBS_QUOTE_MICRO);
    field(writer, "max_total_microcredits", row, JOBS_MAX_TOTAL_MICRO);
    field(writer, "ticks", row, JOBS_TICKS);
    measured(writer, "loss", live->has_loss, live->loss);
    measured(writer, "test_accuracy", live->has_accuracy, live->test_accuracy);
    json_field_u64(writer, "samples", live->samples);
    json_keyed_i64(writer, JSON_KEY("gamma_ms"), live->gamma_ms);
}

void view_lease(struct json_writer *writer, const struct view_lease *lease)
{
    static const struct live_worker silent;
    const struct store_value *row = lease->row;
    const struct live_worker *live = lease->live ? lease->live : &silent;
    const int64_t posted = row[LEASES_POSTED_MICRO].integer;
    json_object_begin(writer);
    field(writer, "id", row, LEASES_ID);
    field(writer, "fence", row, LEASES_FENCE);
    field(writer, "job", row, LEASES_JOB);
    field(writer, "machine", row, LEASES_MACHINE);
    json_keyed_text(writer, JSON_KEY("machine_name"), lease->machine_name);
    field(writer, "account", row, LEASES_PAYEE);
    json_field_string(writer, "role", lease_role_name((enum lease_role)row[LEASES_ROLE].integer));
    field(writer, "rank", row, LEASES_RANK);
    json_field_bool(writer, "replica", row[LEASES_IS_REPLICA].integer != 0);
    json_field_string(writer, "state",
                      lease_state_name((enum lease_state)row[LEASES_STATE].integer));
    json_field_string(writer, "outcome",
                      lease_outcome_name((enum lease_outcome)row[LEASES_OUTCOME].integer));
    field(writer, "exit_code", row, LEASES_EXIT_CODE);
    text_field(writer, "reason", row, LEASES_REASON);
    json_field_bool(writer, "unreachable", row[LEASES_IS_UNREACHABLE].integer != 0);
    json_field_string(writer, "yield", machine_yield_name(lease->yield));
    field(writer, "cores_milli", row, LEASES_CORES_MILLI);
    field(writer, "ram_bytes", row, LEASES_RAM_BYTES);
    field(writer, "disk_bytes", row, LEASES_DISK_BYTES);
    field(writer, "tick_ms", row, LEASES_TICK_MS);
    field(writer, "offered_ms", row, LEASES_OFFERED_MS);
    field(writer, "started_ms", row, LEASES_STARTED_MS);
    field(writer, "ended_ms", row, LEASES_ENDED_MS);
    field(writer, "expires_ms", row, LEASES_EXPIRES_MS);
    field(writer, "ticks", row, LEASES_TICKS);
    field(writer, "billed_ms", row, LEASES_WALL_MS);
    json_keyed_i64(writer, JSON_KEY("posted_microcredits"), posted);
    json_keyed_i64(writer, JSON_KEY("earned_microcredits"), posted - row[LEASES_FEE_MICRO].integer);
    json_field_i64(writer, "cpu_ms", live->cpu_ms);
    json_field_i64(writer, "gpu_ms", live->gpu_ms);
    json_field_i64(writer, "memory_peak_bytes", live->memory_peak_bytes);
    json_field_u64(writer, "steps", live->steps);
    json_field_u64(writer, "commits", live->commits);
    json_field_u64(writer, "samples", live->samples);
    measured(writer, "steps_per_second", live->at_ms != 0, live->steps_per_second);
    measured(writer, "loss", live->has_loss, live->loss);
    json_field_i64(writer, "compute_ms", (int64_t)live->compute_ms);
    json_field_i64(writer, "transfer_ms", (int64_t)live->transfer_ms);
    json_field_i64(writer, "wait_ms", (int64_t)live->wait_ms);
    json_field_string(writer, "codec", live->codec);
    view_count(writer, "clipped", live->clipped);
    view_count(writer, "refused", live->refused);
    json_object_end(writer);
}

void view_price(struct json_writer *writer, const struct price_vector *price)
{
    static const char *const names[PRICE_RESOURCE_COUNT] = {
        "core_hour_microcredits", "ram_gib_hour_microcredits", "gpu_hour_microcredits",
        "disk_gib_hour_microcredits"};
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
        json_key(writer, names[r]);
        if (price)
            json_i64(writer, price_vector_get(price, r));
        else
            json_null(writer);
    }
}

void view_slot_times(struct json_writer *writer, int64_t slot, int64_t running, int64_t offset_ms)
{
    char name[SLOT_TEXT_SIZE];
    json_field_string(writer, "slot", slot_format(slot, name));
    json_field_string(writer, "state",
                      slot < running    ? "ended"
                      : slot == running ? "running"
                                        : "forecast");
    json_field_i64(writer, "start_ms", slot_start_ms(slot, offset_ms));
    json_field_i64(writer, "end_ms", slot_start_ms(slot + 1, offset_ms));
}

void view_answer_begin(struct view_answer *answer)
{
    buffer_init(&answer->body, ANSWER_SIZE_MAX);
    json_writer_init(&answer->writer, &answer->body);
}

void view_answer_send(struct view_answer *answer, struct http_request *request, int status)
{
    struct error error;
    if (http_reply_header(request, "Cache-Control", "no-store", &error) < 0)
        log_event(LOG_WARN, "header_refused", "error=\"%s\"", error.message);
    http_reply_take(request, status, "application/json", &answer->body);
    buffer_done(&answer->body);
}
