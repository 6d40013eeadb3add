/* Machines: enrolling them by a one-time code. */
#include "server/call.h"
#include "server/cloud.h"
#include "server/handlers.h"
#include "server/offer_body.h"
#include "server/probe_body.h"
#include "server/query.h"
#include "server/view.h"

enum { ENROL_CODE_MS = 15 * 60000, SCHEDULE_WORDS_MAX = 512 };

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
    if (call->context) /* an instance that the market started */
        cloud_enrolled(server->cloud, *(const uint64_t *)call->context, call->request.subject);
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
    uint64_t *member = arena_alloc(call->arena, sizeof(*member));
    *member =
        cloud_take_code(call->server->cloud, call->arena, body->code, &body->probe, &enrol->offer);
    call->context = *member ? member : NULL;
    call_start_take(TAKE(call), machine_enrolled);
}
