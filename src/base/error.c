#include "base/error.h"

#include "base/assert.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static enum error_code error_code_of_errno(int errno_value)
{
    switch (errno_value) {
    case ENOENT:
    case ESRCH:
        return ERROR_NOT_FOUND;
    case EEXIST:
    case EADDRINUSE:
    case EBUSY:
        return ERROR_CONFLICT;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERROR_REFUSED;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EFBIG:
        return ERROR_EXHAUSTED;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
        return ERROR_INVALID;
    default:
        return ERROR_UNAVAILABLE;
    }
}

void error_fill(struct error *error, enum error_code code, const char *format, ...)
{
    ASSERT(code > ERROR_NONE && code < ERROR_CODE_COUNT);

    va_list args;
    va_start(args, format);
    error->code = code;
    vsnprintf(error->message, sizeof(error->message), format, args);
    va_end(args);
}

void error_fill_errno(struct error *error, int errno_value, const char *format, ...)
{
    char context[sizeof(error->message)];
    va_list args;
    va_start(args, format);
    vsnprintf(context, sizeof(context), format, args);
    va_end(args);

    char reason[128];
    error_fill(error, error_code_of_errno(errno_value), "%s: %s", context,
               strerror_r(errno_value, reason, sizeof(reason)));
}

void error_prefix(struct error *error, const char *format, ...)
{
    const struct error cause = *error;
    ASSERT(cause.code != ERROR_NONE);

    va_list args;
    va_start(args, format);
    char context[sizeof(error->message)];
    vsnprintf(context, sizeof(context), format, args);
    va_end(args);

    /* A long chain is cut at the end: the outer context is worth more than the tail. */
    if (snprintf(error->message, sizeof(error->message), "%s: %s", context, cause.message) < 0)
        error->message[0] = '\0';
}

/* Exit code 2 is kept for wrong usage, which the options parser reports. */
static const struct {
    const char *name;
    int http_status;
    int exit_code;
} code_table[ERROR_CODE_COUNT] = {
    [ERROR_NONE] = {"none", 200, 0},
    [ERROR_INVALID] = {"invalid", 400, 2},
    [ERROR_NOT_FOUND] = {"not_found", 404, 3},
    [ERROR_CONFLICT] = {"conflict", 409, 4},
    [ERROR_REFUSED] = {"refused", 403, 5},
    [ERROR_EXHAUSTED] = {"exhausted", 402, 6},
    [ERROR_UNAVAILABLE] = {"unavailable", 503, 7},
    [ERROR_CORRUPT] = {"corrupt", 500, 8},
};

const char *error_code_name(enum error_code code)
{
    return code < ERROR_CODE_COUNT ? code_table[code].name : "unknown";
}

int error_http_status(enum error_code code)
{
    ASSERT(code < ERROR_CODE_COUNT);
    return code_table[code].http_status;
}

int error_exit_code(enum error_code code)
{
    ASSERT(code < ERROR_CODE_COUNT);
    return code_table[code].exit_code;
}
