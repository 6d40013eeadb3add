/*
 * Pace: a machine says no more than the market can take.
 *
 * Each message costs some of the machine's budget (link_budget.h); over it, its link is not read
 * until the debt is paid, and TCP slows the sender. The budget is the machine's, not the link's:
 * dialling anew brings none. The same pause comes when too much of what it said is still on its way
 * to the core or to the main thread, for as long as that lasts: no list grows because a store is
 * away. A machine whose link is not read for our sake does not count as silent meanwhile.
 */
#include "base/assert.h"
#include "server/hub_internal.h"

#include <inttypes.h>
#include <stdlib.h>

#define MS_NS INT64_C(1000000)

enum {
    BACKLOG_BYTES_MAX = 8 << 20,
    BACKLOG_COMMANDS_MAX = 1024, /* a minute of sixteen leases' ticks */
    BACKLOG_LOOK_MS = 20,
    YIELD_TELL_MS = 1000,
};

/* ---- On its way ------------------------------------------------------------------------------ */

/* Held by the machine and by all that is on its way, which may outlive it. */
struct backlog {
    atomic_int references;
    atomic_size_t bytes;
    atomic_size_t commands;
};

static void unref(struct backlog *backlog)
{
    if (atomic_fetch_sub(&backlog->references, 1) == 1)
        free(backlog);
}

struct backlog *backlog_add(struct hub_machine *machine, size_t bytes, size_t commands)
{
    struct backlog *backlog = machine->pace.backlog;
    atomic_fetch_add(&backlog->references, 1);
    atomic_fetch_add(&backlog->bytes, bytes);
    atomic_fetch_add(&backlog->commands, commands);
    return backlog;
}

void backlog_arrived(struct backlog *backlog, size_t bytes, size_t commands)
{
    if (!backlog)
        return;
    atomic_fetch_sub(&backlog->bytes, bytes);
    atomic_fetch_sub(&backlog->commands, commands);
    unref(backlog);
}

static bool is_full(const struct backlog *backlog)
{
    return atomic_load(&backlog->bytes) > BACKLOG_BYTES_MAX ||
           atomic_load(&backlog->commands) > BACKLOG_COMMANDS_MAX;
}

/* ---- The link -------------------------------------------------------------------------------- */

static void look_again(void *context)
{
    struct hub_machine *machine = context;
    struct hub_pace *pace = &machine->pace;
    if (!machine->connection || !pace->is_paused)
        return;
    machine->heard_ns = hub_now_ns(machine->hub);
    if (is_full(pace->backlog)) {
        loop_timer_start(pace->timer, BACKLOG_LOOK_MS);
        return;
    }
    pace->is_paused = false;
    link_set_paused(connection_link(machine->connection), false);
}

void pace_charge(struct hub_machine *machine, uint16_t type, size_t size)
{
    struct hub_pace *pace = &machine->pace;
    int64_t wait_ns = link_budget_take(&pace->budget, link_budget_cost(type, size),
                                       machine->lease_count, hub_now_ns(machine->hub));
    if (wait_ns == 0 && !is_full(pace->backlog))
        return;
    pace->is_paused = true;
    link_set_paused(connection_link(machine->connection), true);
    loop_timer_start(pace->timer, wait_ns / MS_NS + 1);
}

/* ---- What the core is told at most once a second --------------------------------------------- */

static void tell_yield(struct hub_machine *machine)
{
    machine->pace.is_yield_due = false;
    machine->pace.yield_told_ns = hub_now_ns(machine->hub);
    hub_command(machine->hub,
                &(struct command){.kind = COMMAND_MACHINE_YIELDS,
                                  .machine_yields = {machine->id, machine->yield}},
                NULL);
}

static bool may_tell_yield(const struct hub_machine *machine)
{
    const int64_t told_ns = machine->pace.yield_told_ns;
    return told_ns == 0 || hub_now_ns(machine->hub) - told_ns >= YIELD_TELL_MS * MS_NS;
}

void pace_yield(struct hub_machine *machine, enum machine_yield yield)
{
    machine->yield = yield;
    machine->pace.is_yield_due = true;
    if (may_tell_yield(machine))
        tell_yield(machine);
}

void pace_check(struct hub_machine *machine)
{
    if (machine->pace.is_yield_due && may_tell_yield(machine))
        tell_yield(machine);
}

/* ---- Life ------------------------------------------------------------------------------------ */

void pace_init(struct hub_machine *machine)
{
    struct hub_pace *pace = &machine->pace;
    pace->backlog = calloc(1, sizeof(*pace->backlog));
    ASSERT(pace->backlog);
    atomic_store(&pace->backlog->references, 1);
    pace->timer = loop_timer_new(machine->hub->loop, look_again, machine);
}

void pace_link(struct hub_machine *machine)
{
    machine->pace.is_paused = false;
}

void pace_done(struct hub_machine *machine)
{
    loop_timer_free(TAKE(machine->pace.timer));
    unref(machine->pace.backlog);
}
