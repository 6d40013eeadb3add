/*
 * Commands about offers: what a machine lends, and on which terms.
 */
#include "core/core_internal.h"

#include <inttypes.h>

uint64_t decision_emit_offer(struct decision *decision, uint64_t offer, uint64_t machine,
                             const struct offer_terms *terms)
{
    struct event event = {.kind = EVENT_OFFER_SET,
                          .offer_set = {.offer = offer ? offer : decision->core->last_id + 1,
                                        .machine = machine,
                                        .terms = *terms}};
    decision_emit(decision, &event);
    decision->should_match = true;
    return event.offer_set.offer;
}

static int find_own_offer(const struct decision *decision, uint64_t account, uint64_t id,
                          struct offer **out_offer, struct error *error)
{
    struct offer *offer = map_get(&decision->core->offers, id);
    if (!offer)
        return error_set(error, ERROR_NOT_FOUND, "offer %" PRIu64 " does not exist", id);
    if (offer->machine->owner != account)
        return error_set(error, ERROR_REFUSED, "offer %" PRIu64 " belongs to another account", id);
    *out_offer = offer;
    return 0;
}

static int check_accounts(const struct core *core, const struct offer_terms *terms,
                          struct error *error)
{
    const struct offer_account *accounts = terms->accounts.items;
    for (size_t i = 0; i < terms->accounts.count; i++)
        if (decide_find_account(core, accounts[i].account, error) < 0)
            return -1;
    return 0;
}

int decide_set_offer(struct decision *decision, const struct command *command, struct error *error)
{
    const __typeof__(command->set_offer) *set = &command->set_offer;
    struct machine *machine;
    struct offer *known = NULL;
    if (decide_find_active_account(decision->core, set->account, error) < 0 ||
        decide_find_own_machine(decision, set->account, set->machine, &machine, error) < 0)
        return -1;
    const uint64_t id = set->is_first && machine->offer_count ? machine->offers[0]->id : set->offer;
    if ((id && find_own_offer(decision, set->account, id, &known, error) < 0) ||
        offer_terms_check(&set->terms, &machine->probe, decision->now_ms, error) < 0 ||
        check_accounts(decision->core, &set->terms, error) < 0)
        return -1;
    if (known && known->machine != machine)
        return error_set(error, ERROR_INVALID, "offer %" PRIu64 " is of another machine",
                         known->id);
    if (!known && machine->offer_count == MACHINE_OFFERS_MAX)
        return error_set(error, ERROR_CONFLICT, "a machine has at most %d offers",
                         MACHINE_OFFERS_MAX);
    decision->subject = decision_emit_offer(decision, id, machine->id, &set->terms);
    return 0;
}

int decide_pause_offer(struct decision *decision, const struct command *command,
                       struct error *error)
{
    const __typeof__(command->pause_offer) *pause = &command->pause_offer;
    struct offer *offer;
    if (find_own_offer(decision, pause->account, pause->offer, &offer, error) < 0 ||
        decide_check_instant(pause->until_ms, "until_ms", error) < 0)
        return -1;
    const int64_t until_ms = pause->until_ms > decision->now_ms ? pause->until_ms : 0;
    decision->subject = offer->id;
    if (offer->terms.paused_until_ms == until_ms)
        return 0;
    struct event event = {
        .kind = EVENT_OFFER_PAUSED,
        .offer_paused = {.offer = offer->id, .machine = offer->machine->id, .until_ms = until_ms}};
    decision_emit(decision, &event);
    decision->should_match = true;
    return 0;
}

int decide_renew_offer(struct decision *decision, const struct command *command,
                       struct error *error)
{
    const __typeof__(command->renew_offer) *renew = &command->renew_offer;
    const struct window window = {renew->spans.items, renew->spans.count};
    const struct offer *offer = core_offer(decision->core, renew->offer);
    if (!offer)
        return error_set(error, ERROR_NOT_FOUND, "offer %" PRIu64 " does not exist", renew->offer);
    if (window_check(window, decision->now_ms, error) < 0)
        return -1;
    if (window.span_count == 0)
        return error_set(error, ERROR_INVALID, "spans: an offer is renewed with some");
    decision->subject = offer->id;
    struct event event = {.kind = EVENT_OFFER_RENEWED,
                          .offer_renewed = {.offer = offer->id,
                                            .machine = offer->machine->id,
                                            .spans = renew->spans}};
    decision_emit(decision, &event);
    decision->should_match = true;
    return 0;
}

int decide_withdraw_offer(struct decision *decision, const struct command *command,
                          struct error *error)
{
    struct offer *offer;
    if (find_own_offer(decision, command->withdraw_offer.account, command->withdraw_offer.offer,
                       &offer, error) < 0)
        return -1;
    decision->subject = offer->id;
    struct event event = {.kind = EVENT_OFFER_WITHDRAWN,
                          .offer_withdrawn = {.offer = offer->id, .machine = offer->machine->id}};
    decision_emit(decision, &event);
    return 0;
}

void decide_shrink_offers(struct decision *decision, const struct machine *machine,
                          struct resources found)
{
    if (found.bandwidth_kbit == 0) /* not known */
        found.bandwidth_kbit = RESOURCES_KBIT_MAX;
    for (size_t i = 0; i < machine->offer_count; i++) {
        const struct offer *offer = machine->offers[i];
        if (resources_fit(offer->terms.resources, found))
            continue;
        struct offer_terms terms = offer_terms(offer);
        terms.resources = resources_smaller(terms.resources, found);
        decision_emit_offer(decision, offer->id, machine->id, &terms);
    }
}

void decide_turn_offers(struct decision *decision)
{
    for (const struct offer *offer; (offer = core_due_offer(decision->core, decision->now_ms));) {
        struct event event = {.kind = EVENT_OFFER_TURNED,
                              .offer_turned = {.offer = offer->id,
                                               .machine = offer->machine->id,
                                               .is_open = offer_is_open(offer, decision->now_ms)}};
        decision_emit(decision, &event);
        decision->should_match |= event.offer_turned.is_open;
    }
}
