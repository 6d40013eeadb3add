#include "function/host.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/memory.h"
#include "function/instance.h"
#include "function/instance_message.h"
#include "function/work.h"
#include "sandbox/sandbox.h"
#include "source/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PIDS_MAX = 16,
    CPU_START_MILLI = 1000,
    ENVIRONMENT_MAX = 16,
    MARKET_URL_SIZE = 512,
};

/* A call under way. */
struct host_call {
    char id[HOST_ID_SIZE];
    host_function *callback;
    void *context;
    int64_t begun_ns;
    bool is_cold;
};

struct instance {
    struct host *host;
    struct instance *next;
    uint64_t number;
    uint32_t memory_mb;
    struct sandbox *sandbox;
    int fd;
    struct loop_watch *watch, *exit_watch;
    struct loop_timer *timer; /* of its start, its call or its idleness */
    struct loop_timer *pace_timer;
    struct buffer bytes;
    int64_t started_ns, ready_ns; /* ready_ns 0: it is starting */
    bool is_busy, is_ending;
    struct host_call call;
    const char *end_type; /* why it is killed, for the call that is lost by it */
    char end_reason[160];
};

struct host {
    struct host_options options;
    struct remote_credentials credentials;
    char market_server[MARKET_URL_SIZE], market_fingerprint[MARKET_URL_SIZE]; /* "": none */
    char name[SANDBOX_NAME_MAX - 24];
    char store[PATH_MAX - 32], updates[PATH_MAX];
    int64_t share_milli; /* of what an instance has of a core */
    bool is_idle;
    struct instance *instances;
    uint32_t instance_count, busy_count;
    uint64_t instance_number;
};

static int64_t now_ns(const struct host *host)
{
    return clock_monotonic_ns(loop_clock(host->options.loop));
}

/* ---- The end of a call ----------------------------------------------------------------------- */

static void call_end(struct instance *instance, struct text payload, bool is_failed)
{
    struct host *host = instance->host;
    const struct host_call call = instance->call;
    struct sandbox_usage usage = {0};
    const int64_t ended_ns = now_ns(host);
    ASSERT(instance->is_busy);
    const int64_t ready_ns = instance->ready_ns ? instance->ready_ns : ended_ns;
    const int64_t from_ns = call.is_cold ? ready_ns : call.begun_ns;
    if (instance->sandbox)
        sandbox_read_usage(instance->sandbox, &usage);
    struct host_result result = {
        .id = call.id,
        .payload = payload,
        .is_failed = is_failed,
        .is_cold = call.is_cold,
        .start_us = call.is_cold ? (ready_ns - instance->started_ns) / 1000 : 0,
        .duration_us = (ended_ns - from_ns) / 1000,
        .memory_mb = instance->memory_mb,
        .memory_peak_bytes = usage.memory_peak_bytes,
    };
    result.billed_ms = (result.start_us + result.duration_us + 999) / 1000;
    instance->is_busy = false;
    host->busy_count--;
    call.callback(call.context, &result);
}

static void call_fail(struct instance *instance, const char *type, const char *words)
{
    struct buffer json AUTO_BUFFER;
    struct json_writer writer;
    char message[256];
    snprintf(message, sizeof(message), "RequestId: %s Error: %s", instance->call.id, words);
    buffer_init(&json, 4096);
    json_writer_init(&writer, &json);
    json_object_begin(&writer);
    json_field_string(&writer, "errorType", type);
    json_field_string(&writer, "errorMessage", message);
    json_object_end(&writer);
    call_end(instance, buffer_text(&json), /* is_failed= */ true);
}

/* ---- The life of an instance ----------------------------------------------------------------- */

static void instance_free(struct instance *instance)
{
    loop_watch_free(instance->watch);
    loop_watch_free(instance->exit_watch);
    loop_timer_free(instance->timer);
    loop_timer_free(instance->pace_timer);
    if (instance->fd >= 0)
        close(instance->fd);
    sandbox_free(instance->sandbox);
    buffer_done(&instance->bytes);
    free(instance);
}

static void instance_remove(struct instance *instance)
{
    struct host *host = instance->host;
    struct instance **place = &host->instances;
    while (*place != instance)
        place = &(*place)->next;
    *place = instance->next;
    host->instance_count--;
    instance_free(instance);
}

/* Kills it; what became of it is told when it is gone. */
static void instance_end(struct instance *instance, const char *type, const char *reason)
{
    if (instance->is_ending)
        return;
    instance->is_ending = true;
    instance->end_type = type;
    snprintf(instance->end_reason, sizeof(instance->end_reason), "%.150s", reason);
    loop_timer_stop(instance->timer);
    loop_watch_free(TAKE(instance->watch));
    sandbox_kill(instance->sandbox);
}

static void on_gone(void *context, uint32_t events)
{
    struct instance *instance = context;
    struct sandbox_exit exit;
    (void)events;
    if (!sandbox_reap(instance->sandbox, &exit))
        return;
    if (instance->is_busy && exit.is_out_of_memory) {
        call_fail(instance, "Runtime.OutOfMemory", "Runtime exited: out of memory");
    } else if (instance->is_busy && instance->is_ending) {
        call_fail(instance, instance->end_type, instance->end_reason);
    } else if (instance->is_busy) {
        char words[80];
        snprintf(words, sizeof(words), "Runtime exited with error: exit status %d", exit.code);
        call_fail(instance, "Runtime.ExitError", words);
    }
    instance_remove(instance);
}

/* Its call, its start or its idleness took too long. */
static void on_timer(void *context)
{
    struct instance *instance = context;
    char words[96];
    if (!instance->ready_ns) {
        instance_end(instance, "Runtime.InitError", "the instance did not start in time");
    } else if (instance->is_busy) {
        snprintf(words, sizeof(words), "Task timed out after %.2f seconds",
                 (double)host_time_ms(instance->host) / 1000);
        instance_end(instance, "Sandbox.Timedout", words);
    } else {
        instance_end(instance, "", "");
    }
}

static void on_pace(void *context)
{
    struct instance *instance = context;
    const int64_t wait_ms = sandbox_pace(instance->sandbox, now_ns(instance->host));
    if (wait_ms >= 0)
        loop_timer_start(instance->pace_timer, wait_ms);
}

/* Idle, it waits for the next call, or ends where it is of another size than is wanted now. */
static void instance_rest(struct instance *instance)
{
    if (instance->memory_mb != instance->host->options.memory_mb)
        instance_end(instance, "", "");
    else
        loop_timer_start(instance->timer, instance->host->options.keep_warm_ms);
}

static int64_t cpu_milli_of(const struct host *host, uint32_t memory_mb)
{
    const int64_t milli = (int64_t)memory_mb * 1000 / HOST_MB_PER_CORE;
    const int64_t max = host->options.cpu_max_milli;
    const int64_t full = max > 0 && milli > max ? max : milli;
    const int64_t share = full * host->share_milli / 1000;
    return share > 0 ? share : 1;
}

/* False when it had to be ended. */
static bool instance_set_cpu(struct instance *instance)
{
    const struct host *host = instance->host;
    struct error error;
    if (sandbox_set_cpu(instance->sandbox, cpu_milli_of(host, instance->memory_mb), host->is_idle,
                        &error) == 0)
        return true;
    instance_end(instance, "Runtime.InitError", error.message);
    return false;
}

static void on_ready(struct instance *instance)
{
    struct host *host = instance->host;
    instance->ready_ns = now_ns(host);
    if (!instance_set_cpu(instance))
        return;
    on_pace(instance);
    if (instance->is_busy)
        loop_timer_start(instance->timer, host->options.time_ms);
    else
        instance_rest(instance);
}

static void on_message(struct instance *instance, const struct instance_message *message)
{
    if (message->type == INSTANCE_READY && !instance->ready_ns) {
        on_ready(instance);
    } else if ((message->type == INSTANCE_ANSWER || message->type == INSTANCE_FAILED) &&
               instance->is_busy && instance->ready_ns) {
        loop_timer_stop(instance->timer);
        call_end(instance, message->json, message->type == INSTANCE_FAILED);
        if (!instance->is_busy) /* the callback may have given it another */
            instance_rest(instance);
    } else {
        instance_end(instance, "Runtime.InvalidMessage", "the instance talks nonsense");
    }
}

static void on_bytes(void *context, uint32_t events)
{
    struct instance *instance = context;
    struct error error;
    struct instance_message message;
    bool has_ended;
    size_t size;
    int found;
    (void)events;
    if (instance_message_receive(instance->fd, false, &instance->bytes, &has_ended, &error) < 0) {
        if (has_ended && instance->is_busy) /* its exit says how */
            loop_watch_free(TAKE(instance->watch));
        else if (has_ended)
            instance_end(instance, "", "");
        else if (error.code != ERROR_UNAVAILABLE)
            instance_end(instance, "Runtime.InvalidMessage", error.message);
        return;
    }
    /* What is taken leaves the buffer first: a callback may use the instance again. */
    while ((found = instance_message_decode(buffer_text(&instance->bytes), &message, &size,
                                            &error)) > 0 &&
           !instance->is_ending) {
        struct buffer copy AUTO_BUFFER;
        buffer_init(&copy, INSTANCE_PAYLOAD_MAX);
        buffer_append_text(&copy, message.json);
        message.json = buffer_text(&copy);
        buffer_consume(&instance->bytes, size);
        on_message(instance, &message);
    }
    if (found < 0)
        instance_end(instance, "Runtime.InvalidMessage", error.message);
}

/* ---- Starting one ---------------------------------------------------------------------------- */

static void add_credentials(const struct host *host, struct arena *arena, const char **environment,
                            size_t *count)
{
    const struct remote_credentials *credentials = &host->credentials;
    const struct {
        const char *name, *value;
    } variables[] = {
        {"AWS_ACCESS_KEY_ID", credentials->access_key},
        {"AWS_SECRET_ACCESS_KEY", credentials->secret_key},
        {"AWS_SESSION_TOKEN", credentials->session_token},
        {"AWS_REGION", credentials->region},
        {"AWS_ENDPOINT_URL", credentials->endpoint_url},
    };
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
        if (variables[i].value[0])
            environment[(*count)++] =
                arena_format(arena, "%s=%s", variables[i].name, variables[i].value);
}

static int start_sandbox(struct instance *instance, int child_fd, struct error *error)
{
    const struct host *host = instance->host;
    AUTO(arena) struct arena *arena = arena_new_secret(0);
    const bool has_market = host->options.has_network && host->market_server[0];
    const char *const argv[] = {
        "/souk", INSTANCE_COMMAND, has_market ? host->market_server : NULL,
        has_market && host->market_fingerprint[0] ? host->market_fingerprint : NULL, NULL};
    const char *environment[ENVIRONMENT_MAX] = {"HOME=/tmp",         "TMPDIR=/tmp",
                                                "LANG=C.UTF-8",      "OMP_WAIT_POLICY=passive",
                                                "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"};
    size_t variable_count = 6;
    const struct sandbox_mount mounts[] = {
        {host->store, INSTANCE_STORE, .is_writable = false},
        {host->updates, INSTANCE_STORE "/updates", .is_writable = true},
    };
    char name[SANDBOX_NAME_MAX];
    snprintf(name, sizeof(name), "%s-%" PRIu64, host->name, instance->number);
    if (host->options.has_network)
        add_credentials(host, arena, environment, &variable_count);
    const struct sandbox_options options = {
        .name = name,
        .argv = argv,
        .environment = environment,
        .mounts = mounts,
        .mount_count = host->store[0] ? 2 : 0,
        .cpu_milli = CPU_START_MILLI,
        .memory_bytes = (int64_t)instance->memory_mb << 20,
        .pids_max = PIDS_MAX,
        .control_fd = child_fd,
        .stdout_fd = host->options.log_fd,
        .stderr_fd = host->options.log_fd,
        .shares_network = host->options.has_network,
    };
    return sandbox_start(host->options.sandboxes, &options, &instance->sandbox, error);
}

static int instance_open(struct host *host, struct instance **out_instance, struct error *error)
{
    int fds[2];
    if (instance_socket_pair(fds, error) < 0)
        return -1;
    AUTO_FD int child_fd = fds[1];
    struct instance *instance = memory_zeroed(1, sizeof(*instance));
    instance->host = host;
    instance->number = ++host->instance_number;
    instance->memory_mb = host->options.memory_mb;
    instance->fd = fds[0];
    instance->started_ns = now_ns(host);
    buffer_init(&instance->bytes, (size_t)2 * INSTANCE_PAYLOAD_MAX);
    instance->timer = loop_timer_new(host->options.loop, on_timer, instance);
    instance->pace_timer = loop_timer_new(host->options.loop, on_pace, instance);
    if (start_sandbox(instance, child_fd, error) < 0 ||
        loop_watch_open(host->options.loop, instance->fd, LOOP_READ, on_bytes, instance,
                        &instance->watch, error) < 0 ||
        loop_watch_open(host->options.loop, sandbox_pidfd(instance->sandbox), LOOP_READ, on_gone,
                        instance, &instance->exit_watch, error) < 0) {
        instance_free(instance);
        return -1;
    }
    loop_timer_start(instance->timer, HOST_START_MS_MAX);
    instance->next = host->instances;
    host->instances = instance;
    host->instance_count++;
    *out_instance = instance;
    return 0;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static struct instance *find_idle(struct host *host)
{
    for (struct instance *i = host->instances; i; i = i->next)
        if (!i->is_busy && !i->is_ending && i->memory_mb == host->options.memory_mb)
            return i;
    return NULL;
}

/* A version 4 UUID. */
static void make_id(char out[HOST_ID_SIZE])
{
    uint8_t bytes[16];
    char hex[33];
    randombytes_buf(bytes, sizeof(bytes));
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40);
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
    text_hex_encode(bytes, sizeof(bytes), hex);
    snprintf(out, HOST_ID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
             hex + 20);
}

/* The request goes to one that is warm, or else to a new one; those that died meanwhile are done
 * with. */
static int hand_over(struct host *host, struct text request, struct instance **out_instance,
                     bool *out_is_cold, struct error *error)
{
    const struct instance_message message = {
        .type = INSTANCE_CALL,
        .time_ms = host->options.time_ms,
        .memory_bytes = (int64_t)host->options.memory_mb << 20,
        .json = request,
    };
    struct instance *instance;
    while ((instance = find_idle(host))) {
        *out_instance = instance;
        *out_is_cold = false;
        if (instance_message_send(instance->fd, &message, error) == 0)
            return 0;
        instance_end(instance, "", "");
    }
    if (instance_open(host, &instance, error) < 0)
        return -1;
    *out_instance = instance;
    *out_is_cold = true;
    if (instance_message_send(instance->fd, &message, error) == 0)
        return 0;
    instance_end(instance, "", "");
    return -1;
}

int host_call(struct host *host, struct text request, host_function *callback, void *context,
              struct error *error)
{
    struct instance *instance;
    bool is_cold;
    if (host->busy_count >= host->options.concurrency)
        return error_set(error, ERROR_EXHAUSTED, "%u calls are under way, as many as may be",
                         host->busy_count);
    if (request.size > WORK_JSON_MAX)
        return error_set(error, ERROR_INVALID, "a request has %d bytes at most", WORK_JSON_MAX);
    if (hand_over(host, request, &instance, &is_cold, error) < 0)
        return -1;
    instance->is_busy = true;
    host->busy_count++;
    instance->call = (struct host_call){
        .callback = callback, .context = context, .begun_ns = now_ns(host), .is_cold = is_cold};
    make_id(instance->call.id);
    if (instance->ready_ns)
        loop_timer_start(instance->timer, host->options.time_ms);
    return 0;
}

/* ---- The host -------------------------------------------------------------------------------- */

int host_configure(struct host *host, uint32_t memory_mb, int64_t time_ms, struct error *error)
{
    if (memory_mb < HOST_MEMORY_MB_MIN || memory_mb > HOST_MEMORY_MB_MAX)
        return error_set(error, ERROR_INVALID, "memory: must be from %d to %d MB",
                         HOST_MEMORY_MB_MIN, HOST_MEMORY_MB_MAX);
    if (time_ms < 100 || time_ms > HOST_TIME_MS_MAX)
        return error_set(error, ERROR_INVALID, "timeout: must be from 0.1 to %d s",
                         HOST_TIME_MS_MAX / 1000);
    host->options.memory_mb = memory_mb;
    host->options.time_ms = time_ms;
    for (struct instance *i = host->instances; i; i = i->next)
        if (!i->is_busy && i->memory_mb != memory_mb)
            instance_end(i, "", "");
    return 0;
}

void host_set_share(struct host *host, int64_t share_milli, bool is_idle)
{
    ASSERT(share_milli > 0 && share_milli <= 1000);
    host->share_milli = share_milli;
    host->is_idle = is_idle;
    for (struct instance *i = host->instances; i; i = i->next)
        if (i->ready_ns && !i->is_ending)
            (void)instance_set_cpu(i);
}

void host_end_instances(struct host *host)
{
    for (struct instance *i = host->instances; i; i = i->next)
        instance_end(i, "Sandbox.Ended", "the host ended it");
}

uint32_t host_memory_mb(const struct host *host)
{
    return host->options.memory_mb;
}

int64_t host_time_ms(const struct host *host)
{
    return host->options.time_ms;
}

static int open_folders(struct host *host, const char *store, struct error *error)
{
    if (!store)
        return 0;
    if (text_copy(text_of(store), host->store, sizeof(host->store), error) < 0)
        return -1;
    snprintf(host->updates, sizeof(host->updates), "%s/updates", host->store);
    if (mkdir(host->updates, 0755) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "make \"%.150s\"", host->updates);
    return 0;
}

static int copy_market(struct host *host, const struct host_options *options, struct error *error)
{
    const char *server = options->market_server ? options->market_server : "";
    const char *fingerprint = options->market_fingerprint ? options->market_fingerprint : "";
    host->options.market_server = host->options.market_fingerprint = NULL;
    if (text_copy(text_of(server), host->market_server, sizeof(host->market_server), error) < 0)
        return -1;
    return text_copy(text_of(fingerprint), host->market_fingerprint,
                     sizeof(host->market_fingerprint), error);
}

int host_open(const struct host_options *options, struct host **out_host, struct error *error)
{
    AUTO(host) struct host *host = memory_zeroed(1, sizeof(*host));
    host->options = *options;
    host->options.store = NULL;
    host->share_milli = 1000;
    if (options->name &&
        text_copy(text_of(options->name), host->name, sizeof(host->name), error) < 0)
        return -1;
    if (!options->name)
        snprintf(host->name, sizeof(host->name), "function-%d", (int)getpid());
    host->options.name = NULL;
    if (options->credentials)
        host->credentials = *options->credentials;
    host->options.credentials = NULL;
    if (copy_market(host, options, error) < 0)
        return -1;
    if (open_folders(host, options->store, error) < 0 ||
        host_configure(host, options->memory_mb, options->time_ms, error) < 0)
        return -1;
    *out_host = TAKE(host);
    return 0;
}

/* All are killed before the first is waited for. */
void host_free(struct host *host)
{
    if (!host)
        return;
    for (struct instance *i = host->instances; i; i = i->next)
        sandbox_kill(i->sandbox);
    while (host->instances) {
        struct instance *instance = host->instances;
        host->instances = instance->next;
        instance_free(instance);
    }
    remote_credentials_wipe(&host->credentials);
    free(host);
}
