#include "base/assert.h"
#include "net/http_route_internal.h"

#include <stdio.h>
#include <string.h>

static bool takes_method(const struct http_route *route, struct text method)
{
    const struct text wanted = text_of(route->method);
    return text_equal(wanted, method) ||
           (text_equal(method, TEXT("HEAD")) && text_equal(wanted, TEXT("GET")));
}

/* "{name}" or "{name...}"; fills the name without dots. */
static bool is_parameter(struct text segment, struct text *out_name, bool *out_takes_rest)
{
    if (segment.size < 3 || segment.data[0] != '{' || segment.data[segment.size - 1] != '}')
        return false;
    struct text name = {segment.data + 1, segment.size - 2};
    *out_takes_rest = text_ends_with(name, TEXT("..."));
    if (*out_takes_rest)
        name.size -= 3;
    *out_name = name;
    return true;
}

/* Compares without decoding: literal segments of patterns need no escapes. */
static bool match_path(const char *pattern, struct text path, struct http_match *match)
{
    struct text pattern_left = text_of(pattern);
    struct text path_left = path;
    match->parameter_count = 0;
    ASSERT(pattern_left.size > 0 && pattern_left.data[0] == '/');
    for (;;) {
        pattern_left = (struct text){pattern_left.data + 1, pattern_left.size - 1};
        path_left = (struct text){path_left.data + 1, path_left.size - 1};
        struct text wanted;
        struct text segment;
        const bool pattern_goes_on = text_cut(pattern_left, '/', &wanted, &pattern_left);
        struct text name;
        bool takes_rest = false;
        const bool is_name = is_parameter(wanted, &name, &takes_rest);
        const struct text rest = path_left;
        const bool path_goes_on = text_cut(path_left, '/', &segment, &path_left);
        if (is_name) {
            ASSERT(match->parameter_count < HTTP_PARAMETER_COUNT_MAX);
            match->parameters[match->parameter_count++] =
                (struct http_parameter){name, takes_rest ? rest : segment};
            if (takes_rest)
                return true;
            if (segment.size == 0)
                return false;
        } else if (!text_equal(wanted, segment)) {
            return false;
        }
        if (pattern_goes_on != path_goes_on)
            return false;
        if (!pattern_goes_on)
            return true;
        /* text_cut left the part behind the slash: step back onto the slash. */
        pattern_left = (struct text){pattern_left.data - 1, pattern_left.size + 1};
        path_left = (struct text){path_left.data - 1, path_left.size + 1};
    }
}

static void allow(struct http_match *match, const char *method)
{
    /* Whole words only: PUT is not in "PUTS". */
    const size_t length = strlen(method);
    for (const char *at = match->allow; (at = strstr(at, method)); at += length)
        if ((at == match->allow || at[-1] == ' ') && (at[length] == '\0' || at[length] == ','))
            return;
    const size_t used = strlen(match->allow);
    const int written = snprintf(match->allow + used, sizeof(match->allow) - used, "%s%s",
                                 used > 0 ? ", " : "", method);
    ASSERT(written > 0 && (size_t)written < sizeof(match->allow) - used);
}

static int decode_parameters(struct http_match *match, struct arena *arena, struct error *error)
{
    for (size_t i = 0; i < match->parameter_count; i++) {
        struct text *value = &match->parameters[i].value;
        char *decoded = arena_alloc(arena, value->size + 1);
        size_t size;
        if (http_percent_decode(*value, decoded, &size, error) < 0)
            return error_wrap(error, "path");
        *value = (struct text){decoded, size};
    }
    return 0;
}

int http_route_find(const struct http_route *routes, size_t route_count, struct text method,
                    struct text path, struct arena *arena, struct http_match *out_match,
                    struct error *error)
{
    *out_match = (struct http_match){0};
    if (path.size == 0 || path.data[0] != '/')
        return error_set(error, ERROR_INVALID, "path does not start with a slash");
    for (size_t i = 0; i < route_count; i++) {
        if (!match_path(routes[i].pattern, path, out_match))
            continue;
        if (takes_method(&routes[i], method)) {
            out_match->route = &routes[i];
            return decode_parameters(out_match, arena, error);
        }
        allow(out_match, routes[i].method);
        if (strcmp(routes[i].method, "GET") == 0)
            allow(out_match, "HEAD");
    }
    out_match->parameter_count = 0;
    return 0;
}
