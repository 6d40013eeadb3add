#include "train/local_run.h"

#include "base/assert.h"
#include "base/memory.h"
#include "train/loss.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEASUREMENTS_MIN = 10, SPEED_MS = 500 };
static const double loss_smoothing = 0.05; /* weight of the newest step */
static const double good_rise_max = 2;     /* above the lowest loss, to be kept */
static const double sound_rise_max = 10;   /* of steps, above the lowest loss on the test data */

struct local_run {
    struct local_run_options options;
    struct trainer *trainer;
    struct local_run_status status;
    uint64_t samples_all;   /* of all epochs */
    uint64_t measured_step; /* the last */
    bool has_ended;
    int64_t started_ns;
    int64_t speed_ns; /* since when steps are counted for the speed */
    uint64_t speed_steps;
    double loss_first; /* of the first step */
    float *good;       /* the last model with a good loss; NULL: none yet */
    double good_loss_min;
    struct evaluation_result good_test;
};

const char *local_run_end_name(enum local_run_end end)
{
    static const char *const names[LOCAL_RUN_END_COUNT] = {"epochs", "target", "diverged"};
    ASSERT(end < LOCAL_RUN_END_COUNT);
    return names[end];
}

static uint64_t measure_steps_of(const struct local_run_options *options)
{
    const uint64_t count = dataset_shape(options->train)->count;
    const uint64_t batch = options->trainer.batch;
    const uint64_t epoch = (count + batch - 1) / batch;
    const uint64_t tenth = epoch * options->epochs / MEASUREMENTS_MIN;
    const uint64_t each = tenth < epoch ? tenth : epoch;
    return each > 0 ? each : 1;
}

int local_run_open(struct kernel_set *kernels, const struct local_run_options *options,
                   struct local_run **out_run, struct error *error)
{
    AUTO(local_run) struct local_run *run = memory_zeroed(1, sizeof(*run));
    run->options = *options;
    run->status.loss = (double)NAN;
    run->samples_all = options->epochs * dataset_shape(options->train)->count;
    if (run->options.measure_steps == 0)
        run->options.measure_steps = measure_steps_of(options);
    if (loss_check_data(&options->trainer.spec, dataset_shape(options->test), error) < 0 ||
        trainer_open(kernels, options->train, &options->trainer, &run->trainer, error) < 0)
        return -1;
    *out_run = TAKE(run);
    return 0;
}

void local_run_free(struct local_run *run)
{
    if (!run)
        return;
    trainer_free(run->trainer);
    free(run->good);
    free(run);
}

static int64_t now_ns(const struct local_run *run)
{
    return clock_monotonic_ns(run->options.clock);
}

static void end_with(struct local_run *run, enum local_run_end end, const char *reason)
{
    run->has_ended = true;
    run->status.end = end;
    snprintf(run->status.reason, sizeof(run->status.reason), "%.159s", reason);
    if (end == LOCAL_RUN_DIVERGED && run->good)
        run->status.test = run->good_test;
}

static void keep_good(struct local_run *run)
{
    const struct evaluation_result *test = &run->status.test;
    const size_t size = model_parameter_count(trainer_model(run->trainer)) * sizeof(float);
    /* On its way out the loss is finite for a while, and the model no good any more. */
    if (run->good && test->loss > good_rise_max * run->good_loss_min)
        return;
    if (!run->good || test->loss < run->good_loss_min)
        run->good_loss_min = test->loss;
    if (!run->good)
        run->good = malloc(size);
    ASSERT(run->good != NULL);
    memcpy(run->good, model_parameters(trainer_model(run->trainer)), size);
    run->good_test = *test;
}

static enum local_run_event measure(struct local_run *run, struct error *error)
{
    struct local_run_status *status = &run->status;
    run->measured_step = trainer_step_count(run->trainer);
    if (evaluation_run(trainer_model(run->trainer), run->options.test, &status->test, error) < 0)
        return LOCAL_RUN_FAILED;
    status->measurements++;
    status->elapsed_ms = (now_ns(run) - run->started_ns) / 1000000;
    if (!isfinite(status->test.loss)) {
        end_with(run, LOCAL_RUN_DIVERGED, "the loss on the test data is not finite any more");
        return LOCAL_RUN_MEASURED;
    }
    keep_good(run);
    char reached[96];
    if (status->elapsed_ms >= run->options.min_time_ms &&
        evaluation_reaches(&status->test, &run->options.target, reached, sizeof(reached)))
        end_with(run, LOCAL_RUN_TARGET, reached);
    return LOCAL_RUN_MEASURED;
}

static void count_step(struct local_run *run, double loss)
{
    struct local_run_status *status = &run->status;
    if (!isfinite(status->loss))
        run->loss_first = loss;
    status->loss =
        isfinite(status->loss) ? status->loss + (loss - status->loss) * loss_smoothing : loss;
    status->steps = trainer_step_count(run->trainer);
    status->samples = trainer_sample_count(run->trainer);
    status->epochs = trainer_epochs(run->trainer);
    const int64_t at_ns = now_ns(run);
    status->elapsed_ms = (at_ns - run->started_ns) / 1000000;
    if (at_ns - run->speed_ns < SPEED_MS * INT64_C(1000000))
        return;
    status->steps_per_second =
        (double)(status->steps - run->speed_steps) / (1e-9 * (double)(at_ns - run->speed_ns));
    run->speed_ns = at_ns;
    run->speed_steps = status->steps;
}

enum local_run_event local_run_advance(struct local_run *run, int64_t budget_ms,
                                       struct error *error)
{
    const int64_t begun_ns = now_ns(run);
    if (run->started_ns == 0) {
        run->started_ns = run->speed_ns = begun_ns;
        run->speed_steps = trainer_step_count(run->trainer);
    }
    while (!run->has_ended) {
        const uint64_t steps = trainer_step_count(run->trainer);
        const bool is_done = trainer_sample_count(run->trainer) >= run->samples_all;
        const bool is_due = steps > 0 && (is_done || steps % run->options.measure_steps == 0);
        if (is_due && (steps != run->measured_step || run->status.measurements == 0))
            return measure(run, error);
        if (is_done) {
            char reason[64];
            snprintf(reason, sizeof(reason), "%" PRIu64 " %s done", run->options.epochs,
                     run->options.epochs == 1 ? "epoch is" : "epochs are");
            end_with(run, LOCAL_RUN_EPOCHS, reason);
            break;
        }
        double loss;
        struct error bad;
        if (trainer_step(run->trainer, &loss, &bad) < 0) {
            if (!trainer_has_diverged(run->trainer)) {
                *error = bad;
                return LOCAL_RUN_FAILED;
            }
            end_with(run, LOCAL_RUN_DIVERGED, bad.message);
            break;
        }
        count_step(run, loss);
        if (now_ns(run) - begun_ns >= budget_ms * 1000000)
            return LOCAL_RUN_STEPPED;
    }
    return LOCAL_RUN_ENDED;
}

const struct local_run_status *local_run_status(const struct local_run *run)
{
    return &run->status;
}

const float *local_run_parameters(const struct local_run *run)
{
    if (run->has_ended && run->status.end == LOCAL_RUN_DIVERGED)
        return run->good;
    return model_parameters(trainer_model(run->trainer));
}

bool local_run_is_sound(const struct local_run *run)
{
    const bool has_diverged = run->has_ended && run->status.end == LOCAL_RUN_DIVERGED;
    /* Near 0 a loss is many times another soon: what it began with is no reason to worry. */
    const double risen = run->good ? sound_rise_max * run->good_loss_min : (double)INFINITY;
    const double most = risen > run->loss_first ? risen : run->loss_first;
    return !has_diverged && !(run->status.loss > most); /* NaN: no step yet */
}

int local_run_save(struct local_run *run, const char *path, struct error *error)
{
    struct checkpoint checkpoint;
    if (!local_run_is_sound(run))
        return error_set(error, ERROR_INVALID,
                         "the loss has risen to %g: the checkpoint before is kept",
                         run->status.loss);
    trainer_save(run->trainer, &checkpoint);
    return checkpoint_write(path, &checkpoint, error);
}

/* A checkpoint that several workers made knows neither our place in the data nor our velocity: what
 * it has there is the momentum of their joint model. */
static void take_over(const struct local_run *run, struct checkpoint *checkpoint)
{
    const uint64_t count = dataset_shape(run->options.train)->count;
    if (checkpoint->epoch > 0 || checkpoint->position > 0)
        return;
    checkpoint->epoch = checkpoint->samples / count;
    checkpoint->position = checkpoint->samples % count;
    memset(checkpoint->velocity, 0, sizeof(float) * checkpoint->parameter_count);
}

int local_run_resume(struct local_run *run, const char *path, struct error *error)
{
    AUTO(checkpoint) struct checkpoint *checkpoint = NULL;
    if (checkpoint_read(path, &checkpoint, error) < 0)
        return -1;
    take_over(run, checkpoint);
    if (trainer_restore(run->trainer, checkpoint, error) < 0)
        return error_wrap(error, "\"%.60s\"", path);
    run->status.steps = trainer_step_count(run->trainer);
    run->status.samples = trainer_sample_count(run->trainer);
    run->status.epochs = trainer_epochs(run->trainer);
    run->measured_step = run->status.steps;
    return 0;
}
