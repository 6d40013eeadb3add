/*
 * Checkpoints of a borrower's program: what it leaves in two folders is kept for its successor, and
 * what its predecessor left is there before it starts.
 *
 * $SOUK_CHECKPOINT_DIR is the job's, and rank 0's to write; $SOUK_RANK_CHECKPOINT_DIR is a rank's
 * own. While the program runs, a folder is sent when nothing in it has changed from one look to the
 * next, no file in it is open for writing, and the last was sent an interval ago. Once it has
 * ended, what such a look had found finished, or all there is if the end was a good one.
 */
#pragma once

#include "net/loop.h"
#include "worker/worker_internal.h"

struct command_checkpoint;

/* `reason` is NULL when all is well. */
typedef void command_checkpoint_function(void *context, const char *reason);

#define CHECKPOINT_FOLDER      "checkpoint"
#define RANK_CHECKPOINT_FOLDER "rank-checkpoint"

/* Makes the folders beside the working folder. */
MUST_CHECK int command_checkpoint_open(struct loop *loop, const struct work *work, void *context,
                                       struct command_checkpoint **out_checkpoint,
                                       struct error *error);
void command_checkpoint_free(struct command_checkpoint *checkpoint); /* NULL is fine */
DEFINE_AUTO(command_checkpoint);

/* The folder's path; of the job, or the rank. */
const char *command_checkpoint_folder(struct arena *arena, const struct work *work, bool is_of_job);

/* Brings the newest; then looks at the folders until it is told to settle. */
void command_checkpoint_restore(struct command_checkpoint *checkpoint,
                                command_checkpoint_function *done);
/* The program has ended: what it left is sent, and known to the market. */
void command_checkpoint_settle(struct command_checkpoint *checkpoint, bool is_good_end,
                               command_checkpoint_function *done);
/* Nobody waits for the market any more. */
void command_checkpoint_hurry(struct command_checkpoint *checkpoint);
/* CHECKPOINTS and KEPT. */
void command_checkpoint_take(struct command_checkpoint *checkpoint,
                             const struct child_message *message);
