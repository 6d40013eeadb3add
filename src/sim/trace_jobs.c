/*
 * SWF: 18 numbers a line with blanks between; ';' begins a comment. Used are 2 (submit, s), 4 (run,
 * s), 5 (processors) and 12 (user), as the archive's format page counts them.
 *
 * Pods: name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,
 * deletion_time,scheduled_time, with times in seconds; gpu_milli is per GPU.
 */
#include "base/assert.h"
#include "sim/trace.h"
#include "sim/trace_lines.h"

#include <stdlib.h>

enum { SWF_FIELDS = 18, POD_FIELDS = 11 };

void trace_jobs_done(struct trace_jobs *jobs)
{
    free(jobs->items);
    *jobs = (struct trace_jobs){0};
}

static int add_job(struct trace_jobs *jobs, const struct trace_job *job,
                   const struct trace_lines *lines, struct error *error)
{
    const int64_t span_max_s = INT64_C(3600) * TRACE_HOURS_MAX;
    if (jobs->count == TRACE_JOBS_MAX)
        return trace_lines_refuse(lines, "more jobs than are read", error);
    if (job->submit_s < 0 || job->submit_s > span_max_s || job->run_s > span_max_s ||
        job->cores_milli < 0 || job->cores_milli > 1000000000 || job->gpus_milli < 0 ||
        job->gpus_milli > 1000000 || job->ram_bytes < 0)
        return trace_lines_refuse(lines, "a number is out of range", error);
    if (jobs->count == jobs->capacity) {
        jobs->capacity = jobs->capacity ? 2 * jobs->capacity : 1024;
        jobs->items = realloc(jobs->items, jobs->capacity * sizeof(*jobs->items));
        ASSERT(jobs->items);
    }
    jobs->items[jobs->count++] = *job;
    return 0;
}

static int compare_submits(const void *left, const void *right)
{
    const struct trace_job *a = left, *b = right;
    if (a->submit_s != b->submit_s)
        return a->submit_s < b->submit_s ? -1 : 1;
    if (a->run_s != b->run_s)
        return a->run_s < b->run_s ? -1 : 1;
    return (a->cores_milli > b->cores_milli) - (a->cores_milli < b->cores_milli);
}

static void sort_and_rebase(struct trace_jobs *jobs)
{
    if (jobs->count == 0)
        return;
    qsort(jobs->items, jobs->count, sizeof(*jobs->items), compare_submits);
    const int64_t first_s = jobs->items[0].submit_s;
    for (size_t i = 0; i < jobs->count; i++)
        jobs->items[i].submit_s -= first_s;
}

/* The next number of a line of blanks and numbers; false when there is none or it is not whole. */
static bool next_number(struct text *rest, int64_t *out_value)
{
    struct error ignored;
    struct text word = text_trim(*rest), tail = {0};
    if (word.size == 0)
        return false;
    if (!text_cut(word, ' ', &word, &tail))
        tail = (struct text){0};
    *rest = tail;
    return text_parse_i64(word, out_value, &ignored) == 0;
}

static int read_swf_line(struct text line, const struct trace_lines *lines, struct trace_jobs *jobs,
                         struct error *error)
{
    int64_t fields[SWF_FIELDS];
    for (int i = 0; i < SWF_FIELDS; i++)
        if (!next_number(&line, &fields[i]))
            return trace_lines_refuse(lines, "18 whole numbers are expected", error);
    const int64_t processors = fields[4], run_s = fields[3];
    if (processors < 1 || run_s < 1)
        return 0;
    if (processors > 1000000)
        return trace_lines_refuse(lines, "a number is out of range", error);
    const struct trace_job job = {.submit_s = fields[1],
                                  .run_s = run_s,
                                  .cores_milli = 1000 * processors,
                                  .user = fields[11] < 0 ? TRACE_USER_NONE : fields[11]};
    return add_job(jobs, &job, lines, error);
}

int trace_read_swf(const char *path, struct trace_jobs *out_jobs, struct error *error)
{
    *out_jobs = (struct trace_jobs){0};
    AUTO(trace_lines) struct trace_lines *lines = NULL;
    if (trace_lines_open(path, &lines, error) < 0)
        return -1;
    struct text line;
    bool is_end;
    while (trace_lines_next(lines, &line, &is_end, error) == 0) {
        if (is_end) {
            sort_and_rebase(out_jobs);
            return 0;
        }
        const struct text trimmed = text_trim(line);
        if (trimmed.size == 0 || trimmed.data[0] == ';')
            continue;
        if (read_swf_line(trimmed, lines, out_jobs, error) < 0)
            break;
    }
    trace_jobs_done(out_jobs);
    return -1;
}

/* Empty counts as -1. */
static bool pod_number(struct text field, int64_t *out_value)
{
    struct error ignored;
    if (field.size == 0) {
        *out_value = -1;
        return true;
    }
    return text_parse_i64(field, out_value, &ignored) == 0 && *out_value >= 0;
}

static int read_pod_line(struct text line, int64_t skip_s, const struct trace_lines *lines,
                         struct trace_jobs *jobs, struct error *error)
{
    struct text fields[POD_FIELDS];
    for (int i = 0; i < POD_FIELDS; i++)
        if (text_cut(line, ',', &fields[i], &line) == (i == POD_FIELDS - 1))
            return trace_lines_refuse(lines, "11 fields are expected", error);
    static const int numbers[] = {1, 2, 3, 4, 8, 9, 10};
    int64_t values[POD_FIELDS] = {0};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (!pod_number(fields[numbers[i]], &values[numbers[i]]))
            return trace_lines_refuse(lines, "a field is not a whole number", error);
    const int64_t created_s = values[8], deleted_s = values[9], scheduled_s = values[10];
    if (created_s < skip_s || scheduled_s < 0 || deleted_s <= scheduled_s)
        return 0;
    if (values[1] < 0 || values[2] < 0 || values[2] > (INT64_C(1) << 30) || values[3] > 1000)
        return trace_lines_refuse(lines, "a number is out of range", error);
    const int64_t gpu_milli = values[4] < 0 ? 0 : values[4];
    const struct trace_job job = {.submit_s = created_s - skip_s,
                                  .run_s = deleted_s - scheduled_s,
                                  .cores_milli = values[1],
                                  .ram_bytes = values[2] << 20,
                                  .gpus_milli = values[3] > 0 ? values[3] * gpu_milli : 0,
                                  .user = TRACE_USER_NONE};
    return add_job(jobs, &job, lines, error);
}

int trace_read_pods(const char *path, int64_t skip_s, struct trace_jobs *out_jobs,
                    struct error *error)
{
    *out_jobs = (struct trace_jobs){0};
    AUTO(trace_lines) struct trace_lines *lines = NULL;
    if (trace_lines_open(path, &lines, error) < 0)
        return -1;
    struct text line;
    bool is_end;
    while (trace_lines_next(lines, &line, &is_end, error) == 0) {
        if (is_end) {
            sort_and_rebase(out_jobs);
            return 0;
        }
        const bool is_title = trace_lines_number(lines) == 1;
        if (is_title && !text_starts_with(line, TEXT("name,cpu_milli,memory_mib,num_gpu,gpu_milli,"
                                                     "gpu_spec,qos,pod_phase,creation_time,")))
            return trace_lines_refuse(lines, "not the columns of a pod list", error);
        if (!is_title && read_pod_line(line, skip_s, lines, out_jobs, error) < 0)
            break;
    }
    trace_jobs_done(out_jobs);
    return -1;
}
