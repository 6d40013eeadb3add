/* Attempts on other processes, and on becoming somebody else. */
#include "sandbox/escape.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ATTEMPT(name, call)                                                                        \
    static long name(const struct escape_targets *targets)                                         \
    {                                                                                              \
        (void)targets;                                                                             \
        return (call);                                                                             \
    }

ATTEMPT(signal_owner, kill(targets->pid, SIGTERM))
ATTEMPT(signal_owner_thread, syscall(SYS_tgkill, targets->pid, targets->pid, SIGTERM))
ATTEMPT(open_owner, pidfd_open(targets->pid, 0))
ATTEMPT(trace_owner, ptrace(PTRACE_SEIZE, targets->pid, NULL, NULL))
ATTEMPT(trace_parent, ptrace(PTRACE_ATTACH, getppid(), NULL, NULL))
ATTEMPT(trace_self, ptrace(PTRACE_TRACEME, 0, NULL, NULL))
ATTEMPT(take_descriptor, syscall(SYS_pidfd_getfd, 0, 0, 0))
ATTEMPT(compare_processes, syscall(SYS_kcmp, 1, getpid(), 0, 0, 0))
ATTEMPT(advise_memory, syscall(SYS_process_madvise, 0, NULL, 0, 0, 0))
ATTEMPT(slow_owner, setpriority(PRIO_PROCESS, (id_t)targets->pid, 19))
ATTEMPT(hurry_self, setpriority(PRIO_PROCESS, 0, -20))
ATTEMPT(hurry_disk, syscall(SYS_ioprio_set, 1, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0)))
ATTEMPT(become_root, setuid(0))
ATTEMPT(become_root_group, setgid(0))
ATTEMPT(join_groups, syscall(SYS_setgroups, 1, (gid_t[]){0}))
ATTEMPT(new_user_namespace, unshare(CLONE_NEWUSER))
ATTEMPT(new_mount_namespace, unshare(CLONE_NEWNS))
ATTEMPT(new_network_namespace, unshare(CLONE_NEWNET))
ATTEMPT(new_pid_namespace, unshare(CLONE_NEWPID))
ATTEMPT(clone_user_namespace, syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0))
ATTEMPT(clone_mount_namespace, syscall(SYS_clone, CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0))
ATTEMPT(clone3_user_namespace,
        syscall(SYS_clone3, &(struct clone_args){.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD},
                sizeof(struct clone_args)))
ATTEMPT(enter_namespace, setns(0, CLONE_NEWNS))
ATTEMPT(raise_ambient, prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0))
ATTEMPT(allow_new_privileges, prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0))

/* The kernel drops such a signal unless Landlock refuses it before. */
static long end_init(const struct escape_targets *targets)
{
    (void)targets;
    if (kill(1, SIGKILL) < 0)
        return -1;
    errno = EPERM;
    return kill(1, 0) == 0 ? -1 : 0;
}

static long read_memory_of_parent(const struct escape_targets *targets)
{
    (void)targets;
    char byte;
    const struct iovec here = {&byte, 1}, there = {&byte, 1};
    return process_vm_readv(getppid(), &here, 1, &there, 1, 0);
}

static long write_memory_of_parent(const struct escape_targets *targets)
{
    (void)targets;
    char byte = 0;
    const struct iovec here = {&byte, 1}, there = {&byte, 1};
    return process_vm_writev(getppid(), &here, 1, &there, 1, 0);
}

static long take_capabilities(const struct escape_targets *targets)
{
    (void)targets;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct all = {~0U, ~0U, ~0U};
    const struct __user_cap_data_struct both[] = {all, all};
    return syscall(SYS_capset, &header, both);
}

static long hurry_as_real_time(const struct escape_targets *targets)
{
    (void)targets;
    return sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
}

static long raise_a_limit(const struct escape_targets *targets)
{
    (void)targets;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -1;
    limit.rlim_max++;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

/* A program that would be root, run to see whether it is. */
static long run_setuid_program(const struct escape_targets *targets)
{
    (void)targets;
    const pid_t child = fork();
    if (child == 0) {
        execl("/usr/bin/su", "su", "-c", "true", "root", NULL);
        _exit(1);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    errno = EPERM;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

const struct escape_attempt escape_processes[] = {
    {"end the owner's process", signal_owner, "ESRCH"},
    {"end a thread of the owner's process", signal_owner_thread, "ESRCH"},
    {"hold the owner's process", open_owner, "ESRCH|EINVAL"},
    {"end process 1", end_init, "EPERM"},
    {"trace the owner's process", trace_owner, "EPERM|ESRCH"},
    {"trace its parent", trace_parent, "EPERM"},
    {"be traced", trace_self, "EPERM"},
    {"take a descriptor from a process", take_descriptor, "EPERM"},
    {"compare processes", compare_processes, "EPERM"},
    {"advise on another's memory", advise_memory, "EPERM"},
    {"read another's memory", read_memory_of_parent, "EPERM"},
    {"write another's memory", write_memory_of_parent, "EPERM"},
    {"slow the owner's process down", slow_owner, "ESRCH"},
    {"raise its own priority", hurry_self, "EACCES|EPERM"},
    {"run in real time", hurry_as_real_time, "EPERM"},
    {"go first at the disk", hurry_disk, "EPERM"},
    {"raise a limit", raise_a_limit, "EPERM"},
    {"become root", become_root, "EPERM|EINVAL"},
    {"become root's group", become_root_group, "EPERM|EINVAL"},
    {"join root's group", join_groups, "EPERM|EINVAL"},
    {"take capabilities", take_capabilities, "EPERM"},
    {"raise an ambient capability", raise_ambient, "EPERM"},
    {"allow itself new privileges", allow_new_privileges, "EINVAL|EPERM"},
    {"run a setuid program", run_setuid_program, "EPERM"},
    {"make a user namespace", new_user_namespace, "EPERM"},
    {"make a mount namespace", new_mount_namespace, "EPERM"},
    {"make a network namespace", new_network_namespace, "EPERM"},
    {"make a process namespace", new_pid_namespace, "EPERM"},
    {"clone into a user namespace", clone_user_namespace, "EPERM"},
    {"clone into a mount namespace", clone_mount_namespace, "EPERM"},
    {"clone3 into a user namespace", clone3_user_namespace, "ENOSYS"},
    {"enter another namespace", enter_namespace, "EPERM"},
    {NULL, NULL, NULL},
};
