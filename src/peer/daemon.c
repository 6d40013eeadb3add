#include "peer/daemon.h"

#include "base/assert.h"
#include "base/log.h"
#include "peer/daemon_internal.h"
#include "sandbox/folder.h"

#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <unistd.h>

int64_t daemon_now_ns(const struct daemon *daemon)
{
    return clock_monotonic_ns(loop_clock(daemon->loop));
}

/* ---- Ending ---------------------------------------------------------------------------------- */

void daemon_check_stopped(struct daemon *daemon)
{
    if (!daemon->is_stopping || daemon->holdings.count > 0)
        return;
    if (daemon->is_welcome && outbox_waiting_count(daemon->outbox) == 0)
        link_finish(daemon->link); /* on_close ends the loop */
    else if (!daemon->is_welcome)
        loop_stop(daemon->loop);
}

static void daemon_on_stop_timeout(void *context)
{
    struct daemon *daemon = context;
    loop_stop(daemon->loop);
}

void daemon_stop(struct daemon *daemon)
{
    const bool is_repeated = daemon->is_stopping;
    daemon->is_stopping = true;
    log_event(LOG_INFO, "stopping", "leases=%zu", daemon_list_running(daemon, NULL));
    /* Asked twice: no grace. */
    daemon_reclaim_all(daemon, is_repeated ? 0 : DAEMON_STOP_GRACE_MS,
                       TEXT("the lender stopped lending"));
    daemon_release_ended(daemon);
    loop_timer_start(daemon->stop_timer, DAEMON_STOP_MAX_MS);
    daemon_check_stopped(daemon);
}

static void daemon_on_stop(void *context)
{
    daemon_stop(context);
}

static void daemon_on_stop_fd(void *context, uint32_t events)
{
    struct daemon *daemon = context;
    (void)events;
    loop_watch_free(TAKE(daemon->stop_watch));
    if (!daemon->is_stopping)
        daemon_stop(daemon);
}

/* Without good-bye to the market: to it this is a link that broke for a moment. */
static void daemon_on_leave(void *context)
{
    struct daemon *daemon = context;
    if (daemon->is_stopping)
        return;
    log_event(LOG_INFO, "leaving", "leases=%zu", daemon_list_running(daemon, NULL));
    loop_stop(daemon->loop);
}

static void daemon_on_restart(void *context)
{
    struct daemon *daemon = context;
    daemon->wants_restart = !daemon->is_stopping;
    daemon_on_leave(daemon);
}

/* ---- Beginning ------------------------------------------------------------------------------- */

static int daemon_open_folders(struct daemon *daemon, struct error *error)
{
    const char *state_dir = daemon->options->state_dir;
    if (snprintf(daemon->leases_dir, PATH_MAX, "%s/leases", state_dir) >= PATH_MAX - 256 ||
        snprintf(daemon->blobs_dir, PATH_MAX, "%s/blobs", state_dir) >= PATH_MAX - 256)
        return error_set(error, ERROR_INVALID, "the state folder's name is too long");
    return folder_make(daemon->leases_dir, 0700, error);
}

static int daemon_open_signals(struct daemon *daemon, struct error *error)
{
    static const struct {
        int number;
        void (*callback)(void *context);
    } signals[] = {{SIGTERM, daemon_on_stop},
                   {SIGINT, daemon_on_stop},
                   {SIGUSR1, daemon_on_leave},
                   {SIGUSR2, daemon_on_restart}};
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        if (loop_signal_open(daemon->loop, signals[i].number, signals[i].callback, daemon,
                             &daemon->signals[i], error) < 0)
            return -1;
    return 0;
}

static int daemon_open_market(struct daemon *daemon, struct error *error)
{
    const struct daemon_options *options = daemon->options;
    const struct http_client_options client = {.loop = daemon->loop};
    daemon->client = http_client_new(&client);
    const struct standing_options standing = {
        .loop = daemon->loop,
        .probe = options->probe,
        .found = options->found,
        .look_ms = options->look_ms,
        .lent = {options->limits.cores_milli, options->limits.ram_bytes, options->limits.disk_bytes,
                 options->limits.network, options->limits.has_images, options->limits.install,
                 options->limits.forbids_programs}};
    const struct servers_options servers = {.loop = daemon->loop,
                                            .client = daemon->client,
                                            .identity = options->identity,
                                            .urls = options->servers,
                                            .url_count = options->server_count,
                                            .return_ms = options->return_ms};
    daemon->standing = standing_new(&standing);
    daemon->trials = trials_new(&(struct trials_options){.loop = daemon->loop,
                                                         .is_direct = options->is_direct,
                                                         .on_tried = daemon_on_tried,
                                                         .context = daemon});
    return servers_open(&servers, &daemon->servers, error);
}

static int daemon_open(struct daemon *daemon, struct error *error)
{
    if (loop_open(&clock_system, &daemon->loop, error) < 0 ||
        daemon_open_signals(daemon, error) < 0)
        return -1;
    if (daemon->options->stop_fd >= 0 &&
        loop_watch_open(daemon->loop, daemon->options->stop_fd, LOOP_READ, daemon_on_stop_fd,
                        daemon, &daemon->stop_watch, error) < 0)
        return -1;
    if (daemon_open_folders(daemon, error) < 0)
        return -1;
    daemon->outbox = outbox_new();
    daemon->arena = arena_new_secret(0);
    daemon->retry_timer = loop_timer_new(daemon->loop, daemon_dial, daemon);
    daemon->heartbeat_timer = loop_timer_new(daemon->loop, daemon_on_heartbeat, daemon);
    daemon->stop_timer = loop_timer_new(daemon->loop, daemon_on_stop_timeout, daemon);
    daemon->release_timer = loop_timer_new(daemon->loop, daemon_on_release, daemon);
    daemon_open_gpus(daemon);
    uint64_t seed;
    randombytes_buf(&seed, sizeof(seed)); /* jitter only, but different on every machine */
    random_init(&daemon->random, seed);
    randombytes_buf(daemon->instance, sizeof(daemon->instance));
    daemon->retry_ms = DAEMON_RETRY_FIRST_MS;
    if (daemon_open_market(daemon, error) < 0 || daemon_open_owner(daemon, error) < 0)
        return -1;
    return daemon_take_up_leases(daemon, error);
}

static void daemon_close(struct daemon *daemon)
{
    daemon_close_leases(daemon);
    tcp_connect_free(daemon->connect);
    trials_free(daemon->trials);
    link_free(daemon->link);
    outbox_free(daemon->outbox);
    standing_free(daemon->standing);
    servers_free(daemon->servers);
    http_client_free(daemon->client);
    arena_free(daemon->arena);
    owner_free(daemon->owner);
    owner_line_free(daemon->owner_line); /* who waits for the end sees it now */
    loop_timer_free(daemon->retry_timer);
    loop_timer_free(daemon->heartbeat_timer);
    loop_timer_free(daemon->stop_timer);
    loop_timer_free(daemon->release_timer);
    daemon_close_gpus(daemon);
    loop_watch_free(daemon->stop_watch);
    for (size_t i = 0; i < sizeof(daemon->signals) / sizeof(*daemon->signals); i++)
        loop_signal_free(daemon->signals[i]);
    loop_free(daemon->loop);
    if (daemon->ready_fd >= 0)
        close(daemon->ready_fd);
}

int daemon_run(const struct daemon_options *options, bool *out_wants_restart, struct error *error)
{
    struct daemon daemon = {.options = options,
                            .enrolment = identity_enrolment(options->identity),
                            .ready_fd = options->ready_fd};
    ASSERT(daemon.enrolment->machine != 0);
    map_init(&daemon.holdings);
    list_init(&daemon.reapers);
    lent_init(&daemon.lent, &options->limits);
    int result = daemon_open(&daemon, error);
    if (result == 0) {
        daemon_dial(&daemon);
        result = loop_run(daemon.loop, error);
    }
    if (result == 0 && daemon.is_refused) {
        *error = daemon.refusal;
        result = -1;
    }
    daemon_close(&daemon);
    *out_wants_restart = daemon.wants_restart;
    return result;
}
