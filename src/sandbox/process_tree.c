#include "sandbox/process_tree.h"

#include "base/scope.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

/* The fields of proc(5) stat after the command's name, which may itself hold ") ". */
static int process_parse_stat(char *text, struct process_info *info)
{
    char *rest = strrchr(text, ')');
    if (!rest)
        return -1;
    int parent;
    int64_t user, system, child_user, child_system, threads, resident_pages;
    uint64_t start;
    const int count = sscanf(
        rest + 1,
        " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
        " %*d %*d %" SCNd64 " %*d %" SCNu64 " %*u %" SCNd64,
        &parent, &user, &system, &child_user, &child_system, &threads, &start, &resident_pages);
    if (count != 8)
        return -1;
    info->parent = parent;
    info->cpu_ticks = user + system + child_user + child_system;
    info->thread_count = threads;
    info->start_ticks = start;
    info->resident_bytes = resident_pages * sysconf(_SC_PAGESIZE);
    return 0;
}

int process_read(pid_t pid, struct process_info *out_info, struct error *error)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[1024];
    const ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (size <= 0)
        return error_set(error, ERROR_NOT_FOUND, "process %d does not exist", (int)pid);
    text[size] = '\0';
    struct process_info info = {.pid = pid};
    if (process_parse_stat(text, &info) < 0)
        return error_set(error, ERROR_CORRUPT, "cannot read \"%s\"", path);
    *out_info = info;
    return 0;
}

static void close_folder(DIR **folder)
{
    if (*folder)
        closedir(*folder);
}
#define AUTO_FOLDER __attribute__((cleanup(close_folder)))

/* The next process number in /proc; 0 at the end. */
static pid_t process_next(DIR *folder)
{
    struct dirent *entry;
    while ((entry = readdir(folder))) { // NOLINT(concurrency-mt-unsafe): the stream is not shared
        char *end;
        const long pid = strtol(entry->d_name, &end, 10);
        if (*end == '\0' && pid > 0)
            return (pid_t)pid;
    }
    return 0;
}

static int compare_start(const void *left, const void *right)
{
    const struct process_info *a = left, *b = right;
    if (a->start_ticks != b->start_ticks)
        return a->start_ticks < b->start_ticks ? -1 : 1;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

/* Without the kernel's list of children (CONFIG_PROC_CHILDREN) every process is looked at. */
static size_t process_tree_scan(pid_t root, struct process_info *out, size_t max)
{
    struct process_info *all = calloc(PROCESS_TREE_MAX, sizeof(*all));
    AUTO_FOLDER DIR *folder = opendir("/proc");
    if (!all || !folder) {
        free(all);
        return 0;
    }
    size_t all_count = 0;
    pid_t pid;
    struct error ignored;
    while (all_count < PROCESS_TREE_MAX && (pid = process_next(folder)) > 0)
        if (process_read(pid, &all[all_count], &ignored) == 0)
            all_count++;
    /* Parents start before their children, so one pass over the sorted list usually finds all;
     * equal start times and wrapped numbers need another. */
    qsort(all, all_count, sizeof(*all), compare_start);
    size_t count = 0, count_before;
    do {
        count_before = count;
        for (size_t i = 0; i < all_count && count < max; i++) {
            bool is_below = all[i].parent == root;
            for (size_t j = 0; j < count && !is_below; j++)
                is_below = out[j].pid == all[i].parent;
            if (is_below && all[i].pid != 0) {
                out[count++] = all[i];
                all[i].pid = 0;
                all[i].parent = -1;
            }
        }
    } while (count > count_before && count < max);
    free(all);
    return count;
}

/* Reads /proc/PID/task/PID/children. Only the main thread's children: bubblewrap and its reaper
 * have no other thread, but a job may, so those are asked too. False when the kernel has none. */
static bool process_tree_read_children(pid_t parent, struct process_info *out, size_t max,
                                       size_t *count)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)parent);
    AUTO_FOLDER DIR *folder = opendir(path);
    if (!folder)
        return true; /* gone meanwhile */
    pid_t task;
    struct error ignored;
    while ((task = process_next(folder)) > 0) {
        char children[96];
        snprintf(children, sizeof(children), "/proc/%d/task/%d/children", (int)parent, (int)task);
        AUTO_FILE FILE *file = fopen(children, "re");
        if (!file && access(path, F_OK) == 0)
            return false;
        int child;
        while (file && *count < max && fscanf(file, "%d", &child) == 1)
            if (process_read(child, &out[*count], &ignored) == 0)
                (*count)++;
    }
    return true;
}

size_t process_tree_list(pid_t root, struct process_info *out, size_t max)
{
    size_t count = 0;
    if (!process_tree_read_children(root, out, max, &count))
        return process_tree_scan(root, out, max);
    for (size_t i = 0; i < count; i++)
        if (!process_tree_read_children(out[i].pid, out, max, &count))
            return process_tree_scan(root, out, max);
    return count;
}

int64_t process_count_of_user(uid_t uid)
{
    AUTO_FOLDER DIR *folder = opendir("/proc");
    int64_t count = 0;
    pid_t pid;
    while (folder && (pid = process_next(folder)) > 0) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d", (int)pid);
        struct stat status;
        struct process_info info;
        struct error ignored;
        if (stat(path, &status) == 0 && status.st_uid == uid &&
            process_read(pid, &info, &ignored) == 0)
            count += info.thread_count;
    }
    return count;
}

int64_t process_ticks_to_ms(int64_t ticks)
{
    return ticks * 1000 / sysconf(_SC_CLK_TCK);
}
