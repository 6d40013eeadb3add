#include "peer/watch_desktop.h"

#include "base/assert.h"
#include "base/log.h"
#include "peer/watch.h"
#include "peer/watch_bus.h"
#include "peer/watch_x11.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ASK_MS_MAX = 5000 }; /* a process that takes longer is ended */

/* As it comes through the pipe: the bus first, since a display may hang. */
struct answer {
    struct watch_bus_values bus;
    int64_t x11_idle_ms;
};
static const struct answer nobody = {{GUARD_UNKNOWN, GUARD_UNKNOWN, GUARD_UNKNOWN, GUARD_UNKNOWN},
                                     GUARD_UNKNOWN};

struct watch_desktop {
    struct loop *loop;
    const char *root;
    const char *display;
    struct answer answer;
    bool has_been_idle; /* somebody sets the idle hint: it can be believed */
    bool has_asked;
    int64_t asked_ns;
    pid_t pid; /* of the one that asks; 0: none */
    struct loop_child *child;
    int answer_fd; /* it writes the values there */
};

struct watch_desktop *watch_desktop_new(struct loop *loop, const char *root, const char *display)
{
    struct watch_desktop *watch = calloc(1, sizeof(*watch));
    ASSERT(watch);
    watch->loop = loop;
    watch->root = root;
    watch->display = display;
    watch->answer = nobody;
    watch->answer_fd = -1;
    return watch;
}

static void forget_child(struct watch_desktop *watch)
{
    loop_child_free(TAKE(watch->child));
    if (watch->answer_fd >= 0)
        close(TAKE_FD(watch->answer_fd));
    watch->pid = 0;
}

void watch_desktop_free(struct watch_desktop *watch)
{
    if (!watch)
        return;
    if (watch->pid > 0)
        kill(watch->pid, SIGKILL);
    forget_child(watch);
    free(watch);
}

/* One that was ended has written what it knew. */
static void take_answer(struct watch_desktop *watch)
{
    struct answer answer = nobody;
    watch->answer = nobody;
    if (read(watch->answer_fd, &answer, sizeof(answer)) >= (ssize_t)sizeof(answer.bus))
        watch->answer = answer;
    forget_child(watch);
}

static void on_child(void *context, const struct child_exit *exit)
{
    (void)exit;
    take_answer(context);
}

static bool has_bus(const char *root)
{
    char path[PATH_MAX];
    const int size = snprintf(path, sizeof(path), "%s/run/dbus/system_bus_socket", root);
    return size < (int)sizeof(path) && access(path, W_OK) == 0;
}

/* Nothing of the daemon's is kept open meanwhile, its lock least of all. The pipe takes the few
 * bytes at once. */
static _Noreturn void become_asker(const struct watch_desktop *watch, int fd)
{
    enum { ANSWER_FD = STDERR_FILENO + 1 };
    struct answer answer = nobody;
    if (fd != ANSWER_FD && dup2(fd, ANSWER_FD) < 0)
        _exit(1);
    closefrom(ANSWER_FD + 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(ASK_MS_MAX / 1000);
    if (has_bus(watch->root))
        watch_bus_ask(watch->root, &answer.bus);
    if (write(ANSWER_FD, &answer.bus, sizeof(answer.bus)) < 0)
        _exit(1);
    if (watch->display)
        answer.x11_idle_ms = watch_x11_idle_ms(watch->display);
    const ssize_t size = write(ANSWER_FD, &answer.x11_idle_ms, sizeof(answer.x11_idle_ms));
    _exit(size == sizeof(answer.x11_idle_ms) ? 0 : 1);
}

static int start_asker(struct watch_desktop *watch, struct error *error)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_set_errno(error, errno, "make a pipe");
    AUTO_FD int write_fd = fds[1];
    watch->answer_fd = fds[0];
    const pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(error, errno, "start a process");
    if (pid == 0)
        become_asker(watch, write_fd);
    watch->pid = pid;
    return 0;
}

static int start_child(struct watch_desktop *watch, struct error *error)
{
    if (start_asker(watch, error) < 0)
        return -1;
    return loop_child_open(watch->loop, watch->pid, on_child, watch, &watch->child, error);
}

static void ask(struct watch_desktop *watch, int64_t now_ns)
{
    struct error error;
    watch->has_asked = true;
    watch->asked_ns = now_ns;
    if (!has_bus(watch->root) && !watch->display) {
        watch->answer = nobody;
        return;
    }
    if (start_child(watch, &error) == 0)
        return;
    log_event(LOG_WARN, "desktop_not_watched", "error=\"%s\"", error.message);
    forget_child(watch);
}

/*
 * A desktop that sets the hint when nobody is active is believed when it takes it back. Many never
 * do: their hint stays false from the session's start, and only that start was an activity.
 */
static int64_t idle_ms(struct watch_desktop *watch, int64_t utc_ms)
{
    const struct watch_bus_values *values = &watch->answer.bus;
    if (values->is_idle == GUARD_UNKNOWN || values->idle_since_us == GUARD_UNKNOWN)
        return GUARD_UNKNOWN;
    watch->has_been_idle |= values->is_idle != 0;
    if (!values->is_idle && watch->has_been_idle)
        return 0;
    const int64_t since_ms = values->idle_since_us / 1000;
    if (since_ms <= 0)
        return GUARD_UNKNOWN;
    return utc_ms > since_ms ? utc_ms - since_ms : 0;
}

/* It grows until the display is asked again. */
static int64_t x11_idle_ms(const struct watch_desktop *watch, int64_t now_ns)
{
    if (watch->answer.x11_idle_ms == GUARD_UNKNOWN)
        return GUARD_UNKNOWN;
    return watch->answer.x11_idle_ms + (now_ns - watch->asked_ns) / 1000000;
}

void watch_desktop_read(struct watch_desktop *watch, int64_t now_ns, int64_t utc_ms,
                        int64_t period_ms, struct watch_desktop_readings *out_readings)
{
    const int64_t passed_ms = (now_ns - watch->asked_ns) / 1000000;
    if (watch->pid == 0 && (!watch->has_asked || passed_ms >= period_ms))
        ask(watch, now_ns);
    const int64_t metered = watch->answer.bus.metered;
    *out_readings = (struct watch_desktop_readings){
        .input_idle_ms = watch_shortest_ms(idle_ms(watch, utc_ms), x11_idle_ms(watch, now_ns)),
        .is_lid_closed = watch->answer.bus.is_lid_closed,
        .is_metered = metered <= 0 ? GUARD_UNKNOWN : metered == 1 || metered == 3,
    };
}

static const char *describe(const struct answer *answer, char out[WATCH_DESKTOP_WORDS_SIZE])
{
    const struct {
        bool is_there;
        const char *name;
    } services[] = {{answer->bus.is_idle != GUARD_UNKNOWN, "logind"},
                    {answer->bus.metered != GUARD_UNKNOWN, "NetworkManager"},
                    {answer->x11_idle_ms != GUARD_UNKNOWN, "X display"}};
    int size = 0;
    for (size_t i = 0; i < sizeof(services) / sizeof(*services); i++)
        if (services[i].is_there)
            size += snprintf(out + size, (size_t)(WATCH_DESKTOP_WORDS_SIZE - size), "%s%s",
                             size ? ", " : "", services[i].name);
    if (size == 0)
        snprintf(out, WATCH_DESKTOP_WORDS_SIZE, "none");
    return out;
}

const char *watch_desktop_describe(const struct watch_desktop *watch,
                                   char out[WATCH_DESKTOP_WORDS_SIZE])
{
    return describe(&watch->answer, out);
}

const char *watch_desktop_probe(const char *root, const char *display,
                                char out[WATCH_DESKTOP_WORDS_SIZE])
{
    struct watch_desktop watch = {
        .root = root, .display = display, .answer = nobody, .answer_fd = -1};
    struct error error;
    if (!has_bus(root) && !display)
        return describe(&nobody, out);
    if (start_asker(&watch, &error) < 0) {
        log_event(LOG_WARN, "desktop_not_watched", "error=\"%s\"", error.message);
        forget_child(&watch);
        return describe(&nobody, out);
    }
    /* It ends itself in time. */
    while (waitpid(watch.pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    take_answer(&watch);
    return describe(&watch.answer, out);
}
