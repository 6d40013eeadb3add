#include "base/assert.h"
#include "sim/workload.h"

#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The pods' file reaches back months before the 34 traced days. */
static const int64_t POD_SKIP_S = INT64_C(115) * 86400 + 26000;

static void count_spot_machines(struct workload_traces *traces)
{
    traces->spot_machine_count = 0;
    for (size_t i = 0; i < traces->spot_count; i++) {
        uint8_t most = 0;
        for (size_t hour = 0; hour < traces->spots[i].hour_count; hour++)
            if (traces->spots[i].counts[hour] > most)
                most = traces->spots[i].counts[hour];
        traces->spot_machine_count += most;
    }
}

static int read_spots(const char *data_dir, struct workload_traces *traces, struct error *error)
{
    char pattern[512];
    const int size =
        snprintf(pattern, sizeof(pattern), "%s/spot-traces/availability/*/*/*_1.json", data_dir);
    if (size < 0 || (size_t)size >= sizeof(pattern))
        return error_set(error, ERROR_INVALID, "the path of the data is too long");
    glob_t found;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): unsafe only beside changes of the environment */
    const int result = glob(pattern, 0, NULL, &found);
    if (result != 0) {
        globfree(&found);
        return error_set(error, ERROR_NOT_FOUND, "no file is named like %.200s", pattern);
    }
    traces->spots = calloc(found.gl_pathc, sizeof(*traces->spots));
    ASSERT(traces->spots);
    int failed = 0;
    for (size_t i = 0; i < found.gl_pathc && failed == 0; i++) {
        failed = trace_read_availability(found.gl_pathv[i], &traces->spots[i], error);
        traces->spot_count += failed == 0;
    }
    globfree(&found);
    count_spot_machines(traces);
    if (failed == 0 && traces->spot_machine_count == 0)
        return error_set(error, ERROR_CORRUPT, "the spot traces have no instance at all");
    return failed;
}

static int read_all(const char *data_dir, struct workload_traces *traces, struct error *error)
{
    char path[512];
    const int size = snprintf(path, sizeof(path), "%s/job-traces/", data_dir);
    if (size < 0 || (size_t)size + 64 > sizeof(path))
        return error_set(error, ERROR_INVALID, "the path of the data is too long");
    char *name = path + size;
    const size_t room = sizeof(path) - (size_t)size;
    snprintf(name, room, "NASA-iPSC-1993-3.1-cln.swf.gz");
    if (trace_read_swf(path, &traces->nasa, error) < 0)
        return -1;
    snprintf(name, room, "alibaba_gpu_v2023_openb_pod_list_default.csv.gz");
    if (trace_read_pods(path, POD_SKIP_S, &traces->alibaba, error) < 0)
        return -1;
    snprintf(name, room, "planetlab_cpu_2011.csv.gz");
    if (trace_read_loads(path, &traces->loads, error) < 0)
        return -1;
    if (read_spots(data_dir, traces, error) < 0)
        return -1;
    if (traces->nasa.count == 0 || traces->alibaba.count == 0 || traces->loads.count == 0)
        return error_set(error, ERROR_CORRUPT, "a trace is empty");
    return 0;
}

int workload_traces_read(const char *data_dir, struct workload_traces **out_traces,
                         struct error *error)
{
    struct workload_traces *traces = calloc(1, sizeof(*traces));
    ASSERT(traces);
    if (read_all(data_dir, traces, error) < 0) {
        workload_traces_free(traces);
        return -1;
    }
    *out_traces = traces;
    return 0;
}

static void invent_jobs(struct random *random, bool has_gpus, struct trace_jobs *out_jobs)
{
    enum { JOBS = 400, SPAN_S = 4 * 86400 };
    out_jobs->items = calloc(JOBS, sizeof(*out_jobs->items));
    ASSERT(out_jobs->items);
    out_jobs->count = out_jobs->capacity = JOBS;
    for (size_t i = 0; i < JOBS; i++)
        out_jobs->items[i] = (struct trace_job){
            .submit_s = (int64_t)i * SPAN_S / JOBS,
            .run_s = 1 + (int64_t)(7200 * exp(random_normal(random))),
            .cores_milli = INT64_C(1000) << random_below(random, has_gpus ? 4 : 6),
            .ram_bytes = has_gpus ? INT64_C(8) << 30 : 0,
            .gpus_milli = has_gpus ? 250 * (1 + (int64_t)random_below(random, 4)) : 0,
            .user = has_gpus ? TRACE_USER_NONE : (int64_t)random_below(random, 20)};
}

struct workload_traces *workload_traces_invent(uint64_t seed)
{
    enum { DAYS = 200, SPOTS = 12, SPOT_HOURS = 240 };
    struct random random;
    random_init(&random, seed);
    struct workload_traces *traces = calloc(1, sizeof(*traces));
    ASSERT(traces);
    invent_jobs(&random, false, &traces->nasa);
    invent_jobs(&random, true, &traces->alibaba);
    traces->loads.days = calloc(DAYS, sizeof(*traces->loads.days));
    traces->spots = calloc(SPOTS, sizeof(*traces->spots));
    ASSERT(traces->loads.days && traces->spots);
    traces->loads.count = traces->loads.capacity = DAYS;
    for (size_t i = 0; i < DAYS; i++)
        for (int hour = 0; hour < 24; hour++)
            traces->loads.days[i].load_percent[hour] = (uint8_t)random_below(&random, 29);
    traces->spot_count = SPOTS;
    for (size_t i = 0; i < SPOTS; i++) {
        traces->spots[i].counts = calloc(SPOT_HOURS, 1);
        ASSERT(traces->spots[i].counts);
        traces->spots[i].hour_count = SPOT_HOURS;
        uint8_t count = 2;
        for (size_t hour = 0; hour < SPOT_HOURS; hour++) {
            if (random_below(&random, 12) == 0)
                count = (uint8_t)random_below(&random, 3);
            traces->spots[i].counts[hour] = count;
        }
    }
    count_spot_machines(traces);
    return traces;
}

void workload_traces_free(struct workload_traces *traces)
{
    if (!traces)
        return;
    trace_jobs_done(&traces->nasa);
    trace_jobs_done(&traces->alibaba);
    trace_loads_done(&traces->loads);
    for (size_t i = 0; i < traces->spot_count; i++)
        trace_availability_done(&traces->spots[i]);
    free(traces->spots);
    free(traces);
}
