/* The host's side of a sandbox: what this machine can enforce, and notes of what runs. */
#include "base/assert.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "sandbox/disk.h"
#include "sandbox/process_tree.h"
#include "sandbox/sandbox_internal.h"
#include "sandbox/stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOTE_SIZE_MAX = 8192, SWEEP_WAIT_MS = 3000 };

/* Long enough for the busiest machine: a slow trial does not mean that sandboxes are forbidden. */
enum { PROBE_WAIT_MS = 60000 };

static int host_find_bwrap(struct sandbox_host *host, struct error *error)
{
    /* The only thing taken from the environment: where programs are. */
    const char *path = getenv("PATH"); // NOLINT(concurrency-mt-unsafe): before any thread
    struct text rest = text_of(path && *path ? path : "/usr/local/bin:/usr/bin:/bin");
    while (rest.size > 0) {
        struct text folder;
        if (!text_cut(rest, ':', &folder, &rest))
            rest.size = 0;
        const int size =
            snprintf(host->bwrap, sizeof(host->bwrap), TEXT_FORMAT "/bwrap", TEXT_ARGS(folder));
        if (folder.size > 0 && folder.data[0] == '/' && size < (int)sizeof(host->bwrap) &&
            access(host->bwrap, X_OK) == 0)
            return 0;
    }
    return error_set(error, ERROR_UNAVAILABLE,
                     "bwrap is not on PATH; install the package bubblewrap");
}

/* The thread sanitizer's address space does not fit into a sandbox: what runs inside is the same
 * program built without it, if that lies beside this one. */
static bool prefer_plain(struct sandbox_host *host)
{
#if defined(__SANITIZE_THREAD__)
    static const char suffix[] = ".plain";
    const size_t size = strlen(host->program);
    if (size + sizeof(suffix) > sizeof(host->program))
        return false;
    memcpy(host->program + size, suffix, sizeof(suffix));
    if (access(host->program, X_OK) == 0)
        return true;
    host->program[size] = '\0';
#else
    (void)host;
#endif
    return false;
}

static int host_find_program(struct sandbox_host *host, const char *program, struct error *error)
{
    if (program) {
        if (!realpath(program, host->program))
            return error_set_errno(error, errno, "find \"%s\"", program);
        return 0;
    }
    const ssize_t size = readlink("/proc/self/exe", host->program, sizeof(host->program) - 1);
    if (size < 0)
        return error_set_errno(error, errno, "read \"/proc/self/exe\"");
    host->program[size] = '\0';
    host->is_own_program = !prefer_plain(host);
    return 0;
}

/* The sandbox's first process outlives bwrap's own for a moment: wait, or it would still share our
 * group when we check that we are alone there. */
static void wait_for_inner(const struct launched *launched)
{
    if (launched->inner_pidfd < 0)
        return;
    if (!wait_readable(launched->inner_pidfd, PROBE_WAIT_MS)) {
        pidfd_send_signal(launched->inner_pidfd, SIGKILL, NULL, 0);
        wait_readable(launched->inner_pidfd, SWEEP_WAIT_MS);
    }
    close(launched->inner_pidfd);
}

/* Starts /usr/bin/true in a sandbox; what bwrap says on failure goes into *error. Its processes are
 * not counted: the user may have more than are seen here, of leases that go on or beyond a
 * container, and with a limit below those nothing starts. */
static int host_try(const struct sandbox_host *host, struct error *error)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return error_set_errno(error, errno, "make a pipe");
    AUTO_FD int read_fd = fds[0];
    AUTO_FD int write_fd = fds[1];
    const char *const argv[] = {"/usr/bin/true", NULL};
    const struct sandbox_options options = {.name = "probe",
                                            .argv = argv,
                                            .cpu_milli = 1000,
                                            .memory_bytes = 64 << 20,
                                            .control_fd = -1,
                                            .stdout_fd = write_fd,
                                            .stderr_fd = write_fd};
    const struct cgroup none = {.version = CGROUP_NONE};
    struct launched launched;
    if (sandbox_launch(host, &options, &none, &launched, error) < 0)
        return -1;
    close(TAKE_FD(write_fd));
    const bool has_hung = !wait_readable(launched.pidfd, PROBE_WAIT_MS);
    if (has_hung)
        pidfd_send_signal(launched.pidfd, SIGKILL, NULL, 0);
    siginfo_t info = {0};
    while (waitid(P_PIDFD, (id_t)launched.pidfd, &info, WEXITED) < 0 && errno == EINTR)
        ;
    close(launched.pidfd);
    wait_for_inner(&launched);
    if (info.si_code == CLD_EXITED && info.si_status == 0)
        return 0;
    if (has_hung)
        return error_set(error, ERROR_UNAVAILABLE, "bwrap did not start a sandbox within %d s",
                         PROBE_WAIT_MS / 1000);
    char words[160];
    const ssize_t size = read(read_fd, words, sizeof(words) - 1);
    words[size > 0 ? size : 0] = '\0';
    words[strcspn(words, "\n")] = '\0';
    return error_set(error, ERROR_UNAVAILABLE, "bwrap cannot start a sandbox here: %s", words);
}

/* The strictest way that works. Root always becomes another user first: a job whose processes are
 * root's outside has only bubblewrap between it and the machine. */
static int host_probe(struct sandbox_host *host, struct error *error)
{
    host->drops_user = host->is_root;
    for (int variant = 0; variant < 2; variant++) {
        host->disables_userns = variant == 0;
        if (host_try(host, error) == 0)
            return 0;
    }
    if (!host->is_root)
        return -1;
    return error_wrap(error, "jobs run as an unprivileged user, who must be allowed to make user "
                             "namespaces (sysctl kernel.unprivileged_userns_clone=1, on Ubuntu "
                             "kernel.apparmor_restrict_unprivileged_userns=0)");
}

static void host_describe(struct sandbox_host *host)
{
    const char *limits = "CPU share kept by pausing the job, memory and processes by rlimits";
    if (host->cgroups.version != CGROUP_NONE)
        limits = host->cgroups.version == CGROUP_V1
                     ? "CPU, memory and processes limited by cgroup v1"
                     : "CPU, memory and processes limited by cgroup v2";
    const char *user = "as the user who started it";
    if (host->is_root)
        user = "as an unprivileged user";
    snprintf(host->description, sizeof(host->description),
             "%s; bubblewrap %s; no network; seccomp%s", limits, user,
             host->landlock_abi > 0 ? "; Landlock" : "");
}

int sandbox_host_open(const char *state_dir, const char *program, struct sandbox_host **out_host,
                      struct error *error)
{
    struct sandbox_host *new_host = calloc(1, sizeof(*new_host));
    ASSERT(new_host);
    AUTO(sandbox_host) struct sandbox_host *host = new_host;
    host->is_root = geteuid() == 0;
    if (text_copy(text_of(state_dir), host->state_dir, sizeof(host->state_dir), error) < 0)
        return error_wrap(error, "the state folder's name");
    if (host_find_bwrap(host, error) < 0 || host_find_program(host, program, error) < 0 ||
        host_probe(host, error) < 0)
        return -1;
    host->landlock_abi = stage_landlock_abi();
    /* Where it fails, a sandbox with an image says so. */
    if (loader_find(&host->loader) < 0)
        host->loader = (struct loader){0};
    cgroup_host_probe(&host->cgroups);
    host_describe(host);
    *out_host = TAKE(host);
    return 0;
}

void sandbox_host_free(struct sandbox_host *host)
{
    if (!host)
        return;
    cgroup_host_done(&host->cgroups);
    free(host);
}

const char *sandbox_describe(const struct sandbox_host *host)
{
    return host->description;
}

bool sandbox_is_hard(const struct sandbox_host *host)
{
    return host->cgroups.version != CGROUP_NONE;
}

static void doctor_add_landlock(const struct sandbox_host *host, struct buffer *out)
{
    const int abi = host->landlock_abi;
    if (abi == 0)
        buffer_append_string(out, "landlock: missing: this kernel does not have it or has it off "
                                  "(lsm=landlock,...); mounts and seccomp hold without it\n");
    else
        buffer_append_format(out, "landlock: ok, version %d: files%s%s\n", abi,
                             abi >= 4 ? ", TCP" : "",
                             abi >= 6 ? ", local sockets and signals" : "");
}

static void doctor_add_disk(const struct sandbox_host *host, struct buffer *out)
{
    char reason[128];
    if (disk_can_bound(reason, sizeof(reason)))
        buffer_append_string(out, "disk: ok, each job has a file system of its own size\n");
    else
        buffer_append_format(out,
                             "disk: softer: %s; each file is limited, and the whole measured "
                             "now and then\n",
                             reason);
    buffer_append_string(out, host->cgroups.has_io
                                  ? "disk share: ok, everybody else goes first\n"
                                  : "disk share: missing: no io or blkio controller here\n");
}

void sandbox_doctor(const struct sandbox_host *host, struct buffer *out)
{
    buffer_append_format(out, "sandbox: ok, %s\n", host->bwrap);
    if (sandbox_is_hard(host))
        buffer_append_format(out, "limits: ok, cgroup v%d in %s\n", (int)host->cgroups.version,
                             host->cgroups.folders[0]);
    else
        buffer_append_format(out,
                             "limits: softer: %s; the CPU share is kept by pausing the job, memory "
                             "and processes by rlimits\n",
                             host->cgroups.reason);
    buffer_append_string(out, "user: ok, jobs are an unprivileged user\n");
    if (host->disables_userns)
        buffer_append_string(out, "namespaces: ok, jobs cannot make any\n");
    else
        buffer_append_string(out, "namespaces: ok, refused by seccomp; bwrap does not take "
                                  "--disable-userns here\n");
    buffer_append_string(out, "network: ok, jobs have none but their own\n"
                              "system calls: ok, an allow-list\n");
    doctor_add_landlock(host, out);
    doctor_add_disk(host, out);
}

static void host_read_boot_id(char out[64])
{
    AUTO_FD int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd < 0 ? -1 : read(fd, out, 63);
    out[size > 0 ? size : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

static void note_add_process(struct buffer *note, pid_t pid)
{
    struct process_info info;
    struct error gone;
    if (pid > 0 && process_read(pid, &info, &gone) == 0)
        buffer_append_format(note, "process %d %" PRIu64 "\n", (int)pid, info.start_ticks);
}

int note_write(const struct sandbox_host *host, const char *name, const struct cgroup *cgroup,
               const struct launched *launched, struct error *error)
{
    struct buffer note AUTO_BUFFER;
    buffer_init(&note, NOTE_SIZE_MAX);
    char boot_id[64];
    host_read_boot_id(boot_id);
    buffer_append_format(&note, "boot %s\nversion %d\n", boot_id, (int)cgroup->version);
    for (size_t i = 0; i < cgroup->folder_count; i++)
        buffer_append_format(&note, "cgroup %s\n", cgroup->folders[i]);
    if (launched) {
        note_add_process(&note, launched->pid);
        note_add_process(&note, launched->inner_pid);
    }
    if (buffer_check(&note, error) < 0)
        return -1;

    char path[PATH_MAX], fresh[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s" NOTE_SUFFIX, host->state_dir, name);
    snprintf(fresh, sizeof(fresh), "%s/%s.new", host->state_dir, name);
    AUTO_FD int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, note.data, note.size) != (ssize_t)note.size)
        return error_set_errno(error, errno, "write \"%s\"", fresh);
    if (rename(fresh, path) < 0)
        return error_set_errno(error, errno, "rename to \"%s\"", path);
    return 0;
}

void note_remove(const struct sandbox_host *host, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s" NOTE_SUFFIX, host->state_dir, name);
    unlink(path);
}

/* Only if it is still the very process the note speaks of. */
static void sweep_process(pid_t pid, uint64_t start_ticks)
{
    struct process_info info;
    struct error gone;
    AUTO_FD int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0 || process_read(pid, &info, &gone) < 0 || info.start_ticks != start_ticks)
        return;
    pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
    wait_readable(pidfd, SWEEP_WAIT_MS);
}

static void sweep_add_cgroup(struct cgroup *cgroup, const char *folder)
{
    const char *last = strrchr(folder, '/');
    const bool is_ours = last && strncmp(last, "/souk-", strlen("/souk-")) == 0;
    if (!is_ours || cgroup->folder_count == CGROUP_FOLDER_MAX || strstr(folder, "/../"))
        return;
    snprintf(cgroup->folders[cgroup->folder_count++], CGROUP_PATH_SIZE, "%s", folder);
}

static void sweep_line(struct text line, struct cgroup *cgroup, bool *is_this_boot)
{
    struct text key, value, pid_text, start_text;
    uint64_t number, start_ticks;
    struct error ignored; /* a line that makes no sense names nothing to clean up */
    char boot_id[64], folder[CGROUP_PATH_SIZE];
    text_cut(text_trim(line), ' ', &key, &value);
    if (text_equal(key, TEXT("boot"))) {
        host_read_boot_id(boot_id);
        *is_this_boot = text_equal(value, text_of(boot_id));
    } else if (text_equal(key, TEXT("version"))) {
        if (text_parse_u64(value, &number, &ignored) == 0 && number <= CGROUP_V2)
            cgroup->version = (enum cgroup_version)number;
    } else if (text_equal(key, TEXT("cgroup"))) {
        if (text_copy(value, folder, sizeof(folder), &ignored) == 0)
            sweep_add_cgroup(cgroup, folder);
    } else if (text_equal(key, TEXT("process")) && *is_this_boot) {
        if (text_cut(value, ' ', &pid_text, &start_text) &&
            text_parse_u64(pid_text, &number, &ignored) == 0 && number <= INT_MAX &&
            text_parse_u64(start_text, &start_ticks, &ignored) == 0)
            sweep_process((pid_t)number, start_ticks);
    }
}

static int sweep_note(const char *path, struct error *error)
{
    AUTO_FILE FILE *file = fopen(path, "re");
    if (!file)
        return error_set_errno(error, errno, "open \"%s\"", path);
    char line[CGROUP_PATH_SIZE + 32];
    struct cgroup cgroup = {.version = CGROUP_NONE};
    for (size_t i = 0; i < CGROUP_FOLDER_MAX; i++)
        cgroup.join_fds[i] = -1;
    bool is_this_boot = false;
    while (fgets(line, sizeof(line), file))
        sweep_line(text_of(line), &cgroup, &is_this_boot);
    if (is_this_boot && cgroup_remove(&cgroup, SWEEP_WAIT_MS, error) < 0)
        return -1;
    if (unlink(path) < 0)
        return error_set_errno(error, errno, "remove \"%s\"", path);
    return 0;
}

int sandbox_sweep_one(struct sandbox_host *host, const char *name, struct error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s" NOTE_SUFFIX, host->state_dir, name);
    return access(path, F_OK) < 0 && errno == ENOENT ? 0 : sweep_note(path, error);
}

int sandbox_sweep_others(struct sandbox_host *host, sandbox_keep_function *is_kept, void *context,
                         size_t *out_count, struct error *error)
{
    DIR *folder = opendir(host->state_dir);
    if (!folder)
        return error_set_errno(error, errno, "open \"%s\"", host->state_dir);
    size_t count = 0;
    int result = host_remove_programs(host, error);
    struct dirent *entry;
    while ((entry = readdir(folder))) { // NOLINT(concurrency-mt-unsafe): the stream is not shared
        struct text name = text_of(entry->d_name);
        char sandbox[sizeof(entry->d_name)];
        if (!text_ends_with(name, TEXT(NOTE_SUFFIX)))
            continue;
        name.size -= strlen(NOTE_SUFFIX);
        snprintf(sandbox, sizeof(sandbox), TEXT_FORMAT, TEXT_ARGS(name));
        if (is_kept(sandbox, context))
            continue;
        count++;
        if (sandbox_sweep_one(host, sandbox, error) < 0)
            result = -1;
    }
    closedir(folder);
    if (result == 0)
        *out_count = count;
    return result;
}

static bool keep_none(const char *name, void *context)
{
    (void)name;
    (void)context;
    return false;
}

int sandbox_sweep(struct sandbox_host *host, size_t *out_count, struct error *error)
{
    return sandbox_sweep_others(host, keep_none, NULL, out_count, error);
}

void sandbox_host_export(const struct sandbox_host *host, struct buffer *out)
{
    buffer_append(out, host, sizeof(*host));
}

int sandbox_host_import(struct text exported, struct sandbox_host **out_host, struct error *error)
{
    struct sandbox_host *host = calloc(1, sizeof(*host));
    ASSERT(host);
    if (exported.size != sizeof(*host)) {
        free(host);
        return error_set(error, ERROR_CORRUPT, "the sandbox's findings are another program's");
    }
    memcpy(host, exported.data, sizeof(*host));
    host->cgroups.has_moved_self = false; /* that is undone by the process that did it */
    *out_host = host;
    return 0;
}
