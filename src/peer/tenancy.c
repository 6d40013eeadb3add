#include "peer/tenancy.h"

#include "base/assert.h"
#include "base/log.h"
#include "peer/tenancy_internal.h"
#include "sandbox/disk.h"

#include <inttypes.h>
#include <sodium.h>

int64_t tenancy_now_ns(const struct tenancy *tenancy)
{
    return clock_monotonic_ns(loop_clock(tenancy->host->loop));
}

enum lease_run_state tenancy_state(const struct tenancy *tenancy)
{
    return tenancy->state;
}

bool tenancy_has_ended(const struct tenancy *tenancy)
{
    return tenancy->has_ended;
}

bool tenancy_is_cleared(const struct tenancy *tenancy)
{
    return tenancy->is_cleared;
}

int64_t tenancy_disk_bytes(const struct tenancy *tenancy)
{
    /* A job that names no disk may use what is lent. */
    return tenancy->document.disk_bytes > 0 ? tenancy->document.disk_bytes
                                            : tenancy->host->disk_bytes;
}

struct chunk_access tenancy_chunk_access(struct tenancy *tenancy)
{
    const struct tenancy_host *host = tenancy->host;
    return (struct chunk_access){.loop = host->loop,
                                 .client = host->client,
                                 .store = host->blobs,
                                 .server_url = host->server_url,
                                 .fingerprint = host->fingerprint[0] ? host->fingerprint : NULL,
                                 .token = tenancy->token,
                                 .is_away = &host->is_market_away,
                                 .peers = tenancy->chunk_peers,
                                 .server = tenancy->chunk_server,
                                 .rank = (uint32_t)tenancy->document.rank,
                                 .world = (uint32_t)tenancy->document.world,
                                 .counts = &tenancy->chunk_counts};
}

void tenancy_set_reason(struct tenancy *tenancy, struct text reason)
{
    if (tenancy->reason[0] != '\0')
        return;
    const int size = reason.size < LEASE_REASON_SIZE_MAX ? (int)reason.size : LEASE_REASON_SIZE_MAX;
    snprintf(tenancy->reason, sizeof(tenancy->reason), "%.*s", size, reason.data);
}

void tenancy_send_state(struct tenancy *tenancy)
{
    const struct lease_message message = {
        .type = LEASE_MESSAGE_STATE,
        .state = {.lease = tenancy->document.lease,
                  .fence = tenancy->document.fence,
                  .state = tenancy->state,
                  .exit_code = tenancy->has_exited ? tenancy->exit.code : 0,
                  .reason = text_of(tenancy->reason)}};
    outbox_send(tenancy->host->outbox, &message, tenancy_now_ns(tenancy));
    log_event(LOG_INFO, "lease_state", "lease=%" PRIu64 " fence=%" PRIu64 " state=%s reason=\"%s\"",
              tenancy->document.lease, tenancy->document.fence,
              lease_run_state_name(tenancy->state), tenancy->reason);
    tenancy_send_addresses(tenancy);
    tenancy_send_sources(tenancy);
    tenancy_send_log_addresses(tenancy);
}

static void tenancy_on_pace(void *context)
{
    struct tenancy *tenancy = context;
    if (!tenancy->sandbox)
        return;
    const int64_t wait_ms = sandbox_pace(tenancy->sandbox, tenancy_now_ns(tenancy));
    if (wait_ms >= 0)
        loop_timer_start(tenancy->pace_timer, wait_ms);
}

static void tenancy_on_data(void *context, const struct error *reason)
{
    struct tenancy *tenancy = context;
    const struct error error = reason ? *reason : (struct error){0}; /* it goes with the shard */
    shard_free(TAKE(tenancy->shard));
    struct error failure;
    if (!reason)
        tenancy_has_data(tenancy);
    if (reason)
        tenancy_fail(tenancy, &error);
    else if (tenancy->needs_image && tenancy_unpack_image(tenancy, &failure) < 0)
        tenancy_fail(tenancy, &failure);
    else if (!tenancy->needs_image && !tenancy->has_exited)
        tenancy_send_config(tenancy);
}

/* Where a peer of that place stands in the list, which is grown for a new one; NULL: it is full. */
static struct child_peer *peer_in_place(struct tenancy *tenancy, enum lease_role role,
                                        uint32_t rank)
{
    for (uint32_t i = 0; i < tenancy->peer_count; i++)
        if (tenancy->peers[i].role == role && tenancy->peers[i].rank == rank)
            return &tenancy->peers[i];
    if (tenancy->peer_count == CHILD_PEER_MAX)
        return NULL;
    struct child_peer *peers =
        arena_alloc(tenancy->arena, (tenancy->peer_count + 1) * sizeof(*peers));
    if (tenancy->peer_count > 0)
        memcpy(peers, tenancy->peers, tenancy->peer_count * sizeof(*peers));
    tenancy->peers = peers;
    return &tenancy->peers[tenancy->peer_count++];
}

static struct child_peer child_peer_of(const struct lease_peer *peer)
{
    struct child_peer made = {
        .lease = peer->lease, .fence = peer->fence, .role = peer->role, .rank = peer->rank};
    _Static_assert((int)CHILD_KEY_SIZE == (int)LEASE_KEY_SIZE, "a lease's key is copied whole");
    memcpy(made.key, peer->key, CHILD_KEY_SIZE);
    return made;
}

static void dial_peer(struct tenancy *tenancy, const struct lease_peer *peer)
{
    const struct tenancy_peer other = {peer->lease, peer->fence, peer->role, peer->rank};
    tenancy_dial(tenancy, &other, peer->ticket);
}

void tenancy_add_peer(struct tenancy *tenancy, const struct lease_peer *peer)
{
    if (tenancy->has_ended || tenancy->document.role != LEASE_ROLE_SERVER ||
        !lease_peer_dials(peer))
        return;
    struct child_peer *known = peer_in_place(tenancy, peer->role, peer->rank);
    if (!known || (known->lease == peer->lease && known->fence == peer->fence))
        return; /* told again, on a new link */
    *known = child_peer_of(peer);
    const struct child_message message = {.kind = CHILD_PEER, .peer = *known};
    if (tenancy->has_config) /* else it goes with the configuration */
        tenancy_tell_child(tenancy, &message);
    dial_peer(tenancy, peer);
}

void tenancy_open_stream(struct tenancy *tenancy, const struct stream_open_message *order)
{
    const struct tenancy_peer peer = {order->peer_lease, order->peer_fence, order->peer_role,
                                      order->peer_rank};
    if (!tenancy->has_ended && !tenancy->has_exited)
        tenancy_dial(tenancy, &peer, order->ticket);
}

void tenancy_resume(struct tenancy *tenancy)
{
    if (tenancy->has_ended)
        return;
    tenancy_send_logs(tenancy);
    tenancy_update_reading(tenancy);
}

/* Everything of the message that is needed later is copied. */
static int tenancy_read_start(struct tenancy *tenancy, const struct start_message *start,
                              struct error *error)
{
    tenancy->lease_json = arena_copy_text(tenancy->arena, start->document);
    if (lease_document_read(tenancy->arena, tenancy->lease_json, &tenancy->document, error) < 0)
        return -1;
    memcpy(tenancy->key, start->key, LEASE_KEY_SIZE);
    tenancy->token = arena_copy_string(tenancy->arena, start->fetch_token);
    if (start->secrets.size)
        tenancy->secrets = arena_copy_string(tenancy->arena, start->secrets);
    if (tenancy->document.role == LEASE_ROLE_SERVER && start->peer_count > 0) {
        tenancy->peers = arena_alloc(tenancy->arena, start->peer_count * sizeof(*tenancy->peers));
        for (uint32_t i = 0; i < start->peer_count; i++)
            if (lease_peer_dials(&start->peers[i]))
                tenancy->peers[tenancy->peer_count++] = child_peer_of(&start->peers[i]);
    }
    return 0;
}

/* Where the machine can, the job's folder holds no more than it leased; where it cannot, the folder
 * is measured at every tick. No room on the disk is the lease's end. */
static int tenancy_bound_disk(struct tenancy *tenancy, struct error *error)
{
    char reason[128];
    const int64_t bytes = tenancy->document.disk_bytes; /* 0: all that is lent, not set aside */
    if (bytes == 0 || !disk_can_bound(reason, sizeof(reason)) ||
        disk_open(tenancy->lease_folder, bytes, SANDBOX_UID, error) == 0)
        return 0;
    if (error->code == ERROR_EXHAUSTED)
        return -1;
    log_event(LOG_WARN, "disk_not_bounded", "lease=%" PRIu64 " error=\"%s\"",
              tenancy->document.lease, error->message);
    return 0;
}

static int tenancy_make_folders(struct tenancy *tenancy, struct error *error)
{
    const char *folder = tenancy->host->folder;
    if (snprintf(tenancy->out_folder, PATH_MAX, "%s/lease/out", folder) >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the state folder's name is too long");
    snprintf(tenancy->data_folder, PATH_MAX, "%s/data", folder);
    snprintf(tenancy->lease_folder, PATH_MAX, "%s/lease", folder);
    /* The outermost stays the lender's alone; inside, another user has to read. */
    if (folder_make(tenancy->data_folder, 0755, error) < 0 ||
        folder_make(tenancy->lease_folder, 0755, error) < 0 ||
        tenancy_bound_disk(tenancy, error) < 0 || folder_make(tenancy->out_folder, 0755, error) < 0)
        return -1;
    return sandbox_give_folder(tenancy->host->sandboxes, tenancy->out_folder, error);
}

int64_t tenancy_left_ms(const struct tenancy *tenancy)
{
    const struct clock *clock = loop_clock(tenancy->host->loop);
    const int64_t left_ms =
        tenancy->document.expires_ms - clock_utc_ms(clock) - tenancy->host->market_ahead_ms;
    return left_ms > 0 ? left_ms : 0;
}

static void tenancy_start_expiry(struct tenancy *tenancy)
{
    loop_timer_start(tenancy->expiry_timer, tenancy_left_ms(tenancy));
}

void tenancy_renew(struct tenancy *tenancy, int64_t expires_ms)
{
    if (tenancy->has_ended || tenancy->is_stop_wanted || expires_ms <= tenancy->document.expires_ms)
        return;
    tenancy->document.expires_ms = expires_ms;
    log_event(LOG_INFO, "lease_end_renewed", "lease=%" PRIu64, tenancy->document.lease);
    tenancy_start_expiry(tenancy);
}

static void tenancy_start_timers(struct tenancy *tenancy)
{
    tenancy_start_expiry(tenancy);
    loop_timer_start(tenancy->pace_timer, 0);
}

static struct tenancy *tenancy_new(struct tenancy_host *host, tenancy_ended_function *on_ended,
                                   void *context)
{
    struct tenancy *tenancy = calloc(1, sizeof(*tenancy));
    ASSERT(tenancy);
    tenancy->host = host;
    tenancy->on_ended = on_ended;
    tenancy->context = context;
    tenancy->arena = arena_new_secret(0);
    tenancy->control_fd = tenancy->unpack_fd = tenancy->image.fd = tenancy->reserve_fd = -1;
    for (size_t i = 0; i < TENANCY_LOG_COUNT; i++)
        tenancy->logs[i].fd = -1;
    logbook_init(&tenancy->logbook);
    list_init(&tenancy->streams);
    list_init(&tenancy->uploads);
    tenancy->tick_timer = loop_timer_new(host->loop, tenancy_on_tick, tenancy);
    tenancy->talk_timer = loop_timer_new(host->loop, tenancy_on_talk, tenancy);
    tenancy->talk_bytes = TENANCY_TALK_BYTES;
    tenancy->talk_ns = tenancy_now_ns(tenancy);
    tenancy->pace_timer = loop_timer_new(host->loop, tenancy_on_pace, tenancy);
    tenancy->kill_timer = loop_timer_new(host->loop, tenancy_on_grace_over, tenancy);
    tenancy->breath_timer = loop_timer_new(host->loop, tenancy_on_breath, tenancy);
    tenancy->log_timer = loop_timer_new(host->loop, tenancy_on_log_timer, tenancy);
    tenancy->expiry_timer = loop_timer_new(host->loop, tenancy_on_expiry, tenancy);
    tenancy->end_timer = loop_timer_new(host->loop, tenancy_on_end, tenancy);
    tenancy->look_timer = loop_timer_new(host->loop, tenancy_on_look, tenancy);
    return tenancy;
}

int tenancy_begin_child(struct tenancy *tenancy, struct error *error)
{
    tenancy->has_exited = false;
    tenancy->exit = (struct sandbox_exit){0};
    if (tenancy_start_child(tenancy, error) < 0) {
        tenancy->has_exited = true;
        return -1;
    }
    tenancy->has_begun = true;
    tenancy_keep_yield(tenancy);
    return 0;
}

int tenancy_start(struct tenancy_host *host, const struct start_message *start,
                  tenancy_ended_function *on_ended, void *context, struct tenancy **out_tenancy,
                  struct error *error)
{
    AUTO(tenancy) struct tenancy *tenancy = tenancy_new(host, on_ended, context);
    if (tenancy_read_start(tenancy, start, error) < 0 || tenancy_make_folders(tenancy, error) < 0 ||
        tenancy_find_image(tenancy, error) < 0 || tenancy_open_functions(tenancy, error) < 0)
        return -1;
    tenancy_open_sources(tenancy);
    tenancy_open_log_server(tenancy);
    const uint64_t image_bytes = tenancy->needs_image ? host->image_bytes : 0;
    const struct shard_options shard = {.access = tenancy_chunk_access(tenancy),
                                        .folder = tenancy->data_folder,
                                        .data = tenancy->wanted_data,
                                        .data_count = tenancy->wanted_count,
                                        .bytes_max =
                                            (uint64_t)tenancy_disk_bytes(tenancy) + image_bytes,
                                        .callback = tenancy_on_data,
                                        .context = tenancy};
    tenancy->shard = shard_start(&shard);
    for (uint32_t i = 0; i < start->peer_count; i++)
        dial_peer(tenancy, &start->peers[i]);
    tenancy->has_exited = tenancy->needs_image; /* nothing runs yet */
    tenancy->has_begun = !tenancy->needs_image;
    if (tenancy_open_network(tenancy, error) < 0 ||
        (!tenancy->needs_image && tenancy_start_child(tenancy, error) < 0))
        return -1;
    tenancy_start_timers(tenancy);
    tenancy_send_state(tenancy);
    *out_tenancy = TAKE(tenancy);
    return 0;
}

void tenancy_free(struct tenancy *tenancy)
{
    if (!tenancy)
        return;
    tenancy_free_uploads(tenancy);
    shard_free(tenancy->shard);
    tenancy_free_checkpoints(tenancy);
    tenancy_free_functions(tenancy);
    tenancy_free_child(tenancy);
    tenancy_free_streams(tenancy);
    tenancy_free_image(tenancy);
    job_network_free(TAKE(tenancy->network));
    open_network_free(TAKE(tenancy->internet));
    tenancy_free_sources(tenancy);
    log_server_free(TAKE(tenancy->log_server));
    loop_timer_free(tenancy->tick_timer);
    loop_timer_free(tenancy->pace_timer);
    loop_timer_free(tenancy->talk_timer);
    loop_timer_free(tenancy->kill_timer);
    loop_timer_free(tenancy->expiry_timer);
    loop_timer_free(tenancy->breath_timer);
    loop_timer_free(tenancy->log_timer);
    logbook_done(&tenancy->logbook);
    loop_timer_free(tenancy->end_timer);
    loop_timer_free(tenancy->look_timer);
    sodium_memzero(tenancy->key, sizeof(tenancy->key));
    arena_free(tenancy->arena);
    free(tenancy);
}
