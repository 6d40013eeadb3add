/* What a job shows and leaves: metrics, artifacts, the bill, the explanation. */
#include "base/log.h"
#include "server/call.h"
#include "server/download.h"
#include "server/handle_job.h"
#include "server/handlers.h"
#include "server/holdings.h"
#include "server/job_software.h"
#include "server/query.h"
#include "server/view.h"

#include <inttypes.h>
#include <stdlib.h>

struct name_lookup {
    struct server *server;
    struct arena *arena;
};

static struct text machine_name(void *context, uint64_t machine)
{
    const struct name_lookup *lookup = context;
    return query_name(lookup->server, lookup->arena, TABLE_MACHINES, machine);
}

void handle_job_metrics(struct http_request *request, void *context)
{
    struct server *server = context;
    const struct store_value *row = handle_job_find(server, request);
    if (!row)
        return;
    const uint64_t job = (uint64_t)row[JOBS_ID].integer;
    struct name_lookup lookup = {server, http_request_arena(request)};
    struct view_answer answer;
    view_answer_begin(&answer);
    live_write(&answer.writer, job, live_find(server->live, job, LIVE_CURVE), machine_name,
               &lookup);
    view_answer_send(&answer, request, 200);
}

/* ---- Artifacts ------------------------------------------------------------------------------- */

void handle_job_artifacts(struct http_request *request, void *context)
{
    const struct store_value *row = handle_job_find(context, request);
    if (!row)
        return;
    const struct store_filter filter = {"job", STORE_EQUAL, row[JOBS_ID]};
    struct store_query query = {
        .table = &tables[TABLE_ARTIFACTS], .filters = &filter, .filter_count = 1};
    struct query_rows rows;
    struct error error;
    if (query_page(request, context, http_request_arena(request), &query, &rows, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    struct json_writer *writer = &answer.writer;
    query_page_begin(writer);
    for (size_t i = 0; i < rows.count; i++) {
        const struct store_value *artifact = rows.items[i];
        char hex[BLOB_HASH_TEXT_SIZE] = "";
        if (artifact[ARTIFACTS_MANIFEST].bytes.size == BLOB_HASH_SIZE)
            text_hex_encode(artifact[ARTIFACTS_MANIFEST].bytes.data, BLOB_HASH_SIZE, hex);
        json_object_begin(writer);
        json_field_text(writer, "name", artifact[ARTIFACTS_NAME].bytes);
        json_field_i64(writer, "size", artifact[ARTIFACTS_SIZE_BYTES].integer);
        json_field_string(writer, "manifest", hex);
        json_field_i64(writer, "created_ms", artifact[ARTIFACTS_CREATED_MS].integer);
        json_object_end(writer);
    }
    query_page_end(writer, &rows);
    view_answer_send(&answer, request, 200);
}

struct artifact_look {
    struct holdings *holdings;
    uint64_t account;
};

/* A lease may name any chunk in a manifest: what its account has not sent is not its to see. */
static int check_held(void *context, const struct blob_hash *hash, struct error *error)
{
    const struct artifact_look *look = context;
    bool is_held = false;
    if (holdings_has(look->holdings, look->account, hash, &is_held, error) < 0)
        return -1;
    return is_held
               ? 0
               : error_set(error, ERROR_NOT_FOUND, "a part of the artifact is not here any more");
}

static int send_artifact(struct server *server, struct http_request *request, uint64_t job_account,
                         const struct store_value *artifact, struct error *error)
{
    struct artifact_look look = {server->holdings, job_account};
    struct download_options options = {
        .blobs = server->blobs,
        .size_bytes = (uint64_t)artifact[ARTIFACTS_SIZE_BYTES].integer,
        .account = route_caller(request)->account,
        .check = check_held,
        .context = &look,
    };
    if (artifact[ARTIFACTS_MANIFEST].bytes.size != sizeof(options.manifest.bytes))
        return error_set(error, ERROR_CORRUPT, "the artifact's row is damaged");
    memcpy(options.manifest.bytes, artifact[ARTIFACTS_MANIFEST].bytes.data,
           sizeof(options.manifest.bytes));
    return download_start(&server->downloads, request, &options, error);
}

/* A file's name for a browser (RFC 6266): the path with '_' between its parts, and the same with
 * nothing but plain letters for those that do not know the other. */
static const char *disposition(struct arena *arena, struct text name)
{
    char *flat = arena_copy_string(arena, name);
    for (char *at = flat; *at; at++)
        if (*at == '/')
            *at = '_';
    struct buffer encoded AUTO_BUFFER;
    buffer_init(&encoded, 3 * name.size + 1);
    http_percent_encode(text_of(flat), &encoded);
    for (char *at = flat; *at; at++)
        if (*at < ' ' || *at >= 0x7f || *at == '"' || *at == '\\' || *at == '%')
            *at = '_';
    return arena_format(arena, "attachment; filename=\"%s\"; filename*=UTF-8''" TEXT_FORMAT, flat,
                        TEXT_ARGS(buffer_text(&encoded)));
}

void handle_job_artifact(struct http_request *request, void *context)
{
    struct server *server = context;
    const struct store_value *row = handle_job_find(server, request);
    if (!row)
        return;
    struct arena *arena = http_request_arena(request);
    const struct text name = http_request_parameter(request, "name");
    const struct store_filter filters[] = {
        {"job", STORE_EQUAL, row[JOBS_ID]},
        {"name", STORE_EQUAL, store_text(name)},
    };
    const struct store_query query = {
        .table = &tables[TABLE_ARTIFACTS], .filters = filters, .filter_count = 2, .limit = 1};
    struct query_rows rows;
    struct error error;
    int result = query_all(server, arena, &query, &rows, &error);
    if (result == 0 && !rows.count)
        result = error_set(&error, ERROR_NOT_FOUND, "this job has no artifact \"" TEXT_FORMAT "\"",
                           TEXT_ARGS(name));
    if (result < 0 ||
        http_reply_header(request, "Content-Disposition", disposition(arena, name), &error) < 0 ||
        send_artifact(server, request, (uint64_t)row[JOBS_ACCOUNT].integer, rows.items[0], &error) <
            0)
        http_reply_error(request, &error);
}

/* ---- Bill and explanation -------------------------------------------------------------------- */

struct bill_look {
    const struct store_value *job;
    struct query_rows leases;
    int64_t ledger_sum_micro;
};

static int look_at_ledger(struct engine_request *request, const struct core *core,
                          struct store_batch *batch, struct error *error)
{
    (void)batch;
    (void)error;
    struct bill_look *look = ((struct call *)request)->context;
    look->ledger_sum_micro = core_ledger_sum_micro(core);
    return 0;
}

static void send_bill(struct call *call, struct http_request *request)
{
    const struct bill_look *look = call->context;
    const struct store_value *job = look->job;
    struct view_answer answer;
    view_answer_begin(&answer);
    struct json_writer *writer = &answer.writer;
    json_object_begin(writer);
    json_field_i64(writer, "job", job[JOBS_ID].integer);
    json_field_string(writer, "state", job_state_name((enum job_state)job[JOBS_STATE].integer));
    json_field_i64(writer, "quoted_microcredits", job[JOBS_QUOTE_MICRO].integer);
    json_field_i64(writer, "spent_microcredits", job[JOBS_POSTED_MICRO].integer);
    json_field_i64(writer, "held_microcredits", job[JOBS_HELD_MICRO].integer);
    json_field_i64(writer, "fee_microcredits", job[JOBS_FEE_MICRO].integer);
    json_field_i64(writer, "ticks", job[JOBS_TICKS].integer);
    json_key(writer, "lines");
    json_array_begin(writer);
    for (size_t i = 0; i < look->leases.count; i++) {
        const struct store_value *lease = look->leases.items[i];
        const int64_t posted = lease[LEASES_POSTED_MICRO].integer;
        const int64_t fee = lease[LEASES_FEE_MICRO].integer;
        const uint64_t machine = (uint64_t)lease[LEASES_MACHINE].integer;
        json_object_begin(writer);
        json_field_i64(writer, "lease", lease[LEASES_ID].integer);
        json_field_u64(writer, "machine", machine);
        json_field_text(writer, "machine_name",
                        query_name(call->server, call->arena, TABLE_MACHINES, machine));
        json_field_string(writer, "role",
                          lease_role_name((enum lease_role)lease[LEASES_ROLE].integer));
        json_field_i64(writer, "rank", lease[LEASES_RANK].integer);
        json_field_bool(writer, "replica", lease[LEASES_IS_REPLICA].integer != 0);
        json_field_i64(writer, "ticks", lease[LEASES_TICKS].integer);
        json_field_i64(writer, "billed_ms", lease[LEASES_WALL_MS].integer);
        json_field_i64(writer, "posted_microcredits", posted);
        json_field_i64(writer, "earned_microcredits", posted - fee);
        json_field_i64(writer, "fee_microcredits", fee);
        json_object_end(writer);
    }
    json_array_end(writer);
    json_field_i64(writer, "ledger_sum_microcredits", look->ledger_sum_micro);
    json_object_end(writer);
    view_answer_send(&answer, request, 200);
    call_free(call);
}

void handle_job_bill(struct http_request *request, void *context)
{
    const struct store_value *found = handle_job_find(context, request);
    if (!found)
        return;
    AUTO(call) struct call *call = call_new(context, request);
    struct bill_look *look = arena_alloc(call->arena, sizeof(*look));
    call->context = look;
    struct error error;
    const uint64_t job = (uint64_t)found[JOBS_ID].integer;
    if (query_id(context, call->arena, TABLE_JOBS, job, "job", &look->job, &error) < 0 ||
        handle_job_leases(context, call->arena, job, &look->leases, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    call_look_take(TAKE(call), look_at_ledger, send_bill);
}

enum { EXPLAIN_SIZE_MAX = 64 << 10 };

struct explain_look {
    uint64_t job;
    const char *state;
    struct text reason, text, warning;
    bool is_waiting;
    struct match_explanation why;
};

static int look_at_job(struct engine_request *request, const struct core *core,
                       struct store_batch *batch, struct error *error)
{
    (void)batch;
    struct call *call = (struct call *)request;
    struct explain_look *look = call->context;
    const struct job *job = core_job(core, look->job);
    if (!job)
        return error_set(error, ERROR_NOT_FOUND, "job %" PRIu64 " does not exist", look->job);
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, EXPLAIN_SIZE_MAX);
    look->is_waiting = core_explain_wait(core, job, &look->why, &text);
    if (!look->is_waiting)
        core_explain(core, job, &text);
    look->state = job_state_name(job->state);
    look->reason = arena_copy_text(call->arena, text_of(job->reason));
    look->text = arena_copy_text(call->arena, buffer_text(&text));
    struct job_spec spec;
    if (look->is_waiting && job_spec_read(call->arena, job->request.spec, &spec, error) < 0)
        return error_wrap(error, "job %" PRIu64, look->job);
    if (look->is_waiting)
        look->warning = job_software_warning(call->arena, core, &spec, &job->request);
    return 0;
}

static void write_wishes(struct json_writer *writer, const struct match_explanation *why)
{
    json_key(writer, "wishes");
    json_array_begin(writer);
    for (size_t i = 0; i < why->row_count; i++) {
        const struct match_row *row = &why->rows[i];
        json_object_begin(writer);
        json_field_string(writer, "role", row->role == MACHINE_ROLE_SERVER ? "server" : "worker");
        json_field_string(writer, "wish", wish_test_name(row->test));
        json_field_u64(writer, "machines_left", row->machines_left);
        json_object_end(writer);
    }
    json_array_end(writer);
}

static void send_explanation(struct call *call, struct http_request *request)
{
    const struct explain_look *look = call->context;
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_field_u64(&answer.writer, "job", look->job);
    json_field_string(&answer.writer, "state", look->state);
    json_field_text(&answer.writer, "reason", look->reason);
    json_field_text(&answer.writer, "text", look->text);
    if (look->is_waiting) {
        json_field_u64(&answer.writer, "machine_count", look->why.machine_count);
        write_wishes(&answer.writer, &look->why);
        json_field_string(&answer.writer, "nearest", look->why.nearest);
        json_field_i64(&answer.writer, "expected_start_ms",
                       call_still_to_come_ms(call, look->why.expected_start_ms));
        json_field_bool(&answer.writer, "is_lacking", look->why.is_lacking);
        json_field_text(&answer.writer, "warning", look->warning);
    }
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 200);
    call_free(call);
}

void handle_job_explain(struct http_request *request, void *context)
{
    const struct store_value *row = handle_job_find(context, request);
    if (!row)
        return;
    struct call *call = call_new(context, request);
    struct explain_look *look = arena_alloc(call->arena, sizeof(*look));
    look->job = (uint64_t)row[JOBS_ID].integer;
    call->context = look;
    call_look_take(call, look_at_job, send_explanation);
}
