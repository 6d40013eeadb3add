/* Measurements run on their own thread and report on the loop's. */
#include "exchange/evaluator.h"
#include "testing/testing.h"

#include <pthread.h>

struct bench {
    struct loop *loop;
    struct evaluator *evaluator;
    pthread_t loop_thread;
    float value;
    bool must_fail, asks_again, frees_itself;
    int reports;
    struct evaluation_report last;
    float last_value;
    bool has_failed;
    pthread_mutex_t gate; /* locked: measuring stands still */
};

static int measure(void *context, struct evaluation_report *report, struct error *error)
{
    struct bench *bench = context;
    pthread_mutex_lock(&bench->gate);
    pthread_mutex_unlock(&bench->gate);
    if (pthread_equal(pthread_self(), bench->loop_thread))
        return error_set(error, ERROR_INVALID, "measured on the loop's thread");
    if (bench->must_fail)
        return error_set(error, ERROR_CORRUPT, "no test data");
    report->loss = (double)report->parameters[0];
    return 0;
}

static uint64_t snapshot(void *context, float *out_parameters, int64_t *at_ns)
{
    const struct bench *bench = context;
    *at_ns = (int64_t)bench->value;
    out_parameters[0] = bench->value;
    return (uint64_t)bench->value;
}

static void on_report(void *context, const struct evaluation_report *report,
                      const struct error *error)
{
    struct bench *bench = context;
    bench->reports++;
    bench->last = *report;
    bench->last_value = report->parameters[0];
    bench->has_failed = error != NULL;
    if (bench->asks_again) {
        bench->asks_again = false;
        evaluator_ask(bench->evaluator, EVALUATION_FULL);
    }
    if (bench->frees_itself)
        evaluator_free(TAKE(bench->evaluator));
}

static void bench_open(struct bench *bench)
{
    struct error error;
    *bench = (struct bench){.loop_thread = pthread_self(), .gate = PTHREAD_MUTEX_INITIALIZER};
    ASSERT_OK(loop_open(&clock_system, &bench->loop, &error));
    const struct evaluator_options options = {.loop = bench->loop,
                                              .parameter_count = 1,
                                              .measure = measure,
                                              .measure_context = bench,
                                              .snapshot = snapshot,
                                              .on_report = on_report,
                                              .context = bench};
    ASSERT_OK(evaluator_open(&options, &bench->evaluator, &error));
}

static void bench_close(struct bench *bench)
{
    evaluator_free(bench->evaluator);
    loop_free(bench->loop);
}

#define AUTO_BENCH __attribute__((cleanup(bench_close)))

static void run_until_reports(struct bench *bench, int reports)
{
    struct error error;
    while (bench->reports < reports)
        ASSERT_OK(loop_step(bench->loop, -1, &error));
}

TEST(a_measurement_reports_the_model_of_its_moment)
{
    struct bench bench AUTO_BENCH;
    bench_open(&bench);
    bench.value = 5;
    evaluator_ask(bench.evaluator, EVALUATION_FULL);
    bench.value = 6;
    run_until_reports(&bench, 1);
    assert_false(bench.has_failed);
    assert_int_equal(bench.last.version, 5);
    assert_true(bench.last.loss == 5);
    assert_false(evaluator_is_busy(bench.evaluator));
}

TEST(what_is_asked_for_meanwhile_is_measured_once_and_later)
{
    struct bench bench AUTO_BENCH;
    bench_open(&bench);
    bench.value = 1;
    pthread_mutex_lock(&bench.gate);
    evaluator_ask(bench.evaluator, EVALUATION_FULL);
    evaluator_ask(bench.evaluator, EVALUATION_SAMPLE);
    evaluator_ask(bench.evaluator, EVALUATION_SAMPLE);
    bench.value = 2;
    pthread_mutex_unlock(&bench.gate);
    run_until_reports(&bench, 2);
    assert_int_equal(bench.last.kind, EVALUATION_SAMPLE);
    assert_int_equal(bench.last.version, 2);
    assert_false(evaluator_is_busy(bench.evaluator));
}

TEST(a_report_may_ask_again)
{
    struct bench bench AUTO_BENCH;
    bench_open(&bench);
    bench.asks_again = true;
    evaluator_ask(bench.evaluator, EVALUATION_SAMPLE);
    run_until_reports(&bench, 2);
    assert_int_equal(bench.last.kind, EVALUATION_FULL);
}

TEST(a_failed_measurement_says_why)
{
    struct bench bench AUTO_BENCH;
    bench_open(&bench);
    bench.must_fail = true;
    evaluator_ask(bench.evaluator, EVALUATION_FULL);
    run_until_reports(&bench, 1);
    assert_true(bench.has_failed);
}

TEST(it_can_be_freed_with_a_measurement_under_way_and_in_its_own_report)
{
    {
        struct bench bench AUTO_BENCH;
        bench_open(&bench);
        evaluator_ask(bench.evaluator, EVALUATION_FULL);
    }
    struct bench bench AUTO_BENCH;
    bench_open(&bench);
    bench.frees_itself = true;
    evaluator_ask(bench.evaluator, EVALUATION_FULL);
    run_until_reports(&bench, 1);
    assert_null(bench.evaluator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_measurement_reports_the_model_of_its_moment),
        cmocka_unit_test(what_is_asked_for_meanwhile_is_measured_once_and_later),
        cmocka_unit_test(a_report_may_ask_again),
        cmocka_unit_test(a_failed_measurement_says_why),
        cmocka_unit_test(it_can_be_freed_with_a_measurement_under_way_and_in_its_own_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
