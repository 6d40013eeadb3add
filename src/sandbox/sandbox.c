#include "sandbox/sandbox.h"

#include "base/assert.h"
#include "base/clock.h"
#include "sandbox/process_tree.h"
#include "sandbox/sandbox_internal.h"
#include "sandbox/uncounted.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    REMOVE_WAIT_MS = 3000,
    PACE_PERIOD_MS = 50,
    PACE_PAUSE_MAX_MS = 2000,
    HOLD_LOOKS = 8, /* for processes that were forked meanwhile; the next pace looks again */
    SESSION_NICE_IDLE = 19,
    DYING_CPU_MILLI = 1000, /* freeing gigabytes takes the kernel a second of it */
};

struct sandbox {
    struct sandbox_host *host;
    char name[SANDBOX_NAME_MAX + 1];
    struct cgroup cgroup;
    struct launched launched;
    int64_t cpu_milli;
    int64_t memory_bytes;
    bool has_ended;
    struct sandbox_exit exit;
    bool is_paused; /* asked for by set_paused */
    bool is_idle;   /* asked for by set_cpu */

    /* Pacing, where there is no cgroup. */
    bool is_held; /* paused by the pace */
    bool is_over_memory;
    int64_t paced_ns;     /* when sandbox_pace was last called; 0: never */
    int64_t paced_cpu_ms; /* the CPU time then */
    double cpu_credit_ms; /* what may still be used; below zero it is paused */
    int64_t cpu_ms;       /* the highest seen: children reaped by nobody are not forgotten */
    int64_t memory_peak_bytes;
};

static bool sandbox_is_soft(const struct sandbox *sandbox)
{
    return sandbox->cgroup.version == CGROUP_NONE;
}

static int sandbox_check_options(const struct sandbox_options *options, struct error *error)
{
    ASSERT(options->argv && options->argv[0] && options->mount_count <= SANDBOX_MOUNT_MAX &&
           options->gpu_count <= SANDBOX_GPU_MAX);
    const size_t size = strlen(options->name);
    if (size == 0 || size > SANDBOX_NAME_MAX ||
        strspn(options->name, "abcdefghijklmnopqrstuvwxyz0123456789-") != size)
        return error_set(error, ERROR_INVALID, "\"%s\" is no name for a sandbox", options->name);
    if (options->cpu_milli <= 0 || options->memory_bytes <= 0 || options->pids_max <= 0)
        return error_set(error, ERROR_INVALID, "the limits of a sandbox must be above zero");
    return 0;
}

/* The program waits for the byte. One that ended before it could wait shows as its exit. */
static int sandbox_release(struct sandbox *sandbox, const struct sandbox_options *options,
                           struct error *error)
{
    if (sandbox->launched.hold_fd < 0)
        return 0;
    if (sandbox->launched.inner_pid > 0 &&
        options->set_up_network(options->network_context, sandbox->launched.inner_pid, error) < 0)
        return error_wrap(error, "set up the network");
    const char byte = 0;
    if (send(sandbox->launched.hold_fd, &byte, 1, MSG_NOSIGNAL) < 0 && errno != EPIPE)
        return error_set_errno(error, errno, "let the program start");
    close(TAKE_FD(sandbox->launched.hold_fd));
    return 0;
}

int sandbox_start(struct sandbox_host *host, const struct sandbox_options *options,
                  struct sandbox **out_sandbox, struct error *error)
{
    if (sandbox_check_options(options, error) < 0)
        return -1;
    struct sandbox *new_sandbox = calloc(1, sizeof(*new_sandbox));
    ASSERT(new_sandbox);
    AUTO(sandbox) struct sandbox *sandbox = new_sandbox;
    sandbox->host = host;
    sandbox->launched = (struct launched){.pidfd = -1, .inner_pidfd = -1, .hold_fd = -1};
    sandbox->cpu_milli = options->cpu_milli;
    sandbox->memory_bytes = options->memory_bytes;
    snprintf(sandbox->name, sizeof(sandbox->name), "%s", options->name);

    char group[SANDBOX_NAME_MAX + 64];
    snprintf(group, sizeof(group), "souk-%s-%d-%" PRIx64, options->name, (int)getpid(),
             clock_monotonic_ns(&clock_system));
    const struct cgroup_limits limits = {
        .cpu_milli = options->cpu_milli,
        .memory_bytes = options->memory_bytes,
        .pids_max = options->pids_max,
        .io_bytes_per_s = options->mount_count > 0 ? options->io_bytes_per_s : 0,
        .io_path = options->mount_count > 0 ? options->mounts[0].source : NULL};
    /* The note comes first: whatever is made after it can be found again. */
    if (cgroup_name_folders(&sandbox->cgroup, &host->cgroups, group, error) < 0 ||
        note_write(host, sandbox->name, &sandbox->cgroup, NULL, error) < 0 ||
        cgroup_open(&sandbox->cgroup, &host->cgroups, group, &limits, error) < 0 ||
        sandbox_launch(host, options, &sandbox->cgroup, &sandbox->launched, error) < 0)
        return error_wrap(error, "start sandbox \"%s\"", options->name);
    cgroup_close_join_fds(&sandbox->cgroup);
    if (note_write(host, sandbox->name, &sandbox->cgroup, &sandbox->launched, error) < 0 ||
        sandbox_release(sandbox, options, error) < 0)
        return error_wrap(error, "start sandbox \"%s\"", options->name);
    *out_sandbox = TAKE(sandbox);
    return 0;
}

int sandbox_pidfd(const struct sandbox *sandbox)
{
    return sandbox->launched.inner_pidfd >= 0 ? sandbox->launched.inner_pidfd
                                              : sandbox->launched.pidfd;
}

bool wait_readable(int fd, int64_t timeout_ms)
{
    const int64_t deadline_ns = clock_monotonic_ns(&clock_system) + timeout_ms * 1000000;
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        const int64_t left_ms = (deadline_ns - clock_monotonic_ns(&clock_system)) / 1000000;
        const int ready = poll(&wait, 1, left_ms > 0 ? (int)left_ms : 0);
        if (ready > 0)
            return true;
        if (ready == 0 || errno != EINTR)
            return false;
    }
}

bool sandbox_reap(struct sandbox *sandbox, struct sandbox_exit *out_exit)
{
    if (!sandbox->has_ended) {
        if (!wait_readable(sandbox_pidfd(sandbox), 0))
            return false;
        /* bwrap ends at once when its child has; unless it is frozen or stopped: then it has to. */
        if (!wait_readable(sandbox->launched.pidfd, 1000)) {
            pidfd_send_signal(sandbox->launched.pidfd, SIGKILL, NULL, 0);
            sandbox_kill(sandbox);
        }
        siginfo_t info = {0};
        while (waitid(P_PIDFD, (id_t)sandbox->launched.pidfd, &info, WEXITED) < 0 && errno == EINTR)
            ;
        sandbox->exit.code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
        struct cgroup_usage usage;
        cgroup_read_usage(&sandbox->cgroup, &usage);
        sandbox->exit.is_out_of_memory = usage.out_of_memory_count > 0 || sandbox->is_over_memory;
        sandbox->has_ended = true;
    }
    *out_exit = sandbox->exit;
    return true;
}

/* All but bwrap itself, whose end would be everybody's. */
static void sandbox_signal_inside(struct sandbox *sandbox, int signal_number)
{
    struct process_info *tree = calloc(PROCESS_TREE_MAX, sizeof(*tree));
    ASSERT(tree);
    const size_t count = process_tree_list(sandbox->launched.pid, tree, PROCESS_TREE_MAX);
    for (size_t i = 0; i < count; i++)
        kill(tree[i].pid, signal_number);
    free(tree);
}

/* Whoever was forked while the others were stopped is only found by looking again. */
static void sandbox_hold(struct sandbox *sandbox)
{
    struct process_info *tree = calloc(PROCESS_TREE_MAX, sizeof(*tree));
    ASSERT(tree);
    bool is_still = false;
    for (int look = 0; look < HOLD_LOOKS && !is_still; look++) {
        const size_t count = process_tree_list(sandbox->launched.pid, tree, PROCESS_TREE_MAX);
        is_still = true;
        for (size_t i = 0; i < count; i++)
            if (!tree[i].is_stopped) {
                is_still = false;
                kill(tree[i].pid, SIGSTOP);
            }
    }
    free(tree);
}

static void sandbox_set_held(struct sandbox *sandbox, bool is_held)
{
    if (is_held)
        sandbox_hold(sandbox);
    else if (sandbox->is_held)
        sandbox_signal_inside(sandbox, SIGCONT);
    sandbox->is_held = is_held;
}

int sandbox_set_paused(struct sandbox *sandbox, bool is_paused, struct error *error)
{
    if (sandbox->has_ended || is_paused == sandbox->is_paused)
        return 0;
    if (sandbox_is_soft(sandbox))
        sandbox_set_held(sandbox, is_paused);
    else if (cgroup_set_frozen(&sandbox->cgroup, is_paused, error) < 0)
        return -1;
    sandbox->is_paused = is_paused;
    return 0;
}

/* The niceness of processes could not be taken back; that of their session can. */
static void sandbox_set_session_idle(struct sandbox *sandbox)
{
    struct process_info *tree = calloc(PROCESS_TREE_MAX, sizeof(*tree));
    ASSERT(tree);
    const size_t count = process_tree_list(sandbox->launched.pid, tree, PROCESS_TREE_MAX);
    process_set_session_nice(tree, count, sandbox->is_idle ? SESSION_NICE_IDLE : 0);
    free(tree);
}

int sandbox_set_cpu(struct sandbox *sandbox, int64_t cpu_milli, bool is_idle, struct error *error)
{
    if (cpu_milli <= 0)
        return error_set(error, ERROR_INVALID, "a share of the CPU must be above zero");
    if (sandbox->has_ended)
        return 0;
    const struct cgroup_cpu cpu = {.cpu_milli = cpu_milli, .is_idle = is_idle};
    if (cgroup_set_cpu(&sandbox->cgroup, &cpu, error) < 0)
        return error_wrap(error, "change the CPU share of sandbox \"%s\"", sandbox->name);
    const bool has_changed = is_idle != sandbox->is_idle;
    sandbox->cpu_milli = cpu_milli;
    sandbox->is_idle = is_idle;
    if (sandbox_is_soft(sandbox) && has_changed)
        sandbox_set_session_idle(sandbox);
    return 0;
}

void sandbox_terminate(struct sandbox *sandbox)
{
    if (sandbox->has_ended)
        return;
    sandbox_signal_inside(sandbox, SIGTERM);
    struct error ignored; /* a group that stays frozen is killed after its grace */
    if (sandbox_set_paused(sandbox, false, &ignored) < 0)
        return;
    sandbox_set_held(sandbox, false);
}

/* To die takes CPU time of one's own: with a small share, or behind everybody else, it may take
 * minutes until the memory is free. */
static void sandbox_hurry(struct sandbox *sandbox)
{
    struct error ignored; /* it dies all the same */
    if (sandbox_set_cpu(sandbox, DYING_CPU_MILLI, /* is_idle= */ false, &ignored) < 0)
        return;
}

void sandbox_kill(struct sandbox *sandbox)
{
    if (sandbox->has_ended || sandbox->launched.pidfd < 0)
        return;
    /* The first process of the namespace takes all others with it, and bwrap ends after it; a
     * bwrap that has no child yet has to be killed itself. */
    if (sandbox->launched.inner_pidfd >= 0)
        pidfd_send_signal(sandbox->launched.inner_pidfd, SIGKILL, NULL, 0);
    else
        pidfd_send_signal(sandbox->launched.pidfd, SIGKILL, NULL, 0);
    cgroup_kill(&sandbox->cgroup);
    sandbox_hurry(sandbox);
}

int sandbox_stop(struct sandbox *sandbox, int64_t grace_ms, struct sandbox_exit *out_exit,
                 struct error *error)
{
    sandbox_terminate(sandbox);
    if (!wait_readable(sandbox_pidfd(sandbox), grace_ms))
        sandbox_kill(sandbox);
    if (!wait_readable(sandbox_pidfd(sandbox), REMOVE_WAIT_MS) || !sandbox_reap(sandbox, out_exit))
        return error_set(error, ERROR_UNAVAILABLE, "sandbox \"%s\" does not end", sandbox->name);
    return 0;
}

void sandbox_free(struct sandbox *sandbox)
{
    if (!sandbox)
        return;
    struct sandbox_exit ignored_exit;
    bool is_gone = true;
    if (sandbox->launched.pidfd >= 0) {
        sandbox_kill(sandbox);
        if (!sandbox->has_ended)
            is_gone = wait_readable(sandbox_pidfd(sandbox), REMOVE_WAIT_MS) &&
                      sandbox_reap(sandbox, &ignored_exit);
        close(sandbox->launched.pidfd);
        if (sandbox->launched.inner_pidfd >= 0)
            close(sandbox->launched.inner_pidfd);
        if (sandbox->launched.hold_fd >= 0) /* only now: its end would let the program start */
            close(sandbox->launched.hold_fd);
    }
    struct error ignored;
    const bool is_removed = cgroup_remove(&sandbox->cgroup, REMOVE_WAIT_MS, &ignored) == 0;
    /* What could not be ended stays noted for the next sweep. */
    if (is_gone && is_removed)
        note_remove(sandbox->host, sandbox->name);
    free(sandbox);
}

static void sandbox_read_soft_usage(struct sandbox *sandbox, struct sandbox_usage *out_usage)
{
    struct process_info *tree = calloc(PROCESS_TREE_MAX, sizeof(*tree));
    ASSERT(tree);
    const size_t count = process_tree_list(sandbox->launched.pid, tree, PROCESS_TREE_MAX);
    int64_t ticks = 0;
    for (size_t i = 0; i < count; i++) {
        ticks += tree[i].cpu_ticks;
        out_usage->memory_bytes += process_memory_bytes(tree[i].pid);
    }
    free(tree);
    out_usage->cpu_ms = process_ticks_to_ms(ticks);
}

void sandbox_read_usage(struct sandbox *sandbox, struct sandbox_usage *out_usage)
{
    *out_usage = (struct sandbox_usage){0};
    if (sandbox_is_soft(sandbox)) {
        sandbox_read_soft_usage(sandbox, out_usage);
    } else {
        struct cgroup_usage usage;
        cgroup_read_usage(&sandbox->cgroup, &usage);
        *out_usage = (struct sandbox_usage){.cpu_ms = usage.cpu_ms,
                                            .memory_bytes = usage.memory_bytes,
                                            .memory_peak_bytes = usage.memory_peak_bytes};
    }
    if (sandbox->cpu_ms < out_usage->cpu_ms)
        sandbox->cpu_ms = out_usage->cpu_ms;
    if (sandbox->memory_peak_bytes < out_usage->memory_bytes)
        sandbox->memory_peak_bytes = out_usage->memory_bytes;
    if (sandbox->memory_peak_bytes < out_usage->memory_peak_bytes)
        sandbox->memory_peak_bytes = out_usage->memory_peak_bytes;
    out_usage->cpu_ms = sandbox->cpu_ms;
    out_usage->memory_peak_bytes = sandbox->memory_peak_bytes;
}

int64_t sandbox_pace(struct sandbox *sandbox, int64_t now_ns)
{
    if (!sandbox_is_soft(sandbox) || sandbox->has_ended)
        return -1;
    struct sandbox_usage usage;
    sandbox_read_usage(sandbox, &usage);
    if (!sandbox->is_over_memory &&
        (usage.memory_bytes > sandbox->memory_bytes ||
         uncounted_bytes(sandbox->launched.inner_pid) > sandbox->memory_bytes)) {
        sandbox->is_over_memory = true;
        sandbox_kill(sandbox);
        return PACE_PERIOD_MS;
    }
    const double share = (double)sandbox->cpu_milli / 1000;
    /* One period's worth may be saved up, so that a job that was idle cannot take a long run. */
    const double credit_max_ms = share * PACE_PERIOD_MS;
    if (sandbox->paced_ns == 0) {
        sandbox->paced_ns = now_ns;
        sandbox->paced_cpu_ms = usage.cpu_ms;
    }
    sandbox->cpu_credit_ms += share * (double)(now_ns - sandbox->paced_ns) / 1e6;
    if (sandbox->cpu_credit_ms > credit_max_ms)
        sandbox->cpu_credit_ms = credit_max_ms;
    sandbox->cpu_credit_ms -= (double)(usage.cpu_ms - sandbox->paced_cpu_ms);
    sandbox->paced_ns = now_ns;
    sandbox->paced_cpu_ms = usage.cpu_ms;
    sandbox_set_held(sandbox, sandbox->is_paused || sandbox->cpu_credit_ms < 0);
    if (sandbox->is_paused || !sandbox->is_held)
        return PACE_PERIOD_MS;
    const double pause_ms = -sandbox->cpu_credit_ms / share + 1;
    return pause_ms < PACE_PAUSE_MAX_MS ? (int64_t)pause_ms : PACE_PAUSE_MAX_MS;
}
