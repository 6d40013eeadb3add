/*
 * What random commands are made of: things that exist, mostly, and now and then ones that do not.
 */
#pragma once

#include "core/property_commands.h"

static inline uint64_t below(struct property_world *world, uint64_t bound)
{
    return random_below(&world->random, bound);
}

void property_hash(struct property_world *world, uint8_t *out);
/* Any id that exists, of anything, or one that does not. */
uint64_t property_id(struct property_world *world);
uint64_t property_account(struct property_world *world);
/* New ones as long as there are few, so that they meet each other; else mostly taken ones. */
struct text property_name(struct property_world *world);
const struct machine *property_machine(struct property_world *world);
uint64_t property_machine_id(struct property_world *world);
/* Mostly one that is open; now and then any. */
const struct lease *property_lease(struct property_world *world);
uint64_t property_fence(struct property_world *world, const struct lease *lease);
uint64_t property_owner(struct property_world *world, const struct machine *machine);
struct resources property_resources(struct property_world *world, int64_t cores_max);
struct probe property_probe(struct property_world *world);
struct json_array property_spans(struct property_world *world);
struct offer_terms property_offer(struct property_world *world);
uint64_t property_offer_id(struct property_world *world, const struct machine *machine);
