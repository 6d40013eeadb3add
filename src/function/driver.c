#include "function/driver.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/units.h"
#include "function/host.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FAILURES_MAX = 5,
    TIME_MS_MIN = 1000, /* a limit is no lower: Lambda counts in seconds */
    TIME_FACTOR = 4,    /* of the longest call seen */
    PAUSE_MS_MIN = 50,
    PAUSE_MS_MAX = 5000,
    PUBLISH_ATTEMPTS = 3,
    THROTTLED_MS_MAX = 300000,
};

const char *const driver_end_names[] = {"epochs", "target", "budget", "failed", "stopped", NULL};

struct driver_call {
    struct driver *driver;
    struct work_request request;
    int64_t held_micro;
    int64_t begun_ns;
};

/* Sums over the calls of an epoch. */
struct tally {
    int64_t fetch_us, compute_us, update_us, billed_ms, cost_micro;
    double memory_use;
    uint64_t calls, failures;
};

struct driver {
    struct driver_options options;
    struct epoch_plan *plan;
    struct work_request *ready; /* updates that may not be added yet */
    size_t ready_count;
    struct function_choice choice;
    struct function_seen seen;
    struct tally tally;
    struct purse purse;
    struct loop_timer *timer; /* after calls were throttled */
    int64_t pause_ms;
    int64_t throttled_ns; /* since when all calls are; 0: they are not */
    uint32_t running;
    int64_t time_ms, longest_ms, epoch_ns;
    bool is_ending, has_ended;
    bool is_memory_told; /* that calls had another memory than they were to have */
    uint64_t epoch;
    bool is_told; /* of the epoch, how it ended */
    struct driver_outcome outcome;
    float *best;
    bool has_best;
    double loss; /* measured last */
};

static void pump(struct driver *driver);

static int64_t now_ns(const struct driver *driver)
{
    return clock_monotonic_ns(loop_clock(driver->options.loop));
}

/* ---- The end --------------------------------------------------------------------------------- */

/* Whatever runs is waited for; the first reason stays. */
static void finish(struct driver *driver, enum driver_end end, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void finish(struct driver *driver, enum driver_end end, const char *format, ...)
{
    va_list arguments;
    if (driver->is_ending)
        return;
    driver->is_ending = true;
    driver->outcome.end = end;
    va_start(arguments, format);
    vsnprintf(driver->outcome.reason, sizeof(driver->outcome.reason), format, arguments);
    va_end(arguments);
}

void driver_stop(struct driver *driver)
{
    finish(driver, DRIVER_STOPPED, "it was stopped");
    pump(driver);
}

/* Keeps the model if it is the best yet. */
static int measure(struct driver *driver, struct driver_measure *out_measure, struct error *error)
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

/* ---- Epochs ---------------------------------------------------------------------------------- */

/* "all 3 epochs are done" */
static const char *done_words(uint64_t epochs, char *out, size_t size)
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
        .total_s = 1e-9 * (double)(now_ns(driver) - driver->epoch_ns),
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

static int64_t time_limit(const struct driver *driver)
{
    int64_t wanted = driver->longest_ms * TIME_FACTOR;
    if (driver->longest_ms == 0 || wanted > driver->options.time_ms)
        return driver->options.time_ms;
    wanted = (wanted + 999) / 1000 * 1000;
    return wanted > TIME_MS_MIN ? wanted : TIME_MS_MIN;
}

/* What a call of this epoch costs at the most. */
static int64_t call_most(const struct driver *driver)
{
    return purse_most(&driver->purse, driver->choice.memory_mb, driver->time_ms);
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
    if (driver->outcome.calls > 0 || call_most(driver) <= purse_left(&driver->purse))
        return 0;
    return error_set(error, ERROR_EXHAUSTED,
                     "the budget is too small for one call: %s credits are held for it, %u MB for "
                     "%" PRId64 " s and %d s to start; the budget is %s",
                     units_format_credits(call_most(driver), most), driver->choice.memory_mb,
                     driver->time_ms / 1000, PURSE_START_MS_MAX / 1000,
                     units_format_credits(driver->purse.budget_micro, budget));
}

static int begin_epoch(struct driver *driver, struct error *error)
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
                          error) < 0)
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
    driver->epoch_ns = now_ns(driver);
    return 0;
}

/* The model with all of the epoch in it, and as the first of the next. A store that is away is
 * asked again. */
static int publish_end(struct driver *driver, struct error *error)
{
    struct lead *lead = driver->options.lead;
    lead_set_spent(lead, driver->purse.spent_micro);
    for (int i = 0; i < PUBLISH_ATTEMPTS; i++) {
        if ((lead_epoch(lead) != driver->epoch ||
             lead_publish(lead, driver->plan, lead_version(lead), error) == 0) &&
            lead_end_epoch(lead, error) == 0)
            return 0;
        if (error->code != ERROR_UNAVAILABLE)
            break;
    }
    return -1;
}

/* All are back and every batch is in. What the epoch made is measured before it is published: it
 * may be the best, whatever becomes of the store. */
static void end_epoch(struct driver *driver)
{
    struct lead *lead = driver->options.lead;
    struct driver_measure measured;
    struct error error;
    char words[64];
    if (measure(driver, &measured, &error) < 0 || publish_end(driver, &error) < 0) {
        finish(driver, DRIVER_FAILED, "%s", error.message);
        return;
    }
    driver->outcome.epochs++;
    report(driver, &measured, /* is_cut_short= */ false);
    if (!isfinite(measured.loss))
        finish(driver, DRIVER_FAILED, "the loss is not finite any more after %" PRIu64 " epochs",
               driver->outcome.epochs);
    else if (measured.is_target)
        finish(driver, DRIVER_TARGET, "the target is reached");
    else if (lead_epoch(lead) >= driver->options.epochs)
        finish(driver, DRIVER_EPOCHS, "%s",
               done_words(driver->options.epochs, words, sizeof(words)));
    else if (begin_epoch(driver, &error) < 0)
        finish(driver, DRIVER_FAILED, "%s", error.message);
}

/* What the epoch has so far may be better than where it began. */
static void end_short(struct driver *driver)
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
    if (measure(driver, &measured, &error) == 0)
        report(driver, &measured, /* is_cut_short= */ true);
    else if (!driver->has_best)
        snprintf(driver->outcome.reason, sizeof(driver->outcome.reason), "%s", error.message);
}

/* ---- Updates --------------------------------------------------------------------------------- */

static void span_failed(struct driver *driver, uint64_t first, bool is_spoiled, const char *reason)
{
    const uint32_t failures =
        is_spoiled ? epoch_plan_spoil(driver->plan, first) : epoch_plan_fail(driver->plan, first);
    driver->outcome.failures++;
    driver->tally.failures++;
    log_event(LOG_DEBUG, "span_failed", "first=%" PRIu64 " failures=%u reason=\"%s\"", first,
              failures, reason);
    if (failures >= FAILURES_MAX)
        finish(driver, DRIVER_FAILED, "batch %" PRIu64 " failed %u times: %s", first, failures,
               reason);
}

static void fold(struct driver *driver, const struct work_request *request)
{
    struct work_update update;
    struct error error;
    if (lead_fold(driver->options.lead, request, &update, &error) == 0)
        epoch_plan_fold(driver->plan, request->first_batch, update.batches);
    else
        span_failed(driver, request->first_batch, error.code == ERROR_CORRUPT, error.message);
}

/* One that is added may let another. */
static void fold_ready(struct driver *driver)
{
    for (size_t i = 0; i < driver->ready_count;) {
        const struct work_request request = driver->ready[i];
        if (!epoch_plan_may_fold(driver->plan, request.first_batch)) {
            i++;
            continue;
        }
        memmove(&driver->ready[i], &driver->ready[i + 1],
                (driver->ready_count - i - 1) * sizeof(*driver->ready));
        driver->ready_count--;
        fold(driver, &request);
        i = 0;
    }
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static int read_answer(const struct driver_call *call, struct text json,
                       struct work_answer *out_answer, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct work_request *request = &call->request;
    *out_answer = (struct work_answer){0};
    if (json_read(arena, json, &work_answer_schema, out_answer, error) < 0)
        return -1;
    if (strcmp(out_answer->job, request->job) != 0 || out_answer->epoch != request->epoch ||
        out_answer->run != request->run || out_answer->first_batch != request->first_batch ||
        out_answer->batches_done > request->batch_count)
        return error_set(error, ERROR_CORRUPT, "the answer is another call's");
    return 0;
}

static void take_answer(struct driver *driver, const struct driver_call *call,
                        const struct invoke_result *result)
{
    struct work_answer answer;
    struct error error;
    if (read_answer(call, result->payload, &answer, &error) < 0) {
        span_failed(driver, call->request.first_batch, false, error.message);
        return;
    }
    driver->tally.fetch_us += answer.fetch_us;
    driver->tally.compute_us += answer.compute_us;
    driver->tally.update_us += answer.update_us;
    if (answer.batches_done == 0)
        span_failed(driver, call->request.first_batch, false, "its time was too short for a batch");
    else
        driver->ready[driver->ready_count++] = call->request;
}

/* A function has one memory for all who call it, and others may have set it. */
static void tell_memory(struct driver *driver, const struct invoke_result *result)
{
    if (result->memory_mb <= 0 || result->memory_mb == driver->choice.memory_mb ||
        driver->is_memory_told)
        return;
    driver->is_memory_told = true;
    log_event(LOG_WARN, "function_memory", "wanted_mb=%u had_mb=%" PRId64 " reason=\"%s\"",
              driver->choice.memory_mb, result->memory_mb, "somebody else configures it");
}

static void pay(struct driver *driver, const struct driver_call *call,
                const struct invoke_result *result)
{
    const struct purse_call made = {
        .held_micro = call->held_micro,
        .memory_mb = driver->choice.memory_mb,
        .time_ms = driver->time_ms,
        .passed_ms = (now_ns(driver) - call->begun_ns + 999999) / 1000000,
    };
    const struct purse_paid paid = purse_pay(&driver->purse, &made, result);
    tell_memory(driver, result);
    driver->outcome.billed_ms += paid.billed_ms;
    driver->tally.cost_micro += paid.cost_micro;
    driver->tally.billed_ms += paid.billed_ms;
    if (result->outcome == INVOKE_ANSWERED && paid.billed_ms > driver->longest_ms)
        driver->longest_ms = paid.billed_ms;
}

static void count(struct driver *driver, const struct invoke_result *result)
{
    driver->outcome.calls++;
    driver->tally.calls++;
    driver->outcome.cold_starts += result->is_cold;
    if (result->memory_peak_bytes >= 0)
        driver->tally.memory_use +=
            (double)result->memory_peak_bytes / ((double)driver->choice.memory_mb * (1 << 20));
}

/* Tried again for as long as it may be somebody else's calls that are in the way. */
static void throttle(struct driver *driver, uint64_t first, const char *reason)
{
    const int64_t most_ms =
        driver->options.throttled_ms_max ? driver->options.throttled_ms_max : THROTTLED_MS_MAX;
    driver->outcome.throttled++;
    epoch_plan_give_back(driver->plan, first);
    if (!driver->throttled_ns) {
        driver->throttled_ns = now_ns(driver);
        log_event(LOG_INFO, "calls_throttled", "reason=\"%s\"", reason);
    }
    driver->pause_ms = driver->pause_ms ? 2 * driver->pause_ms : PAUSE_MS_MIN;
    if (driver->pause_ms > PAUSE_MS_MAX)
        driver->pause_ms = PAUSE_MS_MAX;
    if (now_ns(driver) - driver->throttled_ns >= most_ms * 1000000)
        finish(driver, DRIVER_FAILED, "no call was let in for %" PRId64 " s: %s", most_ms / 1000,
               reason);
    else
        loop_timer_start(driver->timer, driver->pause_ms);
}

static void on_called(void *context, const struct invoke_result *result)
{
    struct driver_call *call = context;
    struct driver *driver = call->driver;
    driver->running--;
    if (result->outcome == INVOKE_THROTTLED) {
        purse_release(&driver->purse, call->held_micro);
        throttle(driver, call->request.first_batch, result->reason);
    } else {
        pay(driver, call, result);
        count(driver, result);
        driver->pause_ms = 0;
        driver->throttled_ns = 0;
        loop_timer_stop(driver->timer); /* there is room again */
        if (result->outcome == INVOKE_ANSWERED) {
            take_answer(driver, call, result);
        } else {
            char reason[200];
            snprintf(reason, sizeof(reason), "%.*s",
                     (int)(result->payload.size < 190 ? result->payload.size : 190),
                     result->payload.size ? result->payload.data : "");
            text_make_plain(reason);
            span_failed(driver, call->request.first_batch, false,
                        reason[0] ? reason : result->reason);
        }
        fold_ready(driver);
    }
    free(call);
    pump(driver);
}

static void write_request(const struct driver *driver, const struct work_request *request,
                          struct buffer *out)
{
    struct json_writer writer;
    struct work_request told = *request;
    if (driver->options.store)
        told.store = text_of(driver->options.store);
    json_writer_init(&writer, out);
    json_write(&writer, &work_request_schema, &told);
}

/* False: no more calls now. */
static bool call_next(struct driver *driver)
{
    struct lead *lead = driver->options.lead;
    struct plan_task task;
    struct error error;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, WORK_JSON_MAX);
    const int64_t most = call_most(driver);
    if (most > purse_left(&driver->purse) ||
        !epoch_plan_take(driver->plan, lead_published(lead), &task))
        return false;
    const struct work_request request = lead_request(lead, &task);
    struct driver_call *call = memory_zeroed(1, sizeof(*call));
    *call = (struct driver_call){driver, request, most, now_ns(driver)};
    write_request(driver, &request, &json);
    purse_hold(&driver->purse, most);
    driver->running++;
    if (invoker_call(driver->options.invoker, buffer_text(&json), on_called, call, &error) == 0)
        return true;
    driver->running--;
    purse_release(&driver->purse, most);
    free(call);
    if (error.code == ERROR_EXHAUSTED) {
        throttle(driver, task.span.first, error.message);
    } else {
        epoch_plan_give_back(driver->plan, task.span.first);
        finish(driver, DRIVER_FAILED, "%s", error.message);
    }
    return false;
}

/* Functions start from the newest model there is. A store that is away is asked again. */
static void publish(struct driver *driver)
{
    struct lead *lead = driver->options.lead;
    struct error error;
    lead_set_spent(lead, driver->purse.spent_micro);
    for (int i = 0; i < PUBLISH_ATTEMPTS; i++) {
        if (lead_publish(lead, driver->plan, epoch_plan_oldest(driver->plan), &error) == 0)
            return;
        if (error.code != ERROR_UNAVAILABLE)
            break;
    }
    finish(driver, DRIVER_FAILED, "%s", error.message);
}

/* Sends out what may go, and sees whether the epoch or the job is at its end. */
static void pump(struct driver *driver)
{
    while (!driver->is_ending && driver->running < driver->choice.function_count &&
           !loop_timer_is_running(driver->timer)) {
        publish(driver);
        if (driver->is_ending || !call_next(driver))
            break;
    }
    if (driver->running > 0)
        return;
    if (!driver->is_ending && epoch_plan_is_complete(driver->plan)) {
        end_epoch(driver);
        if (!driver->is_ending) {
            pump(driver);
            return;
        }
    }
    if (!driver->is_ending && call_most(driver) > purse_left(&driver->purse))
        finish(driver, DRIVER_BUDGET, "the budget is used up but for less than one more call");
    if (driver->is_ending && !driver->has_ended) {
        driver->has_ended = true;
        if (driver->outcome.end != DRIVER_EPOCHS && driver->outcome.end != DRIVER_TARGET)
            end_short(driver);
        loop_stop(driver->options.loop);
    }
}

static void on_pause(void *context)
{
    pump(context);
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct driver *driver_new(const struct driver_options *options)
{
    struct driver *driver = memory_zeroed(1, sizeof(*driver));
    driver->options = *options;
    driver->purse = (struct purse){.price = options->price,
                                   .budget_micro = options->budget_micro,
                                   .spent_micro = lead_spent(options->lead)};
    driver->timer = loop_timer_new(options->loop, on_pause, driver);
    driver->best = memory_zeroed(lead_parameter_count(options->lead), sizeof(float));
    return driver;
}

void driver_free(struct driver *driver)
{
    if (!driver)
        return;
    epoch_plan_free(driver->plan);
    loop_timer_free(driver->timer);
    free(driver->ready);
    free(driver->best);
    free(driver);
}

static void start(void *context)
{
    pump(context);
}

int driver_run(struct driver *driver, struct driver_outcome *out_outcome, struct error *error)
{
    struct lead *lead = driver->options.lead;
    struct driver_measure measured;
    char words[64];
    if (lead_epoch(lead) >= driver->options.epochs)
        return error_set(error, ERROR_INVALID, "there is nothing left to do: %s",
                         done_words(driver->options.epochs, words, sizeof(words)));
    /* Where it begins is the best there is, until an epoch is better. */
    if (measure(driver, &measured, error) < 0 || begin_epoch(driver, error) < 0)
        return -1;
    loop_post(driver->options.loop, start, driver);
    if (loop_run(driver->options.loop, error) < 0)
        return -1;
    *out_outcome = driver->outcome;
    out_outcome->spent_micro = driver->purse.spent_micro;
    out_outcome->parameters = driver->best;
    return 0;
}
