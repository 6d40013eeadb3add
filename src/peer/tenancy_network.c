/* The job network of a tenancy, and the Internet where the lease has it. */
#include "base/log.h"
#include "peer/tenancy_internal.h"

#include <inttypes.h>

static void on_internet_gone(void *context)
{
    struct tenancy *tenancy = context;
    struct error error;
    error_set(&error, ERROR_UNAVAILABLE, "the lease's way to the Internet broke down");
    if (!tenancy->has_exited)
        tenancy_fail(tenancy, &error);
}

/* "https://name:7600/path" -> "name"; what is no address of a market gives "". */
static void find_host(const char *url, char out[ADDRESS_HOST_SIZE])
{
    const char *host = strstr(url, "://");
    host = host ? host + strlen("://") : url;
    const bool is_bracketed = *host == '[';
    host += is_bracketed;
    const size_t size = strcspn(host, is_bracketed ? "]" : ":/");
    out[0] = '\0';
    if (size < ADDRESS_HOST_SIZE) {
        memcpy(out, host, size);
        out[size] = '\0';
    }
}

/* The market is not to be reached from a lender's address, where a job could pass for the lender.
 */
static void open_internet(struct tenancy *tenancy)
{
    const struct tenancy_host *host = tenancy->host;
    struct open_network_options options = {
        .loop = host->loop,
        .lease = tenancy->document.lease,
        .order = {.bytes_per_s = open_network_rate(&host->open, tenancy->yield_wanted),
                  .market = host->link_ipv4,
                  .seen = host->seen_ipv4,
                  .closed_count = host->open.closed_count},
        .on_gone = on_internet_gone,
        .context = tenancy};
    memcpy(options.order.closed, host->open.closed, sizeof(options.order.closed));
    find_host(host->server_url, options.order.hosts[0]);
    memcpy(options.order.hosts[1], host->link_target.host, ADDRESS_HOST_SIZE);
    tenancy->internet = open_network_new(&options);
}

int tenancy_open_network(struct tenancy *tenancy, struct error *error)
{
    const struct lease_document *document = &tenancy->document;
    if (!lease_document_has_network(document))
        return 0;
    const struct job_network_options options = {.loop = tenancy->host->loop,
                                                .lease = document->lease,
                                                .rank = (uint32_t)document->rank,
                                                .relay = tenancy->host->link_target,
                                                .is_direct = tenancy->host->is_direct};
    if (job_network_open(&options, &tenancy->network, error) < 0)
        return -1;
    if (lease_document_has_internet(document))
        open_internet(tenancy);
    return 0;
}

int tenancy_set_up_network(void *context, pid_t inside, struct error *error)
{
    struct tenancy *tenancy = context;
    if (job_network_set_up(tenancy->network, inside, error) < 0)
        return -1;
    return tenancy->internet ? open_network_set_up(tenancy->internet, inside, error) : 0;
}

void tenancy_fence_market(struct tenancy *tenancy)
{
    if (tenancy->internet)
        open_network_set_market(tenancy->internet, tenancy->host->link_ipv4,
                                tenancy->host->seen_ipv4);
}

void tenancy_write_addresses(const struct host_port *found, size_t count,
                             char texts[][LEASE_ADDRESS_SIZE_MAX + 1],
                             struct addresses_message *addresses)
{
    for (size_t i = 0; i < count && addresses->address_count < LEASE_ADDRESSES_MAX; i++) {
        const int size = snprintf(texts[i], LEASE_ADDRESS_SIZE_MAX + 1, "%.48s:%u", found[i].host,
                                  found[i].port);
        if (size > 0 && size <= LEASE_ADDRESS_SIZE_MAX)
            addresses->addresses[addresses->address_count++] = text_of(texts[i]);
    }
}

void tenancy_send_addresses(struct tenancy *tenancy)
{
    if (!tenancy->network || tenancy->has_ended)
        return;
    struct host_port found[PATH_CANDIDATE_MAX];
    char texts[PATH_CANDIDATE_MAX][LEASE_ADDRESS_SIZE_MAX + 1];
    const size_t count = job_network_addresses(tenancy->network, found);
    struct lease_message message = {
        .type = LEASE_MESSAGE_ADDRESSES,
        .addresses = {.lease = tenancy->document.lease, .fence = tenancy->document.fence}};
    tenancy_write_addresses(found, count, texts, &message.addresses);
    outbox_send(tenancy->host->outbox, &message, tenancy_now_ns(tenancy));
}

/* As job_network_addresses tells it where there is no network. */
static bool has_loopback_only(const struct tenancy *tenancy)
{
    struct host_port own[PATH_CANDIDATE_MAX];
    const size_t count = job_network_addresses(tenancy->network, own);
    return count == 1 && strcmp(own[0].host, "127.0.0.1") == 0;
}

/* The addresses are what another lender's machine says of itself: it is not to choose what ours
 * knocks at. */
void tenancy_add_rank(struct tenancy *tenancy, const struct rank_message *rank)
{
    struct host_port candidates[LEASE_ADDRESSES_MAX];
    struct error error;
    if (!tenancy->network || tenancy->has_ended)
        return;
    struct job_network_peer peer = {.lease = rank->peer.lease,
                                    .fence = rank->peer.fence,
                                    .rank = rank->peer.rank,
                                    .key = rank->peer.key,
                                    .candidates = candidates};
    memcpy(peer.ticket, rank->peer.ticket, LEASE_TICKET_SIZE);
    const bool is_loopback_fine = has_loopback_only(tenancy);
    for (uint32_t i = 0; i < rank->address_count; i++)
        if (host_port_parse(rank->addresses[i], &candidates[peer.candidate_count], &error) == 0 &&
            address_may_dial(&candidates[peer.candidate_count], is_loopback_fine))
            peer.candidate_count++;
    if (job_network_add_peer(tenancy->network, &peer, &error) < 0)
        log_event(LOG_WARN, "rank_refused", "lease=%" PRIu64 " error=\"%s\"",
                  tenancy->document.lease, error.message);
}
