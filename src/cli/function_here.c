#include "cli/function_here.h"

#include "base/file.h"
#include "base/memory.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDERS_MAX = 64 };

/* Sandboxes lie behind full paths. */
static int find_folder(const char *path, mode_t mode, char out[PATH_MAX], struct error *error)
{
    if (file_make_folders(path, mode, error) < 0)
        return -1;
    return realpath(path, out) ? 0 : error_set_errno(error, errno, "find \"%.150s\"", path);
}

/* Of two hosts with one folder the later would sweep away the other's sandboxes. */
static int lock_folder(const char *wanted, char out[PATH_MAX], int *out_fd, struct error *error)
{
    char path[PATH_MAX], lock[PATH_MAX + sizeof("/lock")];
    for (int i = 0; i < FOLDERS_MAX; i++) {
        const int size = i ? snprintf(path, sizeof(path), "%s-%d", wanted, i)
                           : snprintf(path, sizeof(path), "%s", wanted);
        if (size >= (int)sizeof(path))
            return error_set(error, ERROR_INVALID, "the state folder's name is too long");
        if (find_folder(path, 0700, out, error) < 0)
            return -1;
        snprintf(lock, sizeof(lock), "%s/lock", out);
        AUTO_FD int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
            return error_set_errno(error, errno, "open \"%.150s\"", lock);
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            *out_fd = TAKE_FD(fd);
            return 0;
        }
        if (errno != EWOULDBLOCK)
            return error_set_errno(error, errno, "lock \"%.150s\"", lock);
    }
    return error_set(error, ERROR_EXHAUSTED, "%d function hosts use \"%.150s\" already",
                     FOLDERS_MAX, wanted);
}

int function_here_open(const struct function_here_options *options, struct function_here **out_here,
                       struct error *error)
{
    char state[PATH_MAX], store[PATH_MAX];
    size_t left;
    AUTO(function_here) struct function_here *here = memory_zeroed(1, sizeof(*here));
    here->lock_fd = -1;
    if (lock_folder(options->state_dir, state, &here->lock_fd, error) < 0 ||
        (options->store && find_folder(options->store, 0755, store, error) < 0))
        return -1;
    if (chmod(state, 0700) < 0)
        return error_set_errno(error, errno, "make \"%.150s\" private", state);
    struct host_options host = options->host;
    host.store = options->store ? store : NULL;
    if (sandbox_host_open(state, NULL, &here->sandboxes, error) < 0 ||
        sandbox_sweep(here->sandboxes, &left, error) < 0)
        return -1;
    host.sandboxes = here->sandboxes;
    if (host_open(&host, &here->host, error) < 0)
        return -1;
    *out_here = TAKE(here);
    return 0;
}

void function_here_free(struct function_here *here)
{
    if (!here)
        return;
    host_free(here->host);
    sandbox_host_free(here->sandboxes);
    if (here->lock_fd >= 0)
        close(here->lock_fd);
    free(here);
}
