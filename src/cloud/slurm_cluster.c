#include "cloud/slurm_cluster.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/library.h"
#include "base/memory.h"
#include "cloud/slurm_cluster_internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MINUTE_MS = 60000 };

/* The least priority there is: NICE_OFFSET + 2147483645, beyond which numbers mean something else.
 */
static const uint32_t nice_last = NICE_OFFSET + 2147483645u;

static int refuse(const struct slurm_cluster *cluster, enum error_code code, const char *what,
                  struct error *error)
{
    const struct slurm_library *library = cluster->library;
    return error_set(error, code, "%s: %s", what,
                     library->slurm_strerror(library->slurm_get_errno()));
}

int slurm_cluster_open(const struct slurm_cluster_options *options,
                       struct slurm_cluster **out_cluster, struct error *error)
{
    ASSERT(strlen(options->tag) < SLURM_TAG_SIZE);
    const struct slurm_library *library = NULL;
    /* libslurm ends the program when it finds no configuration. */
    if (access(options->configuration, R_OK) < 0)
        return error_set(error, ERROR_UNAVAILABLE,
                         "\"%s\" cannot be read: lend a partition on a machine that submits to "
                         "Slurm, or name its file by SLURM_CONF",
                         options->configuration);
    if (slurm_library_load(&library, error) < 0)
        return -1;
    library->slurm_init(options->configuration);
    struct slurm_cluster *cluster = memory_zeroed(1, sizeof(*cluster));
    cluster->library = library;
    cluster->options = *options;
    snprintf(cluster->comment, sizeof(cluster->comment), SLURM_AGENT_NAME " %s", options->tag);
    *out_cluster = cluster;
    return 0;
}

void slurm_cluster_free(struct slurm_cluster *cluster)
{
    if (!cluster)
        return;
    const struct slurm_library *library = cluster->library;
    if (cluster->nodes)
        library->slurm_free_node_info_msg(cluster->nodes);
    if (cluster->partitions)
        library->slurm_free_partition_info_msg(cluster->partitions);
    if (cluster->reservations)
        library->slurm_free_reservation_info_msg(cluster->reservations);
    if (cluster->jobs)
        library->slurm_free_job_info_msg(cluster->jobs);
    library->slurm_fini();
    free(cluster->seen_nodes);
    free(cluster->seen_agents);
    free(cluster->seen_waiting);
    free(cluster->maps);
    free(cluster);
}

/* ---- Looking --------------------------------------------------------------------------------- */

/* 0 when there is a new answer, 1 when what is kept is still so, -1 with an error. */
static int take_answer(const struct slurm_cluster *cluster, int result, const char *what,
                       struct error *error)
{
    if (result == SLURM_SUCCESS)
        return 0;
    if (cluster->library->slurm_get_errno() == SLURM_NO_CHANGE_IN_DATA)
        return 1;
    return refuse(cluster, ERROR_UNAVAILABLE, what, error);
}

/* Asks for one kind and lets go of what was kept. */
#define LOAD(cluster, kept, what, free_kept, call)                                                 \
    ({                                                                                             \
        __typeof__((cluster)->kept) fresh = NULL;                                                  \
        const time_t since = (cluster)->kept ? (cluster)->kept->last_update : 0;                   \
        const int taken = take_answer((cluster), (call), (what), error);                           \
        if (taken == 0) {                                                                          \
            if ((cluster)->kept)                                                                   \
                (cluster)->library->free_kept((cluster)->kept);                                    \
            (cluster)->kept = fresh;                                                               \
        }                                                                                          \
        taken;                                                                                     \
    })

static int load(struct slurm_cluster *cluster, struct error *error)
{
    const struct slurm_library *library = cluster->library;
    /* Nodes before jobs: an agent that has not started and whose node was not idle even before that
     * has lost it to somebody else. */
    if (LOAD(cluster, partitions, "read Slurm's partitions", slurm_free_partition_info_msg,
             library->slurm_load_partitions(since, &fresh, SHOW_ALL)) < 0)
        return -1;
    if (LOAD(cluster, reservations, "read Slurm's reservations", slurm_free_reservation_info_msg,
             library->slurm_load_reservations(since, &fresh)) < 0)
        return -1;
    if (LOAD(cluster, nodes, "read Slurm's nodes", slurm_free_node_info_msg,
             library->slurm_load_node(since, &fresh, SHOW_ALL)) < 0)
        return -1;
    if (LOAD(cluster, jobs, "read Slurm's queue", slurm_free_job_info_msg,
             library->slurm_load_jobs(since, &fresh, SHOW_ALL)) < 0)
        return -1;
    return 0;
}

static const partition_info_t *find_partition(const struct slurm_cluster *cluster)
{
    const partition_info_msg_t *partitions = cluster->partitions;
    for (uint32_t i = 0; i < partitions->record_count; i++)
        if (!strcmp(partitions->partition_array[i].name, cluster->options.partition))
            return &partitions->partition_array[i];
    return NULL;
}

static int refuse_partition(const struct slurm_cluster *cluster, struct error *error)
{
    char names[160] = "";
    const partition_info_msg_t *partitions = cluster->partitions;
    for (uint32_t i = 0; i < partitions->record_count; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
                 partitions->partition_array[i].name);
    }
    return error_set(error, ERROR_NOT_FOUND, "Slurm has no partition \"%.40s\"; it has: %s",
                     cluster->options.partition, names);
}

int slurm_cluster_look(struct slurm_cluster *cluster, struct slurm_state *out,
                       struct slurm_agent **out_agents, struct error *error)
{
    if (load(cluster, error) < 0)
        return -1;
    cluster->partition = find_partition(cluster);
    if (!cluster->partition)
        return refuse_partition(cluster, error);
    slurm_view_nodes(cluster, clock_utc_ms(&clock_system));
    slurm_view_jobs(cluster, out);
    *out_agents = cluster->seen_agents;
    return 0;
}

int64_t slurm_cluster_limit_ms(const struct slurm_cluster *cluster)
{
    const uint32_t minutes = cluster->partition->max_time;
    return minutes == INFINITE || minutes == NO_VAL ? INT64_MAX : (int64_t)minutes * MINUTE_MS;
}

bool slurm_cluster_is_up(const struct slurm_cluster *cluster)
{
    return cluster->partition->state_up == PARTITION_UP;
}

/* ---- Doing ----------------------------------------------------------------------------------- */

int slurm_cluster_start(struct slurm_cluster *cluster, const struct slurm_start *start,
                        uint32_t *out_job, struct error *error)
{
    const struct slurm_library *library = cluster->library;
    char home[512];
    snprintf(home, sizeof(home), "HOME=%s", start->folder);
    char *environment[] = {home, without_const("PATH=/usr/local/bin:/usr/bin:/bin")};
    job_desc_msg_t job;
    library->slurm_init_job_desc_msg(&job);
    job.name = without_const(SLURM_AGENT_NAME);
    job.comment = cluster->comment;
    job.partition = without_const(cluster->options.partition);
    job.account = without_const(start->account);
    job.qos = without_const(start->qos);
    job.req_nodes = without_const(start->node);
    job.min_nodes = job.max_nodes = 1;
    job.num_tasks = 1;
    job.shared = 0;        /* nobody else on the node */
    job.pn_min_memory = 0; /* all of its memory */
    job.time_limit = (uint32_t)(start->limit_ms / MINUTE_MS);
    job.nice = nice_last;
    job.requeue = 0;
    job.user_id = getuid();
    job.group_id = getgid();
    job.environment = environment;
    job.env_size = sizeof(environment) / sizeof(*environment);
    job.script = without_const(start->script);
    job.work_dir = without_const(start->folder);
    job.std_in = without_const("/dev/null");
    job.std_out = job.std_err = without_const(start->output);
    job.open_mode = OPEN_MODE_APPEND;
    submit_response_msg_t *response = NULL;
    if (library->slurm_submit_batch_job(&job, &response) != SLURM_SUCCESS)
        return refuse(cluster, ERROR_REFUSED, "submit a job to Slurm", error);
    *out_job = response->job_id;
    library->slurm_free_submit_response_response_msg(response);
    return 0;
}

int slurm_cluster_end(struct slurm_cluster *cluster, uint32_t job, bool is_kill,
                      struct error *error)
{
    const struct slurm_library *library = cluster->library;
    const int result = is_kill ? library->slurm_kill_job(job, SIGKILL, 0)
                               : library->slurm_kill_job(job, SIGTERM, KILL_JOB_BATCH);
    if (result == SLURM_SUCCESS)
        return 0;
    switch (library->slurm_get_errno()) {
    case ESLURM_INVALID_JOB_ID:
    case ESLURM_ALREADY_DONE:
    case ESLURM_JOB_PENDING: /* no process to ask yet: it is ended by force next */
    case ESLURM_TRANSITION_STATE_NO_UPDATE:
        return 0;
    default:
        return refuse(cluster, ERROR_UNAVAILABLE, "end a job of Slurm's", error);
    }
}
