/*
 * Observation: what one run, finished or a trial, told about a job and the machines it ran on.
 *
 * Plain data: the shell fills it from the profile of a run, the simulator from its own. What is not
 * known is 0 and is left out of the fit. Times are seconds of the run's clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OBSERVATION_NAME_SIZE = 64,
    OBSERVATION_KINDS_MAX = 16, /* in one run; further ones are not told */
    OBSERVATION_POINTS_MAX = 128,
};

/* What makes two jobs alike. */
struct signature {
    char model[OBSERVATION_NAME_SIZE];  /* built-in name, or a hash of the layers */
    char data[OBSERVATION_NAME_SIZE];   /* catalogue name, or the manifest's hash */
    char layers[OBSERVATION_NAME_SIZE]; /* kinds in order: "conv pool dense"; "": not known */
    char policy[OBSERVATION_NAME_SIZE]; /* as sync/policy.h names them */
    uint64_t parameter_count;
    uint32_t batch;       /* samples of one step of one worker */
    uint32_t local_steps; /* between pushes; 0: the policy's own */
    double rate;          /* learning rate */
    double momentum;
};

/* From the nearest to the farthest. */
enum likeness {
    LIKENESS_SAME,     /* the same in all */
    LIKENESS_VARIED,   /* the same model and data with another batch, rate or policy */
    LIKENESS_MODEL,    /* the same model on other data */
    LIKENESS_SHAPE,    /* as many parameters within a tenth, and the same kinds of layers */
    LIKENESS_STRANGER, /* tells of machines and links only */
    LIKENESS_COUNT,
};
const char *likeness_name(enum likeness likeness);
enum likeness signature_likeness(const struct signature *left, const struct signature *right);

/* The workers of one kind in one run. */
struct observed_kind {
    char name[OBSERVATION_NAME_SIZE]; /* as candidates are named: an EC2 type, a lender's kind */
    uint32_t speed_weight;            /* thousandths of the reference speed, of one core */
    uint32_t cores_milli;
    uint32_t gpu_count;
    uint32_t worker_count;
    uint64_t steps;        /* of all of them */
    uint64_t samples;      /* of those steps; 0: a batch each */
    double step_s;         /* mean compute time of a step */
    double step_deviation; /* of the logarithm of a step's time */
    double commit_s;       /* a push and its answer, without the time it was held */
    double rtt_s;          /* to the parameter server */
    double bytes_per_s;    /* of its own link, each way */
    double wait_share;     /* of the time it was there: neither computing nor sending */
};

struct observed_point {
    double at_s;      /* since the first step */
    uint64_t samples; /* of all workers until then */
    double loss;      /* held-out where that was measured, else of training */
};

enum observation_end {
    OBSERVATION_EPOCHS, /* all the samples it was asked for */
    OBSERVATION_TARGET, /* the target was reached */
    OBSERVATION_CUT,    /* a trial, or stopped before either */
    OBSERVATION_END_COUNT,
};

struct observation {
    struct signature signature;
    enum observation_end end;
    double target_loss; /* 0: none */
    struct observed_kind kinds[OBSERVATION_KINDS_MAX];
    uint32_t kind_count;
    uint32_t worker_count;       /* of all kinds, the most at one time */
    double server_bytes_per_s;   /* of the parameter server's link, each way */
    double bytes_up, bytes_down; /* per push */
    uint64_t pushes, samples;    /* of all workers */
    double start_s;              /* of the leases that is not in the next; 0: not known */
    double seconds;              /* from the first step to the end */
    uint32_t losses;             /* of workers, before the end */
    double replace_s;            /* mean time until another took its place */
    struct observed_point points[OBSERVATION_POINTS_MAX];
    uint32_t point_count; /* rising in time */
};

/* Whether a figure of an observation can be one: what lenders tell is not believed blindly. */
bool observed_is_sane(double value);

/* How many of them ran this model on machines of that name, and told of their steps. */
uint32_t observations_on(const struct observation *observations, size_t count,
                         const struct signature *signature, const char *kind);

/* Samples at which the curve first falls to `loss`, between its points; 0: it never does. */
double observation_samples_at(const struct observation *observation, double loss);
