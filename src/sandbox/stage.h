/*
 * Stage: the last step of a sandbox's start, taken inside it by the sandbox's own program.
 *
 * Landlock cannot be applied before bubblewrap, which mounts, nor the processes of its namespace be
 * bounded before it is made, so bubblewrap starts
 *
 *     /souk sandbox-stage [--processes N] [--network] [--proc] [--write FOLDER]... -- PROGRAM
 *         ARGUMENT...
 *
 * which confines itself to what the command line allows and becomes PROGRAM. Every program given to
 * sandbox_host_open calls stage_enter first in main. Depends on the C library alone.
 */
#pragma once

#include <stddef.h>

#define STAGE_WORD "sandbox-stage"

enum { STAGE_WRITABLE_MAX = 32, STAGE_READABLE_MAX = 16 };

struct stage_rules {
    const char *writable[STAGE_WRITABLE_MAX]; /* folders; all else can only be read */
    size_t writable_count;
    const char *readable[STAGE_READABLE_MAX]; /* all that can be read, if there is any */
    size_t readable_count;
    int has_network;             /* false: no TCP */
    int sees_nothing;            /* no file at all */
    int writes_proc;             /* its own files in /proc, as NVIDIA's driver does */
    unsigned long processes_max; /* and threads, of its user namespace; 0: any */
};

/*
 * Not a stage: returns 0 and does nothing. Otherwise confines this process, and returns how many
 * arguments to skip when PROGRAM is this program itself; else becomes PROGRAM or exits.
 */
int stage_enter(int argc, char **argv);

/* The version of Landlock's interface this kernel has; 0: none. */
int stage_landlock_abi(void);

/* Confines this process and all it starts, as far as the kernel's version goes. -1 with errno. */
int stage_confine(const struct stage_rules *rules);
