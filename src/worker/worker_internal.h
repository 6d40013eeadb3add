/*
 * Inside of worker: what all roles start from.
 */
#pragma once

#include "exchange/server.h"
#include "runtime/child_message.h"
#include "runtime/native.h"
#include "sync/policy.h"
#include "train/dataset.h"
#include "train/dataset_catalogue.h"
#include "train/model_spec.h"
#include "train/optimizer.h"
#include "worker/control.h"

struct work {
    struct arena *arena; /* holds the lease and the peers */
    int control_fd;
    const char *data_folder, *out_folder, *work_folder;
    const char *launch_folder; /* for what a framework wants to find */
    const char *store_folder;  /* where functions meet a worker whose steps they make */
    uint32_t function_count;   /* 0: it makes them itself */
    struct child_config config;
    struct lease_document lease;
    const struct job_env *secrets; /* of the job, for its scripts */
    size_t secret_count;
    const struct dataset_entry *data;
    struct dataset_entry own_data; /* what `data` is for a file of the borrower's */
    struct dataset_shape shape;    /* of a record; its count is 0 */
    uint64_t own_records;          /* of data that lie here: peer_data.c; else 0 */
    struct model_spec model;
    size_t parameter_count;
    struct sync_settings sync;
    struct exchange_compress compress;
    struct robust_options robust;
};

/* What a role ends with; DONE says it to the daemon. */
struct work_result {
    bool is_ok;
    int exit_code; /* of the process, when not 0 or 1 by is_ok */
    char message[256];
};

/* Opens FOLDER/NAME-images and FOLDER/NAME-labels of the job's data set. */
MUST_CHECK int work_open_dataset(const struct work *work, enum dataset_part images,
                                 enum dataset_part labels, struct dataset **out_dataset,
                                 struct error *error);

/* Reads data that lie at this machine (the lease's peer://LABEL, below PEER_FOLDER) into the files
 * of a data set in the working folder, which is the data folder then. What fails is told without a
 * word of the data. */
#define PEER_FOLDER "/peer"
MUST_CHECK int peer_data_prepare(struct work *work, struct error *error);

/* Each runs its role to the end. An error is a failure to start. */
MUST_CHECK int run_worker(struct work *work, struct work_result *out_result, struct error *error);
MUST_CHECK int run_server(struct work *work, struct work_result *out_result, struct error *error);
MUST_CHECK int run_range(struct work *work, struct work_result *out_result, struct error *error);
MUST_CHECK int run_command(struct work *work, struct work_result *out_result, struct error *error);
