#include "sandbox/cgroup.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/scope.h"
#include "sandbox/cgroup_internal.h"
#include "sandbox/process_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* More processes than SIGNAL_MAX are reached by the rounds after: cgroup_remove comes back. */
enum { CGROUP_FILE_MAX = 1 << 20, SIGNAL_MAX = 4096 };

int cgroup_write(const char *folder, const char *file, const char *value, struct error *error)
{
    char path[CGROUP_PATH_SIZE + 64];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    const size_t size = strlen(value);
    if (write(fd, value, size) != (ssize_t)size)
        return error_set_errno(error, errno, "write \"%s\" to \"%s\"", value, path);
    return 0;
}

int cgroup_read(const char *folder, const char *file, char *out, size_t out_size)
{
    char path[CGROUP_PATH_SIZE + 64];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t size = 0;
    ssize_t got = -1;
    while (fd >= 0 && size < out_size - 1 && (got = read(fd, out + size, out_size - 1 - size)) > 0)
        size += (size_t)got;
    out[size] = '\0';
    return got < 0 && size == 0 ? -1 : 0;
}

int64_t cgroup_read_number(const char *folder, const char *file, const char *key)
{
    char text[4096];
    if (cgroup_read(folder, file, text, sizeof(text)) < 0)
        return -1;
    const char *at = text;
    const size_t key_size = key ? strlen(key) : 0;
    while (key && (strncmp(at, key, key_size) != 0 || at[key_size] != ' ')) {
        at = strchr(at, '\n');
        if (!at)
            return -1;
        at++;
    }
    char *end;
    errno = 0;
    const long long value = strtoll(at + key_size, &end, 10);
    return end == at + key_size || errno != 0 ? -1 : value;
}

bool cgroup_has_word(const char *list, const char *word)
{
    const size_t size = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += size) {
        const bool starts = at == list || at[-1] == ' ' || at[-1] == ',';
        const char after = at[size];
        if (starts && (after == '\0' || after == ' ' || after == ',' || after == '\n'))
            return true;
    }
    return false;
}

void cgroup_signal_all(const char *folder, int signal_number)
{
    char path[CGROUP_PATH_SIZE + 64];
    snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
    pid_t pids[SIGNAL_MAX];
    const size_t count = process_read_numbers(path, pids, SIGNAL_MAX);
    for (size_t i = 0; i < count; i++)
        if (pids[i] > 1)
            kill(pids[i], signal_number);
}

/* The path of this process in the hierarchy that has `controller` (NULL: v2). */
static bool cgroup_find_path(const char *paths, const char *controller, char *out, size_t out_size)
{
    for (const char *line = paths; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *list = strchr(line, ':');
        const char *path = list ? strchr(list + 1, ':') : NULL;
        if (!path)
            continue;
        char controllers[256] = "";
        const int size = (int)(path - list - 1);
        snprintf(controllers, sizeof(controllers), "%.*s", size, list + 1);
        const bool found = controller ? cgroup_has_word(controllers, controller) : size == 0;
        if (found)
            return snprintf(out, out_size, "%.*s", (int)strcspn(path + 1, "\n"), path + 1) <
                   (int)out_size;
    }
    return false;
}

bool cgroup_find_folder(const char *paths, const char *mounts, const char *controller,
                        char out[CGROUP_PATH_SIZE])
{
    char path[CGROUP_PATH_SIZE];
    if (!cgroup_find_path(paths, controller, path, sizeof(path)))
        return false;
    for (const char *line = mounts; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        /* proc(5): ID PARENT MAJOR:MINOR ROOT POINT OPTIONS... - TYPE SOURCE SUPEROPTIONS */
        char root[CGROUP_PATH_SIZE], point[CGROUP_PATH_SIZE], type[32], options[256];
        char text[2048];
        snprintf(text, sizeof(text), "%.*s", (int)strcspn(line, "\n"), line);
        const char *tail = strstr(text, " - ");
        if (!tail || sscanf(text, "%*s %*s %*s %511s %511s", root, point) != 2 ||
            sscanf(tail + 3, "%31s %*s %255s", type, options) != 2)
            continue;
        const bool found = controller
                               ? strcmp(type, "cgroup") == 0 && cgroup_has_word(options, controller)
                               : strcmp(type, "cgroup2") == 0;
        if (!found)
            continue;
        /* In a container the mount may show only a part of the hierarchy. */
        const size_t root_size = strcmp(root, "/") == 0 ? 0 : strlen(root);
        if (strncmp(path, root, root_size) != 0)
            continue;
        const char *rest = path + root_size;
        const int size =
            snprintf(out, CGROUP_PATH_SIZE, "%s%s", point, strcmp(rest, "/") == 0 ? "" : rest);
        return size > 0 && size < CGROUP_PATH_SIZE;
    }
    return false;
}

static int cgroup_read_file(const char *path, struct buffer *out)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;
    uint8_t *room;
    while (fd >= 0 && (room = buffer_reserve(out, 4096)) && (got = read(fd, room, 4096)) > 0)
        buffer_advance(out, (size_t)got);
    return got == 0 ? 0 : -1;
}

void cgroup_host_probe_files(struct cgroup_host *host, const char *cgroup_file,
                             const char *mountinfo_file)
{
    *host = (struct cgroup_host){.version = CGROUP_NONE};
    struct buffer paths AUTO_BUFFER;
    struct buffer mounts AUTO_BUFFER;
    buffer_init(&paths, CGROUP_FILE_MAX);
    buffer_init(&mounts, CGROUP_FILE_MAX);
    if (cgroup_read_file(cgroup_file, &paths) < 0 ||
        cgroup_read_file(mountinfo_file, &mounts) < 0) {
        snprintf(host->reason, sizeof(host->reason), "this kernel has no cgroups");
        return;
    }
    const char *paths_text = buffer_string(&paths), *mounts_text = buffer_string(&mounts);
    cgroup_v2_probe(host, paths_text, mounts_text);
    if (host->version != CGROUP_NONE)
        return;
    /* v1's reason only counts where v1 is mounted at all; v2's is the better advice elsewhere. */
    struct cgroup_host v1 = {.version = CGROUP_NONE};
    cgroup_v1_probe(&v1, paths_text, mounts_text);
    if (v1.version != CGROUP_NONE || v1.reason[0] != '\0')
        *host = v1;
}

void cgroup_host_probe(struct cgroup_host *host)
{
    cgroup_host_probe_files(host, "/proc/self/cgroup", "/proc/self/mountinfo");
}

void cgroup_host_done(struct cgroup_host *host)
{
    if (host->version == CGROUP_V2 && host->has_moved_self)
        cgroup_v2_move_back(host->folders[0]);
    host->version = CGROUP_NONE;
    host->folder_count = 0;
}

static const struct cgroup_ops *cgroup_ops_of(const struct cgroup *cgroup)
{
    switch (cgroup->version) {
    case CGROUP_V1:
        return &cgroup_v1_ops;
    case CGROUP_V2:
        return &cgroup_v2_ops;
    case CGROUP_NONE:
        break;
    }
    return NULL;
}

int cgroup_name_folders(struct cgroup *cgroup, const struct cgroup_host *host, const char *name,
                        struct error *error)
{
    *cgroup = (struct cgroup){.version = host->version};
    for (size_t i = 0; i < CGROUP_FOLDER_MAX; i++)
        cgroup->join_fds[i] = -1;
    for (size_t i = 0; i < host->folder_count; i++) {
        char folder[CGROUP_PATH_SIZE + 256];
        const int size = snprintf(folder, sizeof(folder), "%s/%s", host->folders[i], name);
        if (size < 0 || size >= CGROUP_PATH_SIZE)
            return error_set(error, ERROR_INVALID, "the cgroup's path is too long: \"%s\"", folder);
        /* cpu and cpuacct are often one hierarchy under two names. */
        memcpy(cgroup->folders[i], folder, (size_t)size + 1);
    }
    cgroup->folder_count = host->folder_count;
    return 0;
}

static bool cgroup_is_repeated(const struct cgroup *cgroup, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(cgroup->folders[i], cgroup->folders[index]) == 0)
            return true;
    return false;
}

static int cgroup_make(struct cgroup *cgroup, struct error *error)
{
    for (size_t i = 0; i < cgroup->folder_count; i++) {
        if (cgroup_is_repeated(cgroup, i))
            continue;
        if (mkdir(cgroup->folders[i], 0755) < 0)
            return error_set_errno(error, errno, "make cgroup \"%s\"", cgroup->folders[i]);
        char procs[CGROUP_PATH_SIZE + 16];
        snprintf(procs, sizeof(procs), "%s/cgroup.procs", cgroup->folders[i]);
        cgroup->join_fds[i] = open(procs, O_WRONLY | O_CLOEXEC);
        if (cgroup->join_fds[i] < 0)
            return error_set_errno(error, errno, "open \"%s\"", procs);
    }
    return 0;
}

int cgroup_open(struct cgroup *cgroup, const struct cgroup_host *host, const char *name,
                const struct cgroup_limits *limits, struct error *error)
{
    ASSERT(limits->cpu_milli > 0 && limits->memory_bytes > 0 && limits->pids_max > 0);
    if (cgroup_name_folders(cgroup, host, name, error) < 0)
        return -1;
    const struct cgroup_ops *ops = cgroup_ops_of(cgroup);
    if (!ops)
        return 0;
    if (cgroup_make(cgroup, error) < 0 || ops->set_limits(cgroup, limits, error) < 0) {
        struct error ignored; /* the first failure is the one to tell */
        if (cgroup_remove(cgroup, 0, &ignored) < 0)
            return -1;
        return -1;
    }
    return 0;
}

int cgroup_join(const struct cgroup *cgroup)
{
    for (size_t i = 0; i < cgroup->folder_count; i++)
        if (cgroup->join_fds[i] >= 0 && write(cgroup->join_fds[i], "0", 1) != 1)
            return -1;
    return 0;
}

void cgroup_close_join_fds(struct cgroup *cgroup)
{
    for (size_t i = 0; i < CGROUP_FOLDER_MAX; i++) {
        if (cgroup->join_fds[i] >= 0)
            close(cgroup->join_fds[i]);
        cgroup->join_fds[i] = -1;
    }
}

void cgroup_read_usage(const struct cgroup *cgroup, struct cgroup_usage *out_usage)
{
    *out_usage = (struct cgroup_usage){0};
    const struct cgroup_ops *ops = cgroup_ops_of(cgroup);
    if (ops)
        ops->read_usage(cgroup, out_usage);
}

int cgroup_write_if_there(const char *folder, const char *file, const char *value,
                          struct error *error)
{
    char path[CGROUP_PATH_SIZE + 64];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    return access(path, W_OK) == 0 ? cgroup_write(folder, file, value, error) : 0;
}

bool cgroup_find_disk(const char *path, char out[32])
{
    struct stat status;
    char folder[96], text[32];
    if (stat(path, &status) < 0 || major(status.st_dev) == 0)
        return false;
    snprintf(folder, sizeof(folder), "/sys/dev/block/%u:%u", major(status.st_dev),
             minor(status.st_dev));
    /* Limits are kept for whole disks only. */
    const bool is_part = cgroup_read_number(folder, "partition", NULL) > 0;
    if (cgroup_read(folder, is_part ? "../dev" : "dev", text, sizeof(text)) < 0)
        return false;
    snprintf(out, 32, "%.*s", (int)strcspn(text, "\n"), text);
    return true;
}

int64_t cgroup_quota_us(int64_t cpu_milli)
{
    const int64_t quota_us = cpu_milli * CGROUP_PERIOD_US / 1000;
    return quota_us < CGROUP_QUOTA_MIN_US ? CGROUP_QUOTA_MIN_US : quota_us;
}

int cgroup_set_idle(const char *folder, bool is_idle, const char *file, const char *weight_least,
                    const char *weight, struct error *error)
{
    /* A group that is idle has no weight to be set, and one that no longer is has its old one. */
    if (cgroup_read_number(folder, "cpu.idle", NULL) >= 0)
        return cgroup_write(folder, "cpu.idle", is_idle ? "1" : "0", error);
    return cgroup_write(folder, file, is_idle ? weight_least : weight, error);
}

int cgroup_set_cpu(const struct cgroup *cgroup, const struct cgroup_cpu *cpu, struct error *error)
{
    ASSERT(cpu->cpu_milli > 0);
    const struct cgroup_ops *ops = cgroup_ops_of(cgroup);
    return ops ? ops->set_cpu(cgroup, cpu, error) : 0;
}

int cgroup_set_frozen(const struct cgroup *cgroup, bool is_frozen, struct error *error)
{
    const struct cgroup_ops *ops = cgroup_ops_of(cgroup);
    return ops ? ops->set_frozen(cgroup, is_frozen, error) : 0;
}

void cgroup_kill(const struct cgroup *cgroup)
{
    const struct cgroup_ops *ops = cgroup_ops_of(cgroup);
    if (ops)
        ops->kill(cgroup);
}

/* Waits for a change in the group: v2 tells by cgroup.events; v1 has nothing to wait for. */
static void cgroup_wait_change(const struct cgroup *cgroup, int timeout_ms)
{
    char path[CGROUP_PATH_SIZE + 16];
    snprintf(path, sizeof(path), "%s/cgroup.events", cgroup->folders[0]);
    AUTO_FD int fd = cgroup->version == CGROUP_V2 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    struct pollfd wait = {.fd = fd, .events = POLLPRI};
    poll(&wait, 1, fd < 0 ? 1 : timeout_ms);
}

int cgroup_remove(struct cgroup *cgroup, int64_t wait_ms, struct error *error)
{
    cgroup_close_join_fds(cgroup);
    const int64_t deadline_ns = clock_monotonic_ns(&clock_system) + wait_ms * 1000000;
    for (size_t i = 0; i < cgroup->folder_count; i++) {
        while (rmdir(cgroup->folders[i]) < 0 && errno != ENOENT) {
            if (errno != EBUSY || clock_monotonic_ns(&clock_system) > deadline_ns)
                return error_set_errno(error, errno, "remove cgroup \"%s\"", cgroup->folders[i]);
            cgroup_kill(cgroup);
            cgroup_wait_change(cgroup, 10);
        }
    }
    return 0;
}
