/*
 * Worker: takes the lease from the daemon, checks it against what is built in, runs its role.
 */
#include "base/assert.h"
#include "base/log.h"
#include "base/text.h"
#include "runtime/job_model.h"
#include "runtime/job_secrets.h"
#include "worker/worker.h"
#include "worker/worker_internal.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { FUNCTIONS_MAX = 1000 };

static int arguments_read(struct work *work, int argc, char **argv, struct error *error)
{
    for (int i = 1; i < argc; i += 2) {
        const struct text name = text_of(argv[i]);
        if (i + 1 == argc)
            return error_set(error, ERROR_INVALID, "%s needs a value", argv[i]);
        uint64_t number = 0;
        if (text_equal(name, TEXT("--data"))) {
            work->data_folder = argv[i + 1];
        } else if (text_equal(name, TEXT("--out"))) {
            work->out_folder = argv[i + 1];
        } else if (text_equal(name, TEXT("--work"))) {
            work->work_folder = argv[i + 1];
        } else if (text_equal(name, TEXT("--store"))) {
            work->store_folder = argv[i + 1];
        } else if (text_equal(name, TEXT("--functions"))) {
            if (text_parse_u64(text_of(argv[i + 1]), &number, error) < 0 || number > FUNCTIONS_MAX)
                return error_set(error, ERROR_INVALID, "--functions: not a number of them");
            work->function_count = (uint32_t)number;
        } else if (text_equal(name, TEXT("--control-fd"))) {
            if (text_parse_u64(text_of(argv[i + 1]), &number, error) < 0 || number > INT_MAX)
                return error_set(error, ERROR_INVALID, "--control-fd: not a descriptor");
            work->control_fd = (int)number;
        } else {
            return error_set(error, ERROR_INVALID, "unknown option \"%s\"", argv[i]);
        }
    }
    return 0;
}

static int config_receive(struct work *work, struct error *error)
{
    struct child_message message;
    bool has_ended;
    if (child_message_receive(work->control_fd, work->arena, &message, &has_ended, error) < 0)
        return error_wrap(error, "wait for the lease (this command is started by souk lend)");
    if (message.kind != CHILD_CONFIG)
        return error_set(error, ERROR_INVALID, "the first message is not the lease");
    work->config = message.config;
    struct job_spec spec = {0};
    if (message.config.secrets.size &&
        job_secrets_read(work->arena, message.config.secrets, &spec, error) < 0)
        return -1;
    work->secrets = spec.secrets;
    work->secret_count = spec.secret_count;
    return lease_document_read(work->arena, message.config.lease_json, &work->lease, error);
}

/* A file of the borrower's was scaled where it was read, and its shape is in the lease. */
static int data_find(struct work *work, struct error *error)
{
    const struct job_train *train = &work->lease.train;
    if (!job_train_is_file(train))
        return dataset_entry_find(train->data, &work->data, error);
    work->own_data = (struct dataset_entry){
        .name = arena_copy_string(work->arena, train->data),
        .mean = train->mean,
        .deviation = train->deviation > 0 ? train->deviation : 1,
    };
    work->data = &work->own_data;
    return 0;
}

/* Everything the lease names is known here, before anything is loaded. */
static int lease_check(struct work *work, struct error *error)
{
    const struct job_train *train = &work->lease.train;
    const struct job_sync *sync = &work->lease.sync;
    struct parameter_table table;
    int layer;
    if (data_find(work, error) < 0)
        return -1;
    if (!job_train_shape(train, &work->shape))
        return error_set(error, ERROR_INVALID, "the lease does not say what its records are");
    if (job_train_model(train, &work->shape, &work->model, &layer, error) < 0 ||
        model_spec_layout(&work->model, &table, error) < 0)
        return -1;
    if (work->lease.role == LEASE_ROLE_WORKER &&
        job_train_check_memory(train, &work->model, work->lease.ram_bytes, error) < 0)
        return error_wrap(error, "memory");
    work->parameter_count = table.float_count;
    work->sync.gamma_ms = sync->gamma_ms;
    work->sync.commit_interval_min_ms = sync->commit_interval_min_ms;
    work->sync.local_steps = (uint32_t)sync->local_steps;
    work->sync.slack = (uint32_t)sync->slack;
    work->sync.backups = (uint32_t)sync->backups;
    work->sync.staleness = (uint32_t)sync->staleness;
    work->sync.epoch_steps = sync->epoch_steps;
    work->sync.batch = (uint32_t)train->batch;
    struct optimizer_options optimizer;
    job_train_optimizer(train, &optimizer);
    work->sync.momentum = optimizer_momentum(&optimizer);
    /* A push that is made again is made by the job's own steps. */
    work->sync.keeps_momentum = optimizer.kind != OPTIMIZER_SGD || sync->verify > 0;
    work->sync.outer_rate = sync->outer_rate;
    /* In the file 0 is none and less the policy's own; here it is the other way round. */
    const double momentum = sync->outer_momentum;
    work->sync.outer_momentum = momentum > 0 ? momentum : momentum < 0 ? 0 : -1;
    work->sync.deadline_ms = sync->deadline_ms;
    work->sync.overlap = text_equal(sync->overlap, TEXT("on"))    ? SYNC_OVERLAP_ON
                         : text_equal(sync->overlap, TEXT("off")) ? SYNC_OVERLAP_OFF
                                                                  : SYNC_OVERLAP_DEFAULT;
    const int tau_count = job_sync_taus(sync, work->sync.taus);
    if (tau_count < 0)
        return error_set(error, ERROR_INVALID, "sync.taus: not a list of whole numbers");
    work->sync.tau_count = (uint32_t)tau_count;
    work->compress = (struct exchange_compress){
        .is_auto = text_equal(sync->compress, TEXT("auto")),
        .density = sync->density,
        .momentum = sync->compress_momentum,
    };
    if (!work->compress.is_auto && codec_parse(sync->compress, &work->compress.codec, error) < 0)
        return -1;
    work->robust.trim = sync->trim;
    if (robust_kind_parse(sync->robust, &work->robust.kind, error) < 0)
        return -1;
    return sync_search_parse(sync->search, &work->sync.search, error);
}

int work_open_dataset(const struct work *work, enum dataset_part images, enum dataset_part labels,
                      struct dataset **out_dataset, struct error *error)
{
    char images_path[PATH_MAX], labels_path[PATH_MAX];
    const int images_size = snprintf(images_path, sizeof images_path, "%s/%s", work->data_folder,
                                     dataset_part_name(images));
    const int labels_size = snprintf(labels_path, sizeof labels_path, "%s/%s", work->data_folder,
                                     dataset_part_name(labels));
    if (images_size >= PATH_MAX || labels_size >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the data folder's path is too long");
    const struct dataset_options options = {
        .images_path = images_path,
        .labels_path = labels_path,
        .target = work->shape.target,
        .classes = work->shape.classes,
        .vocabulary = work->shape.vocabulary,
        .mean = work->data->mean,
        .deviation = work->data->deviation,
    };
    return dataset_open(&options, out_dataset, error);
}

static int role_run(struct work *work, struct work_result *result, struct error *error)
{
    switch (work->lease.role) {
    case LEASE_ROLE_WORKER:
        return run_worker(work, result, error);
    case LEASE_ROLE_SERVER:
        return work->lease.rank > 0 && work->lease.rank < work->lease.sync.servers
                   ? run_range(work, result, error)
                   : run_server(work, result, error);
    case LEASE_ROLE_COUNT:
        break;
    }
    ASSERT(work->lease.role < LEASE_ROLE_COUNT);
    return -1;
}

#if defined(__SANITIZE_ADDRESS__)
/* Looking for leaks needs ptrace, which the sandbox refuses; only there it is /souk. */
int __lsan_is_turned_off(void); // NOLINT: the sanitizer's name
int __lsan_is_turned_off(void)  // NOLINT
{
    return access("/souk", F_OK) == 0;
}
#endif

int worker_main(int argc, char **argv)
{
    struct error error;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct work work = {.arena = arena,
                        .control_fd = CHILD_FD,
                        .data_folder = "/data",
                        .out_folder = "/lease/out",
                        .work_folder = "/lease/work",
                        .launch_folder = "/lease/launch",
                        .store_folder = "/functions"};
    struct work_result result = {0};
    signal(SIGPIPE, SIG_IGN);

    if (arguments_read(&work, argc, argv, &error) < 0 || config_receive(&work, &error) < 0) {
        log_event(LOG_ERROR, "worker_failed", "error=\"%s\"", error.message);
        return error_exit_code(error.code);
    }
    const bool is_command = lease_document_is_command(&work.lease);
    if (is_command ? run_command(&work, &result, &error) < 0
                   : lease_check(&work, &error) < 0 || role_run(&work, &result, &error) < 0) {
        result.is_ok = false;
        snprintf(result.message, sizeof result.message, "%s", error.message);
    }
    if (!is_command)
        log_event(result.is_ok ? LOG_INFO : LOG_ERROR, "worker_done",
                  "lease=%" PRIu64 " ok=%d message=\"%s\"", work.lease.lease, result.is_ok,
                  result.message);
    const struct child_message done = {
        .kind = CHILD_DONE, .done = {.is_ok = result.is_ok, .message = text_of(result.message)}};
    if (control_send(work.control_fd, &done, &error) < 0)
        log_event(LOG_WARN, "done_unsent", "error=\"%s\"", error.message);
    return result.exit_code ? result.exit_code : !result.is_ok;
}
