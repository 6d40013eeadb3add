/* Machines: their owner's word to them, and taking them back. */
#include "server/call.h"
#include "server/handle_machine.h"
#include "server/handlers.h"
#include "server/hub.h"
#include "server/tables.h"

#include <inttypes.h>

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
