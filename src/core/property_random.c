#include "core/property_random.h"

#include "core/testing_internal.h"

void property_hash(struct property_world *world, uint8_t *out)
{
    memset(out, (int)below(world, 40) + 1, MARKET_HASH_SIZE);
}

uint64_t property_id(struct property_world *world)
{
    return below(world, 200);
}

uint64_t property_account(struct property_world *world)
{
    const size_t count = core_account_count(world->core);
    if (below(world, 20) == 0)
        return property_id(world);
    if (below(world, 20) == 0 || count == 2)
        return core_account_at(world->core, below(world, count))->id;
    const struct account *account = NULL;
    for (int i = 0; i < 20 && (!account || account->deleted_ms); i++)
        account = core_account_at(world->core, 2 + below(world, count - 2));
    return account->id;
}

static size_t count_open_accounts(const struct property_world *world)
{
    size_t count = 0;
    for (size_t i = 0; i < core_account_count(world->core); i++)
        count += !core_account_at(world->core, i)->deleted_ms;
    return count;
}

struct text property_name(struct property_world *world)
{
    const bool is_new = count_open_accounts(world) < 16;
    snprintf(world->name, sizeof(world->name), "member-%u",
             (unsigned)(is_new ? core_account_count(world->core) : below(world, 40)));
    return text_of(world->name);
}

const struct machine *property_machine(struct property_world *world)
{
    const size_t count = core_machine_count(world->core);
    return count ? core_machine_at(world->core, below(world, count)) : NULL;
}

uint64_t property_machine_id(struct property_world *world)
{
    const struct machine *machine = property_machine(world);
    return machine && below(world, 20) ? machine->id : property_id(world);
}

const struct lease *property_lease(struct property_world *world)
{
    const size_t count = core_lease_count(world->core);
    const struct lease *open[64];
    size_t open_count = 0;
    for (size_t i = count; i-- > 0 && open_count < 64;)
        if (lease_is_open(core_lease_at(world->core, i)))
            open[open_count++] = core_lease_at(world->core, i);
    if (open_count > 0 && below(world, 10))
        return open[below(world, open_count)];
    return count ? core_lease_at(world->core, below(world, count)) : NULL;
}

uint64_t property_fence(struct property_world *world, const struct lease *lease)
{
    return lease && below(world, 20) ? lease->fence : property_id(world);
}

uint64_t property_owner(struct property_world *world, const struct machine *machine)
{
    return machine && below(world, 10) ? machine->owner : property_account(world);
}

struct resources property_resources(struct property_world *world, int64_t cores_max)
{
    return (struct resources){.cores_milli = (int64_t)below(world, (uint64_t)cores_max),
                              .ram_bytes = (int64_t)below(world, 4) * GIB / 4,
                              .gpus_milli = below(world, 30) ? 0 : 1000,
                              .disk_bytes = (int64_t)below(world, 3) * GIB};
}

struct probe property_probe(struct property_world *world)
{
    return (struct probe){.resources = {.cores_milli = 500 + (int64_t)below(world, 4000),
                                        .ram_bytes = 2 * GIB,
                                        .gpus_milli = (int64_t)below(world, 2) * 1000,
                                        .disk_bytes = 4 * GIB},
                          .speed_weight_milli = 20 + (int64_t)below(world, 4000),
                          .rtt_us = below(world, 4) ? 1 + (int64_t)below(world, 30000) : 0,
                          .cpu_model = "random"};
}

struct json_array property_spans(struct property_world *world)
{
    const size_t count = below(world, 4) ? 0 : 1 + below(world, 3);
    int64_t at_ms = world->now_ms - 5000;
    for (size_t i = 0; i < count; i++) {
        world->spans[i].open_ms = at_ms += 1 + (int64_t)below(world, 9000);
        world->spans[i].close_ms = at_ms += 1 + (int64_t)below(world, 900000);
    }
    return (struct json_array){world->spans, count};
}

struct offer_terms property_offer(struct property_world *world)
{
    const bool is_listed = below(world, 10) == 0;
    world->accounts[0].account = property_account(world);
    return (struct offer_terms){
        .resources = {.cores_milli = 1 + (int64_t)below(world, 2500),
                      .ram_bytes = 2 * GIB,
                      .gpus_milli = (int64_t)below(world, 2) * 1000,
                      .disk_bytes = 4 * GIB},
        .roles = below(world, 20) ? 1 + below(world, 3) : 0,
        .minimum = {.core_micro = below(world, 4) ? 0 : 15000},
        .audience = is_listed ? OFFER_AUDIENCE_ACCOUNTS : OFFER_AUDIENCE_ANYONE,
        .accounts = {is_listed ? world->accounts : NULL, is_listed},
        .max_lease_ms = below(world, 8) ? 0 : 300000,
        .is_spare = below(world, 3) == 0,
        .spans = property_spans(world),
        .paused_until_ms = below(world, 20) ? 0 : world->now_ms + (int64_t)below(world, 9000)};
}

uint64_t property_offer_id(struct property_world *world, const struct machine *machine)
{
    if (!machine || machine->offer_count == 0 || below(world, 20) == 0)
        return property_id(world);
    return machine->offers[below(world, machine->offer_count)]->id;
}
