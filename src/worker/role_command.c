/*
 * Role of runtime `command`: unpacks the borrower's files, runs the scripts `setup` and `run` in a
 * shell, and says how they ended. In an image without `run`, what the image says runs.
 *
 * The scripts' standard output and error are this process's own, so it says nothing there itself
 * unless something is wrong. What they leave in $SOUK_OUTPUT_DIR is kept. Asked to stop, they get
 * SIGTERM; the daemon ends what does not go.
 */
#include "base/assert.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/log.h"
#include "blob/archive.h"
#include "blob/image_document.h"
#include "net/packet.h"
#include "worker/command_environment.h"
#include "worker/worker_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    UNPACKED_FILES_MAX = 30000,
    ARTIFACTS_MAX = 64,
};

struct command_role {
    struct work *work;
    struct loop *loop;
    struct control *control;
    struct loop_child *child;
    pid_t pid; /* of the shell, and of its process group; 0: none runs */
    struct loop_timer *run_timer;
    bool is_setup; /* the script that runs */
    bool is_stopping;
    struct image_config image; /* empty: the lease has none */
    const char *start_folder;  /* of the scripts */
    char **environment;
    struct work_result result;
};

#define IMAGE_START "/.souk/start.json"

/* ---- Before it starts ------------------------------------------------------------------------ */

/* The scripts run as the same user: what this process was told, the lease's key too, is not theirs
 * to read from its memory, and its descriptor is not theirs to speak on. A script is again as any
 * program once the shell starts. */
static int hide_from_scripts(struct error *error)
{
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return error_set_errno(error, errno, "hide from the scripts");
    return 0;
}

static int enter_folder(const struct work *work, struct error *error)
{
    if (mkdir(work->work_folder, 0755) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "make \"%s\"", work->work_folder);
    if (chdir(work->work_folder) < 0)
        return error_set_errno(error, errno, "enter \"%s\"", work->work_folder);
    return 0;
}

static int unpack_files(const struct work *work, struct error *error)
{
    const struct lease_document *lease = &work->lease;
    const struct archive_limits limits = {
        .bytes_max = lease->disk_bytes > 0 ? (uint64_t)lease->disk_bytes : UINT64_C(1) << 40,
        .files_max = UNPACKED_FILES_MAX,
    };
    for (size_t i = 0; i < lease->data_count; i++) {
        char path[PATH_MAX];
        if (&lease->data[i] == lease_document_image(lease))
            continue; /* we run in it */
        snprintf(path, sizeof path, "%s/%s", work->data_folder, lease->data[i].name);
        AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return error_set_errno(error, errno, "open \"%s\"", path);
        struct archive_summary summary;
        if (archive_unpack(fd, &limits, &summary, error) < 0)
            return error_wrap(error, "files of the job");
    }
    return 0;
}

/* NULL: of no framework. All ranks that the job starts with are its members. */
static const struct launch *find_launch(struct command_role *role)
{
    const struct lease_document *lease = &role->work->lease;
    const struct launch_kind *kind = launch_find(lease->runtime);
    if (!kind)
        return NULL;
    struct arena *arena = role->work->arena;
    struct launch_member *members = arena_alloc(arena, lease->world * sizeof(*members));
    for (uint32_t i = 0; i < lease->world; i++)
        members[i] = (struct launch_member){.rank = i, .address = packet_address(i)};
    const struct launch_round round = {
        .job = lease->job,
        .members = members,
        .member_count = lease->world,
        .own = lease->rank,
        .parameter_servers = lease->tensorflow.parameter_servers,
    };
    struct launch *launch = arena_alloc(arena, sizeof(*launch));
    launch_write(kind, arena, &round, launch);
    return launch;
}

/* ---- The scripts ----------------------------------------------------------------------------- */

static void role_end(struct command_role *role, bool is_ok, const char *message)
{
    role->result.is_ok = is_ok;
    snprintf(role->result.message, sizeof role->result.message, "%s", message);
    loop_stop(role->loop);
}

static void on_exit_of_script(void *context, const struct child_exit *exit);

/* Between fork and exec nothing but calls that are safe there. */
static _Noreturn void become(char **arguments, const char *folder, char **environment)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL); // NOLINT(concurrency-mt-unsafe): one thread after fork
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    const int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null_fd >= 0)
        dup2(null_fd, STDIN_FILENO);
    closefrom(STDERR_FILENO + 1);
    static const char no_folder[] = "souk: the folder to start in is not there\n";
    static const char no_program[] = "souk: what is to run (a shell, or the image's own command) "
                                     "cannot be started\n";
    if (chdir(folder) < 0) {
        if (write(STDERR_FILENO, no_folder, sizeof(no_folder) - 1) > 0)
            _exit(126);
        _exit(126);
    }
    environ = environment;
    if (strcmp(arguments[0], "sh") != 0) {
        execvp(arguments[0], arguments);
    } else {
        execve("/bin/bash", arguments, environment);
        execve("/bin/sh", arguments, environment);
    }
    _exit(write(STDERR_FILENO, no_program, sizeof(no_program) - 1) > 0 ? 127 : 126);
}

/* Its entrypoint and what follows it. */
static char **image_command(struct arena *arena, const struct image_config *image)
{
    const size_t count = image->entrypoint.count + image->cmd.count;
    char **list = arena_alloc(arena, (count + 1) * sizeof(*list));
    const struct text *entrypoint = image->entrypoint.items, *cmd = image->cmd.items;
    for (size_t i = 0; i < count; i++)
        list[i] = arena_copy_string(
            arena, i < image->entrypoint.count ? entrypoint[i] : cmd[i - image->entrypoint.count]);
    list[count] = NULL;
    return list;
}

static char **shell_command(struct arena *arena, struct text script)
{
    char **list = arena_alloc(arena, 4 * sizeof(*list));
    list[0] = arena_copy_string(arena, TEXT("sh"));
    list[1] = arena_copy_string(arena, TEXT("-c"));
    list[2] = arena_copy_string(arena, script);
    list[3] = NULL;
    return list;
}

static int start_script(struct command_role *role, struct text script, struct error *error)
{
    char **arguments = script.size ? shell_command(role->work->arena, script)
                                   : image_command(role->work->arena, &role->image);
    if (!arguments[0])
        return error_set(error, ERROR_INVALID,
                         "the image names no command, and neither does the job");
    const pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(error, errno, "start a process");
    if (pid == 0)
        become(arguments, role->start_folder, role->environment);
    setpgid(pid, pid); /* either side may be first */
    role->pid = pid;
    loop_child_free(TAKE(role->child));
    return loop_child_open(role->loop, pid, on_exit_of_script, role, &role->child, error);
}

static void start_run(void *context)
{
    struct command_role *role = context;
    struct error error;
    role->is_setup = false;
    if (start_script(role, role->work->lease.run, &error) < 0)
        role_end(role, false, error.message);
}

static void on_exit_of_script(void *context, const struct child_exit *exit)
{
    struct command_role *role = context;
    const char *what = role->is_setup ? "setup: " : "";
    char message[128];
    role->pid = 0;
    role->result.exit_code = exit->signal ? 128 + exit->signal : exit->status;
    if (exit->signal)
        snprintf(message, sizeof message, "%sended by signal %d (%s)", what, exit->signal,
                 sigdescr_np(exit->signal) ? sigdescr_np(exit->signal) : "unknown");
    else
        snprintf(message, sizeof message, "%sexit status %d", what, exit->status);
    const bool is_ok = !exit->signal && exit->status == 0;
    if (is_ok && role->is_setup && !role->is_stopping)
        loop_timer_start(role->run_timer, 0); /* not from inside the first script's watch */
    else
        role_end(role, is_ok && !role->is_setup, message);
}

/* ---- Told by the daemon ---------------------------------------------------------------------- */

static void on_stop(void *context, const char *reason, int64_t grace_ms)
{
    struct command_role *role = context;
    (void)grace_ms;
    role->is_stopping = true;
    if (role->pid > 0)
        kill(-role->pid, SIGTERM);
    else
        role_end(role, false, reason);
}

/* No peer is needed, and none is told. */
static void on_stream(void *context, const struct child_stream *stream)
{
    (void)context;
    close(stream->fd);
}

/* ---- After it ended -------------------------------------------------------------------------- */

static bool is_kept(const struct dirent *item, const char *folder)
{
    char path[PATH_MAX];
    struct stat status;
    if (item->d_name[0] == '.')
        return false;
    snprintf(path, sizeof path, "%s/%s", folder, item->d_name);
    return lstat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Each plain file that lies in the output folder itself. */
static void keep_output(const struct work *work)
{
    DIR *folder = opendir(work->out_folder);
    if (!folder) {
        log_event(LOG_WARN, "output_unread", "error=\"%s\"", strerrordesc_np(errno));
        return;
    }
    size_t count = 0;
    for (const struct dirent *item; (item = readdir(folder));) { // NOLINT(concurrency-mt-unsafe)
        if (!is_kept(item, work->out_folder))
            continue;
        if (count++ == ARTIFACTS_MAX) {
            log_event(LOG_WARN, "output_left", "reason=\"more than %d files\"", ARTIFACTS_MAX);
            break;
        }
        struct error error;
        const struct child_message message = {.kind = CHILD_ARTIFACT,
                                              .artifact = {.name = text_of(item->d_name)}};
        if (control_send(work->control_fd, &message, &error) < 0)
            log_event(LOG_WARN, "output_left", "file=\"%s\" reason=\"%s\"", item->d_name,
                      error.message);
    }
    closedir(folder);
}

static int role_open(struct command_role *role, struct error *error)
{
    const struct control_callbacks callbacks = {.on_stream = on_stream, .on_stop = on_stop};
    if (loop_open(&clock_system, &role->loop, error) < 0 ||
        control_open(role->loop, role->work->control_fd, &callbacks, role, &role->control, error) <
            0)
        return -1;
    role->run_timer = loop_timer_new(role->loop, start_run, role);
    role->environment = command_environment(role->work, &role->image, find_launch(role));
    return 0;
}

static void role_close(struct command_role *role)
{
    loop_child_free(role->child);
    loop_timer_free(role->run_timer);
    control_free(role->control);
    loop_free(role->loop);
}

static int read_image(struct command_role *role, struct error *error)
{
    const struct work *work = role->work;
    const struct lease_document *lease = &work->lease;
    role->start_folder = work->work_folder;
    if (!lease_document_image(lease))
        return 0;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, (size_t)4 << 20);
    if (file_read(IMAGE_START, &json, error) < 0 ||
        image_start_read(work->arena, buffer_text(&json), &role->image, error) < 0)
        return error_wrap(error, "the image");
    /* Whoever brings files wants to be where they are. */
    if (lease->data_count == 1 && role->image.working_dir.size)
        role->start_folder = arena_copy_string(work->arena, role->image.working_dir);
    return 0;
}

int run_command(struct work *work, struct work_result *out_result, struct error *error)
{
    __attribute__((cleanup(role_close))) struct command_role role = {.work = work};
    const struct child_message ready = {.kind = CHILD_READY};
    if (hide_from_scripts(error) < 0 || enter_folder(work, error) < 0 ||
        unpack_files(work, error) < 0 || read_image(&role, error) < 0 ||
        role_open(&role, error) < 0 || control_send(work->control_fd, &ready, error) < 0)
        return -1;
    role.is_setup = work->lease.setup.size > 0;
    if (start_script(&role, role.is_setup ? work->lease.setup : work->lease.run, error) < 0 ||
        loop_run(role.loop, error) < 0)
        return -1;
    keep_output(work);
    *out_result = role.result;
    return 0;
}
