#include "worker/recompute.h"

#include "exchange/check.h"
#include "runtime/job_model.h"

#include <string.h>

struct trainer_options recompute_options(const struct work *work, uint32_t record_count,
                                         uint64_t rank)
{
    const struct job_train *job = &work->lease.train;
    struct trainer_options options = {
        .spec = work->model,
        .batch = (uint32_t)job->batch,
        .seed = job->seed,
        .stream = rank,
        .augment = job_train_augment(job),
    };
    job_train_optimizer(job, &options.optimizer);
    if (lease_document_has_all_records(&work->lease)) {
        uint64_t first, count;
        native_shard(record_count, rank, work->lease.world, &first, &count);
        options.record_first = (uint32_t)first;
        options.record_count = (uint32_t)count;
    }
    return options;
}

int recompute_push(const struct work *work, struct kernel_set *kernels,
                   const struct dataset *dataset, const struct exchange_recompute *task,
                   float *values, struct error *error)
{
    if (task->steps > CHECK_STEPS_MAX)
        return error_set(error, ERROR_INVALID, "a push of more than %d steps", CHECK_STEPS_MAX);
    struct trainer_options options =
        recompute_options(work, dataset_shape(dataset)->count, task->rank);
    options.batch = task->batch;
    AUTO(trainer) struct trainer *trainer = NULL;
    if (trainer_open(kernels, dataset, &options, &trainer, error) < 0 ||
        trainer_seek(trainer, task->first_step, task->first_sample, error) < 0)
        return -1;
    float *parameters = model_parameters(trainer_model(trainer));
    memcpy(parameters, values, work->parameter_count * sizeof(float));
    for (uint32_t i = 0; i < task->steps; i++) {
        double loss;
        if (trainer_step(trainer, &loss, error) < 0)
            return -1;
    }
    for (size_t i = 0; i < work->parameter_count; i++)
        values[i] = parameters[i] - values[i];
    return 0;
}
