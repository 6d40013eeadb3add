/* Machine: its leases of spare time, beside those that are paid for. */
#include "base/assert.h"
#include "market/lease.h"

#include <stdlib.h>
#include <string.h>

size_t machine_spare_count(const struct machine *machine)
{
    return machine->spare ? machine->spare->count : 0;
}

void machine_add_spare(struct machine *machine, struct lease *lease)
{
    if (!machine->spare) {
        machine->spare = calloc(1, sizeof(*machine->spare));
        ASSERT(machine->spare);
    }
    struct machine_spare *spare = machine->spare;
    if (spare->count == spare->capacity) {
        spare->capacity = spare->capacity ? spare->capacity * 2 : 4;
        spare->leases = realloc(spare->leases, spare->capacity * sizeof(struct lease *));
        ASSERT(spare->leases);
    }
    spare->leases[spare->count++] = lease;
    spare->leased = resources_add(spare->leased, lease->resources);
}

void machine_remove_spare(struct machine *machine, const struct lease *lease)
{
    struct machine_spare *spare = machine->spare;
    size_t at = 0;
    while (at < spare->count && spare->leases[at] != lease)
        at++;
    ASSERT(at < spare->count);
    spare->count--;
    memmove(spare->leases + at, spare->leases + at + 1,
            (spare->count - at) * sizeof(struct lease *));
    spare->leased = resources_subtract(spare->leased, lease->resources);
}

void machine_free_spare(struct machine *machine)
{
    if (machine->spare)
        free(machine->spare->leases);
    free(machine->spare);
    machine->spare = NULL;
}

struct resources machine_spare_free(const struct machine *machine)
{
    const struct resources free = machine_free(machine);
    return machine->spare ? resources_subtract(free, machine->spare->leased) : free;
}

/* Of the offer alone. */
static struct resources left_of_offer(const struct offer *offer)
{
    struct resources left = resources_subtract(offer->terms.resources, offer->leased);
    for (size_t i = 0; i < machine_spare_count(offer->machine); i++) {
        const struct lease *lease = offer->machine->spare->leases[i];
        if (lease->offer == offer->id)
            left = resources_subtract(left, lease->resources);
    }
    return left;
}

struct resources offer_spare_free(const struct offer *offer)
{
    return resources_smaller(left_of_offer(offer), machine_spare_free(offer->machine));
}

/* Whether more of what is wanted would fit without the lease, of what is free beside it. */
static bool is_in_way(const struct lease *lease, struct resources wanted, struct resources beside)
{
    const struct resources without = resources_add(beside, lease->resources);
    return !resources_equal(resources_smaller(wanted, beside), resources_smaller(wanted, without));
}

const struct lease *machine_spare_in_way(const struct machine *machine, const struct offer *offer,
                                         struct resources wanted)
{
    const struct resources machine_left = machine_spare_free(machine);
    const struct resources offer_left = left_of_offer(offer);
    for (size_t i = machine_spare_count(machine); i-- > 0;) {
        const struct lease *lease = machine->spare->leases[i];
        if (is_in_way(lease, wanted, machine_left) ||
            (lease->offer == offer->id && is_in_way(lease, wanted, offer_left)))
            return lease;
    }
    return NULL;
}
