#include "base/arena.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/units.h"
#include "function/driver_internal.h"
#include "function/host.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FAILURES_MAX = 5,
    PAUSE_MS_MIN = 50,
    PAUSE_MS_MAX = 5000,
    THROTTLED_MS_MAX = 300000,
};

const char *const driver_end_names[] = {"epochs", "target", "budget", "failed", "stopped", NULL};

struct driver_call {
    struct driver *driver;
    struct work_request request;
    int64_t held_micro;
    int64_t begun_ns;
};

static void pump(struct driver *driver);

int64_t driver_now_ns(const struct driver *driver)
{
    return clock_monotonic_ns(loop_clock(driver->options.loop));
}

void driver_finish(struct driver *driver, enum driver_end end, const char *format, ...)
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
    driver_finish(driver, DRIVER_STOPPED, "it was stopped");
    pump(driver);
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
        driver_finish(driver, DRIVER_FAILED, "batch %" PRIu64 " failed %u times: %s", first,
                      failures, reason);
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
        .passed_ms = (driver_now_ns(driver) - call->begun_ns + 999999) / 1000000,
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
        driver->throttled_ns = driver_now_ns(driver);
        log_event(LOG_INFO, "calls_throttled", "reason=\"%s\"", reason);
    }
    driver->pause_ms = driver->pause_ms ? 2 * driver->pause_ms : PAUSE_MS_MIN;
    if (driver->pause_ms > PAUSE_MS_MAX)
        driver->pause_ms = PAUSE_MS_MAX;
    if (driver_now_ns(driver) - driver->throttled_ns >= most_ms * 1000000)
        driver_finish(driver, DRIVER_FAILED, "no call was let in for %" PRId64 " s: %s",
                      most_ms / 1000, reason);
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
    const int64_t most = driver_call_most(driver);
    if (most > purse_left(&driver->purse) ||
        !epoch_plan_take(driver->plan, lead_published(lead), &task))
        return false;
    const struct work_request request = lead_request(lead, &task);
    struct driver_call *call = memory_zeroed(1, sizeof(*call));
    *call = (struct driver_call){driver, request, most, driver_now_ns(driver)};
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
        driver_finish(driver, DRIVER_FAILED, "%s", error.message);
    }
    return false;
}

/* Functions start from the newest model there is. A store that is away is asked again. */
static void publish(struct driver *driver)
{
    struct lead *lead = driver->options.lead;
    struct error error;
    lead_set_spent(lead, driver_may_spend(driver));
    for (int i = 0; i < DRIVER_PUBLISH_ATTEMPTS; i++) {
        if (lead_publish(lead, driver->plan, epoch_plan_oldest(driver->plan), &error) == 0)
            return;
        if (error.code != ERROR_UNAVAILABLE)
            break;
    }
    driver_finish(driver, DRIVER_FAILED, "%s", error.message);
}

static void finish_short(struct driver *driver)
{
    char left[UNITS_TEXT_SIZE], most[UNITS_TEXT_SIZE];
    driver_finish(driver, DRIVER_BUDGET,
                  "of the budget %s are left, and %s are held for a call: %u MB for "
                  "%" PRId64 " s (--timeout) and %d s to start",
                  units_format_credits(purse_left(&driver->purse), left),
                  units_format_credits(driver_call_most(driver), most), driver->choice.memory_mb,
                  driver->time_ms / 1000, PURSE_START_MS_MAX / 1000);
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
        driver_end_epoch(driver);
        if (!driver->is_ending) {
            pump(driver);
            return;
        }
    }
    if (!driver->is_ending && driver_call_most(driver) > purse_left(&driver->purse))
        finish_short(driver);
    if (driver->is_ending && !driver->has_ended) {
        driver->has_ended = true;
        if (driver->outcome.end != DRIVER_EPOCHS && driver->outcome.end != DRIVER_TARGET)
            driver_end_short(driver);
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
    driver->purse = purse_begin(options->price, options->budget_micro, lead_spent(options->lead));
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
                         driver_done_words(driver->options.epochs, words, sizeof(words)));
    /* Where it begins is the best there is, until an epoch is better. */
    if (driver_measure(driver, &measured, error) < 0 || driver_begin_epoch(driver, error) < 0)
        return -1;
    loop_post(driver->options.loop, start, driver);
    if (loop_run(driver->options.loop, error) < 0)
        return -1;
    *out_outcome = driver->outcome;
    out_outcome->spent_micro = driver->purse.spent_micro;
    out_outcome->parameters = driver->best;
    return 0;
}
