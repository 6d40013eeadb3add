/*
 * Handle: what the library's parts share behind its opaque types.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "client/client.h"

#include <pthread.h>
#include <souk/client.h>

struct souk_client {
    pthread_mutex_t mutex; /* of the client, which is for one thread at a time */
    struct client *client;
};

/* Copy what went wrong for the caller, whose `out` may be NULL. */
void handle_fill(struct souk_error *out, const struct error *error);
/* The same of a request: with the market's own words. */
void handle_fill_request(struct souk_error *out, const struct error *error,
                         const struct client *client);
void handle_fill_with(struct souk_error *out, int32_t code, const char *message);

/* They are -1, so that failing is one line; macros so that analyzers see it. */
#define handle_fail(...)                                                                           \
    ({                                                                                             \
        handle_fill(__VA_ARGS__);                                                                  \
        -1;                                                                                        \
    })
#define handle_fail_request(...)                                                                   \
    ({                                                                                             \
        handle_fill_request(__VA_ARGS__);                                                          \
        -1;                                                                                        \
    })
#define handle_fail_with(...)                                                                      \
    ({                                                                                             \
        handle_fill_with(__VA_ARGS__);                                                             \
        -1;                                                                                        \
    })

/* For souk_text_free. */
char *handle_text(struct text text);

/* A struct of options of this version from one of the caller's, which begins with its size; NULL:
 * all zero. */
void handle_options(void *out, size_t out_size, const void *from);
