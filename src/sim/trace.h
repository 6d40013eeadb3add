/*
 * Trace: what was measured on real machines, read for the simulator.
 *
 *     swf         jobs in the Standard Workload Format (Parallel Workloads Archive)
 *     pods        jobs as Alibaba's cluster-trace-gpu-v2023 lists its pods
 *     loads       CPU loads of machines, 288 a day, as repacked from PlanetLab
 *     availability  how many spot instances were there, as SkyPilot's spot-traces tell it
 *
 * Files may be gzipped. They are read line by line, with a maximum for everything; a line that does
 * not fit the format fails with CORRUPT and its number.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"

#include <stddef.h>
#include <stdint.h>

enum {
    TRACE_JOBS_MAX = 1000000,
    TRACE_DAYS_MAX = 100000,
    TRACE_HOURS_MAX = 24 * 366 * 4,
    TRACE_USER_NONE = -1,
};

struct trace_job {
    int64_t submit_s; /* from the first job of the file */
    int64_t run_s;
    int64_t cores_milli;
    int64_t ram_bytes; /* 0: not told */
    int64_t gpus_milli;
    int64_t user; /* TRACE_USER_NONE: not told */
};

/* In the order of submit_s. */
struct trace_jobs {
    struct trace_job *items;
    size_t count;
    size_t capacity;
};
void trace_jobs_done(struct trace_jobs *jobs);

/* Jobs that ran for at least a second on at least one processor; the others are left out. */
MUST_CHECK int trace_read_swf(const char *path, struct trace_jobs *out_jobs, struct error *error);

/*
 * Pods that were scheduled, from `skip_s` of the file's own time on: it lists pods that were there
 * months before the traced weeks.
 */
MUST_CHECK int trace_read_pods(const char *path, int64_t skip_s, struct trace_jobs *out_jobs,
                               struct error *error);

/* One machine's day: its mean CPU load in each hour, in percent. */
struct trace_day {
    uint8_t load_percent[24];
};

struct trace_loads {
    struct trace_day *days;
    size_t count;
    size_t capacity;
};
void trace_loads_done(struct trace_loads *loads);
MUST_CHECK int trace_read_loads(const char *path, struct trace_loads *out_loads,
                                struct error *error);

/* How many instances were there, sample by sample. */
struct trace_samples {
    uint8_t *counts;
    size_t count;
    int64_t gap_s; /* between two samples */
};
void trace_samples_done(struct trace_samples *samples);
MUST_CHECK int trace_read_samples(const char *path, struct trace_samples *out, struct error *error);

/* How many instances were there in each hour, rounded from the samples of that hour. */
struct trace_availability {
    uint8_t *counts;
    size_t hour_count;
};
void trace_availability_done(struct trace_availability *availability);
MUST_CHECK int trace_read_availability(const char *path, struct trace_availability *out,
                                       struct error *error);
