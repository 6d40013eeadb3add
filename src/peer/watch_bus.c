#include "peer/watch_bus.h"

#include "base/library.h"
#include "peer/guard.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum { ANSWER_US = 700000 };

/* As in libsystemd's sd-bus.h, which is not needed to build. */
struct sd_bus;
struct sd_bus_message;

struct bus_library {
    int (*create)(struct sd_bus **out_bus);
    int (*set_address)(struct sd_bus *bus, const char *address);
    int (*set_bus_client)(struct sd_bus *bus, int is_client);
    int (*start)(struct sd_bus *bus);
    struct sd_bus *(*close_unref)(struct sd_bus *bus);
    int (*new_call)(struct sd_bus *bus, struct sd_bus_message **out_message,
                    const char *destination, const char *path, const char *interface,
                    const char *member);
    int (*set_auto_start)(struct sd_bus_message *message, int is_wanted);
    int (*append)(struct sd_bus_message *message, const char *types, ...);
    int (*call)(struct sd_bus *bus, struct sd_bus_message *message, uint64_t timeout_us,
                void *error, struct sd_bus_message **out_answer);
    int (*read)(struct sd_bus_message *message, const char *types, ...);
    struct sd_bus_message *(*unref)(struct sd_bus_message *message);
};
static const char *const library_names[] = {
    "sd_bus_new",
    "sd_bus_set_address",
    "sd_bus_set_bus_client",
    "sd_bus_start",
    "sd_bus_close_unref",
    "sd_bus_message_new_method_call",
    "sd_bus_message_set_auto_start",
    "sd_bus_message_append",
    "sd_bus_call",
    "sd_bus_message_read",
    "sd_bus_message_unref",
};
enum { LIBRARY_NAMES = sizeof(library_names) / sizeof(*library_names) };
_Static_assert(LIBRARY_NAMES == sizeof(struct bus_library) / sizeof(void *),
               "a name for each function");

struct property {
    const char *service, *path, *interface, *name;
    char type; /* b, u or t of D-Bus */
};

static int read_value(const struct bus_library *library, struct sd_bus_message *answer, char type,
                      int64_t *out_value)
{
    const char types[] = {type, '\0'};
    uint64_t number = 0;
    uint32_t small = 0;
    int truth = 0;
    void *value = type == 't' ? (void *)&number : type == 'u' ? (void *)&small : &truth;
    const int result = library->read(answer, "v", types, value);
    if (result < 0 || number > INT64_MAX)
        return -1;
    *out_value = type == 't' ? (int64_t)number : type == 'u' ? (int64_t)small : truth != 0;
    return 0;
}

static int64_t get(const struct bus_library *library, struct sd_bus *bus,
                   const struct property *property)
{
    struct sd_bus_message *question = NULL, *answer = NULL;
    int64_t value = GUARD_UNKNOWN;
    if (library->new_call(bus, &question, property->service, property->path,
                          "org.freedesktop.DBus.Properties", "Get") >= 0 &&
        library->set_auto_start(question, 0) >= 0 &&
        library->append(question, "ss", property->interface, property->name) >= 0 &&
        library->call(bus, question, ANSWER_US, NULL, &answer) >= 0 &&
        read_value(library, answer, property->type, &value) < 0)
        value = GUARD_UNKNOWN;
    library->unref(question); /* NULL is fine there */
    library->unref(answer);
    return value;
}

static void ask_all(const struct bus_library *library, struct sd_bus *bus,
                    struct watch_bus_values *values)
{
#define LOGIND "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager"
    static const struct property idle = {LOGIND, "IdleHint", 'b'};
    static const struct property since = {LOGIND, "IdleSinceHint", 't'};
    static const struct property lid = {LOGIND, "LidClosed", 'b'};
#undef LOGIND
    static const struct property metered = {"org.freedesktop.NetworkManager",
                                            "/org/freedesktop/NetworkManager",
                                            "org.freedesktop.NetworkManager", "Metered", 'u'};
    values->is_idle = get(library, bus, &idle);
    if (values->is_idle != GUARD_UNKNOWN) { /* somebody is there to be asked */
        values->idle_since_us = get(library, bus, &since);
        values->is_lid_closed = get(library, bus, &lid);
    }
    values->metered = get(library, bus, &metered);
}

void watch_bus_ask(const char *root, struct watch_bus_values *out_values)
{
    *out_values =
        (struct watch_bus_values){GUARD_UNKNOWN, GUARD_UNKNOWN, GUARD_UNKNOWN, GUARD_UNKNOWN};
    char address[PATH_MAX + 64];
    struct error error;
    struct sd_bus *bus = NULL;
    union {
        struct bus_library library;
        void *functions[LIBRARY_NAMES];
    } loaded;
    const struct bus_library *library = &loaded.library;
    snprintf(address, sizeof(address), "unix:path=%s/run/dbus/system_bus_socket", root);
    if (library_load("libsystemd.so.0", library_names, LIBRARY_NAMES, loaded.functions, &error) <
            0 ||
        library->create(&bus) < 0)
        return;
    if (library->set_address(bus, address) >= 0 && library->set_bus_client(bus, 1) >= 0 &&
        library->start(bus) >= 0)
        ask_all(library, bus, out_values);
    library->close_unref(bus);
}
