/* What a tenancy's process prints, read by its borrower without the market between them. */
#include "base/log.h"
#include "peer/path.h"
#include "peer/tenancy_internal.h"

#include <inttypes.h>

void tenancy_open_log_server(struct tenancy *tenancy)
{
    struct error error;
    const struct log_server_options options = {
        .loop = tenancy->host->loop, .book = &tenancy->logbook, .lease = tenancy->document.lease};
    if (tenancy->host->is_direct && log_server_open(&options, &tenancy->log_server, &error) < 0)
        log_event(LOG_WARN, "logs_not_served", "lease=%" PRIu64 " error=\"%s\"",
                  tenancy->document.lease, error.message);
}

void tenancy_send_log_addresses(struct tenancy *tenancy)
{
    if (!tenancy->log_server || tenancy->has_ended)
        return;
    struct host_port found[PATH_CANDIDATE_MAX];
    char texts[PATH_CANDIDATE_MAX][LEASE_ADDRESS_SIZE_MAX + 1];
    const size_t count = path_addresses(log_server_port(tenancy->log_server), found);
    struct lease_message message = {
        .type = LEASE_MESSAGE_LOGS_AT,
        .addresses = {.lease = tenancy->document.lease, .fence = tenancy->document.fence}};
    tenancy_write_addresses(found, count, texts, &message.addresses);
    outbox_send(tenancy->host->outbox, &message, tenancy_now_ns(tenancy));
}

void tenancy_add_log_reader(struct tenancy *tenancy, const struct log_reader_message *reader)
{
    if (tenancy->log_server && reader->reader)
        log_server_allow(tenancy->log_server, reader->reader, reader->key);
}

void tenancy_pump_readers(struct tenancy *tenancy)
{
    if (tenancy->log_server)
        log_server_pump(tenancy->log_server);
}
