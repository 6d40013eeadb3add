/* Job runtime: which fields belong to which runtime, and what a framework implies. */
#include "runtime/job_model_internal.h"
#include "runtime/launch.h"

#include <inttypes.h>
#include <stdio.h>

bool job_spec_is_command(const struct job_spec *spec)
{
    return text_equal(spec->runtime, TEXT("command")) || launch_find(spec->runtime);
}

enum muster_restart job_spec_restart(const struct job_spec *spec)
{
    for (int i = 0; muster_restart_names[i]; i++)
        if (text_is(spec->restart, muster_restart_names[i]))
            return (enum muster_restart)i;
    return launch_find(spec->runtime) ? MUSTER_RESTART_JOB : MUSTER_RESTART_RANK;
}

bool job_spec_is_gathered(const struct job_spec *spec)
{
    return job_spec_is_command(spec) &&
           (launch_find(spec->runtime) || job_spec_restart(spec) == MUSTER_RESTART_JOB);
}

const struct job_input *job_spec_image(const struct job_spec *spec)
{
    for (size_t i = 0; i < spec->input_count; i++)
        if (spec->inputs[i].split == JOB_SPLIT_IMAGE)
            return &spec->inputs[i];
    return NULL;
}

/* The fields of one runtime are a mistake with another. */
static int check_foreign(const struct job_node *root, const char *file_name,
                         const struct job_spec *spec, struct error *error)
{
    static const char *const of_command[] = {"run",     "setup",        "envs", "workdir",
                                             "restart", "max_restarts", NULL};
    static const char *const of_native[] = {"train", "sync", NULL};
    char what[96] = "is for runtime command; describe the training under train";
    const bool is_command = job_spec_is_command(spec);
    if (is_command)
        snprintf(what, sizeof(what), "is not for runtime " TEXT_FORMAT "; leave it out",
                 TEXT_ARGS(spec->runtime));
    const char *const *foreign = is_command ? of_native : of_command;
    for (size_t i = 0; foreign[i]; i++)
        if (job_node_find(root, text_of(foreign[i])))
            return job_table_refuse(root, file_name, foreign[i], what, error);
    if (!is_command && (spec->resources.image_id.size || job_spec_image(spec)))
        return job_table_refuse(root, file_name, "resources.image_id", "is for runtime command",
                                error);
    if (!text_equal(spec->runtime, TEXT("tensorflow")) && job_node_find(root, TEXT("tensorflow")))
        return job_table_refuse(root, file_name, "tensorflow", "is for runtime tensorflow", error);
    return 0;
}

/* Of ranks that start together. */
static int check_gathered(const struct job_node *root, const char *file_name, struct job_spec *spec,
                          struct error *error)
{
    if (text_equal(spec->resources.network, TEXT("none")))
        spec->resources.network = TEXT("job"); /* its ranks could not meet */
    if (spec->num_nodes_max > spec->num_nodes && job_spec_restart(spec) != MUSTER_RESTART_JOB)
        return job_table_refuse(root, file_name, "restart",
                                "must be job where the number of ranks may change", error);
    const uint64_t servers = spec->tensorflow.parameter_servers;
    if (servers > 0 && servers + 2 > spec->num_nodes) {
        char what[96];
        snprintf(what, sizeof(what),
                 "a chief and a worker come with them: num_nodes must be at least %" PRIu64,
                 servers + 2);
        return job_table_refuse(root, file_name, "tensorflow.parameter_servers", what, error);
    }
    return 0;
}

int job_runtime_check(const struct job_node *root, const char *file_name, struct job_spec *spec,
                      struct error *error)
{
    if (!spec->runtime.size)
        spec->runtime = job_node_find(root, TEXT("run")) || spec->resources.image_id.size
                            ? TEXT("command")
                            : TEXT("native");
    const bool is_command = job_spec_is_command(spec);
    if (check_foreign(root, file_name, spec, error) < 0)
        return -1;
    /* An image may say itself what runs. */
    const char *needed = is_command ? "run" : "train";
    const bool has_it =
        is_command ? spec->run.size > 0 : job_node_find(root, TEXT("train")) != NULL;
    if (!(is_command && spec->resources.image_id.size) && !has_it)
        return job_table_refuse(root, file_name, needed, "is missing", error);
    if (!is_command)
        return 0;
    spec->train = (struct job_train){0};
    spec->sync = (struct job_sync){0};
    if (job_spec_restart(spec) == MUSTER_RESTART_NEVER)
        spec->market.replace_lost = false;
    return job_spec_is_gathered(spec) ? check_gathered(root, file_name, spec, error) : 0;
}
