/*
 * Commands about offers: what a machine lends, and on which terms.
 */
#include "core/core_internal.h"

static void emit_offer(struct decision *decision, const struct machine *machine,
                       const struct offer *offer)
{
    struct event event = {.kind = EVENT_OFFER_SET,
                          .offer_set = {.machine = machine->id, .offer = *offer}};
    decision_emit(decision, &event);
    decision->should_match = true;
}

static void emit_withdrawal(struct decision *decision, const struct machine *machine)
{
    struct event event = {.kind = EVENT_OFFER_WITHDRAWN,
                          .offer_withdrawn = {.machine = machine->id}};
    decision_emit(decision, &event);
}

int decide_set_offer(struct decision *decision, const struct command *command, struct error *error)
{
    struct machine *machine;
    if (decide_find_own_machine(decision, command->set_offer.account, command->set_offer.machine,
                                &machine, error) < 0 ||
        offer_check(&command->set_offer.offer, &machine->probe, error) < 0)
        return -1;
    decision->subject = machine->id;
    emit_offer(decision, machine, &command->set_offer.offer);
    return 0;
}

int decide_withdraw_offer(struct decision *decision, const struct command *command,
                          struct error *error)
{
    struct machine *machine;
    if (decide_find_own_machine(decision, command->withdraw_offer.account,
                                command->withdraw_offer.machine, &machine, error) < 0)
        return -1;
    decision->subject = machine->id;
    if (machine->has_offer)
        emit_withdrawal(decision, machine);
    return 0;
}

static int64_t smaller(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

/* An offer larger than the machine turned out to be shrinks to what there is. */
void decide_shrink_offer(struct decision *decision, const struct machine *machine,
                         struct resources found)
{
    if (!machine->has_offer || resources_fit(machine->offer.resources, found))
        return;
    struct offer offer = machine->offer;
    offer.resources =
        (struct resources){.cores_milli = smaller(offer.resources.cores_milli, found.cores_milli),
                           .ram_bytes = smaller(offer.resources.ram_bytes, found.ram_bytes),
                           .gpus_milli = smaller(offer.resources.gpus_milli, found.gpus_milli),
                           .disk_bytes = smaller(offer.resources.disk_bytes, found.disk_bytes)};
    emit_offer(decision, machine, &offer);
}
