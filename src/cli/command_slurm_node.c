/*
 * souk slurm-node: what a node's job runs. One lender, for as long as the daemon that started it
 * lives; with it goes everything it started.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/demo_process.h"
#include "sandbox/process_tree.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LOOK_MS = 2000,
    CHILDREN_MAX = 1024,
    LEFT_MS = 5000,
    LEFT_LOOK_NS = 200000000,
    READY_SIZE = 512
};

struct node_options {
    const char *folder;
    const char *beat;
    int64_t silence_ms;
};

static const struct option node_options[] = {
    {"folder", OPTION_TEXT, offsetof(struct node_options, folder), "DIR",
     .help = "With the lender's settings.", .is_required = true},
    {"beat", OPTION_TEXT, offsetof(struct node_options, beat), "FILE",
     .help = "Changes while the daemon lives.", .is_required = true},
    {"silence", OPTION_DURATION, offsetof(struct node_options, silence_ms), "TIME", "30s",
     "End when it has not changed for so long.", .minimum = 1000, .maximum = 3600000},
};

struct node {
    const struct node_options *options;
    struct demo_process lender;
    int signal_fd;
    char beat[64]; /* as it was read last */
    int64_t beat_ns;
};

static int64_t now_ns(void)
{
    return clock_monotonic_ns(&clock_system);
}

/* Whether the daemon is still there. */
static bool hear_daemon(struct node *node)
{
    struct buffer read AUTO_BUFFER;
    buffer_init(&read, sizeof(node->beat));
    struct error ignored = {0};
    char beat[sizeof(node->beat)] = "";
    if (file_read(node->options->beat, &read, &ignored) == 0 && read.size < sizeof(beat))
        memcpy(beat, read.data, read.size);
    if (beat[0] && strcmp(beat, node->beat) != 0) {
        memcpy(node->beat, beat, sizeof(beat));
        node->beat_ns = now_ns();
    }
    return now_ns() - node->beat_ns < node->options->silence_ms * INT64_C(1000000);
}

/* The market knows the machine: the one-time code is used up. */
static void be_ready(struct node *node)
{
    char line[READY_SIZE], path[PATH_MAX];
    const ssize_t size = read(node->lender.ready_fd, line, sizeof(line));
    close(node->lender.ready_fd);
    node->lender.ready_fd = -1;
    snprintf(path, sizeof(path), "%s/secrets", node->options->folder);
    if (size > 0 && unlink(path) < 0 && errno != ENOENT)
        log_event(LOG_WARN, "code_kept", "reason=\"%s\"", strerrordesc_np(errno));
}

/* Until somebody wants it to end; false when the lender has ended by itself. */
static bool wait_for_end(struct node *node)
{
    for (;;) {
        struct pollfd polled[] = {{.fd = node->lender.pidfd, .events = POLLIN},
                                  {.fd = node->signal_fd, .events = POLLIN},
                                  {.fd = node->lender.ready_fd, .events = POLLIN}};
        if (poll(polled, 3, LOOK_MS) < 0)
            continue; /* by a signal */
        if (polled[1].revents)
            return true;
        if (polled[0].revents)
            return false;
        if (polled[2].revents)
            be_ready(node);
        if (!hear_daemon(node)) {
            log_event(LOG_WARN, "daemon_gone", "silent_s=%lld",
                      (long long)(node->options->silence_ms / 1000));
            return true;
        }
    }
}

static size_t signal_children(int number)
{
    static struct process_info processes[CHILDREN_MAX];
    const size_t count = process_tree_list(getpid(), processes, CHILDREN_MAX);
    for (size_t i = 0; i < count; i++)
        if (processes[i].parent == getpid())
            kill(processes[i].pid, number);
    return count;
}

/* Keepers of leases outlive their daemon; none outlives the job. */
static void end_left(void)
{
    const int64_t until_ns = now_ns() + LEFT_MS * INT64_C(1000000);
    signal_children(SIGTERM);
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    while (waitpid(-1, NULL, WNOHANG) >= 0 || errno == EINTR) {
        if (now_ns() > until_ns)
            signal_children(SIGKILL);
        sigtimedwait(&ended, NULL, &(struct timespec){.tv_nsec = LEFT_LOOK_NS});
    }
}

static int open_node(struct node *node, struct error *error)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    node->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    sigaddset(&signals, SIGCHLD); /* waited for at the end */
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (node->signal_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return error_set_errno(error, errno, "watch over the lender");
    return 0;
}

static int run_node(void *context, const void *options, struct error *error)
{
    const struct cli *cli = context;
    struct node node = {
        .options = options, .lender = DEMO_PROCESS_NONE, .signal_fd = -1, .beat_ns = now_ns()};
    node.lender.name = "the lender";
    node.lender.log_path = arena_format(cli->arena, "%s/lend.log", node.options->folder);
    const char *const arguments[] = {"lend",
                                     "--config-dir",
                                     node.options->folder,
                                     "--state-dir",
                                     arena_format(cli->arena, "%s/state", node.options->folder),
                                     NULL};
    if (open_node(&node, error) < 0 ||
        demo_process_start(&node.lender, "/proc/self/exe", arguments, error) < 0)
        return -1;
    const bool was_asked = wait_for_end(&node);
    demo_process_stop(&node.lender);
    end_left();
    close(node.signal_fd);
    if (!was_asked)
        return error_set(error, ERROR_UNAVAILABLE, "the lender ended by itself; \"%s\" says why",
                         node.lender.log_path);
    return 0;
}

const struct command command_slurm_node = {
    .name = "slurm-node",
    .summary = "Lends a node of a Slurm cluster; started by \"souk lend --slurm\".",
    .example = "souk slurm-node --folder DIR --beat FILE",
    COMMAND_OPTIONS(node_options, node_options),
    .is_hidden = true,
    .run = run_node,
};
