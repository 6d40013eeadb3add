/* What all sandboxes of a host use, whichever process started them: read from their notes. */
#include "base/assert.h"
#include "base/scope.h"
#include "base/text.h"
#include "sandbox/process_tree.h"
#include "sandbox/sandbox_internal.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The descendants of bwrap, its own time left out: it only waits. */
static int64_t tree_cpu_ms(pid_t pid)
{
    struct process_info *tree = calloc(PROCESS_TREE_MAX, sizeof(*tree));
    ASSERT(tree);
    const size_t count = process_tree_list(pid, tree, PROCESS_TREE_MAX);
    int64_t ticks = 0;
    for (size_t i = 0; i < count; i++)
        ticks += tree[i].cpu_ticks;
    free(tree);
    return process_ticks_to_ms(ticks);
}

static void read_line(struct text line, struct cgroup *cgroup, pid_t *first_pid)
{
    struct text key, value, number_text, rest;
    uint64_t number = 0;
    struct error ignored; /* a line that makes no sense names nothing that uses time */
    text_cut(text_trim(line), ' ', &key, &value);
    text_cut(value, ' ', &number_text, &rest);
    const bool is_number = text_parse_u64(number_text, &number, &ignored) == 0;
    if (text_equal(key, TEXT("version")) && is_number && number <= CGROUP_V2)
        cgroup->version = (enum cgroup_version)number;
    else if (text_equal(key, TEXT("cgroup")) && cgroup->folder_count < CGROUP_FOLDER_MAX &&
             text_copy(value, cgroup->folders[cgroup->folder_count], CGROUP_PATH_SIZE, &ignored) ==
                 0)
        cgroup->folder_count++;
    else if (text_equal(key, TEXT("process")) && is_number && number <= INT_MAX && *first_pid == 0)
        *first_pid = (pid_t)number;
}

static int64_t note_cpu_ms(const char *path)
{
    AUTO_FILE FILE *file = fopen(path, "re");
    char line[CGROUP_PATH_SIZE + 32];
    struct cgroup cgroup = {.version = CGROUP_NONE};
    struct cgroup_usage usage = {0};
    pid_t pid = 0;
    while (file && fgets(line, sizeof(line), file))
        read_line(text_of(line), &cgroup, &pid);
    if (cgroup.version != CGROUP_NONE)
        cgroup_read_usage(&cgroup, &usage);
    else if (pid > 0)
        usage.cpu_ms = tree_cpu_ms(pid);
    return usage.cpu_ms;
}

int64_t sandbox_host_cpu_ms(const struct sandbox_host *host)
{
    DIR *folder = opendir(host->state_dir);
    if (!folder)
        return 0;
    int64_t cpu_ms = 0;
    const struct dirent *entry;
    while ((entry = readdir(folder))) { // NOLINT(concurrency-mt-unsafe): the stream is not shared
        char path[PATH_MAX];
        if (text_ends_with(text_of(entry->d_name), TEXT(NOTE_SUFFIX)) &&
            snprintf(path, sizeof(path), "%s/%s", host->state_dir, entry->d_name) <
                (int)sizeof(path))
            cpu_ms += note_cpu_ms(path);
    }
    closedir(folder);
    return cpu_ms;
}
