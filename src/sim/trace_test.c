/* covers trace_jobs.c, trace_lines.c, trace_supply.c */
#include "base/buffer.h"
#include "base/file.h"
#include "sim/trace.h"
#include "sim/trace_lines.h"
#include "testing/testing.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define SWF_TAIL " -1 -1 -1 -1 -1 -1 7 1 -1 -1 -1 -1 -1\n"

/* A file of this test's own; the caller unlinks it. */
static void write_text(char path[32], const char *text)
{
    struct error error;
    snprintf(path, 32, "/tmp/trace_test.XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    const struct text part = text_of(text);
    ASSERT_OK(file_replace(path, &part, 1, 0600, &error));
}

static void write_gzip(char path[32], const char *text)
{
    write_text(path, "");
    gzFile file = gzopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), strlen(text));
    assert_int_equal(gzclose(file), Z_OK);
}

TEST(swf_jobs_are_read_in_order_and_from_the_first_submit_on)
{
    struct error error;
    char path[32];
    write_gzip(path, "; Computer: test\n"
                     "1 500 -1 60 4 -1 -1 -1 -1 -1 -1 7 1 -1 -1 -1 -1 -1\n"
                     "2 100 -1 3600 128 -1 -1 -1 -1 -1 -1 8 1 -1 -1 -1 -1 -1\n"
                     "3 200 -1 0 1 -1 -1 -1 -1 -1 -1 8 1 -1 -1 -1 -1 -1\n");
    struct trace_jobs jobs;
    ASSERT_OK(trace_read_swf(path, &jobs, &error));
    assert_int_equal(jobs.count, 2);
    assert_int_equal(jobs.items[0].submit_s, 0);
    assert_int_equal(jobs.items[0].cores_milli, 128000);
    assert_int_equal(jobs.items[0].run_s, 3600);
    assert_int_equal(jobs.items[1].submit_s, 400);
    assert_int_equal(jobs.items[1].user, 7);
    trace_jobs_done(&jobs);
    unlink(path);
}

TEST(a_line_that_is_no_job_is_refused_by_its_number)
{
    struct error error;
    char path[32];
    write_text(path, "; comment\n1 2 three 4\n");
    struct trace_jobs jobs;
    ASSERT_FAILS(trace_read_swf(path, &jobs, &error), ERROR_CORRUPT);
    assert_non_null(strstr(error.message, "line 2"));
    assert_null(jobs.items);
    unlink(path);
    ASSERT_FAILS(trace_read_swf("/nonexistent/trace", &jobs, &error), ERROR_NOT_FOUND);
}

TEST(pods_that_were_never_scheduled_or_came_before_are_left_out)
{
    struct error error;
    char path[32];
    write_gzip(path, "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
                     "creation_time,deletion_time,scheduled_time\n"
                     "a,12000,16384,1,1000,,LS,Running,0,900,0\n"
                     "b,6000,12288,2,460,V100M16|V100M32,LS,Running,1000,1900,1100\n"
                     "c,6000,12288,1,460,,LS,Pending,1050,1900,\n"
                     "d,3152,1024,0,,,BE,Failed,1200,1230,1210\n");
    struct trace_jobs jobs;
    ASSERT_OK(trace_read_pods(path, 1000, &jobs, &error));
    assert_int_equal(jobs.count, 2);
    assert_int_equal(jobs.items[0].run_s, 800);
    assert_int_equal(jobs.items[0].gpus_milli, 920);
    assert_true(jobs.items[0].ram_bytes == INT64_C(12288) << 20);
    assert_int_equal(jobs.items[1].submit_s, 200);
    assert_int_equal(jobs.items[1].gpus_milli, 0);
    trace_jobs_done(&jobs);
    unlink(path);
    write_text(path, "name,other\n");
    ASSERT_FAILS(trace_read_pods(path, 0, &jobs, &error), ERROR_CORRUPT);
    unlink(path);
}

static void append_day(struct buffer *buffer, int count, int value)
{
    buffer_append_string(buffer, "20110303,machine,");
    for (int i = 0; i < count; i++)
        buffer_append_format(buffer, "%s%d", i ? " " : "", i < 12 ? 50 : value);
    buffer_append_string(buffer, "\n");
}

TEST(a_day_of_loads_becomes_24_means)
{
    struct error error;
    char path[32];
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, 1 << 16);
    buffer_append_string(&text, "date,vm,cpu_percent_every_5min_space_separated\n");
    append_day(&text, 288, 7);
    write_gzip(path, buffer_string(&text));
    struct trace_loads loads;
    ASSERT_OK(trace_read_loads(path, &loads, &error));
    assert_int_equal(loads.count, 1);
    assert_int_equal(loads.days[0].load_percent[0], 50);
    assert_int_equal(loads.days[0].load_percent[23], 7);
    trace_loads_done(&loads);
    unlink(path);
    buffer_clear(&text);
    append_day(&text, 287, 7);
    write_text(path, buffer_string(&text));
    ASSERT_FAILS(trace_read_loads(path, &loads, &error), ERROR_CORRUPT);
    unlink(path);
}

TEST(availability_is_rounded_to_hours)
{
    struct error error;
    char path[32];
    write_text(path, "{\"metadata\": {\"gap_seconds\": 1800}, \"data\": [16, 16, 0, 1, 0, 0, 3]}");
    struct trace_availability availability;
    ASSERT_OK(trace_read_availability(path, &availability, &error));
    assert_int_equal(availability.hour_count, 4);
    const uint8_t expected[] = {16, 1, 0, 3};
    assert_memory_equal(availability.counts, expected, 4);
    trace_availability_done(&availability);
    unlink(path);
    const char *const wrong[] = {"{\"metadata\": {\"gap_seconds\": 0}, \"data\": [1]}",
                                 "{\"metadata\": {\"gap_seconds\": 60}, \"data\": [1, 300]}",
                                 "{\"metadata\": {\"gap_seconds\": 60}, \"data\": 5}", "[]"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        write_text(path, wrong[i]);
        assert_int_equal(trace_read_availability(path, &availability, &error), -1);
        unlink(path);
    }
}

TEST(a_gzip_file_that_stops_in_the_middle_is_refused)
{
    struct error error;
    char path[32];
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, 1 << 20);
    for (int i = 0; i < 2000; i++)
        buffer_append_format(&text, "%d %d -1 60 4" SWF_TAIL, i, i * 37 % 9973);
    write_gzip(path, buffer_string(&text));
    assert_int_equal(truncate(path, 3000), 0);
    struct trace_jobs jobs;
    ASSERT_FAILS(trace_read_swf(path, &jobs, &error), ERROR_CORRUPT);
    unlink(path);
}

TEST(a_line_longer_than_the_maximum_is_refused)
{
    struct error error;
    char path[32];
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, 1 << 20);
    for (int i = 0; i < TRACE_LINE_MAX + 10; i++)
        buffer_append_byte(&text, '1');
    write_text(path, buffer_string(&text));
    struct trace_jobs jobs;
    ASSERT_FAILS(trace_read_swf(path, &jobs, &error), ERROR_CORRUPT);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swf_jobs_are_read_in_order_and_from_the_first_submit_on),
        cmocka_unit_test(a_line_that_is_no_job_is_refused_by_its_number),
        cmocka_unit_test(pods_that_were_never_scheduled_or_came_before_are_left_out),
        cmocka_unit_test(a_day_of_loads_becomes_24_means),
        cmocka_unit_test(availability_is_rounded_to_hours),
        cmocka_unit_test(a_gzip_file_that_stops_in_the_middle_is_refused),
        cmocka_unit_test(a_line_longer_than_the_maximum_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
