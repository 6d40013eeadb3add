/*
 * Import run: one `souk import-run` (import_runner.h), watched by the loop.
 *
 * Main thread.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

struct server;
struct import_run;

struct import_run_options {
    const char *state;       /* folder; one run at a time uses it */
    const char *folder;      /* has data/ and work/ */
    const char *const *argv; /* from `read` or `look` on, ends with NULL */
    /* Once; NULL: it is done. INVALID, EXHAUSTED: the file's fault; UNAVAILABLE: it is not. */
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
