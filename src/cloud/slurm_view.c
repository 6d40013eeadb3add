/* What Slurm said, as the plan sees it. */
#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "cloud/slurm_cluster_internal.h"
#include "cloud/slurm_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SECOND_MS = 1000,
    WAITING_MAX = 1000, /* the first by priority; nobody behind them comes before them */
};

/* On such a node agents end: it is somebody else's, or nobody's soon. */
static const uint32_t withheld_flags = NODE_STATE_RES | NODE_STATE_MAINT | NODE_STATE_DRAIN |
                                       NODE_STATE_FAIL | NODE_STATE_REBOOT_REQUESTED |
                                       NODE_STATE_REBOOT_ISSUED | NODE_STATE_POWER_DOWN |
                                       NODE_STATE_POWER_DRAIN;
/* On such a node no job starts now. */
static const uint32_t closed_flags = NODE_STATE_COMPLETING | NODE_STATE_NO_RESPOND |
                                     NODE_STATE_INVALID_REG | NODE_STATE_POWERED_DOWN |
                                     NODE_STATE_POWERING_DOWN | NODE_STATE_POWERING_UP |
                                     NODE_STATE_POWER_UP;

/* ---- Nodes ----------------------------------------------------------------------------------- */

/* Sets or clears what pairs of first and last index, ended by -1, name. */
static void mark(const int32_t *pairs, bool value, bool *map, size_t count)
{
    for (; pairs && pairs[0] >= 0; pairs += 2)
        for (int32_t i = pairs[0]; i <= pairs[1]; i++)
            if ((size_t)i < count)
                map[i] = value;
}

static void view_node(const node_info_t *from, struct slurm_node *to)
{
    const uint32_t base = from->node_state & NODE_STATE_BASE;
    const bool is_withheld = (from->node_state & withheld_flags) != 0;
    const bool is_bare = base == NODE_STATE_IDLE && !is_withheld;
    *to = (struct slurm_node){
        .is_idle = is_bare && (from->node_state & closed_flags) == 0,
        .is_ending = is_bare && (from->node_state & closed_flags) == NODE_STATE_COMPLETING,
        .is_withheld = is_withheld,
        .is_planned = (from->node_state & NODE_STATE_PLANNED) != 0,
        .free_until_ms = INT64_MAX,
        .cpus = from->cpus_efctv ? from->cpus_efctv : from->cpus,
    };
    /* One with a longer name than this cannot be told from others: it is not there. */
    if (from->name && strlen(from->name) < sizeof(to->name))
        snprintf(to->name, sizeof(to->name), "%s", from->name);
}

static void view_reservations(struct slurm_cluster *cluster, bool *map, int64_t now_ms)
{
    const size_t count = cluster->nodes->record_count;
    for (uint32_t r = 0; r < cluster->reservations->record_count; r++) {
        const reserve_info_t *reservation = &cluster->reservations->reservation_array[r];
        const int64_t starts_ms = (int64_t)reservation->start_time * SECOND_MS;
        if (starts_ms < now_ms)
            continue; /* its nodes say so themselves */
        memset(map, 0, count * sizeof(*map));
        mark(reservation->node_inx, true, map, count);
        for (size_t i = 0; i < count; i++)
            if (map[i] && starts_ms < cluster->seen_nodes[i].free_until_ms)
                cluster->seen_nodes[i].free_until_ms = starts_ms;
    }
}

void slurm_view_nodes(struct slurm_cluster *cluster, int64_t now_ms)
{
    const size_t count = cluster->nodes->record_count;
    bool *map = memory_zeroed(count, sizeof(*map));
    free(cluster->seen_nodes);
    cluster->seen_nodes = memory_zeroed(count, sizeof(*cluster->seen_nodes));
    mark(cluster->partition->node_inx, true, map, count);
    for (size_t i = 0; i < count; i++) {
        view_node(&cluster->nodes->node_array[i], &cluster->seen_nodes[i]);
        cluster->seen_nodes[i].is_lent = map[i];
    }
    view_reservations(cluster, map, now_ms);
    free(map);
}

/* ---- Agents ---------------------------------------------------------------------------------- */

static bool is_agent(const slurm_job_info_t *job)
{
    return job->name && job->comment && !strcmp(job->name, SLURM_AGENT_NAME) &&
           !strncmp(job->comment, SLURM_AGENT_NAME " ", sizeof(SLURM_AGENT_NAME));
}

static bool is_own(const struct slurm_cluster *cluster, const slurm_job_info_t *job)
{
    return is_agent(job) && job->user_id == getuid() && !strcmp(job->comment, cluster->comment);
}

/* False for a node that is not there any more. */
static bool find_node(const struct slurm_cluster *cluster, const char *name, uint32_t *out_node)
{
    for (uint32_t i = 0; name && i < cluster->nodes->record_count; i++)
        if (!strcmp(cluster->seen_nodes[i].name, name)) {
            *out_node = i;
            return true;
        }
    return false;
}

static void view_agent(const struct slurm_cluster *cluster, const slurm_job_info_t *job,
                       struct slurm_state *out)
{
    const uint32_t state = job->job_state & JOB_STATE_BASE;
    struct slurm_agent agent = {.job = job->job_id,
                                .is_running = state == JOB_RUNNING || state == JOB_SUSPENDED,
                                .submitted_ms = (int64_t)job->submit_time * SECOND_MS,
                                .ends_ms = (int64_t)job->end_time * SECOND_MS};
    if ((agent.is_running || state == JOB_PENDING) &&
        find_node(cluster, agent.is_running ? job->nodes : job->req_nodes, &agent.node))
        cluster->seen_agents[out->agent_count++] = agent;
}

static int compare_agents(const void *left, const void *right)
{
    const struct slurm_agent *a = left, *b = right;
    return (a->job > b->job) - (a->job < b->job);
}

/* ---- Those that wait ------------------------------------------------------------------------- */

/* Others wait for something that no node of ours gives them: a time, another job, a limit. */
static bool waits_for_nodes(const slurm_job_info_t *job)
{
    if ((job->job_state & JOB_STATE_BASE) != JOB_PENDING || job->priority == 0 ||
        (job->resv_name && job->resv_name[0]))
        return false;
    switch (job->state_reason) {
    case WAIT_NO_REASON:
    case WAIT_PRIORITY:
    case WAIT_RESOURCES:
    case WAIT_NODE_NOT_AVAIL:
    case FAIL_DEFER:
        return true;
    default:
        return false;
    }
}

static bool names_partition(const char *list, const char *name)
{
    struct text rest = text_of(list ? list : ""), word;
    for (bool has_more = true; has_more;) {
        has_more = text_cut(rest, ',', &word, &rest);
        if (text_equal(word, text_of(name)))
            return true;
    }
    return false;
}

static bool wants_gpu(const slurm_job_info_t *job)
{
    const char *const wishes[] = {job->tres_per_node, job->tres_per_job, job->tres_per_socket,
                                  job->tres_per_task};
    for (size_t i = 0; i < sizeof(wishes) / sizeof(*wishes); i++)
        if (wishes[i] && strstr(wishes[i], "gpu"))
            return true;
    return false;
}

/* What is plain to see; the rest Slurm knows. */
static bool node_could(const node_info_t *node, const slurm_job_info_t *job, uint32_t cpus_per_node)
{
    const bool is_per_cpu = (job->pn_min_memory & MEM_PER_CPU) != 0;
    const uint64_t memory_mib =
        (job->pn_min_memory & ~MEM_PER_CPU) * (is_per_cpu ? cpus_per_node : 1);
    if (memory_mib > node->real_memory || cpus_per_node > node->cpus)
        return false;
    if (wants_gpu(job) && !(node->gres && strstr(node->gres, "gpu")))
        return false;
    return slurm_features_could(node->features_act ? node->features_act : node->features,
                                job->features);
}

static void view_could(const struct slurm_cluster *cluster, const slurm_job_info_t *job,
                       uint32_t cpus_per_node, bool *could)
{
    const size_t count = cluster->nodes->record_count;
    for (uint32_t p = 0; p < cluster->partitions->record_count; p++)
        if (names_partition(job->partition, cluster->partitions->partition_array[p].name))
            mark(cluster->partitions->partition_array[p].node_inx, true, could, count);
    mark(job->exc_node_inx, false, could, count);
    for (size_t i = 0; i < count; i++)
        could[i] = could[i] && node_could(&cluster->nodes->node_array[i], job, cpus_per_node);
}

static void view_waiting(const struct slurm_cluster *cluster, const slurm_job_info_t *job,
                         bool *maps, struct slurm_state *out)
{
    const size_t count = cluster->nodes->record_count;
    const bool has_must = job->req_node_inx && job->req_node_inx[0] >= 0;
    const uint32_t nodes = job->num_nodes > 0 ? job->num_nodes : 1;
    const uint32_t cpus = (job->num_cpus + nodes - 1) / nodes;
    const uint32_t least = job->pn_min_cpus > 0 ? job->pn_min_cpus : 1;
    struct slurm_waiting waiting = {.job = job->job_id,
                                    .priority = job->priority,
                                    .node_count = nodes,
                                    .cpus_per_node = cpus > least ? cpus : least,
                                    .copies =
                                        slurm_array_count(job->array_task_str, (uint32_t)count),
                                    .is_exclusive = job->shared == 0,
                                    .could = maps,
                                    .must = has_must ? maps + count : NULL};
    view_could(cluster, job, waiting.cpus_per_node, maps);
    mark(job->req_node_inx, true, maps + count, count);
    cluster->seen_waiting[out->waiting_count++] = waiting;
}

static int compare_priorities(const void *left, const void *right)
{
    const slurm_job_info_t *a = *(const slurm_job_info_t *const *)left;
    const slurm_job_info_t *b = *(const slurm_job_info_t *const *)right;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return (a->job_id > b->job_id) - (a->job_id < b->job_id);
}

static void view_queue(struct slurm_cluster *cluster, struct slurm_state *out)
{
    const job_info_msg_t *jobs = cluster->jobs;
    const size_t node_count = cluster->nodes->record_count;
    const slurm_job_info_t **queue = memory_zeroed(jobs->record_count, sizeof(*queue));
    size_t count = 0;
    for (uint32_t i = 0; i < jobs->record_count; i++)
        if (!is_agent(&jobs->job_array[i]) && waits_for_nodes(&jobs->job_array[i]))
            queue[count++] = &jobs->job_array[i];
    qsort(queue, count, sizeof(*queue), compare_priorities);
    if (count > WAITING_MAX)
        count = WAITING_MAX;
    free(cluster->seen_waiting);
    free(cluster->maps);
    cluster->seen_waiting = memory_zeroed(count, sizeof(*cluster->seen_waiting));
    cluster->maps = memory_zeroed(count * 2 * node_count, sizeof(*cluster->maps));
    for (size_t i = 0; i < count; i++)
        view_waiting(cluster, queue[i], cluster->maps + i * 2 * node_count, out);
    out->waiting = cluster->seen_waiting;
    free(queue);
}

void slurm_view_jobs(struct slurm_cluster *cluster, struct slurm_state *out)
{
    const job_info_msg_t *jobs = cluster->jobs;
    free(cluster->seen_agents);
    cluster->seen_agents = memory_zeroed(jobs->record_count, sizeof(*cluster->seen_agents));
    *out = (struct slurm_state){.nodes = cluster->seen_nodes,
                                .node_count = cluster->nodes->record_count,
                                .agents = cluster->seen_agents};
    for (uint32_t i = 0; i < jobs->record_count; i++)
        if (is_own(cluster, &jobs->job_array[i]))
            view_agent(cluster, &jobs->job_array[i], out);
    qsort(cluster->seen_agents, out->agent_count, sizeof(*cluster->seen_agents), compare_agents);
    view_queue(cluster, out);
}
