/* A borrower finds a machine silent: the market looks. */
#include "server/call.h"
#include "server/handle_machine.h"
#include "server/handlers.h"
#include "server/hub.h"

#include <inttypes.h>

struct report_look {
    uint64_t machine;
    uint64_t job; /* of the caller, with a lease on the machine */
};

static bool find_job(const struct core *core, struct lease *const *leases, size_t count,
                     uint64_t account, uint64_t *out_job)
{
    for (size_t i = 0; i < count; i++) {
        const struct job *job = core_job(core, leases[i]->job);
        if (job && job->request.account == account) {
            *out_job = job->id;
            return true;
        }
    }
    return false;
}

/* Only who has a lease on it can have found it silent. */
static int look_at_leases(struct engine_request *request, const struct core *core,
                          struct store_batch *batch, struct error *error)
{
    (void)batch;
    struct call *call = (struct call *)request;
    struct report_look *look = call->context;
    const uint64_t account = call->caller.account;
    const struct machine *machine = core_machine(core, look->machine);
    if (!machine)
        return error_set(error, ERROR_NOT_FOUND, "machine %" PRIu64 " does not exist",
                         look->machine);
    if (find_job(core, machine->leases, machine->lease_count, account, &look->job) ||
        (machine_spare_count(machine) > 0 &&
         find_job(core, machine->spare->leases, machine->spare->count, account, &look->job)))
        return 0;
    return error_set(error, ERROR_REFUSED,
                     "no job of this account runs on machine %" PRIu64
                     ": only who has a lease on a machine can find it silent",
                     look->machine);
}

/* What comes of it is what the machine says, or not: the answer shows it as it still is. */
static void reported(struct call *call, struct http_request *request)
{
    const struct report_look *look = call->context;
    hub_report_silent(call->server->hub, look->machine, look->job);
    handle_machine_send(call->server, request, call->caller.account, look->machine);
    call_free(call);
}

void handle_machine_report(struct http_request *request, void *context)
{
    uint64_t machine = 0;
    if (route_id(request, "a machine's", &machine) < 0)
        return;
    struct call *call = call_new(context, request);
    struct report_look *look = arena_alloc(call->arena, sizeof(*look));
    *look = (struct report_look){.machine = machine};
    call->context = look;
    call_look_take(call, look_at_leases, reported);
}
