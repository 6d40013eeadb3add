#include "peer/watch_bus.h"

#include "base/assert.h"
#include "base/library.h"
#include "base/log.h"
#include "peer/guard.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    QUESTION_MS = 5000, /* a service that does not answer for so long is not there */
    RETRY_MS = 60000,
    STEPS_MAX = 64, /* of one look */
};

/* As in libsystemd's sd-bus.h, which is not needed to build. */
struct sd_bus;
struct sd_bus_message;
typedef int bus_handler(struct sd_bus_message *message, void *context, void *error);

struct bus_library {
    int (*create)(struct sd_bus **out_bus);
    int (*set_address)(struct sd_bus *bus, const char *address);
    int (*set_bus_client)(struct sd_bus *bus, int is_client);
    int (*start)(struct sd_bus *bus);
    int (*process)(struct sd_bus *bus, struct sd_bus_message **out_message);
    int (*is_ready)(struct sd_bus *bus);
    struct sd_bus *(*close_unref)(struct sd_bus *bus);
    int (*new_call)(struct sd_bus *bus, struct sd_bus_message **out_message,
                    const char *destination, const char *path, const char *interface,
                    const char *member);
    int (*set_auto_start)(struct sd_bus_message *message, int is_wanted);
    int (*append)(struct sd_bus_message *message, const char *types, ...);
    int (*call_async)(struct sd_bus *bus, void **out_slot, struct sd_bus_message *message,
                      bus_handler *callback, void *context, uint64_t timeout_us);
    struct sd_bus_message *(*unref)(struct sd_bus_message *message);
    int (*is_error)(struct sd_bus_message *message, const char *name);
    int (*read)(struct sd_bus_message *message, const char *types, ...);
};
static const char *const library_names[] = {
    "sd_bus_new",
    "sd_bus_set_address",
    "sd_bus_set_bus_client",
    "sd_bus_start",
    "sd_bus_process",
    "sd_bus_is_ready",
    "sd_bus_close_unref",
    "sd_bus_message_new_method_call",
    "sd_bus_message_set_auto_start",
    "sd_bus_message_append",
    "sd_bus_call_async",
    "sd_bus_message_unref",
    "sd_bus_message_is_method_error",
    "sd_bus_message_read",
};
enum { LIBRARY_NAMES = sizeof(library_names) / sizeof(*library_names) };
_Static_assert(LIBRARY_NAMES == sizeof(struct bus_library) / sizeof(void *),
               "a name for each function");

/* ---- The questions --------------------------------------------------------------------------- */

enum property { IDLE_HINT, IDLE_SINCE, LID_CLOSED, METERED, PROPERTY_COUNT };

static const struct {
    const char *service, *path, *interface, *name;
    char type; /* b, u or t of D-Bus */
} properties[PROPERTY_COUNT] = {
#define LOGIND "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager"
    [IDLE_HINT] = {LOGIND, "IdleHint", 'b'},
    [IDLE_SINCE] = {LOGIND, "IdleSinceHint", 't'},
    [LID_CLOSED] = {LOGIND, "LidClosed", 'b'},
    [METERED] = {"org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager",
                 "org.freedesktop.NetworkManager", "Metered", 'u'},
#undef LOGIND
};

/* One property, as it was told last. */
struct question {
    struct watch_bus *watch;
    enum property property;
    bool is_asked;
    bool is_known;
    uint64_t value;
};

struct watch_bus {
    const char *root;
    struct bus_library library;
    bool is_loaded;
    struct sd_bus *bus;
    int64_t refused_ns; /* when it could not be reached, or broke; 0: never */
    struct question questions[PROPERTY_COUNT];
    bool has_been_idle; /* somebody sets the idle hint: it can be believed */
};

static int on_answer(struct sd_bus_message *message, void *context, void *error)
{
    struct question *question = context;
    const struct bus_library *library = &question->watch->library;
    const char type[] = {properties[question->property].type, '\0'};
    uint64_t number = 0;
    uint32_t small = 0;
    int truth = 0, result = -1;
    (void)error;
    question->is_asked = false;
    if (library->is_error(message, NULL) == 0) {
        void *value = type[0] == 't' ? (void *)&number : type[0] == 'u' ? (void *)&small : &truth;
        result = library->read(message, "v", type, value);
    }
    question->is_known = result >= 0;
    question->value = type[0] == 't' ? number : type[0] == 'u' ? small : (uint64_t)(truth != 0);
    return 0;
}

static int ask(struct watch_bus *watch, struct question *question)
{
    const struct bus_library *library = &watch->library;
    struct sd_bus_message *message = NULL;
    int result = library->new_call(watch->bus, &message, properties[question->property].service,
                                   properties[question->property].path,
                                   "org.freedesktop.DBus.Properties", "Get");
    if (result >= 0)
        result = library->set_auto_start(message, 0);
    if (result >= 0)
        result = library->append(message, "ss", properties[question->property].interface,
                                 properties[question->property].name);
    if (result >= 0)
        result = library->call_async(watch->bus, NULL, message, on_answer, question,
                                     QUESTION_MS * UINT64_C(1000));
    question->is_asked = result >= 0;
    if (message)
        library->unref(message);
    return result;
}

/* ---- The bus --------------------------------------------------------------------------------- */

static void bus_close(struct watch_bus *watch, int64_t now_ns)
{
    if (watch->bus)
        watch->library.close_unref(watch->bus);
    watch->bus = NULL;
    watch->refused_ns = now_ns;
    for (size_t i = 0; i < PROPERTY_COUNT; i++)
        watch->questions[i] = (struct question){.watch = watch, .property = (enum property)i};
}

static int bus_connect(struct watch_bus *watch, const char *path)
{
    const struct bus_library *library = &watch->library;
    char address[PATH_MAX + 16];
    snprintf(address, sizeof(address), "unix:path=%s", path);
    int result = library->create(&watch->bus);
    if (result >= 0)
        result = library->set_address(watch->bus, address);
    if (result >= 0)
        result = library->set_bus_client(watch->bus, 1);
    return result >= 0 ? library->start(watch->bus) : result;
}

static bool bus_open(struct watch_bus *watch, int64_t now_ns)
{
    char path[PATH_MAX];
    struct error error;
    if (watch->bus)
        return true;
    if (watch->refused_ns && now_ns - watch->refused_ns < RETRY_MS * INT64_C(1000000))
        return false;
    const int size = snprintf(path, sizeof(path), "%s/run/dbus/system_bus_socket", watch->root);
    if (size >= (int)sizeof(path) || access(path, W_OK) < 0)
        return false;
    union {
        struct bus_library library;
        void *functions[LIBRARY_NAMES];
    } loaded;
    if (!watch->is_loaded) {
        watch->refused_ns = now_ns;
        if (library_load("libsystemd.so.0", library_names, LIBRARY_NAMES, loaded.functions,
                         &error) < 0) {
            log_event(LOG_INFO, "bus_not_watched", "error=\"%s\"", error.message);
            return false;
        }
        watch->library = loaded.library;
        watch->is_loaded = true;
    }
    if (bus_connect(watch, path) >= 0)
        return true;
    bus_close(watch, now_ns);
    return false;
}

/* Takes what came, and asks anew what was answered. */
static int bus_turn(struct watch_bus *watch)
{
    int result = 1;
    for (int i = 0; result > 0 && i < STEPS_MAX; i++)
        result = watch->library.process(watch->bus, NULL);
    if (result < 0 || (result = watch->library.is_ready(watch->bus)) <= 0)
        return result;
    for (size_t i = 0; result >= 0 && i < PROPERTY_COUNT; i++)
        if (!watch->questions[i].is_asked)
            result = ask(watch, &watch->questions[i]);
    while (result > 0) /* sends what is queued, as far as the socket takes it */
        result = watch->library.process(watch->bus, NULL);
    return result;
}

/* ---- What it means --------------------------------------------------------------------------- */

/*
 * A desktop that sets the hint when nobody is active is believed when it takes it back. Many never
 * do: their hint stays false from the session's start, and only that start was an activity.
 */
static int64_t idle_ms(struct watch_bus *watch, int64_t utc_ms)
{
    const struct question *hint = &watch->questions[IDLE_HINT];
    const struct question *since = &watch->questions[IDLE_SINCE];
    if (!hint->is_known || !since->is_known)
        return GUARD_UNKNOWN;
    watch->has_been_idle |= hint->value != 0;
    if (!hint->value && watch->has_been_idle)
        return 0;
    const int64_t since_ms = (int64_t)(since->value / 1000);
    if (since_ms <= 0)
        return GUARD_UNKNOWN;
    return utc_ms > since_ms ? utc_ms - since_ms : 0;
}

static int64_t known(const struct question *question)
{
    return question->is_known ? (int64_t)question->value : GUARD_UNKNOWN;
}

void watch_bus_read(struct watch_bus *watch, int64_t now_ns, int64_t utc_ms,
                    struct watch_bus_readings *out_readings)
{
    if (bus_open(watch, now_ns) && bus_turn(watch) < 0)
        bus_close(watch, now_ns); /* it is tried again in a while */
    const int64_t metered = known(&watch->questions[METERED]);
    *out_readings = (struct watch_bus_readings){
        .input_idle_ms = idle_ms(watch, utc_ms),
        .is_lid_closed = known(&watch->questions[LID_CLOSED]),
        /* 1: yes, 2: no, 3: guessed so, 4: guessed not, 0: not known */
        .is_metered = metered <= 0 ? GUARD_UNKNOWN : metered == 1 || metered == 3,
    };
}

const char *watch_bus_describe(const struct watch_bus *watch)
{
    const bool has_logind = watch->questions[IDLE_HINT].is_known;
    if (has_logind && watch->questions[METERED].is_known)
        return "logind, NetworkManager";
    if (has_logind)
        return "logind; no NetworkManager";
    return watch->questions[METERED].is_known ? "NetworkManager; no logind" : "missing";
}

struct watch_bus *watch_bus_new(const char *root)
{
    struct watch_bus *watch = calloc(1, sizeof(*watch));
    ASSERT(watch);
    watch->root = root;
    bus_close(watch, 0);
    return watch;
}

void watch_bus_free(struct watch_bus *watch)
{
    if (!watch)
        return;
    bus_close(watch, 0);
    free(watch);
}
