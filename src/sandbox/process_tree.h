/*
 * Process tree: the descendants of a process as /proc shows them, for signals and for usage.
 *
 * A look at a moving thing: a process that forks meanwhile may be missed. Killing therefore relies
 * on the PID namespace and the cgroup, and uses this for signals that ask, not for those that end.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROCESS_TREE_MAX = 4096 };

struct process_info {
    pid_t pid;
    pid_t parent;
    int64_t cpu_ticks; /* of itself and of the children it has waited for */
    uint64_t start_ticks;
    int64_t thread_count;
    bool is_stopped; /* by a signal, or it has ended */
};

/* NOT_FOUND when there is no such process. */
MUST_CHECK int process_read(pid_t pid, struct process_info *out_info, struct error *error);

/* The process numbers in a file of the kernel's, between spaces or line ends; how many, at most
 * `max`. */
size_t process_read_numbers(const char *path, pid_t *out, size_t max);

/* Fills `out` with the descendants of `root`, parents before children, not `root` itself; returns
 * how many there are, at most `max`. */
size_t process_tree_list(pid_t root, struct process_info *out, size_t max);

/* Memory that the process holds: not what it mapped from files, which the kernel takes back when it
 * needs the room. 0 when there is no such process. */
int64_t process_memory_bytes(pid_t pid);

/* Processes and threads of one user on this machine, as RLIMIT_NPROC counts them. */
int64_t process_count_of_user(uid_t uid);

/* The niceness of the sessions these processes are in, where the kernel weighs sessions against
 * each other (CONFIG_SCHED_AUTOGROUP). Unlike a process's own it can be taken back by anybody. */
void process_set_session_nice(const struct process_info *processes, size_t count, int nice);

int64_t process_ticks_to_ms(int64_t ticks);
