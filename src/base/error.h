/*
 * Errors: what went wrong, for the program (code) and for a person (message).
 *
 * A function that can fail returns 0 or -1 and takes `struct error *error` last.
 * On failure it fills *error; on success it leaves *error alone. The struct lives
 * on the caller's stack: nothing to free, nothing shared between threads.
 */
#pragma once

enum error_code {
    ERROR_NONE = 0,
    ERROR_INVALID,     /* the request itself is wrong */
    ERROR_NOT_FOUND,   /* it names something that does not exist */
    ERROR_CONFLICT,    /* it lost to another request, or repeats one */
    ERROR_REFUSED,     /* the caller may not do this */
    ERROR_EXHAUSTED,   /* a limit or a balance is used up */
    ERROR_UNAVAILABLE, /* try again: a peer, the network or the store is away */
    ERROR_CORRUPT,     /* stored or received data breaks its own rules */
    ERROR_CODE_COUNT,
};

struct error {
    enum error_code code;
    char message[256];
};

#define MUST_CHECK __attribute__((warn_unused_result))

/*
 * Fills *error and is -1, so that failing is one line: return error_set(error, CODE, "...", ...).
 * These are macros so that compilers and analyzers see the -1.
 */
#define error_set(...)                                                                             \
    ({                                                                                             \
        error_fill(__VA_ARGS__);                                                                   \
        -1;                                                                                        \
    })

/* As error_set, with the code and the words that belong to an errno value: "open \"x\": reason". */
#define error_set_errno(...)                                                                       \
    ({                                                                                             \
        error_fill_errno(__VA_ARGS__);                                                             \
        -1;                                                                                        \
    })

/* Puts the caller's context before the message, keeps the code, is -1. */
#define error_wrap(...)                                                                            \
    ({                                                                                             \
        error_prefix(__VA_ARGS__);                                                                 \
        -1;                                                                                        \
    })

void error_fill(struct error *error, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void error_fill_errno(struct error *error, int errno_value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void error_prefix(struct error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

const char *error_code_name(enum error_code code);

/* The one table from codes to what the outside sees. */
int error_http_status(enum error_code code);
int error_exit_code(enum error_code code);
