/*
 * HTTP route: finds the route of a method and a path.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"
#include "net/http_server.h"

#include <stddef.h>

enum { HTTP_PARAMETER_COUNT_MAX = 8, HTTP_ALLOW_SIZE = 64 };

struct http_parameter {
    struct text name; /* of the pattern */
    struct text value;
};

struct http_match {
    const struct http_route *route; /* NULL: none */
    struct http_parameter parameters[HTTP_PARAMETER_COUNT_MAX];
    size_t parameter_count;
    char allow[HTTP_ALLOW_SIZE]; /* "GET, HEAD": what the path would take, when no route fits */
};

/*
 * Segments are decoded after the path was split, so an escaped slash stays inside its segment.
 * INVALID when the path does not start with a slash or its escapes are broken. Values are
 * allocated in the arena.
 */
MUST_CHECK int http_route_find(const struct http_route *routes, size_t route_count,
                               struct text method, struct text path, struct arena *arena,
                               struct http_match *out_match, struct error *error);
