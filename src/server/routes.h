/*
 * Routes: the one table of the API: what can be asked, by whom, with how large a body, answered by
 * which function. docs/api.md is written from it, and a test compares it with openapi.json.
 *
 *     to add a route: a line in routes.c, its handler, its entry in docs/openapi/openapi.json, and
 *     `souk serve --print-api > docs/api.md`
 */
#pragma once

#include "net/http_server.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct server;

enum route_access {
    ROUTE_PUBLIC,
    ROUTE_ACCOUNT,  /* a token or session with the scope */
    ROUTE_CHUNKS,   /* the same, or a lease's fetch token */
    ROUTE_OBJECTS,  /* the same, or a token for the functions of one job */
    ROUTE_OPERATOR, /* a token or session of the operator's account, with the scope */
};

struct route {
    const char *method;
    const char *pattern;
    enum route_access access;
    uint64_t scope; /* of enum token_scope; 0: none */
    size_t body_max;
    http_handler *handler;
    bool is_repeatable; /* honours Idempotency-Key */
    const char *doc;
};

extern const struct route routes[];
extern const size_t route_count;

enum { ROUTE_OBJECTS_JOB_SIZE = 64 };

/* Who is asking, found before the body is read. */
struct caller {
    uint64_t account; /* 0: nobody */
    uint64_t token;   /* 0: by a lease's fetch token */
    uint64_t scopes;
    int64_t expires_ms; /* of the token; 0: never */
    uint64_t lease;     /* by a fetch token; 0 otherwise */
    uint64_t server_of; /* by its lead's: its job; 0 otherwise */
    uint64_t job;       /* by a fetch token: its lease's */
    bool is_session;    /* the token ends by itself: a signed-in page or program */
    uint64_t fence;     /* by a fetch token: its lease's */
    bool is_function;   /* reads the objects of `objects_job`, and puts its updates, each once */
    char objects_job[ROUTE_OBJECTS_JOB_SIZE]; /* the only one whose objects it may ask for; "": all
                                                 of the account's */
};

/* Never NULL; all zero for nobody. */
const struct caller *route_caller(const struct http_request *request);
const struct route *route_of(const struct http_request *request);
/* The path's {id}, never 0; -1 when it is no number, and then that was answered: "a machine's id is
 * a number". */
MUST_CHECK int route_id(struct http_request *request, const char *whose, uint64_t *out_id);

/* What http_server_open needs: the table in its form (the caller's to free), headers and hooks. */
struct http_route *routes_make(void);
extern const struct http_header routes_headers[];
extern const size_t routes_header_count;
void route_on_headers(struct http_request *request, void *context);
void route_on_done(const struct http_request *request, int status, void *context);

void routes_print(FILE *file);
