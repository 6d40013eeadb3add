/*
 * Import runner: `souk import-run`, a process of its own that the market starts for one file it
 * reads for somebody, and that ends with the market. It starts the reader (worker/import_main.c) in
 * a sandbox: without a network, with the file read-only, one folder to write to, and limits on
 * memory, CPU time and disk, which it watches.
 *
 *     souk import-run PARENT STATE FOLDER read NAME file|folder BYTES_MAX
 *     souk import-run PARENT STATE FOLDER mount NAME BYTES_MAX
 *     souk import-run PARENT STATE FOLDER look NAME whole|start
 *
 * PARENT is the market's process. STATE keeps notes of sandboxes and is used by one runner at a
 * time; what a killed one left there is ended first. FOLDER has data/NAME, and but for a look
 * work/. What went wrong is one sentence on standard output; of a look that went well there is what
 * the reader says (train/look.h).
 */
#pragma once

#include <stdint.h>

enum import_runner_exit {
    IMPORT_RUNNER_DONE,
    IMPORT_RUNNER_REFUSED,     /* the file is not what it should be, or takes too much */
    IMPORT_RUNNER_UNAVAILABLE, /* it is not the file's fault */
};

enum {
    IMPORT_FILES_MAX = 200000, /* of an archive, folders counted */
    IMPORT_CPU_MS = 30 * 60000,
    IMPORT_WALL_MS = 60 * 60000,
    IMPORT_LOOK_MS = 10000, /* CPU and wall */
    IMPORT_DISK_TIMES = 4,  /* what it may write, of BYTES_MAX; and what an archive may hold */
};

#define IMPORT_MEMORY_BYTES    (INT64_C(2) << 30)
#define IMPORT_DISK_FREE_BYTES (INT64_C(256) << 20) /* left to everybody else */

/* Returns the process's exit status. */
int import_runner_main(int argc, char **argv);
