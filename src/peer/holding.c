#include "peer/holding.h"

#include "base/assert.h"
#include "base/log.h"
#include "peer/channel.h"
#include "peer/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { QUEUE_BYTES = 8 << 20, KILL_WAIT_MS = 3000, LEAVE_WAIT_MS = 500 };

struct holding {
    struct holding_options options;
    struct channel *channel;
    pid_t pid;
    int pidfd;
    struct holding_state state;
};

/* ---- The keeper's process -------------------------------------------------------------------- */

/* Reaps a keeper that this daemon started, whenever that ends. */
struct reaper {
    struct list_node node;
    struct loop_child *child;
};

static void reaper_free(struct reaper *reaper)
{
    list_remove(&reaper->node);
    loop_child_free(reaper->child);
    free(reaper);
}

void holding_reapers_done(struct list *reapers)
{
    LIST_EACH(reapers, node)
    {
        reaper_free(LIST_ITEM(node, struct reaper, node));
    }
}

static void reaper_on_exit(void *context, const struct child_exit *exit)
{
    struct reaper *reaper = context;
    if (exit->signal != 0 || exit->status != 0)
        log_event(LOG_WARN, "keeper_ended", "pid=%d status=%d signal=%d", (int)exit->pid,
                  exit->status, exit->signal);
    reaper_free(reaper);
}

static int reap_later(const struct holding_options *options, pid_t pid, struct error *error)
{
    struct reaper *reaper = calloc(1, sizeof(*reaper));
    ASSERT(reaper);
    if (loop_child_open(options->loop, pid, reaper_on_exit, reaper, &reaper->child, error) < 0) {
        free(reaper);
        return -1;
    }
    list_append(options->reapers, &reaper->node);
    return 0;
}

/* The daemon's own settings, codes among them, are not the keeper's business. */
static char **keeper_environment(void)
{
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **variables = calloc(count + 1, sizeof(*variables));
    ASSERT(variables);
    for (size_t i = 0; i < count; i++)
        if (!text_starts_with(text_of(environ[i]), TEXT("SOUK_")))
            variables[kept++] = environ[i];
    return variables;
}

/*
 * /proc/self/exe is the program that runs, even if another has been put in its place since. A
 * session of its own keeps the terminal's signals away; only the log stays shared.
 */
static int spawn_with(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, int fd,
                      const struct lease_fence *lease, pid_t *out_pid, struct error *error)
{
    char program[] = "souk", command[] = "keeper", label[48];
    snprintf(label, sizeof(label), "%" PRIu64 "-%" PRIu64, lease->lease, lease->fence);
    char *argv[] = {program, command, label, NULL};
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int failed = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                                          POSIX_SPAWN_SETSIGDEF);
    failed = failed ? failed : posix_spawnattr_setsigmask(attributes, &none);
    failed = failed ? failed : posix_spawnattr_setsigdefault(attributes, &all);
    failed = failed
                 ? failed
                 : posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    failed =
        failed ? failed : posix_spawn_file_actions_adddup2(actions, STDIN_FILENO, STDOUT_FILENO);
    failed = failed ? failed : posix_spawn_file_actions_adddup2(actions, fd, KEEPER_CHANNEL_FD);
    failed =
        failed ? failed : posix_spawn_file_actions_addclosefrom_np(actions, KEEPER_CHANNEL_FD + 1);
    if (!failed) {
        char **variables = keeper_environment();
        failed = posix_spawn(out_pid, "/proc/self/exe", actions, attributes, argv, variables);
        free(variables);
    }
    return failed ? error_set_errno(error, failed, "start a keeper") : 0;
}

static int spawn_keeper(int fd, const struct lease_fence *lease, pid_t *out_pid,
                        struct error *error)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return error_set_errno(error, failed, "start a keeper");
    failed = posix_spawnattr_init(&attributes);
    if (failed) {
        posix_spawn_file_actions_destroy(&actions);
        return error_set_errno(error, failed, "start a keeper");
    }
    const int result = spawn_with(&actions, &attributes, fd, lease, out_pid, error);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return result;
}

/* ---- The channel ----------------------------------------------------------------------------- */

static void holding_on_message(struct channel *channel, uint16_t type, struct text payload,
                               void *context)
{
    struct holding *holding = context;
    struct error error;
    struct keeper_message message;
    (void)channel;
    if (type < KEEPER_MESSAGE_FIRST) {
        holding->options.callbacks.on_message(holding, type, payload, holding->options.context);
        return;
    }
    if (keeper_message_decode(type, payload, &message, &error) == 0 &&
        message.type == KEEPER_MESSAGE_HELLO) {
        holding->options.callbacks.on_hello(holding, &message.hello, holding->options.context);
        return;
    }
    log_event(LOG_ERROR, "keeper_refused", "lease=%" PRIu64 " type=%u",
              holding->options.lease.lease, type);
    holding->options.callbacks.on_gone(holding, holding->options.context);
}

static void holding_on_close(struct channel *channel, void *context)
{
    struct holding *holding = context;
    (void)channel;
    holding->options.callbacks.on_gone(holding, holding->options.context);
}

/* Takes both descriptors on success. */
static int holding_open(const struct holding_options *options, int fd, pid_t pid, int pidfd,
                        struct holding **out_holding, struct error *error)
{
    struct holding *holding = calloc(1, sizeof(*holding));
    ASSERT(holding);
    holding->options = *options;
    const struct channel_options channel = {
        .loop = options->loop,
        .queue_max_bytes = QUEUE_BYTES,
        .callbacks = {.on_message = holding_on_message, .on_close = holding_on_close},
        .context = holding};
    if (channel_open_take(&channel, fd, &holding->channel, error) < 0) {
        free(holding);
        return -1;
    }
    holding->pid = pid;
    holding->pidfd = pidfd;
    *out_holding = holding;
    return 0;
}

int holding_start(const struct holding_options *options, const struct keeper_setup *setup,
                  struct holding **out_holding, struct error *error)
{
    int pair[2];
    pid_t pid;
    if (channel_pair(pair, error) < 0)
        return -1;
    AUTO_FD int own_fd = pair[0];
    AUTO_FD int keeper_fd = pair[1];
    if (spawn_keeper(keeper_fd, &options->lease, &pid, error) < 0)
        return -1;
    /* Whatever fails from here on, the keeper sees its channel closed and ends. */
    AUTO_FD int pidfd = pidfd_open(pid, 0);
    if (reap_later(options, pid, error) < 0)
        return -1;
    if (pidfd < 0)
        return error_set_errno(error, errno, "watch a keeper");
    if (holding_open(options, own_fd, pid, pidfd, out_holding, error) < 0)
        return -1;
    (void)TAKE_FD(own_fd);
    (void)TAKE_FD(pidfd);
    holding_tell(*out_holding,
                 &(struct keeper_message){.type = KEEPER_MESSAGE_SETUP, .setup = *setup});
    return 0;
}

int holding_take_up(const struct holding_options *options, const char *folder,
                    struct holding **out_holding, struct error *error)
{
    AUTO_FD int fd = -1;
    pid_t pid;
    if (channel_connect(folder, &fd, &pid, error) < 0)
        return -1;
    AUTO_FD int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0)
        return error_set(error, ERROR_UNAVAILABLE, "the keeper has just ended");
    /* Who still holds the other end now was not replaced by another process of the same number. */
    struct pollfd hangup = {.fd = fd};
    if (poll(&hangup, 1, 0) != 0)
        return error_set(error, ERROR_UNAVAILABLE, "the keeper has just ended");
    if (holding_open(options, fd, pid, pidfd, out_holding, error) < 0)
        return -1;
    (void)TAKE_FD(fd);
    (void)TAKE_FD(pidfd);
    holding_tell(*out_holding, &(struct keeper_message){.type = KEEPER_MESSAGE_TAKE,
                                                        .take = {.version = KEEPER_VERSION,
                                                                 .lease = options->lease.lease,
                                                                 .fence = options->lease.fence}});
    return 0;
}

void holding_free(struct holding *holding)
{
    if (!holding)
        return;
    channel_free(holding->channel);
    close(holding->pidfd);
    free(holding);
}

static void wait_for_end(const struct holding *holding, int timeout_ms)
{
    struct pollfd wait = {.fd = holding->pidfd, .events = POLLIN};
    while (poll(&wait, 1, timeout_ms) < 0 && errno == EINTR)
        ;
}

void holding_await(struct holding *holding)
{
    wait_for_end(holding, LEAVE_WAIT_MS);
}

void holding_kill(struct holding *holding)
{
    if (pidfd_send_signal(holding->pidfd, SIGKILL, NULL, 0) < 0)
        return; /* it is gone */
    wait_for_end(holding, KILL_WAIT_MS);
}

struct holding_state *holding_state(struct holding *holding)
{
    return &holding->state;
}

struct lease_fence holding_fence(const struct holding *holding)
{
    return holding->options.lease;
}

void holding_send(struct holding *holding, uint16_t type, struct text payload)
{
    struct error error;
    if (channel_send(holding->channel, type, payload, &error) == 0 ||
        error.code == ERROR_UNAVAILABLE)
        return; /* its end is told by on_gone */
    log_event(LOG_ERROR, "keeper_hangs", "lease=%" PRIu64 " error=\"%s\"",
              holding->options.lease.lease, error.message);
    holding_kill(holding); /* which closes the channel */
}

void holding_tell(struct holding *holding, const struct keeper_message *message)
{
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
    keeper_message_encode(message, &payload);
    ASSERT(!payload.is_overflowed);
    holding_send(holding, (uint16_t)message->type, buffer_text(&payload));
}

void holding_set_paused(struct holding *holding, bool is_paused)
{
    channel_set_paused(holding->channel, is_paused);
}

pid_t holding_pid(const struct holding *holding)
{
    return holding->pid;
}
