#include "cli/progress.h"
#include "client/follow.h"
#include "testing/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct progress_view example(void)
{
    struct progress_view view = {
        .name = "fashion-mnist",
        .state = "running",
        .elapsed_ms = 15000,
        .expected_ms = 60000,
        .loss = 0.5,
        .test_accuracy = 0.8123,
        .target_accuracy = 0.885,
        .spent_micro = 583,
        .lender_count = 3,
    };
    view.lenders[0] = (struct progress_lender){.lease = 1, .name = "market", .is_server = true};
    view.lenders[1] = (struct progress_lender){.lease = 2,
                                               .name = "fast",
                                               .steps = 300,
                                               .samples = 9600,
                                               .commits = 12,
                                               .steps_per_second = 100.0};
    view.lenders[2] = (struct progress_lender){.lease = 3,
                                               .name = "slow",
                                               .steps = 100,
                                               .samples = 3200,
                                               .commits = 12,
                                               .steps_per_second = 25.5};
    return view;
}

struct drawing {
    char *text;
    size_t size;
    FILE *file;
    struct virtual_clock clock;
    struct progress *progress;
};

static void begin_wide(struct drawing *drawing, bool is_terminal, bool is_quiet, uint32_t width)
{
    memset(drawing, 0, sizeof(*drawing));
    drawing->file = open_memstream(&drawing->text, &drawing->size);
    virtual_clock_init(&drawing->clock, 1);
    virtual_clock_advance(&drawing->clock, 1);
    const struct progress_options options = {
        .file = drawing->file,
        .is_terminal = is_terminal,
        .is_quiet = is_quiet,
        .width = width,
        .clock = &drawing->clock.clock,
    };
    drawing->progress = progress_new(&options);
}

static void begin(struct drawing *drawing, bool is_terminal, bool is_quiet)
{
    begin_wide(drawing, is_terminal, is_quiet, 100);
}

static const char *drawn(struct drawing *drawing)
{
    fflush(drawing->file);
    return drawing->text;
}

static void end(struct drawing *drawing)
{
    progress_free(drawing->progress);
    fclose(drawing->file);
    free(drawing->text);
}

TEST(a_terminal_gets_a_block_that_is_redrawn_in_place)
{
    struct drawing drawing;
    begin(&drawing, true, false);
    const struct progress_view view = example();
    progress_draw(drawing.progress, &view);
    const char *text = drawn(&drawing);
    assert_non_null(strstr(text, "fashion-mnist  running  15.0 s"));
    assert_non_null(strstr(text, " 25 % of the time  loss 0.5000  accuracy 81.23 % of 88.5 %"));
    assert_non_null(strstr(text, "\n  spent 0.000583 credits\033"));
    assert_non_null(strstr(text, "market  parameter server"));
    assert_non_null(strstr(text, " 75 %    100.0 steps/s      300 steps    12 commits"));
    assert_null(strstr(text, "A\r")); /* nothing to go back over yet */
    const size_t first = drawing.size;
    progress_draw(drawing.progress, &view);
    assert_non_null(strstr(drawn(&drawing) + first, "\033[6A\r"));
    end(&drawing);
}

TEST(a_parameter_server_that_was_replaced_is_told_from_its_successor)
{
    struct drawing drawing;
    begin(&drawing, true, false);
    struct progress_view view = example();
    for (size_t i = 0; i < view.lender_count; i++)
        view.lenders[i].is_gone = view.lenders[i].is_server;
    progress_draw(drawing.progress, &view);
    assert_non_null(strstr(drawn(&drawing), "market  parameter server, gone"));
    end(&drawing);
}

TEST(no_line_is_wider_than_the_terminal)
{
    struct drawing drawing;
    begin(&drawing, true, false);
    struct progress_view view = example();
    memset(view.reason, 'x', sizeof(view.reason) - 1);
    snprintf(view.state, sizeof(view.state), "pending");
    progress_draw(drawing.progress, &view);
    size_t width = 0;
    for (const char *at = drawn(&drawing); *at; at++) {
        if (*at == '\033') { /* "\033[K" and its like take no room */
            at += strcspn(at, "KJA");
            continue;
        }
        width = *at == '\n' ? 0 : width + (((unsigned char)*at & 0xc0) != 0x80);
        assert_true(width < 100);
    }
    end(&drawing);
}

TEST(on_a_narrow_terminal_whole_fields_go_and_no_word_is_cut)
{
    struct drawing drawing;
    begin_wide(&drawing, true, false, 50);
    struct progress_view view = example();
    snprintf(view.state, sizeof(view.state), "pending");
    snprintf(view.reason, sizeof(view.reason),
             "waits for two machines with four cores and a gibibyte of memory");
    progress_draw(drawing.progress, &view);
    const char *text = drawn(&drawing);
    assert_non_null(strstr(text, "\n  loss 0.5000  accuracy 81.23 % of 88.5 %\033"));
    assert_non_null(strstr(text, "\n  spent 0.000583 credits\033"));
    assert_non_null(strstr(text, "100.0 steps/s\033"));
    assert_null(strstr(text, "commits"));
    assert_non_null(strstr(text, "  waits for two\033"));
    assert_non_null(strstr(text, "\n  machines with four cores and a gibibyte of\033"));
    end(&drawing);
}

TEST(a_lender_that_is_gone_has_no_speed)
{
    struct drawing drawing;
    begin(&drawing, true, false);
    struct progress_view view = example();
    view.lenders[2].is_gone = true;
    progress_draw(drawing.progress, &view);
    assert_null(strstr(drawn(&drawing), "25.5"));
    assert_non_null(strstr(drawn(&drawing), "gone"));
    end(&drawing);
}

/* As the market tells of a lease of rank 1. */
static struct api_lease lease_of(uint64_t id, struct text machine, struct text outcome)
{
    return (struct api_lease){.id = id,
                              .machine_name = machine,
                              .role = TEXT("worker"),
                              .rank = 1,
                              .state = outcome.size ? TEXT("ended") : TEXT("running"),
                              .outcome = outcome};
}

TEST(a_machine_that_is_not_heard_is_not_gone_and_its_successor_is_named)
{
    struct drawing drawing;
    begin(&drawing, false, false);
    struct progress_view view = example();
    struct api_lease leases[] = {lease_of(7, TEXT("wren"), (struct text){0}),
                                 lease_of(9, TEXT("owl"), (struct text){0})};
    struct api_job job = api_job_unknown();
    job.state = TEXT("running");
    job.leases = (struct json_array){.items = leases, .count = 1};
    leases[0].is_unreachable = true;
    follow_view_set(&view, &job, 1);
    progress_end(drawing.progress, &view);
    assert_non_null(strstr(drawn(&drawing), " wren=\"not heard\""));
    leases[0].is_unreachable = false; /* it is heard again */
    follow_view_set(&view, &job, 1);
    size_t before = drawing.size;
    progress_end(drawing.progress, &view);
    assert_null(strstr(drawn(&drawing) + before, "wren"));
    leases[0].outcome = TEXT("lost");
    follow_view_set(&view, &job, 1);
    progress_end(drawing.progress, &view);
    assert_non_null(strstr(drawn(&drawing) + before, " wren=gone"));
    before = drawing.size;
    job.leases.count = 2;
    follow_view_set(&view, &job, 1);
    progress_end(drawing.progress, &view);
    assert_non_null(strstr(drawn(&drawing) + before, " owl=\"for wren\""));
    assert_null(strstr(drawn(&drawing) + before, "gone"));
    end(&drawing);
}

TEST(a_market_that_does_not_answer_is_told_of)
{
    for (int is_terminal = 0; is_terminal < 2; is_terminal++) {
        struct drawing drawing;
        begin(&drawing, is_terminal, false);
        struct progress_view view = example();
        view.away_ms = 1000;
        progress_draw(drawing.progress, &view);
        assert_null(strstr(drawn(&drawing), "answer"));
        view.away_ms = 46300;
        progress_end(drawing.progress, &view);
        assert_non_null(strstr(drawn(&drawing), "the market does not answer for 46 s"));
        end(&drawing);
    }
}

TEST(with_a_target_the_least_time_is_what_the_bar_follows)
{
    struct drawing drawing;
    begin(&drawing, true, false);
    struct progress_view view = example();
    view.min_ms = 30000;
    progress_draw(drawing.progress, &view);
    assert_non_null(strstr(drawn(&drawing), " 50 % of the time"));
    end(&drawing);
}

TEST(elsewhere_a_line_comes_now_and_then_and_at_changes)
{
    struct drawing drawing;
    begin(&drawing, false, false);
    struct progress_view view = example();
    progress_draw(drawing.progress, &view);
    assert_string_equal(drawn(&drawing),
                        "fashion-mnist running 15.0 s loss=0.5000 accuracy=0.8123 "
                        "spent=\"0.000583 credits\" fast=100.0/s,75% slow=25.5/s,25%\n");
    const size_t first = drawing.size;
    virtual_clock_advance(&drawing.clock, 1000000000);
    progress_draw(drawing.progress, &view);
    drawn(&drawing);
    assert_int_equal(drawing.size, first);
    virtual_clock_advance(&drawing.clock, 4000000000);
    progress_draw(drawing.progress, &view);
    drawn(&drawing);
    assert_true(drawing.size > first);
    const size_t second = drawing.size;
    snprintf(view.state, sizeof(view.state), "failed");
    snprintf(view.reason, sizeof(view.reason), "no worker is left");
    progress_draw(drawing.progress, &view);
    assert_non_null(strstr(drawn(&drawing) + second, "(no worker is left)\n"));
    end(&drawing);
}

TEST(unknown_figures_are_left_out_and_quiet_draws_nothing)
{
    struct drawing drawing;
    begin(&drawing, true, false);
    struct progress_view view = example();
    view.loss = view.test_accuracy = (double)NAN;
    view.lenders[1].steps_per_second = 0.0;
    progress_draw(drawing.progress, &view);
    assert_null(strstr(drawn(&drawing), "nan"));
    assert_null(strstr(drawn(&drawing), "loss"));
    assert_null(strstr(drawn(&drawing), "88.5"));
    assert_non_null(strstr(drawn(&drawing), "- steps/s"));
    end(&drawing);
    begin(&drawing, true, true);
    progress_draw(drawing.progress, &view);
    progress_end(drawing.progress, &view);
    drawn(&drawing);
    assert_int_equal(drawing.size, 0);
    end(&drawing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminal_gets_a_block_that_is_redrawn_in_place),
        cmocka_unit_test(a_parameter_server_that_was_replaced_is_told_from_its_successor),
        cmocka_unit_test(no_line_is_wider_than_the_terminal),
        cmocka_unit_test(on_a_narrow_terminal_whole_fields_go_and_no_word_is_cut),
        cmocka_unit_test(a_lender_that_is_gone_has_no_speed),
        cmocka_unit_test(a_machine_that_is_not_heard_is_not_gone_and_its_successor_is_named),
        cmocka_unit_test(a_market_that_does_not_answer_is_told_of),
        cmocka_unit_test(with_a_target_the_least_time_is_what_the_bar_follows),
        cmocka_unit_test(elsewhere_a_line_comes_now_and_then_and_at_changes),
        cmocka_unit_test(unknown_figures_are_left_out_and_quiet_draws_nothing),
    };
    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
