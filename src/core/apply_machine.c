/*
 * Events about machines.
 */
#include "core/core_internal.h"
#include "market/pair.h"

int apply_find_machine(const struct core *core, const struct event *event, uint64_t id,
                       struct machine **out_machine, struct error *error)
{
    *out_machine = map_get(&core->machines, id);
    return *out_machine ? 0 : apply_misfit(event, "there is no such machine", error);
}

/* A new machine, or the one known that the event enrols again. */
static int find_enrolled(struct core *core, const struct event *event, struct machine **out_machine,
                         struct error *error)
{
    const __typeof__(event->machine_enrolled) *enrolled = &event->machine_enrolled;
    struct machine *known =
        map_get_text(&core->machines_by_key, core_bytes(enrolled->public_key, MACHINE_KEY_SIZE));
    const struct machine *namesake = core_machine_by_name(core, text_of(enrolled->name));
    if (namesake && namesake != known)
        return apply_misfit(event, "the name is taken", error);
    if (known) {
        if (known->id != enrolled->machine || known->owner != enrolled->owner ||
            known->generation + 1 != enrolled->generation || known->lease_count > 0 ||
            machine_spare_count(known) > 0)
            return apply_misfit(event, "it is not the machine that was known", error);
        *out_machine = known;
        return 0;
    }
    if (!apply_is_next_id(core, enrolled->machine) || enrolled->generation != 1 ||
        !core_account(core, enrolled->owner))
        return apply_misfit(event, "a new machine needs a new id and an owner", error);
    struct machine *machine = slab_take(&core->machine_slab);
    machine->id = core->last_id = enrolled->machine;
    machine->owner = enrolled->owner;
    machine->enrolled_ms = event->time_ms;
    machine->is_unproven = core->settings.proving_micro > 0 && machine->owner != ACCOUNT_OPERATOR;
    memcpy(machine->public_key, enrolled->public_key, MACHINE_KEY_SIZE);
    map_put(&core->machines, machine->id, machine);
    map_put_text(&core->machines_by_key, core_bytes(machine->public_key, MACHINE_KEY_SIZE),
                 machine);
    *out_machine = machine;
    return 0;
}

int apply_machine_enrolled(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->machine_enrolled) *enrolled = &event->machine_enrolled;
    if (name_check(text_of(enrolled->name), "machine", error) < 0 ||
        probe_check(&enrolled->probe, error) < 0)
        return apply_unfit(event, error);
    struct machine *machine = NULL;
    if (find_enrolled(core, event, &machine, error) < 0)
        return -1;
    core_count_machine(core, machine, event->time_ms);
    if (machine->name[0])
        map_remove_text(&core->machines_by_name, text_of(machine->name));
    memcpy(machine->name, enrolled->name, sizeof(machine->name));
    map_put_text(&core->machines_by_name, text_of(machine->name), machine);
    machine->generation = enrolled->generation;
    machine->probe = enrolled->probe;
    machine->state = MACHINE_STATE_OFFLINE;
    machine->is_barred = account_is_frozen(core_account(core, machine->owner));
    machine->state_changed_ms = event->time_ms;
    core_index_machine(core, machine, event->time_ms);
    return 0;
}

int apply_machine_probed(struct core *core, const struct event *event, struct error *error)
{
    struct machine *machine = NULL;
    if (apply_find_machine(core, event, event->machine_probed.machine, &machine, error) < 0)
        return -1;
    if (probe_check(&event->machine_probed.probe, error) < 0)
        return apply_unfit(event, error);
    core_count_machine(core, machine, event->time_ms);
    machine->probe = event->machine_probed.probe;
    core_index_machine(core, machine, event->time_ms);
    return 0;
}

/* Whoever may be near others by other figures after the change than before. */
struct relisted {
    struct machine *machines[2 * MACHINE_PAIRS_MAX];
    size_t count;
};

static void relist_peers(struct relisted *relisted, const struct machine *machine)
{
    for (size_t i = 0; machine->pairs && i < machine->pairs->count; i++)
        relisted->machines[relisted->count++] = machine->pairs->peers[i].machine;
}

static void relist(struct core *core, const struct relisted *relisted, int64_t now_ms)
{
    for (size_t i = 0; i < relisted->count; i++)
        core_list_offers(core, relisted->machines[i], now_ms);
}

int apply_pair_measured(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->pair_measured) *measured = &event->pair_measured;
    struct machine *low = NULL, *high = NULL;
    if (apply_find_machine(core, event, measured->low, &low, error) < 0 ||
        apply_find_machine(core, event, measured->high, &high, error) < 0)
        return -1;
    if (low->id >= high->id || low->state == MACHINE_STATE_OFFLINE ||
        high->state == MACHINE_STATE_OFFLINE)
        return apply_misfit(event, "they are not two machines that are here", error);
    struct relisted relisted = {.count = 0};
    relist_peers(&relisted, low);
    relist_peers(&relisted, high);
    pair_put(low, high, measured->rtt_us, event->time_ms);
    relist(core, &relisted, event->time_ms);
    core_index_machine(core, low, event->time_ms);
    core_index_machine(core, high, event->time_ms);
    return 0;
}

int apply_machine_state_changed(struct core *core, const struct event *event, struct error *error)
{
    struct machine *machine = NULL;
    if (apply_find_machine(core, event, event->machine_state_changed.machine, &machine, error) < 0)
        return -1;
    core_count_machine(core, machine, event->time_ms);
    machine->state = event->machine_state_changed.state;
    machine->state_changed_ms = event->time_ms;
    if (machine->state == MACHINE_STATE_ONLINE)
        apply_see_account(core, machine->owner, event->time_ms);
    if (machine->state == MACHINE_STATE_OFFLINE && machine->pairs) {
        struct relisted relisted = {.count = 0};
        relist_peers(&relisted, machine);
        pair_forget_machine(machine); /* it may come back elsewhere */
        relist(core, &relisted, event->time_ms);
    }
    core_index_machine(core, machine, event->time_ms);
    return 0;
}

int apply_machine_yielded(struct core *core, const struct event *event, struct error *error)
{
    struct machine *machine = NULL;
    if (apply_find_machine(core, event, event->machine_yielded.machine, &machine, error) < 0)
        return -1;
    core_count_machine(core, machine, event->time_ms);
    if (machine->yield >= MACHINE_YIELD_FROZEN &&
        event->machine_yielded.yield < MACHINE_YIELD_FROZEN)
        machine->lent_again_ms = event->time_ms;
    machine->yield = event->machine_yielded.yield;
    core_index_machine(core, machine, event->time_ms);
    return 0;
}

int apply_machine_proven(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->machine_proven) *proven = &event->machine_proven;
    struct machine *machine = NULL;
    if (apply_find_machine(core, event, proven->machine, &machine, error) < 0)
        return -1;
    if (!core_is_proven_now(core, machine) || proven->owner != machine->owner ||
        proven->amount_micro != machine->withheld_micro)
        return apply_misfit(event, "it has not earned enough, or something else was withheld",
                            error);
    if (proven->amount_micro > 0 &&
        ledger_plan_release(core->ledger, machine->owner, proven->amount_micro, &core->due, error) <
            0)
        return apply_unfit(event, error);
    core_count_machine(core, machine, event->time_ms);
    machine->is_unproven = false;
    machine->withheld_micro = 0;
    core_index_machine(core, machine, event->time_ms); /* by its own speed from now on */
    return 0;
}
