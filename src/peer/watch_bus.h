/*
 * Watch, bus: what the desktop's services say on the system's D-Bus: logind, whether anybody is
 * active in a session and whether the lid is closed; NetworkManager, whether the network is
 * metered.
 *
 * Spoken through libsystemd, loaded when there is a bus. Nothing here blocks or starts a service:
 * each look takes the answers that came to the questions of the look before. What a machine does
 * not have reads as GUARD_UNKNOWN.
 */
#pragma once

#include "base/scope.h"

#include <stdbool.h>
#include <stdint.h>

struct watch_bus;

/* `root` as in watch.h; is kept. */
struct watch_bus *watch_bus_new(const char *root);
void watch_bus_free(struct watch_bus *watch); /* NULL is fine */
DEFINE_AUTO(watch_bus);

struct watch_bus_readings {
    int64_t input_idle_ms; /* by logind's idle hint */
    int64_t is_lid_closed;
    int64_t is_metered;
};

/* `utc_ms` is the time now. */
void watch_bus_read(struct watch_bus *watch, int64_t now_ns, int64_t utc_ms,
                    struct watch_bus_readings *out_readings);

/* "logind, NetworkManager", or what is missing; for the doctor. */
const char *watch_bus_describe(const struct watch_bus *watch);
