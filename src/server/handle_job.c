/* Jobs: submitting, showing, cancelling. */
#include "server/handle_job.h"

#include "blob/manifest.h"
#include "server/answers.h"
#include "server/call.h"
#include "server/cloud.h"
#include "server/cloud_job.h"
#include "server/datasets.h"
#include "server/handlers.h"
#include "server/holdings.h"
#include "server/job_request.h"
#include "server/list_view.h"
#include "server/query.h"
#include "server/secrets.h"
#include "server/view.h"

#include <inttypes.h>

/* Every chunk of every input must be here: a lease that starts must find its data. */
static int check_inputs(struct server *server, struct arena *arena, uint64_t account,
                        const struct job_spec *spec, struct error *error)
{
    for (size_t i = 0; i < spec->input_count; i++) {
        const struct job_input *input = &spec->inputs[i];
        struct blob_hash hash;
        struct manifest manifest;
        memcpy(hash.bytes, input->manifest, sizeof(hash.bytes));
        if (holdings_claim_file(server->holdings, arena, account, &hash, &manifest, error) < 0)
            return error_wrap(error, "input \"" TEXT_FORMAT "\"", TEXT_ARGS(input->name));
        if (manifest.record_count != input->records)
            return error_set(error, ERROR_INVALID,
                             "input \"" TEXT_FORMAT "\" has %" PRIu64 " records, not %" PRIu64,
                             TEXT_ARGS(input->name), manifest.record_count, input->records);
    }
    return 0;
}

/* ---- Showing --------------------------------------------------------------------------------- */

const struct store_value *handle_job_find(struct server *server, struct http_request *request)
{
    struct error error;
    uint64_t id = 0;
    const struct store_value *row = NULL;
    if (route_id(request, "a job's", &id) < 0)
        return NULL;
    int result = query_id(server, http_request_arena(request), TABLE_JOBS, id, "job", &row, &error);
    if (result == 0 && (uint64_t)row[JOBS_ACCOUNT].integer != route_caller(request)->account)
        result = error_set(&error, ERROR_NOT_FOUND, "job %" PRIu64 " does not exist", id);
    if (result == 0)
        return row;
    http_reply_error(request, &error);
    return NULL;
}

int handle_job_leases(struct server *server, struct arena *arena, uint64_t job,
                      struct query_rows *out_rows, struct error *error)
{
    const struct store_filter filter = {"job", STORE_EQUAL, store_integer((int64_t)job)};
    const struct store_query query = {.table = &tables[TABLE_LEASES],
                                      .filters = &filter,
                                      .filter_count = 1,
                                      .limit = JOB_LEASES_MAX};
    return query_all(server, arena, &query, out_rows, error);
}

/* One job or a page of them, being answered. */
struct job_answer {
    struct query_rows rows;
    struct text *reasons; /* of pending ones, by row: what they wait for */
    bool is_list;
    int status;
};

static int write_leases(struct server *server, struct arena *arena, uint64_t job,
                        struct json_writer *writer, struct error *error)
{
    struct query_rows leases;
    if (handle_job_leases(server, arena, job, &leases, error) < 0)
        return -1;
    const struct live_job *live = live_find(server->live, job, LIVE_WORKERS);
    json_array_begin(writer);
    for (size_t i = 0; i < leases.count; i++) {
        const struct store_value *lease = leases.items[i], *machine = NULL;
        if (query_one(server, arena, TABLE_MACHINES, "id", lease[LEASES_MACHINE], &machine, error) <
            0)
            return -1;
        const bool has_ended = lease[LEASES_STATE].integer == LEASE_STATE_ENDED;
        view_lease(
            writer,
            &(struct view_lease){
                .row = lease,
                .machine_name = machine ? machine[MACHINES_NAME].bytes : TEXT(""),
                .yield = machine && !has_ended ? (enum machine_yield)machine[MACHINES_YIELD].integer
                                               : MACHINE_YIELD_NONE,
                .live = live ? live_find_worker(live, (uint64_t)lease[LEASES_ID].integer) : NULL,
            });
    }
    json_array_end(writer);
    return 0;
}

static int write_job(struct server *server, struct arena *arena, const struct job_answer *answer,
                     size_t index, struct json_writer *writer, struct error *error)
{
    const struct store_value *row = answer->rows.items[index];
    const uint64_t id = (uint64_t)row[JOBS_ID].integer;
    const enum live_part part = answer->is_list ? LIVE_FIGURES : LIVE_WORKERS;
    json_object_begin(writer);
    const struct live_job *live = live_find(server->live, id, part);
    view_job_fields(writer,
                    &(struct view_job){.row = row, .reason = answer->reasons[index], .live = live});
    if (!answer->is_list) {
        json_field_string(writer, "policy_in_force", live ? live->policy_in_force : "");
        json_field_string(writer, "policy_reason", live ? live->policy_reason : "");
        view_count(writer, "checks", live ? live->checks : 0);
        view_count(writer, "checks_undecided", live ? live->checks_undecided : 0);
        const struct store_value *spec = NULL;
        if (query_one(server, arena, TABLE_JOB_SPECS, "job", row[JOBS_ID], &spec, error) < 0)
            return -1;
        json_key(writer, "spec");
        json_raw(writer, spec ? spec[JOB_SPECS_SPEC].bytes : TEXT("null"));
        json_key(writer, "leases");
        if (write_leases(server, arena, id, writer, error) < 0)
            return -1;
    }
    json_object_end(writer);
    return 0;
}

static int write_jobs(struct server *server, struct arena *arena, const struct job_answer *jobs,
                      struct json_writer *writer, struct error *error)
{
    if (jobs->is_list)
        query_page_begin(writer);
    for (size_t i = 0; i < jobs->rows.count; i++)
        if (write_job(server, arena, jobs, i, writer, error) < 0)
            return -1;
    if (jobs->is_list)
        query_page_end(writer, &jobs->rows);
    return 0;
}

static void send_jobs(struct server *server, struct arena *arena, const struct job_answer *jobs,
                      struct http_request *request)
{
    struct error error;
    struct view_answer answer;
    view_answer_begin(&answer);
    /* Several reads: they cost less in one transaction, and show one state. */
    int result = store_reader_begin(server->reader, &error);
    if (result == 0) {
        result = write_jobs(server, arena, jobs, &answer.writer, &error);
        store_reader_end(server->reader);
    }
    if (result < 0) {
        buffer_done(&answer.body);
        http_reply_error(request, &error);
    } else if (jobs->is_list) {
        answers_send(server->answers, &answer, request);
    } else if (jobs->status == 200) {
        answers_send_minor(server->answers, &answer, request);
    } else {
        view_answer_send(&answer, request, jobs->status);
    }
}

static void send_looked_at(struct call *call, struct http_request *request)
{
    send_jobs(call->server, call->arena, call->context, request);
    call_free(call);
}

enum { LIST_REASONS_MAX = 10 };

/* What a pending job waits for changes with every machine that comes and goes, so it is in no table
 * and the core is asked. Each costs it a search of the market, so a list has the first few. */
static int look_at_reasons(struct engine_request *request, const struct core *core,
                           struct store_batch *batch, struct error *error)
{
    (void)batch;
    (void)error;
    struct call *call = (struct call *)request;
    struct job_answer *jobs = call->context;
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, 4096);
    size_t explained = 0;
    for (size_t i = 0; i < jobs->rows.count && explained < LIST_REASONS_MAX; i++) {
        const struct job *job = core_job(core, (uint64_t)jobs->rows.items[i][JOBS_ID].integer);
        if (!job || job->state != JOB_STATE_PENDING)
            continue;
        buffer_clear(&text);
        core_explain(core, job, &text);
        explained++;
        jobs->reasons[i] = arena_copy_text(call->arena, buffer_text(&text));
    }
    return 0;
}

static bool is_pending(const struct query_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        if (rows->items[i][JOBS_STATE].integer == JOB_STATE_PENDING)
            return true;
    return false;
}

/* Takes the call; the rows are in its arena. */
static void answer_take(struct call *call, struct http_request *request)
{
    struct job_answer *jobs = call->context;
    jobs->reasons = arena_alloc(call->arena, jobs->rows.count * sizeof(*jobs->reasons));
    if (is_pending(&jobs->rows))
        call_look_take(call, look_at_reasons, send_looked_at);
    else
        send_looked_at(call, request);
}

/* Takes the call. */
static void send_job(struct call *call, struct http_request *request, uint64_t id, int status)
{
    struct job_answer *jobs = arena_alloc(call->arena, sizeof(*jobs));
    const struct store_value **row = arena_alloc(call->arena, sizeof(*row));
    struct error error;
    if (query_id(call->server, call->arena, TABLE_JOBS, id, "job", row, &error) < 0) {
        http_reply_error(request, &error);
        call_free(call);
        return;
    }
    jobs->rows.items = row;
    jobs->rows.count = 1;
    jobs->status = status;
    call->context = jobs;
    answer_take(call, request);
}

void handle_job_get(struct http_request *request, void *context)
{
    struct server *server = context;
    if (answers_reply(server->answers, request))
        return;
    const struct store_value *row = handle_job_find(context, request);
    if (!row)
        return;
    if (row[JOBS_STATE].integer == JOB_STATE_PENDING) {
        send_job(call_new(context, request), request, (uint64_t)row[JOBS_ID].integer, 200);
        return;
    }
    struct text no_reason = {0};
    const struct job_answer job = {
        .rows = {.items = &row, .count = 1}, .reasons = &no_reason, .status = 200};
    send_jobs(context, http_request_arena(request), &job, request);
}

static const char *state_choice(int index)
{
    return job_state_name((enum job_state)index);
}

static const struct list_view_filter job_filters[] = {
    {"state", "state", LIST_VIEW_CHOICE, state_choice, JOB_STATE_COUNT},
    {"name", "name", LIST_VIEW_WITHIN, .maximum = JOB_NAME_SIZE - 1},
};
static const struct list_view job_list = {
    .table = TABLE_JOBS, .is_descending = true, .filters = job_filters, .filter_count = 2};

void handle_job_list(struct http_request *request, void *context)
{
    struct server *server = context;
    if (answers_reply(server->answers, request))
        return;
    const struct store_filter own = {"account", STORE_EQUAL,
                                     store_integer((int64_t)route_caller(request)->account)};
    AUTO(call) struct call *call = call_new(server, request);
    struct job_answer *jobs = arena_alloc(call->arena, sizeof(*jobs));
    struct error error;
    if (list_view_read(request, server, call->arena, &job_list, &own, &jobs->rows, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    jobs->is_list = true;
    jobs->status = 200;
    call->context = jobs;
    answer_take(TAKE(call), request);
}

/* ---- Changing -------------------------------------------------------------------------------- */

static void job_created(struct call *call, struct http_request *request)
{
    send_job(call, request, call->request.subject, 201);
}

struct submission {
    struct job_spec spec;         /* first: what is being read into */
    int64_t machine_hourly_micro; /* of those that are started for it; 0: none are */
};

static int make_request(struct call *call, struct job_request *out_job, struct error *error)
{
    struct submission *submission = call->context;
    if (handle_job_request(call, &submission->spec, out_job, error) < 0)
        return -1;
    return cloud_fit_job(call->server->cloud, &submission->spec, out_job,
                         &submission->machine_hourly_micro, error);
}

/* The secrets come last, as sealing writes a file; what was made of the spec has no name of it. */
static int prepare_submission(struct call *call, struct job_request *out_job, struct error *error)
{
    struct job_spec *spec = &((struct submission *)call->context)->spec;
    if (make_request(call, out_job, error) < 0 ||
        check_inputs(call->server, call->arena, call->caller.account, spec, error) < 0 ||
        secrets_seal(call, spec, error) < 0)
        return -1;
    return spec->secret_file.size ? make_request(call, out_job, error) : 0;
}

/* Core thread: machines are not started for one who cannot pay for them. */
static int check_pay(struct engine_request *request, const struct core *core, struct error *error)
{
    const struct submission *submission = ((const struct call *)request)->context;
    const struct job_request *job = &request->command.submit_job;
    const struct ledger_account *balance = core_balance(core, job->account);
    if (!submission->machine_hourly_micro)
        return 0;
    return cloud_job_check_pay(job, submission->machine_hourly_micro,
                               handle_quote_servers(core, job, request->now_ms),
                               balance ? ledger_holdable_micro(balance) : 0, error);
}

/* Takes the call. Every input is named. */
static void submit_take(struct call *call, struct http_request *request)
{
    struct job_request job = {0};
    struct error error;
    if (prepare_submission(call, &job, &error) < 0) {
        http_reply_error(request, &error);
        call_free(call);
        return;
    }
    if (call->has_key)
        memcpy(job.idempotency_hash, call->key_hash, sizeof(job.idempotency_hash));
    call->request.command = (struct command){.kind = COMMAND_SUBMIT_JOB, .submit_job = job};
    call->prepare = check_pay;
    call_start_take(call, job_created);
}

static void data_given(void *context, const struct job_input *inputs, const struct error *error)
{
    struct call *call = context;
    struct job_spec *spec = &((struct submission *)call->context)->spec;
    struct http_request *request = call_http(call);
    if (!inputs || !request) {
        if (request && error->code == ERROR_EXHAUSTED)
            http_reply_problem(request, 507, "storage_full", error->message);
        else if (request)
            http_reply_error(request, error);
        call_free(call);
        return;
    }
    struct job_input *own = arena_alloc(call->arena, DATASET_PART_COUNT * sizeof(*own));
    memcpy(own, inputs, DATASET_PART_COUNT * sizeof(*own));
    spec->inputs = own;
    spec->input_count = DATASET_PART_COUNT;
    submit_take(call, request);
}

void handle_job_create(struct http_request *request, void *context)
{
    AUTO(call) struct call *call = call_new(context, request);
    struct submission *submission = arena_alloc(call->arena, sizeof(*submission));
    struct job_spec *spec = &submission->spec;
    struct error error;
    call->context = submission;
    if (job_spec_read_new(call->arena, http_request_body(request), spec, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    if (spec->resources.image_id.size && !job_spec_image(spec)) {
        http_reply_problem(
            request, 400, "invalid",
            "inputs: the image is missing: upload it and name its manifest (souk job "
            "submit does both)");
        return;
    }
    if ((spec->requirements.size || spec->wheels.size) && !job_spec_wheels(spec)) {
        http_reply_problem(
            request, 400, "invalid",
            "inputs: the wheels are missing: upload their archive and name its manifest (souk job "
            "submit does both)");
        return;
    }
    for (size_t i = 0; i < spec->file_mount_count; i++)
        if (!job_spec_mount(spec, i)) {
            http_reply_problem(
                request, 400, "invalid",
                "inputs: files of file_mounts are missing: upload them and name their manifests "
                "(souk job submit does both)");
            return;
        }
    if (!spec->input_count && !job_spec_is_command(spec)) {
        struct call *taken = TAKE(call);
        datasets_give(taken->server->datasets, taken->caller.account, &spec->train, data_given,
                      taken);
        return;
    }
    submit_take(TAKE(call), request);
}

static void job_cancelled(struct call *call, struct http_request *request)
{
    send_job(call, request, call->request.command.cancel_job.job, 200);
}

void handle_job_cancel(struct http_request *request, void *context)
{
    const struct store_value *row = handle_job_find(context, request);
    if (!row)
        return;
    struct call *call = call_new(context, request);
    call->request.command = (struct command){
        .kind = COMMAND_CANCEL_JOB,
        .cancel_job = {.account = call->caller.account, .job = (uint64_t)row[JOBS_ID].integer},
    };
    call_start_take(call, job_cancelled);
}

struct extend_body {
    int64_t max_run_ms;
    int64_t by_ms;
};
static const struct json_field extend_fields[] = {
    {"max_run_ms", JSON_I64, offsetof(struct extend_body, max_run_ms), .minimum = 1,
     .maximum = PRICE_RUN_MS_MAX},
    {"by_ms", JSON_I64, offsetof(struct extend_body, by_ms), .minimum = 1,
     .maximum = PRICE_RUN_MS_MAX},
};
static const struct json_schema extend_schema =
    JSON_SCHEMA("extension", extend_fields, struct extend_body);

static void job_extended(struct call *call, struct http_request *request)
{
    send_job(call, request, call->request.command.extend_job.job, 200);
}

void handle_job_extend(struct http_request *request, void *context)
{
    const struct store_value *row = handle_job_find(context, request);
    if (!row)
        return;
    AUTO(call) struct call *call = call_new(context, request);
    struct extend_body body = {0};
    struct error error;
    int result = json_read(call->arena, http_request_body(request), &extend_schema, &body, &error);
    if (result == 0 && (body.max_run_ms > 0) == (body.by_ms > 0))
        result = error_set(&error, ERROR_INVALID, "by_ms: give it or max_run_ms");
    if (result < 0) {
        http_reply_error(request, &error);
        return;
    }
    call->request.command = (struct command){
        .kind = COMMAND_EXTEND_JOB,
        .extend_job = {.account = call->caller.account,
                       .job = (uint64_t)row[JOBS_ID].integer,
                       .max_run_ms = body.max_run_ms,
                       .more_ms = body.by_ms},
    };
    call_start_take(TAKE(call), job_extended);
}

static void lease_released(struct call *call, struct http_request *request)
{
    const struct store_value *row = NULL;
    struct error error;
    if (query_id(call->server, call->arena, TABLE_LEASES, call->request.command.release_lease.lease,
                 "lease", &row, &error) == 0) {
        send_job(call, request, (uint64_t)row[LEASES_JOB].integer, 200);
        return;
    }
    http_reply_error(request, &error);
    call_free(call);
}

void handle_lease_release(struct http_request *request, void *context)
{
    uint64_t lease = 0;
    if (route_id(request, "a lease's", &lease) < 0)
        return;
    struct call *call = call_new(context, request);
    call->request.command = (struct command){
        .kind = COMMAND_RELEASE_LEASE,
        .release_lease = {.account = call->caller.account, .lease = lease},
    };
    call_start_take(call, lease_released);
}
