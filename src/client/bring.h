/*
 * Bring: what a job names by an address (source/place.h) brought to this machine for as long as it
 * is read: a file, a folder, or an archive of a folder's files.
 *
 * A file lies in $TMPDIR or else /var/tmp without a name of its own, so that its bytes never stay
 * behind; a folder is removed at the end, also where Ctrl-C ended the fetching.
 *
 * Credentials come from the job file's `secrets`, and what is not there from the environment; they
 * are in memory alone.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "runtime/job_spec.h"

#include <stdbool.h>

struct bring_options {
    const char *address;
    const struct job_spec *spec; /* of its secrets */
    /* Told of what takes long; may be NULL. */
    void (*on_note)(void *context, const char *what);
    void *context;
    bool leaves_signals;          /* Ctrl-C and SIGTERM are the caller's own */
    const volatile int32_t *stop; /* ends it once it is not 0; NULL: nothing does */
};

struct bring;

/* Whether it is there, as far as can be told without reading it. */
MUST_CHECK int bring_check(const struct bring_options *options, struct error *error);

MUST_CHECK int bring_open(const struct bring_options *options, struct bring **out_bring,
                          struct error *error);
/* The same of an archive (tar, compressed by gzip or zstd or not, or zip), which is unpacked, or a
 * folder.
 */
MUST_CHECK int bring_open_folder(const struct bring_options *options, struct bring **out_bring,
                                 struct error *error);
void bring_free(struct bring *bring); /* NULL is fine */
DEFINE_AUTO(bring);

/* A file with the name it has there, or a folder. */
const char *bring_path(const struct bring *bring);

/* Names the address in a message instead of the path. */
void bring_rename(const struct bring *bring, struct error *error);
