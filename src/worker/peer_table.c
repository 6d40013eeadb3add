#include "worker/peer_table.h"

#include "base/assert.h"
#include "base/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void peer_table_init(struct peer_table *table, const struct child_config *config)
{
    table->count = 0;
    table->peers = calloc(CHILD_PEER_MAX, sizeof *table->peers);
    ASSERT(table->peers);
    for (uint32_t i = 0; i < config->peer_count; i++)
        peer_table_put(table, &config->peers[i]);
}

void peer_table_done(struct peer_table *table)
{
    free(table->peers);
}

void peer_table_put(struct peer_table *table, const struct child_peer *peer)
{
    uint32_t index = table->count;
    for (uint32_t i = 0; i < table->count; i++)
        if (table->peers[i].role == peer->role && table->peers[i].rank == peer->rank)
            index = i;
    if (index == CHILD_PEER_MAX) {
        log_event(LOG_ERROR, "peer_refused", "lease=%" PRIu64 " reason=\"too many\"", peer->lease);
        return;
    }
    table->peers[index] = *peer;
    if (index == table->count)
        table->count++;
}

int peer_table_find(const struct peer_table *table, uint64_t lease, uint64_t fence,
                    struct exchange_peer *out_peer)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const struct child_peer *peer = &table->peers[i];
        if (peer->lease != lease || peer->fence != fence)
            continue;
        out_peer->is_server = peer->role == LEASE_ROLE_SERVER;
        out_peer->rank = peer->rank;
        memcpy(out_peer->key, peer->key, LINK_KEY_SIZE);
        return 0;
    }
    return -1;
}

bool peer_table_is_server(const struct peer_table *table, uint64_t lease)
{
    bool is_server = false;
    for (uint32_t i = 0; i < table->count; i++)
        if (table->peers[i].lease == lease)
            is_server = table->peers[i].role == LEASE_ROLE_SERVER;
    return is_server;
}
