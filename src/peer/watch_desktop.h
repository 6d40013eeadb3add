/*
 * Watch, desktop: who is active on it, its lid and its network, as its services say on the system's
 * bus (watch_bus.h) and its X display (watch_x11.h). A process of its own asks, now and then and
 * for a moment, so that neither its libraries nor a service that does not answer cost the daemon
 * anything.
 */
#pragma once

#include "base/scope.h"
#include "net/loop.h"

#include <stdint.h>

struct watch_desktop;

/* `root` as in watch.h; `display` ":0", NULL: none. Both are kept. */
struct watch_desktop *watch_desktop_new(struct loop *loop, const char *root, const char *display);
void watch_desktop_free(struct watch_desktop *watch); /* NULL is fine */
DEFINE_AUTO(watch_desktop);

/* GUARD_UNKNOWN where nobody says it. */
struct watch_desktop_readings {
    int64_t input_idle_ms; /* by logind's idle hint, or the X display */
    int64_t is_lid_closed;
    int64_t is_metered;
};

/* What was said last; asks anew when the last question is `period_ms` old. `utc_ms`: now. */
void watch_desktop_read(struct watch_desktop *watch, int64_t now_ns, int64_t utc_ms,
                        int64_t period_ms, struct watch_desktop_readings *out_readings);

/* Who says something: "logind, NetworkManager, X display"; "none". */
enum { WATCH_DESKTOP_WORDS_SIZE = 64 };
const char *watch_desktop_describe(const struct watch_desktop *watch,
                                   char out[WATCH_DESKTOP_WORDS_SIZE]);
/* The same, asked now and waited for; for the doctor. */
const char *watch_desktop_probe(const char *root, const char *display,
                                char out[WATCH_DESKTOP_WORDS_SIZE]);
