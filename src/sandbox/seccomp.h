/*
 * Seccomp: the system calls a sandboxed program may not make, as a BPF program for bubblewrap.
 */
#pragma once

#include "base/error.h"

/* A new memfd (close-on-exec) that holds the compiled filter, read position at the start. */
MUST_CHECK int seccomp_export_filter(int *out_fd, struct error *error);
