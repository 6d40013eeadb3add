/*
 * Import run: one `souk import-run` (import_runner.h) or `souk import-fetch` (import_fetch.h),
 * watched by the loop.
 *
 * Main thread.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

struct server;
struct import_run;

enum { IMPORT_RUN_FDS = 2 };

struct import_run_options {
    const char *command; /* "import-run" or "import-fetch"; its first argument is this process */
    const char *const *argv; /* the others; ends with NULL */
    int stdin_fd;            /* borrowed for the call; 0: this process's own */
    int fds[IMPORT_RUN_FDS]; /* likewise, from 3 on; 0: none */
    /* Once; NULL: it is done. INVALID: the file's fault; UNAVAILABLE: it is not. */
    void (*on_done)(void *context, const struct error *error);
    void *context;
};

MUST_CHECK int import_run_start(struct server *server, const struct import_run_options *options,
                                struct import_run **out_run, struct error *error);
/* Appends what it said, from on_done. */
MUST_CHECK int import_run_read(const struct import_run *run, struct buffer *out,
                               struct error *error);
/* Ends one that runs, which is not told of then. NULL is fine. */
void import_run_free(struct import_run *run);
