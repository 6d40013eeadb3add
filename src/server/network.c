/*
 * Job networks: tells the ranks of a job of one another, with a key and a ticket for each two.
 *
 * A rank is told of another once that one's daemon has said where it may be reached, so that a
 * direct path can be tried before the relay. Both sides are told; what was told is told again to a
 * machine that connects anew, and a daemon that knows it already lets it be.
 */
#include "base/assert.h"
#include "base/log.h"
#include "server/hub_internal.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>

static bool is_in_network(const struct hub_lease *lease)
{
    return lease->has_network && lease->role == LEASE_ROLE_WORKER && !lease->is_over;
}

static struct keys_pair pair_of(const struct hub_lease *a, const struct hub_lease *b)
{
    const struct hub_lease *low = a->id < b->id ? a : b;
    const struct hub_lease *high = a->id < b->id ? b : a;
    return (struct keys_pair){low->id, low->fence, high->id, high->fence};
}

/* Makes the ticket known to whoever dials the link port with it. */
static void expect_pair(struct hub *hub, const struct keys_pair *names,
                        const uint8_t ticket[KEYS_SECRET_SIZE])
{
    char text[TICKET_TEXT_SIZE];
    text_hex_encode(ticket, KEYS_SECRET_SIZE, text);
    if (map_get_text(&hub->pairs, text_of(text)))
        return;
    struct hub_pair *pair = calloc(1, sizeof(*pair));
    ASSERT(pair);
    pair->low_lease = names->low_lease;
    pair->high_lease = names->high_lease;
    memcpy(pair->ticket, text, sizeof(text));
    map_put_text(&hub->pairs, text_of(pair->ticket), pair);
}

/* Tells `lease` of `other`. */
static void tell(struct hub *hub, const struct hub_lease *lease, const struct hub_lease *other)
{
    struct hub_machine *machine = hub_machine(hub, lease->machine);
    if (!machine || !machine->is_welcome || !other->has_addresses)
        return;
    struct lease_message message = {
        .type = LEASE_MESSAGE_RANK,
        .rank = {.lease = lease->id,
                 .fence = lease->fence,
                 .peer = {.lease = other->id, .fence = other->fence, .rank = (uint32_t)other->rank},
                 .address_count = other->address_count},
    };
    const struct keys_pair names = pair_of(lease, other);
    keys_pair(hub->server->keys, &names, message.rank.peer.key, message.rank.peer.ticket);
    for (uint32_t i = 0; i < other->address_count; i++)
        message.rank.addresses[i] = text_of(other->addresses[i]);
    expect_pair(hub, &names, message.rank.peer.ticket);
    if (hub_send(machine, &message))
        log_event(LOG_INFO, "rank_sent", "lease=%" PRIu64 " peer=%" PRIu64, lease->id, other->id);
    sodium_memzero(&message, sizeof(message));
}

void network_tell(struct hub *hub, struct hub_lease *lease)
{
    if (!is_in_network(lease))
        return;
    for (size_t i = 0; i < hub->leases.count; i++) {
        const struct hub_lease *other = hub->leases.entries[i].value;
        if (other == lease || other->job != lease->job || !is_in_network(other))
            continue;
        tell(hub, lease, other);
        // NOLINTNEXTLINE(readability-suspicious-call-argument): both are told
        tell(hub, /* lease= */ other, /* other= */ lease);
    }
}

static bool has_told(const struct hub_lease *lease, const struct addresses_message *addresses)
{
    if (!lease->has_addresses || lease->address_count != addresses->address_count)
        return false;
    for (uint32_t i = 0; i < addresses->address_count; i++)
        if (!text_equal(text_of(lease->addresses[i]), addresses->addresses[i]))
            return false;
    return true;
}

/* Said at every turn of a lease; all ranks hear of it only when it is news. A machine that is back
 * is told of the others with its hello. */
void network_addresses(struct hub_machine *machine, const struct addresses_message *addresses)
{
    struct hub *hub = machine->hub;
    struct hub_lease *lease = dispatch_find(machine, addresses->lease, addresses->fence);
    if (!lease || !is_in_network(lease))
        return;
    if (has_told(lease, addresses))
        return;
    struct error ignored; /* the sizes were checked by the decoder */
    lease->address_count = 0;
    for (uint32_t i = 0; i < addresses->address_count; i++)
        if (text_copy(addresses->addresses[i], lease->addresses[lease->address_count],
                      sizeof(lease->addresses[0]), &ignored) == 0)
            lease->address_count++;
    lease->has_addresses = true;
    network_tell(hub, lease);
}

void network_forget(struct hub *hub, const struct hub_lease *lease)
{
    for (size_t i = hub->pairs.count; lease->has_network && i-- > 0;) {
        struct hub_pair *pair = hub->pairs.entries[i].value;
        if (pair->low_lease != lease->id && pair->high_lease != lease->id)
            continue;
        stream_forget_pair(hub, pair);
        map_remove_text(&hub->pairs, text_of(pair->ticket));
        free(pair);
    }
}
