/* What the daemon and, through it, the market tell a keeper to do. */
#include "base/assert.h"
#include "base/log.h"
#include "blob/blob_store.h"
#include "peer/keeper_internal.h"
#include "peer/lease_verify.h"
#include "sandbox/folder.h"

#include <inttypes.h>
#include <string.h>

enum { TRIM_MS = 2000 }; /* after the start, when all that is needed but once has been used */

static int carry(void *context, uint16_t type, struct text payload, struct error *error)
{
    return channel_send(context, type, payload, error);
}

/* Texts outlive the message, in memory that is wiped. */
static void keeper_keep_functions(struct keeper *keeper, const struct keeper_functions *functions)
{
    struct keeper_functions *kept = &keeper->host.functions;
    struct text *const texts[] = {&kept->name, &kept->url, &kept->token, &kept->store};
    keeper->kept_arena = arena_new_secret(0);
    *kept = *functions;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        *texts[i] = text_of(arena_copy_string(keeper->kept_arena, *texts[i]));
    for (size_t i = 0; i < KEEPER_KEY_COUNT; i++)
        kept->keys[i] = text_of(arena_copy_string(keeper->kept_arena, functions->keys[i]));
}

static int keeper_set_up(struct keeper *keeper, const struct keeper_setup *setup,
                         struct error *error)
{
    if (keeper->is_set_up)
        return error_set(error, ERROR_CORRUPT, "a keeper is set up once");
    log_set_level(setup->log_level < LOG_LEVEL_COUNT ? (enum log_level)setup->log_level : LOG_INFO);
    keeper->is_set_up = true;
    keeper->enrolment.machine = setup->machine;
    memcpy(keeper->enrolment.server_public_key, setup->server_public_key,
           sizeof(keeper->enrolment.server_public_key));
    keeper->host.disk_bytes = (int64_t)setup->disk_bytes;
    keeper->host.gpus = setup->gpus;
    keeper->host.image_bytes = setup->cache_bytes;
    keeper->host.is_direct = setup->is_direct;
    keeper_keep_functions(keeper, &setup->functions);
    keeper->host.open = setup->open;
    for (uint32_t i = 0; i < setup->software_count; i++) {
        char *path = strndup(setup->software[i].data, setup->software[i].size);
        ASSERT(path);
        keeper->host.software[keeper->host.software_count++] = path;
    }
    const char *blobs_dir = arena_copy_string(keeper->arena, setup->blobs_dir);
    const struct blob_store_options blobs = {
        .folder = blobs_dir, .bytes_max = setup->cache_bytes, .is_shared = true};
    if (text_copy(setup->data_path, keeper->host.data_path, sizeof(keeper->host.data_path), error) <
            0 ||
        text_copy(setup->index_url, keeper->host.index_url, sizeof(keeper->host.index_url), error) <
            0 ||
        text_copy(setup->sdk_folder, keeper->host.sdk_folder, sizeof(keeper->host.sdk_folder),
                  error) < 0 ||
        text_copy(setup->leases_dir, keeper->leases_dir, sizeof(keeper->leases_dir), error) < 0 ||
        sandbox_host_import(setup->sandbox_host, &keeper->host.sandboxes, error) < 0)
        return -1;
    return blob_store_open(&blobs, &keeper->host.blobs, error);
}

/* What the former daemon may have lost is told again, what this one has is not. */
static void keeper_attach(struct keeper *keeper)
{
    const struct outbox_carrier carrier = {carry, keeper->channel};
    if (keeper->has_told)
        outbox_reattach(keeper->host.outbox, &carrier, keeper_now_ns(keeper));
    else
        outbox_attach(keeper->host.outbox, &carrier, keeper_now_ns(keeper));
    keeper->has_told = true;
}

static int keeper_set_market(struct keeper *keeper, const struct keeper_market *market,
                             struct error *error)
{
    struct tenancy_host *host = &keeper->host;
    if (text_copy(market->server_url, host->server_url, sizeof(host->server_url), error) < 0 ||
        text_copy(market->fingerprint, host->fingerprint, sizeof(host->fingerprint), error) < 0 ||
        host_port_parse(market->link_address, &host->link_target, error) < 0)
        return -1;
    host->market_ahead_ms = market->ahead_ms;
    host->link_ipv4 = market->link_ipv4;
    host->seen_ipv4 = market->seen_ipv4;
    host->is_market_away = !market->is_linked;
    const bool is_relinked = market->is_linked && !outbox_is_attached(host->outbox);
    if (!market->is_linked)
        outbox_detach(host->outbox);
    else if (is_relinked)
        keeper_attach(keeper);
    if (!keeper->tenancy)
        return 0;
    if (market->is_linked)
        tenancy_send_state(keeper->tenancy);
    if (is_relinked)
        tenancy_relinked(keeper->tenancy);
    tenancy_fence_market(keeper->tenancy);
    tenancy_resume(keeper->tenancy);
    return 0;
}

static void keeper_keep_document(struct keeper *keeper, struct text document,
                                 const uint8_t signature[LEASE_SIGNATURE_SIZE])
{
    buffer_clear(&keeper->document);
    buffer_append_text(&keeper->document, document);
    memcpy(keeper->signature, signature, sizeof(keeper->signature));
}

/* A folder that a power cut left is not there any more: the daemon has swept it. */
static int keeper_open_folder(struct keeper *keeper, struct error *error)
{
    const int size = snprintf(keeper->folder, sizeof(keeper->folder), "%s/%" PRIu64 "-%" PRIu64,
                              keeper->leases_dir, keeper->lease.lease, keeper->lease.fence);
    if (size >= (int)sizeof(keeper->folder)) {
        keeper->folder[0] = '\0';
        return error_set(error, ERROR_INVALID, "the state folder's name is too long");
    }
    if (folder_remove(keeper->folder, error) < 0 || folder_make(keeper->folder, 0700, error) < 0)
        return -1;
    keeper->host.folder = keeper->folder;
    return channel_listen(keeper->folder, &keeper->listen_fd, error);
}

/* A daemon that went before it could be found here does not count with this lease, nor does the
 * next: the market may have it run again. From here on whoever follows finds the channel. */
static int keeper_check_daemon(const struct keeper *keeper, struct error *error)
{
    if (!channel_has_peer(keeper->channel))
        return error_set(error, ERROR_UNAVAILABLE, "the daemon went before the lease began");
    return 0;
}

static int keeper_begin(struct keeper *keeper, const struct start_message *start,
                        struct error *error)
{
    struct lease_document document;
    const int64_t now_ms = clock_utc_ms(loop_clock(keeper->loop)) + keeper->host.market_ahead_ms;
    if (!keeper->is_set_up || keeper->tenancy)
        return error_set(error, ERROR_CORRUPT, "a keeper keeps one lease");
    if (lease_verify(keeper->arena, start, &keeper->enrolment, &document, error) < 0)
        return -1;
    keeper->lease = (struct lease_fence){document.lease, document.fence};
    if (lease_check(&document, now_ms, error) < 0 || keeper_open_folder(keeper, error) < 0 ||
        keeper_check_daemon(keeper, error) < 0 ||
        loop_watch_open(keeper->loop, keeper->listen_fd, LOOP_READ, keeper_on_connection, keeper,
                        &keeper->listen_watch, error) < 0)
        return -1;
    keeper_keep_document(keeper, start->document, start->signature);
    if (tenancy_start(&keeper->host, start, keeper_on_tenancy_ended, keeper, &keeper->tenancy,
                      error) < 0)
        return -1;
    loop_timer_start(keeper->trim_timer, TRIM_MS);
    return 0;
}

/* A lease that could not be started: told as the tenancy would have. The daemon then lets us go. */
static void keeper_refuse(struct keeper *keeper, const struct error *reason)
{
    log_event(LOG_ERROR, "lease_refused", "lease=%" PRIu64 " error=\"%s\"", keeper->lease.lease,
              reason->message);
    struct text words = text_of(reason->message);
    if (words.size > LEASE_REASON_SIZE_MAX)
        words.size = LEASE_REASON_SIZE_MAX;
    const struct lease_message message = {.type = LEASE_MESSAGE_STATE,
                                          .state = {.lease = keeper->lease.lease,
                                                    .fence = keeper->lease.fence,
                                                    .state = LEASE_RUN_FAILED,
                                                    .reason = words}};
    outbox_send(keeper->host.outbox, &message, keeper_now_ns(keeper));
}

static void keeper_renew(struct keeper *keeper, const struct renew_message *renew)
{
    struct error error;
    struct lease_document document;
    struct start_message start = {.document = renew->document};
    memcpy(start.signature, renew->signature, sizeof(start.signature));
    if (lease_verify(keeper->arena, &start, &keeper->enrolment, &document, &error) < 0 ||
        document.lease != keeper->lease.lease || document.fence != keeper->lease.fence) {
        log_event(LOG_ERROR, "renewal_refused", "lease=%" PRIu64, keeper->lease.lease);
        return;
    }
    keeper_keep_document(keeper, renew->document, renew->signature);
    tenancy_renew(keeper->tenancy, document.expires_ms);
}

void keeper_on_lease_message(struct keeper *keeper, const struct lease_message *message)
{
    struct error error;
    if (message->type == LEASE_MESSAGE_START) {
        if (keeper_begin(keeper, &message->start, &error) < 0)
            keeper_refuse(keeper, &error);
        return;
    }
    if (!keeper->tenancy)
        return;
    if (message->type == LEASE_MESSAGE_RENEW)
        keeper_renew(keeper, &message->renew);
    else if (message->type == LEASE_MESSAGE_STOP)
        tenancy_stop(keeper->tenancy, message->stop.grace_ms, message->stop.reason);
    else if (message->type == LEASE_MESSAGE_LOG_KEPT)
        tenancy_log_kept(keeper->tenancy, message->log_kept.offset);
    else if (message->type == LEASE_MESSAGE_LOG_READER)
        tenancy_add_log_reader(keeper->tenancy, &message->log_reader);
    else if (message->type == LEASE_MESSAGE_CHECKPOINTS)
        tenancy_take_checkpoints(keeper->tenancy, &message->checkpoints);
    else if (message->type == LEASE_MESSAGE_CHUNK_PEER)
        tenancy_add_chunk_peer(keeper->tenancy, &message->rank);
    else if (message->type == LEASE_MESSAGE_RANK)
        tenancy_add_rank(keeper->tenancy, &message->rank);
    else if (message->type == LEASE_MESSAGE_PEER)
        tenancy_add_peer(keeper->tenancy, &message->peer.peer);
    else if (message->type == LEASE_MESSAGE_STREAM_OPEN)
        tenancy_open_stream(keeper->tenancy, &message->stream_open);
    else
        log_event(LOG_ERROR, "message_refused", "lease=%" PRIu64 " type=%s", keeper->lease.lease,
                  lease_message_type_name(message->type));
}

static int keeper_answer_take(struct keeper *keeper, const struct keeper_take *take,
                              struct error *error)
{
    if (take->version != KEEPER_VERSION)
        return error_set(error, ERROR_REFUSED, "the daemon's version is %" PRIu32, take->version);
    if (!keeper->tenancy || take->lease != keeper->lease.lease ||
        take->fence != keeper->lease.fence)
        return error_set(error, ERROR_REFUSED, "lease %" PRIu64 " is not kept here", take->lease);
    struct keeper_message hello = {.type = KEEPER_MESSAGE_HELLO,
                                   .hello = {.version = KEEPER_VERSION,
                                             .state = tenancy_state(keeper->tenancy),
                                             .gpus = keeper->host.gpus,
                                             .document = buffer_text(&keeper->document)}};
    memcpy(hello.hello.signature, keeper->signature, sizeof(hello.hello.signature));
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
    keeper_message_encode(&hello, &payload);
    if (channel_send(keeper->channel, KEEPER_MESSAGE_HELLO, buffer_text(&payload), error) < 0)
        return -1;
    keeper->is_taken = true;
    log_event(LOG_INFO, "lease_taken_up", "lease=%" PRIu64 " fence=%" PRIu64, keeper->lease.lease,
              keeper->lease.fence);
    return 0;
}

int keeper_on_keeper_message(struct keeper *keeper, const struct keeper_message *message,
                             struct error *error)
{
    if (message->type == KEEPER_MESSAGE_TAKE)
        return keeper_answer_take(keeper, &message->take, error);
    if (!keeper->is_taken)
        return error_set(error, ERROR_REFUSED, "a daemon begins with TAKE");
    switch (message->type) {
    case KEEPER_MESSAGE_SETUP:
        return keeper_set_up(keeper, &message->setup, error);
    case KEEPER_MESSAGE_MARKET:
        return keeper_set_market(keeper, &message->market, error);
    case KEEPER_MESSAGE_RECLAIM:
        if (keeper->tenancy)
            tenancy_reclaim(keeper->tenancy, message->reclaim.grace_ms, message->reclaim.reason);
        return 0;
    case KEEPER_MESSAGE_YIELD:
        if (keeper->tenancy)
            tenancy_yield(keeper->tenancy, message->yield);
        return 0;
    case KEEPER_MESSAGE_RELEASE:
        keeper_release(keeper);
        return 0;
    case KEEPER_MESSAGE_TAKE:
    case KEEPER_MESSAGE_HELLO:
    case KEEPER_MESSAGE_END:
        break;
    }
    return error_set(error, ERROR_CORRUPT, "a message that is not a daemon's to send");
}
