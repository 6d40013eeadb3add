#include "base/assert.h"
#include "base/library.h"
#include "net/curl_library_internal.h"

#include <pthread.h>
#include <time.h>

/* Filled once under `once`, then only read. */
static struct {
    pthread_once_t once;
    union {
        struct curl_library library;
        void *functions[sizeof(struct curl_library) / sizeof(void *)];
    };
    int result;
    struct error error;
} loaded = {.once = PTHREAD_ONCE_INIT};

static void load(void)
{
    static const char *const names[] = {
#define X(name) #name,
        CURL_FUNCTIONS(X)
#undef X
    };
    loaded.result = library_load("libcurl.so.4", names, sizeof(names) / sizeof(*names),
                                 loaded.functions, &loaded.error);
    if (loaded.result == 0 && loaded.library.curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        loaded.result = error_set(&loaded.error, ERROR_UNAVAILABLE, "libcurl could not be set up");
}

int curl_library_load(const struct curl_library **out_library, struct error *error)
{
    ASSERT(pthread_once(&loaded.once, load) == 0);
    if (loaded.result < 0) {
        *error = loaded.error;
        return -1;
    }
    *out_library = &loaded.library;
    return 0;
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
