/* Agent store: a scheduler's agent (learn/agent.h) in a file. */
#pragma once

#include "learn/agent.h"

MUST_CHECK int agent_store_read(const char *path, struct agent **out_agent, struct error *error);
MUST_CHECK int agent_store_write(const char *path, const struct agent *agent, struct error *error);
