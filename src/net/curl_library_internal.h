/*
 * Curl library: libcurl, loaded and initialised at the first request.
 *
 * It brings thirty other libraries; a daemon that only holds its link open does without.
 */
#pragma once

#include "base/error.h"

#include <curl/curl.h>
#include <signal.h>
#include <stdbool.h>

/* They are macros over the functions, for checks that variadic pointers cannot have. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

#define CURL_FUNCTIONS(X)                                                                          \
    X(curl_global_init)                                                                            \
    X(curl_easy_init)                                                                              \
    X(curl_easy_cleanup)                                                                           \
    X(curl_easy_reset)                                                                             \
    X(curl_easy_setopt)                                                                            \
    X(curl_easy_getinfo)                                                                           \
    X(curl_easy_perform)                                                                           \
    X(curl_easy_strerror)                                                                          \
    X(curl_slist_append)                                                                           \
    X(curl_slist_free_all)                                                                         \
    X(curl_multi_init)                                                                             \
    X(curl_multi_cleanup)                                                                          \
    X(curl_multi_setopt)                                                                           \
    X(curl_multi_add_handle)                                                                       \
    X(curl_multi_remove_handle)                                                                    \
    X(curl_multi_socket_action)                                                                    \
    X(curl_multi_assign)                                                                           \
    X(curl_multi_info_read)

struct curl_library {
#define X(name) __typeof__(name) *name; /* NOLINT(bugprone-macro-parentheses) */
    CURL_FUNCTIONS(X)
#undef X
};

/* Loaded once for the process and never released. */
MUST_CHECK int curl_library_load(const struct curl_library **out_library, struct error *error);

/*
 * Around every call that may write to a socket: TLS libraries write without MSG_NOSIGNAL. Works by
 * this thread's mask alone, so threads do not disturb each other.
 */
struct sigpipe_guard {
    sigset_t previous;
    bool was_pending;
};

void sigpipe_guard_begin(struct sigpipe_guard *guard);
void sigpipe_guard_end(const struct sigpipe_guard *guard);
