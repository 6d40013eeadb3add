/*
 * Direct: where what leases print may be read from their keepers, and who may.
 *
 * The addresses are what a daemon says of itself. A key is made for each reader that asks, told to
 * the keeper and to the reader, and not kept here.
 */
#include "base/assert.h"
#include "server/hub.h"
#include "server/hub_internal.h"

#include <sodium.h>
#include <stdlib.h>

struct log_place {
    uint64_t machine;
    uint64_t fence;
    char addresses[LEASE_ADDRESSES_MAX][LEASE_ADDRESS_SIZE_MAX + 1];
    uint32_t address_count;
};

/* Said at every turn of a lease; its port stays as long as it runs. */
void direct_addresses(struct hub_machine *machine, const struct addresses_message *addresses)
{
    struct hub *hub = machine->hub;
    if (!dispatch_find(machine, addresses->lease, addresses->fence))
        return;
    struct log_place *place = calloc(1, sizeof(*place));
    ASSERT(place);
    place->machine = machine->id;
    place->fence = addresses->fence;
    struct error ignored; /* the sizes were checked by the decoder */
    for (uint32_t i = 0; i < addresses->address_count; i++)
        if (text_copy(addresses->addresses[i], place->addresses[place->address_count],
                      sizeof(place->addresses[0]), &ignored) == 0)
            place->address_count++;
    pthread_mutex_lock(&hub->live_mutex);
    free(map_remove(&hub->log_places, addresses->lease));
    map_put(&hub->log_places, addresses->lease, place);
    pthread_mutex_unlock(&hub->live_mutex);
}

void direct_forget(struct hub *hub, const struct hub_lease *lease)
{
    pthread_mutex_lock(&hub->live_mutex);
    free(map_remove(&hub->log_places, lease->id));
    pthread_mutex_unlock(&hub->live_mutex);
}

void direct_done(struct hub *hub)
{
    for (size_t i = 0; i < hub->log_places.count; i++)
        free(hub->log_places.entries[i].value);
    map_done(&hub->log_places);
}

bool hub_open_log(struct hub *hub, uint64_t lease, struct hub_log_place *out_place)
{
    struct log_reader_message reader = {.lease = lease};
    uint64_t machine = 0;
    *out_place = (struct hub_log_place){0};
    pthread_mutex_lock(&hub->live_mutex);
    const struct log_place *place = map_get(&hub->log_places, lease);
    if (place) {
        machine = place->machine;
        reader.fence = place->fence;
        out_place->address_count = place->address_count;
        memcpy(out_place->addresses, place->addresses, sizeof(place->addresses));
    }
    pthread_mutex_unlock(&hub->live_mutex);
    if (out_place->address_count == 0)
        return false;
    do
        randombytes_buf(&reader.reader, sizeof(reader.reader));
    while (reader.reader == 0);
    randombytes_buf(reader.key, sizeof(reader.key));
    out_place->reader = reader.reader;
    memcpy(out_place->key, reader.key, sizeof(reader.key));
    hub_log_reader(hub, machine, &reader);
    sodium_memzero(&reader, sizeof(reader));
    return true;
}
