/*
 * Work: what a function is asked to do and what it answers, as JSON.
 *
 * A call takes the batches [first_batch, first_batch + batch_count) of an epoch, steps over them
 * from model `version` on, and puts what that changed as one object, once: updates/JOB/EPOCH-RUN-
 * FIRST. Who finds that object there answers with what it says. So whatever is repeated, late or
 * killed, a batch's steps are in the store once or not at all; an update of fewer batches than were
 * asked for says how many.
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/json_schema.h"
#include "function/object_store.h"

#include <stdint.h>

enum {
    WORK_JOB_SIZE = 49,
    WORK_JOB_CHANCE_SIZE = 8, /* of its last characters, by chance */
    WORK_JSON_MAX = 64 << 10, /* of a request or an answer */
    WORK_HEADER_SIZE = 20,    /* of an idx file at most */
};

/* jobs/JOB */
struct work_job {
    char name[WORK_JOB_SIZE]; /* letters, digits, '-' and '_' */
    struct text work;         /* {"train":{...},"sync":{...}}: runtime/job_spec.h */
    double mean, deviation;   /* of bytes of images */
    uint64_t records;         /* of both files */
    char images_header[2 * WORK_HEADER_SIZE + 1], labels_header[2 * WORK_HEADER_SIZE + 1]; /* hex */
};

struct work_request {
    char job[WORK_JOB_SIZE];
    struct text store; /* a place as of object_store.h; "": the host's own */
    struct text token; /* a secret: of a market's store, for this job's functions; "": none */
    uint64_t epoch, run;
    uint64_t first_batch, batch_count;
    uint64_t version;
};

/* Why it did not do more. */
enum work_end { WORK_END_DONE, WORK_END_TIME, WORK_END_COUNT };

struct work_answer {
    char job[WORK_JOB_SIZE];
    uint64_t epoch, run, first_batch;
    uint64_t batches_done; /* of the object that is there; 0: there is none */
    uint64_t samples;
    double loss;      /* mean over those batches, each before its step */
    bool is_repeated; /* the object was there already */
    int end;          /* enum work_end */
    int64_t fetch_us, compute_us, update_us;
    int64_t memory_bytes; /* of the process at its most */
};

/* The head of an update. */
struct work_update {
    uint64_t epoch, run, first_batch, batches, samples, version;
    double loss;
};

extern const struct json_schema work_job_schema, work_request_schema, work_answer_schema,
    work_update_schema;
extern const char *const work_end_names[]; /* "done", "time", NULL */

/* json_read, and that the job's name is one and the ranges are not empty. */
MUST_CHECK int work_request_read(struct arena *arena, struct text json,
                                 struct work_request *out_request, struct error *error);
MUST_CHECK int work_check_job_name(const char *name, struct error *error);

void work_job_key(const char *job, char out[OBJECT_KEY_SIZE]);
void work_data_key(const char *job, const char *part, char out[OBJECT_KEY_SIZE]);
void work_model_key(const char *job, uint64_t version, char out[OBJECT_KEY_SIZE]);
void work_update_key(const struct work_request *request, char out[OBJECT_KEY_SIZE]);
