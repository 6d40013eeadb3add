#include "runtime/job_wish.h"
#include "testing/testing.h"

#include <string.h>

static void assert_accelerators(const char *text, const char *model, int64_t count_milli,
                                int64_t memory_bytes, const char *written)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_accelerators read;
    char out[JOB_WISH_TEXT_SIZE];
    ASSERT_OK(job_accelerators_parse(arena, text_of(text), &read, &error));
    assert_true(text_equal(read.model, text_of(model)));
    assert_int_equal(read.count_milli, count_milli);
    assert_int_equal(read.memory_bytes, memory_bytes);
    assert_string_equal(job_accelerators_format(&read, out), written);
    struct job_accelerators again;
    ASSERT_OK(job_accelerators_parse(arena, text_of(written), &again, &error));
    assert_true(text_equal(again.model, read.model));
    assert_int_equal(again.count_milli, read.count_milli);
    assert_int_equal(again.memory_bytes, read.memory_bytes);
}

TEST(accelerators_are_model_memory_and_count)
{
    assert_accelerators("T4", "T4", 1000, 0, "T4:1");
    assert_accelerators(" A100-80GB:2 ", "A100-80GB", 2000, 0, "A100-80GB:2");
    assert_accelerators("T4:0.5", "T4", 500, 0, "T4:0.5");
    assert_accelerators("T4:16GiB+:2", "T4", 2000, INT64_C(16) << 30, "T4:16384MiB+:2");
    assert_accelerators("T4:16GB+", "T4", 1000, INT64_C(16000000000), "T4:16000000000B+:1");
    assert_accelerators("2", "", 2000, 0, "2");
    assert_accelerators(" 0.5 ", "", 500, 0, "0.5");
    assert_accelerators("24GiB+:4", "", 4000, INT64_C(24) << 30, "24576MiB+:4");
}

TEST(what_is_no_accelerator_is_refused)
{
    static const char *const wrong[] = {
        "",
        ":",
        "T4:",
        ":1",
        "0",
        "-1",
        "1001",
        "1:2",
        "1:T4",
        "1:16GB+",
        "T4:0",
        "T4:-1",
        "T4:x",
        "T4:1:2",
        "T4:1:1:1",
        "T4:1:16GB+",
        "T4 big:1",
        "16GB+:8GB+",
        "T4:16 cows+",
        "T4:1001",
        "T4:nan",
        "ThisModelHasANameThatIsFarTooLongToBeTheOneOfAnyGPU",
    };
    AUTO(arena) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct error error;
        struct job_accelerators read;
        ASSERT_FAILS(job_accelerators_parse(arena, text_of(wrong[i]), &read, &error),
                     ERROR_INVALID);
    }
}

static struct job_start_wish parse_start(const char *text, const char *written)
{
    struct error error;
    struct job_start_wish start = {0}, again = {0};
    char out[JOB_WISH_TEXT_SIZE];
    ASSERT_OK(job_start_parse(text_of(text), &start, &error));
    assert_string_equal(job_start_format(&start, out), written);
    ASSERT_OK(job_start_parse(text_of(written), &again, &error));
    assert_memory_equal(&start, &again, sizeof(start));
    return start;
}

TEST(starts_are_now_by_an_instant_or_within_a_span)
{
    const int64_t now_ms = INT64_C(1795197600000); /* 2026-11-20T18:00Z */
    struct error error;
    int64_t deadline_ms = -1;
    struct job_start_wish start = parse_start("now", "now");
    ASSERT_OK(job_start_deadline(&start, now_ms, &deadline_ms, &error));
    assert_int_equal(deadline_ms, 0);
    start = parse_start("by 6h", "by 6h");
    assert_int_equal(start.kind, JOB_START_DEADLINE);
    ASSERT_OK(job_start_deadline(&start, now_ms, &deadline_ms, &error));
    assert_int_equal(deadline_ms, now_ms + INT64_C(6) * 3600000);
    start =
        parse_start("cheapest  before 2026-11-21T08:00Z", "cheapest before 2026-11-21T08:00:00Z");
    assert_int_equal(start.kind, JOB_START_CHEAPEST);
    ASSERT_OK(job_start_deadline(&start, now_ms, &deadline_ms, &error));
    assert_int_equal(deadline_ms, now_ms + INT64_C(14) * 3600000);
    parse_start("by 1500ms", "by 1500ms");
    parse_start("cheapest before 86400", "cheapest before 24h");
    parse_start("by 1h30m", "by 90m");
    parse_start("by 7d", "by 7d");
}

TEST(a_start_in_the_past_is_refused_by_name)
{
    struct error error;
    int64_t deadline_ms = 7;
    const struct job_start_wish start =
        parse_start("by 2026-11-20T18:00Z", "by 2026-11-20T18:00:00Z");
    ASSERT_FAILS(job_start_deadline(&start, INT64_C(1795197600000), &deadline_ms, &error),
                 ERROR_INVALID);
    assert_string_equal(error.message, "market.start: 2026-11-20T18:00:00Z is in the past");
    assert_int_equal(deadline_ms, 7);
}

TEST(what_is_no_start_is_refused)
{
    static const char *const wrong[] = {
        "",
        "later",
        "by",
        "by soon",
        "cheapest",
        "cheapest 6h",
        "before 6h",
        "by 0s",
        "by 400d",
        "now 6h",
        "by 2026-11-20",
        "cheapest before",
        "by 1970-01-01T00:00Z",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct error error;
        struct job_start_wish start;
        ASSERT_FAILS(job_start_parse(text_of(wrong[i]), &start, &error), ERROR_INVALID);
    }
}

TEST(nodes_are_a_number_or_a_range)
{
    struct error error;
    struct job_nodes nodes;
    ASSERT_OK(job_nodes_parse(TEXT("3"), &nodes, &error));
    assert_int_equal(nodes.least, 3);
    assert_int_equal(nodes.most, 0);
    ASSERT_OK(job_nodes_parse(TEXT(" 2 .. 8 "), &nodes, &error));
    assert_int_equal(nodes.least, 2);
    assert_int_equal(nodes.most, 8);
    static const char *const wrong[] = {"", "..", "2..", "..8", "2...8", "8..2", "two", "2-8"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        ASSERT_FAILS(job_nodes_parse(text_of(wrong[i]), &nodes, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accelerators_are_model_memory_and_count),
        cmocka_unit_test(what_is_no_accelerator_is_refused),
        cmocka_unit_test(starts_are_now_by_an_instant_or_within_a_span),
        cmocka_unit_test(a_start_in_the_past_is_refused_by_name),
        cmocka_unit_test(what_is_no_start_is_refused),
        cmocka_unit_test(nodes_are_a_number_or_a_range),
    };
    return cmocka_run_group_tests_name("job_wish", tests, NULL, NULL);
}
