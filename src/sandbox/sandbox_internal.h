/* Sandbox, inside: the host's findings, how a sandbox is launched, and its note on disk. */
#pragma once

#include "sandbox/cgroup.h"
#include "sandbox/loader.h"
#include "sandbox/sandbox.h"

#include <limits.h>
#include <sys/types.h>

/* Plain data without pointers: it is handed from process to process as it stands. */
/* Of the files in the state folder that say which sandboxes run. */
#define NOTE_SUFFIX ".sandbox"
/* Of copies there of a program that runs while its file is gone. */
#define PROGRAM_SUFFIX ".program"

struct sandbox_host {
    char bwrap[PATH_MAX];
    char program[PATH_MAX];
    bool is_own_program;            /* what runs, whatever lies at that path now */
    char state_dir[PATH_MAX - 256]; /* leaves room for a note's name */
    struct cgroup_host cgroups;
    bool is_root;
    bool drops_user;      /* root becomes SANDBOX_UID before bwrap is started */
    bool disables_userns; /* bwrap takes --disable-userns */
    int landlock_abi;     /* 0: the kernel has no Landlock */
    bool is_light;        /* the group of those that look after sandboxes */
    struct loader loader; /* for images */
    char description[512];
};

/*
 * The file to be shown as /souk. Where another has been put in the place of the program that runs
 * here, by an upgrade, a copy in the state folder: the processes of a lease speak one version.
 */
MUST_CHECK int host_program(const struct sandbox_host *host, char out_path[PATH_MAX],
                            struct error *error);
/* Removes such copies, but those of the last minute. Who still needs one makes it again. */
MUST_CHECK int host_remove_programs(const struct sandbox_host *host, struct error *error);

/* What sandbox_launch started: bwrap itself, and the first process of its PID namespace. */
struct launched {
    pid_t pid;
    int pidfd;
    pid_t inner_pid; /* 0 when bwrap ended before it had one */
    int inner_pidfd; /* readable when all inside are gone; -1 when inner_pid is 0 */
    int hold_fd;     /* the program starts when a byte is written, or all is closed; -1: it runs */
};

/* Waits so long, whatever signals interrupt it; false: nothing can be read then. A pidfd can be
 * read once its process has ended. */
bool wait_readable(int fd, int64_t timeout_ms);

/* Starts bwrap for `options` in `cgroup`; a cgroup of version NONE means rlimits. */
MUST_CHECK int sandbox_launch(const struct sandbox_host *host,
                              const struct sandbox_options *options, const struct cgroup *cgroup,
                              struct launched *out_launched, struct error *error);

/*
 * The note of a running sandbox, STATE_DIR/NAME.sandbox, for sandbox_sweep:
 *
 *     boot 5e1f...            the kernel's boot id; after a reboot nothing is left
 *     version 1               of the cgroups
 *     cgroup /sys/fs/...      one line per folder
 *     process 1234 567890     number and start time in ticks, one line each
 */
MUST_CHECK int note_write(const struct sandbox_host *host, const char *name,
                          const struct cgroup *cgroup, const struct launched *launched,
                          struct error *error);
void note_remove(const struct sandbox_host *host, const char *name);
