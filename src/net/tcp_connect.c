/*
 * Resolves on a thread of its own when the host is a name, then tries each address in turn.
 *
 * Thread and loop share one lookup, counted by references: whoever leaves last frees it. So giving
 * up never waits for DNS, and the thread needs no loop to live.
 */
#include "base/assert.h"
#include "base/scope.h"
#include "net/address.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { ADDRESS_COUNT_MAX = 8, STACK_SIZE = 256 * 1024 };

struct lookup {
    atomic_int references;
    struct host_port target;
    int done_fd; /* eventfd: written once by the thread, after the fields below are set */
    struct address addresses[ADDRESS_COUNT_MAX];
    size_t address_count;
    int result;
    struct error error;
};

struct tcp_connect {
    struct loop *loop;
    struct host_port target;
    tcp_connect_function *callback;
    void *context;
    struct loop_timer *deadline;
    struct loop_timer *soon; /* reports what is known already, but not from inside the start */
    struct loop_watch *watch;
    struct lookup *lookup;
    struct address addresses[ADDRESS_COUNT_MAX];
    size_t address_count;
    size_t address_next;
    int fd;
    struct error reason;
};

static void lookup_unref(struct lookup *lookup)
{
    if (atomic_fetch_sub(&lookup->references, 1) != 1)
        return;
    close(lookup->done_fd);
    free(lookup);
}

static void *lookup_run(void *context)
{
    struct lookup *lookup = context;
    lookup->result = address_resolve_all(&lookup->target, lookup->addresses, ADDRESS_COUNT_MAX,
                                         &lookup->address_count, &lookup->error);
    const uint64_t one = 1;
    ASSERT(write(lookup->done_fd, &one, sizeof(one)) == sizeof(one));
    lookup_unref(lookup);
    return NULL;
}

static void release_attempt(struct tcp_connect *attempt)
{
    loop_watch_free(TAKE(attempt->watch));
    if (attempt->fd >= 0)
        close(TAKE_FD(attempt->fd));
    if (attempt->lookup)
        lookup_unref(TAKE(attempt->lookup));
}

/* The callback may free the attempt: nothing of it is touched afterwards. */
static void finish(struct tcp_connect *attempt, int fd, const struct error *reason)
{
    loop_timer_stop(attempt->deadline);
    loop_timer_stop(attempt->soon);
    const struct error copy = reason ? *reason : (struct error){0};
    attempt->callback(attempt->context, fd, reason ? &copy : NULL);
}

static void try_next(struct tcp_connect *attempt);

static void note_failure(struct tcp_connect *attempt, int errno_value)
{
    char text[ADDRESS_TEXT_SIZE];
    error_set_errno(&attempt->reason, errno_value, "connect to %s",
                    address_format(&attempt->addresses[attempt->address_next - 1], text));
    attempt->reason.code = ERROR_UNAVAILABLE;
    release_attempt(attempt);
}

static void on_writable(void *context, uint32_t events __attribute__((unused)))
{
    struct tcp_connect *attempt = context;
    int failure = 0;
    socklen_t size = sizeof(failure);
    if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &failure, &size) < 0)
        failure = errno;
    if (failure != 0) {
        note_failure(attempt, failure);
        try_next(attempt);
        return;
    }
    loop_watch_free(TAKE(attempt->watch));
    finish(attempt, TAKE_FD(attempt->fd), NULL);
}

static int start_attempt(struct tcp_connect *attempt, const struct address *address)
{
    attempt->fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (attempt->fd < 0)
        return errno;
    const int one = 1;
    (void)setsockopt(attempt->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)setsockopt(attempt->fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    if (connect(attempt->fd, (const struct sockaddr *)&address->storage, address->size) < 0 &&
        errno != EINPROGRESS && errno != EINTR)
        return errno;
    struct error error;
    if (loop_watch_open(attempt->loop, attempt->fd, LOOP_WRITE, on_writable, attempt,
                        &attempt->watch, &error) < 0)
        return ENOMEM;
    return 0;
}

static void try_next(struct tcp_connect *attempt)
{
    while (attempt->address_next < attempt->address_count) {
        const int failure = start_attempt(attempt, &attempt->addresses[attempt->address_next++]);
        if (failure == 0)
            return;
        note_failure(attempt, failure);
    }
    loop_timer_start(attempt->soon, 0);
}

static void on_soon(void *context)
{
    struct tcp_connect *attempt = context;
    finish(attempt, -1, &attempt->reason);
}

static void on_deadline(void *context)
{
    struct tcp_connect *attempt = context;
    release_attempt(attempt);
    error_set(&attempt->reason, ERROR_UNAVAILABLE, "connect to \"%s\" port %u: no answer in time",
              attempt->target.host, attempt->target.port);
    finish(attempt, -1, &attempt->reason);
}

static void on_lookup_done(void *context, uint32_t events __attribute__((unused)))
{
    struct tcp_connect *attempt = context;
    struct lookup *lookup = attempt->lookup;
    uint64_t count;
    /* Also what orders the thread's writes before our reads. */
    if (read(lookup->done_fd, &count, sizeof(count)) != sizeof(count))
        return;
    if (lookup->result == 0) {
        attempt->address_count = lookup->address_count;
        for (size_t i = 0; i < lookup->address_count; i++)
            attempt->addresses[i] = lookup->addresses[i];
    } else {
        attempt->reason = lookup->error;
    }
    release_attempt(attempt);
    try_next(attempt);
}

static int start_lookup(struct tcp_connect *attempt, struct error *error)
{
    const int done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (done_fd < 0)
        return error_set_errno(error, errno, "create an event descriptor");
    struct lookup *lookup = calloc(1, sizeof(*lookup));
    ASSERT(lookup);
    lookup->target = attempt->target;
    lookup->done_fd = done_fd;
    atomic_init(&lookup->references, 1);
    attempt->lookup = lookup;
    if (loop_watch_open(attempt->loop, done_fd, LOOP_READ, on_lookup_done, attempt, &attempt->watch,
                        error) < 0)
        return -1;

    pthread_attr_t attributes;
    ASSERT(pthread_attr_init(&attributes) == 0);
    ASSERT(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
    ASSERT(pthread_attr_setstacksize(&attributes, STACK_SIZE) == 0);
    atomic_fetch_add(&lookup->references, 1);
    pthread_t thread;
    const int failure = pthread_create(&thread, &attributes, lookup_run, lookup);
    pthread_attr_destroy(&attributes);
    if (failure != 0) {
        lookup_unref(lookup);
        return error_set_errno(error, failure, "start a thread to resolve \"%s\"",
                               attempt->target.host);
    }
    return 0;
}

struct tcp_connect *tcp_connect_start(struct loop *loop, const struct host_port *target,
                                      int64_t timeout_ms, tcp_connect_function *callback,
                                      void *context)
{
    struct tcp_connect *attempt = calloc(1, sizeof(*attempt));
    ASSERT(attempt);
    *attempt = (struct tcp_connect){
        .loop = loop, .target = *target, .callback = callback, .context = context, .fd = -1};
    attempt->deadline = loop_timer_new(loop, on_deadline, attempt);
    attempt->soon = loop_timer_new(loop, on_soon, attempt);
    loop_timer_start(attempt->deadline, timeout_ms);

    if (address_is_numeric(target)) {
        if (address_resolve_all(target, attempt->addresses, ADDRESS_COUNT_MAX,
                                &attempt->address_count, &attempt->reason) < 0)
            attempt->address_count = 0;
        try_next(attempt);
    } else if (start_lookup(attempt, &attempt->reason) < 0) {
        release_attempt(attempt);
        loop_timer_start(attempt->soon, 0);
    }
    return attempt;
}

void tcp_connect_free(struct tcp_connect *attempt)
{
    if (!attempt)
        return;
    release_attempt(attempt);
    loop_timer_free(attempt->deadline);
    loop_timer_free(attempt->soon);
    free(attempt);
}
