/*
 * Commands about machines: enrolling, probing, coming and going.
 */
#include "core/core_internal.h"

#include <inttypes.h>

/* The name `market` is the operator's own; the other reserved names are nobody's. */
static bool may_name_machine(uint64_t owner, struct text name)
{
    return !name_is_reserved(name) ||
           (owner == ACCOUNT_OPERATOR && text_equal(name, TEXT("market")));
}

static void emit_machine_state(struct decision *decision, const struct machine *machine,
                               enum machine_state state)
{
    struct event event = {.kind = EVENT_MACHINE_STATE_CHANGED,
                          .machine_state_changed = {.machine = machine->id, .state = state}};
    decision_emit(decision, &event);
}

/* Offline first: no successor is placed on it. */
static void take_offline(struct decision *decision, struct machine *machine,
                         enum lease_outcome outcome, const char *reason)
{
    emit_machine_state(decision, machine, MACHINE_STATE_OFFLINE);
    decide_end_leases(decision, machine, outcome, reason);
}

/* What its owner changed stays. A copy: the offer may be set before it gets these. */
static struct offer_terms terms_again(const struct decision *decision, const struct offer *offer,
                                      const __typeof__(((struct command *)0)->enrol_machine) *enrol)
{
    const struct offer_terms had = offer_terms(offer);
    const struct offer_terms again =
        offer_terms_again(&had, &offer->machine->probe, &enrol->offer, &enrol->probe);
    return offer_terms_copy_to(decision->out->arena, &again);
}

int decide_enrol_machine(struct decision *decision, const struct command *command,
                         struct error *error)
{
    struct core *core = decision->core;
    const __typeof__(command->enrol_machine) *enrol = &command->enrol_machine;
    const struct code *code;
    if (decide_find_code(decision, CODE_KIND_ENROL, enrol->code_hash, &code, error) < 0 ||
        probe_check(&enrol->probe, error) < 0 ||
        offer_terms_check(&enrol->offer, &enrol->probe, decision->now_ms, error) < 0)
        return -1;
    if (decide_find_active_account(core, code->account, error) < 0)
        return -1;
    struct machine *known =
        map_get_text(&core->machines_by_key, core_bytes(enrol->public_key, MACHINE_KEY_SIZE));
    if (known && known->owner != code->account)
        return error_set(error, ERROR_REFUSED, "the machine belongs to another account");
    const struct text name = known && enrol->name.size == 0 ? text_of(known->name) : enrol->name;
    if (name_check(name, "machine", error) < 0)
        return -1;
    const struct machine *namesake = core_machine_by_name(core, name);
    if (!may_name_machine(code->account, name) || (namesake && namesake != known))
        return error_set(error, ERROR_CONFLICT,
                         "the machine name \"" TEXT_FORMAT
                         "\" is taken; choose another with --name",
                         TEXT_ARGS(name));

    struct event event = {.kind = EVENT_MACHINE_ENROLLED,
                          .machine_enrolled = {.owner = code->account,
                                               .generation = known ? known->generation + 1 : 1,
                                               .probe = enrol->probe}};
    decide_copy(name, event.machine_enrolled.name, sizeof(event.machine_enrolled.name));
    memcpy(event.machine_enrolled.public_key, enrol->public_key, MACHINE_KEY_SIZE);
    decide_remove_code(decision, code->id, /* is_used= */ true);
    if (known && known->state != MACHINE_STATE_OFFLINE)
        take_offline(decision, known, LEASE_OUTCOME_RECLAIMED, "its machine was enrolled again");
    event.machine_enrolled.machine = known ? known->id : core->last_id + 1;
    decision->subject = event.machine_enrolled.machine;
    const struct offer *first = known && known->offer_count > 0 ? known->offers[0] : NULL;
    const struct offer_terms terms = first ? terms_again(decision, first, enrol) : enrol->offer;
    if (known)
        decide_shrink_offers(decision, known, enrol->probe.resources);
    decision_emit(decision, &event);
    decision_emit_offer(decision, first ? first->id : 0, decision->subject, &terms);
    return 0;
}

int decide_find_machine(const struct decision *decision, uint64_t id, struct machine **out_machine,
                        struct error *error)
{
    struct machine *machine = map_get(&decision->core->machines, id);
    if (!machine)
        return error_set(error, ERROR_NOT_FOUND, "machine %" PRIu64 " does not exist", id);
    *out_machine = machine;
    return 0;
}

int decide_find_own_machine(const struct decision *decision, uint64_t account, uint64_t id,
                            struct machine **out_machine, struct error *error)
{
    struct machine *machine;
    if (decide_find_machine(decision, id, &machine, error) < 0)
        return -1;
    if (machine->owner != account)
        return error_set(error, ERROR_REFUSED, "machine %" PRIu64 " belongs to another account",
                         id);
    *out_machine = machine;
    return 0;
}

int decide_report_probe(struct decision *decision, const struct command *command,
                        struct error *error)
{
    struct machine *machine;
    if (decide_find_machine(decision, command->report_probe.machine, &machine, error) < 0 ||
        probe_check(&command->report_probe.probe, error) < 0)
        return -1;
    decision->subject = machine->id;
    decide_shrink_offers(decision, machine, command->report_probe.probe.resources);
    struct event event = {
        .kind = EVENT_MACHINE_PROBED,
        .machine_probed = {.machine = machine->id, .probe = command->report_probe.probe}};
    decision_emit(decision, &event);
    decision->should_match = true;
    return 0;
}

/* Of two that are here. Whoever waits for machines that are near one another is tried again. */
int decide_report_pair(struct decision *decision, const struct command *command,
                       struct error *error)
{
    const __typeof__(command->report_pair) *pair = &command->report_pair;
    struct machine *low, *high;
    if (decide_find_machine(decision, pair->low, &low, error) < 0 ||
        decide_find_machine(decision, pair->high, &high, error) < 0)
        return -1;
    if (pair->low >= pair->high || pair->rtt_us < 1 || pair->rtt_us > MACHINE_RTT_US_MAX)
        return error_set(error, ERROR_INVALID,
                         "two machines, the lower first, are some time apart");
    if (low->state == MACHINE_STATE_OFFLINE || high->state == MACHINE_STATE_OFFLINE)
        return error_set(error, ERROR_CONFLICT, "machine %" PRIu64 " or %" PRIu64 " is offline",
                         pair->low, pair->high);
    decision->subject = low->id;
    struct event event = {.kind = EVENT_PAIR_MEASURED,
                          .pair_measured = {pair->low, pair->high, pair->rtt_us}};
    decision_emit(decision, &event);
    decision->should_match = true;
    return 0;
}

int decide_machine_connected(struct decision *decision, const struct command *command,
                             struct error *error)
{
    struct machine *machine;
    if (decide_find_machine(decision, command->machine_connected.machine, &machine, error) < 0 ||
        decide_find_account(decision->core, machine->owner, error) < 0)
        return -1;
    if (machine->generation != command->machine_connected.generation)
        return error_set(error, ERROR_REFUSED,
                         "machine %" PRIu64 " was enrolled again: generation %" PRIu64
                         " is not %" PRIu64,
                         machine->id, command->machine_connected.generation, machine->generation);
    decision->subject = machine->id;
    if (machine->state == MACHINE_STATE_ONLINE)
        return 0;
    emit_machine_state(decision, machine, MACHINE_STATE_ONLINE);
    decide_note_silence(decision, machine);
    decision->should_match = true;
    return 0;
}

int decide_machine_silent(struct decision *decision, const struct command *command,
                          struct error *error)
{
    struct machine *machine;
    if (decide_find_machine(decision, command->machine_silent.machine, &machine, error) < 0)
        return -1;
    decision->subject = machine->id;
    if (machine->state == MACHINE_STATE_ONLINE) {
        emit_machine_state(decision, machine, MACHINE_STATE_UNREACHABLE);
        decide_move_servers(decision, machine);
        decide_note_silence(decision, machine);
    }
    return 0;
}

/* Leases that run go on, however slowly: that is for their daemon and their jobs to see to. */
int decide_machine_yields(struct decision *decision, const struct command *command,
                          struct error *error)
{
    const __typeof__(command->machine_yields) *yields = &command->machine_yields;
    struct machine *machine;
    if (decide_find_machine(decision, yields->machine, &machine, error) < 0)
        return -1;
    if (yields->yield >= MACHINE_YIELD_COUNT)
        return error_set(error, ERROR_INVALID, "yield is out of range");
    decision->subject = machine->id;
    if (machine->yield == yields->yield)
        return 0;
    const bool was_lent = machine_is_lent(machine);
    struct event event = {.kind = EVENT_MACHINE_YIELDED,
                          .machine_yielded = {.machine = machine->id, .yield = yields->yield}};
    decision_emit(decision, &event);
    if (!was_lent && machine_is_lent(machine))
        decision->should_match = true;
    return 0;
}

int decide_machine_gone(struct decision *decision, const struct command *command,
                        struct error *error)
{
    struct machine *machine;
    if (decide_find_machine(decision, command->machine_gone.machine, &machine, error) < 0)
        return -1;
    decision->subject = machine->id;
    if (machine->state != MACHINE_STATE_OFFLINE)
        take_offline(decision, machine, LEASE_OUTCOME_RECLAIMED, "its machine left the market");
    return 0;
}

void decide_lose_machines(struct decision *decision)
{
    for (struct machine *machine; (machine = core_due_machine(decision->core, decision->now_ms));)
        take_offline(decision, machine, LEASE_OUTCOME_LOST, "its machine was silent for too long");
}

/* ---- Proving --------------------------------------------------------------------------------- */

bool core_is_proven_now(const struct core *core, const struct machine *machine)
{
    return machine->is_unproven && machine->reputation.earned_micro >= core->settings.proving_micro;
}

void decide_prove_machine(struct decision *decision, const struct machine *machine)
{
    if (!core_is_proven_now(decision->core, machine))
        return;
    struct event event = {.kind = EVENT_MACHINE_PROVEN,
                          .machine_proven = {.machine = machine->id,
                                             .owner = machine->owner,
                                             .amount_micro = machine->withheld_micro}};
    decision_emit(decision, &event);
    char memo[LEDGER_MEMO_SIZE];
    snprintf(memo, sizeof(memo), "machine %" PRIu64 " is proven", machine->id);
    decision_emit_due(decision, memo);
    decision->should_match = true; /* it may count as faster */
}
