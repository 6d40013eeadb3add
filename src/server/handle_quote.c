/* What a job would cost: quotes, and a job file checked from end to end. Nothing changes. */
#include "core/core.h"
#include "runtime/job_file.h"
#include "server/call.h"
#include "server/cloud.h"
#include "server/cloud_job.h"
#include "server/datasets.h"
#include "server/handle_job.h"
#include "server/handlers.h"
#include "server/hub.h"
#include "server/job_request.h"
#include "server/job_software.h"
#include "server/view.h"

int handle_job_request(struct call *call, const struct job_spec *spec,
                       struct job_request *out_request, struct error *error)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    job_spec_write(spec, &json);
    if (buffer_check(&json, error) < 0)
        return -1;
    return job_request_of_spec(spec, arena_copy_text(call->arena, buffer_text(&json)),
                               call->caller.account, clock_utc_ms(call->server->clock), out_request,
                               error);
}

struct match_quote handle_quote_servers(const struct core *core, const struct job_request *request,
                                        int64_t now_ms)
{
    struct job_request servers = *request;
    servers.num_nodes = 0;
    return core_quote_at(core, &servers, now_ms);
}

struct slot_cost {
    int64_t slot;
    struct match_quote quote;
};

struct quote_look {
    struct job_request request;
    int64_t machine_hourly_micro; /* of machines that are started for it; 0: none are */
    struct core_quote quote;
    int64_t available_micro;
    struct match_explanation why; /* when it cannot start now; the same for the next */
    struct text reason, warning;
    bool is_measuring;
    const struct job_spec *spec;

    /* Of a job file that is checked. */
    int64_t now_ms, offset_ms, running;
    struct slot_cost slots[1 + CORE_PRICE_FORECASTS]; /* from the running one on */
    struct text refusal;                              /* of the market itself; empty: none */
};

/* ---- Quotes ---------------------------------------------------------------------------------- */

/* Machines near each other may turn up in a moment. */
static bool seek(const struct call *call, const struct core *core, const struct quote_look *look)
{
    struct core_seeker seeker;
    if (look->quote.result != MATCH_FEW_MACHINES)
        return false;
    core_seeker_of(core, &look->request, &seeker);
    return hub_seek(call->server->hub, &seeker);
}

/* Machines that are started for it are let at no less than they cost. */
static void raise_quote(const struct core *core, const struct quote_look *look, int64_t start_ms,
                        struct match_quote *quote)
{
    if (!look->machine_hourly_micro)
        return;
    const struct match_quote least =
        cloud_job_quote(&look->request, look->machine_hourly_micro,
                        handle_quote_servers(core, &look->request, start_ms));
    if (quote->hourly_micro < least.hourly_micro)
        quote->hourly_micro = least.hourly_micro;
    if (quote->total_micro < least.total_micro)
        quote->total_micro = least.total_micro;
}

static int look_at_quote(struct engine_request *request, const struct core *core,
                         struct store_batch *batch, struct error *error)
{
    (void)batch;
    struct call *call = (struct call *)request;
    struct quote_look *look = call->context;
    const struct ledger_account *balance = core_balance(core, look->request.account);
    look->available_micro = balance ? ledger_available_micro(balance) : 0;
    if (core_quote(core, &look->request, &look->quote, error) < 0)
        return -1;
    raise_quote(core, look, request->now_ms, &look->quote.wish);
    look->warning = job_software_warning(call->arena, core, look->spec, &look->request);
    if (look->quote.result == MATCH_PLACED)
        return 0;
    struct buffer words AUTO_BUFFER;
    buffer_init(&words, 4096);
    core_explain_request(core, &look->request, look->quote.result, &look->why, &words);
    look->reason = arena_copy_text(call->arena, buffer_text(&words));
    look->is_measuring = seek(call, core, look);
    return 0;
}

static struct match_quote placed_quote(const struct quote_look *look)
{
    const struct match_quote none = {0};
    return look->quote.result == MATCH_PLACED ? look->quote.placed : none;
}

static void write_quote(struct json_writer *writer, const struct call *call,
                        const struct quote_look *look)
{
    const struct core_quote *quote = &look->quote;
    const bool can_start = quote->result == MATCH_PLACED;
    const struct match_quote placed = placed_quote(look);
    const __int128 hourly = can_start ? placed.hourly_micro : quote->wish.hourly_micro;
    json_object_begin(writer);
    json_field_i64(writer, "wish_microcredits", quote->wish.total_micro);
    json_field_i64(writer, "wish_hourly_microcredits", quote->wish.hourly_micro);
    json_field_bool(writer, "can_start", can_start);
    json_field_text(writer, "reason", look->reason);
    json_field_text(writer, "warning", look->warning);
    json_field_bool(writer, "is_lacking", look->why.is_lacking);
    json_field_bool(writer, "is_measuring", look->is_measuring);
    json_field_string(writer, "nearest", look->why.nearest);
    json_field_i64(writer, "expected_start_ms",
                   call_still_to_come_ms(call, look->why.expected_start_ms));
    json_field_i64(writer, "placed_microcredits", placed.total_micro);
    json_field_i64(writer, "placed_hourly_microcredits", placed.hourly_micro);
    json_field_i64(writer, "expected_microcredits",
                   (int64_t)(hourly * look->request.expected_run_ms / 3600000));
    json_field_u64(writer, "server_machines", quote->server_machines);
    json_field_bool(writer, "has_replica_room", quote->has_replica_room);
    json_field_i64(writer, "max_run_ms", look->request.max_run_ms);
    json_field_i64(writer, "expected_run_ms", look->request.expected_run_ms);
    json_field_i64(writer, "available_microcredits", look->available_micro);
    json_field_i64(writer, "credits_micro_per_usd",
                   call->server->cloud ? cloud_credits_micro(call->server->cloud, 1000000) : 0);
    json_object_end(writer);
}

static void send_quote(struct call *call, struct http_request *request)
{
    struct view_answer answer;
    view_answer_begin(&answer);
    write_quote(&answer.writer, call, call->context);
    view_answer_send(&answer, request, 200);
    call_free(call);
}

void handle_quote_create(struct http_request *request, void *context)
{
    AUTO(call) struct call *call = call_new(context, request);
    struct quote_look *look = arena_alloc(call->arena, sizeof(*look));
    call->context = look;
    struct job_spec *spec = arena_alloc(call->arena, sizeof(*spec));
    struct error error;
    look->spec = spec;
    if (job_spec_read_new(call->arena, http_request_body(request), spec, &error) < 0 ||
        handle_job_request(call, spec, &look->request, &error) < 0 ||
        cloud_fit_job(call->server->cloud, spec, &look->request, &look->machine_hourly_micro,
                      &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    call_look_take(TAKE(call), look_at_quote, send_quote);
}

/* ---- A job file, checked ------------------------------------------------------------------------
 */

#define FILE_NAME "job"
enum { MISTAKES_SIZE_MAX = 256 << 10, YAML_SIZE_MAX = 4 * JOB_SPEC_SIZE_MAX };

static void write_mistake(struct json_writer *writer, struct text line)
{
    const struct job_mistake mistake = job_mistake_read(line, FILE_NAME);
    job_mistake_write(writer, &mistake);
}

static void write_nothing_more(struct json_writer *writer)
{
    static const char *const names[] = {"spec", "yaml", "quote", "slots"};
    json_key(writer, "needs");
    json_array_begin(writer);
    json_array_end(writer);
    json_field_i64(writer, "held_microcredits", 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        json_key(writer, names[i]);
        json_null(writer);
    }
}

/* `first` and a line for each one more. */
static void send_mistakes(struct http_request *request, struct text first, struct text rest)
{
    struct view_answer answer;
    view_answer_begin(&answer);
    struct json_writer *writer = &answer.writer;
    struct text line;
    json_object_begin(writer);
    json_field_bool(writer, "is_valid", false);
    json_key(writer, "mistakes");
    json_array_begin(writer);
    write_mistake(writer, first);
    while (text_cut(rest, '\n', &line, &rest))
        write_mistake(writer, line);
    json_array_end(writer);
    write_nothing_more(writer);
    json_object_end(writer);
    view_answer_send(&answer, request, 200);
}

static int look_at_check(struct engine_request *request, const struct core *core,
                         struct store_batch *batch, struct error *error)
{
    struct call *call = (struct call *)request;
    struct quote_look *look = call->context;
    if (look_at_quote(request, core, batch, error) < 0) {
        look->refusal = arena_copy_text(call->arena, text_of(error->message));
        return 0;
    }
    look->offset_ms = core_settings(core)->slot_offset_ms;
    look->running = core_price_slot_at(core, look->now_ms);
    for (int i = 0; i <= CORE_PRICE_FORECASTS; i++) {
        const int64_t slot = look->running + i;
        const int64_t start_ms = i ? slot_start_ms(slot, look->offset_ms) : look->now_ms;
        look->slots[i] = (struct slot_cost){slot, core_quote_at(core, &look->request, start_ms)};
        raise_quote(core, look, start_ms, &look->slots[i].quote);
    }
    return 0;
}

static bool is_mount_missing(const struct job_spec *spec)
{
    for (size_t i = 0; i < spec->file_mount_count; i++)
        if (!job_spec_mount(spec, i))
            return true;
    return false;
}

/* What has to be sent before it can be submitted. */
static void write_needs(struct json_writer *writer, struct server *server,
                        const struct job_spec *spec)
{
    json_key(writer, "needs");
    json_array_begin(writer);
    if (spec->workdir.size)
        json_string(writer, "workdir");
    if (spec->resources.image_id.size && !job_spec_image(spec))
        json_string(writer, "image");
    if ((spec->requirements.size || spec->wheels.size) && !job_spec_wheels(spec))
        json_string(writer, "wheels");
    if (is_mount_missing(spec))
        json_string(writer, "file_mounts");
    if (!job_spec_is_command(spec) && !spec->input_count &&
        !datasets_has(server->datasets, &spec->train))
        json_string(writer, "data");
    json_array_end(writer);
}

static void write_slots(struct json_writer *writer, const struct quote_look *look)
{
    json_key(writer, "slots");
    json_array_begin(writer);
    for (int i = 0; i <= CORE_PRICE_FORECASTS; i++) {
        const struct slot_cost *cost = &look->slots[i];
        json_object_begin(writer);
        view_slot_times(writer, cost->slot, look->running, look->offset_ms);
        json_field_i64(writer, "wish_microcredits", cost->quote.total_micro);
        json_field_i64(writer, "wish_hourly_microcredits", cost->quote.hourly_micro);
        json_object_end(writer);
    }
    json_array_end(writer);
}

static int write_spec(struct json_writer *writer, struct arena *arena, const struct job_spec *spec,
                      struct error *error)
{
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, YAML_SIZE_MAX);
    job_spec_write(spec, &text);
    if (buffer_check(&text, error) < 0)
        return -1;
    json_key(writer, "spec");
    json_raw(writer, buffer_text(&text));
    buffer_clear(&text);
    if (job_file_write_short(arena, spec, &text, error) < 0)
        return -1;
    json_field_text(writer, "yaml", buffer_text(&text));
    return 0;
}

static void send_check(struct call *call, struct http_request *request)
{
    const struct quote_look *look = call->context;
    struct view_answer answer;
    struct error error;
    if (look->refusal.size) {
        send_mistakes(request, look->refusal, (struct text){0});
        call_free(call);
        return;
    }
    view_answer_begin(&answer);
    struct json_writer *writer = &answer.writer;
    const struct match_quote placed = placed_quote(look);
    json_object_begin(writer);
    json_field_bool(writer, "is_valid", true);
    json_key(writer, "mistakes");
    json_array_begin(writer);
    json_array_end(writer);
    write_needs(writer, call->server, look->spec);
    json_field_i64(writer, "held_microcredits",
                   look->quote.result == MATCH_PLACED ? placed.total_micro
                                                      : look->quote.wish.total_micro);
    if (write_spec(writer, call->arena, look->spec, &error) < 0) {
        buffer_done(&answer.body);
        http_reply_error(request, &error);
        call_free(call);
        return;
    }
    json_key(writer, "quote");
    write_quote(writer, call, look);
    write_slots(writer, look);
    json_object_end(writer);
    view_answer_send(&answer, request, 200);
    call_free(call);
}

void handle_job_check(struct http_request *request, void *context)
{
    AUTO(call) struct call *call = call_new(context, request);
    struct quote_look *look = arena_alloc(call->arena, sizeof(*look));
    struct job_spec *spec = arena_alloc(call->arena, sizeof(*spec));
    struct buffer more AUTO_BUFFER;
    struct error error;
    call->context = look;
    buffer_init(&more, MISTAKES_SIZE_MAX);
    const struct text file = arena_copy_text(call->arena, http_request_body(request));
    if (job_file_parse(call->arena, file, FILE_NAME, spec, &more, &error) < 0) {
        send_mistakes(request, text_of(error.message), buffer_text(&more));
        return;
    }
    if (spec->secret_count) {
        send_mistakes(request,
                      TEXT("secrets: are sent with the job alone, by souk job submit or POST "
                           "/v1/jobs"),
                      (struct text){0});
        return;
    }
    /* A folder comes as an archive: what it is called costs nothing. */
    struct job_spec asked = *spec;
    asked.workdir = (struct text){0};
    struct job_mount *mounts =
        arena_alloc(call->arena, (spec->file_mount_count + 1) * sizeof(*mounts));
    for (size_t i = 0; i < spec->file_mount_count; i++)
        mounts[i] = (struct job_mount){.target = spec->file_mounts[i].target};
    asked.file_mounts = mounts;
    if (handle_job_request(call, &asked, &look->request, &error) < 0 ||
        cloud_fit_job(call->server->cloud, spec, &look->request, &look->machine_hourly_micro,
                      &error) < 0) {
        send_mistakes(request, text_of(error.message), (struct text){0});
        return;
    }
    look->spec = spec;
    look->now_ms = clock_utc_ms(call->server->clock);
    call_look_take(TAKE(call), look_at_check, send_check);
}
