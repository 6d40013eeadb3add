/* Machines: enrolling them by a one-time code, showing them, taking them back. */
#include "server/handle_machine.h"

#include "server/answers.h"
#include "server/call.h"
#include "server/handlers.h"
#include "server/hub.h"
#include "server/list_view.h"
#include "server/offer_body.h"
#include "server/probe_body.h"
#include "server/query.h"
#include "server/view.h"

#include <inttypes.h>

enum { ENROL_CODE_MS = 15 * 60000, SCHEDULE_WORDS_MAX = 512, FRESH_KEPT_MS = 1000 };

static void code_created(struct call *call, struct http_request *request)
{
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_field_string(&answer.writer, "code", call->context);
    json_field_i64(&answer.writer, "expires_ms", call->request.command.add_code.expires_ms);
    json_field_string(&answer.writer, "fingerprint", keys_fingerprint(call->server->keys));
    json_field_string(&answer.writer, "link_address", call->server->link_address);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 201);
    call_free(call);
}

void handle_machine_code_create(struct http_request *request, void *context)
{
    struct server *server = context;
    struct call *call = call_new(server, request);
    char *code = arena_alloc(call->arena, KEYS_TOKEN_SIZE);
    token_new("enrol", code);
    call->context = code;
    call->request.command = (struct command){
        .kind = COMMAND_ADD_CODE,
        .add_code = {.kind = CODE_KIND_ENROL,
                     .account = call->caller.account,
                     .expires_ms = clock_utc_ms(server->clock) + ENROL_CODE_MS},
    };
    token_hash(text_of(code), call->request.command.add_code.hash);
    call_start_take(call, code_created);
}

/* Whether a code would enrol a machine now, before its owner answers more questions. It says no
 * more than an attempt with it would. */
struct code_check {
    struct text code;
    uint8_t hash[MARKET_HASH_SIZE];
    int64_t expires_ms;
};
static const struct json_field code_check_fields[] = {
    {"code", JSON_TEXT, offsetof(struct code_check, code), .is_required = true, .size_max = 128},
};
static const struct json_schema code_check_schema =
    JSON_SCHEMA("code", code_check_fields, struct code_check);

static int look_at_code(struct engine_request *request, const struct core *core,
                        struct store_batch *batch, struct error *error)
{
    struct call *call = (struct call *)request;
    struct code_check *check = call->context;
    (void)batch;
    const struct code *code = core_code_by_hash(core, check->hash);
    if (!code || code->kind != CODE_KIND_ENROL || code->expires_ms <= request->now_ms)
        return error_set(error, ERROR_REFUSED, "the code is wrong, used or expired");
    check->expires_ms = code->expires_ms;
    return 0;
}

static void send_code_check(struct call *call, struct http_request *request)
{
    const struct code_check *check = call->context;
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_field_i64(&answer.writer, "expires_ms", check->expires_ms);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 200);
    call_free(call);
}

void handle_machine_code_check(struct http_request *request, void *context)
{
    AUTO(call) struct call *call = call_new(context, request);
    struct code_check *check = arena_alloc(call->arena, sizeof(*check));
    struct error error;
    if (json_read(call->arena, http_request_body(request), &code_check_schema, check, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    token_hash(check->code, check->hash);
    call->context = check;
    call_look_take(TAKE(call), look_at_code, send_code_check);
}

/* ---- What a daemon sends --------------------------------------------------------------------- */

struct new_offer {
    struct offer_terms terms;
    bool is_paused;
    int network, install;
    struct json_array roles;
    struct text when, zone;
};
static const char *const networks[] = {"none", "job", "open", NULL};
static const char *const installs[] = {"none", "wheels", "index", NULL};
static const struct json_field offer_fields[] = {
    {"cores_milli", JSON_I64, offsetof(struct new_offer, terms.resources.cores_milli),
     .is_required = true, .minimum = 0, .maximum = RESOURCES_CORES_MILLI_MAX},
    {"ram_bytes", JSON_I64, offsetof(struct new_offer, terms.resources.ram_bytes),
     .is_required = true, .minimum = 0, .maximum = RESOURCES_BYTES_MAX},
    {"disk_bytes", JSON_I64, offsetof(struct new_offer, terms.resources.disk_bytes),
     .is_required = true, .minimum = 0, .maximum = RESOURCES_BYTES_MAX},
    {"gpus_milli", JSON_I64, offsetof(struct new_offer, terms.resources.gpus_milli), .minimum = 0,
     .maximum = RESOURCES_GPUS_MILLI_MAX},
    {"roles", JSON_TEXTS, offsetof(struct new_offer, roles), .is_required = true, .size_max = 8},
    {"paused", JSON_BOOL, offsetof(struct new_offer, is_paused)},
    {"minimum", JSON_OBJECT, offsetof(struct new_offer, terms.minimum),
     .schema = &offer_minimum_schema},
    {"network", JSON_CHOICE, offsetof(struct new_offer, network), .choices = networks},
    {"install", JSON_CHOICE, offsetof(struct new_offer, install), .choices = installs},
    {"when", JSON_TEXT, offsetof(struct new_offer, when), .size_max = SCHEDULE_WORDS_MAX},
    {"zone", JSON_TEXT, offsetof(struct new_offer, zone), .size_max = SCHEDULE_WORDS_MAX},
};
static const struct json_schema offer_schema = JSON_SCHEMA("offer", offer_fields, struct new_offer);

static int read_offer(struct call *call, struct new_offer *body, struct error *error)
{
    body->terms.network = (enum offer_network)body->network;
    body->terms.install = (enum offer_install)body->install;
    body->terms.paused_until_ms = body->is_paused ? OFFER_PAUSED_FOREVER : 0;
    if (body->when.size > 0 &&
        offer_body_schedule(call->arena, body->when, body->zone, clock_utc_ms(call->server->clock),
                            &body->terms, error) < 0)
        return -1;
    return view_read_roles(&body->roles, &body->terms.roles, error);
}

struct new_machine {
    struct text code;
    uint8_t public_key[MACHINE_KEY_SIZE];
    struct text name;
    struct probe probe;
    struct new_offer offer;
    uint8_t signature[KEYS_SIGNATURE_SIZE];
};
static const struct json_field new_machine_fields[] = {
    {"code", JSON_TEXT, offsetof(struct new_machine, code), .is_required = true, .size_max = 128},
    {"public_key", JSON_HEX, offsetof(struct new_machine, public_key), .is_required = true,
     .size_max = MACHINE_KEY_SIZE},
    {"name", JSON_TEXT, offsetof(struct new_machine, name), .size_max = 64},
    {"probe", JSON_OBJECT, offsetof(struct new_machine, probe), .is_required = true,
     .schema = &probe_body_schema},
    {"offer", JSON_OBJECT, offsetof(struct new_machine, offer), .is_required = true,
     .schema = &offer_schema},
    {"signature", JSON_HEX, offsetof(struct new_machine, signature), .is_required = true,
     .size_max = KEYS_SIGNATURE_SIZE},
};
static const struct json_schema new_machine_schema =
    JSON_SCHEMA("machine", new_machine_fields, struct new_machine);

static int read_machine(struct call *call, struct http_request *request, struct new_machine *body,
                        struct error *error)
{
    if (json_read(call->arena, http_request_body(request), &new_machine_schema, body, error) < 0 ||
        read_offer(call, &body->offer, error) < 0)
        return -1;
    /* Whoever holds a code proves that the key it enrols is its own. */
    const char *signed_text = arena_format(call->arena, "souk-enrol\n" TEXT_FORMAT "\n" TEXT_FORMAT,
                                           TEXT_ARGS(body->code), TEXT_ARGS(body->name));
    if (!keys_verify(body->public_key, text_of(signed_text), body->signature))
        return error_set(error, ERROR_REFUSED, "the signature is not by the public key given");
    return 0;
}

static void machine_enrolled(struct call *call, struct http_request *request)
{
    const struct store_value *row = NULL;
    struct error error;
    struct server *server = call->server;
    if (query_id(server, call->arena, TABLE_MACHINES, call->request.subject, "machine", &row,
                 &error) < 0) {
        http_reply_error(request, &error);
        call_free(call);
        return;
    }
    const uint64_t generation = (uint64_t)row[MACHINES_GENERATION].integer;
    uint8_t key[KEYS_SECRET_SIZE];
    char hex[2 * KEYS_SECRET_SIZE + 1];
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_field_u64(&answer.writer, "machine", call->request.subject);
    json_field_text(&answer.writer, "name", row[MACHINES_NAME].bytes);
    json_field_u64(&answer.writer, "generation", generation);
    keys_machine(server->keys, call->request.subject, generation, key);
    text_hex_encode(key, sizeof(key), hex);
    json_field_string(&answer.writer, "link_key", hex);
    json_field_string(&answer.writer, "link_address", server->link_address);
    text_hex_encode(keys_public(server->keys), KEYS_PUBLIC_SIZE, hex);
    json_field_string(&answer.writer, "server_public_key", hex);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 201);
    call_free(call);
}

void handle_machine_enrol(struct http_request *request, void *context)
{
    AUTO(call) struct call *call = call_new(context, request);
    struct new_machine *body = arena_alloc(call->arena, sizeof(*body));
    struct error error;
    if (read_machine(call, request, body, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    call->request.command.kind = COMMAND_ENROL_MACHINE;
    __typeof__(call->request.command.enrol_machine) *enrol = &call->request.command.enrol_machine;
    token_hash(body->code, enrol->code_hash);
    memcpy(enrol->public_key, body->public_key, sizeof(enrol->public_key));
    enrol->name = body->name;
    enrol->probe = body->probe;
    enrol->offer = body->offer.terms;
    call_start_take(TAKE(call), machine_enrolled);
}

/* ---- Showing ------------------------------------------------------------------------------------
 */

static void write_near(struct server *server, struct arena *arena, uint64_t machine,
                       struct json_writer *writer)
{
    struct hub_near near[HUB_NEAR_MAX];
    const size_t count = hub_machine_near(server->hub, machine, near);
    json_key(writer, "near");
    json_array_begin(writer);
    for (size_t i = 0; i < count; i++) {
        json_object_begin(writer);
        json_field_u64(writer, "machine", near[i].machine);
        json_field_text(writer, "machine_name",
                        query_name(server, arena, TABLE_MACHINES, near[i].machine));
        json_field_i64(writer, "rtt_us", near[i].rtt_us);
        json_object_end(writer);
    }
    json_array_end(writer);
}

/* What its last heartbeat said: not in its row, and so not for keeping. */
static void write_live(struct server *server, struct arena *arena, uint64_t machine, bool is_mine,
                       struct json_writer *writer)
{
    struct hub_live live;
    if (!hub_machine_live(server->hub, machine, &live))
        return;
    answers_forget(server->answers);
    json_key(writer, "live");
    json_object_begin(writer);
    if (is_mine) { /* what its owner does there is nobody else's business */
        hub_live_write(writer, &live);
    } else {
        json_field_i64(writer, "heard_ms", live.heard_ms);
        json_field_i64(writer, "rtt_us", live.rtt_us);
    }
    write_near(server, arena, machine, writer);
    json_object_end(writer);
}

/* To the second, and so for keeping no longer than that. */
static bool read_fresh(struct server *server, uint64_t machine, int64_t *out_fresh_s)
{
    int64_t silence_ms;
    if (!hub_machine_silence(server->hub, machine, &silence_ms))
        return false;
    *out_fresh_s = silence_ms / 1000;
    answers_until(server->answers, clock_utc_ms(server->clock) + FRESH_KEPT_MS);
    return true;
}

/* Its daemon's word, and of no row: until when a machine is paused is its owner's to know. */
static int64_t read_pause_end(struct server *server, const struct store_value *row, bool is_mine)
{
    const enum machine_yield yield = (enum machine_yield)row[MACHINES_YIELD].integer;
    if (!is_mine || (yield != MACHINE_YIELD_PAUSED && yield != MACHINE_YIELD_PAUSED_REMOTELY))
        return 0;
    answers_forget(server->answers);
    return hub_machine_paused_until_ms(server->hub, (uint64_t)row[MACHINES_ID].integer);
}

static void write_view(struct server *server, struct arena *arena, uint64_t account,
                       const struct store_value *row, bool has_live, struct json_writer *writer)
{
    const uint64_t owner = (uint64_t)row[MACHINES_OWNER].integer;
    struct view_machine view = {
        .row = row,
        .account_name = query_name(server, arena, TABLE_ACCOUNTS, owner),
        .is_mine = owner == account,
    };
    view.paused_until_ms = read_pause_end(server, row, view.is_mine);
    view.is_heard = read_fresh(server, (uint64_t)row[MACHINES_ID].integer, &view.fresh_s);
    json_object_begin(writer);
    view_machine(writer, &view);
    if (has_live)
        write_live(server, arena, (uint64_t)row[MACHINES_ID].integer, view.is_mine, writer);
    json_object_end(writer);
}

static void write_machine(struct server *server, struct arena *arena, uint64_t account,
                          const struct store_value *row, struct json_writer *writer)
{
    write_view(server, arena, account, row, /* has_live= */ false, writer);
}

static const char *state_choice(int index)
{
    return machine_state_name((enum machine_state)index);
}

static const char *availability_choice(int index)
{
    return machine_availability_name((enum machine_availability)index);
}

static const struct list_view_filter machine_filters[] = {
    {"mine", "owner", LIST_VIEW_MINE},
    {"name", "name", LIST_VIEW_TEXT},
    {"state", "state", LIST_VIEW_CHOICE, state_choice, MACHINE_STATE_COUNT},
    {"availability", "availability", LIST_VIEW_CHOICE, availability_choice,
     MACHINE_AVAILABILITY_COUNT},
    {"min_cores_milli", "free_cores_milli", LIST_VIEW_LEAST, .maximum = RESOURCES_CORES_MILLI_MAX},
    {"min_ram_bytes", "free_ram_bytes", LIST_VIEW_LEAST, .maximum = RESOURCES_BYTES_MAX},
    {"min_gpus_milli", "free_gpus_milli", LIST_VIEW_LEAST, .maximum = RESOURCES_GPUS_MILLI_MAX},
    {"min_disk_bytes", "free_disk_bytes", LIST_VIEW_LEAST, .maximum = RESOURCES_BYTES_MAX},
    {"labels", "labels", LIST_VIEW_LABELS, .column_too = "offer_labels"},
    {"max_rtt_us", "rtt_us", LIST_VIEW_MOST, .maximum = MACHINE_RTT_US_MAX},
    {"min_reliability_milli", "reliability_milli", LIST_VIEW_LEAST, .maximum = 1000},
    {"min_speed_milli", "speed_weight_milli", LIST_VIEW_LEAST, .maximum = PRICE_SPEED_MILLI_MAX},
    {"max_core_micro", "minimum_core_micro", LIST_VIEW_MOST, .maximum = PRICE_PER_HOUR_MAX,
     .is_zero_good = true},
};
static const struct list_view_sort machine_sorts[] = {
    {"free", "free_cores_milli", .is_descending = true},
    {"price", "minimum_core_micro"},
    {"reliability", "reliability_milli", .is_descending = true},
    {"rtt", "rtt_us", .leaves_out_zero = true},
    {"speed", "speed_weight_milli", .is_descending = true},
};
static const struct list_view machine_list = {
    .table = TABLE_MACHINES,
    .filters = machine_filters,
    .filter_count = sizeof(machine_filters) / sizeof(*machine_filters),
    .sorts = machine_sorts,
    .sort_count = sizeof(machine_sorts) / sizeof(*machine_sorts),
    .write = write_machine,
};

void handle_machine_list(struct http_request *request, void *context)
{
    struct server *server = context;
    if (!answers_reply(server->answers, request))
        list_view_send(request, server, &machine_list, NULL);
}

void handle_machine_send(struct server *server, struct http_request *request, uint64_t account,
                         uint64_t machine)
{
    const struct store_value *row = NULL;
    struct error error;
    struct arena *arena = http_request_arena(request);
    if (query_id(server, arena, TABLE_MACHINES, machine, "machine", &row, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    write_view(server, arena, account, row, /* has_live= */ true, &answer.writer);
    answers_send_minor(server->answers, &answer, request);
}

void handle_machine_get(struct http_request *request, void *context)
{
    struct server *server = context;
    uint64_t machine = 0;
    if (!answers_reply(server->answers, request) && route_id(request, "a machine's", &machine) == 0)
        handle_machine_send(context, request, route_caller(request)->account, machine);
}

/* ---- The owner's word to the machine --------------------------------------------------------- */

enum { PAUSE_MS_MIN = 1000 };

struct pause_body {
    int64_t for_ms;   /* 0: until it is resumed */
    int64_t until_ms; /* instead */
};
static const struct json_field pause_fields[] = {
    {"for_ms", JSON_I64, offsetof(struct pause_body, for_ms), .minimum = PAUSE_MS_MIN,
     .maximum = PRICE_RUN_MS_MAX},
    {"until_ms", JSON_I64, offsetof(struct pause_body, until_ms), .minimum = 1,
     .maximum = MARKET_TIME_MS_MAX},
};
static const struct json_schema pause_schema =
    JSON_SCHEMA("pause", pause_fields, struct pause_body);

static int read_pause(struct server *server, struct http_request *request, int64_t *out_for_ms,
                      struct error *error)
{
    struct pause_body body = {0};
    const struct text json = http_request_body(request);
    if (json.size > 0 &&
        json_read(http_request_arena(request), json, &pause_schema, &body, error) < 0)
        return -1;
    if (body.for_ms && body.until_ms)
        return error_set(error, ERROR_INVALID, "pause: give until_ms or for_ms, not both");
    *out_for_ms = body.for_ms;
    if (!body.until_ms)
        return 0;
    *out_for_ms = body.until_ms - clock_utc_ms(server->clock);
    if (*out_for_ms < PAUSE_MS_MIN || *out_for_ms > PRICE_RUN_MS_MAX)
        return error_set(error, ERROR_INVALID,
                         "pause.until_ms: must be a second to 366 days from now");
    return 0;
}

static int find_reachable(struct server *server, struct http_request *request, uint64_t machine,
                          const struct store_value **out_row, struct error *error)
{
    const struct store_value *row = NULL;
    if (handle_machine_find_own(server, request, machine, &row, error) < 0)
        return -1;
    if (row[MACHINES_STATE].integer != MACHINE_STATE_ONLINE)
        return error_set(error, ERROR_CONFLICT,
                         "machine %" PRIu64
                         " is not connected; say it there: souk lend pause, souk lend resume",
                         machine);
    *out_row = row;
    return 0;
}

/* What comes of it is what the machine says next: the answer shows it as it still is. */
static void send_word(struct server *server, struct http_request *request, uint64_t machine,
                      const struct pause_message *pause)
{
    struct error error;
    const struct store_value *row = NULL;
    if (find_reachable(server, request, machine, &row, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    hub_pause(server->hub, machine, pause);
    const enum machine_yield yield = (enum machine_yield)row[MACHINES_YIELD].integer;
    if (!pause->is_paused && (yield == MACHINE_YIELD_PAUSED || yield == MACHINE_YIELD_DRAINING))
        http_reply_problem(request, 409, "conflict",
                           arena_format(http_request_arena(request),
                                        "machine %" PRIu64 " was %s at the machine itself, and "
                                        "only there it ends: souk lend resume",
                                        machine,
                                        yield == MACHINE_YIELD_PAUSED ? "paused" : "drained"));
    else
        handle_machine_send(server, request, route_caller(request)->account, machine);
}

void handle_machine_pause(struct http_request *request, void *context)
{
    struct server *server = context;
    int64_t for_ms = 0;
    struct error error;
    uint64_t machine = 0;
    if (route_id(request, "a machine's", &machine) < 0)
        return;
    if (read_pause(server, request, &for_ms, &error) < 0)
        http_reply_error(request, &error);
    else
        send_word(server, request, machine,
                  &(struct pause_message){.is_paused = true, .for_ms = (uint64_t)for_ms});
}

void handle_machine_resume(struct http_request *request, void *context)
{
    uint64_t machine = 0;
    if (route_id(request, "a machine's", &machine) == 0)
        send_word(context, request, machine, &(struct pause_message){.is_paused = false});
}

/* ---- Taking it back -------------------------------------------------------------------------- */

static void reclaimed(struct call *call, struct http_request *request)
{
    handle_machine_send(call->server, request, call->caller.account, call->request.subject);
    call_free(call);
}

void handle_machine_reclaim(struct http_request *request, void *context)
{
    uint64_t machine = 0;
    if (route_id(request, "a machine's", &machine) < 0)
        return;
    struct call *call = call_new(context, request);
    call->request.command = (struct command){
        .kind = COMMAND_RECLAIM_LEASES,
        .reclaim_leases = {.account = call->caller.account, .machine = machine},
    };
    call_start_take(call, reclaimed);
}

void handle_lease_end(struct http_request *request, void *context)
{
    uint64_t lease = 0;
    if (route_id(request, "a lease's", &lease) < 0)
        return;
    struct call *call = call_new(context, request);
    call->request.command = (struct command){
        .kind = COMMAND_RECLAIM_LEASES,
        .reclaim_leases = {.account = call->caller.account, .lease = lease},
    };
    call_start_take(call, reclaimed);
}
