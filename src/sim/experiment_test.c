/* covers experiment.c, experiment_gain.c, experiment_gang.c, experiment_herding.c
 * covers experiment_lying.c, experiment_months.c, experiment_step.c, economy.c, report.c */
#include "sim/economy.h"
#include "sim/experiment.h"
#include "testing/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct report_figure *figure(const struct report *report, const char *name)
{
    for (size_t i = 0; i < report->figure_count; i++)
        if (strcmp(report->figures[i].name, name) == 0)
            return &report->figures[i];
    fail_msg("no figure %s", name);
    return NULL;
}

static const struct report_table *table(const struct report *report, const char *name)
{
    for (size_t i = 0; i < report->table_count; i++)
        if (strcmp(report->tables[i].name, name) == 0)
            return &report->tables[i];
    fail_msg("no table %s", name);
    return NULL;
}

struct fixture {
    struct workload_traces *traces;
    struct report *report;
    struct experiment_options options;
};

static void fixture_init(struct fixture *fixture, int64_t days)
{
    fixture->traces = workload_traces_invent(1);
    fixture->report = calloc(1, sizeof(*fixture->report));
    assert_non_null(fixture->report);
    fixture->options = (struct experiment_options){
        .traces = fixture->traces, .seed = 4, .day_count = days, .row_mask = 0x3f};
}

static void fixture_done(struct fixture *fixture)
{
    workload_traces_free(fixture->traces);
    free(fixture->report);
}

TEST(gains_are_shares_of_the_auctions_and_repeat)
{
    struct error error;
    struct fixture fixture;
    fixture_init(&fixture, 3);
    fixture.options.row_mask = 0x21;
    ASSERT_OK(experiment_gain(&fixture.options, fixture.report, &error));
    const struct report_table *gains = table(fixture.report, "gain");
    assert_true(gains->rows[0].values[0] == 1);
    assert_true(gains->rows[0].values[6] == 1);
    assert_true(isnan(gains->rows[0].values[1]));
    const double mean = figure(fixture.report, "mean_gain")->value;
    assert_true(mean > 0.5 && mean < 1.1);
    const struct report_table *lent = table(fixture.report, "distribution");
    assert_int_equal(lent->row_count, 2);
    assert_true(fabs(lent->rows[0].values[1] / lent->rows[0].values[2] - 1) < 1e-9);
    struct report *again = calloc(1, sizeof(*again));
    ASSERT_OK(experiment_gain(&fixture.options, again, &error));
    assert_memory_equal(&figure(again, "mean_gain")->value, &mean, sizeof(mean));
    free(again);
    fixture_done(&fixture);
}

TEST(a_step_settles_as_predicted)
{
    struct error error;
    struct fixture fixture;
    fixture_init(&fixture, 7);
    ASSERT_OK(experiment_step(&fixture.options, fixture.report, &error));
    assert_true(report_figure_is_met(figure(fixture.report, "settle_slots_beyond_predicted")));
    assert_int_equal((int)figure(fixture.report, "settle_slots")->value, 3);
    fixture_done(&fixture);
}

TEST(even_counting_keeps_a_herd_from_moving_the_price)
{
    struct error error;
    struct fixture fixture;
    fixture_init(&fixture, 3);
    ASSERT_OK(experiment_herding(&fixture.options, fixture.report, &error));
    assert_true(report_figure_is_met(figure(fixture.report, "herding_move")));
    assert_true(figure(fixture.report, "herding_move_naive")->value >
                2 * figure(fixture.report, "herding_move")->value);
    fixture_done(&fixture);
}

TEST(gangs_give_up_more_than_they_win)
{
    struct error error;
    struct fixture fixture;
    fixture_init(&fixture, 2);
    ASSERT_OK(experiment_withholding(&fixture.options, fixture.report, &error));
    ASSERT_OK(experiment_self_rent(&fixture.options, fixture.report, &error));
    assert_true(isfinite(figure(fixture.report, "withholding_change")->value));
    assert_true(isfinite(figure(fixture.report, "self_rent_change")->value));
    fixture_done(&fixture);
}

TEST(credits_are_neither_lost_nor_made_in_a_year)
{
    const struct economy_options options = {
        .grant_micro = 10000000, .earned_grant_micro = 40000000, .weeks = 12, .seed = 3};
    const struct economy_outcome first = economy_run(&options);
    assert_int_equal(first.unbalanced_micro, 0);
    assert_true(first.served > 0.2 && first.served < 1);
    assert_true(first.gini > 0 && first.gini < 1);
    assert_true(first.ratio_p10 <= first.ratio_p50 && first.ratio_p50 <= first.ratio_p90);
    const struct economy_outcome again = economy_run(&options);
    assert_memory_equal(&first, &again, sizeof(first));
}

TEST(lies_are_measured_for_borrowers_and_lenders)
{
    struct error error;
    struct fixture fixture;
    fixture_init(&fixture, 3);
    ASSERT_OK(experiment_lying(&fixture.options, fixture.report, &error));
    const struct report_table *lying = table(fixture.report, "lying");
    assert_int_equal(lying->row_count, 7);
    /* Asking eight times one's cost wins nothing at a posted price. */
    assert_true(lying->rows[6].values[0] < 0);
    assert_true(lying->rows[6].values[2] < 0);
    fixture_done(&fixture);
}

TEST(cells_read_as_people_write_numbers)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    assert_string_equal(report_cell(arena, REPORT_NUMBER, 0.912), "0.91");
    assert_string_equal(report_cell(arena, REPORT_SHARE, -0.037), "-3.7 %");
    assert_string_equal(report_cell(arena, REPORT_COUNT, 12), "12");
    assert_string_equal(report_cell(arena, REPORT_NUMBER, (double)NAN), "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gains_are_shares_of_the_auctions_and_repeat),
        cmocka_unit_test(a_step_settles_as_predicted),
        cmocka_unit_test(even_counting_keeps_a_herd_from_moving_the_price),
        cmocka_unit_test(gangs_give_up_more_than_they_win),
        cmocka_unit_test(credits_are_neither_lost_nor_made_in_a_year),
        cmocka_unit_test(lies_are_measured_for_borrowers_and_lenders),
        cmocka_unit_test(cells_read_as_people_write_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
