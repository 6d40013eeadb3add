/*
 * Siren rehearse: how agent and auto learn a world before the runs that count.
 *
 * Nothing of the world's constants is told: where to begin is found by episodes of the same count.
 *
 *     agent  the first are of one number of functions each, with every memory in turn: a search
 *            from the middle of the space by what they took and cost; all but ten of the others
 *            train it around the best of them; the ten set its number of functions to the budget
 *     auto   choices drawn anew every few epochs, at first from the whole space, then around the
 *            best constant by a fit to all that was seen; the last is of that constant
 *
 * The budget does not end a rehearsal: how far it was passed is what is learned from.
 */
#pragma once

#include "learn/agent.h"
#include "learn/epoch_fit.h"
#include "sim/siren.h"

enum { SIREN_AGENT_REHEARSALS_MIN = 20, SIREN_REHEARSALS_MAX = 10000 };

struct siren_rehearsals {
    const struct siren_world *world;
    int64_t budget_micro;
    bool is_noisy;
    uint64_t seed;  /* of what is drawn */
    uint64_t first; /* episode */
    uint32_t count; /* SIREN_AGENT_REHEARSALS_MIN or more for an agent, 1 for auto */
};

/* The agent is the caller's. */
struct agent *siren_rehearse_agent(struct siren_rehearsals rehearsals);

/* What auto brings from its rehearsals. */
struct siren_experience {
    struct epoch_fit history;
    struct epoch_state *constant_run; /* how it stood after each epoch */
    uint32_t constant_epochs;         /* 0: it did not reach the target */
};

void siren_experience_init(struct siren_experience *experience, const struct epoch_task *task);
void siren_experience_done(struct siren_experience *experience);
void siren_rehearse_auto(struct siren_rehearsals rehearsals, struct siren_experience *experience);
