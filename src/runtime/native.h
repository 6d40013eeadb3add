/*
 * Native runtime: turns a job spec and its leases into the document each lease is started with.
 *
 * The market writes the document as canonical JSON and signs those bytes; daemon and worker check
 * the signature over the bytes as they came (never over what they would write themselves) and read
 * them back here. Nothing in it is secret: keys, tokens and tickets travel beside it.
 */
#pragma once

#include "market/lease.h" /* enum lease_role and its names */
#include "runtime/job_spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One input of the lease: records [first_record, first_record + record_count) of a manifest. */
struct lease_data {
    char name[64];
    uint8_t manifest[JOB_HASH_SIZE];
    uint64_t first_record;
    uint64_t record_count;
    const struct job_mount *mount; /* of file_mounts: the files it is; NULL: one file */
};

struct lease_document {
    uint64_t lease;
    uint64_t fence;
    uint64_t job;
    struct text name; /* the job's */
    uint64_t machine;
    struct text machine_name; /* for people */
    uint64_t offer;           /* of the machine, under which it was made */
    enum lease_role role;
    uint64_t rank;  /* of a worker, from 0; of the parameter server 0 */
    uint64_t world; /* shards of the data: the workers it starts with */
    int64_t cores_milli;
    int64_t ram_bytes;
    int64_t disk_bytes;
    int64_t gpus_milli; /* thousandths of a GPU; 0: none */
    int64_t tick_ms;
    int64_t expires_ms;  /* UTC */
    struct text network; /* "none", "job" or "open"; empty: none */
    struct text labels;  /* that a borrower's program asks of the machine, commas between */
    struct text runtime;
    struct job_train train;
    struct job_sync sync;   /* gamma_ms and tick_ms are always set */
    struct text setup, run; /* of a borrower's program; empty otherwise, or as its image says */
    struct job_tensorflow tensorflow;
    struct job_torch torch;
    bool is_gathered; /* its ranks start together */
    enum muster_restart restart;
    uint64_t max_restarts;
    int64_t checkpoint_interval_ms;
    uint64_t world_max;    /* of an elastic job that is gathered */
    bool has_image;        /* of its data, the one of that name: lease_document_image */
    bool has_wheels;       /* likewise: lease_document_wheels */
    bool fetches_packages; /* those that their archive lists: package_lock.h */
    const struct job_env *envs;
    size_t env_count;
    const struct job_mount *mounts;
    size_t mount_count;
    const struct lease_data *data;
    size_t data_count;
};

#define LEASE_IMAGE_NAME  "image"  /* of the data that is one */
#define LEASE_WHEELS_NAME "wheels" /* of the archive of them */
#define LEASE_MOUNTS_NAME "mounts" /* of the folder that has those of all targets, in /data */
/* Of what a parameter server leaves now and then, and of the data that its successor goes on from,
 * or the server of a job that was resumed: then it is an input of the job. */
#define LEASE_CHECKPOINT_NAME "checkpoint"
/* Of the one before it, for a successor that cannot read the newest. */
#define LEASE_CHECKPOINT_BEFORE_NAME "checkpoint-before"

/* Of what a borrower's program leaves now and then, as its rank announces them: the job's, which is
 * rank 0's to leave, and the rank's own. */
#define LEASE_JOB_CHECKPOINT_NAME  "souk-checkpoint"
#define LEASE_RANK_CHECKPOINT_NAME "souk-rank-checkpoint"

/* A manifest whose records are bytes. */
struct native_checkpoint {
    uint8_t manifest[JOB_HASH_SIZE];
    uint64_t size_bytes;
};

/* What the market decided about one lease. */
struct native_lease {
    uint64_t lease;
    uint64_t fence;
    uint64_t job;
    uint64_t machine;
    struct text machine_name;
    uint64_t offer;
    enum lease_role role;
    uint32_t rank;
    uint32_t world;
    const uint64_t *speeds; /* [world], of the workers of each shard; NULL: all count alike */
    int64_t cores_milli;
    int64_t ram_bytes;
    int64_t disk_bytes;
    int64_t gpus_milli;
    int64_t expires_ms;
    const struct native_checkpoint *checkpoint; /* that a parameter server goes on from; or NULL */
    const struct native_checkpoint *checkpoint_before; /* if that cannot be read; or NULL */
};

enum { NATIVE_SLOWNESS_MAX = 64 };

/* A worker of rank r gets records [s*N/n, (s+1)*N/n) of each train input, where n is the world and
 * s is r modulo n: ranks that come later share a shard. With speeds shards are as large as those
 * are, but none is less than a NATIVE_SLOWNESS_MAXth of the largest. With sync.verify
 * shards are even and each worker gets all records. The parameter server gets each test input
 * whole. Writes canonical JSON of at most LEASE_DOCUMENT_SIZE_MAX bytes; INVALID when a worker
 * would get no record, EXHAUSTED when the buffer is too small. */
MUST_CHECK int native_lease_write(const struct job_spec *spec, const struct native_lease *lease,
                                  struct buffer *json, struct error *error);

/* The records of a worker, of `records` in all. */
void native_shard(uint64_t records, uint64_t rank, uint64_t world, uint64_t *out_first,
                  uint64_t *out_count);
/* Whether each worker has all records, to make the others' pushes again: its own are those of
 * native_shard. */
bool lease_document_has_all_records(const struct lease_document *document);
/* Runs a program of the borrower's. */
bool lease_document_is_command(const struct lease_document *document);
/* Whether a file of that name, which it announces, is a checkpoint. */
bool lease_document_is_checkpoint(const struct lease_document *document, struct text name);
/* The image it runs in; NULL: this machine's own system. */
const struct lease_data *lease_document_image(const struct lease_document *document);
/* The archive of wheels that are installed for it; NULL: none are. */
const struct lease_data *lease_document_wheels(const struct lease_document *document);
/* Whether it is a rank of its job's private network. */
bool lease_document_has_network(const struct lease_document *document);
/* Whether it reaches the Internet besides. */
bool lease_document_has_internet(const struct lease_document *document);

MUST_CHECK int lease_document_read(struct arena *arena, struct text json,
                                   struct lease_document *out_document, struct error *error);
