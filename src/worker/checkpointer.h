/*
 * Checkpointer: writes checkpoints on a thread of its own, so that a slow disk holds nobody up.
 *
 * All calls come from one thread.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "train/checkpoint.h"

struct checkpointer_options {
    const char *path; /* as long as the checkpointer */
    struct model_spec spec;
    uint64_t seed;
    size_t parameter_count;
    /* On the checkpointer's thread: one is whole on disk; or why it is not. */
    void (*on_written)(void *context, const struct error *reason);
    void *context;
};

struct checkpointer;

MUST_CHECK int checkpointer_open(const struct checkpointer_options *options,
                                 struct checkpointer **out_checkpointer, struct error *error);
/* Waits for the one that is being written. NULL is fine. */
void checkpointer_free(struct checkpointer *checkpointer);
DEFINE_AUTO(checkpointer);

/* What to fill with the counts, the parameters and the velocity, before checkpointer_write; NULL
 * while the last one is being written, unless that is to be waited for. */
struct checkpoint *checkpointer_next(struct checkpointer *checkpointer, bool is_waiting);
void checkpointer_write(struct checkpointer *checkpointer);
