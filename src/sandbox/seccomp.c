#include "sandbox/seccomp.h"

#include "base/scope.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Names, not numbers: a call that does not exist on this architecture is skipped. */

/* Without a network. A socket that was handed in could be disconnected and dialled elsewhere. */
static const char *const socket_calls[] = {
    "socket", "socketpair", "connect", "bind", "listen", "accept", "accept4",
};

static const char *const denied_calls[] = {
    /* A second way to make every other call, past this filter. */
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    /* Other processes. */
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "pidfd_getfd",
    "kcmp",
    "process_madvise",
    /* Namespaces and mounts. */
    "unshare",
    "setns",
    "mount",
    "umount",
    "umount2",
    "pivot_root",
    "chroot",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "open_by_handle_at",
    "name_to_handle_at",
    "quotactl",
    "quotactl_fd",
    "fanotify_init",
    /* The kernel's large and rarely needed doors. */
    "bpf",
    "userfaultfd",
    "perf_event_open",
    "add_key",
    "request_key",
    "keyctl",
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "syslog",
    "personality",
    "iopl",
    "ioperm",
    "modify_ldt",
    "vhangup",
    "lookup_dcookie",
    "uselib",
    "ustat",
    "sysfs",
    "nfsservctl",
    "migrate_pages",
    "move_pages",
    "settimeofday",
    "clock_settime",
    "adjtimex",
    "clock_adjtime",
    "sethostname",
    "setdomainname",
};

/* Memory that is no process's: only a cgroup counts it. */
static const char *const uncounted_calls[] = {"memfd_create", "memfd_secret", "shmget"};

static const unsigned namespace_flags[] = {
    CLONE_NEWNS,  CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET,
    CLONE_NEWIPC, CLONE_NEWUTS,  CLONE_NEWCGROUP,
};

static void seccomp_release_context(scmp_filter_ctx *context)
{
    if (*context)
        seccomp_release(*context);
}

static int seccomp_deny(scmp_filter_ctx context, const char *const *names, size_t count)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < count; i++) {
        const int call = seccomp_syscall_resolve_name(names[i]);
        if (call == __NR_SCMP_ERROR)
            continue;
        result = seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), call, 0);
        /* Calls of other architectures have negative pseudo numbers, and no rule. */
        if (call < 0)
            result = 0;
    }
    return result;
}

/*
 * Local, IPv4, IPv6 and route netlink (getifaddrs) sockets only: others, such as vsock, belong to
 * no network namespace or are doors of their own. The comparisons are of 64 bits, so that a number
 * with high bits set, which the kernel would cut off, is among those above the last.
 */
static int seccomp_limit_sockets(scmp_filter_ctx context)
{
    int result = seccomp_rule_add(context, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                                  SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
    for (unsigned family = 0; result == 0 && family < AF_NETLINK; family++)
        if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
            result = seccomp_rule_add(context, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                                      SCMP_A0(SCMP_CMP_EQ, family));
    if (result == 0)
        result = seccomp_rule_add(context, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 2,
                                  SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_NE, 0));
    static const unsigned internet[] = {AF_INET, AF_INET6};
    for (size_t i = 0; result == 0 && i < 2; i++)
        result =
            seccomp_rule_add(context, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 2,
                             SCMP_A0(SCMP_CMP_EQ, internet[i]), SCMP_A2(SCMP_CMP_GT, IPPROTO_UDP));
    return result;
}

static int seccomp_add_rules(scmp_filter_ctx context, const struct seccomp_options *options)
{
    int result = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (result == 0)
        result = seccomp_deny(context, denied_calls, sizeof(denied_calls) / sizeof(*denied_calls));
    if (result == 0 && options->has_network)
        result = seccomp_limit_sockets(context);
    else if (result == 0)
        result = seccomp_deny(context, socket_calls, sizeof(socket_calls) / sizeof(*socket_calls));
    if (result == 0 && !options->has_cgroup)
        result = seccomp_deny(context, uncounted_calls,
                              sizeof(uncounted_calls) / sizeof(*uncounted_calls));
    for (size_t i = 0; result == 0 && i < sizeof(namespace_flags) / sizeof(*namespace_flags); i++) {
        const scmp_datum_t flag = namespace_flags[i];
        result = seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                  SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
    }
    /* A filter cannot look into clone3's argument; ENOSYS makes libc use clone instead. */
    if (result == 0)
        result = seccomp_rule_add(context, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    /* Typing into the terminal the lender may have started the daemon from. */
    if (result == 0)
        result = seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                                  SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, TIOCSTI));
    /* A socket handed in belongs to the host's network: by the calls 0x89xx it would name the
     * host's devices and their hardware addresses. */
    if (result == 0)
        result = seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                                  SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffff00, 0x8900));
    return result;
}

int seccomp_export_filter(const struct seccomp_options *options, int *out_fd, struct error *error)
{
    __attribute__((cleanup(seccomp_release_context))) scmp_filter_ctx context =
        seccomp_init(SCMP_ACT_ALLOW);
    if (!context)
        return error_set(error, ERROR_UNAVAILABLE, "seccomp is not available");
    int result = seccomp_add_rules(context, options);
    if (result < 0)
        return error_set_errno(error, -result, "build the seccomp filter");

    AUTO_FD int fd = memfd_create("souk-seccomp", MFD_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "memfd_create");
    result = seccomp_export_bpf(context, fd);
    if (result < 0)
        return error_set_errno(error, -result, "export the seccomp filter");
    if (lseek(fd, 0, SEEK_SET) < 0)
        return error_set_errno(error, errno, "rewind the seccomp filter");
    *out_fd = TAKE_FD(fd);
    return 0;
}
