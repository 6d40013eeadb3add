/*
 * Cgroup: one group of processes with limits, on cgroup v2, on v1, or on neither.
 *
 * Groups are made below the group this process is in, as /proc/self/cgroup says. On v1 one group
 * is a folder in each of the hierarchies cpu, cpuacct, memory, pids, freezer and, where there is
 * one, blkio. One host belongs
 * to one thread.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cgroup_version { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

enum { CGROUP_FOLDER_MAX = 6, CGROUP_PATH_SIZE = 512 };

/* Where new groups go. Plain data, filled by cgroup_host_probe. */
struct cgroup_host {
    enum cgroup_version version;
    size_t folder_count;
    char folders[CGROUP_FOLDER_MAX][CGROUP_PATH_SIZE]; /* parents, by enum cgroup_folder on v1 */
    bool has_io;         /* the group's share of the disk can be limited */
    bool has_moved_self; /* v2: this process went into a leaf, FOLDER/souk-daemon */
    char reason[256];    /* why the version is CGROUP_NONE */
};

/* Finds and tries the cgroups of this process. Always succeeds; CGROUP_NONE has a reason. */
void cgroup_host_probe(struct cgroup_host *host);
/* For tests: the same with other files than /proc/self/cgroup and /proc/self/mountinfo. */
void cgroup_host_probe_files(struct cgroup_host *host, const char *cgroup_file,
                             const char *mountinfo_file);

/* Undoes what the probe changed: the process goes back where it was. */
void cgroup_host_done(struct cgroup_host *host);

struct cgroup_limits {
    int64_t cpu_milli;
    int64_t memory_bytes;
    int64_t pids_max;
    /* Where the kernel can: everybody else goes first at the disk, and no more than this a second
     * is read from or written to the disk that holds `io_path`. */
    int64_t io_bytes_per_s; /* 0: no such limit */
    const char *io_path;
};

/* A share of the CPU: a quota the group never passes, and whether it waits for everybody else. */
struct cgroup_cpu {
    int64_t cpu_milli; /* thousandths of a core, > 0 */
    bool is_idle;      /* runs on what groups and processes beside it leave over */
};

struct cgroup_usage {
    int64_t cpu_ms;
    int64_t memory_bytes;
    int64_t memory_peak_bytes;
    int64_t out_of_memory_count;
};

struct cgroup {
    enum cgroup_version version;
    size_t folder_count;
    char folders[CGROUP_FOLDER_MAX][CGROUP_PATH_SIZE];
    int join_fds[CGROUP_FOLDER_MAX]; /* cgroup.procs, for cgroup_join; -1 when closed */
};

/* Makes the group `name` (one path part) with its limits; leaves nothing behind on failure. */
MUST_CHECK int cgroup_open(struct cgroup *cgroup, const struct cgroup_host *host, const char *name,
                           const struct cgroup_limits *limits, struct error *error);

/* Names the group that cgroup_open would make, without making it. */
MUST_CHECK int cgroup_name_folders(struct cgroup *cgroup, const struct cgroup_host *host,
                                   const char *name, struct error *error);

/* Moves the calling process into the group; async-signal-safe. -1 with errno set. */
MUST_CHECK int cgroup_join(const struct cgroup *cgroup);
void cgroup_close_join_fds(struct cgroup *cgroup);

void cgroup_read_usage(const struct cgroup *cgroup, struct cgroup_usage *out_usage);
MUST_CHECK int cgroup_set_frozen(const struct cgroup *cgroup, bool is_frozen, struct error *error);

/* Changes the share of a group at work; takes effect at once. */
MUST_CHECK int cgroup_set_cpu(const struct cgroup *cgroup, const struct cgroup_cpu *cpu,
                              struct error *error);

/* SIGKILL to all in the group, also to those that fork while it goes on. */
void cgroup_kill(const struct cgroup *cgroup);

/* Kills what is left in the group, waits up to `wait_ms` until it is empty and removes it. A group
 * that is not there is fine. */
MUST_CHECK int cgroup_remove(struct cgroup *cgroup, int64_t wait_ms, struct error *error);
