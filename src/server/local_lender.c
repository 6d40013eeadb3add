#include "server/local_lender.h"

#include "base/assert.h"
#include "base/file.h"
#include "base/json_schema.h"
#include "base/log.h"
#include "server/call.h"
#include "server/server_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CODE_MS = 15 * 60000,
    PAUSE_MIN_MS = 500,
    PAUSE_MAX_MS = 60000,
    GOOD_RUN_MS = 60000, /* a run this long starts the pauses from the shortest again */
    KILL_AFTER_MS = 15000,
    ENROLMENT_SIZE_MAX = 64 << 10,
};

struct local_lender {
    struct server *server;
    char state_dir[SERVER_PATH_SIZE];
    char program[SERVER_PATH_SIZE];
    struct loop_timer *start_timer;
    struct loop_timer *kill_timer;
    struct loop_child *child;
    pid_t pid; /* 0: not running */
    int64_t started_ns;
    int64_t pause_ms;
    bool is_stopping;
    void (*on_stopped)(void *context);
    void *context;
};

/* Without a code it is enlisted already. */
static void spawn_lender(struct local_lender *lender, const char *code);

/* ---- Its code -------------------------------------------------------------------------------- */

struct code_request {
    struct engine_request request;
    struct local_lender **lender; /* the server's: NULL when it is gone */
    char code[KEYS_TOKEN_SIZE];
};

static void code_added(struct engine_request *engine_request, const struct error *error)
{
    struct code_request *request = (struct code_request *)engine_request;
    struct local_lender *lender = *request->lender;
    if (lender && error) {
        log_event(LOG_WARN, "local_lender_waits", "error=\"%s\"", error->message);
        loop_timer_start(lender->start_timer, PAUSE_MAX_MS);
    } else if (lender) {
        spawn_lender(lender, request->code);
    }
    free(request);
}

static void ask_for_code(struct local_lender *lender)
{
    struct server *server = lender->server;
    struct code_request *request = calloc(1, sizeof(*request));
    ASSERT(request);
    request->lender = &server->lender;
    token_new("enrol", request->code);
    request->request.loop = server->loop;
    request->request.on_done = code_added;
    request->request.has_command = true;
    request->request.command = (struct command){
        .kind = COMMAND_ADD_CODE,
        .add_code = {.kind = CODE_KIND_ENROL,
                     .account = ACCOUNT_OPERATOR,
                     .expires_ms = clock_utc_ms(server->clock) + CODE_MS},
    };
    token_hash(text_of(request->code), request->request.command.add_code.hash);
    struct error error;
    if (engine_submit(server->engine, &request->request, true, &error) < 0)
        code_added(&request->request, &error);
}

/* ---- Whether it is enlisted ------------------------------------------------------------------ */

struct enrolled {
    uint64_t machine, generation;
};

static const struct json_field enrolled_fields[] = {
    {"machine", JSON_U64, offsetof(struct enrolled, machine), .is_required = true},
    {"generation", JSON_U64, offsetof(struct enrolled, generation), .is_required = true},
};
/* There is more in it, which is the lender's own. */
static const struct json_schema enrolled_schema =
    JSON_SCHEMA_LENIENT("enrolment", enrolled_fields, struct enrolled);

struct look_request {
    struct engine_request request;
    struct local_lender **lender; /* the server's: NULL when it is gone */
    struct enrolled enrolled;     /* as its enrolment says */
    bool is_known;
};

static int look(struct engine_request *engine_request, const struct core *core,
                struct store_batch *batch, struct error *error)
{
    struct look_request *request = (struct look_request *)engine_request;
    (void)batch;
    (void)error;
    const struct machine *machine = core_machine(core, request->enrolled.machine);
    request->is_known = machine && machine->generation == request->enrolled.generation;
    return 0;
}

static void looked(struct engine_request *engine_request, const struct error *error)
{
    struct look_request *request = (struct look_request *)engine_request;
    struct local_lender *lender = *request->lender;
    if (lender && error) {
        log_event(LOG_WARN, "local_lender_waits", "error=\"%s\"", error->message);
        loop_timer_start(lender->start_timer, PAUSE_MAX_MS);
    } else if (lender && request->is_known) {
        spawn_lender(lender, NULL);
    } else if (lender) {
        ask_for_code(lender);
    }
    free(request);
}

/* False when it has no enrolment. */
static bool read_enrolment(const struct local_lender *lender, struct enrolled *out_enrolled)
{
    char path[SERVER_PATH_SIZE + 32];
    struct error ignored; /* without one, it is enlisted anew */
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, ENROLMENT_SIZE_MAX);
    snprintf(path, sizeof(path), "%s/enrolment.json", lender->state_dir);
    AUTO(arena) struct arena *arena = arena_new(0);
    return file_read(path, &json, &ignored) == 0 &&
           json_read(arena, buffer_text(&json), &enrolled_schema, out_enrolled, &ignored) == 0;
}

/* Enlisting anew would end its leases: only what this market does not know has to. */
static void start(void *context)
{
    struct local_lender *lender = context;
    struct server *server = lender->server;
    struct look_request *request = calloc(1, sizeof(*request));
    ASSERT(request);
    if (!read_enrolment(lender, &request->enrolled)) {
        free(request);
        ask_for_code(lender);
        return;
    }
    request->lender = &server->lender;
    request->request.loop = server->loop;
    request->request.on_decided = look;
    request->request.on_done = looked;
    struct error error;
    if (engine_submit(server->engine, &request->request, true, &error) < 0)
        looked(&request->request, &error);
}

/* ---- The process ----------------------------------------------------------------------------- */

static void child_exited(void *context, const struct child_exit *exit)
{
    struct local_lender *lender = context;
    loop_child_free(lender->child);
    lender->child = NULL;
    lender->pid = 0;
    loop_timer_stop(lender->kill_timer);
    if (lender->is_stopping) {
        if (lender->on_stopped)
            lender->on_stopped(lender->context);
        return;
    }
    const int64_t ran_ms =
        (clock_monotonic_ns(lender->server->clock) - lender->started_ns) / 1000000;
    if (ran_ms > GOOD_RUN_MS)
        lender->pause_ms = PAUSE_MIN_MS;
    log_event(LOG_WARN, "local_lender_ended",
              "status=%d signal=%d ran_ms=%" PRId64 " again_in_ms=%" PRId64, exit->status,
              exit->signal, ran_ms, lender->pause_ms);
    loop_timer_start(lender->start_timer, lender->pause_ms);
    lender->pause_ms = 2 * lender->pause_ms < PAUSE_MAX_MS ? 2 * lender->pause_ms : PAUSE_MAX_MS;
}

/*
 * Only async-signal-safe calls: the market has threads. The market blocks the signals it waits for,
 * and its child must not inherit that; a group of its own keeps a Ctrl-C of the terminal from
 * reaching it before the market asks it to end; and it does not outlive a market that was killed,
 * though its leases do.
 */
_Noreturn static void run_child(const struct local_lender *lender, char *const *variables,
                                pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    if (getppid() == parent)
        execle(lender->program, lender->program, "lend", "--no-watch", "--state-dir",
               lender->state_dir, "--server", lender->server->local_url, "--name", "market",
               "--cores", "1", "--roles", "server", (char *)NULL, variables);
    _exit(127);
}

/* The code goes through the environment: arguments can be read by everyone on the machine. */
static pid_t start_process(struct local_lender *lender, const char *code)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char code_variable[sizeof("SOUK_LEND_CODE=") + KEYS_TOKEN_SIZE];
    char key_variable[sizeof("SOUK_FINGERPRINT=") + KEYS_FINGERPRINT_SIZE];
    snprintf(code_variable, sizeof(code_variable), "SOUK_LEND_CODE=%s", code ? code : "");
    snprintf(key_variable, sizeof(key_variable), "SOUK_FINGERPRINT=%s",
             keys_fingerprint(lender->server->keys));
    char **variables = calloc(count + 3, sizeof(*variables));
    ASSERT(variables);
    memcpy(variables, environ, count * sizeof(*variables));
    if (code)
        variables[count++] = code_variable;
    /* Plain HTTP on loopback has no key to pin. */
    if (text_starts_with(text_of(lender->server->local_url), TEXT("https://")))
        variables[count++] = key_variable;
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0)
        run_child(lender, variables, parent);
    free(variables);
    return pid;
}

static void spawn_lender(struct local_lender *lender, const char *code)
{
    if (lender->is_stopping || lender->pid)
        return;
    struct error error;
    const pid_t pid = start_process(lender, code);
    if (pid < 0) {
        error_set_errno(&error, errno, "start \"%s\"", lender->program);
        log_event(LOG_ERROR, "local_lender_failed", "error=\"%s\"", error.message);
        loop_timer_start(lender->start_timer, PAUSE_MAX_MS);
        return;
    }
    lender->pid = pid;
    lender->started_ns = clock_monotonic_ns(lender->server->clock);
    if (loop_child_open(lender->server->loop, pid, child_exited, lender, &lender->child, &error) <
        0)
        log_event(LOG_ERROR, "local_lender_unwatched", "error=\"%s\"", error.message);
    log_event(LOG_INFO, "local_lender_started", "pid=%d", (int)pid);
}

static void kill_it(void *context)
{
    struct local_lender *lender = context;
    if (lender->pid)
        kill(lender->pid, SIGKILL);
}

struct local_lender *local_lender_new(struct server *server)
{
    struct local_lender *lender = calloc(1, sizeof(*lender));
    ASSERT(lender);
    lender->server = server;
    lender->pause_ms = PAUSE_MIN_MS;
    snprintf(lender->state_dir, sizeof(lender->state_dir), "%s/lender", server->options.data_dir);
    const char *program = server->options.program;
    if (program)
        snprintf(lender->program, sizeof(lender->program), "%s", program);
    else if (readlink("/proc/self/exe", lender->program, sizeof(lender->program) - 1) < 0)
        snprintf(lender->program, sizeof(lender->program), "/proc/self/exe");
    lender->start_timer = loop_timer_new(server->loop, start, lender);
    lender->kill_timer = loop_timer_new(server->loop, kill_it, lender);
    loop_timer_start(lender->start_timer, 0);
    return lender;
}

void local_lender_stop(struct local_lender *lender, bool stops_leases,
                       void (*on_stopped)(void *context), void *context)
{
    lender->is_stopping = true;
    lender->on_stopped = on_stopped;
    lender->context = context;
    loop_timer_stop(lender->start_timer);
    if (!lender->pid) {
        on_stopped(context);
        return;
    }
    kill(lender->pid, stops_leases ? SIGTERM : SIGUSR1);
    loop_timer_start(lender->kill_timer, KILL_AFTER_MS);
}

void local_lender_free(struct local_lender *lender)
{
    if (!lender)
        return;
    kill_it(lender);
    loop_child_free(lender->child);
    loop_timer_free(lender->start_timer);
    loop_timer_free(lender->kill_timer);
    free(lender);
}
