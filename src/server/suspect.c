/*
 * Suspects: machines that somebody found silent. market/suspicion.h decides; this asks the machine,
 * measures and carries out.
 *
 * Reports come from borrowers with a lease on the machine, by the API, and from their parameter
 * servers, whose reports name the workers that dropped out.
 */
#include "base/assert.h"
#include "base/log.h"
#include "server/hub_internal.h"

#include <inttypes.h>
#include <stdlib.h>

#define MS_NS INT64_C(1000000)

enum { MUTE_MS = 30000 }; /* after which a mute machine is given another chance */

static int64_t now_ms(const struct hub *hub)
{
    return hub_now_ns(hub) / MS_NS;
}

/* Its worker's lease on the machine, which may say how the work goes; NULL: none is open. */
static const struct hub_lease *lease_of(const struct hub *hub, uint64_t machine, uint64_t job)
{
    const struct hub_lease *found = NULL;
    for (size_t i = 0; i < hub->leases.count; i++) {
        const struct hub_lease *lease = hub->leases.entries[i].value;
        if (lease->machine == machine && lease->job == job && !lease->is_over &&
            (!found || hub_has_server(lease)))
            found = lease;
    }
    return found;
}

void suspect_report(struct hub *hub, const struct hub_lease *lease)
{
    struct hub_machine *machine = hub_machine(hub, lease->machine);
    const struct suspicion_reporter reporter = {
        .account = lease->account,
        .job = lease->job,
        .can_testify = hub_has_server(lease) && lease->verified_index > 0,
    };
    if (!machine || !machine->is_told_online)
        return; /* that is known */
    const bool is_asked = suspicion_report(&machine->suspicion, &reporter, now_ms(hub));
    log_event(LOG_INFO, "machine_reported", "machine=%" PRIu64 " job=%" PRIu64 " asked=%d",
              machine->id, lease->job, is_asked);
    if (is_asked)
        presence_ask(machine);
}

void suspect_pushed(struct hub *hub, const struct hub_lease *lease)
{
    struct hub_machine *machine = hub_machine(hub, lease->machine);
    if (!machine)
        return;
    suspicion_withdraw(&machine->suspicion, lease->job);
    machine->muted_ns = 0;
}

void suspect_lease_over(struct hub *hub, const struct hub_lease *lease)
{
    struct hub_machine *machine = hub_machine(hub, lease->machine);
    if (machine)
        suspicion_withdraw(&machine->suspicion, lease->job);
}

void suspect_check(struct hub_machine *machine)
{
    struct hub *hub = machine->hub;
    const struct suspicion_facts facts = {
        .now_ms = now_ms(hub),
        .heard_ms = atomic_load(&machine->heard_ns) / MS_NS,
        .silence_ms = hub->silence_ns / MS_NS,
        /* While it drains its leases run on. */
        .is_held = machine_yield_is_held(machine->yield),
    };
    if (machine->muted_ns && hub_now_ns(hub) - machine->muted_ns > MUTE_MS * MS_NS)
        machine->muted_ns = 0;
    switch (suspicion_judge(&machine->suspicion, &facts)) {
    case SUSPICION_NONE:
    case SUSPICION_WAITS:
        return;
    case SUSPICION_REFUTED:
        log_event(LOG_INFO, "report_refuted", "machine=%" PRIu64, machine->id);
        return;
    case SUSPICION_MUTE:
        log_event(LOG_WARN, "machine_mute", "machine=%" PRIu64, machine->id);
        machine->muted_ns = hub_now_ns(hub);
        break;
    case SUSPICION_SILENT:
        log_event(LOG_INFO, "report_confirmed", "machine=%" PRIu64, machine->id);
        break;
    }
    if (machine->is_told_online)
        hub_tell_silent(machine);
}

/* ---- From the API ---------------------------------------------------------------------------- */

struct told {
    struct hub *hub;
    uint64_t machine, job;
};

static void take_told(void *context)
{
    struct told *told = context;
    const struct hub_lease *lease = lease_of(told->hub, told->machine, told->job);
    if (lease)
        suspect_report(told->hub, lease);
    free(told);
}

void hub_report_silent(struct hub *hub, uint64_t machine, uint64_t job)
{
    struct told *told = malloc(sizeof(*told));
    ASSERT(told);
    *told = (struct told){hub, machine, job};
    loop_post(hub->loop, take_told, told);
}
