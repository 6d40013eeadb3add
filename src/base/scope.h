/*
 * Scoped ownership: a local marked AUTO(type) is released when it leaves scope.
 *
 *     AUTO(ledger) struct ledger *ledger = NULL;
 */
#pragma once

#include <stdio.h>
#include <unistd.h>

/* Declares the release hook AUTO(name) needs; put it under the type's free function. */
#define DEFINE_AUTO(name)                                                                          \
    static inline void auto_release_##name(struct name **owned)                                    \
    {                                                                                              \
        name##_free(*owned);                                                                       \
    }                                                                                              \
    struct name

#define AUTO(name) __attribute__((cleanup(auto_release_##name), unused))

/* Gives the pointer away: yields its value and leaves NULL behind, so AUTO frees nothing. */
#define TAKE(pointer)                                                                              \
    ({                                                                                             \
        __typeof__(pointer) taken_ = (pointer);                                                    \
        (pointer) = NULL;                                                                          \
        taken_;                                                                                    \
    })

/* NOLINTNEXTLINE(readability-non-const-parameter): the cleanup attribute asks for this type */
static inline void auto_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void auto_close_file(FILE **file)
{
    if (*file)
        fclose(*file);
}

/* AUTO_FD int fd = -1;   AUTO_FILE FILE *file = NULL; */
#define AUTO_FD   __attribute__((cleanup(auto_close_fd)))
#define AUTO_FILE __attribute__((cleanup(auto_close_file)))

/* Gives the descriptor away and leaves -1 behind. */
#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        const int taken_ = (fd);                                                                   \
        (fd) = -1;                                                                                 \
        taken_;                                                                                    \
    })
