#include "sim/workload.h"

#include "base/assert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GIB (INT64_C(1) << 30)

enum {
    NODE_CORES = 4,          /* of a job without GPUs: the most one machine gives */
    JOB_CORES_MAX = 8,       /* wider ones run longer instead: the markets have tens of cores */
    GPU_NODE_CORES = 12,     /* the most beside one GPU */
    RUN_HOURS_MAX = 48,      /* the longest price lock */
    OWNER_BUSY_PERCENT = 25, /* from this load on an owner has the machine to itself */
    CLOSING_DAYS = 2,        /* after the last arrival, for what came late */
    PARETO_MEMBERS = 80,
    SYNTHETIC_MEMBERS = 120,
    SYNTHETIC_DAYS = 40,
    SYNTHETIC_CORES = 120, /* mean demand */
};

/* Of what a job is worth, as a multiple of the cold-start price; the deviation of its logarithm
 * is 1. */
static const double WORTH_MEDIAN = 1.3;

const char *workload_kind_name(enum workload_kind kind)
{
    static const char *const names[] = {"nasa", "alibaba", "synthetic"};
    _Static_assert(sizeof(names) / sizeof(*names) == WORKLOAD_KIND_COUNT, "a name for each");
    return names[kind];
}

struct resources sim_job_resources(const struct sim_job *job)
{
    return (struct resources){.cores_milli = job->node_count * job->node.cores_milli,
                              .ram_bytes = job->node_count * job->node.ram_bytes,
                              .gpus_milli = job->node_count * job->node.gpus_milli,
                              .disk_bytes = job->node_count * job->node.disk_bytes};
}

int64_t sim_rate_micro(struct resources resources, struct price_vector price)
{
    return price_hourly_micro(price_units(resources, 1000), price);
}

bool sim_lender_is_online(const struct sim_lender *lender, int64_t hour)
{
    return lender->hours[hour] != LENDER_AWAY;
}

bool sim_lender_is_washing(const struct sim_lender *lender, int64_t hour)
{
    return lender->hours[hour] == LENDER_WASHES;
}

/* ---- Members --------------------------------------------------------------------------------- */

/* Draws members by a Pareto law: a few ask for most. */
struct crowd {
    uint32_t count;
    double cumulative[SYNTHETIC_MEMBERS > PARETO_MEMBERS ? SYNTHETIC_MEMBERS : PARETO_MEMBERS];
};

static void crowd_init(struct crowd *crowd, uint32_t count, double shape, struct random *random)
{
    double sum = 0;
    crowd->count = count;
    for (uint32_t i = 0; i < count; i++) {
        sum += pow(1 - random_unit(random), -1 / shape);
        crowd->cumulative[i] = sum;
    }
}

static uint32_t crowd_draw(const struct crowd *crowd, struct random *random)
{
    const double at = random_unit(random) * crowd->cumulative[crowd->count - 1];
    uint32_t member = 0;
    while (member + 1 < crowd->count && crowd->cumulative[member] <= at)
        member++;
    return member;
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

/* Wishes beyond a private market's size are made to fit: narrower and longer, the same work. */
static void shape_cores(struct sim_job *job, int64_t cores, int64_t run_s)
{
    const int64_t width = cores > JOB_CORES_MAX ? JOB_CORES_MAX : cores < 1 ? 1 : cores;
    const int64_t node = width > NODE_CORES ? NODE_CORES : width;
    job->node_count = (width + node - 1) / node;
    job->node = (struct resources){.cores_milli = 1000 * node, .ram_bytes = 2 * GIB * node};
    job->run_s = run_s * cores / width;
}

static void shape_pod(struct sim_job *job, const struct trace_job *pod)
{
    const int64_t gpus = (pod->gpus_milli + 999) / 1000;
    job->node_count = gpus > 1 ? gpus : 1;
    const int64_t cores_milli = pod->cores_milli / job->node_count;
    const int64_t cores_max = INT64_C(1000) * GPU_NODE_CORES;
    const int64_t ram_bytes = pod->ram_bytes / job->node_count;
    job->node = (struct resources){.cores_milli = cores_milli > cores_max ? cores_max
                                                  : cores_milli < 100     ? 100
                                                                          : cores_milli,
                                   .ram_bytes = ram_bytes > 48 * GIB ? 48 * GIB
                                                : ram_bytes < GIB    ? GIB
                                                                     : ram_bytes,
                                   .gpus_milli = pod->gpus_milli / job->node_count};
    job->run_s = pod->run_s;
}

/* What it is worth, how long it can wait: assumed. */
static void give_wishes(struct sim_job *job, int64_t cheapest_milli, struct random *random)
{
    const int64_t run_max_s = INT64_C(3600) * RUN_HOURS_MAX;
    job->run_s = job->run_s < 60 ? 60 : job->run_s > run_max_s ? run_max_s : job->run_s;
    job->cold_micro = sim_rate_micro(sim_job_resources(job), price_cold_start());
    job->worth_micro =
        (int64_t)(WORTH_MEDIAN * (double)job->cold_micro * exp(random_normal(random)));
    job->maximum_micro = job->worth_micro;
    /* Those who want to start now and those with a deadline share the rest as four to three. */
    const int64_t draw = (int64_t)random_below(random, 1000);
    const int64_t now_milli = (1000 - cheapest_milli) * 4 / 7;
    job->start = draw < now_milli               ? JOB_START_NOW
                 : draw < 1000 - cheapest_milli ? JOB_START_DEADLINE
                                                : JOB_START_CHEAPEST;
    double slack_h = 2;
    if (job->start == JOB_START_DEADLINE)
        slack_h = 4 + 32 * random_unit(random);
    if (job->start == JOB_START_CHEAPEST)
        slack_h = 12 + 36 * random_unit(random);
    job->start_s = job->arrival_s + (int64_t)(3600 * slack_h);
    job->latest_s = job->start_s + job->run_s;
    /* Once it runs, an interruption may cost it a quarter of its time. */
    if (job->start == JOB_START_NOW)
        job->latest_s += job->run_s / 4;
}

static void take_trace(struct workload *workload, const struct trace_jobs *trace,
                       const struct workload_options *options, struct random *random)
{
    const int64_t end_s = options->day_count > 0 ? options->day_count * 86400 : INT64_MAX;
    struct crowd crowd;
    crowd_init(&crowd, PARETO_MEMBERS, 1.2, random);
    uint32_t highest = 0;
    workload->jobs = calloc(trace->count + 1, sizeof(*workload->jobs));
    ASSERT(workload->jobs);
    for (size_t i = 0; i < trace->count && trace->items[i].submit_s < end_s; i++) {
        const struct trace_job *seen = &trace->items[i];
        struct sim_job *job = &workload->jobs[workload->job_count++];
        job->arrival_s = seen->submit_s;
        if (seen->gpus_milli > 0 || options->kind == WORKLOAD_ALIBABA)
            shape_pod(job, seen);
        else
            shape_cores(job, seen->cores_milli / 1000, seen->run_s);
        job->member = seen->user == TRACE_USER_NONE ? crowd_draw(&crowd, random)
                                                    : (uint32_t)(seen->user % 1000);
        highest = job->member > highest ? job->member : highest;
    }
    workload->member_count = highest + 1;
}

/* Busier by day than by night, on weekdays than at weekends. */
static double synthetic_rate(int64_t hour, const struct workload_options *options)
{
    const double day = 1 + 0.7 * sin(2 * M_PI * ((double)(hour % 24) - 9) / 24);
    const double step = options->step_day > 0 && hour >= 24 * options->step_day
                            ? (double)options->step_milli / 1000
                            : 1;
    return step * day * ((hour / 24) % 7 < 5 ? 1.15 : 0.62);
}

static void synthesise(struct workload *workload, const struct workload_options *options,
                       struct random *random)
{
    const int64_t hours = 24 * (options->day_count > 0 ? options->day_count : SYNTHETIC_DAYS);
    static const int64_t widths[] = {1, 1, 1, 2, 2, 4, 4, 8};
    const double mean_width = 23.0 / 8, mean_run_h = 1.2 * exp(0.5);
    const double per_hour = SYNTHETIC_CORES / (mean_width * mean_run_h);
    const double highest = options->step_milli > 1000 ? (double)options->step_milli / 500 : 2;
    struct crowd crowd;
    crowd_init(&crowd, SYNTHETIC_MEMBERS, 1.5, random);
    size_t capacity = 1024;
    workload->jobs = calloc(capacity, sizeof(*workload->jobs));
    ASSERT(workload->jobs);
    double at_h = 0;
    for (;;) {
        /* Thinning: draws at the highest rate, keeps what the hour's own rate allows. */
        at_h += -log(1 - random_unit(random)) / (highest * per_hour);
        if (at_h >= (double)hours)
            break;
        if (random_unit(random) * highest > synthetic_rate((int64_t)at_h, options))
            continue;
        if (workload->job_count == capacity) {
            capacity *= 2;
            workload->jobs = realloc(workload->jobs, capacity * sizeof(*workload->jobs));
            ASSERT(workload->jobs);
        }
        struct sim_job *job = &workload->jobs[workload->job_count++];
        *job = (struct sim_job){.arrival_s = (int64_t)(at_h * 3600)};
        shape_cores(job, widths[random_below(random, sizeof(widths) / sizeof(*widths))],
                    60 + (int64_t)(3600 * 1.2 * exp(random_normal(random))));
        job->member = crowd_draw(&crowd, random);
    }
    workload->member_count = SYNTHETIC_MEMBERS;
}

/* ---- Machines -------------------------------------------------------------------------------- */

static void follow_owner(struct sim_lender *lender, int64_t hours, const struct trace_loads *loads,
                         struct random *random)
{
    for (int64_t day = 0; day * 24 < hours; day++) {
        const struct trace_day *load = &loads->days[random_below(random, loads->count)];
        for (int64_t hour = 0; hour < 24 && day * 24 + hour < hours; hour++)
            lender->hours[day * 24 + hour] = load->load_percent[hour] < OWNER_BUSY_PERCENT;
    }
}

/* The nth instance of all spot traces together, from a random hour on. */
static void follow_spot(struct sim_lender *lender, int64_t hours,
                        const struct workload_traces *traces, struct random *random)
{
    uint64_t nth = random_below(random, traces->spot_machine_count);
    for (size_t i = 0; i < traces->spot_count; i++) {
        const struct trace_availability *spot = &traces->spots[i];
        uint8_t most = 0;
        for (size_t hour = 0; hour < spot->hour_count; hour++)
            most = spot->counts[hour] > most ? spot->counts[hour] : most;
        if (nth >= most) {
            nth -= most;
            continue;
        }
        const uint64_t begin = random_below(random, spot->hour_count);
        for (int64_t hour = 0; hour < hours; hour++)
            lender->hours[hour] = spot->counts[(begin + (uint64_t)hour) % spot->hour_count] > nth;
        return;
    }
}

static double scarce_units(const struct workload *workload, struct resources resources)
{
    return (double)(workload->kind == WORKLOAD_ALIBABA ? resources.gpus_milli
                                                       : resources.cores_milli) /
           1000;
}

static double online_unit_hours(const struct workload *workload, const struct sim_lender *lender)
{
    double hours = 0;
    for (int64_t hour = 0; hour < workload->hour_count - INT64_C(24) * CLOSING_DAYS; hour++)
        hours += lender->hours[hour];
    return hours * scarce_units(workload, lender->resources);
}

static void add_lender(struct workload *workload, const struct workload_traces *traces,
                       struct random *random)
{
    struct sim_lender *lender = &workload->lenders[workload->lender_count];
    const int64_t size = 1 + (int64_t)random_below(random, 2);
    if (workload->kind == WORKLOAD_ALIBABA)
        lender->resources = (struct resources){
            .cores_milli = 16000 * size, .ram_bytes = 64 * GIB * size, .gpus_milli = 1000 * size};
    else
        lender->resources =
            (struct resources){.cores_milli = 4000 * size, .ram_bytes = 16 * GIB * size};
    lender->resources.disk_bytes = 100 * GIB;
    lender->cost_milli = (int64_t)(250 * exp(0.5 * random_normal(random)));
    lender->minimum_milli = lender->cost_milli;
    lender->member = (uint32_t)random_below(random, workload->member_count);
    lender->hours = calloc((size_t)workload->hour_count, 1);
    ASSERT(lender->hours);
    if (workload->kind == WORKLOAD_ALIBABA)
        follow_spot(lender, workload->hour_count, traces, random);
    else
        follow_owner(lender, workload->hour_count, &traces->loads, random);
    workload->lender_count++;
}

/* So many that what all jobs need is the offered load. */
static void add_lenders(struct workload *workload, const struct workload_traces *traces,
                        int64_t load_milli, struct random *random)
{
    enum { LENDERS_MAX = 5000 };
    double wanted = 0, offered = 0;
    for (size_t i = 0; i < workload->job_count; i++)
        wanted += scarce_units(workload, sim_job_resources(&workload->jobs[i])) *
                  (double)workload->jobs[i].run_s / 3600;
    workload->lenders = calloc(LENDERS_MAX, sizeof(*workload->lenders));
    ASSERT(workload->lenders);
    const double target = wanted * 1000 / (double)load_milli;
    while (workload->lender_count < LENDERS_MAX &&
           (offered < target || workload->lender_count < 4)) {
        add_lender(workload, traces, random);
        offered += online_unit_hours(workload, &workload->lenders[workload->lender_count - 1]);
    }
    /* The last one is made smaller, a core or a GPU at a time, or left out, if that is nearer. */
    struct sim_lender *last = &workload->lenders[workload->lender_count - 1];
    const double before = offered - online_unit_hours(workload, last);
    const struct resources unit = {.cores_milli = last->resources.gpus_milli > 0 ? 16000 : 1000,
                                   .ram_bytes = (last->resources.gpus_milli > 0 ? 64 : 4) * GIB,
                                   .gpus_milli = last->resources.gpus_milli > 0 ? 1000 : 0};
    while (last->resources.cores_milli > unit.cores_milli &&
           before + online_unit_hours(workload, last) > target)
        last->resources = resources_subtract(last->resources, unit);
    offered = before + online_unit_hours(workload, last);
    if (offered - target > target - before) {
        free(last->hours);
        workload->lender_count--;
        offered = before;
    }
    workload->load = wanted / offered;
}

struct workload *workload_new(const struct workload_traces *traces,
                              const struct workload_options *options)
{
    struct workload *workload = calloc(1, sizeof(*workload));
    ASSERT(workload);
    struct random random;
    random_init(&random, options->seed * 1000003 + (uint64_t)options->kind);
    workload->kind = options->kind;
    if (options->kind == WORKLOAD_SYNTHETIC)
        synthesise(workload, options, &random);
    else
        take_trace(workload, options->kind == WORKLOAD_NASA ? &traces->nasa : &traces->alibaba,
                   options, &random);
    const int64_t cheapest_milli = options->cheapest_milli > 0 ? options->cheapest_milli : 300;
    int64_t last_s = 0;
    for (size_t i = 0; i < workload->job_count; i++) {
        give_wishes(&workload->jobs[i], cheapest_milli, &random);
        last_s = workload->jobs[i].arrival_s;
    }
    workload->hour_count = 24 * (last_s / 86400 + 1 + CLOSING_DAYS);
    add_lenders(workload, traces, options->load_milli, &random);
    return workload;
}

void workload_free(struct workload *workload)
{
    if (!workload)
        return;
    for (size_t i = 0; i < workload->lender_count; i++)
        free(workload->lenders[i].hours);
    free(workload->lenders);
    free(workload->jobs);
    free(workload);
}
