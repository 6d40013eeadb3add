#include "net/loop.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/memory.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS_PER_TURN = 128, WAIT_MS_MAX = 60 * 60 * 1000 };

#define NOT_QUEUED SIZE_MAX

struct loop_watch {
    struct loop *loop;
    int fd;
    uint32_t interest;
    bool is_freed;
    loop_watch_function *callback;
    void *context;
    struct list_node node; /* in loop->freed_watches */
};

struct loop_timer {
    struct loop *loop;
    void (*callback)(void *context);
    void *context;
    int64_t due_ns;
    uint64_t order;
    size_t place; /* in loop->timers, or NOT_QUEUED */
};

struct posted {
    struct list_node node;
    void (*function)(void *context);
    void *context;
};

struct loop {
    const struct clock *clock;
    int epoll_fd;
    int wake_fd;
    bool is_dispatching;
    atomic_bool is_stopping;

    struct list freed_watches; /* kept until the turn ends: their events may be in its batch */

    struct loop_timer **timers; /* a binary heap, soonest first */
    size_t timer_count;
    size_t timer_capacity;
    uint64_t timer_order;

    pthread_mutex_t mutex;
    struct list posted; /* guarded by mutex */
};

/* --- the loop itself --- */

int loop_open(const struct clock *clock, struct loop **out_loop, struct error *error)
{
    AUTO_FD int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        return error_set_errno(error, errno, "create an epoll descriptor");
    AUTO_FD int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd < 0)
        return error_set_errno(error, errno, "create an event descriptor");
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wake_fd, &event) < 0)
        return error_set_errno(error, errno, "watch the event descriptor");

    struct loop *loop = memory_zeroed(1, sizeof(*loop));
    loop->clock = clock;
    loop->epoll_fd = TAKE_FD(epoll_fd);
    loop->wake_fd = TAKE_FD(wake_fd);
    list_init(&loop->freed_watches);
    list_init(&loop->posted);
    ASSERT(pthread_mutex_init(&loop->mutex, NULL) == 0);
    *out_loop = loop;
    return 0;
}

static bool run_posted(struct loop *loop)
{
    struct list batch;
    list_init(&batch);
    pthread_mutex_lock(&loop->mutex);
    for (struct list_node *node; (node = list_take_first(&loop->posted));)
        list_append(&batch, node);
    pthread_mutex_unlock(&loop->mutex);

    bool ran = false;
    for (struct list_node *node; (node = list_take_first(&batch));) {
        struct posted *posted = LIST_ITEM(node, struct posted, node);
        posted->function(posted->context);
        free(posted);
        ran = true;
    }
    return ran;
}

static void release_freed_watches(struct loop *loop)
{
    for (struct list_node *node; (node = list_take_first(&loop->freed_watches));)
        free(LIST_ITEM(node, struct loop_watch, node));
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    ASSERT(!loop->is_dispatching);
    while (run_posted(loop))
        continue;
    release_freed_watches(loop);
    pthread_mutex_destroy(&loop->mutex);
    close(loop->wake_fd);
    close(loop->epoll_fd);
    free(loop->timers);
    free(loop);
}

const struct clock *loop_clock(const struct loop *loop)
{
    return loop->clock;
}

static void wake(struct loop *loop)
{
    const uint64_t one = 1;
    ssize_t written;
    do
        written = write(loop->wake_fd, &one, sizeof(one));
    while (written < 0 && errno == EINTR);
    /* EAGAIN means the counter is full: the loop is awake anyway. */
    ASSERT(written == sizeof(one) || errno == EAGAIN);
}

void loop_stop(struct loop *loop)
{
    atomic_store(&loop->is_stopping, true);
    wake(loop);
}

bool loop_is_stopping(const struct loop *loop)
{
    return atomic_load(&loop->is_stopping);
}

void loop_post(struct loop *loop, void (*function)(void *context), void *context)
{
    struct posted *posted = memory_zeroed(1, sizeof(*posted));
    posted->function = function;
    posted->context = context;
    pthread_mutex_lock(&loop->mutex);
    const bool was_empty = list_is_empty(&loop->posted);
    list_append(&loop->posted, &posted->node);
    pthread_mutex_unlock(&loop->mutex);
    if (was_empty)
        wake(loop);
}

static void run_timers(struct loop *loop);

static int wait_limit_ms(const struct loop *loop, int64_t wait_ms)
{
    if (wait_ms < 0 || wait_ms > WAIT_MS_MAX)
        wait_ms = WAIT_MS_MAX;
    if (loop->timer_count > 0) {
        const int64_t left_ns = loop->timers[0]->due_ns - clock_monotonic_ns(loop->clock);
        /* Rounded up, or the loop would spin through the last part of a millisecond. */
        const int64_t left_ms = left_ns <= 0 ? 0 : (left_ns + 999999) / 1000000;
        if (left_ms < wait_ms)
            wait_ms = left_ms;
    }
    return (int)wait_ms;
}

static void dispatch(struct loop *loop, const struct epoll_event *event)
{
    struct loop_watch *watch = event->data.ptr;
    if (!watch) {
        uint64_t count;
        const ssize_t got = read(loop->wake_fd, &count, sizeof(count));
        ASSERT(got == sizeof(count) || errno == EAGAIN || errno == EINTR);
        return;
    }
    uint32_t events = 0;
    if (event->events & EPOLLIN)
        events |= LOOP_READ;
    if (event->events & EPOLLOUT)
        events |= LOOP_WRITE;
    if (event->events & EPOLLPRI)
        events |= LOOP_PRIORITY;
    if (event->events & (EPOLLHUP | EPOLLERR))
        events |= LOOP_HANGUP;
    /* A callback before this one may have lost interest in it. */
    events &= watch->interest | LOOP_HANGUP;
    if (!watch->is_freed && watch->interest != 0 && events != 0)
        watch->callback(watch->context, events);
}

int loop_step(struct loop *loop, int64_t wait_ms, struct error *error)
{
    ASSERT(!loop->is_dispatching);
    struct epoll_event events[EVENTS_PER_TURN];
    const int count =
        epoll_wait(loop->epoll_fd, events, EVENTS_PER_TURN, wait_limit_ms(loop, wait_ms));
    if (count < 0 && errno != EINTR)
        return error_set_errno(error, errno, "wait for events");

    loop->is_dispatching = true;
    for (int i = 0; i < count; i++)
        dispatch(loop, &events[i]);
    run_posted(loop);
    run_timers(loop);
    loop->is_dispatching = false;
    release_freed_watches(loop);
    return 0;
}

int loop_run(struct loop *loop, struct error *error)
{
    int result = 0;
    while (result == 0 && !atomic_load(&loop->is_stopping))
        result = loop_step(loop, -1, error);
    atomic_store(&loop->is_stopping, false);
    return result;
}

/* --- descriptors --- */

static uint32_t epoll_events(uint32_t interest)
{
    return ((interest & LOOP_READ) ? (uint32_t)EPOLLIN : 0) |
           ((interest & LOOP_WRITE) ? (uint32_t)EPOLLOUT : 0) |
           ((interest & LOOP_PRIORITY) ? (uint32_t)EPOLLPRI : 0);
}

int loop_watch_open(struct loop *loop, int fd, uint32_t interest, loop_watch_function *callback,
                    void *context, struct loop_watch **out_watch, struct error *error)
{
    struct loop_watch *watch = memory_zeroed(1, sizeof(*watch));
    *watch = (struct loop_watch){
        .loop = loop, .fd = fd, .interest = interest, .callback = callback, .context = context};
    struct epoll_event event = {.events = epoll_events(interest), .data.ptr = watch};
    if (interest != 0 && epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        const int reason = errno;
        free(watch);
        return error_set_errno(error, reason, "watch a descriptor");
    }
    *out_watch = watch;
    return 0;
}

void loop_watch_set(struct loop_watch *watch, uint32_t interest)
{
    ASSERT(!watch->is_freed && (interest & ~(uint32_t)(LOOP_READ | LOOP_WRITE)) == 0);
    if (interest == watch->interest)
        return;
    /* Without interest it leaves epoll: a hang-up would be reported again and again. */
    const int operation = interest == 0          ? EPOLL_CTL_DEL
                          : watch->interest == 0 ? EPOLL_CTL_ADD
                                                 : EPOLL_CTL_MOD;
    struct epoll_event event = {.events = epoll_events(interest), .data.ptr = watch};
    ASSERT(epoll_ctl(watch->loop->epoll_fd, operation, watch->fd, &event) == 0);
    watch->interest = interest;
}

void loop_watch_free(struct loop_watch *watch)
{
    if (!watch)
        return;
    /* Fails only when a library closed its descriptor before it told us: then it is out already. */
    if (watch->interest != 0)
        (void)epoll_ctl(watch->loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->is_freed = true;
    if (watch->loop->is_dispatching)
        list_append(&watch->loop->freed_watches, &watch->node);
    else
        free(watch);
}

/* --- timers --- */

static bool is_sooner(const struct loop_timer *left, const struct loop_timer *right)
{
    return left->due_ns != right->due_ns ? left->due_ns < right->due_ns
                                         : left->order < right->order;
}

static void heap_put(struct loop *loop, size_t place, struct loop_timer *timer)
{
    loop->timers[place] = timer;
    timer->place = place;
}

static void heap_rise(struct loop *loop, struct loop_timer *timer)
{
    size_t place = timer->place;
    while (place > 0 && is_sooner(timer, loop->timers[(place - 1) / 2])) {
        heap_put(loop, place, loop->timers[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    heap_put(loop, place, timer);
}

static void heap_sink(struct loop *loop, struct loop_timer *timer)
{
    size_t place = timer->place;
    for (;;) {
        size_t child = 2 * place + 1;
        if (child >= loop->timer_count)
            break;
        if (child + 1 < loop->timer_count &&
            is_sooner(loop->timers[child + 1], loop->timers[child]))
            child++;
        if (!is_sooner(loop->timers[child], timer))
            break;
        heap_put(loop, place, loop->timers[child]);
        place = child;
    }
    heap_put(loop, place, timer);
}

struct loop_timer *loop_timer_new(struct loop *loop, void (*callback)(void *context), void *context)
{
    struct loop_timer *timer = memory_zeroed(1, sizeof(*timer));
    *timer = (struct loop_timer){
        .loop = loop, .callback = callback, .context = context, .place = NOT_QUEUED};
    return timer;
}

void loop_timer_stop(struct loop_timer *timer)
{
    struct loop *loop = timer->loop;
    const size_t place = timer->place;
    if (place == NOT_QUEUED)
        return;
    timer->place = NOT_QUEUED;
    struct loop_timer *last = loop->timers[--loop->timer_count];
    if (last == timer)
        return;
    heap_put(loop, place, last);
    heap_rise(loop, last);
    heap_sink(loop, last);
}

void loop_timer_start(struct loop_timer *timer, int64_t delay_ms)
{
    ASSERT(delay_ms >= 0 && delay_ms < INT64_MAX / 2000000);
    struct loop *loop = timer->loop;
    loop_timer_stop(timer);
    if (loop->timer_count == loop->timer_capacity) {
        loop->timer_capacity = loop->timer_capacity ? 2 * loop->timer_capacity : 16;
        loop->timers = realloc(loop->timers, loop->timer_capacity * sizeof(*loop->timers));
        ASSERT(loop->timers);
    }
    timer->due_ns = clock_monotonic_ns(loop->clock) + delay_ms * 1000000;
    timer->order = loop->timer_order++;
    heap_put(loop, loop->timer_count++, timer);
    heap_rise(loop, timer);
}

bool loop_timer_is_running(const struct loop_timer *timer)
{
    return timer->place != NOT_QUEUED;
}

void loop_timer_free(struct loop_timer *timer)
{
    if (!timer)
        return;
    loop_timer_stop(timer);
    free(timer);
}

static void run_timers(struct loop *loop)
{
    const int64_t now_ns = clock_monotonic_ns(loop->clock);
    /* What callbacks start now waits for the next turn, so that descriptors get theirs. */
    const uint64_t order_end = loop->timer_order;
    while (loop->timer_count > 0) {
        struct loop_timer *timer = loop->timers[0];
        if (timer->due_ns > now_ns || timer->order >= order_end)
            break;
        loop_timer_stop(timer);
        timer->callback(timer->context);
    }
}

/* --- signals and children --- */

struct loop_signal {
    int fd;
    struct loop_watch *watch;
    void (*callback)(void *context);
    void *context;
};

static void on_signal(void *context, uint32_t events __attribute__((unused)))
{
    struct loop_signal *signal = context;
    struct signalfd_siginfo info;
    if (read(signal->fd, &info, sizeof(info)) == sizeof(info))
        signal->callback(signal->context);
}

int loop_signal_open(struct loop *loop, int signal_number, void (*callback)(void *context),
                     void *context, struct loop_signal **out_signal, struct error *error)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
        return error_set(error, ERROR_INVALID, "signal %d cannot be blocked", signal_number);
    AUTO_FD int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return error_set_errno(error, errno, "create a signal descriptor");
    struct loop_signal *signal = memory_zeroed(1, sizeof(*signal));
    if (loop_watch_open(loop, fd, LOOP_READ, on_signal, signal, &signal->watch, error) < 0) {
        free(signal);
        return -1;
    }
    signal->fd = TAKE_FD(fd);
    signal->callback = callback;
    signal->context = context;
    *out_signal = signal;
    return 0;
}

void loop_signal_free(struct loop_signal *signal)
{
    if (!signal)
        return;
    loop_watch_free(signal->watch);
    close(signal->fd);
    free(signal);
}

struct loop_child {
    pid_t pid;
    int fd;
    struct loop_watch *watch;
    void (*callback)(void *context, const struct child_exit *exit);
    void *context;
};

static void on_child(void *context, uint32_t events __attribute__((unused)))
{
    struct loop_child *child = context;
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t)child->fd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
        return;
    const bool is_exit = info.si_code == CLD_EXITED;
    const struct child_exit child_exit = {
        .pid = child->pid,
        .status = is_exit ? info.si_status : 0,
        .signal = is_exit ? 0 : info.si_status,
    };
    loop_watch_set(child->watch, 0);
    child->callback(child->context, &child_exit);
}

int loop_child_open(struct loop *loop, pid_t pid,
                    void (*callback)(void *context, const struct child_exit *exit), void *context,
                    struct loop_child **out_child, struct error *error)
{
    AUTO_FD int fd = pidfd_open(pid, 0);
    if (fd < 0)
        return error_set_errno(error, errno, "watch child %d", (int)pid);
    struct loop_child *child = memory_zeroed(1, sizeof(*child));
    if (loop_watch_open(loop, fd, LOOP_READ, on_child, child, &child->watch, error) < 0) {
        free(child);
        return -1;
    }
    child->pid = pid;
    child->fd = TAKE_FD(fd);
    child->callback = callback;
    child->context = context;
    *out_child = child;
    return 0;
}

void loop_child_free(struct loop_child *child)
{
    if (!child)
        return;
    loop_watch_free(child->watch);
    close(child->fd);
    free(child);
}
