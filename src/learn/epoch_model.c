#include "learn/epoch_model.h"

#include <math.h>

double epoch_model_need_mb(const struct epoch_model *model, double function_count)
{
    return model->memory_base_mb + model->memory_spread_mb / function_count;
}

double epoch_model_speed(const struct epoch_model *model, double memory_mb)
{
    const double cores = memory_mb / model->core_mb;
    return cores <= 1 ? cores : 1 + model->core_slope * (cores - 1);
}

double epoch_model_floor(const struct epoch_model *model, double function_count)
{
    return model->loss_floor * pow(function_count, model->loss_power);
}

double epoch_model_next_loss(const struct epoch_model *model, double function_count, double loss)
{
    const double floor = epoch_model_floor(model, function_count);
    return floor + (loss - floor) * exp(-model->loss_rate);
}

double epoch_model_epochs(const struct epoch_model *model, double function_count, double loss,
                          double loss_target)
{
    if (loss <= loss_target)
        return 0;
    const double floor = epoch_model_floor(model, function_count);
    return floor < loss_target ? log((loss - floor) / (loss_target - floor)) / model->loss_rate
                               : HUGE_VAL;
}

/* What is in a loss of noise, the next epoch's takes the place of. */
static double next_loss_by_work(const struct work_fitted *work, double function_count,
                                const struct epoch_state *state)
{
    const double signal = work_signal_in(work, state->loss, state->last.choice.function_count);
    const double reached = work_of_signal(work, signal) + work_of_epoch(work, function_count);
    return work_signal(work, reached) + work_noise(work, function_count);
}

/* The times and uses of `seen`; its choice is there. */
static void set_times(const struct epoch_model *model, struct epoch_seen *seen)
{
    const double n = seen->choice.function_count;
    const double m = seen->choice.memory_mb;
    const double use = epoch_model_need_mb(model, n) / m;
    const double paging = 1 + model->paging * fmax(0, use - 1);
    seen->fetch_s = model->fetch_s * paging / n + model->fetch_each_s;
    seen->compute_s = model->compute_s * paging / (n * epoch_model_speed(model, m));
    seen->update_s = (model->update_s + model->contention_s * sqrt(n)) / n + model->update_each_s +
                     model->update_rise_s * n;
    seen->total_s =
        model->start_s + model->start_rise_s * n + seen->fetch_s + seen->compute_s + seen->update_s;
    seen->memory_use = fmin(use, 1);
    seen->cpu_use = seen->compute_s / seen->total_s;
}

double epoch_model_total_s(const struct epoch_model *model, struct epoch_choice choice)
{
    struct epoch_seen seen = {.choice = choice};
    set_times(model, &seen);
    return seen.total_s;
}

struct epoch_seen epoch_model_predict(const struct epoch_model *model, struct epoch_choice choice,
                                      const struct epoch_state *state)
{
    const double n = choice.function_count;
    struct epoch_seen seen = {
        .choice = choice,
        .loss_before = state->loss,
        .loss_after = model->loss_form == EPOCH_LOSS_WORK
                          ? next_loss_by_work(&model->work, n, state)
                          : epoch_model_next_loss(model, n, state->loss),
    };
    set_times(model, &seen);
    return seen;
}
