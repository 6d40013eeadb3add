/*
 * Plan: the choice for every loss from here to the target that takes the least time within what is
 * left of the budget, under a given epoch model.
 *
 * Time and cost of an epoch do not depend on the loss, and the loss falls as if continuously, at
 * loss_rate (loss - phi(n)). With a price of lambda seconds for a credit, the best choice at a loss
 * x is therefore the one with the least (time + lambda cost) / (x - phi(n)), and summing that over
 * losses gives the dynamic program's value. lambda is the one at which the sum of costs is
 * what is left. For any lambda, value - lambda left is a lower bound of the time of every schedule,
 * since an epoch of n functions is a stretch of the same sum with another choice in it.
 */
#pragma once

#include "base/scope.h"
#include "learn/epoch_model.h"

#include <stdbool.h>

struct plan;

struct plan_options {
    uint32_t candidate_max; /* numbers of functions looked at, even in the logarithm */
    uint32_t cell_count;    /* losses looked at */
};

struct plan_outlook {
    struct epoch_choice choice; /* of the next epoch */
    double time_s;              /* to the target */
    double cost;                /* credits */
    double cost_high;           /* with the reserve for bad luck */
    double epoch_count;
    double bound_s; /* below every schedule's time */
    double lambda;
    bool is_within; /* what is left pays for it, with the reserve */
};

struct plan *plan_new(const struct epoch_task *task, struct plan_options options);
void plan_free(struct plan *plan); /* NULL is fine */
DEFINE_AUTO(plan);

void plan_set_price(struct plan *plan, double price); /* in place of the task's; before the model */
void plan_set_model(struct plan *plan, const struct epoch_model *model);

/*
 * With noise the way to the target may be longer than it seems: a loss that is off by a share d
 * takes d over the rate of falling there in epochs to make good. `deviations` of the sum of that
 * are kept in reserve, but no more than a share of what the cheapest way would leave: who plans
 * anew before every epoch can still turn to that one. Nothing is, at first.
 */
struct plan_risk {
    double time_noise, loss_noise; /* deviations of an epoch, as shares */
    double deviations;
    double slack_share; /* of what the cheapest way would leave; 0: all of it and more */
};
void plan_set_risk(struct plan *plan, struct plan_risk risk);

/* After plan_set_model. Begins its search for lambda where the last one ended. */
struct plan_outlook plan_make(struct plan *plan, double loss, double left);

/*
 * After plan_set_model: the choice that, kept to the end in whole epochs, takes the least time
 * within what is left; the cheapest where none is within. From the first loss this is the best
 * constant, close to the target it is exacter than plan_make. `doubt`: parts of an epoch that the
 * end may be farther away than the model has it.
 */
struct plan_outlook plan_constant(const struct plan *plan, double loss, double left, double doubt);

/* Where a job stands whose loss goes with the work (work_fit.h). */
struct plan_stand {
    double work;          /* 1 + gain work */
    double left;          /* credits */
    uint32_t epochs_left; /* of the job, at most */
    double doubt;         /* as above */
};

/*
 * After plan_set_model, of that form: some epochs of one number of functions, then to the target by
 * as many or more of the same memory, in whole epochs: few go far, and many take the noise away.
 * Two numbers are enough, since only the last epoch's noise is left at the end, and of several
 * before it one kind is the best. Of those within what is left the cheapest that takes little more
 * time than the soonest; where none is within, the cheapest. No functions: none leads there.
 */
struct plan_outlook plan_phases(const struct plan *plan, const struct plan_stand *stand);
