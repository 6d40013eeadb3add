/*
 * Seccomp: the system calls a sandboxed program may make, as BPF programs for bubblewrap.
 *
 * Two filters hold together. The first is an allow-list of names: what is not on it does not exist
 * (ENOSYS). The second refuses, mostly by EPERM, what is known and dangerous, and among the allowed
 * calls what their arguments make so: namespaces, other families of sockets, typing into a
 * terminal.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct seccomp_options {
    bool has_cgroup;        /* false: memory that only a cgroup would count is refused too */
    bool has_local_sockets; /* without a network: sockets between its own processes */
    bool has_network;       /* a network of its own: TCP, UDP and local sockets are allowed */
    bool shares_network;    /* the machine's: TCP and UDP alone */
};

enum { SECCOMP_FILTER_COUNT = 2 };

/* New memfds (close-on-exec) that hold the compiled filters, to be loaded in this order; read
 * position at the start. */
MUST_CHECK int seccomp_export_filters(const struct seccomp_options *options,
                                      int out_fds[SECCOMP_FILTER_COUNT], struct error *error);
