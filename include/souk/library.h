/*
 * libsouk: what its parts share: versions and errors.
 *
 * Names begin with souk_ or SOUK_. Handles are opaque: what a function ..._open, ..._new or
 * ..._connect made is released by the ..._free beside it, which takes NULL. Text is UTF-8; text
 * that a function hands over (`char **out_...`) is released with souk_text_free. A struct of
 * options is set to zero first, which means the default in every field; its `size` is sizeof of the
 * struct, so that later versions can add fields at its end.
 *
 * Functions that can fail return 0, or -1 and fill *error, which may be NULL; on success they leave
 * it alone. No function changes signal handlers, prints, or ends the program, but that it aborts
 * when memory is used up. Unless its comment says otherwise a handle belongs to one thread at a
 * time.
 */
#ifndef SOUK_LIBRARY_H
#define SOUK_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SOUK_API __attribute__((visibility("default")))

/* Raised when a program built against an older header could break; libsouk.so.N has it as N. */
#define SOUK_ABI_VERSION 0

enum souk_error_code {
    SOUK_OK = 0,
    SOUK_INVALID = 1,     /* the request itself is wrong */
    SOUK_NOT_FOUND = 2,   /* it names something that does not exist */
    SOUK_CONFLICT = 3,    /* it lost to another request, or repeats one */
    SOUK_REFUSED = 4,     /* the caller may not do this */
    SOUK_EXHAUSTED = 5,   /* a limit or a balance is used up */
    SOUK_UNAVAILABLE = 6, /* try again: the market, a machine or the network is away */
    SOUK_CORRUPT = 7,     /* stored or received data breaks its own rules */
    SOUK_STOPPED = 8,     /* another thread ended it */
    SOUK_TIMED_OUT = 9    /* the caller's own time is over */
};

#define SOUK_ERROR_MESSAGE_SIZE 512
#define SOUK_ERROR_PROBLEM_SIZE 4096

struct souk_error {
    int32_t code;                          /* enum souk_error_code */
    int32_t status;                        /* the market's HTTP status; 0: it did not answer */
    int32_t line;                          /* of a job file, from 1; 0: not about a place in one */
    int32_t column;                        /* likewise */
    char message[SOUK_ERROR_MESSAGE_SIZE]; /* for a person */
    /* The market's own words: JSON (RFC 9457), or "". Of a job file with several mistakes all of
     * them, as many as fit:
     * {"mistakes":[{"line":2,"column":5,"field":"train.batch","text":"..."}]}; `message`, `line`
     * and `column` are of the first. */
    char problem[SOUK_ERROR_PROBLEM_SIZE];
};

/* "invalid", "not_found" ...; never NULL. */
SOUK_API const char *souk_error_code_name(int32_t code);

/* Of the library that runs, "0.1.0"; and its SOUK_ABI_VERSION. */
SOUK_API const char *souk_library_version(void);
SOUK_API uint32_t souk_library_abi(void);

/* NULL is fine. */
SOUK_API void souk_text_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
