#include "peer/watch_x11.h"

#include "base/library.h"
#include "peer/guard.h"

#include <stdlib.h>

/* As in libxcb's headers, which are not needed to build. */
struct connection;
struct screen {
    uint32_t root; /* and more */
};
struct screen_iterator {
    struct screen *data;
    int rem, index;
};
struct cookie {
    unsigned sequence;
};
struct saver_info {
    uint8_t response_type, state;
    uint16_t sequence;
    uint32_t length;
    uint32_t saver_window;
    uint32_t ms_until_server;
    uint32_t ms_since_user_input; /* and more */
};

struct x11_library {
    struct connection *(*connect)(const char *display, int *out_screen);
    int (*has_error)(struct connection *connection);
    const void *(*get_setup)(struct connection *connection);
    struct screen_iterator (*roots)(const void *setup);
    void (*disconnect)(struct connection *connection);
};
static const char *const x11_names[] = {"xcb_connect", "xcb_connection_has_error", "xcb_get_setup",
                                        "xcb_setup_roots_iterator", "xcb_disconnect"};
enum { X11_NAMES = sizeof(x11_names) / sizeof(*x11_names) };
_Static_assert(X11_NAMES == sizeof(struct x11_library) / sizeof(void *), "a name for each");

struct saver_library {
    struct cookie (*query)(struct connection *connection, uint32_t drawable);
    struct saver_info *(*reply)(struct connection *connection, struct cookie cookie,
                                void **out_error);
};
static const char *const saver_names[] = {"xcb_screensaver_query_info",
                                          "xcb_screensaver_query_info_reply"};
enum { SAVER_NAMES = sizeof(saver_names) / sizeof(*saver_names) };
_Static_assert(SAVER_NAMES == sizeof(struct saver_library) / sizeof(void *), "a name for each");

static int64_t ask(const struct x11_library *x11, const struct saver_library *saver,
                   struct connection *connection)
{
    if (x11->has_error(connection))
        return GUARD_UNKNOWN;
    const struct screen_iterator roots = x11->roots(x11->get_setup(connection));
    if (roots.rem < 1)
        return GUARD_UNKNOWN;
    void *refusal = NULL;
    struct saver_info *info =
        saver->reply(connection, saver->query(connection, roots.data->root), &refusal);
    const int64_t idle_ms = info ? (int64_t)info->ms_since_user_input : GUARD_UNKNOWN;
    free(refusal);
    free(info);
    return idle_ms;
}

int64_t watch_x11_idle_ms(const char *display)
{
    struct error error;
    union {
        struct x11_library library;
        void *functions[X11_NAMES];
    } x11;
    union {
        struct saver_library library;
        void *functions[SAVER_NAMES];
    } saver;
    if (library_load("libxcb.so.1", x11_names, X11_NAMES, x11.functions, &error) < 0 ||
        library_load("libxcb-screensaver.so.0", saver_names, SAVER_NAMES, saver.functions, &error) <
            0)
        return GUARD_UNKNOWN;
    struct connection *connection = x11.library.connect(display, NULL);
    const int64_t idle_ms = ask(&x11.library, &saver.library, connection);
    x11.library.disconnect(connection);
    return idle_ms;
}
