/* Cgroup, inside: what v1 and v2 do differently, and the small file helpers both need. */
#pragma once

#include "sandbox/cgroup.h"

struct cgroup_ops {
    int (*set_limits)(const struct cgroup *cgroup, const struct cgroup_limits *limits,
                      struct error *error);
    int (*set_cpu)(const struct cgroup *cgroup, const struct cgroup_cpu *cpu, struct error *error);
    void (*read_usage)(const struct cgroup *cgroup, struct cgroup_usage *out_usage);
    int (*set_frozen)(const struct cgroup *cgroup, bool is_frozen, struct error *error);
    void (*kill)(const struct cgroup *cgroup);
};

extern const struct cgroup_ops cgroup_v1_ops;
extern const struct cgroup_ops cgroup_v2_ops;

/* The order of `folders` on v1; v2 has one folder. */
enum cgroup_folder {
    CGROUP_CPU,
    CGROUP_CPUACCT,
    CGROUP_MEMORY,
    CGROUP_PIDS,
    CGROUP_FREEZER,
    CGROUP_BLKIO, /* not on every machine: the last */
};
_Static_assert(CGROUP_BLKIO + 1 == CGROUP_FOLDER_MAX, "one folder per v1 controller");

enum { CGROUP_PERIOD_US = 50000, CGROUP_QUOTA_MIN_US = 1000 };

/* The CPU time of one period for a share of the CPU. */
int64_t cgroup_quota_us(int64_t cpu_milli);

/* Lets the group wait for everybody beside it: by cpu.idle (Linux 5.15), else by the least weight
 * FILE takes, which is otherwise `weight`. */
MUST_CHECK int cgroup_set_idle(const char *folder, bool is_idle, const char *file,
                               const char *weight_least, const char *weight, struct error *error);

/* Each fills the parent folders and the version of `host`, or its reason. `paths` is the text of
 * /proc/self/cgroup, `mounts` that of /proc/self/mountinfo. */
void cgroup_v1_probe(struct cgroup_host *host, const char *paths, const char *mounts);
void cgroup_v2_probe(struct cgroup_host *host, const char *paths, const char *mounts);

/* Out of the leaf again, as far as the kernel allows it. */
void cgroup_v2_move_back(const char *folder);

/* Finds the folder of this process in a mounted hierarchy: v1 by controller, v2 when NULL. False
 * when there is none. */
bool cgroup_find_folder(const char *paths, const char *mounts, const char *controller,
                        char out[CGROUP_PATH_SIZE]);

/* Writes the file if the kernel has it: what is nice to have. */
MUST_CHECK int cgroup_write_if_there(const char *folder, const char *file, const char *value,
                                     struct error *error);
/* "MAJOR:MINOR" of the whole disk that holds `path`; false for what is on no disk. */
bool cgroup_find_disk(const char *path, char out[32]);

/* Writes `value` into FOLDER/FILE in one write, as the kernel wants it. */
MUST_CHECK int cgroup_write(const char *folder, const char *file, const char *value,
                            struct error *error);
/* The file's text, cut at the buffer's size; -1 when it cannot be read. */
MUST_CHECK int cgroup_read(const char *folder, const char *file, char *out, size_t out_size);
/* The number after `key` in FOLDER/FILE, or the whole file when `key` is NULL; -1 when absent. */
int64_t cgroup_read_number(const char *folder, const char *file, const char *key);
/* True when `list`, words between spaces, holds `word`. */
bool cgroup_has_word(const char *list, const char *word);
/* One signal to every process in the group. */
void cgroup_signal_all(const char *folder, int signal_number);
