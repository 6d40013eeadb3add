#include "train/trainer.h"

#include "base/assert.h"
#include "base/memory.h"
#include "train/loss.h"
#include "train/sampler.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct trainer {
    struct trainer_options options;
    const struct dataset *dataset;
    struct model *model;
    struct optimizer *optimizer;
    struct sampler sampler;
    uint32_t *indices; /* [batch] */
    int32_t *labels;   /* [batch, dataset_labels_each] */
    float *values;     /* [batch, values] of numbers */
    uint64_t step_count, sample_count;
    bool has_diverged;
};

static int check_data(const struct dataset_shape *shape, const struct trainer_options *options,
                      struct error *error)
{
    if (loss_check_data(&options->spec, shape, error) < 0 ||
        augment_check(&options->augment, shape, error) < 0)
        return -1;
    if (options->record_first >= shape->count)
        return error_set(error, ERROR_INVALID, "the shard starts at record %u of %u",
                         options->record_first, shape->count);
    return 0;
}

/* The odd factor spreads small ranks over all bits. */
uint64_t trainer_sampler_seed(const struct trainer_options *options)
{
    return options->seed ^ (options->stream + 1) * 0x9e3779b97f4a7c15ULL;
}

/* Room for the records of one batch, in place of what there was. */
static void batch_allocate(struct trainer *trainer)
{
    const struct dataset_shape *shape = dataset_shape(trainer->dataset);
    const size_t batch = trainer->options.batch;
    free(trainer->indices);
    free(trainer->labels);
    free(trainer->values);
    trainer->indices = calloc(batch, sizeof(*trainer->indices));
    trainer->labels = calloc(batch * dataset_labels_each(shape) + 1, sizeof(*trainer->labels));
    trainer->values = calloc(batch * shape->values + 1, sizeof(*trainer->values));
    ASSERT(trainer->indices != NULL && trainer->labels != NULL && trainer->values != NULL);
}

int trainer_open(struct kernel_set *kernels, const struct dataset *dataset,
                 const struct trainer_options *options, struct trainer **out_trainer,
                 struct error *error)
{
    const struct dataset_shape *shape = dataset_shape(dataset);
    if (check_data(shape, options, error) < 0)
        return error_wrap(error, "trainer");
    AUTO(trainer) struct trainer *trainer = memory_zeroed(1, sizeof(*trainer));
    trainer->options = *options;
    trainer->dataset = dataset;
    const struct model_options model = {options->spec, options->batch, .is_training = true};
    if (model_open(kernels, &model, &trainer->model, error) < 0 ||
        optimizer_open(&options->optimizer, model_parameter_count(trainer->model),
                       model_learned_count(trainer->model), &trainer->optimizer, error) < 0)
        return -1;
    const uint64_t seed = trainer_sampler_seed(options);
    const uint32_t count =
        options->record_count ? options->record_count : shape->count - options->record_first;
    if (sampler_init(&trainer->sampler, dataset, options->record_first, count, seed, error) < 0)
        return -1;
    batch_allocate(trainer);
    model_init_parameters(trainer->model, options->seed);
    *out_trainer = TAKE(trainer);
    return 0;
}

void trainer_free(struct trainer *trainer)
{
    if (!trainer)
        return;
    model_free(trainer->model);
    optimizer_free(trainer->optimizer);
    sampler_done(&trainer->sampler);
    free(trainer->indices);
    free(trainer->labels);
    free(trainer->values);
    free(trainer);
}

int trainer_gradient(struct trainer *trainer, double *out_loss, struct error *error)
{
    const uint32_t batch = trainer->options.batch;
    sampler_next(&trainer->sampler, trainer->indices, batch);
    dataset_gather(trainer->dataset, trainer->indices, batch, model_input(trainer->model),
                   trainer->labels);
    /* This and what is dropped follow from seed and step, so that a restored trainer does the same.
     */
    const uint64_t seed = trainer_sampler_seed(&trainer->options) + (trainer->step_count << 16);
    augment_images(&trainer->options.augment, trainer->dataset, ~seed, batch,
                   model_input(trainer->model));
    if (dataset_shape(trainer->dataset)->target == DATASET_VALUES)
        dataset_gather_values(trainer->dataset, trainer->indices, batch, trainer->values);
    model_set_seed(trainer->model, seed);
    model_forward(trainer->model);
    const struct targets targets = {trainer->labels, trainer->values};
    const struct loss loss = loss_with_gradient(trainer->model, &targets);
    trainer->has_diverged = !isfinite(loss.mean);
    if (trainer->has_diverged)
        return error_set(error, ERROR_INVALID,
                         "the loss is not finite at step %" PRIu64 ": take a lower lr than %g",
                         trainer->step_count + 1, optimizer_options(trainer->optimizer)->lr);
    model_backward(trainer->model);
    trainer->step_count++;
    trainer->sample_count += batch;
    *out_loss = loss.mean;
    return 0;
}

int trainer_step(struct trainer *trainer, double *out_loss, struct error *error)
{
    if (trainer_gradient(trainer, out_loss, error) < 0)
        return -1;
    optimizer_step(trainer->optimizer, model_kernels(trainer->model),
                   model_parameters(trainer->model), model_gradients(trainer->model));
    return 0;
}

int trainer_set_batch(struct trainer *trainer, uint32_t batch, struct error *error)
{
    if (batch == trainer->options.batch)
        return 0;
    const struct model_options options = {trainer->options.spec, batch, .is_training = true};
    AUTO(model) struct model *model = NULL;
    if (model_open(model_kernels(trainer->model), &options, &model, error) < 0)
        return -1;
    model_init_parameters(model, trainer->options.seed); /* of layers that draw at random, too */
    memcpy(model_parameters(model), model_parameters(trainer->model),
           sizeof(float) * model_parameter_count(model));
    model_free(trainer->model);
    trainer->model = TAKE(model);
    trainer->options.batch = batch;
    batch_allocate(trainer);
    return 0;
}

bool trainer_has_diverged(const struct trainer *trainer)
{
    return trainer->has_diverged;
}

int trainer_seek(struct trainer *trainer, uint64_t step_count, uint64_t sample_count,
                 struct error *error)
{
    struct sampler *sampler = &trainer->sampler;
    if (sampler_seek(sampler, sample_count / sampler->count,
                     (uint32_t)(sample_count % sampler->count), error) < 0)
        return -1;
    trainer->step_count = step_count;
    trainer->sample_count = sample_count;
    optimizer_set_step_count(trainer->optimizer, step_count);
    optimizer_restart(trainer->optimizer);
    return 0;
}

struct model *trainer_model(struct trainer *trainer)
{
    return trainer->model;
}

struct optimizer *trainer_optimizer(struct trainer *trainer)
{
    return trainer->optimizer;
}

uint64_t trainer_step_count(const struct trainer *trainer)
{
    return trainer->step_count;
}

uint64_t trainer_sample_count(const struct trainer *trainer)
{
    return trainer->sample_count;
}

double trainer_epochs(const struct trainer *trainer)
{
    const struct sampler *sampler = &trainer->sampler;
    return (double)sampler->epoch + (double)sampler->position / sampler->count;
}

void trainer_save(struct trainer *trainer, struct checkpoint *out_checkpoint)
{
    *out_checkpoint = (struct checkpoint){
        .spec = trainer->options.spec,
        .step = trainer->step_count,
        .samples = trainer->sample_count,
        .epoch = trainer->sampler.epoch,
        .position = trainer->sampler.position,
        .seed = trainer->options.seed,
        .stream = trainer->options.stream,
        .parameter_count = model_parameter_count(trainer->model),
        .parameters = model_parameters(trainer->model),
        .velocity = optimizer_velocity(trainer->optimizer),
        .second = optimizer_second(trainer->optimizer),
    };
}

/* INVALID, naming what one of them has and the other not. */
static int refuse_optimizer(const struct trainer *trainer, const struct checkpoint *checkpoint,
                            struct error *error)
{
    const char *name = optimizer_kind_names[trainer->options.optimizer.kind];
    if (checkpoint->second)
        return error_set(error, ERROR_INVALID,
                         "the checkpoint is of another optimizer: it has second moments, as of "
                         "adam, and %s keeps none",
                         name);
    return error_set(error, ERROR_INVALID,
                     "the checkpoint has no second moments for %s to go on from: it is of sgd, or "
                     "of a job on the market, where every worker keeps its own; \"souk job submit "
                     "--resume\" goes on with it there",
                     name);
}

int trainer_restore(struct trainer *trainer, const struct checkpoint *checkpoint,
                    struct error *error)
{
    const struct trainer_options *options = &trainer->options;
    if (!model_spec_equal(&checkpoint->spec, &options->spec))
        return checkpoint_refuse_other(checkpoint, &options->spec, error);
    if (checkpoint->seed != options->seed)
        return error_set(error, ERROR_INVALID,
                         "the checkpoint was made with seed %" PRIu64 ", not %" PRIu64,
                         checkpoint->seed, options->seed);
    if (checkpoint->stream != options->stream)
        return error_set(error, ERROR_INVALID, "the checkpoint is of worker %" PRIu64,
                         checkpoint->stream);
    if (checkpoint->position > trainer->sampler.count)
        return error_set(error, ERROR_INVALID, "the checkpoint is of a larger shard");
    ASSERT(checkpoint->parameter_count == model_parameter_count(trainer->model));
    if (!checkpoint->second != !optimizer_second(trainer->optimizer))
        return refuse_optimizer(trainer, checkpoint, error);
    if (sampler_seek(&trainer->sampler, checkpoint->epoch, (uint32_t)checkpoint->position, error) <
        0)
        return -1;
    const size_t size = sizeof(float) * checkpoint->parameter_count;
    memcpy(model_parameters(trainer->model), checkpoint->parameters, size);
    memcpy(optimizer_velocity(trainer->optimizer), checkpoint->velocity, size);
    if (checkpoint->second)
        memcpy(optimizer_second(trainer->optimizer), checkpoint->second, size);
    optimizer_set_step_count(trainer->optimizer, checkpoint->step);
    trainer->step_count = checkpoint->step;
    trainer->sample_count = checkpoint->samples;
    return 0;
}
