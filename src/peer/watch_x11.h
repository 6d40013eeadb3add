/*
 * Watch, X11: how long nobody has used the keyboards and pointers of an X display, those of a
 * remote desktop included, by its MIT-SCREEN-SAVER extension. Spoken through libxcb, loaded when
 * asked; by a process of its own (watch_desktop.h), since a display that hangs blocks who asks it.
 */
#pragma once

#include <stdint.h>

/* `display` is what DISPLAY has: ":0". GUARD_UNKNOWN where there is none, or it does not say. */
int64_t watch_x11_idle_ms(const char *display);
