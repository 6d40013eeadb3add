/* Rows of offers, and what a machine's row says of its offers together. */
#include "base/schedule.h"
#include "market/offer_shared.h"
#include "server/projection.h"
#include "server/projection_internal.h"
#include "server/tables.h"

#include <inttypes.h>
#include <stdio.h>

/* A pause is what keeps it shut when that is what it waits for the end of. */
static enum offer_state state_of(const struct offer *offer)
{
    const int64_t paused_until_ms = offer->terms.paused_until_ms;
    if (offer->is_open)
        return OFFER_STATE_OPEN;
    return paused_until_ms > 0 &&
                   (paused_until_ms == OFFER_PAUSED_FOREVER || paused_until_ms == offer->turns_ms)
               ? OFFER_STATE_PAUSED
               : OFFER_STATE_CLOSED;
}

static enum offer_state state_of_all(const struct machine *machine)
{
    bool is_one_closed = false;
    for (size_t i = 0; i < machine->offer_count; i++) {
        const enum offer_state state = state_of(machine->offers[i]);
        if (state == OFFER_STATE_OPEN)
            return state;
        is_one_closed = is_one_closed || state == OFFER_STATE_CLOSED;
    }
    if (machine->offer_count == 0)
        return OFFER_STATE_NONE;
    return is_one_closed ? OFFER_STATE_CLOSED : OFFER_STATE_PAUSED;
}

/* Of an open machine when the last of its open offers may close, else when the first may open. */
static int64_t turns_of_all(const struct machine *machine, enum offer_state state)
{
    int64_t turns_ms = 0;
    for (size_t i = 0; i < machine->offer_count; i++) {
        const struct offer *offer = machine->offers[i];
        if (state == OFFER_STATE_OPEN && !offer->is_open)
            continue;
        if (state == OFFER_STATE_OPEN && offer->turns_ms == 0)
            return 0;
        const bool is_nearer =
            state == OFFER_STATE_OPEN ? offer->turns_ms > turns_ms : offer->turns_ms < turns_ms;
        if (offer->turns_ms > 0 && (turns_ms == 0 || is_nearer))
            turns_ms = offer->turns_ms;
    }
    return turns_ms;
}

/* Of a machine that is open its open offers count, else all that may open. */
static bool counts(const struct offer *offer, enum offer_state of_all)
{
    return offer->is_open || of_all != OFFER_STATE_OPEN;
}

/* All offers share the machine. */
static struct resources lent_by_all(const struct machine *machine, enum offer_state state)
{
    struct resources lent = {0};
    for (size_t i = 0; i < machine->offer_count; i++)
        if (counts(machine->offers[i], state))
            lent = resources_add(lent, machine->offers[i]->terms.resources);
    return resources_smaller(lent, machine->probe.resources);
}

static uint64_t roles_of_all(const struct machine *machine, enum offer_state state)
{
    uint64_t roles = 0;
    for (size_t i = 0; i < machine->offer_count; i++)
        if (counts(machine->offers[i], state))
            roles |= machine->offers[i]->terms.roles;
    return roles;
}

static int64_t smaller(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

/* The least that any of them asks, resource by resource. */
static struct price_vector minimum_of_all(const struct machine *machine, enum offer_state state)
{
    struct price_vector least = {0};
    bool is_first = true;
    for (size_t i = 0; i < machine->offer_count; i++) {
        const struct price_vector *asked = &machine->offers[i]->terms.minimum;
        if (!counts(machine->offers[i], state))
            continue;
        least = is_first ? *asked
                         : (struct price_vector){
                               .core_micro = smaller(least.core_micro, asked->core_micro),
                               .ram_micro = smaller(least.ram_micro, asked->ram_micro),
                               .gpu_micro = smaller(least.gpu_micro, asked->gpu_micro),
                               .disk_micro = smaller(least.disk_micro, asked->disk_micro),
                           };
        is_first = false;
    }
    return least;
}

static struct text labels_of_all(const struct machine *machine, enum offer_state state,
                                 char out[PROJECTION_LABELS_SIZE])
{
    size_t size = 0;
    for (size_t i = 0; i < machine->offer_count; i++) {
        const struct text labels = machine->offers[i]->shared->labels;
        if (labels.size > 0 && counts(machine->offers[i], state))
            size += (size_t)snprintf(out + size, PROJECTION_LABELS_SIZE - size, "%s" TEXT_FORMAT,
                                     size ? "," : "", TEXT_ARGS(labels));
    }
    return (struct text){out, size};
}

static void put_free(const struct machine *machine, struct store_value *out)
{
    const struct resources free = machine_open_free(machine);
    out[MACHINES_AVAILABILITY] = store_integer(machine_availability(machine));
    out[MACHINES_FREE_CORES_MILLI] = store_integer(free.cores_milli);
    out[MACHINES_FREE_RAM_BYTES] = store_integer(free.ram_bytes);
    out[MACHINES_FREE_GPUS_MILLI] = store_integer(free.gpus_milli);
    out[MACHINES_FREE_DISK_BYTES] = store_integer(free.disk_bytes);
}

void projection_machine_offers(const struct machine *machine, char labels[PROJECTION_LABELS_SIZE],
                               struct store_value *out)
{
    const enum offer_state state = state_of_all(machine);
    const struct resources lent = lent_by_all(machine, state);
    const struct price_vector minimum = minimum_of_all(machine, state);
    out[MACHINES_OFFER_CORES_MILLI] = store_integer(lent.cores_milli);
    out[MACHINES_OFFER_RAM_BYTES] = store_integer(lent.ram_bytes);
    out[MACHINES_OFFER_GPUS_MILLI] = store_integer(lent.gpus_milli);
    out[MACHINES_OFFER_DISK_BYTES] = store_integer(lent.disk_bytes);
    out[MACHINES_OFFER_ROLES] = store_integer((int64_t)roles_of_all(machine, state));
    out[MACHINES_OFFER_IS_PAUSED] =
        store_integer(state == OFFER_STATE_PAUSED || state == OFFER_STATE_NONE);
    out[MACHINES_MINIMUM_CORE_MICRO] = store_integer(minimum.core_micro);
    out[MACHINES_MINIMUM_RAM_MICRO] = store_integer(minimum.ram_micro);
    out[MACHINES_MINIMUM_GPU_MICRO] = store_integer(minimum.gpu_micro);
    out[MACHINES_MINIMUM_DISK_MICRO] = store_integer(minimum.disk_micro);
    out[MACHINES_OFFER_COUNT] = store_integer((int64_t)machine->offer_count);
    out[MACHINES_OFFER_STATE] = store_integer(state);
    out[MACHINES_OFFER_TURNS_MS] = store_integer(turns_of_all(machine, state));
    out[MACHINES_OFFER_LABELS] = store_text(labels_of_all(machine, state, labels));
    put_free(machine, out);
}

static int64_t renew_ms(const struct offer_terms *terms)
{
    struct schedule schedule;
    struct error ignored; /* words of another version are shown and not expanded again */
    const struct span *spans = terms->spans.items;
    if (terms->spans.count == 0 || schedule_parse(terms->schedule, &schedule, &ignored) < 0)
        return 0;
    return schedule_renew_ms(&schedule, spans[0]);
}

static struct text write_accounts(const struct offer_terms *terms,
                                  char out[PROJECTION_ACCOUNTS_SIZE])
{
    const struct offer_account *accounts = terms->accounts.items;
    size_t size = 0;
    for (size_t i = 0; i < terms->accounts.count; i++)
        size += (size_t)snprintf(out + size, PROJECTION_ACCOUNTS_SIZE - size, "%s%" PRIu64,
                                 i ? "," : "", accounts[i].account);
    return (struct text){out, size};
}

void projection_offer_row(const struct offer *offer, char accounts[PROJECTION_ACCOUNTS_SIZE],
                          struct store_value *out)
{
    const struct offer_terms all = offer_terms(offer);
    const struct offer_terms *terms = &all;
    out[OFFERS_ID] = store_integer((int64_t)offer->id);
    out[OFFERS_MACHINE] = store_integer((int64_t)offer->machine->id);
    out[OFFERS_OWNER] = store_integer((int64_t)offer->machine->owner);
    out[OFFERS_STATE] = store_integer(state_of(offer));
    out[OFFERS_TURNS_MS] = store_integer(offer->turns_ms);
    out[OFFERS_RENEW_MS] = store_integer(renew_ms(terms));
    out[OFFERS_CORES_MILLI] = store_integer(terms->resources.cores_milli);
    out[OFFERS_RAM_BYTES] = store_integer(terms->resources.ram_bytes);
    out[OFFERS_GPUS_MILLI] = store_integer(terms->resources.gpus_milli);
    out[OFFERS_DISK_BYTES] = store_integer(terms->resources.disk_bytes);
    out[OFFERS_BANDWIDTH_KBIT] = store_integer(terms->resources.bandwidth_kbit);
    out[OFFERS_GPU_MODEL] = store_text(terms->gpu_model);
    out[OFFERS_GPU_RAM_BYTES] = store_integer(terms->gpu_ram_bytes);
    out[OFFERS_ROLES] = store_integer((int64_t)terms->roles);
    out[OFFERS_MINIMUM_CORE_MICRO] = store_integer(terms->minimum.core_micro);
    out[OFFERS_MINIMUM_RAM_MICRO] = store_integer(terms->minimum.ram_micro);
    out[OFFERS_MINIMUM_GPU_MICRO] = store_integer(terms->minimum.gpu_micro);
    out[OFFERS_MINIMUM_DISK_MICRO] = store_integer(terms->minimum.disk_micro);
    out[OFFERS_MAX_LEASE_MS] = store_integer(terms->max_lease_ms);
    out[OFFERS_SPARE] = store_integer(terms->is_spare);
    out[OFFERS_PAUSED_UNTIL_MS] = store_integer(terms->paused_until_ms);
    out[OFFERS_NETWORK] = store_integer(terms->network);
    out[OFFERS_INSTALL] = store_integer(terms->install);
    out[OFFERS_LABELS] = store_text(terms->labels);
    out[OFFERS_AUDIENCE] = store_integer(terms->audience);
    out[OFFERS_AUDIENCE_GROUP] = store_integer((int64_t)terms->group);
    out[OFFERS_ACCOUNTS] = store_text(write_accounts(terms, accounts));
    out[OFFERS_SCHEDULE] = store_text(terms->schedule);
    out[OFFERS_LEASED_CORES_MILLI] = store_integer(offer->leased.cores_milli);
    out[OFFERS_LEASE_COUNT] = store_integer((int64_t)offer->lease_count);
}
