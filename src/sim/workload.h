/*
 * Workload: the jobs, members and machines one simulated market gets, made from traces and a seed.
 *
 * Measured: when jobs come, how wide and long they are (NASA iPSC, Alibaba pods), when owners use
 * their machines themselves (PlanetLab), when GPUs come and go (spot traces). Assumed: what a job
 * is worth to its member, how long it may wait, what lending costs, who owns what, and all of the
 * synthetic demand.
 */
#pragma once

#include "base/error.h"
#include "base/random.h"
#include "base/scope.h"
#include "market/job.h"
#include "sim/trace.h"

#include <stdbool.h>

enum workload_kind { WORKLOAD_NASA, WORKLOAD_ALIBABA, WORKLOAD_SYNTHETIC, WORKLOAD_KIND_COUNT };

const char *workload_kind_name(enum workload_kind kind);

struct sim_job {
    int64_t arrival_s;
    int64_t run_s;    /* on what it asks for */
    int64_t start_s;  /* it must have begun by then, or its member goes elsewhere */
    int64_t latest_s; /* it must have finished by then to be worth anything */
    int64_t node_count;
    struct resources node;
    enum job_start start;
    uint32_t member;
    int64_t cold_micro;    /* per hour for all nodes, at cold-start prices */
    int64_t worth_micro;   /* per hour of running, for all nodes; paid out by finishing */
    int64_t maximum_micro; /* what the member says: its worth, unless it lies */
};

enum lender_hour {
    LENDER_AWAY,
    LENDER_LENDS,
    LENDER_WASHES, /* rented by its owner under another name: counts as lent and as wanted */
};

struct sim_lender {
    struct resources resources;
    uint32_t member;       /* the owner */
    int64_t cost_milli;    /* what an hour costs it, in thousandths of the cold-start price */
    int64_t minimum_milli; /* what it says: its cost, unless it lies */
    uint32_t washed_by;    /* the member in whose name it is rented back */
    uint8_t *hours;        /* of enum lender_hour, one for each */
};

struct workload {
    enum workload_kind kind;
    struct sim_job *jobs; /* in the order of arrival_s */
    size_t job_count;
    struct sim_lender *lenders;
    size_t lender_count;
    uint32_t member_count;
    int64_t hour_count;
    double load; /* what all jobs need of the scarcest resource, over what is there of it */
};

/* Traces, read once for many workloads. */
struct workload_traces {
    struct trace_jobs nasa;
    struct trace_jobs alibaba;
    struct trace_loads loads;
    struct trace_availability *spots;
    size_t spot_count;
    size_t spot_machine_count; /* the sum over spots of the most instances each had */
};

/* Reads what is in the folder `data_dir`, laid out as docs/simulation.md says. */
MUST_CHECK int workload_traces_read(const char *data_dir, struct workload_traces **out_traces,
                                    struct error *error);
/* Small made-up ones of the same shape, for tests and for a machine without the data. */
struct workload_traces *workload_traces_invent(uint64_t seed);
void workload_traces_free(struct workload_traces *traces); /* NULL is fine */
DEFINE_AUTO(workload_traces);

struct workload_options {
    enum workload_kind kind;
    int64_t load_milli; /* offered load: 800, 1500 */
    int64_t day_count;  /* 0: all the trace has */
    uint64_t seed;
    int64_t step_day;       /* > 0: from this day on demand is ... */
    int64_t step_milli;     /* ... so many thousandths of what it was; synthetic demand only */
    int64_t cheapest_milli; /* share of jobs that take the cheapest slot; 0: 300 */
};

struct workload *workload_new(const struct workload_traces *traces,
                              const struct workload_options *options);
void workload_free(struct workload *workload); /* NULL is fine */
DEFINE_AUTO(workload);

/* The whole width of a job. */
struct resources sim_job_resources(const struct sim_job *job);
/* Microcredits per hour of so many resources at these prices, reference speed. */
int64_t sim_rate_micro(struct resources resources, struct price_vector price);
bool sim_lender_is_online(const struct sim_lender *lender, int64_t hour);
bool sim_lender_is_washing(const struct sim_lender *lender, int64_t hour);
