/* Machines and their offers in snapshots. */
#include "core/snapshot_internal.h"
#include "market/pair.h"

#define COUNT(name_, member) SCHEMA_RANGE(name_, struct reputation, member, 0, INT64_MAX)
static const struct json_field reputation_fields[] = {
    COUNT("completed", completed),
    COUNT("lost", lost),
    COUNT("reclaimed", reclaimed),
    COUNT("failed", failed),
    COUNT("completed_milli", completed_milli),
    COUNT("lost_milli", lost_milli),
    COUNT("reclaimed_milli", reclaimed_milli),
    COUNT("leased_ms", leased_ms),
    COUNT("delivered_ms", delivered_ms),
    COUNT("ticks", ticks),
    COUNT("earned_micro", earned_micro),
};
#undef COUNT
static const struct json_schema reputation_schema =
    JSON_SCHEMA("reputation", reputation_fields, struct reputation);

static const struct json_field machine_fields[] = {
    SCHEMA_ID("id", struct machine, id),
    SCHEMA_ID("owner", struct machine, owner),
    SCHEMA_CHARS("name", struct machine, name),
    SCHEMA_HEX("public_key", struct machine, public_key),
    SCHEMA_ID("generation", struct machine, generation),
    SCHEMA_OBJECT("probe", struct machine, probe, schema_probe),
    SCHEMA_OBJECT("reputation", struct machine, reputation, reputation_schema),
    SCHEMA_BOOL("is_unproven", struct machine, is_unproven),
    SCHEMA_MICRO("withheld_micro", struct machine, withheld_micro),
    SCHEMA_CHOICE("state", struct machine, state, schema_machine_states),
    SCHEMA_CHOICE("yield", struct machine, yield, schema_machine_yields),
    SCHEMA_TIME("enrolled_ms", struct machine, enrolled_ms),
    SCHEMA_TIME("state_changed_ms", struct machine, state_changed_ms),
    SCHEMA_TIME("lent_again_ms", struct machine, lent_again_ms),
    SCHEMA_TIME("counted_ms", struct machine, counted_ms),
};
const struct json_schema snapshot_machine_schema =
    JSON_SCHEMA("machine", machine_fields, struct machine);

/* How far two machines are from one another. */
struct pair_record {
    uint64_t low, high;
    int64_t rtt_us;
    int64_t measured_ms;
};

static const struct json_field pair_fields[] = {
    SCHEMA_ID("low", struct pair_record, low),
    SCHEMA_ID("high", struct pair_record, high),
    SCHEMA_RANGE("rtt_us", struct pair_record, rtt_us, 1, MACHINE_RTT_US_MAX),
    SCHEMA_TIME("measured_ms", struct pair_record, measured_ms),
};
const struct json_schema snapshot_pair_schema =
    JSON_SCHEMA("pair", pair_fields, struct pair_record);

/* Each pair once, where its lower machine is; `out` NULL: only counted. */
size_t snapshot_write_pairs(struct buffer *out, const struct machine *machine)
{
    size_t count = 0;
    for (size_t i = 0; machine->pairs && i < machine->pairs->count; i++) {
        const struct pair_peer *peer = &machine->pairs->peers[i];
        const struct pair_record record = {machine->id, peer->machine->id, peer->rtt_us,
                                           peer->measured_ms};
        if (record.high < record.low)
            continue;
        count++;
        if (out)
            snapshot_write_line(out, &snapshot_pair_schema, &record);
    }
    return count;
}

int snapshot_restore_pair(struct core *core, const void *record, struct error *error)
{
    const struct pair_record *stored = record;
    struct machine *low = map_get(&core->machines, stored->low);
    struct machine *high = map_get(&core->machines, stored->high);
    if (!low || !high || low->id >= high->id || low->state == MACHINE_STATE_OFFLINE ||
        high->state == MACHINE_STATE_OFFLINE || stored->measured_ms > core->time_ms ||
        pair_is_full(low) || pair_is_full(high) || pair_is_known(low, high))
        return snapshot_misfit(error, "pair of machine", stored->low);
    pair_put(low, high, stored->rtt_us, stored->measured_ms);
    return 0;
}

/* An offer, which points to its machine. */
struct offer_record {
    uint64_t machine;
    struct offer offer;
    struct offer_terms terms;
};

static const struct json_field offer_fields[] = {
    SCHEMA_ID("id", struct offer_record, offer.id),
    SCHEMA_ID("machine", struct offer_record, machine),
    SCHEMA_OBJECT("terms", struct offer_record, terms, schema_offer_terms),
    SCHEMA_BOOL("is_open", struct offer_record, offer.is_open),
    SCHEMA_TIME("turns_ms", struct offer_record, offer.turns_ms),
    SCHEMA_ID("last_lease", struct offer_record, offer.last_lease),
};
const struct json_schema snapshot_offer_schema =
    JSON_SCHEMA("offer", offer_fields, struct offer_record);

void snapshot_write_offers(struct buffer *out, const struct machine *machine)
{
    for (size_t i = 0; i < machine->offer_count; i++) {
        const struct offer_record record = {machine->id, *machine->offers[i],
                                            offer_terms(machine->offers[i])};
        snapshot_write_line(out, &snapshot_offer_schema, &record);
    }
}

int snapshot_restore_machine(struct core *core, const void *record, struct error *error)
{
    const struct machine *stored = record;
    const struct text name = text_of(stored->name);
    if (!snapshot_follows(core, &core->machines, stored->id) ||
        !core_account(core, stored->owner) || core_machine_by_name(core, name) ||
        core_machine_by_key(core, stored->public_key) || name_check(name, "machine", error) < 0 ||
        probe_check(&stored->probe, error) < 0)
        return snapshot_misfit(error, "machine", stored->id);
    struct machine *machine = slab_take(&core->machine_slab);
    *machine = *stored;
    machine->is_barred = account_is_frozen(core_account(core, stored->owner));
    map_put(&core->machines, machine->id, machine);
    map_put_text(&core->machines_by_name, name, machine);
    map_put_text(&core->machines_by_key, core_bytes(machine->public_key, MACHINE_KEY_SIZE),
                 machine);
    core_index_machine(core, machine, core->time_ms);
    return 0;
}

int snapshot_restore_offer(struct core *core, const void *record, struct error *error)
{
    const struct offer_record *stored = record;
    struct machine *machine = map_get(&core->machines, stored->machine);
    if (!machine || stored->offer.id == 0 || stored->offer.id > core->last_id ||
        core_offer(core, stored->offer.id) || machine->offer_count == MACHINE_OFFERS_MAX ||
        offer_terms_check(&stored->terms, &machine->probe, /* now_ms= */ 0, error) < 0)
        return snapshot_misfit(error, "offer", stored->offer.id);
    struct offer *offer = slab_take(&core->offer_slab);
    *offer = stored->offer;
    offer->machine = machine;
    offer_set_terms(offer, &core->offer_shares, &stored->terms);
    map_put(&core->offers, offer->id, offer);
    machine_add_offer(machine, offer);
    core_wake_offer(core, offer);
    listing_update(&core->listing, offer, core->time_ms);
    return 0;
}
