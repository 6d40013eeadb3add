/* Any bytes as a path, and the part behind the first newline as a query value. */
#include "base/assert.h"
#include "net/http_route_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct http_route routes[] = {
        {.method = "GET", .pattern = "/"},
        {.method = "GET", .pattern = "/v1/jobs/{id}/artifacts/{name}"},
        {.method = "POST", .pattern = "/v1/{a}/{b}"},
        {.method = "GET", .pattern = "/a/{rest...}"},
    };
    struct text path;
    struct text query;
    const struct text input = {(const char *)data, size};
    if (!text_cut(input, '\n', &path, &query))
        query = input;

    AUTO(arena) struct arena *arena = arena_new(0);
    struct http_match match;
    struct error error;
    if (http_route_find(routes, 4, TEXT("GET"), path, arena, &match, &error) == 0 && match.route)
        for (size_t i = 0; i < match.parameter_count; i++)
            ASSERT(match.parameters[i].value.size <= path.size &&
                   !memchr(match.parameters[i].value.data, 0, match.parameters[i].value.size));

    char *decoded = arena_alloc(arena, query.size + 1);
    size_t decoded_size;
    if (http_percent_decode(query, decoded, &decoded_size, &error) == 0)
        ASSERT(decoded_size <= query.size && decoded[decoded_size] == '\0');
    return 0;
}
