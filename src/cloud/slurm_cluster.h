/*
 * Slurm cluster: the driver. Looks at nodes and queue by libslurm, submits agents' jobs and ends
 * them.
 *
 * Jobs of ours bear the name SLURM_AGENT_NAME and a comment with the tag of the daemon that made
 * them, by which it finds them again. A call to a controller that is away takes as long as Slurm's
 * own patience (MessageTimeout). One cluster belongs to one thread.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "cloud/slurm_plan.h"

#define SLURM_AGENT_NAME "souk-lend"
enum { SLURM_TAG_SIZE = 40 };

struct slurm_cluster_options {
    const char *configuration; /* slurm.conf */
    const char *partition;
    const char *tag; /* of the daemon: fewer than SLURM_TAG_SIZE letters */
};

struct slurm_cluster;
/* UNAVAILABLE without the library or slurm.conf. Asks nobody yet. The options' texts are borrowed.
 */
MUST_CHECK int slurm_cluster_open(const struct slurm_cluster_options *options,
                                  struct slurm_cluster **out_cluster, struct error *error);
void slurm_cluster_free(struct slurm_cluster *cluster); /* NULL is fine */
DEFINE_AUTO(slurm_cluster);

/* What there is now, with no agent leased; `out` is the cluster's until the next look. NOT_FOUND
 * when there is no such partition, UNAVAILABLE when the controller does not answer. */
MUST_CHECK int slurm_cluster_look(struct slurm_cluster *cluster, struct slurm_state *out,
                                  struct slurm_agent **out_agents, struct error *error);

/* Of the partition, after a look: its longest time for a job, INT64_MAX when it has none, and
 * whether jobs start there at all. */
int64_t slurm_cluster_limit_ms(const struct slurm_cluster *cluster);
bool slurm_cluster_is_up(const struct slurm_cluster *cluster);

struct slurm_start {
    const char *node;
    int64_t limit_ms;
    const char *script;
    const char *folder;  /* to run in, and HOME */
    const char *output;  /* appended to */
    const char *account; /* NULL: the user's own */
    const char *qos;     /* NULL: the account's own */
};
/* A job that has the node to itself, behind all others, never requeued. REFUSED with Slurm's words.
 */
MUST_CHECK int slurm_cluster_start(struct slurm_cluster *cluster, const struct slurm_start *start,
                                   uint32_t *out_job, struct error *error);

/* Asks the agent to end, its own process alone; or ends the job. One that is gone is fine. */
MUST_CHECK int slurm_cluster_end(struct slurm_cluster *cluster, uint32_t job, bool is_kill,
                                 struct error *error);
