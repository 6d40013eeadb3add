/*
 * Seccomp: the system calls a sandboxed program may not make, as a BPF program for bubblewrap.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct seccomp_options {
    bool has_cgroup;  /* false: memory that only a cgroup would count is refused too */
    bool has_network; /* a network of its own: TCP, UDP and local sockets are allowed */
};

/* A new memfd (close-on-exec) that holds the compiled filter, read position at the start. */
MUST_CHECK int seccomp_export_filter(const struct seccomp_options *options, int *out_fd,
                                     struct error *error);
