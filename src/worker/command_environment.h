/*
 * Command environment: the variables that a borrower's script finds.
 */
#pragma once

#include "blob/image_document.h"
#include "runtime/launch.h"
#include "worker/worker_internal.h"

/* Where a script is among the others. */
struct command_place {
    uint64_t rank, world;
    const struct launch_member *members; /* that it can reach; none without a network */
    size_t member_count;
    const struct launch *launch; /* NULL: of no framework */
    const char *done_file;       /* the ranks that have ended well, a line each; NULL: not known */
};

/* Of a rank that starts alone: all those that the job starts with are its members. */
struct command_place command_place_alone(struct arena *arena, const struct work *work);

/* Ends with NULL; all of it lives in the arena. */
char **command_environment(struct arena *arena, const struct work *work,
                           const struct image_config *image, const struct command_place *place);
