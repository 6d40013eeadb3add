/*
 * Agent: Siren's learned scheduler. A network sees how the job stands and gives a Gaussian over the
 * next choice; trained, it is asked for its mean.
 *
 * State, as in the paper: the epoch, the loss, the time of the last epoch and its parts fetch,
 * compute and update, the use of memory and CPU, and what is left of the budget; each less the mean
 * and over the deviation seen in training. Action: the logarithm of the number of functions and the
 * memory, counted from a choice given at the beginning, rounded to what there is.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "learn/epoch.h"
#include "learn/mlp.h"

enum {
    AGENT_INPUTS = 9,
    AGENT_ACTIONS = 2, /* functions, memory */
    AGENT_FILE_BYTES_MAX = 1 << 20,
};

struct agent_policy {
    double mean[AGENT_ACTIONS];
    double log_deviation[AGENT_ACTIONS];
};

struct agent_scale {
    double mean[AGENT_INPUTS], deviation[AGENT_INPUTS];
};

/* Plain data around its network. */
struct agent {
    struct mlp *mlp; /* AGENT_INPUTS to 2 AGENT_ACTIONS */
    struct agent_scale scale;
    struct epoch_choice centre; /* what an action of 0 means */
    double offset;              /* added to the logarithm of the number of functions */
    uint64_t episode_count;     /* it was trained with */
};

/* A fresh network that chooses `centre` whatever it sees. */
struct agent *agent_new(struct epoch_choice centre, uint64_t seed);
void agent_free(struct agent *agent); /* NULL is fine */
DEFINE_AUTO(agent);

/* `input` is raw; agent_look scales it. */
void agent_input(const struct epoch_task *task, const struct epoch_state *state,
                 double input[static AGENT_INPUTS]);
struct agent_policy agent_look(const struct agent *agent, const double input[static AGENT_INPUTS]);
/* What an action asks for, whatever a space has. */
struct agent_wish {
    double function_count, memory_mb;
};
struct agent_wish agent_wish(const struct agent *agent, const double action[static AGENT_ACTIONS]);
struct epoch_choice agent_action(const struct agent *agent, const struct epoch_space *space,
                                 const double action[static AGENT_ACTIONS]);

/* The mean's choice. */
struct epoch_choice agent_choose(const struct agent *agent, const struct epoch_task *task,
                                 const struct epoch_state *state);

/* As text, described in agent_file.c. Equal agents give equal bytes. */
MUST_CHECK int agent_encode(const struct agent *agent, struct buffer *out, struct error *error);
/* INVALID for anything that agent_encode would not have written. */
MUST_CHECK int agent_decode(struct text text, struct agent **out_agent, struct error *error);
