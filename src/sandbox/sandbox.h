/*
 * Sandbox: runs one program confined by bubblewrap, with a share of the CPU, of memory and of
 * processes that it cannot leave.
 *
 * The program sees no network, no other process, a read-only system (/usr, /lib*, /bin, /sbin and
 * what the loader needs of /etc), its own /tmp, /dev and /proc, what the options mount, and the
 * environment they name. It has no capabilities, cannot make namespaces, and seccomp refuses it
 * sockets, tracing, mounting, io_uring and the kernel's other rarely needed doors. Where the caller
 * puts a network of its own into the sandbox, the program may use TCP, UDP and local sockets there;
 * where it shares the machine's, TCP and UDP.
 *
 * Limits come from cgroup v2 or v1 where this process may make cgroups. Otherwise they are softer:
 * the CPU share is kept by pausing the job (sandbox_pace), memory and processes by rlimits.
 * sandbox_describe says which, in words.
 *
 * Nothing here blocks on the program but sandbox_stop and sandbox_free; a program with a loop
 * watches sandbox_pidfd and uses sandbox_terminate, a timer and sandbox_kill instead. The sandbox
 * dies with the thread that started it.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What this machine can enforce; found once, shared by all sandboxes of the process. */
struct sandbox_host;

/*
 * Finds bwrap on PATH and tries it, and finds out which cgroups may be used. `state_dir`, a folder
 * of mode 0700 that belongs to one running daemon, keeps a note of each running sandbox for
 * sandbox_sweep. `program` is the file shown as /souk in every sandbox, which calls stage_enter
 * (sandbox/stage.h) first; NULL: this program.
 * UNAVAILABLE, saying what to install or allow, when no sandbox can be started here.
 */
MUST_CHECK int sandbox_host_open(const char *state_dir, const char *program,
                                 struct sandbox_host **out_host, struct error *error);
void sandbox_host_free(struct sandbox_host *host); /* NULL is fine */
DEFINE_AUTO(sandbox_host);

/* "CPU, memory and processes limited by cgroup v1; ..." in one line; lives as long as the host. */
const char *sandbox_describe(const struct sandbox_host *host);
/* True when the kernel keeps the CPU share, memory and process limits. */
bool sandbox_is_hard(const struct sandbox_host *host);

/* One line per thing a sandbox should enforce: "ok" or what is missing and what to do about it. */
struct buffer;
void sandbox_doctor(const struct sandbox_host *host, struct buffer *out);

/*
 * Ends what sandboxes of a former process left behind, as their notes in the state folder say:
 * kills their processes, removes their cgroups and the notes. Touches nothing else. Call it before
 * the first start; *out_count gets the number of notes found.
 */
MUST_CHECK int sandbox_sweep(struct sandbox_host *host, size_t *out_count, struct error *error);
/* The same, but for sandboxes that run on under another process: `is_kept` says which. */
typedef bool sandbox_keep_function(const char *name, void *context);
MUST_CHECK int sandbox_sweep_others(struct sandbox_host *host, sandbox_keep_function *is_kept,
                                    void *context, size_t *out_count, struct error *error);
/* The same for one sandbox; fine when there is nothing of it. */
MUST_CHECK int sandbox_sweep_one(struct sandbox_host *host, const char *name, struct error *error);

/* CPU time so far of all sandboxes with a note in the state folder, whichever process started them;
 * falls when one ends. */
int64_t sandbox_host_cpu_ms(const struct sandbox_host *host);

/*
 * Puts a process that looks after sandboxes beside them, into a group of its kind; and makes that
 * group weigh little against everybody else's programs, or as much as they do. Where this process
 * may make no groups nothing happens. Disband removes the group if nobody is left in it, after
 * waiting at most `wait_ms` for those that are about to end.
 */
MUST_CHECK int sandbox_host_adopt(struct sandbox_host *host, pid_t pid, struct error *error);
MUST_CHECK int sandbox_host_set_light(struct sandbox_host *host, bool is_light,
                                      struct error *error);
void sandbox_host_disband(struct sandbox_host *host, int64_t wait_ms);

/*
 * Hands what was found out to another process of this very program, which need not find it out
 * again: the one appends it to a buffer, the other makes a host of it. CORRUPT when it comes from
 * another program.
 */
void sandbox_host_export(const struct sandbox_host *host, struct buffer *out);
MUST_CHECK int sandbox_host_import(struct text exported, struct sandbox_host **out_host,
                                   struct error *error);

/* Makes the folder belong to the user that programs are inside; for folders below a writable
 * mount. */
MUST_CHECK int sandbox_give_folder(const struct sandbox_host *host, const char *path,
                                   struct error *error);

#define SANDBOX_USER 65534

struct sandbox_mount {
    const char *source; /* on this machine; must exist */
    const char *target; /* absolute, inside */
    bool is_writable;   /* as root the folder itself is given to the sandbox's user */
};

enum {
    SANDBOX_MOUNT_MAX = 16,
    SANDBOX_GPU_MAX = 16,
    SANDBOX_ARGUMENT_MAX = 64, /* of argv and of environment */
    SANDBOX_NAME_MAX = 64,
    SANDBOX_CONTROL_FD = 3,
    SANDBOX_UID =
        SANDBOX_USER, /* who the program is, inside; and outside too when started by root */
};

struct sandbox_options {
    const char *name;               /* [a-z0-9-]+: for the cgroup and the note */
    const char *const *argv;        /* ends with NULL; argv[0] is a path inside, such as /souk */
    const char *const *environment; /* "NAME=value", ends with NULL; NULL: empty */
    const struct sandbox_mount *mounts;
    size_t mount_count;
    const char *working_dir; /* inside; NULL: / */
    /* A folder that is the system there, in the place of this machine's: an image's root, written
     * by a stranger but not any more. Folders named dev, proc, sys, tmp, souk, lease, data and
     * .souk in it are not shown. argv[0] is /souk then. */
    const char *root;
    const char *resolv_conf; /* what /etc/resolv.conf says; NULL: there is none, or the image's */
    int64_t cpu_milli;       /* thousandths of a core, > 0 */
    int64_t memory_bytes;    /* > 0 */
    int64_t io_bytes_per_s;  /* read from and written to the disk of the first mount; 0: any */
    int64_t disk_bytes;      /* bounds the largest file it can write; 0: any */
    int64_t pids_max;        /* processes and threads, > 0; bubblewrap needs two of them */
    /* Borrowed for the call; -1: /dev/null for standard output and error, none for control. */
    int control_fd; /* becomes descriptor 3 */
    int stdout_fd;
    int stderr_fd;
    /* The GPUs it leased, by the numbers of /dev/nvidiaN; no other can be opened. */
    const int *gpus;
    size_t gpu_count; /* at most SANDBOX_GPU_MAX */
    /* Sockets between processes of the sandbox, as torch's data loaders use them. Not together with
     * a descriptor that is a TCP socket: it could be disconnected and dialled elsewhere. */
    bool has_local_sockets;
    /*
     * NULL: no network and no sockets but those above. Otherwise called inside sandbox_start, while
     * the program is held before its first instruction, with a process whose network namespace is
     * the sandbox's own (loopback only) for the caller to put devices into. -1 ends the start. A
     * socket handed in as control_fd then has to stay with a program of ours: it names the host's
     * devices.
     */
    int (*set_up_network)(void *context, pid_t inside, struct error *error);
    void *network_context;
    /* The machine's own network, with its names and certificates, in place of one that is set up:
     * for programs that the machine's owner chose. */
    bool shares_network;
};

struct sandbox;

/* The program may still fail to start: that shows as its exit, with words on stderr_fd. */
MUST_CHECK int sandbox_start(struct sandbox_host *host, const struct sandbox_options *options,
                             struct sandbox **out_sandbox, struct error *error);

/* Kills what still runs, waits (at most seconds) until it is gone, removes cgroup and note. */
void sandbox_free(struct sandbox *sandbox); /* NULL is fine */
DEFINE_AUTO(sandbox);

/* Readable once the program and all it started are gone; then sandbox_reap has the answer. */
int sandbox_pidfd(const struct sandbox *sandbox);

struct sandbox_exit {
    int code;              /* 128 + signal when a signal ended it */
    bool is_out_of_memory; /* the memory limit killed something in it */
};

/* False while it runs. */
bool sandbox_reap(struct sandbox *sandbox, struct sandbox_exit *out_exit);

/* SIGTERM to every process inside. */
void sandbox_terminate(struct sandbox *sandbox);
/* SIGKILL to every process inside; the pidfd becomes readable shortly. */
void sandbox_kill(struct sandbox *sandbox);
/* SIGTERM, at most `grace_ms` of waiting, SIGKILL, and waits for the end. */
MUST_CHECK int sandbox_stop(struct sandbox *sandbox, int64_t grace_ms,
                            struct sandbox_exit *out_exit, struct error *error);

/* Holds every process inside still, or lets them go on. */
MUST_CHECK int sandbox_set_paused(struct sandbox *sandbox, bool is_paused, struct error *error);

/*
 * Changes the share of the CPU while the program runs; is_idle: it gets only what everybody beside
 * it leaves over, until told otherwise. Where the kernel does not keep the share, the next
 * sandbox_pace does.
 */
MUST_CHECK int sandbox_set_cpu(struct sandbox *sandbox, int64_t cpu_milli, bool is_idle,
                               struct error *error);

struct sandbox_usage {
    int64_t cpu_ms; /* of all processes so far; never falls */
    int64_t memory_bytes;
    int64_t memory_peak_bytes;
};

void sandbox_read_usage(struct sandbox *sandbox, struct sandbox_usage *out_usage);

/*
 * Keeps the CPU share on machines where the kernel does not: pauses the program and lets it go on.
 * Returns after how many milliseconds to call it again; -1: not needed for this sandbox.
 */
int64_t sandbox_pace(struct sandbox *sandbox, int64_t now_ns);
