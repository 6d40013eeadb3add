#include "sim/siren.h"

#include "base/assert.h"

#include <math.h>
#include <stddef.h>

const char *const siren_mode_names[SIREN_MODE_COUNT + 1] = {"paper", "floor", "sgd", NULL};

static const double time_noise = 0.05, loss_noise = 0.015;
static const double drawn_around = 0.3;
static const double floor_meets_target_at = 840; /* functions */

static const struct epoch_task paper_task = {
    .space = {3000, 1024, 64, 1024},
    .loss_start = 1,
    .loss_target = 1.0 / 30,
    .price = 1.47e-4,
    .epoch_max = 700,
};

static const struct epoch_task floor_task = {
    .space = {3000, 128, 64, 3008},
    .loss_start = 1,
    .loss_target = 1.0 / 30,
    .price = 5 * 1.66667e-5,
    .epoch_max = 700,
};

/* In `sgd`, of the floor's: functions that one stands for, and epochs. */
static const double sgd_functions = 50, sgd_epochs = 10;

static const struct epoch_task sgd_task = {
    .space = {64, 1024, 256, 3072},
    .loss_form = EPOCH_LOSS_WORK,
    .loss_start = 2.5, /* about: each run's is measured */
    .loss_target = 0.42,
    .price = 50 * 5 * 1.66667e-5,
    .epoch_max = 60,
};

/* The paper tells no parts: what is divided by n is all compute. */
static struct epoch_model paper_model(void)
{
    return (struct epoch_model){
        .start_s = 6.30,
        .compute_s = 1354.5,
        .core_mb = 1024,
        .loss_rate = log(30) / 308.99, /* the target is met within the 309th epoch */
    };
}

struct drawn {
    struct epoch_model model;
    double meets_at;
};

static struct epoch_model with_floor(struct drawn drawn)
{
    drawn.model.loss_floor = floor_task.loss_target / pow(drawn.meets_at, drawn.model.loss_power);
    return drawn.model;
}

static struct drawn typical(void)
{
    return (struct drawn){
        .model = {.start_s = 0.25,
                  .fetch_s = 34,
                  .compute_s = 616,
                  .update_s = 34,
                  .contention_s = 127,
                  .memory_base_mb = 1152,
                  .memory_spread_mb = 45000,
                  .paging = 4,
                  .core_mb = 1769,
                  .core_slope = 0.3,
                  .loss_rate = 0.0142,
                  .loss_power = 0.25},
        .meets_at = floor_meets_target_at,
    };
}

/* The same times for n functions as the floor's has for sgd_functions n, sgd_epochs times as long.
 */
static struct epoch_model scaled(struct epoch_model model)
{
    const double share = sgd_epochs / sgd_functions;
    model.start_s *= sgd_epochs;
    model.fetch_s *= share;
    model.compute_s *= share;
    model.update_s *= share;
    model.contention_s *= sgd_epochs / sqrt(sgd_functions);
    model.memory_spread_mb /= sgd_functions;
    return model;
}

static struct siren_world world_of(enum siren_mode mode, struct drawn drawn)
{
    switch (mode) {
    case SIREN_PAPER:
        return (struct siren_world){.mode = mode, .truth = paper_model(), .task = paper_task};
    case SIREN_FLOOR:
        return (struct siren_world){.mode = mode, .truth = with_floor(drawn), .task = floor_task};
    case SIREN_SGD:
        return (struct siren_world){.mode = mode, .truth = scaled(drawn.model), .task = sgd_task};
    case SIREN_MODE_COUNT:
        break;
    }
    UNREACHABLE("a world that nobody knows");
}

struct siren_world siren_world_typical(enum siren_mode mode)
{
    return world_of(mode, typical());
}

struct siren_world siren_world_draw(enum siren_mode mode, uint64_t seed)
{
    struct drawn drawn = typical();
    double *const constants[] = {
        &drawn.model.start_s,
        &drawn.model.fetch_s,
        &drawn.model.compute_s,
        &drawn.model.update_s,
        &drawn.model.contention_s,
        &drawn.model.memory_base_mb,
        &drawn.model.memory_spread_mb,
        &drawn.model.paging,
        &drawn.model.core_mb,
        &drawn.model.core_slope,
        &drawn.model.loss_rate,
        &drawn.model.loss_power,
        &drawn.meets_at,
    };
    struct random random;
    random_init(&random, seed);
    for (size_t i = 0; i < sizeof(constants) / sizeof(*constants); i++)
        *constants[i] *= 1 + drawn_around * (2 * random_unit(&random) - 1);
    return world_of(mode, drawn);
}

bool siren_world_varies(const struct siren_world *world, bool is_noisy)
{
    return is_noisy || world->mode == SIREN_SGD;
}

void siren_begin(struct siren *siren, const struct siren_options *options)
{
    *siren = (struct siren){
        .world = options->world, .task = options->world->task, .is_noisy = options->is_noisy};
    siren->task.budget_micro = options->budget_micro;
    siren->state.loss = siren->task.loss_start;
    if (options->world->mode == SIREN_SGD)
        siren->state.loss = siren_sgd_begin(options->world->sgd, options->episode);
    siren->state.left_micro = options->budget_micro;
    random_init(&siren->noise, options->episode);
}

/* Mean 1. */
static double log_normal(struct random *random, double deviation)
{
    return exp(deviation * random_normal(random) - deviation * deviation / 2);
}

static void lengthen(struct epoch_seen *seen, double times)
{
    seen->fetch_s *= times;
    seen->compute_s *= times;
    seen->update_s *= times;
    seen->total_s *= times;
}

/* What the model has of times, and of the loss where nothing is trained. */
static struct epoch_seen run_epoch(struct siren *siren, struct epoch_choice choice)
{
    struct epoch_seen seen = epoch_model_predict(&siren->world->truth, choice, &siren->state);
    if (siren->world->mode == SIREN_SGD) {
        const struct siren_sgd_epoch trained =
            siren_sgd_epoch(siren->world->sgd, choice.function_count);
        seen.loss_after = trained.loss;
        lengthen(&seen, trained.longer);
    }
    if (siren->is_noisy)
        lengthen(&seen, log_normal(&siren->noise, time_noise));
    if (siren->is_noisy && siren->world->mode != SIREN_SGD)
        seen.loss_after *= log_normal(&siren->noise, loss_noise);
    seen.cost_micro = epoch_cost_micro(&siren->task, choice, seen.total_s);
    return seen;
}

static void stop_short(struct siren *siren, const struct epoch_seen *seen)
{
    const double share = (double)siren->state.left_micro / (double)seen->cost_micro;
    siren->state.elapsed_s += share * seen->total_s;
    siren->state.left_micro = 0;
    siren->end = SIREN_EXHAUSTED;
}

void siren_step(struct siren *siren, struct epoch_choice choice)
{
    struct epoch_state *state = &siren->state;
    ASSERT(siren->end == SIREN_RUNNING);
    ASSERT(choice.function_count >= 1 && choice.function_count <= siren->task.space.function_max);
    const struct epoch_seen seen = run_epoch(siren, choice);
    if (seen.cost_micro > state->left_micro) {
        stop_short(siren, &seen);
        return;
    }
    state->epoch++;
    state->loss = seen.loss_after;
    state->elapsed_s += seen.total_s;
    state->left_micro -= seen.cost_micro;
    state->last = seen;
    if (state->loss <= siren->task.loss_target)
        siren->end = SIREN_REACHED;
    else if (state->epoch == siren->task.epoch_max)
        siren->end = SIREN_TOO_LONG;
}

int64_t siren_spent_micro(const struct siren *siren)
{
    return siren->task.budget_micro - siren->state.left_micro;
}
