/*
 * Inside of the role server: its state, and what its files call of each other: role_server.c (life,
 * streams), role_server_model.c (measuring, checkpoints, what is left) and role_server_report.c.
 */
#pragma once

#include "exchange/replica.h"
#include "exchange/server.h"
#include "runtime/job_model.h"
#include "tensor/kernel.h"
#include "train/evaluation.h"
#include "train/model.h"
#include "worker/checkpointer.h"
#include "worker/epoch_schedule.h"
#include "worker/peer_table.h"
#include "worker/worker_internal.h"

#include <limits.h>

struct measurer {
    const struct work *work;
    struct dataset *dataset;
    struct kernel_set *kernels; /* opened by the thread that measures */
    struct model *model;
};

struct server_role {
    struct work *work;
    struct loop *loop;
    struct control *control;
    struct exchange_server *server; /* NULL: it is a replica, and the lead is there */
    struct replica *replica;
    struct loop_timer *report_timer, *checkpoint_timer;
    struct measurer measurer;
    struct epoch_schedule *schedule; /* NULL: it takes as many workers as come */
    struct checkpointer *checkpointer;
    char checkpoint_path[PATH_MAX];
    uint64_t checkpoint_version; /* of the model in the last one */
    uint64_t resumed_samples;    /* of the model it began with; 0: a new one */
    int64_t reported_ns;
    char sync_reason[SYNC_REASON_SIZE];             /* as last logged */
    enum codec codecs[EXCHANGE_WORKERS_MAX];        /* of the workers, as last logged */
    uint64_t reported_leases[EXCHANGE_WORKERS_MAX]; /* whose the next are */
    uint64_t reported_commits[EXCHANGE_WORKERS_MAX];
    struct peer_table peers;
    struct work_result *result;
    struct error failure; /* code ERROR_NONE: none */
};

/* --- role_server_model.c --- */

MUST_CHECK int measurer_prepare(struct measurer *measurer, struct error *error);
/* As evaluator.h says; the context is a measurer. */
MUST_CHECK int measurer_measure(void *context, struct evaluation_report *report,
                                struct error *error);

MUST_CHECK int checkpointer_start(struct server_role *role, struct error *error);
/* `parameters` NULL: the newest model. The last one waits for the one before it. */
void checkpoint_save(struct server_role *role, const float *parameters, bool is_last);
/* What a server before this one left: the newest that can be read; *out_checkpoint is NULL when
 * there is none. */
MUST_CHECK int checkpoint_find(const struct work *work, struct checkpoint **out_checkpoint,
                               struct error *error);
MUST_CHECK int model_export(struct server_role *role, const struct exchange_outcome *outcome,
                            struct error *error);

/* --- role_server_report.c --- */

void server_report_send(struct server_role *role, const struct exchange_outcome *outcome);
void server_report_due(void *context);
/* As server.h says; the context is the role. */
void server_report_change(void *context);
