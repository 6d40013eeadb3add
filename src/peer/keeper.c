#include "peer/keeper.h"

#include "base/log.h"
#include "base/memory.h"
#include "blob/blob_store.h"
#include "net/http_client.h"
#include "peer/keeper_internal.h"
#include "sandbox/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    QUEUE_BYTES = 64 << 10, /* what waits beyond that stays in the outbox, in its order */
    STOP_GRACE_MS = 3000,
};

int64_t keeper_now_ns(const struct keeper *keeper)
{
    return clock_monotonic_ns(loop_clock(keeper->loop));
}

/* ---- The end --------------------------------------------------------------------------------- */

static bool keeper_can_be_found(const struct keeper *keeper)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/channel", keeper->folder);
    return access(path, F_OK) == 0;
}

/* The last state is for the next daemon, as long as anybody may wait for it. */
static void keeper_check_end(struct keeper *keeper)
{
    if (!keeper->tenancy || !tenancy_is_cleared(keeper->tenancy))
        return; /* keeper_on_tenancy_ended comes */
    if (keeper->is_released)
        loop_stop(keeper->loop);
    if (keeper->is_released || keeper->channel)
        return;
    const int64_t left_ms = tenancy_left_ms(keeper->tenancy);
    if (left_ms > 0 && keeper_can_be_found(keeper))
        loop_timer_start(keeper->linger_timer, left_ms);
    else
        loop_stop(keeper->loop);
}

void keeper_release(struct keeper *keeper)
{
    keeper->is_released = true;
    if (keeper->tenancy && tenancy_has_ended(keeper->tenancy))
        keeper_check_end(keeper);
    else
        loop_stop(keeper->loop);
}

static void keeper_on_linger(void *context)
{
    keeper_check_end(context);
}

void keeper_on_tenancy_ended(void *context, struct tenancy *tenancy)
{
    struct keeper *keeper = context;
    (void)tenancy;
    loop_timer_start(keeper->linger_timer, 0);
}

static void keeper_on_term(void *context)
{
    struct keeper *keeper = context;
    /* One that has ended waits for a daemon, which may never come. */
    const bool is_over =
        !keeper->tenancy || (!keeper->channel && tenancy_has_ended(keeper->tenancy));
    if (is_over)
        keeper_release(keeper);
    else
        tenancy_reclaim(keeper->tenancy, STOP_GRACE_MS, TEXT("the lender stopped lending"));
}

static void keeper_on_trim(void *context)
{
    (void)context;
    memory_trim();
}

/* ---- The channel ----------------------------------------------------------------------------- */

static void keeper_drop_daemon(struct keeper *keeper)
{
    outbox_detach(keeper->host.outbox);
    keeper->host.is_market_away = true; /* as far as we can tell */
    keeper->is_taken = keeper->has_told = false;
    channel_free(TAKE(keeper->channel));
    if (!keeper->tenancy) {
        loop_stop(keeper->loop); /* nothing was begun that anybody could come back to */
        return;
    }
    tenancy_resume(keeper->tenancy);
    keeper_check_end(keeper);
}

static void keeper_on_message(struct channel *channel, uint16_t type, struct text payload,
                              void *context)
{
    struct keeper *keeper = context;
    struct error error;
    struct lease_message lease_message;
    struct keeper_message keeper_message;
    (void)channel;
    int result;
    if (type >= KEEPER_MESSAGE_FIRST) {
        result = keeper_message_decode(type, payload, &keeper_message, &error);
        if (result == 0)
            result = keeper_on_keeper_message(keeper, &keeper_message, &error);
    } else {
        result = lease_message_decode(keeper->arena, type, payload, &lease_message, &error);
        if (result == 0 && keeper->is_taken)
            keeper_on_lease_message(keeper, &lease_message);
        sodium_memzero(&lease_message, sizeof(lease_message)); /* the lease's key */
    }
    arena_clear(keeper->arena);
    if (result == 0)
        return;
    log_event(LOG_ERROR, "daemon_refused", "lease=%" PRIu64 " error=\"%s\"", keeper->lease.lease,
              error.message);
    keeper_drop_daemon(keeper);
}

static void keeper_on_close(struct channel *channel, void *context)
{
    struct keeper *keeper = context;
    (void)channel;
    log_event(LOG_INFO, "daemon_gone", "lease=%" PRIu64, keeper->lease.lease);
    keeper_drop_daemon(keeper);
}

static void keeper_on_drained(struct channel *channel, void *context)
{
    struct keeper *keeper = context;
    (void)channel;
    outbox_flush(keeper->host.outbox, keeper_now_ns(keeper));
    if (keeper->tenancy)
        tenancy_resume(keeper->tenancy);
}

static int keeper_open_channel(struct keeper *keeper, int fd, struct error *error)
{
    const struct channel_options options = {.loop = keeper->loop,
                                            .queue_max_bytes = QUEUE_BYTES,
                                            .callbacks = {.on_message = keeper_on_message,
                                                          .on_close = keeper_on_close,
                                                          .on_drained = keeper_on_drained},
                                            .context = keeper};
    return channel_open_take(&options, fd, &keeper->channel, error);
}

/* The state folder has one daemon at a time: a new one takes the place of the old. */
void keeper_on_connection(void *context, uint32_t events)
{
    struct keeper *keeper = context;
    struct error error;
    AUTO_FD int fd = -1;
    (void)events;
    if (channel_accept(keeper->listen_fd, &fd, &error) < 0) {
        log_event(LOG_WARN, "daemon_refused", "lease=%" PRIu64 " error=\"%s\"", keeper->lease.lease,
                  error.message);
        return;
    }
    if (keeper->channel) {
        outbox_detach(keeper->host.outbox);
        keeper->is_taken = keeper->has_told = false;
        channel_free(TAKE(keeper->channel));
    }
    keeper->is_released = false; /* this one is told how the lease ended, too */
    loop_timer_stop(keeper->linger_timer);
    if (keeper_open_channel(keeper, fd, &error) == 0)
        (void)TAKE_FD(fd);
    else
        log_event(LOG_ERROR, "daemon_refused", "error=\"%s\"", error.message);
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

static int keeper_open(struct keeper *keeper, struct error *error)
{
    if (sodium_init() < 0)
        return error_set(error, ERROR_UNAVAILABLE, "libsodium cannot start");
    if (loop_open(&clock_system, &keeper->loop, error) < 0 ||
        loop_signal_open(keeper->loop, SIGTERM, keeper_on_term, keeper, &keeper->signals[0],
                         error) < 0 ||
        loop_signal_open(keeper->loop, SIGINT, keeper_on_term, keeper, &keeper->signals[1], error) <
            0)
        return -1;
    keeper->arena = arena_new_secret(0);
    buffer_init(&keeper->document, LEASE_DOCUMENT_SIZE_MAX);
    keeper->linger_timer = loop_timer_new(keeper->loop, keeper_on_linger, keeper);
    keeper->trim_timer = loop_timer_new(keeper->loop, keeper_on_trim, keeper);
    const struct http_client_options client = {.loop = keeper->loop};
    keeper->host.loop = keeper->loop;
    keeper->host.outbox = outbox_new();
    keeper->host.client = http_client_new(&client);
    keeper->is_taken = true; /* by whom it was started */
    if (fcntl(KEEPER_CHANNEL_FD, F_SETFD, FD_CLOEXEC) < 0)
        return error_set_errno(error, errno, "the daemon's channel");
    return keeper_open_channel(keeper, KEEPER_CHANNEL_FD, error);
}

static void keeper_close(struct keeper *keeper)
{
    struct error error;
    tenancy_free(keeper->tenancy);
    if (keeper->folder[0] && folder_remove(keeper->folder, &error) < 0)
        log_event(LOG_WARN, "folder_left", "lease=%" PRIu64 " error=\"%s\"", keeper->lease.lease,
                  error.message);
    loop_watch_free(keeper->listen_watch);
    if (keeper->listen_fd >= 0)
        close(keeper->listen_fd);
    if (keeper->channel)
        channel_hold_open(keeper->channel); /* the daemon kills a keeper that hung up */
    channel_free(keeper->channel);
    outbox_free(keeper->host.outbox);
    http_client_free(keeper->host.client);
    blob_store_free(keeper->host.blobs);
    sandbox_host_free(keeper->host.sandboxes);
    buffer_done(&keeper->document);
    for (size_t i = 0; i < keeper->host.software_count; i++)
        free(keeper->host.software[i]);
    arena_free(keeper->arena);
    arena_free(keeper->kept_arena);
    loop_timer_free(keeper->linger_timer);
    loop_timer_free(keeper->trim_timer);
    loop_signal_free(keeper->signals[0]);
    loop_signal_free(keeper->signals[1]);
    loop_free(keeper->loop);
}

int keeper_main(int argc, char **argv)
{
    struct keeper keeper = {.listen_fd = -1};
    struct error error;
    (void)argc;
    (void)argv;
    signal(SIGPIPE, SIG_IGN);
    int result = keeper_open(&keeper, &error);
    if (result == 0)
        result = loop_run(keeper.loop, &error);
    if (result < 0)
        log_event(LOG_ERROR, "keeper_failed", "error=\"%s\"", error.message);
    keeper_close(&keeper);
    return result < 0 ? 1 : 0;
}
