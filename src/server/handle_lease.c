/* What runs on a machine, for its owner. */
#include "server/answers.h"
#include "server/handle_machine.h"
#include "server/handlers.h"
#include "server/list_view.h"
#include "server/query.h"
#include "server/routes.h"

#include <inttypes.h>

int handle_machine_find_own(struct server *server, struct http_request *request, uint64_t machine,
                            const struct store_value **out_row, struct error *error)
{
    const struct store_value *row = NULL;
    if (query_id(server, http_request_arena(request), TABLE_MACHINES, machine, "machine", &row,
                 error) < 0)
        return -1;
    if ((uint64_t)row[MACHINES_OWNER].integer != route_caller(request)->account)
        return error_set(error, ERROR_REFUSED, "machine %" PRIu64 " belongs to another account",
                         machine);
    *out_row = row;
    return 0;
}

/* What it takes of the machine is its owner's to know, how the training goes the borrower's. */
static void write_lease(struct server *server, struct arena *arena, uint64_t account,
                        const struct store_value *row, struct json_writer *writer)
{
    (void)account;
    const struct store_value *machine = NULL;
    struct error gone;
    if (query_id(server, arena, TABLE_MACHINES, (uint64_t)row[LEASES_MACHINE].integer, "machine",
                 &machine, &gone) < 0)
        machine = NULL;
    const struct live_job *job =
        live_find(server->live, (uint64_t)row[LEASES_JOB].integer, LIVE_WORKERS);
    const struct live_worker *live =
        job ? live_find_worker(job, (uint64_t)row[LEASES_ID].integer) : NULL;
    struct live_worker used = {0};
    if (live) {
        used.cpu_ms = live->cpu_ms;
        used.gpu_ms = live->gpu_ms;
        used.memory_peak_bytes = live->memory_peak_bytes;
    }
    const bool has_ended = row[LEASES_STATE].integer == LEASE_STATE_ENDED;
    view_lease(writer, &(struct view_lease){
                           .row = row,
                           .machine_name = machine ? machine[MACHINES_NAME].bytes : TEXT(""),
                           .yield = machine && !has_ended
                                        ? (enum machine_yield)machine[MACHINES_YIELD].integer
                                        : MACHINE_YIELD_NONE,
                           .live = &used,
                       });
}

static const char *state_choice(int index)
{
    return lease_state_name((enum lease_state)index);
}

static const struct list_view_filter lease_filters[] = {
    {"state", "state", LIST_VIEW_CHOICE, state_choice, LEASE_STATE_COUNT},
};
static const struct list_view lease_list = {
    .table = TABLE_LEASES,
    .is_descending = true,
    .filters = lease_filters,
    .filter_count = sizeof(lease_filters) / sizeof(*lease_filters),
    .write = write_lease,
};

void handle_machine_leases(struct http_request *request, void *context)
{
    struct server *server = context;
    const struct store_value *row = NULL;
    uint64_t machine = 0;
    struct error error;
    if (answers_reply(server->answers, request) || route_id(request, "a machine's", &machine) < 0)
        return;
    if (handle_machine_find_own(server, request, machine, &row, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    const struct store_filter filter = {"machine", STORE_EQUAL, row[MACHINES_ID]};
    list_view_send(request, server, &lease_list, &filter);
}
