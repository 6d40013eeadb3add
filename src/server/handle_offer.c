/* Offers: making, changing, pausing, withdrawing and showing what machines lend. */
#include "server/answers.h"
#include "server/call.h"
#include "server/handle_machine.h"
#include "server/handlers.h"
#include "server/list_view.h"
#include "server/offer_body.h"
#include "server/query.h"
#include "server/renewal.h"
#include "server/view.h"

#include <inttypes.h>

/* ---- Showing --------------------------------------------------------------------------------- */

static void write_offer(struct server *server, struct arena *arena, uint64_t account,
                        const struct store_value *row, struct json_writer *writer)
{
    const uint64_t machine = (uint64_t)row[OFFERS_MACHINE].integer;
    const struct store_value *machine_row = NULL;
    struct error gone;
    if (query_id(server, arena, TABLE_MACHINES, machine, "machine", &machine_row, &gone) < 0)
        machine_row = NULL;
    struct view_offer offer = {
        .row = row,
        .machine_name = machine_row ? machine_row[MACHINES_NAME].bytes : TEXT(""),
        .machine_state = machine_row ? (enum machine_state)machine_row[MACHINES_STATE].integer
                                     : MACHINE_STATE_OFFLINE,
        .is_mine = (uint64_t)row[OFFERS_OWNER].integer == account,
    };
    /* Whom an owner lends to is nobody else's business. */
    struct text rest = offer.is_mine ? row[OFFERS_ACCOUNTS].bytes : (struct text){0}, id_text;
    bool has_more = rest.size > 0;
    while (has_more && offer.account_count < OFFER_ACCOUNTS_MAX) {
        uint64_t id;
        struct error ignored;
        has_more = text_cut(rest, ',', &id_text, &rest);
        if (text_parse_u64(id_text, &id, &ignored) == 0)
            offer.accounts[offer.account_count++] = query_name(server, arena, TABLE_ACCOUNTS, id);
    }
    const uint64_t group = (uint64_t)row[OFFERS_AUDIENCE_GROUP].integer;
    if (group)
        offer.group_name = query_name(server, arena, TABLE_GROUPS, group);
    view_offer(writer, &offer);
}

static void send_offer(struct server *server, struct http_request *request, uint64_t account,
                       uint64_t id, int status)
{
    const struct store_value *row = NULL;
    struct error error;
    struct arena *arena = http_request_arena(request);
    if (query_id(server, arena, TABLE_OFFERS, id, "offer", &row, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    write_offer(server, arena, account, row, &answer.writer);
    view_answer_send(&answer, request, status);
}

static const struct list_view_filter offer_filters[] = {
    {"mine", "owner", LIST_VIEW_MINE},
    {"spare", "spare", LIST_VIEW_FLAG},
};
static const struct list_view offer_list = {
    .table = TABLE_OFFERS,
    .filters = offer_filters,
    .filter_count = sizeof(offer_filters) / sizeof(*offer_filters),
    .write = write_offer,
};

void handle_offer_list(struct http_request *request, void *context)
{
    struct server *server = context;
    if (!answers_reply(server->answers, request))
        list_view_send(request, server, &offer_list, NULL);
}

void handle_offer_get(struct http_request *request, void *context)
{
    uint64_t offer = 0;
    if (route_id(request, "an offer's", &offer) == 0)
        send_offer(context, request, route_caller(request)->account, offer, 200);
}

void handle_machine_offers(struct http_request *request, void *context)
{
    struct server *server = context;
    uint64_t machine = 0;
    const struct store_value *row = NULL;
    struct error error;
    if (answers_reply(server->answers, request) || route_id(request, "a machine's", &machine) < 0)
        return;
    if (query_id(server, http_request_arena(request), TABLE_MACHINES, machine, "machine", &row,
                 &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    const struct store_filter filter = {"machine", STORE_EQUAL, store_integer((int64_t)machine)};
    list_view_send(request, server, &offer_list, &filter);
}

/* ---- Making and changing --------------------------------------------------------------------- */

enum change_kind { CHANGE_NEW, CHANGE_ALL, CHANGE_SOME };

struct change {
    enum change_kind kind;
    struct offer_body body;
};

/* Core thread: the terms as they are now, with what was given put over them. Whose it is, is for
 * the command to check. */
static int prepare_change(struct engine_request *request, const struct core *core,
                          struct error *error)
{
    struct call *call = (struct call *)request;
    const struct change *change = call->context;
    __typeof__(request->command.set_offer) *set = &request->command.set_offer;
    const struct offer *offer = NULL;
    if (change->kind != CHANGE_NEW) {
        offer = core_offer(core, set->offer);
        if (!offer)
            return error_set(error, ERROR_NOT_FOUND, "offer %" PRIu64 " does not exist",
                             set->offer);
        set->machine = offer->machine->id;
    }
    const struct machine *machine = core_machine(core, set->machine);
    if (!machine || machine->owner != set->account)
        return 0;
    set->terms = change->kind == CHANGE_SOME ? offer_terms(offer) : offer_body_defaults(machine);
    if (offer)
        set->terms.paused_until_ms = offer->terms.paused_until_ms;
    return offer_body_apply(call->arena, &change->body, core, machine, &set->terms, error);
}

static void offer_changed(struct call *call, struct http_request *request)
{
    const struct change *change = call->context;
    renewal_wake(call->server->renewal);
    send_offer(call->server, request, call->caller.account, call->request.subject,
               change->kind == CHANGE_NEW ? 201 : 200);
    call_free(call);
}

/* `machine` for a new offer, `offer` for one that is there. */
static void start_change(struct server *server, struct http_request *request, enum change_kind kind,
                         uint64_t machine, uint64_t offer)
{
    AUTO(call) struct call *call = call_new(server, request);
    struct change *change = arena_alloc(call->arena, sizeof(*change));
    const struct store_value *row = NULL;
    struct text known = {0};
    struct error error;
    change->kind = kind;
    call->context = change;
    if (offer && query_id(server, call->arena, TABLE_OFFERS, offer, "offer", &row, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    if (row && kind == CHANGE_SOME)
        known = row[OFFERS_SCHEDULE].bytes;
    if (offer_body_read(call->arena, http_request_body(request), &change->body, &error) < 0 ||
        offer_body_expand(call->arena, &change->body, known, clock_utc_ms(server->clock), &error) <
            0) {
        http_reply_error(request, &error);
        return;
    }
    call->prepare = prepare_change;
    call->request.command = (struct command){
        .kind = COMMAND_SET_OFFER,
        .set_offer = {.account = call->caller.account, .machine = machine, .offer = offer},
    };
    call_start_take(TAKE(call), offer_changed);
}

void handle_offer_create(struct http_request *request, void *context)
{
    uint64_t machine = 0;
    if (route_id(request, "a machine's", &machine) == 0)
        start_change(context, request, CHANGE_NEW, machine, 0);
}

void handle_offer_put(struct http_request *request, void *context)
{
    uint64_t offer = 0;
    if (route_id(request, "an offer's", &offer) == 0)
        start_change(context, request, CHANGE_ALL, 0, offer);
}

void handle_offer_patch(struct http_request *request, void *context)
{
    uint64_t offer = 0;
    if (route_id(request, "an offer's", &offer) == 0)
        start_change(context, request, CHANGE_SOME, 0, offer);
}

/* ---- A machine's first ----------------------------------------------------------------------- */

static void first_offer_set(struct call *call, struct http_request *request)
{
    handle_machine_send(call->server, request, call->caller.account,
                        call->request.command.set_offer.machine);
    call_free(call);
}

/* The terms a machine's offer had from the first on; -1 or no text where one is left out. */
struct put_offer {
    struct resources resources;
    struct json_array role_names;
    uint64_t roles;
    struct text paused; /* JSON */
    struct price_vector minimum;
};
static const struct json_field put_offer_fields[] = {
    {"cores_milli", JSON_I64, offsetof(struct put_offer, resources.cores_milli),
     .is_required = true, .minimum = 1, .maximum = RESOURCES_CORES_MILLI_MAX},
    {"ram_bytes", JSON_I64, offsetof(struct put_offer, resources.ram_bytes), .is_required = true,
     .minimum = 0, .maximum = RESOURCES_BYTES_MAX},
    {"disk_bytes", JSON_I64, offsetof(struct put_offer, resources.disk_bytes), .is_required = true,
     .minimum = 0, .maximum = RESOURCES_BYTES_MAX},
    {"gpus_milli", JSON_I64, offsetof(struct put_offer, resources.gpus_milli), .minimum = 0,
     .maximum = RESOURCES_GPUS_MILLI_MAX},
    {"roles", JSON_TEXTS, offsetof(struct put_offer, role_names), .is_required = true,
     .size_max = 8},
    {"paused", JSON_ANY, offsetof(struct put_offer, paused), .size_max = 8},
    {"minimum", JSON_OBJECT, offsetof(struct put_offer, minimum), .schema = &offer_minimum_schema},
};
static const struct json_schema put_offer_schema =
    JSON_SCHEMA("offer", put_offer_fields, struct put_offer);

static int read_put_offer(struct call *call, struct text json, struct put_offer *out,
                          struct error *error)
{
    *out = (struct put_offer){.resources = {.gpus_milli = -1}, .minimum = {-1, -1, -1, -1}};
    if (json_read(call->arena, json, &put_offer_schema, out, error) < 0)
        return -1;
    if (out->paused.size && !text_equal(out->paused, TEXT("true")) &&
        !text_equal(out->paused, TEXT("false")))
        return error_set(error, ERROR_INVALID, "offer.paused: must be true or false");
    return view_read_roles(&out->role_names, &out->roles, error);
}

/* Core thread: what the body does not name stays as it is. */
static int prepare_put_offer(struct engine_request *request, const struct core *core,
                             struct error *error)
{
    (void)error;
    const struct put_offer *put = ((struct call *)request)->context;
    __typeof__(request->command.set_offer) *set = &request->command.set_offer;
    const struct machine *machine = core_machine(core, set->machine);
    if (!machine || machine->owner != set->account)
        return 0; /* the command refuses it */
    struct offer_terms terms =
        machine->offer_count ? offer_terms(machine->offers[0]) : offer_body_defaults(machine);
    terms.resources.cores_milli = put->resources.cores_milli;
    terms.resources.ram_bytes = put->resources.ram_bytes;
    terms.resources.disk_bytes = put->resources.disk_bytes;
    if (put->resources.gpus_milli >= 0)
        terms.resources.gpus_milli = put->resources.gpus_milli;
    terms.roles = put->roles;
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
        if (price_vector_get(&put->minimum, r) >= 0)
            price_vector_set(&terms.minimum, r, price_vector_get(&put->minimum, r));
    if (put->paused.size)
        terms.paused_until_ms = text_equal(put->paused, TEXT("true")) ? OFFER_PAUSED_FOREVER : 0;
    set->terms = terms;
    return 0;
}

void handle_machine_put_offer(struct http_request *request, void *context)
{
    uint64_t machine = 0;
    if (route_id(request, "a machine's", &machine) < 0)
        return;
    AUTO(call) struct call *call = call_new(context, request);
    struct put_offer *put = arena_alloc(call->arena, sizeof(*put));
    struct error error;
    if (read_put_offer(call, http_request_body(request), put, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    call->context = put;
    call->prepare = prepare_put_offer;
    call->request.command = (struct command){
        .kind = COMMAND_SET_OFFER,
        .set_offer = {.account = call->caller.account, .machine = machine, .is_first = true},
    };
    call_start_take(TAKE(call), first_offer_set);
}

/* ---- Pausing and withdrawing ----------------------------------------------------------------- */

struct pause_body {
    int64_t until_ms;
    int64_t for_ms;
};
static const struct json_field pause_fields[] = {
    {"until_ms", JSON_I64, offsetof(struct pause_body, until_ms), .minimum = 0,
     .maximum = MARKET_TIME_MS_MAX},
    {"for_ms", JSON_I64, offsetof(struct pause_body, for_ms), .minimum = 1,
     .maximum = PRICE_RUN_MS_MAX},
};
static const struct json_schema pause_schema =
    JSON_SCHEMA("pause", pause_fields, struct pause_body);

static int read_pause(struct call *call, struct http_request *request, int64_t *out_until_ms,
                      struct error *error)
{
    struct pause_body body = {-1, -1};
    const int64_t now_ms = clock_utc_ms(call->server->clock);
    const struct text json = http_request_body(request);
    if (json.size > 0 && json_read(call->arena, json, &pause_schema, &body, error) < 0)
        return -1;
    if (body.until_ms >= 0 && body.for_ms >= 0)
        return error_set(error, ERROR_INVALID, "pause: give until_ms or for_ms, not both");
    if (body.until_ms >= 0 && body.until_ms <= now_ms)
        return error_set(error, ERROR_INVALID, "pause.until_ms: that is past");
    *out_until_ms = OFFER_PAUSED_FOREVER;
    if (body.until_ms >= 0)
        *out_until_ms = body.until_ms;
    else if (body.for_ms >= 0)
        *out_until_ms = now_ms + body.for_ms;
    return 0;
}

static void offer_paused(struct call *call, struct http_request *request)
{
    send_offer(call->server, request, call->caller.account, call->request.subject, 200);
    call_free(call);
}

static void start_pause_take(struct call *call, uint64_t offer, int64_t until_ms)
{
    call->request.command = (struct command){
        .kind = COMMAND_PAUSE_OFFER,
        .pause_offer = {.account = call->caller.account, .offer = offer, .until_ms = until_ms},
    };
    call_start_take(call, offer_paused);
}

void handle_offer_pause(struct http_request *request, void *context)
{
    uint64_t offer = 0;
    int64_t until_ms = 0;
    struct error error;
    if (route_id(request, "an offer's", &offer) < 0)
        return;
    AUTO(call) struct call *call = call_new(context, request);
    if (read_pause(call, request, &until_ms, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    start_pause_take(TAKE(call), offer, until_ms);
}

void handle_offer_resume(struct http_request *request, void *context)
{
    uint64_t offer = 0;
    if (route_id(request, "an offer's", &offer) == 0)
        start_pause_take(call_new(context, request), offer, 0);
}

void handle_offer_delete(struct http_request *request, void *context)
{
    uint64_t offer = 0;
    if (route_id(request, "an offer's", &offer) < 0)
        return;
    struct call *call = call_new(context, request);
    call->request.command = (struct command){
        .kind = COMMAND_WITHDRAW_OFFER,
        .withdraw_offer = {.account = call->caller.account, .offer = offer},
    };
    call_start_take(call, call_reply_nothing);
}
