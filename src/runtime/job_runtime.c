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
    const struct launch_kind *kind = launch_find(spec->runtime);
    return kind && !kind->goes_on ? MUSTER_RESTART_JOB : MUSTER_RESTART_RANK;
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

const struct job_input *job_spec_wheels(const struct job_spec *spec)
{
    for (size_t i = 0; i < spec->input_count; i++)
        if (spec->inputs[i].split == JOB_SPLIT_WHEELS)
            return &spec->inputs[i];
    return NULL;
}

const struct job_input *job_spec_mount(const struct job_spec *spec, size_t index)
{
    char name[sizeof(JOB_MOUNT_INPUT) + 24];
    snprintf(name, sizeof(name), JOB_MOUNT_INPUT "%zu", index);
    for (size_t i = 0; i < spec->input_count; i++)
        if (spec->inputs[i].split == JOB_SPLIT_MOUNT && text_is(spec->inputs[i].name, name))
            return &spec->inputs[i];
    return NULL;
}

bool job_spec_has_packages(const struct job_spec *spec)
{
    return spec->requirements.size || spec->wheels.size || job_spec_wheels(spec);
}

/* Inputs of mounts are known by their names, which are theirs alone. */
static int check_mounts(const struct job_spec *spec, struct error *error)
{
    size_t found = 0, named = 0;
    for (size_t i = 0; i < spec->file_mount_count; i++)
        found += job_spec_mount(spec, i) != NULL;
    for (size_t i = 0; i < spec->input_count; i++) {
        const struct job_input *input = &spec->inputs[i];
        const bool is_mount = input->split == JOB_SPLIT_MOUNT;
        if (!is_mount && text_starts_with(input->name, TEXT(JOB_MOUNT_INPUT)))
            return error_set(
                error, ERROR_INVALID,
                "inputs[%zu].name: only those of file_mounts begin with " JOB_MOUNT_INPUT, i);
        named += is_mount;
    }
    if (named != found)
        return error_set(error, ERROR_INVALID,
                         "inputs: more mounts than file_mounts, or not named " JOB_MOUNT_INPUT
                         "0 ...");
    return 0;
}

/* Whoever brings packages wants machines that install them. */
static int check_packages(const struct job_node *root, const char *file_name, struct job_spec *spec,
                          struct error *error)
{
    const struct job_node *resources = job_node_find(root, TEXT("resources"));
    const bool is_told = resources && resources->kind == JOB_NODE_MAPPING &&
                         job_node_find(resources, TEXT("install"));
    const char *field = spec->requirements.size ? "requirements" : "wheels";
    size_t archives = 0;
    for (size_t i = 0; i < spec->input_count; i++)
        archives += spec->inputs[i].split == JOB_SPLIT_WHEELS;
    if (archives > 1)
        return job_table_refuse(root, file_name, "inputs", "all wheels go into one archive", error);
    if (!job_spec_has_packages(spec))
        return 0;
    if (spec->resources.image_id.size || job_spec_image(spec))
        return job_table_refuse(root, file_name, field,
                                "do not go with resources.image_id: put them into the image",
                                error);
    if (is_told && text_is(spec->resources.install, "none"))
        return job_table_refuse(root, file_name, "resources.install",
                                "is none, and the job brings packages: leave it out, or say wheels",
                                error);
    if (text_is(spec->resources.install, "none"))
        spec->resources.install = TEXT("wheels");
    return 0;
}

/* The fields of one runtime are a mistake with another. */
static int check_foreign(const struct job_node *root, const char *file_name,
                         const struct job_spec *spec, struct error *error)
{
    static const char *const of_command[] = {"run",
                                             "setup",
                                             "envs",
                                             "workdir",
                                             "restart",
                                             "max_restarts",
                                             "requirements",
                                             "wheels",
                                             "file_mounts",
                                             "checkpoint_interval",
                                             NULL};
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
    if (!is_command && job_spec_wheels(spec))
        return job_table_refuse(root, file_name, "inputs", "wheels are for runtime command", error);
    if (!text_equal(spec->runtime, TEXT("tensorflow")) && job_node_find(root, TEXT("tensorflow")))
        return job_table_refuse(root, file_name, "tensorflow", "is for runtime tensorflow", error);
    if (!text_equal(spec->runtime, TEXT("torch")) && job_node_find(root, TEXT("torch")))
        return job_table_refuse(root, file_name, "torch", "is for runtime torch", error);
    if (spec->torch.processes == JOB_PROCESSES_PER_GPU &&
        spec->resources.accelerators.count_milli < 1000)
        return job_table_refuse(root, file_name, "torch.processes",
                                "per_gpu needs GPUs: resources.accelerators", error);
    return 0;
}

/* Its processes would be killed one by one. */
static int check_spark(const struct job_node *root, const char *file_name,
                       const struct job_spec *spec, struct error *error)
{
    if (text_equal(spec->runtime, TEXT("spark")) && spec->resources.memory_bytes.value < INT64_C(1)
                                                                                             << 30)
        return job_table_refuse(root, file_name, "resources.memory",
                                "must be at least 1 (GiB) with runtime spark", error);
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
    if (check_spark(root, file_name, spec, error) < 0)
        return -1;
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
    if (check_packages(root, file_name, spec, error) < 0 || check_mounts(spec, error) < 0)
        return -1;
    return job_spec_is_gathered(spec) ? check_gathered(root, file_name, spec, error) : 0;
}

int job_runtime_check_new(const struct job_node *root, const char *file_name,
                          const struct job_spec *spec, struct error *error)
{
    /* The kernels of our own models run on CPUs; a leased GPU would be paid for and stay idle. */
    if (!job_spec_is_command(spec) && spec->resources.accelerators.count_milli > 0)
        return job_table_refuse(root, file_name, "resources.accelerators",
                                "runtime native trains on CPUs only: leave it out, or use a "
                                "runtime whose program uses GPUs, like torch",
                                error);
    return 0;
}
