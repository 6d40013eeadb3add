/*
 * Peer table: who may dial this parameter server, as the daemon says: those of CONFIG, and who came
 * later. One of a role and rank: a successor takes its predecessor's place, who may not come back.
 */
#pragma once

#include "exchange/server.h"
#include "runtime/child_message.h"

struct peer_table {
    struct child_peer *peers; /* [count] */
    uint32_t count;
};

void peer_table_init(struct peer_table *table, const struct child_config *config);
void peer_table_done(struct peer_table *table);

/* Logged and left out when there are too many. */
void peer_table_put(struct peer_table *table, const struct child_peer *peer);
/* -1: nobody of the job. */
int peer_table_find(const struct peer_table *table, uint64_t lease, uint64_t fence,
                    struct exchange_peer *out_peer);
bool peer_table_is_server(const struct peer_table *table, uint64_t lease);
