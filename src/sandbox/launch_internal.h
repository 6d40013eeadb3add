/* Launch, inside: what the child that becomes bubblewrap needs, and who builds its command line. */
#pragma once

#include "base/arena.h"
#include "sandbox/sandbox_internal.h"
#include "sandbox/seccomp.h"

#include <sys/resource.h>

/* Descriptors of bubblewrap; the program keeps those up to SANDBOX_CONTROL_FD. */
enum {
    SECCOMP_FD = SANDBOX_CONTROL_FD + 1,
    INFO_FD = SECCOMP_FD + SECCOMP_FILTER_COUNT,
    HOLD_FD = INFO_FD + 1,
    FILE_FD = HOLD_FD + 1,
    FILE_COUNT = 5,
    FD_COUNT = FILE_FD + FILE_COUNT,
    FIRST_FREE_FD = 64, /* where descriptors wait while 0 to FD_COUNT are laid out */
    ARGUMENT_MAX = 768,
    SOURCE_MAX = SANDBOX_MOUNT_MAX + 2, /* the options' mounts, the program and an image's root */
};

/* A folder or file to be mounted, where bwrap will find it. */
struct source {
    const char *path;
    bool is_folder;
    char staged[32]; /* below the child's own /tmp */
};

struct arguments {
    struct arena *arena;
    char *items[ARGUMENT_MAX];
    size_t count;
    bool is_overflowed;
};

/* Everything the child needs, made before the fork: after it only async-signal-safe calls. */
struct child {
    const struct sandbox_host *host;
    const struct cgroup *cgroup;
    struct arguments arguments;
    struct source sources[SOURCE_MAX];
    size_t source_count;
    int fds[FD_COUNT]; /* what becomes descriptor 0, 1, ...; -1: closed */
    int error_fd;
    pid_t parent;
    bool has_soft_limits;
    rlim_t memory_bytes;
    rlim_t file_bytes;    /* 0: any */
    rlim_t process_count; /* 0: any */
    bool counts_inside;   /* limits its own user namespace; false: all that the user has */
};

/* Up to three; NULL ends them. */
void arguments_add(struct arguments *arguments, const char *first, const char *second,
                   const char *third);

/* An image's folders, in the place of this machine's. */
MUST_CHECK int command_add_root(struct child *child, const char *path, struct error *error);
/* What comes before /souk there. */
void command_add_loader(struct arguments *arguments, const struct loader *loader);
/* Whether the image's /etc has that file, and neither is a link: it can be mounted over. */
bool root_has_file(const char *root, const char *name);

/* Fills the child's arguments and sources. */
MUST_CHECK int command_build(struct child *child, const struct sandbox_options *options,
                             struct error *error);

/* Descriptors of the small files that a sandbox has in /etc; -1: it does not. */
MUST_CHECK int command_open_files(const struct sandbox_options *options, int out_fds[FILE_COUNT],
                                  struct error *error);
