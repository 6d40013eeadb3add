#include "sandbox/process_tree.h"

#include "base/scope.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

/* The number at *at, which moves behind it; 0 at the end of the text. */
static int64_t next_number(char **at)
{
    char *end;
    const long long value = strtoll(*at, &end, 10);
    *at = end;
    return value;
}

/* The fields of proc(5) stat after the command's name, which may itself hold ") ". */
static int process_parse_stat(char *text, struct process_info *info)
{
    enum {
        STAT_PARENT = 4,
        STAT_CPU_FIRST = 14, /* user, system, and both of the children waited for */
        STAT_CPU_LAST = 17,
        STAT_THREADS = 20,
        STAT_START = 22,
    };
    char *at = strrchr(text, ')');
    if (!at || strlen(at) < 4)
        return -1;
    const char state = at[2];
    at += 4; /* ") S " */
    for (int field = STAT_PARENT; field <= STAT_START; field++) {
        const char *before = at;
        const int64_t value = next_number(&at);
        if (at == before)
            return -1;
        if (field == STAT_PARENT)
            info->parent = (pid_t)value;
        else if (field >= STAT_CPU_FIRST && field <= STAT_CPU_LAST)
            info->cpu_ticks += value;
        else if (field == STAT_THREADS)
            info->thread_count = value;
        else if (field == STAT_START)
            info->start_ticks = (uint64_t)value;
    }
    /* Of a process whose first thread alone has ended the others run on. */
    info->is_stopped = state == 'T' || (state == 'Z' && info->thread_count <= 1);
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

int64_t process_memory_bytes(pid_t pid)
{
    static const char *const held[] = {"RssAnon:", "RssShmem:"};
    char path[64], line[256];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    AUTO_FILE FILE *status = fopen(path, "re");
    int64_t bytes = 0;
    while (status && fgets(line, sizeof(line), status))
        for (size_t i = 0; i < sizeof(held) / sizeof(*held); i++)
            if (strncmp(line, held[i], strlen(held[i])) == 0)
                bytes += strtoll(line + strlen(held[i]), NULL, 10) * 1024;
    return bytes;
}

enum { CHILDREN_MAX = 1024 };

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

size_t process_read_numbers(const char *path, pid_t *out, size_t max)
{
    AUTO_FILE FILE *file = fopen(path, "re");
    size_t count = 0;
    char *word = NULL;
    size_t capacity = 0;
    while (file && count < max && getdelim(&word, &capacity, ' ', file) > 0) {
        char *at = word;
        int64_t number;
        while (count < max && (number = next_number(&at)) > 0)
            out[count++] = (pid_t)number;
    }
    free(word);
    return count;
}

/* Reads /proc/PID/task/TASK/children. False when this kernel has no such files. */
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
        pid_t pids[CHILDREN_MAX];
        snprintf(children, sizeof(children), "/proc/%d/task/%d/children", (int)parent, (int)task);
        if (access(children, F_OK) < 0 && access(path, F_OK) == 0)
            return false;
        const size_t child_count = process_read_numbers(children, pids, CHILDREN_MAX);
        for (size_t i = 0; i < child_count && *count < max; i++)
            if (process_read(pids[i], &out[*count], &ignored) == 0)
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

void process_set_session_nice(const struct process_info *processes, size_t count, int nice)
{
    pid_t done[64];
    size_t done_count = 0;
    for (size_t i = 0; i < count; i++) {
        const pid_t session = getsid(processes[i].pid);
        bool is_done = session <= 0;
        for (size_t j = 0; j < done_count && !is_done; j++)
            is_done = done[j] == session;
        if (is_done || done_count == sizeof(done) / sizeof(*done))
            continue;
        done[done_count++] = session;
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/autogroup", (int)processes[i].pid);
        AUTO_FILE FILE *file = fopen(path, "we");
        if (file)
            fprintf(file, "%d\n", nice);
    }
}

int64_t process_ticks_to_ms(int64_t ticks)
{
    return ticks * 1000 / sysconf(_SC_CLK_TCK);
}
