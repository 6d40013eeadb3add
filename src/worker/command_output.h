/*
 * Command output: what a borrower's program leaves in its output folder, by the limits of
 * runtime/result_name.h.
 *
 * Files are kept with the folders they lie in, in the order of their names. What is not kept is
 * named: in the log, and in a file that is kept with the others.
 */
#pragma once

#include "worker/worker_internal.h"

struct output_left {
    const char *path; /* below the folder */
    const char *reason;
};

struct output {
    const char *paths[RESULT_FILES_MAX]; /* below the folder */
    size_t count;
    struct buffer left; /* of struct output_left, the first of them */
    size_t left_count;
};

void output_done(struct output *output);
#define AUTO_OUTPUT __attribute__((cleanup(output_done)))

/* Looks through the folder; strings are the arena's. */
MUST_CHECK int output_gather(struct arena *arena, const char *folder, struct output *out_output,
                             struct error *error);

/* Tells the daemon of each file to keep. */
void command_keep_output(const struct work *work);
