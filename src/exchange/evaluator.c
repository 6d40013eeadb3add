/*
 * Evaluator: one thread, one slot of work, results posted back to the loop.
 */
#include "exchange/evaluator.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdlib.h>

/* Outlives the evaluator while a posted result waits in the loop. */
struct evaluator_mail {
    struct evaluator *evaluator; /* NULL once it is freed; the loop's thread only */
};

struct evaluator {
    struct evaluator_options options;
    struct evaluator_mail *mail;
    bool is_running;   /* handed to the thread, its result not yet taken */
    bool is_reporting; /* inside on_report, which may ask again or free it */
    bool is_asked[EVALUATION_KIND_COUNT];

    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool has_work, must_end; /* guarded by mutex */

    /* The loop's while is_running is false, the thread's between has_work and its posting. */
    float *parameters;
    struct evaluation_report report;
    bool has_failed;
    struct error error;
};

static void start_next(struct evaluator *evaluator);

static void on_measured(void *context)
{
    struct evaluator_mail *mail = context;
    struct evaluator *evaluator = mail->evaluator;
    if (!evaluator) {
        free(mail);
        return;
    }
    evaluator->is_running = false;
    evaluator->is_reporting = true;
    evaluator->options.on_report(evaluator->options.context, &evaluator->report,
                                 evaluator->has_failed ? &evaluator->error : NULL);
    /* The report may have freed it: then mail was given up there and is freed here. */
    if (!mail->evaluator) {
        free(mail);
        return;
    }
    evaluator->is_reporting = false;
    start_next(evaluator);
}

static void *evaluator_run(void *context)
{
    struct evaluator *evaluator = context;
    const struct evaluator_options *options = &evaluator->options;
    for (;;) {
        pthread_mutex_lock(&evaluator->mutex);
        while (!evaluator->has_work && !evaluator->must_end)
            pthread_cond_wait(&evaluator->wake, &evaluator->mutex);
        const bool must_end = evaluator->must_end;
        if (!must_end)
            evaluator->has_work = false;
        pthread_mutex_unlock(&evaluator->mutex);
        if (must_end)
            return NULL;
        evaluator->has_failed =
            options->measure(options->measure_context, &evaluator->report, &evaluator->error) < 0;
        loop_post(options->loop, on_measured, evaluator->mail);
    }
}

static void start_next(struct evaluator *evaluator)
{
    for (enum evaluation_kind kind = 0; kind < EVALUATION_KIND_COUNT; kind++) {
        if (!evaluator->is_asked[kind])
            continue;
        evaluator->is_asked[kind] = false;
        evaluator->is_running = true;
        const struct evaluator_options *options = &evaluator->options;
        evaluator->report = (struct evaluation_report){
            .kind = kind,
            .at_ns = clock_monotonic_ns(loop_clock(options->loop)),
            .parameters = evaluator->parameters,
        };
        evaluator->report.version =
            options->snapshot(options->context, evaluator->parameters, &evaluator->report.at_ns);
        pthread_mutex_lock(&evaluator->mutex);
        evaluator->has_work = true;
        pthread_cond_signal(&evaluator->wake);
        pthread_mutex_unlock(&evaluator->mutex);
        return;
    }
}

int evaluator_open(const struct evaluator_options *options, struct evaluator **out_evaluator,
                   struct error *error)
{
    float *parameters = calloc(options->parameter_count, sizeof *parameters);
    if (!parameters)
        return error_set(error, ERROR_EXHAUSTED, "no memory for a model to measure");
    struct evaluator *evaluator = calloc(1, sizeof *evaluator);
    struct evaluator_mail *mail = calloc(1, sizeof *mail);
    ASSERT(evaluator && mail);
    evaluator->options = *options;
    evaluator->parameters = parameters;
    evaluator->mail = mail;
    mail->evaluator = evaluator;
    pthread_mutex_init(&evaluator->mutex, NULL);
    pthread_cond_init(&evaluator->wake, NULL);
    const int result = pthread_create(&evaluator->thread, NULL, evaluator_run, evaluator);
    if (result != 0) {
        free(mail);
        free(parameters);
        free(evaluator);
        return error_set_errno(error, result, "start a thread");
    }
    *out_evaluator = evaluator;
    return 0;
}

void evaluator_free(struct evaluator *evaluator)
{
    if (!evaluator)
        return;
    pthread_mutex_lock(&evaluator->mutex);
    evaluator->must_end = true;
    pthread_cond_signal(&evaluator->wake);
    pthread_mutex_unlock(&evaluator->mutex);
    pthread_join(evaluator->thread, NULL);
    /* What was handed to the thread and never started posts nothing. */
    const bool is_posted = evaluator->is_running && !evaluator->has_work;
    evaluator->mail->evaluator = NULL;
    if (!is_posted && !evaluator->is_reporting)
        free(evaluator->mail);
    pthread_cond_destroy(&evaluator->wake);
    pthread_mutex_destroy(&evaluator->mutex);
    free(evaluator->parameters);
    free(evaluator);
}

void evaluator_ask(struct evaluator *evaluator, enum evaluation_kind kind)
{
    evaluator->is_asked[kind] = true;
    if (!evaluator->is_running && !evaluator->is_reporting)
        start_next(evaluator);
}

bool evaluator_is_busy(const struct evaluator *evaluator)
{
    bool is_busy = evaluator->is_running;
    for (enum evaluation_kind kind = 0; kind < EVALUATION_KIND_COUNT; kind++)
        is_busy = is_busy || evaluator->is_asked[kind];
    return is_busy;
}
