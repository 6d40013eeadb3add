/*
 * Profile: what one run of a job showed, worker by worker, for people and for the next
 * recommendation.
 *
 * Made of what live.c gathered and of the rows of the job, its leases and their machines. A summary
 * is kept in a table of its own (profiles.h): at most PROFILE_WORKERS_MAX leases and
 * PROFILE_POINTS_MAX points of the curve, however long the run was.
 */
#pragma once

#include "base/json_schema.h"
#include "market/job.h"
#include "runtime/job_signature.h"
#include "server/live.h"

struct server;

enum {
    PROFILE_WORKERS_MAX = 256,
    PROFILE_POINTS_MAX = 64,
    PROFILE_NAME_SIZE = 64,
    PROFILE_SIZE_MAX = 512 << 10, /* as JSON */
};

/* One lease of the run. Times and bytes are of all of it. */
struct profile_worker {
    uint64_t lease;
    int64_t role; /* enum lease_role */
    uint64_t rank;
    bool is_replica;
    uint64_t machine;
    char cpu_model[MACHINE_CPU_MODEL_SIZE];
    char gpu_model[MACHINE_GPU_MODEL_SIZE]; /* empty: it used none */
    int64_t cores_milli, gpus_milli;        /* of the lease */
    int64_t speed_weight_milli;             /* of its machine, as are the next two */
    int64_t bandwidth_kbit;                 /* 0: not measured */
    int64_t rtt_us;
    int64_t started_ms, ended_ms;
    int64_t outcome; /* enum lease_outcome */
    int64_t billed_ms, posted_micro;
    uint64_t steps, samples, commits;
    bool has_loss;
    double loss;
    double compute_ms, transfer_ms, wait_ms;
    uint64_t sent_bytes, received_bytes;
    int64_t cpu_ms, gpu_ms, memory_peak_bytes;
    char codec[REPORT_CODEC_SIZE];
};

struct profile_point {
    int64_t elapsed_ms; /* since the first worker joined */
    uint64_t samples;   /* of all workers until then */
    double loss;        /* held-out */
};

struct profile {
    uint64_t job, account;
    struct job_signature signature;
    char runtime[PROFILE_NAME_SIZE];
    char model[PROFILE_NAME_SIZE]; /* built-in name, or the task's signature */
    char data[PROFILE_NAME_SIZE];
    char layers[PROFILE_NAME_SIZE]; /* kinds in order; "": not known */
    char policy[REPORT_POLICY_SIZE];
    char policy_in_force[REPORT_POLICY_SIZE];
    uint64_t parameter_count; /* 0: not known */
    uint64_t batch, local_steps, epochs;
    uint64_t records; /* of the data; 0: not known */
    double rate, momentum;
    double target_loss, target_accuracy;
    int64_t state; /* enum job_state */
    int64_t submitted_ms, started_ms, first_step_ms, ended_ms, updated_ms;
    int64_t elapsed_ms; /* since the first worker joined */
    uint64_t samples;
    bool has_loss;
    double loss;
    bool has_accuracy;
    double test_accuracy;
    int64_t spent_micro;
    uint64_t lease_count;      /* of which `workers` are the first */
    struct json_array workers; /* struct profile_worker: the lead first, then by rank */
    struct json_array points;  /* struct profile_point, rising in time */
};

/* Sets *out_is_there to false for a job that is not there or whose spec nobody can read any more;
 * `live` may be NULL: it reported nothing. Main thread. */
MUST_CHECK int profile_make(struct server *server, struct arena *arena, uint64_t job,
                            const struct live_job *live, struct profile *out_profile,
                            bool *out_is_there, struct error *error);

/* What a spec alone says: signature, model, data, batch, policy and what it asks for. */
void profile_of_spec(const struct job_spec *spec, struct profile *out_profile);

/* As the table has it. */
extern const struct json_schema profile_schema;

/* A worker's mean time of a step, all that was computed over all steps; 0: none was made. */
double profile_step_ms(const struct profile_worker *worker);
/* The time that compute, transfer and wait add up to. */
double profile_worker_ms(const struct profile_worker *worker);
uint64_t profile_pushes(const struct profile *profile); /* of all workers */
uint64_t profile_steps(const struct profile *profile);
uint64_t profile_worker_count(const struct profile *profile); /* that made a step, or could */

/* The fields of GET .../profile, without the braces. */
void profile_write(struct json_writer *writer, const struct profile *profile,
                   struct text (*machine_name)(void *context, uint64_t machine), void *context);
