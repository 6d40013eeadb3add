/* Job spec, the work: what a lease carries of it, and the spans that follow from others. */
#include "market/job.h" /* JOB_NODES_MAX */
#include "runtime/job_field_internal.h"
#include "runtime/job_model_internal.h"

#define MINUTE_MS INT64_C(60000)

/* What a lease carries of the spec. */
static const struct job_field native_fields[] = {
    {"train", JOB_FIELD_OBJECT, offsetof(struct job_spec, train), .is_required = true,
     .table = &job_train_table},
    {"sync", JOB_FIELD_OBJECT, offsetof(struct job_spec, sync), .is_required = true,
     .table = &job_sync_table},
    {"num_nodes_max", JOB_FIELD_U64, offsetof(struct job_spec, num_nodes_max), .minimum = 1,
     .maximum = JOB_NODES_MAX},
};
static const struct job_table native_table = JOB_TABLE(native_fields, struct job_spec);

static const struct job_field command_fields[] = {
    {"envs", JOB_FIELD_ENVS, offsetof(struct job_spec, envs), .maximum = JOB_ENVS_MAX,
     .count_offset = offsetof(struct job_spec, env_count)},
    {"file_mounts", JOB_FIELD_MOUNTS, offsetof(struct job_spec, file_mounts),
     .maximum = JOB_MOUNTS_MAX, .count_offset = offsetof(struct job_spec, file_mount_count)},
    {"setup", JOB_FIELD_SCRIPT, offsetof(struct job_spec, setup), .maximum = JOB_SCRIPT_SIZE_MAX},
    {"run", JOB_FIELD_SCRIPT, offsetof(struct job_spec, run), .maximum = JOB_SCRIPT_SIZE_MAX},
    {"num_nodes_max", JOB_FIELD_U64, offsetof(struct job_spec, num_nodes_max), .minimum = 1,
     .maximum = JOB_NODES_MAX},
    {"restart", JOB_FIELD_WORD, offsetof(struct job_spec, restart),
     .choices = muster_restart_names},
    {"max_restarts", JOB_FIELD_U64, offsetof(struct job_spec, max_restarts), .minimum = 0,
     .maximum = 1000},
    {"checkpoint_interval", JOB_FIELD_DURATION, offsetof(struct job_spec, checkpoint_interval_ms),
     .minimum = 1000, .maximum = 3600000},
    {"tensorflow", JOB_FIELD_OBJECT, offsetof(struct job_spec, tensorflow),
     .table = &job_tensorflow_table, .is_left_out = true},
    {"torch", JOB_FIELD_OBJECT, offsetof(struct job_spec, torch), .table = &job_torch_table,
     .is_left_out = true},
};
static const struct job_table command_table = JOB_TABLE(command_fields, struct job_spec);

void job_spec_write_work(const struct job_spec *spec, struct buffer *json)
{
    struct job_spec work = *spec;
    work.sync.gamma_ms = job_spec_gamma_ms(spec);
    work.sync.tick_ms = job_spec_tick_ms(spec);
    if (!job_spec_is_command(spec) && !spec->sync.schedule.size)
        work.num_nodes_max = 0; /* who trains need not know */
    struct json_writer writer;
    json_writer_init(&writer, json);
    job_table_write(&writer, job_spec_is_command(spec) ? &command_table : &native_table, &work);
}

int job_spec_read_work(struct arena *arena, struct text runtime, struct text json,
                       struct job_spec *out_spec, struct error *error)
{
    struct job_node *root;
    if (job_node_read_json(arena, json, &root, error) < 0)
        return error_wrap(error, "lease spec");
    struct job_spec spec = {0};
    job_table_set_defaults(arena, &job_spec_table, &spec);
    spec.runtime = runtime;
    const struct job_table *table = job_spec_is_command(&spec) ? &command_table : &native_table;
    if (job_table_read(arena, table, root, NULL, &spec, NULL, error) < 0)
        return -1;
    *out_spec = spec;
    return 0;
}

int64_t job_spec_expected_run_ms(const struct job_spec *spec)
{
    return spec->market.expected_run_time_ms ? spec->market.expected_run_time_ms
                                             : spec->market.max_run_time_ms;
}

int64_t job_spec_checkpoint_ms(const struct job_spec *spec)
{
    if (!job_spec_is_command(spec))
        return spec->sync.checkpoint_interval_ms;
    return spec->checkpoint_interval_ms ? spec->checkpoint_interval_ms : MINUTE_MS / 2;
}

int64_t job_spec_gamma_ms(const struct job_spec *spec)
{
    if (spec->sync.gamma_ms)
        return spec->sync.gamma_ms;
    const int64_t gamma_ms = job_spec_expected_run_ms(spec) / 20;
    if (gamma_ms < 1000)
        return 1000;
    return gamma_ms > MINUTE_MS ? MINUTE_MS : gamma_ms;
}

int64_t job_spec_tick_ms(const struct job_spec *spec)
{
    if (spec->sync.tick_ms)
        return spec->sync.tick_ms;
    const int64_t gamma_ms = job_spec_gamma_ms(spec);
    if (gamma_ms < 200)
        return 200;
    return gamma_ms < 10000 ? gamma_ms : 10000;
}
