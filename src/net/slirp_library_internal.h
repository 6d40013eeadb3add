/*
 * Slirp library: libslirp, a TCP/IP stack that speaks to the world by ordinary sockets; loaded by
 * the gateway of a lease with the Internet and by nobody else.
 */
#pragma once

#include "base/error.h"

#include <slirp/libslirp.h>

#define SLIRP_FUNCTIONS(X)                                                                         \
    X(slirp_new)                                                                                   \
    X(slirp_cleanup)                                                                               \
    X(slirp_input)                                                                                 \
    X(slirp_pollfds_fill)                                                                          \
    X(slirp_pollfds_poll)

struct slirp_library {
#define X(name) __typeof__(name) *name; /* NOLINT(bugprone-macro-parentheses) */
    SLIRP_FUNCTIONS(X)
#undef X
};

/* Loaded once for the process and never released. */
MUST_CHECK int slirp_library_load(const struct slirp_library **out_library, struct error *error);
