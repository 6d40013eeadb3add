#include "base/random.h"
#include "recommend/predict_error.h"
#include "testing/testing.h"

#include <math.h>

static void without_predictions_nothing_is_corrected(void **state)
{
    (void)state;
    const struct predict_error none = {0};
    assert_true(predict_error_bias(&none) == 0);
    assert_true(predict_error_scale(&none) == 1);
    assert_true(predict_error_typical(&none) == 0);
}

/* Each prediction is told as the record corrects it. */
static void add(struct predict_error *errors, double raw_s, double deviation, double actual_s)
{
    predict_error_add(errors, raw_s * exp(predict_error_bias(errors)),
                      deviation * predict_error_scale(errors), actual_s);
}

static void a_bias_is_corrected_the_surer_the_more_show_it(void **state)
{
    (void)state;
    struct predict_error errors = {0};
    double last = 0;
    for (int i = 0; i < 20; i++) {
        add(&errors, 100, 0.2, 130);
        assert_true(predict_error_bias(&errors) > last);
        last = predict_error_bias(&errors);
    }
    assert_true(last > 0.6 * log(1.3) && last < log(1.3));
    for (int i = 0; i < 500; i++)
        add(&errors, 100, 0.2, 130);
    assert_true(predict_error_bias(&errors) > 0.75 * log(1.3));
    assert_true(predict_error_bias(&errors) < log(1.3));
    assert_int_equal(errors.count, 520);
    assert_true(predict_error_typical(&errors) < 0.1); /* of what was told, corrected */
}

/* Deviations of 0.1 were told; outcomes spread by 0.3. */
static void ranges_widen_to_what_happened(void **state)
{
    (void)state;
    struct predict_error wide = {0}, narrow = {0};
    struct random random;
    random_init(&random, 7);
    for (int i = 0; i < 200; i++) {
        add(&wide, 100, 0.1, 100 * exp(0.3 * random_normal(&random)));
        add(&narrow, 100, 0.3, 100 * exp(0.2 * random_normal(&random)));
    }
    assert_true(predict_error_scale(&wide) > 2 && predict_error_scale(&wide) <= 3);
    assert_true(predict_error_scale(&narrow) > 0.6 && predict_error_scale(&narrow) < 0.9);
    assert_true(fabs(predict_error_typical(&narrow) - (exp(0.6745 * 0.2) - 1)) < 0.04);
}

static void what_is_no_outcome_is_left_out(void **state)
{
    (void)state;
    struct predict_error errors = {0};
    predict_error_add(&errors, 0, 0.1, 100);
    predict_error_add(&errors, 100, 0.1, 0);
    predict_error_add(&errors, 100, 0, 100);
    assert_int_equal(errors.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_predictions_nothing_is_corrected),
        cmocka_unit_test(a_bias_is_corrected_the_surer_the_more_show_it),
        cmocka_unit_test(ranges_widen_to_what_happened),
        cmocka_unit_test(what_is_no_outcome_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
