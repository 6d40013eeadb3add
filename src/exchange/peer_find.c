#include "exchange/peer_find.h"

#include "exchange/message.h"

#include <string.h>

int peer_find(exchange_find_peer *find, void *context, enum peer_kind kind, struct text identity,
              struct found_peer *out_peer, struct error *error)
{
    struct exchange_peer peer = {0};
    if (exchange_identity_parse(identity, &out_peer->lease, &out_peer->fence, error) < 0)
        return -1;
    const bool is_there = find(context, out_peer->lease, out_peer->fence, &peer) == 0;
    if (kind == PEER_WORKER && (!is_there || peer.is_server))
        return error_set(error, ERROR_REFUSED, "the lease does not belong to the job");
    if (kind == PEER_SERVER && (!is_there || !peer.is_server || peer.rank == 0))
        return error_set(error, ERROR_REFUSED, "the lease is no server's of the job");
    out_peer->rank = peer.rank;
    memcpy(out_peer->key, peer.key, LINK_KEY_SIZE);
    return 0;
}
