#include "server/job_request.h"

#include "runtime/job_model.h"

#include <stdio.h>
#include <string.h>

/* What a parameter server gets: it averages, evaluates and relays; it does not train. */
static const struct resources server_resources = {
    .cores_milli = 500,
    .ram_bytes = INT64_C(512) << 20,
    .disk_bytes = INT64_C(1) << 30,
};

enum {
    /* Vectors as long as the model: five of it (exchange/global_model.c), the last and a good one,
     * two of a checkpoint, two that are measured. */
    SERVER_VECTORS = 11,
    SERVER_VECTORS_PER_WORKER = 2, /* its push, and the model as it has it */
    SERVER_CHECK_VECTORS = 16,     /* eight for each of two open checks, where pushes are checked */
    /* Where there are several servers, or a replica (exchange/server_cut.c): the newest whole model
     * and the next, with momentum; and the one that the replica is sent. */
    SERVER_COPY_VECTORS = 4,
    SERVER_REPLICA_VECTORS = 2,
    SERVER_OTHER_MIB = 128,
};

/* More memory where the model is large: what it keeps of it, and what comes from every worker. */
static struct resources server_of(const struct job_spec *spec)
{
    struct resources server = server_resources;
    struct dataset_shape shape;
    struct model_spec model;
    struct parameter_table table;
    struct error ignored;
    int layer;
    if (job_spec_is_command(spec))
        return (struct resources){0};
    if (!job_train_shape(&spec->train, &shape) ||
        job_train_model(&spec->train, &shape, &model, &layer, &ignored) < 0 ||
        model_spec_layout(&model, &table, &ignored) < 0)
        return server;
    const uint64_t workers = spec->num_nodes_max ? spec->num_nodes_max : spec->num_nodes;
    const bool keeps_rounds =
        text_is(spec->sync.robust, "trimmed") || text_is(spec->sync.robust, "median");
    const uint64_t vectors =
        SERVER_VECTORS + (SERVER_VECTORS_PER_WORKER + keeps_rounds) * workers +
        (spec->sync.verify > 0 ? SERVER_CHECK_VECTORS : 0) +
        (spec->sync.servers > 1 || spec->sync.replica ? SERVER_COPY_VECTORS : 0) +
        (spec->sync.replica ? SERVER_REPLICA_VECTORS : 0);
    const int64_t needed =
        ((int64_t)SERVER_OTHER_MIB << 20) + (int64_t)(vectors * table.float_count * sizeof(float));
    if (needed > server.ram_bytes)
        server.ram_bytes = needed;
    return server;
}

static int find_network(struct text name, enum offer_network *out, struct error *error)
{
    for (int i = 0; i < OFFER_NETWORK_COUNT; i++)
        if (text_equal(name, text_of(offer_network_name((enum offer_network)i)))) {
            *out = (enum offer_network)i;
            return 0;
        }
    return error_set(error, ERROR_INVALID, "resources.network: is none that exists");
}

static int find_install(struct text name, enum offer_install *out, struct error *error)
{
    for (int i = 0; i < OFFER_INSTALL_COUNT; i++)
        if (text_equal(name, text_of(offer_install_name((enum offer_install)i)))) {
            *out = (enum offer_install)i;
            return 0;
        }
    return error_set(error, ERROR_INVALID, "resources.install: is none that exists");
}

/* Machines that offer the data, or are a cloud's, have a label that says so. */
static int wish_label(const char *prefix, struct text label, struct job_wishes *out,
                      struct error *error)
{
    const size_t size = strlen(out->labels);
    if (!label.size)
        return 0;
    const int added = snprintf(out->labels + size, sizeof(out->labels) - size, "%s%s" TEXT_FORMAT,
                               size ? "," : "", prefix, TEXT_ARGS(label));
    if (added < 0 || (size_t)added >= sizeof(out->labels) - size)
        return error_set(error, ERROR_INVALID, "resources.labels: too many with that of the data");
    return 0;
}

static int read_wishes(const struct job_spec *spec, struct job_wishes *out, struct error *error)
{
    const struct job_resources *resources = &spec->resources;
    out->gpu_ram_bytes = resources->accelerators.memory_bytes;
    out->max_rtt_us = spec->market.max_rtt_ms * 1000;
    out->min_reliability_milli = spec->market.min_reliability_milli;
    out->min_speed_milli = spec->market.min_speed_milli;
    out->has_image = resources->image_id.size > 0 || job_spec_image(spec) != NULL;
    out->has_program = job_spec_is_command(spec) || spec->sync.verify > 0;
    if (find_network(resources->network, &out->network, error) < 0 ||
        find_install(resources->install, &out->install, error) < 0 ||
        text_copy(resources->accelerators.model, out->gpu_model, sizeof(out->gpu_model), error) < 0)
        return -1;
    if (text_copy(resources->labels, out->labels, sizeof(out->labels), error) < 0)
        return -1;
    if (!job_spec_is_command(spec) &&
        wish_label(JOB_PEER_PREFIX, job_train_peer(&spec->train), out, error) < 0)
        return -1;
    return wish_label(JOB_REQUEST_INFRA_PREFIX, resources->infra, out, error);
}

int job_request_of_spec(const struct job_spec *spec, struct text json, uint64_t account,
                        int64_t now_ms, struct job_request *out_request, struct error *error)
{
    const struct job_resources *resources = &spec->resources;
    const struct job_market *market = &spec->market;
    if (spec->workdir.size)
        return error_set(error, ERROR_INVALID,
                         "workdir: a folder of yours is not here; name its archive under inputs");
    for (size_t i = 0; i < spec->file_mount_count; i++)
        if (spec->file_mounts[i].source.size)
            return error_set(error, ERROR_INVALID,
                             "file_mounts: a path of yours is not here; name its input alone");
    const uint64_t workers_max = spec->num_nodes_max ? spec->num_nodes_max : spec->num_nodes;
    const bool is_growing = text_is(spec->sync.schedule, "grow");
    const bool is_scheduled =
        !job_spec_is_command(spec) && (is_growing || text_is(spec->sync.schedule, "decay"));
    struct job_request request = {
        .account = account,
        .spec = json,
        .num_nodes = (int64_t)spec->num_nodes,
        .num_nodes_max = (int64_t)spec->num_nodes_max,
        .workers_first = is_scheduled ? (int64_t)(is_growing ? spec->num_nodes : workers_max) : 0,
        .worker = {.cores_milli = resources->cpus_milli.value,
                   .ram_bytes = resources->memory_bytes.value,
                   .gpus_milli = resources->accelerators.count_milli,
                   .disk_bytes = resources->disk_size_bytes,
                   .bandwidth_kbit = resources->bandwidth_kbit},
        .takes_more_cores = resources->cpus_milli.is_at_least,
        .server = server_of(spec),
        .server_count = job_spec_is_command(spec) ? 0 : (int64_t)spec->sync.servers,
        .has_replica = !job_spec_is_command(spec) && spec->sync.replica,
        .max_total_micro = market->max_total_cost_micro,
        .max_hourly_micro = market->max_hourly_cost_micro,
        .max_run_ms = market->max_run_time_ms,
        .expected_run_ms = job_spec_expected_run_ms(spec),
        .tick_ms = job_spec_tick_ms(spec),
        .start = market->start.kind,
        .is_rush = market->rush,
        .replaces_lost = market->replace_lost,
        .is_spare = market->spare,
        .is_gathered = job_spec_is_gathered(spec),
    };
    if (job_start_deadline(&market->start, now_ms, &request.deadline_ms, error) < 0 ||
        read_wishes(spec, &request.wishes, error) < 0 ||
        text_copy(spec->name, request.name, sizeof(request.name), error) < 0 ||
        job_request_check(&request, error) < 0)
        return -1;
    *out_request = request;
    return 0;
}
