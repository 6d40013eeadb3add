#include "sandbox/seccomp.h"

#include "base/scope.h"
#include "sandbox/seccomp_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

static const unsigned namespace_flags[] = {
    CLONE_NEWNS,  CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET,
    CLONE_NEWIPC, CLONE_NEWUTS,  CLONE_NEWCGROUP,
};

static void seccomp_release_context(scmp_filter_ctx *context)
{
    if (*context)
        seccomp_release(*context);
}
#define AUTO_CONTEXT __attribute__((cleanup(seccomp_release_context)))

/* One rule for each name of the list. */
static int seccomp_add_calls(scmp_filter_ctx context, uint32_t action, const char *const *names)
{
    int result = 0;
    for (size_t i = 0; result == 0 && names[i]; i++) {
        const int call = seccomp_syscall_resolve_name(names[i]);
        if (call == __NR_SCMP_ERROR)
            continue;
        result = seccomp_rule_add(context, action, call, 0);
        /* Calls of other architectures have negative pseudo numbers, and no rule. */
        if (call < 0)
            result = 0;
    }
    return result;
}

static int seccomp_add_allowed(scmp_filter_ctx context)
{
    /* A binary tree of numbers instead of a list: the list is long. */
    int result = seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (result == 0)
        result = seccomp_add_calls(context, SCMP_ACT_ALLOW, seccomp_allowed_calls);
    /* 0 is what it has, all ones only asks; others turn protections of the address space off. */
    static const scmp_datum_t personalities[] = {0, 0xffffffff};
    for (size_t i = 0; result == 0 && i < 2; i++)
        result = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(personality), 1,
                                  SCMP_A0(SCMP_CMP_EQ, personalities[i]));
    return result;
}

/*
 * Local, IPv4, IPv6 and route netlink (getifaddrs) sockets only: others, such as vsock, belong to
 * no network namespace or are doors of their own. The comparisons are of 64 bits, so that a number
 * with high bits set, which the kernel would cut off, is among those above the last.
 */
static int seccomp_limit_sockets(scmp_filter_ctx context, const struct seccomp_options *options)
{
    /* Local sockets without a file, and what is told of devices, belong to the network. */
    const bool is_own = !options->shares_network;
    int result = seccomp_rule_add(context, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                                  SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
    for (unsigned family = 0; result == 0 && family <= AF_NETLINK; family++)
        if (family != AF_INET && family != AF_INET6 &&
            !(is_own && (family == AF_UNIX || family == AF_NETLINK)))
            result = seccomp_rule_add(context, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                                      SCMP_A0(SCMP_CMP_EQ, family));
    if (result == 0 && is_own)
        result = seccomp_rule_add(context, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 2,
                                  SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_NE, 0));
    static const unsigned internet[] = {AF_INET, AF_INET6};
    for (size_t i = 0; result == 0 && i < 2; i++)
        result =
            seccomp_rule_add(context, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 2,
                             SCMP_A0(SCMP_CMP_EQ, internet[i]), SCMP_A2(SCMP_CMP_GT, IPPROTO_UDP));
    return result;
}

/* Without a network: local sockets, for programs whose processes hand each other descriptors, or
 * only pairs of them, by which asyncio and others wake themselves. Buffers are the cgroup's to
 * count. */
static int seccomp_limit_to_local(scmp_filter_ctx context, const struct seccomp_options *options)
{
    const uint32_t refuse = SCMP_ACT_ERRNO(EPERM);
    int result = 0;
    if (options->has_local_sockets)
        result =
            seccomp_rule_add(context, refuse, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_NE, AF_UNIX));
    else
        result = seccomp_add_calls(context, refuse, seccomp_socket_calls);
    if (result == 0 && (options->has_local_sockets || options->has_cgroup))
        result = seccomp_rule_add(context, refuse, SCMP_SYS(socketpair), 1,
                                  SCMP_A0(SCMP_CMP_NE, AF_UNIX));
    else if (result == 0)
        result = seccomp_rule_add(context, refuse, SCMP_SYS(socketpair), 0);
    return result;
}

/* The owner's reserve of huge pages: no limit of memory counts them. */
static int seccomp_refuse_huge_pages(scmp_filter_ctx context, bool has_cgroup)
{
    const uint32_t refuse = SCMP_ACT_ERRNO(ENOMEM);
    int result = seccomp_rule_add(context, refuse, SCMP_SYS(mmap), 1,
                                  SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_HUGETLB, MAP_HUGETLB));
    if (!has_cgroup) /* the other ways are closed altogether */
        return result;
    if (result == 0)
        result = seccomp_rule_add(context, refuse, SCMP_SYS(memfd_create), 1,
                                  SCMP_A1(SCMP_CMP_MASKED_EQ, MFD_HUGETLB, MFD_HUGETLB));
    if (result == 0)
        result = seccomp_rule_add(context, refuse, SCMP_SYS(shmget), 1,
                                  SCMP_A2(SCMP_CMP_MASKED_EQ, SHM_HUGETLB, SHM_HUGETLB));
    return result;
}

/* Without a cgroup sockets are counted, each by the buffer it begins with: larger ones are asked
 * for in vain, as they are where the kernel allows no more. */
static int seccomp_keep_buffers(scmp_filter_ctx context)
{
    static const int names[] = {SO_SNDBUF, SO_RCVBUF, SO_SNDBUFFORCE, SO_RCVBUFFORCE};
    int result = 0;
    for (size_t i = 0; result == 0 && i < sizeof(names) / sizeof(*names); i++)
        result = seccomp_rule_add(context, SCMP_ACT_ERRNO(0), SCMP_SYS(setsockopt), 2,
                                  SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, SOL_SOCKET),
                                  SCMP_A2(SCMP_CMP_MASKED_EQ, 0xffffffff, (scmp_datum_t)names[i]));
    return result;
}

static int seccomp_add_refused(scmp_filter_ctx context, const struct seccomp_options *options)
{
    const uint32_t refuse = SCMP_ACT_ERRNO(EPERM);
    int result = seccomp_add_calls(context, refuse, seccomp_refused_calls);
    if (result == 0)
        result = options->has_network || options->shares_network
                     ? seccomp_limit_sockets(context, options)
                     : seccomp_limit_to_local(context, options);
    if (result == 0 && !options->has_cgroup)
        result = seccomp_add_calls(context, refuse, seccomp_uncounted_calls);
    if (result == 0 && !options->has_cgroup)
        result = seccomp_keep_buffers(context);
    if (result == 0)
        result = seccomp_refuse_huge_pages(context, options->has_cgroup);
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
     * host's devices and their addresses. With a network of its own, MPI and Java ask that way. */
    if (result == 0 && !options->has_network)
        result = seccomp_rule_add(context, refuse, SCMP_SYS(ioctl), 1,
                                  SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffff00, 0x8900));
    return result;
}

static int seccomp_export(scmp_filter_ctx context, int *out_fd, struct error *error)
{
    AUTO_FD int fd = memfd_create("souk-seccomp", MFD_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "memfd_create");
    const int result = seccomp_export_bpf(context, fd);
    if (result < 0)
        return error_set_errno(error, -result, "export the seccomp filter");
    if (lseek(fd, 0, SEEK_SET) < 0)
        return error_set_errno(error, errno, "rewind the seccomp filter");
    *out_fd = TAKE_FD(fd);
    return 0;
}

int seccomp_export_filters(const struct seccomp_options *options, int out_fds[SECCOMP_FILTER_COUNT],
                           struct error *error)
{
    AUTO_CONTEXT scmp_filter_ctx allowed = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    AUTO_CONTEXT scmp_filter_ctx refused = seccomp_init(SCMP_ACT_ALLOW);
    if (!allowed || !refused)
        return error_set(error, ERROR_UNAVAILABLE, "seccomp is not available");
    int result = seccomp_attr_set(allowed, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (result == 0)
        result = seccomp_attr_set(refused, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (result == 0)
        result = seccomp_add_allowed(allowed);
    if (result == 0)
        result = seccomp_add_refused(refused, options);
    if (result < 0)
        return error_set_errno(error, -result, "build the seccomp filter");
    AUTO_FD int first = -1;
    AUTO_FD int second = -1;
    if (seccomp_export(allowed, &first, error) < 0 || seccomp_export(refused, &second, error) < 0)
        return -1;
    out_fds[0] = TAKE_FD(first);
    out_fds[1] = TAKE_FD(second);
    return 0;
}
