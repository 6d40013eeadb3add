#include "library/handle.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void handle_fill_with(struct souk_error *out, int32_t code, const char *message)
{
    if (!out)
        return;
    memset(out, 0, sizeof(*out));
    out->code = code;
    snprintf(out->message, sizeof(out->message), "%s", message);
}

void handle_fill(struct souk_error *out, const struct error *error)
{
    handle_fill_with(out, (int32_t)error->code, error->message);
}

void handle_fill_request(struct souk_error *out, const struct error *error,
                         const struct client *client)
{
    int status;
    const char *problem = client_problem(client, &status);
    _Static_assert(sizeof(out->problem) >= CLIENT_PROBLEM_SIZE, "a problem fits");
    handle_fill(out, error);
    if (!out || !status)
        return;
    out->status = status;
    memcpy(out->problem, problem, strlen(problem) + 1);
}

char *handle_text(struct text text)
{
    char *copy = memory_zeroed(text.size + 1, 1);
    if (text.size)
        memcpy(copy, text.data, text.size);
    return copy;
}

void handle_options(void *out, size_t out_size, const void *from)
{
    size_t size = 0; /* every struct of options begins with it */
    memset(out, 0, out_size);
    if (from)
        memcpy(&size, from, sizeof(size));
    if (size > 0)
        memcpy(out, from, size < out_size ? size : out_size);
}
