/*
 * Sources: tells the workers of a job of one another, so that they exchange the chunks of their
 * data where they reach each other, with a key for each two.
 *
 * A worker is told of another once that one's daemon has said where its chunks are: of those
 * addresses that tell.h allows. In a large job each hears of those of a rank near its own
 * only.
 */
#include "base/log.h"
#include "server/hub_internal.h"
#include "server/tell.h"

#include <inttypes.h>
#include <sodium.h>

enum { NEAR_RANKS = 8 };

static bool has_sources(const struct hub_lease *lease)
{
    return lease->role == LEASE_ROLE_WORKER && lease->has_chunk_addresses && !lease->is_over;
}

static bool are_near(const struct hub_lease *a, const struct hub_lease *b)
{
    const uint64_t distance = a->rank < b->rank ? b->rank - a->rank : a->rank - b->rank;
    return a != b && a->job == b->job && distance <= NEAR_RANKS;
}

/* Tells `lease` of `other`. */
static void tell(struct hub *hub, const struct hub_lease *lease, const struct hub_lease *other)
{
    struct hub_machine *machine = hub_machine(hub, lease->machine);
    const struct hub_machine *from = hub_machine(hub, other->machine);
    if (!machine || !machine->is_welcome || !from || !from->is_welcome)
        return;
    struct lease_message message = {
        .type = LEASE_MESSAGE_CHUNK_PEER,
        .rank = {.lease = lease->id,
                 .fence = lease->fence,
                 .peer = {.lease = other->id,
                          .fence = other->fence,
                          .rank = (uint32_t)other->rank}},
    };
    const struct hub_lease *low = lease->id < other->id ? lease : other;
    const struct hub_lease *high = low == lease ? other : lease;
    const struct keys_pair names = {low->id, low->fence, high->id, high->fence};
    keys_chunks(hub->server->keys, &names, message.rank.peer.key);
    for (uint32_t i = 0; i < other->chunk_address_count; i++)
        if (tell_may(connection_host(machine->connection), connection_host(from->connection),
                     text_of(other->chunk_addresses[i])))
            message.rank.addresses[message.rank.address_count++] =
                text_of(other->chunk_addresses[i]);
    hub_send(machine, &message);
    sodium_memzero(&message, sizeof(message));
}

void sources_tell(struct hub *hub, const struct hub_lease *lease)
{
    if (!has_sources(lease))
        return;
    for (size_t i = 0; i < hub->leases.count; i++) {
        const struct hub_lease *other = hub->leases.entries[i].value;
        if (!are_near(lease, other) || !has_sources(other))
            continue;
        tell(hub, lease, other);
        // NOLINTNEXTLINE(readability-suspicious-call-argument): both are told
        tell(hub, /* lease= */ other, /* other= */ lease);
    }
}

/* Said at every turn of a lease; the first time is news. Its port stays as long as it runs. */
void sources_addresses(struct hub_machine *machine, const struct addresses_message *addresses)
{
    struct hub_lease *lease = dispatch_find(machine, addresses->lease, addresses->fence);
    if (!lease || lease->has_chunk_addresses)
        return;
    struct error ignored; /* the sizes were checked by the decoder */
    for (uint32_t i = 0; i < addresses->address_count; i++)
        if (text_copy(addresses->addresses[i], lease->chunk_addresses[lease->chunk_address_count],
                      sizeof(lease->chunk_addresses[0]), &ignored) == 0)
            lease->chunk_address_count++;
    lease->has_chunk_addresses = true;
    sources_tell(machine->hub, lease);
}
