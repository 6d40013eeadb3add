/*
 * covers invoker.c, chooser_scheduler.c, driver_epoch.c: a job driven over functions that answer,
 * fail, get lost, are throttled or talk nonsense. The functions are real ones (function/handler.h)
 * on a real store, called in this process.
 */
#include "base/random.h"
#include "function/chooser_scheduler.h"
#include "function/driver.h"
#include "function/job_scene_internal.h"
#include "function/object_store_internal.h"

#include <math.h>

enum { EPOCHS = 3, MEMORY_MB = 128, TIME_MS = 5000 };

enum trouble {
    TROUBLE_NONE,
    TROUBLE_LOST_BEFORE,
    TROUBLE_LOST_AFTER, /* the update was put, the answer did not come */
    TROUBLE_THROTTLED,
    TROUBLE_GARBAGE,
    TROUBLE_FAILED,
    TROUBLE_SPOILED, /* what lies in the store is no update */
    TROUBLE_COUNT,
};

struct direct {
    struct invoker invoker;
    struct job_scene *scene;
    struct loop *loop;
    struct random random;
    uint32_t trouble_in_ten;
    bool always_fails, always_throttles;
    uint64_t throttles; /* the first so many calls */
    int64_t cut_ms;     /* what a call has of its time; 0: all */
    uint64_t answered;
    uint32_t memory_mb, running, running_max, configured;
    int64_t time_ms, billed_ms; /* of each call */
    int64_t cost_micro;
    uint64_t used_mb_ms, lost;
    struct bill_price price;
};

struct pending {
    struct direct *direct;
    struct buffer request;
    invoke_function *callback;
    void *context;
};

static enum trouble draw(struct direct *direct)
{
    if (direct->always_fails)
        return TROUBLE_FAILED;
    if (direct->always_throttles || direct->answered < direct->throttles)
        return TROUBLE_THROTTLED;
    if (random_below(&direct->random, 10) >= direct->trouble_in_ten)
        return TROUBLE_NONE;
    return (enum trouble)(1 + random_below(&direct->random, TROUBLE_COUNT - 1));
}

static void spoil(struct direct *direct, struct text request)
{
    struct error error = {0};
    struct work_request read;
    char key[OBJECT_KEY_SIZE];
    ASSERT_OK(work_request_read(direct->scene->arena, request, &read, &error));
    work_update_key(&read, key);
    ASSERT_OK(object_store_put(direct->scene->store, key, TEXT("nonsense"), false, &error));
}

static void answer(void *context)
{
    struct pending *pending = context;
    struct direct *direct = pending->direct;
    struct error error;
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, WORK_JSON_MAX);
    const enum trouble trouble = draw(direct);
    const struct text request = buffer_text(&pending->request);
    const int64_t time_ms = direct->cut_ms ? direct->cut_ms : direct->time_ms;
    const struct handler_limits limits = {.deadline_ns = direct->scene->now_ns + time_ms * 1000000,
                                          .memory_bytes = (int64_t)direct->memory_mb << 20};
    struct invoke_result result = {.outcome = INVOKE_ANSWERED,
                                   .reason = "",
                                   .billed_ms = direct->billed_ms,
                                   .memory_peak_bytes = 64 << 20};
    if (trouble != TROUBLE_LOST_BEFORE && trouble != TROUBLE_THROTTLED &&
        trouble != TROUBLE_FAILED &&
        handler_call(direct->scene->handler, request, &limits, &out, &error) < 0) {
        result.outcome = INVOKE_FAILED;
        handler_write_error(&error, &out);
    }
    if (trouble == TROUBLE_LOST_BEFORE || trouble == TROUBLE_LOST_AFTER) {
        result = (struct invoke_result){INVOKE_LOST, .reason = "reset", .billed_ms = -1,
                                        .memory_peak_bytes = -1};
        direct->lost++;
    } else if (trouble == TROUBLE_THROTTLED) {
        result = (struct invoke_result){INVOKE_THROTTLED, .reason = "429"};
    } else if (trouble == TROUBLE_FAILED) {
        result.outcome = INVOKE_FAILED;
        buffer_append_string(&out, "{\"errorType\":\"Sandbox.Timedout\"}");
    } else if (trouble == TROUBLE_GARBAGE) {
        buffer_clear(&out);
        buffer_append_string(&out, "{\"job\":\"another\"}");
    } else if (trouble == TROUBLE_SPOILED && result.outcome == INVOKE_ANSWERED) {
        spoil(direct, request);
    }
    if (result.billed_ms >= 0 && result.outcome != INVOKE_THROTTLED)
        direct->used_mb_ms += (uint64_t)direct->memory_mb * (uint64_t)result.billed_ms;
    direct->cost_micro = bill_use_micro(&direct->price, direct->used_mb_ms);
    result.payload = buffer_text(&out);
    direct->running--;
    direct->answered++;
    pending->callback(pending->context, &result);
    buffer_done(&pending->request);
    free(pending);
}

static int direct_call(struct invoker *invoker, struct text request, invoke_function *callback,
                       void *context, struct error *error)
{
    struct direct *direct = (struct direct *)invoker;
    (void)error;
    struct pending *pending = calloc(1, sizeof(*pending));
    pending->direct = direct;
    pending->callback = callback;
    pending->context = context;
    buffer_init(&pending->request, WORK_JSON_MAX);
    buffer_append_text(&pending->request, request);
    if (++direct->running > direct->running_max)
        direct->running_max = direct->running;
    loop_post(direct->loop, answer, pending);
    return 0;
}

static int direct_configure(struct invoker *invoker, uint32_t memory_mb, int64_t time_ms,
                            struct error *error)
{
    struct direct *direct = (struct direct *)invoker;
    (void)error;
    assert_int_equal(direct->running, 0); /* a barrier is one */
    direct->memory_mb = memory_mb;
    direct->time_ms = time_ms;
    direct->configured++;
    return 0;
}

static const struct invoker_ops direct_ops = {.call = direct_call, .configure = direct_configure};

/* ---- A store that fails ---------------------------------------------------------------------- */

struct failing_store {
    struct object_store store;
    struct object_store *inner;
    uint64_t puts, fails_from, fails_until; /* of the puts; what is read is there */
};

static int failing_read(struct object_store *store, const char *key, struct buffer *out,
                        struct error *error)
{
    return object_store_read(((struct failing_store *)store)->inner, key, out, error);
}

static int failing_put(struct object_store *store, const char *key, struct text bytes, bool is_once,
                       struct error *error)
{
    struct failing_store *failing = (struct failing_store *)store;
    const uint64_t put = failing->puts++;
    if (put >= failing->fails_from && put < failing->fails_until)
        return error_set(error, ERROR_UNAVAILABLE, "the store is away");
    return object_store_put(failing->inner, key, bytes, is_once, error);
}

static int failing_delete(struct object_store *store, const char *key, struct error *error)
{
    return object_store_delete(((struct failing_store *)store)->inner, key, error);
}

static const struct object_store_ops failing_ops = {
    .read = failing_read, .put = failing_put, .delete = failing_delete};

/* ---- The job --------------------------------------------------------------------------------- */

struct trial_job {
    struct direct direct;
    struct lead *lead;
    struct driver_report reports[EPOCHS + 1];
    size_t report_count;
    size_t diverges_after; /* measures; 0: never */
    size_t measure_count;
};

/* The loss over the records, computed here. */
static int measure(void *context, const float *parameters, struct driver_measure *out_measure,
                   struct error *error)
{
    struct job_scene *scene = ((struct trial_job *)context)->direct.scene;
    AUTO(dataset) struct dataset *dataset = NULL;
    const void *bytes[] = {scene->images, scene->labels};
    const size_t size = sizeof(float) * lesson_parameter_count(scene->lesson);
    double sum = 0, loss;
    if (lesson_open_records(scene->lesson, bytes, RECORDS, &dataset, error) < 0)
        return -1;
    for (int i = 0; i < BATCHES; i++) {
        memcpy(lesson_parameters(scene->lesson), parameters, size);
        lesson_begin(scene->lesson, 0);
        if (lesson_step(scene->lesson, dataset, (uint32_t)(i * BATCH), 0, &loss, error) < 0)
            return -1;
        sum += loss;
    }
    struct trial_job *job = context;
    *out_measure = (struct driver_measure){.loss = sum / BATCHES};
    if (job->diverges_after && job->measure_count++ >= job->diverges_after)
        out_measure->loss = (double)NAN;
    return 0;
}

static void on_epoch(void *context, const struct driver_report *report)
{
    struct trial_job *job = context;
    assert_true(job->report_count <= EPOCHS);
    job->reports[job->report_count++] = *report;
}

static void open_job_in(struct trial_job *job, struct job_scene *scene, struct object_store *store,
                        struct loop *loop, uint32_t trouble_in_ten)
{
    struct error error = {0};
    *job = (struct trial_job){.direct = {.invoker = {&direct_ops},
                                         .scene = scene,
                                         .loop = loop,
                                         .trouble_in_ten = trouble_in_ten,
                                         .billed_ms = 40,
                                         .price = {20000000, 2000000}}};
    random_init(&job->direct.random, 11);
    const struct lead_options options = {.store = store,
                                         .job = &scene->job,
                                         .parameters = lesson_parameters(scene->lesson),
                                         .parameter_count = lesson_parameter_count(scene->lesson),
                                         .batch_count = BATCHES,
                                         .run = LEAD_RUN_STEP};
    ASSERT_OK(lead_open(&options, &job->lead, &error));
}

static void open_job(struct trial_job *job, struct job_scene *scene, struct loop *loop,
                     uint32_t trouble_in_ten)
{
    open_job_in(job, scene, scene->store, loop, trouble_in_ten);
}

static struct function_choice choose_same(void *context, const struct function_state *state)
{
    (void)state;
    return *(const struct function_choice *)context;
}

static struct driver_options job_options(struct trial_job *job, void *choice)
{
    return (struct driver_options){.loop = job->direct.loop,
                                   .lead = job->lead,
                                   .invoker = &job->direct.invoker,
                                   .batch_count = BATCHES,
                                   .epochs = EPOCHS,
                                   .span_batches = 2,
                                   .staleness = 3,
                                   .rate = 1,
                                   .time_ms = TIME_MS,
                                   .price = job->direct.price,
                                   .choose = choose_same,
                                   .choose_context = choice,
                                   .measure = measure,
                                   .on_epoch = on_epoch,
                                   .context = job};
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static void a_job_goes_through_its_epochs_with_a_barrier_between(void **state)
{
    struct error error = {0};
    struct trial_job job;
    struct driver_outcome outcome;
    AUTO(loop) struct loop *loop = NULL;
    AUTO(scheduler)
    struct scheduler *decay =
        scheduler_new_decay(&(struct scheduler_decay){.function_first = 3,
                                                      .function_last = 1,
                                                      .epoch_count = EPOCHS - 1,
                                                      .memory_mb = 256,
                                                      .memory_last_mb = 128});
    struct chooser_scheduler chooser = {.scheduler = decay};
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    open_job(&job, *state, loop, 0);
    struct driver_options options = job_options(&job, &chooser);
    options.choose = chooser_scheduler;
    struct driver *driver = driver_new(&options);
    ASSERT_OK(driver_run(driver, &outcome, &error));
    assert_int_equal(outcome.end, DRIVER_EPOCHS);
    assert_int_equal(outcome.epochs, EPOCHS);
    assert_int_equal(lead_samples(job.lead), EPOCHS * BATCHES * BATCH);
    assert_int_equal(job.direct.running_max, 3);
    assert_int_equal(job.direct.configured, EPOCHS);
    assert_int_equal(job.report_count, EPOCHS);
    for (uint32_t i = 0; i < EPOCHS; i++) {
        assert_int_equal(job.reports[i].epoch, i);
        assert_int_equal(job.reports[i].seen.choice.function_count, 3 - i);
        assert_true(job.reports[i].staleness <= 3);
    }
    assert_true(job.reports[EPOCHS - 1].measure.loss < job.reports[0].measure.loss);
    assert_int_equal(outcome.spent_micro, job.direct.cost_micro);
    assert_int_equal(outcome.failures, 0);
    driver_free(driver);
    lead_free(job.lead);
}

struct chooser_slower {
    struct direct *direct;
    int64_t limits_ms[4];
};

/* Calls take longer in every epoch. */
static struct function_choice choose_slower(void *context, const struct function_state *state)
{
    static const int64_t billed_ms[] = {1000, 1900, 2100, 2100};
    struct chooser_slower *slower = context;
    if (state->epoch > 0)
        slower->limits_ms[state->epoch - 1] = slower->direct->time_ms;
    slower->direct->billed_ms = billed_ms[state->epoch];
    return (struct function_choice){2, MEMORY_MB};
}

static void a_time_limit_is_kept_until_calls_come_near_it(void **state)
{
    struct error error = {0};
    struct trial_job job;
    struct driver_outcome outcome;
    AUTO(loop) struct loop *loop = NULL;
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    open_job(&job, *state, loop, 0);
    struct chooser_slower slower = {.direct = &job.direct};
    struct driver_options options = job_options(&job, &slower);
    options.choose = choose_slower;
    options.epochs = 4;
    options.time_ms = 60000;
    struct driver *driver = driver_new(&options);
    ASSERT_OK(driver_run(driver, &outcome, &error));
    assert_int_equal(slower.limits_ms[0], 60000);
    assert_int_equal(slower.limits_ms[1], 4000);
    assert_int_equal(slower.limits_ms[2], 4000);
    assert_int_equal(job.direct.time_ms, 9000);
    driver_free(driver);
    lead_free(job.lead);
}

static void whatever_befalls_calls_every_batch_is_in_once(void **state)
{
    struct error error = {0};
    struct trial_job job;
    struct driver_outcome outcome;
    AUTO(loop) struct loop *loop = NULL;
    struct function_choice choice = {4, MEMORY_MB};
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    open_job(&job, *state, loop, 5);
    struct driver_options options = job_options(&job, &choice);
    options.span_batches = 1;
    struct driver *driver = driver_new(&options);
    ASSERT_OK(driver_run(driver, &outcome, &error));
    assert_int_equal(outcome.end, DRIVER_EPOCHS);
    assert_int_equal(lead_samples(job.lead), EPOCHS * BATCHES * BATCH);
    assert_true(outcome.failures > 0 && outcome.throttled > 0 && job.direct.lost > 0);
    /* What is not known of is billed in full, the rest as it was. */
    const int64_t full = bill_call_micro(&job.direct.price, MEMORY_MB, 10000 + TIME_MS);
    assert_true(outcome.spent_micro > job.direct.cost_micro);
    assert_true(outcome.spent_micro <= job.direct.cost_micro + (int64_t)job.direct.lost * full);
    driver_free(driver);
    lead_free(job.lead);
}

static void the_budget_is_never_passed_and_the_best_model_is_kept(void **state)
{
    struct error error = {0};
    struct job_scene *scene = *state;
    struct trial_job job;
    struct driver_outcome outcome;
    AUTO(loop) struct loop *loop = NULL;
    struct function_choice choice = {4, MEMORY_MB};
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    open_job(&job, scene, loop, 2);
    struct driver_options options = job_options(&job, &choice);
    /* Two calls' most and some that are done: it runs out within the first epoch. */
    const int64_t most = bill_call_micro(&job.direct.price, MEMORY_MB, 10000 + TIME_MS);
    options.budget_micro = most + 3 * bill_call_micro(&job.direct.price, MEMORY_MB, 40) - 1;
    struct driver *driver = driver_new(&options);
    ASSERT_OK(driver_run(driver, &outcome, &error));
    assert_int_equal(outcome.end, DRIVER_BUDGET);
    assert_true(outcome.spent_micro <= options.budget_micro);
    assert_true(outcome.spent_micro > 0);
    assert_int_equal(job.direct.running, 0);
    assert_int_equal(job.direct.running_max, 1); /* more could not be held for */
    assert_true(job.report_count == 1 && job.reports[0].is_cut_short);
    assert_int_equal(outcome.epochs, 0);
    struct driver_measure again = {0};
    ASSERT_OK(measure(&job, outcome.parameters, &again, &error));
    assert_true(fabs(again.loss - outcome.best.loss) < 1e-12);
    assert_true(outcome.best.loss <= job.reports[0].measure.loss);
    driver_free(driver);
    lead_free(job.lead);
}

static void a_budget_below_one_call_is_refused(void **state)
{
    struct error error = {0};
    struct trial_job job;
    struct driver_outcome outcome;
    AUTO(loop) struct loop *loop = NULL;
    struct function_choice choice = {4, MEMORY_MB};
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    open_job(&job, *state, loop, 0);
    struct driver_options options = job_options(&job, &choice);
    options.budget_micro = bill_call_micro(&job.direct.price, MEMORY_MB, 10000 + TIME_MS) - 1;
    struct driver *driver = driver_new(&options);
    ASSERT_FAILS(driver_run(driver, &outcome, &error), ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "128 MB for 5 s"));
    assert_int_equal(job.direct.configured, 0);
    driver_free(driver);
    lead_free(job.lead);
}

static void a_scheduler_sees_every_epoch_and_chooses_the_next(void **state)
{
    struct error error = {0};
    struct trial_job job;
    struct driver_outcome outcome;
    AUTO(loop) struct loop *loop = NULL;
    const struct epoch_task task = {.space = {4, MEMORY_MB, 64, MEMORY_MB},
                                    .loss_start = 3,
                                    .loss_target = 0.01,
                                    .price = 1e-3,
                                    .budget_micro = 500000000,
                                    .epoch_max = EPOCHS};
    AUTO(scheduler) struct scheduler *scheduler = scheduler_new_planner(&task, NULL);
    struct chooser_scheduler chooser = {.scheduler = scheduler};
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    open_job(&job, *state, loop, 0);
    struct driver_options options = job_options(&job, &chooser);
    options.choose = chooser_scheduler;
    options.budget_micro = task.budget_micro;
    struct driver *driver = driver_new(&options);
    ASSERT_OK(driver_run(driver, &outcome, &error));
    assert_int_equal(outcome.end, DRIVER_EPOCHS);
    assert_int_equal(chooser.state.epoch, EPOCHS - 1); /* the last has no next */
    assert_true(chooser.state.loss == job.reports[EPOCHS - 2].measure.loss);
    assert_true(chooser.state.last.loss_before == job.reports[0].measure.loss);
    /* What is spent, and what as many calls as last would hold. */
    const struct driver_report *seen = &job.reports[EPOCHS - 2];
    assert_int_equal(chooser.state.left_micro,
                     task.budget_micro - seen->spent_micro -
                         seen->seen.choice.function_count *
                             bill_call_micro(&job.direct.price, MEMORY_MB, 10000 + 1000));
    for (int i = 0; i < EPOCHS; i++) {
        const struct function_choice *choice = &job.reports[i].seen.choice;
        assert_true(choice->function_count >= 1 && choice->function_count <= 4);
        assert_int_equal(choice->memory_mb, MEMORY_MB);
    }
    driver_free(driver);
    lead_free(job.lead);
}

static void a_function_that_never_works_ends_the_job(void **state)
{
    struct error error = {0};
    struct trial_job job;
    struct driver_outcome outcome;
    AUTO(loop) struct loop *loop = NULL;
    struct function_choice choice = {2, MEMORY_MB};
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    open_job(&job, *state, loop, 0);
    job.direct.always_fails = true;
    const struct driver_options options = job_options(&job, &choice);
    struct driver *driver = driver_new(&options);
    ASSERT_OK(driver_run(driver, &outcome, &error));
    assert_int_equal(outcome.end, DRIVER_FAILED);
    assert_non_null(strstr(outcome.reason, "Sandbox.Timedout"));
    assert_int_equal(job.direct.running, 0);
    assert_int_equal(outcome.spent_micro, job.direct.cost_micro);
    driver_free(driver);
    lead_free(job.lead);
}

static void a_model_that_diverges_does_not_become_the_best(void **state)
{
    struct error error = {0};
    struct trial_job job;
    struct driver_outcome outcome;
    AUTO(loop) struct loop *loop = NULL;
    struct function_choice choice = {2, MEMORY_MB};
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    open_job(&job, *state, loop, 0);
    job.diverges_after = 2; /* where it begins, and its first epoch */
    const struct driver_options options = job_options(&job, &choice);
    struct driver *driver = driver_new(&options);
    ASSERT_OK(driver_run(driver, &outcome, &error));
    assert_int_equal(outcome.end, DRIVER_FAILED);
    assert_non_null(strstr(outcome.reason, "not finite any more after 2 epochs"));
    assert_int_equal(job.report_count, 2);
    assert_true(isnan(job.reports[1].measure.loss));
    assert_true(outcome.best.loss == job.reports[0].measure.loss);
    job.diverges_after = 0;
    struct driver_measure again = {0};
    ASSERT_OK(measure(&job, outcome.parameters, &again, &error));
    assert_true(again.loss == outcome.best.loss);
    driver_free(driver);
    lead_free(job.lead);
}

static void calls_that_are_throttled_free_what_was_held_for_them(void **state)
{
    struct error error = {0};
    struct trial_job job;
    struct driver_outcome outcome;
    AUTO(loop) struct loop *loop = NULL;
    struct function_choice choice = {4, MEMORY_MB};
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    open_job(&job, *state, loop, 0);
    job.direct.throttles = 3; /* one after the other: the budget holds one call */
    struct driver_options options = job_options(&job, &choice);
    const int64_t most = bill_call_micro(&job.direct.price, MEMORY_MB, 10000 + TIME_MS);
    options.budget_micro = most + bill_call_micro(&job.direct.price, MEMORY_MB, 40) - 1;
    struct driver *driver = driver_new(&options);
    ASSERT_OK(driver_run(driver, &outcome, &error));
    assert_int_equal(outcome.end, DRIVER_BUDGET);
    assert_int_equal(outcome.throttled, 3);
    assert_true(outcome.calls > 0 && outcome.spent_micro > 0);
    driver_free(driver);
    lead_free(job.lead);
}

static void calls_that_are_never_let_in_end_the_job(void **state)
{
    struct error error = {0};
    struct trial_job job;
    struct driver_outcome outcome;
    AUTO(loop) struct loop *loop = NULL;
    struct function_choice choice = {2, MEMORY_MB};
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    open_job(&job, *state, loop, 0);
    job.direct.always_throttles = true;
    struct driver_options options = job_options(&job, &choice);
    options.throttled_ms_max = 200;
    struct driver *driver = driver_new(&options);
    ASSERT_OK(driver_run(driver, &outcome, &error));
    assert_int_equal(outcome.end, DRIVER_FAILED);
    assert_non_null(strstr(outcome.reason, "no call was let in"));
    assert_int_equal(outcome.spent_micro, 0);
    assert_int_equal(job.direct.running, 0);
    driver_free(driver);
    lead_free(job.lead);
}

static void what_a_lead_spent_counts_for_the_one_that_goes_on(void **state)
{
    struct error error = {0};
    struct trial_job job;
    struct driver_outcome first, second;
    AUTO(loop) struct loop *loop = NULL;
    struct function_choice choice = {1, MEMORY_MB};
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    open_job(&job, *state, loop, 0);
    const int64_t most = bill_call_micro(&job.direct.price, MEMORY_MB, 10000 + TIME_MS);
    struct driver_options options = job_options(&job, &choice);
    options.budget_micro = most + 3 * bill_call_micro(&job.direct.price, MEMORY_MB, 40) - 1;
    struct driver *driver = driver_new(&options);
    ASSERT_OK(driver_run(driver, &first, &error));
    assert_int_equal(first.end, DRIVER_BUDGET);
    assert_true(first.spent_micro > 0);
    driver_free(driver);
    lead_free(job.lead);
    open_job(&job, *state, loop, 0);
    assert_int_equal(lead_spent(job.lead), first.spent_micro);
    options = job_options(&job, &choice);
    options.budget_micro = first.spent_micro + most;
    driver = driver_new(&options);
    ASSERT_OK(driver_run(driver, &second, &error));
    assert_int_equal(second.end, DRIVER_BUDGET);
    assert_true(second.calls >= 1); /* what it held paid for one */
    assert_true(second.spent_micro > first.spent_micro);
    assert_true(second.spent_micro <= options.budget_micro);
    driver_free(driver);
    lead_free(job.lead);
}

static void a_store_that_goes_away_ends_the_job_with_the_best_model_so_far(void **state)
{
    struct error error = {0};
    AUTO(loop) struct loop *loop = NULL;
    struct function_choice choice = {2, MEMORY_MB};
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    /* From the end of the first epoch on, and from the midst of the second: each span's model and
     * which it is are put, and so is the first of each epoch, and what it may cost. */
    const uint64_t first_puts = 3, span_puts = UINT64_C(2) * (BATCHES / 2);
    const uint64_t breaks[] = {first_puts + span_puts, first_puts + span_puts + 3 + 4};
    for (int i = 0; i < 2; i++) {
        struct job_scene *scene = *state;
        struct trial_job job;
        struct driver_outcome outcome;
        struct failing_store failing = {{&failing_ops}, scene->store, 0, breaks[i], UINT64_MAX};
        open_job_in(&job, scene, &failing.store, loop, 0);
        struct driver_options options = job_options(&job, &choice);
        options.staleness = 2;
        struct driver *driver = driver_new(&options);
        ASSERT_OK(driver_run(driver, &outcome, &error));
        assert_int_equal(outcome.end, DRIVER_FAILED);
        assert_non_null(strstr(outcome.reason, "the store is away"));
        assert_int_equal(outcome.epochs, i);
        assert_int_equal(job.report_count, i + 1);
        const struct driver_report *last = &job.reports[i];
        assert_true(last->is_cut_short && last->epoch == (uint64_t)i);
        /* What it had when the store went is measured, paid for, and all there is. */
        assert_true(outcome.best.loss <= last->measure.loss);
        struct driver_measure again = {0};
        ASSERT_OK(measure(&job, outcome.parameters, &again, &error));
        assert_true(fabs(again.loss - outcome.best.loss) < 1e-12 && again.loss < 2.2);
        assert_int_equal(outcome.spent_micro, job.direct.cost_micro);
        assert_int_equal(outcome.spent_micro, last->spent_micro);
        assert_int_equal(job.direct.running, 0);
        driver_free(driver);
        lead_free(job.lead);
        assert_int_equal(job_scene_tear_down(state) || job_scene_set_up(state), 0);
    }
}

static void a_store_that_comes_back_is_asked_again(void **state)
{
    struct error error = {0};
    AUTO(loop) struct loop *loop = NULL;
    struct function_choice choice = {2, MEMORY_MB};
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    /* Wherever it is away for two puts. */
    for (uint64_t from = 2; from < 40; from++) {
        struct job_scene *scene = *state;
        struct trial_job job;
        struct driver_outcome outcome;
        struct failing_store failing = {{&failing_ops}, scene->store, 0, from, from + 2};
        open_job_in(&job, scene, &failing.store, loop, 0);
        struct driver_options options = job_options(&job, &choice);
        struct driver *driver = driver_new(&options);
        ASSERT_OK(driver_run(driver, &outcome, &error));
        assert_int_equal(outcome.end, DRIVER_EPOCHS);
        assert_int_equal(lead_samples(job.lead), EPOCHS * BATCHES * BATCH);
        driver_free(driver);
        lead_free(job.lead);
        assert_int_equal(job_scene_tear_down(state) || job_scene_set_up(state), 0);
    }
}

static void a_function_whose_time_ends_leaves_the_rest_to_the_next(void **state)
{
    struct error error = {0};
    struct trial_job job;
    struct driver_outcome outcome;
    AUTO(loop) struct loop *loop = NULL;
    struct function_choice choice = {2, MEMORY_MB};
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    open_job(&job, *state, loop, 0);
    job.direct.cut_ms = 45; /* enough for some of an epoch's batches */
    struct driver_options options = job_options(&job, &choice);
    options.span_batches = BATCHES;
    struct driver *driver = driver_new(&options);
    ASSERT_OK(driver_run(driver, &outcome, &error));
    assert_int_equal(outcome.end, DRIVER_EPOCHS);
    assert_int_equal(lead_samples(job.lead), EPOCHS * BATCHES * BATCH);
    assert_true(job.direct.answered > EPOCHS);
    assert_int_equal(outcome.failures, 0);
    assert_int_equal(outcome.spent_micro, job.direct.cost_micro);
    driver_free(driver);
    lead_free(job.lead);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, job_scene_set_up, job_scene_tear_down)
        CASE(a_job_goes_through_its_epochs_with_a_barrier_between),
        CASE(a_time_limit_is_kept_until_calls_come_near_it),
        CASE(whatever_befalls_calls_every_batch_is_in_once),
        CASE(the_budget_is_never_passed_and_the_best_model_is_kept),
        CASE(a_budget_below_one_call_is_refused),
        CASE(a_scheduler_sees_every_epoch_and_chooses_the_next),
        CASE(a_function_that_never_works_ends_the_job),
        CASE(a_model_that_diverges_does_not_become_the_best),
        CASE(calls_that_are_throttled_free_what_was_held_for_them),
        CASE(calls_that_are_never_let_in_end_the_job),
        CASE(what_a_lead_spent_counts_for_the_one_that_goes_on),
        CASE(a_store_that_goes_away_ends_the_job_with_the_best_model_so_far),
        CASE(a_store_that_comes_back_is_asked_again),
        CASE(a_function_whose_time_ends_leaves_the_rest_to_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
