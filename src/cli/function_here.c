#include "cli/function_here.h"

#include "base/file.h"
#include "base/memory.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Sandboxes lie behind full paths. */
static int find_folder(const char *path, mode_t mode, char out[PATH_MAX], struct error *error)
{
    if (file_make_folders(path, mode, error) < 0)
        return -1;
    return realpath(path, out) ? 0 : error_set_errno(error, errno, "find \"%.150s\"", path);
}

int function_here_open(const struct function_here_options *options, struct function_here **out_here,
                       struct error *error)
{
    char state[PATH_MAX], store[PATH_MAX];
    size_t left;
    AUTO(function_here) struct function_here *here = memory_zeroed(1, sizeof(*here));
    if (find_folder(options->state_dir, 0700, state, error) < 0 ||
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
    free(here);
}
