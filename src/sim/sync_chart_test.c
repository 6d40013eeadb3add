#include "sim/sync_chart.h"
#include "testing/testing.h"

#include <math.h>
#include <string.h>

static size_t occurrences(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        count++;
    return count;
}

TEST(a_chart_has_axes_a_legend_and_a_line_for_each_run)
{
    struct sync_point points[3] = {{0, 2.3}, {50, 0.9}, {100, 0.4}};
    const struct sync_run_result reached = {
        .end = SYNC_RUN_TARGET, .target_s = 87, .points = points, .point_count = 3};
    const struct sync_run_result missed = {
        .end = SYNC_RUN_TIME, .target_s = (double)NAN, .points = points, .point_count = 2};
    const struct sync_run_result diverged = {.end = SYNC_RUN_DIVERGED, .target_s = (double)NAN};
    const struct sync_chart_line lines[] = {
        {"adsp", &reached}, {"bsp", &missed}, {"a<b&c", &diverged}};
    const struct sync_chart chart = {
        .title = "H < 3", .target_loss = 0.45, .lines = lines, .line_count = 3};
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 1 << 20);
    sync_chart_write(&chart, &out);
    const char *svg = buffer_string(&out);
    assert_int_equal(occurrences(svg, "<polyline"), 3);
    assert_non_null(strstr(svg, "H &lt; 3"));
    assert_non_null(strstr(svg, "adsp  87 s"));
    assert_non_null(strstr(svg, "bsp  not reached"));
    assert_non_null(strstr(svg, "a&lt;b&amp;c  diverged"));
    assert_non_null(strstr(svg, "target 0.45"));
    assert_non_null(strstr(svg, "virtual time, s"));
    assert_null(strstr(svg, "nan"));
    assert_null(strstr(svg, "inf"));
}

TEST(a_chart_of_nothing_is_still_one)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 1 << 20);
    sync_chart_write(&(struct sync_chart){.title = "none"}, &out);
    assert_null(strstr(buffer_string(&out), "nan"));
    assert_non_null(strstr(buffer_string(&out), "</svg>"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chart_has_axes_a_legend_and_a_line_for_each_run),
        cmocka_unit_test(a_chart_of_nothing_is_still_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
