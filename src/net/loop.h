/*
 * Loop: events of one thread: descriptors, timers, signals, children, work posted by other threads.
 *
 * Everything but loop_post and loop_stop is called on the loop's own thread (or before it runs).
 * Callbacks may open, change and release anything, themselves included: what is released gets no
 * further callback, even if its event was already waiting. Timers use the monotonic time of the
 * clock given. Releasing the loop does not release what was opened on it: release that first.
 */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct loop;
struct loop_watch;
struct loop_timer;
struct loop_signal;
struct loop_child;

/* `clock` outlives the loop. */
MUST_CHECK int loop_open(const struct clock *clock, struct loop **out_loop, struct error *error);
void loop_free(struct loop *loop); /* NULL is fine; posted work that has not run is run first */
DEFINE_AUTO(loop);

const struct clock *loop_clock(const struct loop *loop);

/* Runs until loop_stop. Fails only when the kernel refuses to wait. */
MUST_CHECK int loop_run(struct loop *loop, struct error *error);
/* One turn: waits at most `wait_ms` (-1: until something happens) and calls what is due. */
MUST_CHECK int loop_step(struct loop *loop, int64_t wait_ms, struct error *error);
/* Ends loop_run after the current turn; before loop_run it ends the next one. From any thread. */
void loop_stop(struct loop *loop);
/* Whether loop_stop was called since loop_run last returned. From any thread. */
bool loop_is_stopping(const struct loop *loop);

/* Runs function(context) on the loop's thread, in the order posted. From any thread. */
void loop_post(struct loop *loop, void (*function)(void *context), void *context);

/* --- descriptors (level-triggered) --- */

enum loop_events {
    LOOP_READ = 1,
    LOOP_WRITE = 2,
    LOOP_HANGUP = 4,   /* error, or closed both ways: comes unasked while anything is asked for */
    LOOP_PRIORITY = 8, /* what the kernel says out of band: a pressure trigger */
};

typedef void loop_watch_function(void *context, uint32_t events);

/* The descriptor stays the caller's, who releases the watch before closing it. */
MUST_CHECK int loop_watch_open(struct loop *loop, int fd, uint32_t interest,
                               loop_watch_function *callback, void *context,
                               struct loop_watch **out_watch, struct error *error);
/* Changes what is waited for: any of LOOP_READ, LOOP_WRITE and LOOP_PRIORITY, or 0. */
void loop_watch_set(struct loop_watch *watch, uint32_t interest);
void loop_watch_free(struct loop_watch *watch); /* NULL is fine */

/* --- timers (one-shot; start again to repeat) --- */

struct loop_timer *loop_timer_new(struct loop *loop, void (*callback)(void *context),
                                  void *context);
/* Due in `delay_ms`, also when it was running already. 0 means: in the next turn. */
void loop_timer_start(struct loop_timer *timer, int64_t delay_ms);
void loop_timer_stop(struct loop_timer *timer);
bool loop_timer_is_running(const struct loop_timer *timer);
void loop_timer_free(struct loop_timer *timer); /* NULL is fine */

/* --- signals and children --- */

/* Blocks the signal in this thread, so call it before other threads are started. */
MUST_CHECK int loop_signal_open(struct loop *loop, int signal_number,
                                void (*callback)(void *context), void *context,
                                struct loop_signal **out_signal, struct error *error);
void loop_signal_free(struct loop_signal *signal); /* NULL is fine; the signal stays blocked */

struct child_exit {
    pid_t pid;
    int status; /* exit status, when signal is 0 */
    int signal; /* what killed it, or 0 */
};

/* Waits for and reaps the child; called once. The watch is released with loop_child_free. */
MUST_CHECK int loop_child_open(struct loop *loop, pid_t pid,
                               void (*callback)(void *context, const struct child_exit *exit),
                               void *context, struct loop_child **out_child, struct error *error);
void loop_child_free(struct loop_child *child); /* NULL is fine; does not kill */
