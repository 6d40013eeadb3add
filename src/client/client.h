/*
 * Client: typed calls to the market's REST API.
 *
 * Problems (RFC 9457) come back as errors with the server's own sentence. Requests that change
 * something carry an Idempotency-Key and are tried once more when the connection broke, so that
 * nothing is done twice. One client belongs to one thread.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/json_schema.h"
#include "base/scope.h"
#include "base/text.h"
#include "net/http_client.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    CLIENT_URL_MAX = 2048,
    CLIENT_PAGES_MAX = 1000,
    CLIENT_HEADERS_MAX = 4,
    CLIENT_PROBLEM_SIZE = 4096
};

struct client_options {
    const char *server;      /* "http://127.0.0.1:7600"; NULL: INVALID, saying what to do */
    const char *token;       /* NULL: requests without one */
    const char *fingerprint; /* NULL: the system's authorities decide */
    /* Requests end with CONFLICT about a second after it is not 0; NULL: nothing ends them. */
    const volatile int32_t *stop;
};

struct client;
MUST_CHECK int client_open(const struct client_options *options, struct client **out_client,
                           struct error *error);
/* Another of the same market and account, for another thread. */
MUST_CHECK int client_clone(const struct client *client, struct client **out_client,
                            struct error *error);
void client_free(struct client *client); /* NULL is fine */
DEFINE_AUTO(client);

/* The same with another `stop`. */
MUST_CHECK int client_clone_stoppable(const struct client *client, const volatile int32_t *stop,
                                      struct client **out_client, struct error *error);

const char *client_server(const struct client *client);

/* What the market said to the last request, had it refused it: the body (RFC 9457), or "" when it
 * is too long; and the status, 0 when it did not refuse. */
const char *client_problem(const struct client *client, int *out_status);

/* An answer: the struct by `schema` (NULL: none wanted) and the JSON it came from. Both lie in the
 * arena. */
struct client_answer {
    const struct json_schema *schema;
    void *value;
    struct text json;
};

/* `path` starts with "/v1/". */
MUST_CHECK int client_get(struct client *client, struct arena *arena, const char *path,
                          struct client_answer *answer, struct error *error);
/* `body` is JSON; with data NULL none is sent. */
MUST_CHECK int client_post(struct client *client, struct arena *arena, const char *path,
                           struct text body, struct client_answer *answer, struct error *error);
/* Any other method with a JSON body, or without when data is NULL; `answer` may be NULL. */
MUST_CHECK int client_send(struct client *client, struct arena *arena, const char *method,
                           const char *path, struct text body, struct client_answer *answer,
                           struct error *error);
MUST_CHECK int client_patch(struct client *client, struct arena *arena, const char *path,
                            struct text body, struct client_answer *answer, struct error *error);
MUST_CHECK int client_delete(struct client *client, const char *path, struct error *error);
MUST_CHECK int client_put_bytes(struct client *client, const char *path, struct text body,
                                const char *content_encoding, struct error *error);

/* All pages of a list, or the first `count_max` items: `schema` is of struct api_page; the items of
 * all pages, one after the other, are in *out_items, and {"items":[...]} in *out_json. */
MUST_CHECK int client_list(struct client *client, struct arena *arena, const char *path,
                           const struct json_schema *schema, size_t count_max,
                           struct json_array *out_items, struct text *out_json,
                           struct error *error);

/* The same page by page, for lists of any length: each page is gone when its callback returns. The
 * schema's struct begins with a struct api_page. The callback stops it by returning 1, or -1 with
 * an error. */
struct api_page;
typedef int client_page_callback(void *context, const struct api_page *page, struct text json,
                                 struct error *error);
MUST_CHECK int client_each_page(struct client *client, const char *path,
                                const struct json_schema *schema, size_t count_max,
                                client_page_callback *callback, void *context, struct error *error);

/* Writes the body to `fd`. Fails with the problem's words when the status is not 2xx. */
MUST_CHECK int client_download(struct client *client, const char *path, int fd,
                               struct error *error);

/* For calls made elsewhere (event streams): URL, headers and pin of a request. Texts live in the
 * arena; *out_call may not be moved, since options.headers points into it. */
struct client_call {
    struct http_call_options options;
    struct http_header headers[CLIENT_HEADERS_MAX];
};
MUST_CHECK int client_prepare(const struct client *client, struct arena *arena, const char *path,
                              struct client_call *out_call, struct error *error);

/* Turns an answer that is not 2xx into an error; 0 when it is 2xx. */
MUST_CHECK int client_check_status(int status, struct text body, struct error *error);

/* %XX for all but letters, digits and -._~ . */
const char *client_escape(struct arena *arena, struct text text);
