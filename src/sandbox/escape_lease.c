/* Attempts from inside a whole lease: on its daemon and keeper, and on what these hold for it. */
#include "sandbox/escape.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    PIDS_TRIED = 20000,  /* pids after the daemon's, its keepers among them */
    PIDS_RESERVED = 300, /* the kernel's own */
    DESCRIPTORS_TRIED = 64,
    PATH_SIZE = 2 * PATH_MAX,
};

static long open_in_state(const struct escape_targets *targets, const char *file)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/%s", targets->state_dir, file);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static long read_daemon_key(const struct escape_targets *targets)
{
    return open_in_state(targets, "machine.key");
}

static long read_enrolment(const struct escape_targets *targets)
{
    return open_in_state(targets, "enrolment.json");
}

static long list_state(const struct escape_targets *targets)
{
    return open_in_state(targets, ".");
}

static long list_leases(const struct escape_targets *targets)
{
    return open_in_state(targets, "leases");
}

static long list_cache(const struct escape_targets *targets)
{
    return open_in_state(targets, "blobs");
}

static long dial(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
    if (fd < 0)
        return -1;
    return connect(fd, (struct sockaddr *)&to, sizeof(to));
}

static long command_the_daemon(const struct escape_targets *targets)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/owner.socket", targets->state_dir);
    return dial(path);
}

/* It lies beside the folder that is /lease in here. */
static long dial_keeper(const struct escape_targets *targets)
{
    (void)targets;
    return dial("/lease/../channel");
}

static long write_to_keeper(const struct escape_targets *targets)
{
    (void)targets;
    char garbage[512];
    memset(garbage, 0xff, sizeof(garbage));
    return write(3, garbage, sizeof(garbage));
}

/* ---- Processes ------------------------------------------------------------------------------- */

typedef long process_function(const struct escape_targets *targets, const char *pid);

/* With every process there is to see, until one works. ESRCH: it is not the one looked for. */
static long try_each_process(const struct escape_targets *targets, process_function *run)
{
    DIR *folder = opendir("/proc");
    if (!folder)
        return -1;
    int failure = ESRCH;
    long result = -1;
    const struct dirent *entry;
    while (result < 0 && (entry = readdir(folder))) { // NOLINT(concurrency-mt-unsafe): not shared
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        result = run(targets, entry->d_name);
        if (result < 0 && errno != ESRCH)
            failure = errno;
    }
    closedir(folder);
    errno = failure;
    return result;
}

static bool has_words(const char *pid, const char *words, size_t size)
{
    char path[320], line[256] = "";
    snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof(line));
    if (fd >= 0)
        close(fd);
    return length > 0 && memmem(line, (size_t)length, words, size) != NULL;
}

static long see_one(const struct escape_targets *targets, const char *pid)
{
    (void)targets;
    static const char keeper[] = "souk\0keeper", daemon[] = "souk\0lend", market[] = "souk\0serve";
    if (has_words(pid, keeper, sizeof(keeper)) || has_words(pid, daemon, sizeof(daemon)) ||
        has_words(pid, market, sizeof(market)))
        return 0;
    errno = ESRCH;
    return -1;
}

static long see_keeper(const struct escape_targets *targets)
{
    return try_each_process(targets, see_one);
}

/* Pids end below this one and wrap around to PIDS_RESERVED. */
static long end_of_pids(void)
{
    char text[16] = "";
    FILE *file = fopen("/proc/sys/kernel/pid_max", "re");
    if (!file)
        return INT_MAX;
    const bool is_read = fgets(text, sizeof(text), file) != NULL;
    fclose(file);
    return is_read ? strtol(text, NULL, 10) : INT_MAX;
}

static long signal_later_ones(const struct escape_targets *targets)
{
    const long end = end_of_pids();
    int pid = targets->pid;
    for (int i = 0; i < PIDS_TRIED; i++) {
        if (kill(pid, SIGTERM) == 0)
            return 0;
        if (errno != ESRCH)
            return -1;
        pid = pid + 1 < end ? pid + 1 : PIDS_RESERVED;
    }
    errno = ESRCH;
    return -1;
}

/* The worker process of the lease was given its key; it speaks to the keeper. The first process was
 * only told to start it. */
static long open_of_worker(const char *pid, const char *file, int flags)
{
    static const char worker[] = "/souk\0worker";
    char path[320];
    if (strcmp(pid, "1") == 0 || !has_words(pid, worker, sizeof(worker))) {
        errno = ESRCH;
        return -1;
    }
    snprintf(path, sizeof(path), "/proc/%s/%s", pid, file);
    return open(path, flags | O_CLOEXEC);
}

#define WITH_WORKER(name, file, flags)                                                             \
    static long name##_of_one(const struct escape_targets *targets, const char *pid)               \
    {                                                                                              \
        (void)targets;                                                                             \
        return open_of_worker(pid, file, flags);                                                   \
    }                                                                                              \
    static long name(const struct escape_targets *targets)                                         \
    {                                                                                              \
        return try_each_process(targets, name##_of_one);                                           \
    }

WITH_WORKER(read_memory_of_worker, "mem", O_RDONLY)
WITH_WORKER(write_memory_of_worker, "mem", O_RDWR)
WITH_WORKER(open_descriptor_of_worker, "fd/3", O_RDWR)
WITH_WORKER(list_descriptors_of_worker, "fd", O_RDONLY | O_DIRECTORY)

/* ---- Ways out through /proc ------------------------------------------------------------------ */

static long open_below(const char *folder, const char *secret)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/../../../../../../../..%s", folder, secret);
    const long fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno != EACCES)
        errno = ENOENT;
    return fd;
}

static long leave_by_folders_of_one(const struct escape_targets *targets, const char *pid)
{
    static const char *const ways[] = {"root", "cwd"};
    char path[320];
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "/proc/%s/%s", pid, ways[i]);
        if (open_below(path, targets->secret) >= 0)
            return 0;
    }
    return -1;
}

static long leave_by_folders(const struct escape_targets *targets)
{
    return try_each_process(targets, leave_by_folders_of_one);
}

static long leave_by_descriptors_of_one(const struct escape_targets *targets, const char *pid)
{
    char path[320];
    for (int i = 0; i < DESCRIPTORS_TRIED; i++) {
        snprintf(path, sizeof(path), "/proc/%s/fd/%d", pid, i);
        if (open_below(path, targets->secret) >= 0)
            return 0;
    }
    errno = ENOENT;
    return -1;
}

static long leave_by_descriptors(const struct escape_targets *targets)
{
    return try_each_process(targets, leave_by_descriptors_of_one);
}

static long overwrite_own_program(const struct escape_targets *targets)
{
    (void)targets;
    return open("/proc/1/exe", O_WRONLY | O_CLOEXEC);
}

static long see_mounts_of_host(const struct escape_targets *targets)
{
    char lines[64 << 10];
    const int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    size_t size = 0;
    ssize_t got = 0;
    while (fd >= 0 && size < sizeof(lines) - 1 &&
           (got = read(fd, lines + size, sizeof(lines) - 1 - size)) > 0)
        size += (size_t)got;
    lines[size] = '\0';
    errno = ENOENT;
    return fd >= 0 && strstr(lines, targets->secret) ? 0 : -1;
}

static long spare_itself_when_memory_ends(const struct escape_targets *targets)
{
    (void)targets;
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -1 : write(fd, "-1000", 5);
}

const struct escape_attempt escape_lease[] = {
    {"read the daemon's key", read_daemon_key, "ENOENT"},
    {"read the daemon's enrolment", read_enrolment, "ENOENT"},
    {"list the daemon's folder", list_state, "ENOENT"},
    {"list the leases", list_leases, "ENOENT"},
    {"list the daemon's cache", list_cache, "ENOENT"},
    {"command the daemon as its owner", command_the_daemon, "ENOENT"},
    {"dial the keeper as its daemon", dial_keeper, "ENOENT"},
    {"write to the keeper's descriptor", write_to_keeper, "EBADF"},
    {"see the keeper, the daemon or the market", see_keeper, "ESRCH"},
    {"end the keeper", signal_later_ones, "ESRCH"},
    {"read the lease's key from the worker", read_memory_of_worker, "EACCES|EPERM"},
    {"write the worker's memory", write_memory_of_worker, "EACCES|EPERM"},
    {"open the worker's end to the keeper", open_descriptor_of_worker, "EACCES|EPERM"},
    {"list the worker's descriptors", list_descriptors_of_worker, "EACCES|EPERM"},
    {"leave by the folders of a process", leave_by_folders, "EACCES|ENOENT"},
    {"leave by the descriptors of a process", leave_by_descriptors, "EACCES|ENOENT"},
    {"overwrite the first process's program", overwrite_own_program,
     "EACCES|EROFS|ETXTBSY|ENOENT|EPERM"},
    {"find the owner's folders among the mounts", see_mounts_of_host, "ENOENT"},
    {"be spared when memory ends", spare_itself_when_memory_ends, "EACCES|EPERM"},
    {NULL, NULL, NULL},
};
