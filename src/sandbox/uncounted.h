/*
 * Uncounted: the kernel's memory that a sandbox's programs hold and no rlimit counts.
 *
 * For machines without cgroups, where a job's memory is watched instead of bounded.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* At most so much is in the files of its /tmp and /dev/shm, each rounded up, and in the buffers of
 * its sockets. `inner` is the first process inside; 0 while it still prepares. */
int64_t uncounted_bytes(pid_t inner);
