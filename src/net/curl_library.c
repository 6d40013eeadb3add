#include "base/assert.h"
#include "base/library.h"
#include "net/curl_library_internal.h"

#include <pthread.h>
#include <time.h>

/* Filled once, then only read. */
static union {
    struct curl_library library;
    void *functions[sizeof(struct curl_library) / sizeof(void *)];
} loaded;

static int set_up(struct error *error)
{
    return loaded.library.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK
               ? 0
               : error_set(error, ERROR_UNAVAILABLE, "libcurl could not be set up");
}

int curl_library_load(const struct curl_library **out_library, struct error *error)
{
    static struct library_once once = LIBRARY_ONCE_INIT;
    static const char *const names[] = {
#define X(name) #name,
        CURL_FUNCTIONS(X)
#undef X
    };
    *out_library = &loaded.library;
    return library_load_once(&once, "libcurl.so.4", names, sizeof(names) / sizeof(*names),
                             loaded.functions, set_up, error);
}

void sigpipe_guard_begin(struct sigpipe_guard *guard)
{
    sigset_t pending;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    ASSERT(sigpending(&pending) == 0);
    guard->was_pending = sigismember(&pending, SIGPIPE) == 1;
    ASSERT(pthread_sigmask(SIG_BLOCK, &set, &guard->previous) == 0);
}

void sigpipe_guard_end(const struct sigpipe_guard *guard)
{
    sigset_t pending;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    ASSERT(sigpending(&pending) == 0);
    if (!guard->was_pending && sigismember(&pending, SIGPIPE) == 1) {
        const struct timespec at_once = {0};
        (void)sigtimedwait(&set, NULL, &at_once);
    }
    ASSERT(pthread_sigmask(SIG_SETMASK, &guard->previous, NULL) == 0);
}
