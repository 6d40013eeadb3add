#include "sandbox/confine.h"

#include "sandbox/sandbox.h"
#include "sandbox/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sockets, memory, time, and the way out. */
static const char *const allowed_calls[] = {
    "accept4",      "bind",           "brk",          "clock_gettime", "clock_nanosleep",
    "close",        "connect",        "exit",         "exit_group",    "fstat",
    "futex",        "getpeername",    "getpid",       "getrandom",     "getsockname",
    "getsockopt",   "gettid",         "gettimeofday", "listen",        "madvise",
    "mremap",       "munmap",         "newfstatat",   "poll",          "ppoll",
    "read",         "readv",          "recvfrom",     "recvmsg",       "restart_syscall",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sendmsg",       "sendto",
    "setsockopt",   "shutdown",       "sigaltstack",  "write",         "writev",
};

/* Of calls that reach further than a descriptor of ours, one value of one argument: no signal to
 * another process, neither at once nor by a descriptor that is given an owner. */
struct narrow_call {
    int call;
    unsigned argument;
    uint64_t value;
};

static int add_narrow_rules(scmp_filter_ctx context)
{
    const struct narrow_call narrow[] = {
        {SCMP_SYS(socket), 0, AF_INET}, {SCMP_SYS(tgkill), 0, (uint64_t)getpid()},
        {SCMP_SYS(fcntl), 1, F_GETFD},  {SCMP_SYS(fcntl), 1, F_SETFD},
        {SCMP_SYS(fcntl), 1, F_GETFL},  {SCMP_SYS(fcntl), 1, F_SETFL},
        {SCMP_SYS(ioctl), 1, FIONREAD}, {SCMP_SYS(ioctl), 1, FIONBIO},
    };
    int result = 0;
    for (size_t i = 0; result == 0 && i < sizeof(narrow) / sizeof(*narrow); i++)
        result = seccomp_rule_add(context, SCMP_ACT_ALLOW, narrow[i].call, 1,
                                  SCMP_CMP(narrow[i].argument, SCMP_CMP_EQ, narrow[i].value));
    return result;
}

static int add_rules(scmp_filter_ctx context)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < sizeof(allowed_calls) / sizeof(*allowed_calls); i++) {
        const int call = seccomp_syscall_resolve_name(allowed_calls[i]);
        if (call >= 0) /* what this architecture has not needs no rule */
            result = seccomp_rule_add(context, SCMP_ACT_ALLOW, call, 0);
    }
    if (result == 0)
        result = add_narrow_rules(context);
    /* Memory to write to, never to run. */
    if (result == 0)
        result = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                                  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    if (result == 0)
        result = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                                  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    return result;
}

static int load_filter(struct error *error)
{
    scmp_filter_ctx context = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!context)
        return error_set(error, ERROR_UNAVAILABLE, "seccomp is not available");
    int result = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (result == 0)
        result = add_rules(context);
    if (result == 0)
        result = seccomp_load(context);
    seccomp_release(context);
    return result < 0 ? error_set_errno(error, -result, "load a seccomp filter") : 0;
}

static int set_limit(__rlimit_resource_t resource, rlim_t value)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0)
        return -1;
    if (limit.rlim_max != RLIM_INFINITY && value > limit.rlim_max)
        value = limit.rlim_max;
    limit.rlim_cur = limit.rlim_max = value;
    return setrlimit(resource, &limit);
}

/* A sanitizer keeps books of its own in memory that a limit would count. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW 1
#else
#define HAS_SHADOW 0
#endif

static int set_limits(const struct confine_options *options)
{
    if (set_limit(RLIMIT_CORE, 0) < 0 || set_limit(RLIMIT_NOFILE, options->descriptor_max) < 0)
        return -1;
    if (options->file_bytes && set_limit(RLIMIT_FSIZE, (rlim_t)options->file_bytes) < 0)
        return -1;
    return HAS_SHADOW ? 0 : set_limit(RLIMIT_DATA, (rlim_t)options->data_bytes);
}

static int drop_user(void)
{
    if (geteuid() != 0)
        return 0;
    return setgroups(0, NULL) < 0 || setresgid(SANDBOX_UID, SANDBOX_UID, SANDBOX_UID) < 0 ||
                   setresuid(SANDBOX_UID, SANDBOX_UID, SANDBOX_UID) < 0
               ? -1
               : 0;
}

static int confine_by(const struct confine_options *options, const struct stage_rules *rules,
                      struct error *error)
{
    const pid_t parent = getppid();
    if (set_limits(options) < 0)
        return error_set_errno(error, errno, "set limits");
    if (drop_user() < 0)
        return error_set_errno(error, errno, "become an ordinary user");
    /* After the change of user, which would forget it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        return error_set(error, ERROR_UNAVAILABLE, "whoever started this is gone");
    if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_set_errno(error, errno, "give up privileges");
    if (stage_confine(rules) < 0)
        return error_set_errno(error, errno, "confine this process by Landlock");
    return 0;
}

int confine_to_sockets(const struct confine_options *options, struct error *error)
{
    static const struct stage_rules nothing = {.has_network = 1, .sees_nothing = 1};
    return confine_by(options, &nothing, error) < 0 ? -1 : load_filter(error);
}

int confine_to_network(const struct confine_options *options, struct error *error)
{
    const struct stage_rules rules = {
        .readable = {"/usr", "/lib", "/lib64", "/etc", "/run/systemd/resolve"},
        .readable_count = 5,
        .writable = {"."},
        .writable_count = options->writes_here,
        .has_network = 1,
    };
    return confine_by(options, &rules, error);
}
