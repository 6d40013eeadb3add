/*
 * MHD library: libmicrohttpd, loaded when the first server is opened.
 *
 * Only the market serves HTTP; loading it late keeps the lender's daemon and the workers, which are
 * the same program, free of it and of the TLS library it brings.
 */
#pragma once

#include "base/error.h"

#include <microhttpd.h>

#define MHD_FUNCTIONS(X)                                                                           \
    X(MHD_start_daemon)                                                                            \
    X(MHD_stop_daemon)                                                                             \
    X(MHD_run)                                                                                     \
    X(MHD_get_timeout)                                                                             \
    X(MHD_get_daemon_info)                                                                         \
    X(MHD_get_connection_info)                                                                     \
    X(MHD_get_connection_values_n)                                                                 \
    X(MHD_get_connection_values)                                                                   \
    X(MHD_lookup_connection_value)                                                                 \
    X(MHD_suspend_connection)                                                                      \
    X(MHD_resume_connection)                                                                       \
    X(MHD_create_response_from_buffer)                                                             \
    X(MHD_create_response_from_buffer_with_free_callback)                                          \
    X(MHD_create_response_from_callback)                                                           \
    X(MHD_create_response_from_fd_at_offset64)                                                     \
    X(MHD_add_response_header)                                                                     \
    X(MHD_queue_response)                                                                          \
    X(MHD_destroy_response)

struct mhd_library {
#define X(name) __typeof__(name) *name; /* NOLINT(bugprone-macro-parentheses) */
    MHD_FUNCTIONS(X)
#undef X
};

/* Loaded once for the process and never released. */
MUST_CHECK int mhd_library_load(const struct mhd_library **out_library, struct error *error);
