/*
 * Job spec: what a borrower asks for. One field table (job_spec.c) reads it from YAML (job_file.h)
 * and JSON, writes it as canonical JSON, and prints its JSON Schema.
 *
 * A value of 0 or an empty text means "not given" wherever the comment says optional; all else has
 * a default. Text and lists live in the arena the spec was read into. docs/job-file.md describes
 * the fields for users; names here, there, in JSON and in messages are the same.
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"
#include "runtime/job_wish.h"
#include "runtime/muster.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    JOB_SPEC_SIZE_MAX = 64 << 10, /* as YAML or JSON */
    JOB_INPUTS_MAX = 16,
    JOB_HASH_SIZE = 32,
    JOB_SCRIPT_SIZE_MAX = 16 << 10, /* of setup and of run */
    JOB_ENVS_MAX = 64,
    JOB_ENV_NAME_SIZE_MAX = 128,
    JOB_ENV_VALUE_SIZE_MAX = 4 << 10,
    JOB_MOUNTS_MAX = 8,
    JOB_MOUNT_TARGET_SIZE_MAX = 200,
    JOB_MOUNT_SOURCE_SIZE_MAX = 4095,
};

/* "0.5" is exactly that much of a machine; "0.5+" is that much or whatever more it offers. */
struct job_amount {
    int64_t value;
    bool is_at_least;
};

struct job_resources {
    struct job_amount cpus_milli;         /* default "1+" */
    struct job_amount memory_bytes;       /* default "0.25+" GiB */
    int64_t disk_size_bytes;              /* default 1 GiB */
    struct job_accelerators accelerators; /* optional */
    int64_t bandwidth_kbit;               /* optional */
    struct text labels;                   /* words with a comma between; optional */
    struct text network;                  /* "none", "job" or "open": at least */
    struct text install;                  /* "none", "wheels" or "index": at least */
    struct text image_id;                 /* an image of the borrower's to run in; optional */
    struct text infra;                    /* "aws": instances are started for it; optional */
    struct text instance_type;            /* of them, like m5.large */
    bool use_spot;                        /* they may be taken back */
};

struct layer_spec;

struct job_schedule {
    struct text name; /* of train/optimizer.h; optional: constant */
    uint64_t warmup, period;
    double factor;
};

struct job_optimizer {
    struct text name; /* "sgd", "adam", "adamw" */
    double lr;
    double momentum;
    bool nesterov;
    double weight_decay;
    double beta1, beta2, epsilon; /* optional */
    double clip_norm;             /* optional */
    struct job_schedule schedule; /* optional */
};

struct job_target {
    /* On the test set; all are optional: without any, all epochs run. */
    double accuracy; /* 0 to 1 */
    double loss, error, perplexity;
    int64_t min_time_ms; /* train at least this long */
};

/* How a file of the borrower's is read: docs/data.md. */
struct job_read {
    struct text format;                 /* of train/reader.c; optional: found out */
    struct text missing;                /* "refuse", "drop", "mean" or a number; optional */
    struct text categories;             /* "refuse", "one-hot" or "hashed"; optional */
    struct text category_columns, skip; /* names with a comma between; optional */
    uint64_t hash_bits;                 /* of hashed categories and words; optional: 16 */
    struct text unit;                   /* of texts: "words" or "characters"; optional */
    struct text words;                  /* of texts: "frequent" or "hashed"; optional */
    uint64_t vocabulary, length;        /* of texts; optional */
    uint64_t window, ahead;             /* of rows in order of time; optional */
    uint64_t image_height, image_width; /* optional: as they are */
    double label_skew;                  /* 0 to 1 */
};

/* What is done to images as they are drawn. */
struct job_augment {
    uint64_t crop; /* pixels; optional */
    bool flip;
};

struct job_train {
    struct text model; /* of train/model_spec.h; "layers" with a list of its own */
    const struct layer_spec *layers;
    size_t layer_count;
    struct text data;           /* a name of the data set catalogue, or a file: job_train_is_file */
    struct text test;           /* with peer://LABEL: a file of the borrower's like that */
    struct text label;          /* of a file: the column's name; optional: the last */
    struct job_read read;       /* of a file */
    struct text shards;         /* how large each worker's is: "even" or "speed" */
    struct job_augment augment; /* optional */
    struct text predict;        /* "class", "number" or "next"; optional: by model and loss */
    /* Of a file, 0 until it is read: */
    uint64_t channels, height, features; /* of struct dataset_shape; features is its width */
    uint64_t vocabulary, classes;
    double mean, deviation;  /* of an image's bytes over 255 */
    double target_deviation; /* of numbers to be told */
    struct text loss;        /* of train/model_spec.h */
    struct job_optimizer optimizer;
    uint64_t batch;
    uint64_t epochs;
    struct job_target target;
    uint64_t seed;
};

struct job_market {
    int64_t max_hourly_cost_micro; /* of all leases together; optional */
    int64_t max_total_cost_micro;  /* optional */
    int64_t max_run_time_ms;       /* the hold covers this long; then the job is stopped */
    int64_t expected_run_time_ms;  /* optional */
    struct job_start_wish start;
    bool rush;                     /* pays double for its first hour when there is a queue */
    bool replace_lost;             /* a worker that is lost gets a successor */
    bool spare;                    /* only unsold time that is given away */
    int64_t max_rtt_ms;            /* between any two workers; optional */
    int64_t min_reliability_milli; /* optional */
    int64_t min_speed_milli;       /* optional */
};

struct job_sync {
    struct text policy;             /* a name of sync/policy.h */
    int64_t gamma_ms;               /* the check period; optional: job_spec_gamma_ms */
    int64_t commit_interval_min_ms; /* optional: twice the measured commit time */
    int64_t tick_ms;                /* of meter and bill; optional: job_spec_tick_ms */
    int64_t checkpoint_interval_ms; /* what is stored of the model is no older */
    struct text search;             /* adsp's search for the commit rate: "auto", "paper", "off" */
    /* The rest as in sync/policy.h; all are optional: the policy's own. */
    uint64_t local_steps; /* per push */
    uint64_t slack;
    uint64_t backups;
    uint64_t staleness;
    uint64_t epoch_steps;
    struct text schedule; /* of the workers, from epoch to epoch: "grow", "decay"; empty: none */
    double outer_rate;
    double outer_momentum; /* below 0: the policy's own */
    int64_t deadline_ms;
    struct text overlap; /* "auto", "on", "off" */
    struct text taus;    /* whole numbers, joined by commas */
    /* How updates and models travel: "auto", or a name of exchange/codec.h. */
    struct text compress;
    double density;           /* of topk */
    double compress_momentum; /* of topk */
    struct text robust;       /* a name of exchange/robust.h */
    double trim;              /* of trimmed */
    double verify;            /* the share of pushes that another worker makes again; 0: none */
    uint64_t servers;         /* parameter servers, each of a range of the model */
    bool replica;             /* one more follows the lead, and takes its place when it is lost */
};

/* train: each worker gets its part of the records; test: the parameter server gets it whole;
 * files: an archive that each worker gets whole and unpacks into its working folder; image: an OCI
 * image that each worker runs in; wheels: an archive of wheels that are installed for each worker;
 * mount: the files of one of file_mounts (mount_index.h); all: each worker and the parameter server
 * get it whole. */
enum job_split {
    JOB_SPLIT_TRAIN,
    JOB_SPLIT_TEST,
    JOB_SPLIT_FILES,
    JOB_SPLIT_IMAGE,
    JOB_SPLIT_WHEELS,
    JOB_SPLIT_MOUNT,
    JOB_SPLIT_ALL,
    JOB_SPLIT_COUNT,
};
const char *job_split_name(enum job_split split); /* "train" ... */

/* A data file in the market's blob store. `souk job submit` fills these in from train.data and
 * workdir. */
struct job_input {
    struct text name; /* "train-images": also the file's name in the lease's /data */
    enum job_split split;
    uint8_t manifest[JOB_HASH_SIZE]; /* blob/manifest.h */
    uint64_t records;
};

/* A variable of the environment; sorted by name in a spec. */
struct job_env {
    struct text name;
    struct text value;
    struct text source; /* of a secret without a value: the variable of who submits that has it */
    struct text origin; /* of a secret with a value: the variable it was taken from; empty: given */
};

/* Files that every rank finds at a place in its working folder, and cannot change; sorted by target
 * in a spec. */
struct job_mount {
    struct text target; /* of plain names, slashes between: mount_path_is_fine */
    struct text source; /* a path or an address; empty: its input is there already */
    bool shard;         /* each rank gets its part alone: mount_index_part */
};

/* Of runtime `tensorflow`: the first rank is the chief if there are parameter servers. */
struct job_tensorflow {
    uint64_t parameter_servers; /* the last of the ranks; 0: all are workers */
};

#define JOB_PROCESSES_PER_GPU UINT64_MAX
enum { JOB_PROCESSES_MAX = 64 };

/* Of runtime `torch`. */
struct job_torch {
    uint64_t processes; /* of each rank, or JOB_PROCESSES_PER_GPU; 0: one */
};

struct job_spec {
    struct text name;
    uint64_t num_nodes;     /* workers: the least it starts with */
    uint64_t num_nodes_max; /* the most it takes when there is room; optional: num_nodes */
    struct job_resources resources;
    struct text runtime; /* "native", "command" or a framework of runtime/launch.h */
    struct text workdir; /* a folder of the borrower's that the ranks get; optional */
    const struct job_env *envs;
    size_t env_count;
    const struct job_env *secrets; /* job_secrets.h; never written with the rest */
    size_t secret_count;
    struct text secret_names; /* joined by commas; what is known of them once they are sealed */
    struct text secret_file;  /* of the market: where they lie */
    const struct job_mount *file_mounts;
    size_t file_mount_count;
    struct text requirements; /* a file that names packages the ranks get; optional */
    struct text wheels;       /* files and folders of them, joined by commas; optional */
    struct text setup;        /* a shell script before `run`; optional; not with `native` */
    struct text run;          /* a shell script; not with `native` */
    struct job_tensorflow tensorflow;
    struct job_torch torch;
    struct text restart; /* of enum muster_restart; optional: job_spec_restart; not with `native` */
    uint64_t max_restarts;          /* of scripts that fail; optional: none */
    int64_t checkpoint_interval_ms; /* of their folder; optional: job_spec_checkpoint_ms */
    struct job_train train;         /* with `native` only */
    struct job_sync sync;
    struct job_market market;
    const struct job_input *inputs;
    size_t input_count;
};

/*
 * Reads a spec from JSON. INVALID with one sentence that names the field ("train.batch: must be
 * from 1 to 65536"): an unknown or missing field, a wrong type, a value out of range, or a field of
 * the format that runtime `native` does not support yet.
 *
 * Reads every job that the market has stored, also one that it would refuse today.
 */
MUST_CHECK int job_spec_read(struct arena *arena, struct text json, struct job_spec *out_spec,
                             struct error *error);
/* For a job that comes in. It refuses besides what only older versions took: GPUs of runtime
 * `native`. */
MUST_CHECK int job_spec_read_new(struct arena *arena, struct text json, struct job_spec *out_spec,
                                 struct error *error);

/* Canonical: every field in table order, optional ones only when given. Equal specs give equal
 * bytes, and job_spec_read gives the same spec back. */
void job_spec_write(const struct job_spec *spec, struct buffer *json);

/* The JSON Schema (2020-12) of what job_spec_read takes, pretty enough to read. */
void job_spec_write_schema(struct buffer *json);

/* Runs a program of the borrower's, by `command` or one of the frameworks. */
bool job_spec_is_command(const struct job_spec *spec);
/* What starts again when a rank is lost or fails: all ranks of a framework, else that rank. */
enum muster_restart job_spec_restart(const struct job_spec *spec);
/* Its ranks start together: those of a framework, and of whatever restarts as a whole. */
bool job_spec_is_gathered(const struct job_spec *spec);
/* The input that is its image; NULL: it has none. */
const struct job_input *job_spec_image(const struct job_spec *spec);
/* It brings packages to install: those it names, or has uploaded. */
bool job_spec_has_packages(const struct job_spec *spec);
/* The input that one of its file_mounts has become; NULL: none yet. They are named "mount-0" ... in
 * the order of the targets. */
#define JOB_MOUNT_INPUT "mount-"
const struct job_input *job_spec_mount(const struct job_spec *spec, size_t index);
/* The input that is its wheels; NULL: it has none. */
const struct job_input *job_spec_wheels(const struct job_spec *spec);

/* Its data are a file or folder of the borrower's, not of the catalogue: the path has a dot or a
 * slash. */
bool job_train_is_file(const struct job_train *train);

/* "LABEL" of peer://LABEL, data that lie at lenders; empty: they do not. */
struct text job_train_peer(const struct job_train *train);
/* Machines that offer them have the label "peer-LABEL". */
#define JOB_PEER_PREFIX "peer-"
enum { JOB_PEER_LABEL_SIZE_MAX = 35 };

/* The values of sync.taus: their number, at most JOB_TAUS_MAX, or -1 when one is not from 1 to
 * 1,000,000. */
enum { JOB_TAUS_MAX = 16, JOB_VERIFIED_STEPS_MAX = 32 };
int job_sync_taus(const struct job_sync *sync, uint32_t out_taus[JOB_TAUS_MAX]);

/* What a lease carries: {"train":{...},"sync":{...}} of runtime `native`, with gamma and tick
 * filled in, so that daemon and worker derive nothing; {"envs":{...},"setup":"...","run":"..."} of
 * all others. */
void job_spec_write_work(const struct job_spec *spec, struct buffer *json);
/* Fills those members; the rest keeps its defaults. */
MUST_CHECK int job_spec_read_work(struct arena *arena, struct text runtime, struct text json,
                                  struct job_spec *out_spec, struct error *error);

/* market.expected_run_time, or else market.max_run_time. */
int64_t job_spec_expected_run_ms(const struct job_spec *spec);
/* Between two checkpoints: of a borrower's program checkpoint_interval, or else 30 s; else
 * sync.checkpoint_interval. */
int64_t job_spec_checkpoint_ms(const struct job_spec *spec);
/* sync.gamma, or else a twentieth of the expected run, within 1 to 60 s. */
int64_t job_spec_gamma_ms(const struct job_spec *spec);
/* sync.tick, or else the smaller of 10 s and gamma. */
int64_t job_spec_tick_ms(const struct job_spec *spec);
