/* What the files of the driver share. */
#pragma once

#include "cloud/slurm_cluster.h"
#include "cloud/slurm_library_internal.h"

struct slurm_cluster {
    const struct slurm_library *library;
    struct slurm_cluster_options options;
    char comment[SLURM_TAG_SIZE + sizeof(SLURM_AGENT_NAME)];
    /* What Slurm said last; asked again with its time, so that only changes travel. */
    node_info_msg_t *nodes;
    partition_info_msg_t *partitions;
    reserve_info_msg_t *reservations;
    job_info_msg_t *jobs;
    const partition_info_t *partition;
    /* What was read from it. */
    struct slurm_node *seen_nodes;
    struct slurm_agent *seen_agents;
    struct slurm_waiting *seen_waiting;
    bool *maps; /* `could` and `must` of those that wait */
};

/* slurm_view.c: what Slurm said, as the plan sees it. */
void slurm_view_nodes(struct slurm_cluster *cluster, int64_t now_ms);
void slurm_view_jobs(struct slurm_cluster *cluster, struct slurm_state *out);
