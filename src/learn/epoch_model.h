/*
 * Epoch model: how long an epoch takes, and how far the loss falls in it, as a form with constants:
 *
 *     n       functions                 m         memory of each, MB
 *     need  = memory_base + memory_spread / n                    MB
 *     h     = 1 + paging max(0, need / m - 1)                    when memory is short
 *     s     = m / core up to one core, then 1 + core_slope (m / core - 1)
 *     fetch = F h / n + f,  compute = C h / (n s),  update = (U + V sqrt(n)) / n + u + v n
 *     total = start + w n + fetch + compute + update
 *     phi   = loss_floor n^loss_power
 *     loss' = phi + (loss - phi) exp(-loss_rate)
 *
 * or, in place of the last two, the form of work_fit.h.
 *
 * f, u, v and w are of real jobs, whose functions each fetch and put whole models and keep their
 * lead busy; 0 in simulated worlds, as U and V are in those jobs.
 *
 * phi is the noise floor: many functions write at once, their gradients are of older models, and
 * the loss stops falling earlier. So many functions pay at the beginning and few at the end.
 */
#pragma once

#include "learn/epoch.h"
#include "learn/work_fit.h"

struct epoch_model {
    double start_s;
    double fetch_s, compute_s, update_s; /* F, C, U: what one function alone would take */
    double contention_s;                 /* V, at the store */
    double fetch_each_s, update_each_s;  /* f, u: of every function */
    double update_rise_s, start_rise_s;  /* v, w: more for every function there is */
    double memory_base_mb, memory_spread_mb;
    double paging;
    double core_mb, core_slope;
    double loss_rate; /* per epoch */
    double loss_floor, loss_power;
    enum epoch_loss_form loss_form;
    struct work_fitted work;
};

double epoch_model_need_mb(const struct epoch_model *model, double function_count);
double epoch_model_speed(const struct epoch_model *model, double memory_mb); /* s: cores */
double epoch_model_floor(const struct epoch_model *model, double function_count);
/* Of the form with a floor. From one loss to another at one number of functions; infinite when that
 * is never reached. */
double epoch_model_epochs(const struct epoch_model *model, double function_count, double loss,
                          double loss_target);
double epoch_model_next_loss(const struct epoch_model *model, double function_count, double loss);

double epoch_model_total_s(const struct epoch_model *model, struct epoch_choice choice);

/* The next epoch as the model has it: everything of `seen` but its cost. */
struct epoch_seen epoch_model_predict(const struct epoch_model *model, struct epoch_choice choice,
                                      const struct epoch_state *state);
