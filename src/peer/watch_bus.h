/*
 * Watch, bus: what the desktop's services say on the system's D-Bus: logind, whether anybody is
 * active in a session and whether the lid is closed; NetworkManager, whether the network is
 * metered.
 *
 * Spoken through libsystemd, which takes more memory than an idle daemon has to spare: asked by a
 * process of its own (watch_desktop.h). No service is started by being asked.
 */
#pragma once

#include <stdint.h>

/* Each GUARD_UNKNOWN where nobody says it. */
struct watch_bus_values {
    int64_t is_idle;       /* logind's idle hint, of all sessions */
    int64_t idle_since_us; /* UTC, when the hint last changed; 0: never */
    int64_t is_lid_closed;
    int64_t metered; /* NetworkManager's: 1 yes, 2 no, 3 guessed so, 4 guessed not, 0 not known */
};

/* Waits at most a few seconds, and not at all where there is no bus below `root`. */
void watch_bus_ask(const char *root, struct watch_bus_values *out_values);
