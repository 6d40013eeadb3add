/*
 * Seccomp: the system calls a sandboxed program may not make, as a BPF program for bubblewrap.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* A new memfd (close-on-exec) that holds the compiled filter, read position at the start. Without a
 * cgroup it also refuses memory that only a cgroup would count. */
MUST_CHECK int seccomp_export_filter(bool has_cgroup, int *out_fd, struct error *error);
