/* A tenancy's data, from its borrower, and from and to the other leases of its job. */
#include "base/log.h"
#include "peer/tenancy_internal.h"
#include "runtime/source_key.h"

#include <inttypes.h>
#include <string.h>

/* A job of one has nobody to exchange with. */
static bool exchanges(const struct tenancy *tenancy)
{
    return tenancy->document.role == LEASE_ROLE_WORKER && tenancy->document.world >= 2;
}

/* Who does not want to be reached does not knock at others either. */
void tenancy_open_sources(struct tenancy *tenancy)
{
    const struct lease_document *document = &tenancy->document;
    struct error error;
    if (!tenancy->host->is_direct)
        return;
    tenancy->chunk_peers = chunk_peers_new(tenancy->host->loop, document->lease);
    if (!exchanges(tenancy))
        return;
    const struct chunk_server_options options = {
        .loop = tenancy->host->loop, .store = tenancy->host->blobs, .lease = document->lease};
    if (chunk_server_open(&options, &tenancy->chunk_server, &error) < 0)
        log_event(LOG_WARN, "chunks_not_served", "lease=%" PRIu64 " error=\"%s\"", document->lease,
                  error.message);
}

void tenancy_free_sources(struct tenancy *tenancy)
{
    chunk_peers_free(TAKE(tenancy->chunk_peers));
    chunk_server_free(TAKE(tenancy->chunk_server));
}

void tenancy_has_data(struct tenancy *tenancy)
{
    const struct chunk_counts *counts = &tenancy->chunk_counts;
    log_event(LOG_INFO, "data_fetched",
              "lease=%" PRIu64 " market_bytes=%" PRIu64 " direct_bytes=%" PRIu64,
              tenancy->document.lease, counts->market_bytes, counts->direct_bytes);
    if (tenancy->chunk_peers)
        chunk_peers_close(tenancy->chunk_peers);
}

/* Sent with none too: those that only ask must be told to the others as well. */
void tenancy_send_sources(struct tenancy *tenancy)
{
    if (!tenancy->chunk_peers || tenancy->has_ended || !exchanges(tenancy))
        return;
    struct host_port found[PATH_CANDIDATE_MAX];
    char texts[PATH_CANDIDATE_MAX][LEASE_ADDRESS_SIZE_MAX + 1];
    const size_t count =
        tenancy->chunk_server ? path_addresses(chunk_server_port(tenancy->chunk_server), found) : 0;
    struct lease_message message = {
        .type = LEASE_MESSAGE_CHUNKS_AT,
        .addresses = {.lease = tenancy->document.lease, .fence = tenancy->document.fence}};
    tenancy_write_addresses(found, count, texts, &message.addresses);
    outbox_send(tenancy->host->outbox, &message, tenancy_now_ns(tenancy));
}

/* Loopback is dialled only by those who have nothing else themselves. */
void tenancy_add_chunk_peer(struct tenancy *tenancy, const struct rank_message *rank)
{
    struct host_port own[PATH_CANDIDATE_MAX], addresses[LEASE_ADDRESSES_MAX];
    struct error error;
    if (!tenancy->chunk_peers || tenancy->has_ended)
        return;
    const bool is_loopback_fine =
        path_addresses(1, own) == 1 && strcmp(own[0].host, "127.0.0.1") == 0;
    struct chunk_peer_options options = {.lease = rank->peer.lease,
                                         .key = rank->peer.key,
                                         .addresses = addresses,
                                         .is_borrower = rank->peer.lease == SOURCE_BORROWER};
    for (uint32_t i = 0; i < rank->address_count; i++)
        if (host_port_parse(rank->addresses[i], &addresses[options.address_count], &error) == 0 &&
            address_may_dial(&addresses[options.address_count], is_loopback_fine))
            options.address_count++;
    if (tenancy->chunk_server && !options.is_borrower)
        chunk_server_allow(tenancy->chunk_server, options.lease, options.key);
    chunk_peers_add(tenancy->chunk_peers, &options);
}
