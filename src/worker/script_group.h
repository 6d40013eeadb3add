/*
 * Script group: the processes that one rank runs side by side. They end together: when one fails
 * the others are stopped, and its end is that of all.
 */
#pragma once

#include "worker/script.h"

struct script_group;

/* As a script, with an environment for each process; on_exit comes once, when all have ended. */
MUST_CHECK int script_group_start(const struct script_options *options, char ***environments,
                                  size_t count, struct script_group **out_group,
                                  struct error *error);
void script_group_stop(struct script_group *group, int64_t grace_ms);
/* Kills what is left of it; from inside on_exit, too. */
void script_group_free(struct script_group *group); /* NULL is fine */
DEFINE_AUTO(script_group);
