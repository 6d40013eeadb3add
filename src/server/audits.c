#include "server/audits.h"

#include "base/assert.h"
#include "base/log.h"
#include "server/server_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPORT_SIZE_MAX = 64 << 10, PRIORITY = 10 };

enum state { STATE_NONE, STATE_RUNNING, STATE_DONE, STATE_FAILED };

struct audits {
    struct server *server;
    enum state state;
    int64_t started_ms, ended_ms;
    pid_t pid; /* 0: none runs */
    struct loop_child *child;
    int report_fd;        /* what it prints */
    struct buffer report; /* JSON, of the last one that ended well */
};

struct audits *audits_new(struct server *server)
{
    struct audits *audits = calloc(1, sizeof(*audits));
    ASSERT(audits);
    audits->server = server;
    audits->report_fd = -1;
    buffer_init(&audits->report, REPORT_SIZE_MAX);
    return audits;
}

static void end_process(struct audits *audits)
{
    loop_child_free(audits->child);
    audits->child = NULL;
    if (audits->pid > 0) {
        kill(audits->pid, SIGKILL);
        while (waitpid(audits->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    audits->pid = 0;
    if (audits->report_fd >= 0)
        close(audits->report_fd);
    audits->report_fd = -1;
}

void audits_free(struct audits *audits)
{
    if (!audits)
        return;
    end_process(audits);
    buffer_done(&audits->report);
    free(audits);
}

/* ---- The process ----------------------------------------------------------------------------- */

static int read_report(struct audits *audits, struct error *error)
{
    char piece[4096];
    buffer_clear(&audits->report);
    if (lseek(audits->report_fd, 0, SEEK_SET) < 0)
        return error_set_errno(error, errno, "read the report");
    for (ssize_t size; (size = read(audits->report_fd, piece, sizeof(piece))) != 0;) {
        if (size < 0)
            return error_set_errno(error, errno, "read the report");
        buffer_append(&audits->report, piece, (size_t)size);
    }
    if (buffer_check(&audits->report, error) < 0)
        return -1;
    const struct text text = text_trim(buffer_text(&audits->report));
    if (text.size < 2 || text.data[0] != '{' || text.data[text.size - 1] != '}')
        return error_set(error, ERROR_CORRUPT, "it printed no report");
    return 0;
}

/* 0: the books are sound; 1: they are not, and the report says why. Else it could not be done. */
static void audit_ended(void *context, const struct child_exit *exit)
{
    struct audits *audits = context;
    struct error error;
    loop_child_free(audits->child);
    audits->child = NULL;
    audits->pid = 0;
    audits->ended_ms = clock_utc_ms(audits->server->clock);
    const bool is_done = exit->signal == 0 && exit->status <= 1;
    if (!is_done)
        error_set(&error, ERROR_UNAVAILABLE, "it ended with status %d, signal %d", exit->status,
                  exit->signal);
    audits->state = is_done && read_report(audits, &error) == 0 ? STATE_DONE : STATE_FAILED;
    close(audits->report_fd);
    audits->report_fd = -1;
    if (audits->state == STATE_DONE)
        log_event(LOG_INFO, "audit_ended", "sound=%d ms=%" PRId64, exit->status == 0,
                  audits->ended_ms - audits->started_ms);
    else
        log_event(LOG_WARN, "audit_failed", "error=\"%s\"", error.message);
}

/* The market blocks the signals it waits for; its child must not inherit that. */
static int spawn(struct audits *audits, struct error *error)
{
    const struct server_options *options = &audits->server->options;
    char command[] = "souk", audit[] = "audit", data[] = "--data", json[] = "--json";
    char folder[SERVER_PATH_SIZE];
    char *const arguments[] = {command, audit, data, folder, json, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    snprintf(folder, sizeof(folder), "%s", options->data_dir);
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, audits->report_fd, STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    const int result =
        posix_spawn(&audits->pid, options->program ? options->program : "/proc/self/exe", &actions,
                    &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (result) {
        audits->pid = 0;
        return error_set_errno(error, result, "start souk audit");
    }
    setpriority(PRIO_PROCESS, (id_t)audits->pid, PRIORITY); /* it may fail: the market goes first */
    return loop_child_open(audits->server->loop, audits->pid, audit_ended, audits, &audits->child,
                           error);
}

int audits_start(struct audits *audits, struct error *error)
{
    if (audits->state == STATE_RUNNING)
        return 0;
    audits->report_fd = memfd_create("audit", MFD_CLOEXEC);
    if (audits->report_fd < 0)
        return error_set_errno(error, errno, "make room for the report");
    if (spawn(audits, error) < 0) {
        end_process(audits);
        return -1;
    }
    audits->state = STATE_RUNNING;
    audits->started_ms = clock_utc_ms(audits->server->clock);
    audits->ended_ms = 0;
    return 0;
}

void audits_write(const struct audits *audits, struct json_writer *writer)
{
    static const char *const names[] = {"none", "running", "done", "failed"};
    json_object_begin(writer);
    json_field_string(writer, "state", names[audits->state]);
    json_field_i64(writer, "started_ms", audits->started_ms);
    json_field_i64(writer, "ended_ms", audits->ended_ms);
    json_key(writer, "report");
    if (audits->state == STATE_DONE)
        json_raw(writer, text_trim(buffer_text(&audits->report)));
    else
        json_null(writer);
    json_object_end(writer);
}
