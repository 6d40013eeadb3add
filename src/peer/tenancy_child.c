/* The process of a tenancy: its sandbox, its control socket and what it prints. */
#include "base/assert.h"
#include "base/log.h"
#include "peer/software.h"
#include "peer/tenancy_internal.h"
#include "runtime/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What one turn of the loop takes from one source, so that none starves the others. */
enum { MESSAGES_PER_TURN = 16 };

/* What one message costs beside its bytes. */
enum { MESSAGE_BYTES = 4 << 10 };

void tenancy_count_talk(struct tenancy *tenancy, size_t size)
{
    const int64_t now_ns = tenancy_now_ns(tenancy);
    const int64_t passed_us = (now_ns - tenancy->talk_ns) / 1000;
    const int64_t second_us = 1000000;
    tenancy->talk_ns = now_ns;
    if (passed_us < 2 * second_us)
        tenancy->talk_bytes += passed_us * TENANCY_TALK_BYTES / second_us;
    if (passed_us >= 2 * second_us || tenancy->talk_bytes > TENANCY_TALK_BYTES)
        tenancy->talk_bytes = TENANCY_TALK_BYTES;
    tenancy->talk_bytes -= (int64_t)size;
}

/* The market slows a process that reports down only while it is there: training goes on without it,
 * and reports that nobody can take are dropped. */
static bool tenancy_may_read(const struct tenancy *tenancy)
{
    if (tenancy->has_exited)
        return true;
    return tenancy->talk_bytes >= 0 &&
           (outbox_has_room(tenancy->host->outbox) || !outbox_is_attached(tenancy->host->outbox));
}

void tenancy_update_reading(struct tenancy *tenancy)
{
    const uint32_t interest = tenancy_may_read(tenancy) ? LOOP_READ : 0;
    if (tenancy->talk_bytes < 0 && !loop_timer_is_running(tenancy->talk_timer))
        loop_timer_start(tenancy->talk_timer, 1 - tenancy->talk_bytes * 1000 / TENANCY_TALK_BYTES);
    if (tenancy->control_watch)
        loop_watch_set(tenancy->control_watch, interest);
    tenancy_update_log_reading(tenancy);
}

void tenancy_on_talk(void *context)
{
    struct tenancy *tenancy = context;
    tenancy_count_talk(tenancy, 0);
    tenancy_update_reading(tenancy);
}

static void control_close(struct tenancy *tenancy)
{
    loop_watch_free(TAKE(tenancy->control_watch));
    if (tenancy->control_fd >= 0)
        close(TAKE_FD(tenancy->control_fd));
}

static void tenancy_on_report(struct tenancy *tenancy, struct text json)
{
    const struct lease_message message = {.type = LEASE_MESSAGE_REPORT,
                                          .report = {.lease = tenancy->document.lease,
                                                     .fence = tenancy->document.fence,
                                                     .json = json}};
    outbox_send(tenancy->host->outbox, &message, tenancy_now_ns(tenancy));
}

static void tenancy_on_child_message(struct tenancy *tenancy, const struct child_message *message)
{
    struct error error;
    switch (message->kind) {
    case CHILD_READY:
        tenancy_set_running(tenancy);
        return;
    case CHILD_REPORT:
        tenancy_on_report(tenancy, message->report.json);
        return;
    case CHILD_ARTIFACT:
        tenancy_start_upload(tenancy, message->artifact.name);
        return;
    case CHILD_DONE:
        if (tenancy->has_done)
            return;
        tenancy->has_done = true;
        tenancy->is_done_ok = message->done.is_ok;
        tenancy_set_reason(tenancy, message->done.message);
        return;
    case CHILD_WANTED:
        tenancy_want_checkpoints(tenancy, message->wanted.manifests);
        return;
    case CHILD_CALL:
        if (!tenancy->functions)
            break;
        tenancy_call_function(tenancy, message->call.number, message->call.json);
        return;
    case CHILD_STREAM:
        close(message->stream.fd);
        break;
    case CHILD_CALLED:
    case CHILD_CONFIG:
    case CHILD_PEER:
    case CHILD_STOP:
    case CHILD_CHECKPOINTS:
    case CHILD_KEPT:
        break;
    }
    error_set(&error, ERROR_CORRUPT, "the process sent a message that is not its to send");
    tenancy_fail(tenancy, &error);
}

/* Takes up to `count` messages; false when the socket has nothing more. */
static bool control_read(struct tenancy *tenancy, int count)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    for (int i = 0; i < count && tenancy->control_fd >= 0 && tenancy_may_read(tenancy); i++) {
        arena_clear(arena);
        struct child_message message;
        struct error error;
        bool has_ended = false;
        if (child_message_receive(tenancy->control_fd, arena, &message, &has_ended, &error) == 0) {
            tenancy_count_talk(tenancy, message.kind == CHILD_REPORT
                                            ? message.report.json.size + MESSAGE_BYTES
                                            : (size_t)MESSAGE_BYTES);
            tenancy_on_child_message(tenancy, &message);
            continue;
        }
        if (has_ended || error.code != ERROR_UNAVAILABLE)
            control_close(tenancy);
        if (!has_ended && error.code != ERROR_UNAVAILABLE)
            tenancy_fail(tenancy, &error);
        return false;
    }
    return tenancy->control_fd >= 0;
}

static void control_on_events(void *context, uint32_t events)
{
    struct tenancy *tenancy = context;
    (void)events;
    control_read(tenancy, MESSAGES_PER_TURN);
    tenancy_update_reading(tenancy);
    tenancy_check_end(tenancy);
}

/* All processes inside are gone: what they said before is still in the socket and the pipes. */
static void tenancy_on_exit(void *context, uint32_t events)
{
    struct tenancy *tenancy = context;
    (void)events;
    if (!sandbox_reap(tenancy->sandbox, &tenancy->exit))
        return;
    tenancy->has_exited = true;
    loop_watch_free(TAKE(tenancy->exit_watch));
    while (control_read(tenancy, MESSAGES_PER_TURN))
        ;
    control_close(tenancy);
    tenancy_end_logs(tenancy);
    tenancy_check_end(tenancy);
}

bool tenancy_offer_to_child(struct tenancy *tenancy, const struct child_message *message)
{
    struct error error;
    if (tenancy->control_fd < 0 || tenancy->has_exited)
        return true;
    /* One that has closed its socket may have ended well: how, is told by what it said before and
     * by its exit, which are still to come. */
    if (child_message_send(tenancy->control_fd, message, 0, &error) == 0 ||
        error.code == ERROR_UNAVAILABLE)
        return true;
    if (error.code == ERROR_EXHAUSTED)
        return false;
    error_wrap(&error, "the process does not take its messages");
    tenancy_fail(tenancy, &error);
    return true;
}

void tenancy_tell_child(struct tenancy *tenancy, const struct child_message *message)
{
    struct error error;
    if (tenancy_offer_to_child(tenancy, message))
        return;
    /* A process that does not read has no use for its lease. */
    error_set(&error, ERROR_EXHAUSTED, "the process does not take its messages");
    tenancy_fail(tenancy, &error);
}

void tenancy_send_config(struct tenancy *tenancy)
{
    struct child_message message = {.kind = CHILD_CONFIG,
                                    .config = {.lease_json = tenancy->lease_json,
                                               .secrets = text_of(tenancy->secrets),
                                               .peers = tenancy->peers,
                                               .peer_count = tenancy->peer_count}};
    memcpy(message.config.key, tenancy->key, CHILD_KEY_SIZE);
    tenancy_tell_child(tenancy, &message);
    if (tenancy->secrets)
        sodium_memzero(tenancy->secrets, strlen(tenancy->secrets));
    tenancy->secrets = NULL;
    tenancy->has_config = true;
    tenancy_hand_streams(tenancy);
}

/* A file keeps its name, which tells its format: worker/peer_data.c. What is wrong is told to the
 * market, so the path is no part of it. */
static int own_data_target(const char *path, char out[PATH_MAX], struct error *error)
{
    struct stat status;
    const char *slash = strrchr(path, '/');
    if (stat(path, &status) < 0)
        return error_set_errno(error, errno, "the lender's own data");
    if (S_ISREG(status.st_mode))
        snprintf(out, PATH_MAX, "/peer/file/%.255s", slash ? slash + 1 : path);
    else
        snprintf(out, PATH_MAX, "/peer/folder");
    return 0;
}

/* What the lease may use of the owner's; an image brings its own. */
struct lent_software {
    struct text paths[KEEPER_SOFTWARE_MAX];
    size_t count;
    const char *variables[SOFTWARE_VARIABLES_MAX + 1]; /* those missing at the end are NULL */
};

/* Packages that it brought go before. */
static void find_software(struct arena *arena, const struct tenancy *tenancy, bool has_image,
                          struct lent_software *out)
{
    *out = (struct lent_software){.count = has_image ? 0 : tenancy->host->software_count};
    for (size_t i = 0; i < out->count; i++)
        out->paths[i] = text_of(tenancy->host->software[i]);
    const size_t count =
        software_environment(arena, out->paths, out->count, "/usr/bin:/bin", out->variables);
    if (!tenancy->document.has_wheels)
        return;
    out->variables[0] =
        arena_format(arena, "PATH=/packages/bin:%s", out->variables[0] + strlen("PATH="));
    out->variables[count] = "VIRTUAL_ENV=/packages"; /* what stands later counts */
}

/* By memory, which threads take: those of a Spark driver alone come to hundreds. */
static int64_t pids_max(int64_t ram_bytes)
{
    const int64_t count = ram_bytes >> 21;
    if (count < TENANCY_PIDS_LEAST)
        return TENANCY_PIDS_LEAST;
    return count < TENANCY_PIDS_MAX ? count : TENANCY_PIDS_MAX;
}

int64_t tenancy_own_milli(const struct tenancy *tenancy)
{
    const struct function_share *share = tenancy_function_share(tenancy);
    return share ? share->own_milli : tenancy->document.cores_milli;
}

int64_t tenancy_own_bytes(const struct tenancy *tenancy)
{
    const struct function_share *share = tenancy_function_share(tenancy);
    return share ? share->own_bytes : tenancy->document.ram_bytes;
}

static int tenancy_start_sandbox(struct tenancy *tenancy, int child_fd, const int log_fds[2],
                                 struct error *error)
{
    const struct lease_document *document = &tenancy->document;
    char name[64], threads[48], blas_threads[48];
    snprintf(name, sizeof(name), "lease-%" PRIu64 "-%" PRIu64, document->lease, document->fence);
    const int64_t thread_count = (tenancy_own_milli(tenancy) + 999) / 1000;
    snprintf(threads, sizeof(threads), "OMP_NUM_THREADS=%" PRId64, thread_count);
    snprintf(blas_threads, sizeof(blas_threads), "OPENBLAS_NUM_THREADS=%" PRId64, thread_count);
    char functions[16];
    snprintf(functions, sizeof(functions), "%" PRIu32, tenancy_function_count(tenancy));
    const char *const argv[] = {"/souk", "worker", tenancy->functions ? "--functions" : NULL,
                                functions, NULL};
    AUTO(arena) struct arena *arena = arena_new(0);
    const bool has_image = tenancy->image.fd >= 0 && document->has_image;
    struct lent_software software;
    find_software(arena, tenancy, has_image, &software);
    /* Passive waiting: threads that spin burn the share they are given (GNU OpenMP does). */
    const char *const environment[] = {"HOME=/lease",
                                       "TMPDIR=/tmp",
                                       "LANG=C.UTF-8",
                                       "OMP_WAIT_POLICY=passive",
                                       threads,
                                       blas_threads,
                                       software.variables[0],
                                       software.variables[1],
                                       software.variables[2],
                                       software.variables[3],
                                       NULL};
    char root[PATH_MAX], start[PATH_MAX];
    snprintf(root, sizeof(root), "%.4000s/root", tenancy->image.folder);
    snprintf(start, sizeof(start), "%.4000s/start.json", tenancy->image.folder);
    struct sandbox_mount mounts[6 + TENANCY_STORE_PARTS + KEEPER_SOFTWARE_MAX] = {
        {tenancy->lease_folder, "/lease", .is_writable = true},
        {tenancy->data_folder, "/data", .is_writable = false},
    };
    size_t mount_count = 2;
    char own[PATH_MAX];
    if (tenancy->functions) {
        tenancy_function_mounts(tenancy, &mounts[mount_count]);
        mount_count += TENANCY_STORE_PARTS;
    }
    if (has_image)
        mounts[mount_count++] = (struct sandbox_mount){start, "/.souk/start.json", false};
    if (tenancy->image.fd >= 0 && document->has_wheels)
        mounts[mount_count++] = (struct sandbox_mount){root, "/packages", false};
    if (tenancy->host->data_path[0]) {
        if (own_data_target(tenancy->host->data_path, own, error) < 0)
            return -1;
        mounts[mount_count++] = (struct sandbox_mount){tenancy->host->data_path, own, false};
    }
    if (tenancy->host->sdk_folder[0] && lease_document_is_command(document))
        mounts[mount_count++] =
            (struct sandbox_mount){tenancy->host->sdk_folder, LAUNCH_SDK, false};
    for (size_t i = 0; i < software.count; i++)
        mounts[mount_count++] =
            (struct sandbox_mount){software.paths[i].data, software.paths[i].data, false};
    int gpus[SANDBOX_GPU_MAX];
    size_t gpu_count = 0;
    for (int i = 0; i < SANDBOX_GPU_MAX; i++)
        if (tenancy->host->gpus & 1u << i)
            gpus[gpu_count++] = i;
    char resolv_conf[OPEN_RESOLV_CONF_SIZE];
    open_terms_write_resolv_conf(&tenancy->host->open, resolv_conf);
    const struct sandbox_options options = {
        .name = name,
        .gpus = gpus,
        .gpu_count = gpu_count,
        /* A command gets no stream: nothing of the host's could
         * be dialled elsewhere. */
        .has_local_sockets = lease_document_is_command(document),
        .argv = argv,
        .environment = environment,
        .mounts = mounts,
        .mount_count = mount_count,
        .root = has_image ? root : NULL,
        .working_dir = "/lease",
        .cpu_milli = tenancy_own_milli(tenancy),
        .memory_bytes = tenancy_own_bytes(tenancy),
        .pids_max = pids_max(tenancy_own_bytes(tenancy)),
        .disk_bytes = tenancy_disk_bytes(tenancy),
        .control_fd = child_fd,
        .stdout_fd = log_fds[TENANCY_STDOUT],
        .stderr_fd = log_fds[TENANCY_STDERR],
        .resolv_conf = tenancy->internet ? resolv_conf : NULL,
        .set_up_network = tenancy->network ? tenancy_set_up_network : NULL,
        .network_context = tenancy};
    return sandbox_start(tenancy->host->sandboxes, &options, &tenancy->sandbox, error);
}

int tenancy_start_child(struct tenancy *tenancy, struct error *error)
{
    int sockets[2];
    AUTO_FD int child_fd = -1;
    AUTO_FD int stdout_fd = -1;
    AUTO_FD int stderr_fd = -1;
    if (child_socket_pair(sockets, error) < 0)
        return -1;
    tenancy->control_fd = sockets[0];
    child_fd = sockets[1];
    if (tenancy_open_log(tenancy, TENANCY_STDOUT, &stdout_fd, error) < 0 ||
        tenancy_open_log(tenancy, TENANCY_STDERR, &stderr_fd, error) < 0)
        return -1;
    const int log_fds[] = {stdout_fd, stderr_fd};
    if (tenancy_start_sandbox(tenancy, child_fd, log_fds, error) < 0 ||
        loop_watch_open(tenancy->host->loop, tenancy->control_fd, LOOP_READ, control_on_events,
                        tenancy, &tenancy->control_watch, error) < 0)
        return -1;
    return loop_watch_open(tenancy->host->loop, sandbox_pidfd(tenancy->sandbox), LOOP_READ,
                           tenancy_on_exit, tenancy, &tenancy->exit_watch, error);
}

void tenancy_free_child(struct tenancy *tenancy)
{
    loop_watch_free(TAKE(tenancy->exit_watch));
    control_close(tenancy);
    tenancy_close_logs(tenancy);
    sandbox_free(TAKE(tenancy->sandbox));
}
