#include "base/assert.h"
#include "base/log.h"
#include "base/units.h"
#include "function/driver_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TIME_MS_MIN = 1000, /* a limit is no lower: Lambda counts in seconds */
    TIME_FACTOR = 4,    /* of the longest call seen */
    TIME_LEFT_MIN = 2,  /* keep a limit of at least this many longest calls */
};

int driver_measure(struct driver *driver, struct driver_measure *out_measure, struct error *error)
{
    const float *parameters = lead_parameters(driver->options.lead);
    if (driver->options.measure(driver->options.context, parameters, out_measure, error) < 0)
        return -1;
    driver->loss = out_measure->loss;
    /* No number is below nothing, nor better than a number. */
    if (driver->has_best && isfinite(driver->outcome.best.loss) &&
        !(out_measure->loss < driver->outcome.best.loss))
        return 0;
    driver->has_best = true;
    driver->outcome.best = *out_measure;
    memcpy(driver->best, parameters, sizeof(float) * lead_parameter_count(driver->options.lead));
    return 0;
}

const char *driver_done_words(uint64_t epochs, char *out, size_t size)
{
    if (epochs == 1)
        snprintf(out, size, "the epoch is done");
    else
        snprintf(out, size, "all %" PRIu64 " epochs are done", epochs);
    return out;
}

static void see_epoch(struct driver *driver, const struct driver_measure *measured)
{
    const struct tally *tally = &driver->tally;
    const double calls = tally->calls > 0 ? (double)tally->calls : 1;
    const double busy_s = 1e-3 * (double)tally->billed_ms;
    driver->seen = (struct function_seen){
        .choice = driver->choice,
        .loss = measured->loss,
        .fetch_s = 1e-6 * (double)tally->fetch_us / calls,
        .compute_s = 1e-6 * (double)tally->compute_us / calls,
        .update_s = 1e-6 * (double)tally->update_us / calls,
        .total_s = 1e-9 * (double)(driver_now_ns(driver) - driver->epoch_ns),
        .memory_use = tally->memory_use / calls,
        .cpu_use = busy_s > 0 ? 1e-6 * (double)tally->compute_us / busy_s : 0,
        .cost_micro = tally->cost_micro,
        .call_count = tally->calls,
        .failure_count = tally->failures,
    };
}

static void report(struct driver *driver, const struct driver_measure *measured, bool is_cut_short)
{
    see_epoch(driver, measured);
    const struct driver_report told = {
        .epoch = driver->epoch,
        .is_cut_short = is_cut_short,
        .seen = driver->seen,
        .measure = *measured,
        .staleness = epoch_plan_staleness_seen(driver->plan),
        .spent_micro = driver->purse.spent_micro,
    };
    driver->is_told = true;
    if (driver->options.on_epoch)
        driver->options.on_epoch(driver->options.context, &told);
}

static uint64_t span_of(const struct driver *driver)
{
    const uint64_t given = driver->options.span_batches;
    const uint64_t share =
        driver->options.batch_count / ((uint64_t)4 * driver->choice.function_count);
    return given ? given : share > 0 ? share : 1;
}

/* Lambda ends all warm instances when a limit changes: set the limit once, and raise it only when
   calls come near it. */
static int64_t time_limit(const struct driver *driver)
{
    if (driver->longest_ms == 0)
        return driver->options.time_ms;
    const bool is_set = driver->time_ms > 0 && driver->time_ms < driver->options.time_ms;
    if (is_set && driver->time_ms >= driver->longest_ms * TIME_LEFT_MIN)
        return driver->time_ms;
    int64_t wanted = driver->longest_ms * TIME_FACTOR;
    if (wanted > driver->options.time_ms)
        return driver->options.time_ms;
    wanted = (wanted + 999) / 1000 * 1000;
    return wanted > TIME_MS_MIN ? wanted : TIME_MS_MIN;
}

int64_t driver_call_most(const struct driver *driver)
{
    return purse_most(&driver->purse, driver->choice.memory_mb, driver->time_ms);
}

int64_t driver_may_spend(const struct driver *driver)
{
    const struct purse *purse = &driver->purse;
    const int64_t most =
        purse->spent_micro + driver->choice.function_count * driver_call_most(driver);
    return purse->budget_micro && most > purse->budget_micro ? purse->budget_micro : most;
}

/* A store that is away is asked again. */
static int note_spent(struct driver *driver, int64_t spent_micro, struct error *error)
{
    lead_set_spent(driver->options.lead, spent_micro);
    for (int i = 0; i < DRIVER_PUBLISH_ATTEMPTS; i++) {
        if (lead_note_spent(driver->options.lead, error) == 0)
            return 0;
        if (error->code != ERROR_UNAVAILABLE)
            break;
    }
    return -1;
}

/* Of as many functions as last, with the limit of the next epoch. */
static int64_t next_held(const struct driver *driver)
{
    return driver->choice.function_count *
           purse_most(&driver->purse, driver->choice.memory_mb, time_limit(driver));
}

/* Without a single call there would be nothing but the model it began with. */
static int check_first_call(const struct driver *driver, struct error *error)
{
    char most[UNITS_TEXT_SIZE], budget[UNITS_TEXT_SIZE];
    if (driver->outcome.calls > 0 || driver_call_most(driver) <= purse_left(&driver->purse))
        return 0;
    return error_set(error, ERROR_EXHAUSTED,
                     "the budget is too small for one call: %s are held for it, %u MB for "
                     "%" PRId64 " s and %d s to start; the budget is %s",
                     units_format_credits(driver_call_most(driver), most), driver->choice.memory_mb,
                     driver->time_ms / 1000, PURSE_START_MS_MAX / 1000,
                     units_format_credits(driver->purse.budget_micro, budget));
}

int driver_begin_epoch(struct driver *driver, struct error *error)
{
    struct lead *lead = driver->options.lead;
    size_t covered_count;
    const struct batch_span *covered = lead_covered(lead, &covered_count);
    const struct function_state state = {
        .epoch = lead_epoch(lead),
        .epoch_max = driver->options.epochs,
        .loss = driver->loss,
        .seen = driver->seen.call_count ? &driver->seen : NULL,
        .budget_micro = purse_left(&driver->purse),
        .held_micro = next_held(driver),
    };
    driver->choice = driver->options.choose(driver->options.choose_context, &state);
    if (driver->choice.function_count < 1 || driver->choice.function_count > DRIVER_FUNCTIONS_MAX)
        return error_set(error, ERROR_INVALID, "functions: must be from 1 to %d",
                         DRIVER_FUNCTIONS_MAX);
    lead_set_rate(lead, driver->options.rate / driver->choice.function_count);
    driver->time_ms = time_limit(driver);
    if (check_first_call(driver, error) < 0 ||
        invoker_configure(driver->options.invoker, driver->choice.memory_mb, driver->time_ms,
                          error) < 0 ||
        note_spent(driver, driver_may_spend(driver), error) < 0)
        return -1;
    const uint64_t staleness = driver->options.staleness;
    epoch_plan_free(driver->plan);
    driver->plan = epoch_plan_new(&(struct epoch_plan_options){
        .batch_count = driver->options.batch_count,
        .span_batches = span_of(driver),
        .staleness = staleness ? staleness : 2 * (uint64_t)driver->choice.function_count,
        .version = lead_version(lead),
        .seed = driver->options.seed + lead_epoch(lead),
        .covered = covered,
        .covered_count = covered_count,
    });
    driver->ready =
        realloc(driver->ready, (driver->options.batch_count + 1) * sizeof(*driver->ready));
    ASSERT(driver->ready);
    driver->tally = (struct tally){0};
    driver->epoch = lead_epoch(lead);
    driver->is_told = false;
    driver->epoch_ns = driver_now_ns(driver);
    return 0;
}

/* The model with all of the epoch in it, and as the first of the next. A store that is away is
 * asked again. */
static int publish_end(struct driver *driver, struct error *error)
{
    struct lead *lead = driver->options.lead;
    lead_set_spent(lead, driver->purse.spent_micro);
    for (int i = 0; i < DRIVER_PUBLISH_ATTEMPTS; i++) {
        if ((lead_epoch(lead) != driver->epoch ||
             lead_publish(lead, driver->plan, lead_version(lead), error) == 0) &&
            lead_end_epoch(lead, error) == 0)
            return 0;
        if (error->code != ERROR_UNAVAILABLE)
            break;
    }
    return -1;
}

void driver_end_epoch(struct driver *driver)
{
    struct lead *lead = driver->options.lead;
    struct driver_measure measured;
    struct error error;
    char words[64];
    if (driver_measure(driver, &measured, &error) < 0 || publish_end(driver, &error) < 0) {
        driver_finish(driver, DRIVER_FAILED, "%s", error.message);
        return;
    }
    driver->outcome.epochs++;
    report(driver, &measured, /* is_cut_short= */ false);
    if (!isfinite(measured.loss))
        driver_finish(driver, DRIVER_FAILED,
                      "the loss is not finite any more after %" PRIu64 " epochs",
                      driver->outcome.epochs);
    else if (measured.is_target)
        driver_finish(driver, DRIVER_TARGET, "the target is reached");
    else if (lead_epoch(lead) >= driver->options.epochs)
        driver_finish(driver, DRIVER_EPOCHS, "%s",
                      driver_done_words(driver->options.epochs, words, sizeof(words)));
    else if (driver_begin_epoch(driver, &error) < 0)
        driver_finish(driver, DRIVER_FAILED, "%s", error.message);
}

void driver_end_short(struct driver *driver)
{
    struct lead *lead = driver->options.lead;
    struct driver_measure measured;
    struct error error;
    if (!driver->plan || driver->is_told)
        return;
    lead_set_spent(lead, driver->purse.spent_micro);
    if (lead_epoch(lead) == driver->epoch &&
        lead_publish(lead, driver->plan, lead_version(lead), &error) < 0)
        log_event(LOG_WARN, "model_not_published", "reason=\"%s\"", error.message);
    if (note_spent(driver, driver->purse.spent_micro, &error) < 0)
        log_event(LOG_WARN, "spending_not_noted", "reason=\"%s\"", error.message);
    if (driver_measure(driver, &measured, &error) == 0)
        report(driver, &measured, /* is_cut_short= */ true);
    else if (!driver->has_best)
        snprintf(driver->outcome.reason, sizeof(driver->outcome.reason), "%s", error.message);
}
