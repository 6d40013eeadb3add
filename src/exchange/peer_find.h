/*
 * Peer find: who is at the other end of a link, by the identity it names, as the market told it.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "exchange/server.h"

#include <stdbool.h>
#include <stdint.h>

enum peer_kind { PEER_WORKER, PEER_SERVER }; /* a server other than the lead */

struct found_peer {
    uint64_t lease, fence;
    uint32_t rank;
    uint8_t key[LINK_KEY_SIZE];
};

/* REFUSED when the job has no such peer of this kind. */
MUST_CHECK int peer_find(exchange_find_peer *find, void *context, enum peer_kind kind,
                         struct text identity, struct found_peer *out_peer, struct error *error);
