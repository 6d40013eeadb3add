/* The system calls a sandboxed program may make, by what they are for. */
#include "sandbox/seccomp_internal.h"

/*
 * To add one: say for which program, and think of what it gives to one that means harm. Names, not
 * numbers: a call that does not exist on this architecture, or is too new for this machine's
 * libseccomp, is skipped. What is in neither list does not exist for the program (ENOSYS), so that
 * libraries fall back to older calls.
 */
/* clang-format off */
const char *const seccomp_allowed_calls[] = {
    /* Files and folders. */
    "access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat", "dup",
    "dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod",
    "fchmodat", "fchmodat2", "fchown", "fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr",
    "flock", "fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync", "ftruncate", "futimesat",
    "getcwd", "getdents", "getdents64", "getxattr", "inotify_add_watch", "inotify_init",
    "inotify_init1", "inotify_rm_watch", "ioctl", "lchown", "lgetxattr", "link", "linkat",
    "listxattr", "llistxattr", "lremovexattr", "lseek", "lsetxattr", "lstat", "mkdir", "mkdirat",
    "mknod", "mknodat", "newfstatat", "open", "openat", "openat2", "pread64", "preadv", "preadv2",
    "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat", "readv",
    "removexattr", "rename", "renameat", "renameat2", "rmdir", "sendfile", "setxattr", "splice",
    "stat", "statfs", "statx", "symlink", "symlinkat", "sync_file_range", "tee",
    "truncate", "umask", "unlink", "unlinkat", "utime", "utimensat", "utimes", "vmsplice", "write",
    "writev",
    /* Waiting and messages between processes. */
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
    "eventfd", "eventfd2", "pipe", "pipe2", "poll", "ppoll", "pselect6", "select", "semctl",
    "semget", "semop", "semtimedop", "shmat", "shmctl", "shmdt", "shmget", "signalfd", "signalfd4",
    "timerfd_create", "timerfd_gettime", "timerfd_settime",
    /* Sockets that were handed in or, where allowed, opened. */
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen",
    "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
    "socket", "socketpair",
    /* Memory. */
    "brk", "cachestat", "get_mempolicy", "madvise", "map_shadow_stack", "mbind", "membarrier",
    "memfd_create", "mincore", "mlock", "mlock2", "mlockall", "mmap", "mprotect", "mremap", "mseal",
    "msync", "munlock", "munlockall", "munmap", "pkey_alloc", "pkey_free", "pkey_mprotect",
    "remap_file_pages", "set_mempolicy", "set_mempolicy_home_node",
    /* Processes and threads of its own. */
    "arch_prctl", "capget", "capset", "clone", "execve", "execveat", "exit", "exit_group", "fork",
    "futex", "futex_requeue", "futex_wait", "futex_waitv", "futex_wake", "get_robust_list",
    "getcpu", "getegid", "geteuid", "getgid", "getgroups", "getpgid", "getpgrp", "getpid",
    "getppid", "getpriority", "getresgid", "getresuid", "getrlimit", "getrusage", "getsid",
    "gettid", "getuid", "ioprio_get", "kill", "landlock_add_rule", "landlock_create_ruleset",
    "landlock_restrict_self", "pause", "pidfd_open", "pidfd_send_signal", "prctl",
    "prlimit64", "restart_syscall", "riscv_flush_icache", "riscv_hwprobe", "rseq",
    "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr",
    "sched_getparam", "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity",
    "sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield", "seccomp",
    "set_robust_list", "set_tid_address", "setfsgid", "setfsuid", "setgid", "setgroups", "setpgid",
    "setpriority", "setregid", "setresgid", "setresuid", "setreuid", "setrlimit", "setsid",
    "setuid", "tgkill", "time", "times", "tkill", "vfork", "wait4", "waitid",
    /* Signals. */
    "alarm", "getitimer", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo",
    "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "setitimer",
    "sigaltstack",
    /* Time, chance and the machine. */
    "clock_getres", "clock_gettime", "clock_nanosleep", "getrandom", "gettimeofday", "nanosleep",
    "sysinfo", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime",
    "timer_settime", "uname",
    NULL,
};

/* Known and refused: EPERM says so, where ENOSYS would have a library try its luck elsewhere. */
const char *const seccomp_refused_calls[] = {
    /* A second way to make every other call, past this filter. */
    "io_uring_enter", "io_uring_register", "io_uring_setup",
    /* Other processes. */
    "kcmp", "pidfd_getfd", "process_madvise", "process_mrelease", "process_vm_readv",
    "process_vm_writev", "ptrace",
    /* Namespaces and mounts. */
    "chroot", "fanotify_init", "fanotify_mark", "fsconfig", "fsmount", "fsopen", "fspick",
    "listmount", "mount", "mount_setattr", "move_mount", "name_to_handle_at", "open_by_handle_at",
    "open_tree", "open_tree_attr", "pivot_root", "quotactl", "quotactl_fd", "setns", "statmount",
    "umount", "umount2", "unshare",
    /* The kernel's large and rarely needed doors. */
    "acct", "add_key", "bpf", "delete_module", "finit_module", "init_module", "ioperm", "iopl",
    "ioprio_set", "kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "memfd_secret",
    "migrate_pages", "modify_ldt", "move_pages", "nfsservctl", "perf_event_open", "reboot",
    "request_key", "swapoff", "swapon", "sysfs", "syslog", "userfaultfd", "uselib", "ustat",
    "vhangup",
    /* Waiting for everybody's writes. */
    "sync", "syncfs",
    /* The machine's clock and name. */
    "adjtimex", "clock_adjtime", "clock_settime", "setdomainname", "sethostname", "settimeofday",
    NULL,
};

const char *const seccomp_uncounted_calls[] = {"memfd_create", "shmget", NULL};

const char *const seccomp_socket_calls[] = {
    "socket", "connect", "bind", "listen", "accept", "accept4", NULL,
};
