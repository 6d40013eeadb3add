/*
 * Cloud, inside.
 */
#pragma once

#include "base/arena.h"
#include "cloud/catalogue_shelf.h"
#include "cloud/config.h"
#include "cloud/ec2.h"
#include "cloud/fleet.h"
#include "server/cloud.h"
#include "server/server_internal.h"

#include <pthread.h>

/* The code and name of an instance's lender. */
struct cloud_seat {
    uint64_t member; /* 0: free */
    char code[KEYS_TOKEN_SIZE];
    char name[MARKET_NAME_SIZE];
    bool is_known;    /* the market takes the code */
    uint64_t machine; /* that enrolled with it; 0: none */
};

/* An action, with what it takes and what came of it. */
struct cloud_task {
    struct cloud *cloud;
    struct fleet_action action;
    uint64_t order, job;
    char token[2 * FLEET_NAME_SIZE];
    char image[FLEET_NAME_SIZE];
    struct buffer user_data;

    bool is_done;
    bool is_unasked; /* a launch failed before the instance was asked for */
    enum fleet_failure failure;
    struct error error;
    struct ec2_instance instance;
    struct buffer listed; /* struct ec2_instance */
};

struct cloud {
    struct server *server;
    struct arena *arena;
    struct cloud_config config;
    char market[FLEET_NAME_SIZE];
    char orders_path[SERVER_PATH_SIZE + 32];
    struct fleet *fleet;
    struct buffer saved; /* as the file has it */
    bool is_save_failing;
    struct loop_timer *timer;
    struct cloud_seat *seats; /* [FLEET_MEMBERS_MAX] */
    bool is_busy;             /* a task is on its way */
    struct error problem;     /* why its list could not be seen; code NONE: it was */

    /* The thread's. */
    struct ec2 *ec2;
    char group[FLEET_NAME_SIZE]; /* "": not asked for yet */
    uint64_t group_order;        /* that it was asked for */
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    struct cloud_task *task; /* that waits */
    bool is_stopping;
    int64_t stop_ns; /* what is asked ends by then */
};

/* cloud_thread.c */
struct cloud_task *cloud_task_new(struct cloud *cloud, const struct fleet_action *action);
void cloud_task_free(struct cloud_task *task);
/* Asks the cloud, on whatever thread has the ec2. */
void cloud_task_run(struct cloud_task *task);
MUST_CHECK int cloud_thread_start(struct cloud *cloud, struct error *error);
/* Waits until what is being asked is answered, a while. */
void cloud_thread_stop(struct cloud *cloud);
/* It is freed by cloud_task_done, which is posted to the main thread. */
void cloud_thread_give(struct cloud *cloud, struct cloud_task *task);

/* cloud.c */
/* Of the operator's region; it belongs to *out_catalogue, which is taken unless it is. */
MUST_CHECK int cloud_find_type(const struct cloud *cloud, struct text name,
                               struct catalogue **out_catalogue,
                               const struct catalogue_type **out_type, struct error *error);
void cloud_task_take(struct cloud *cloud, struct cloud_task *task); /* what came of it */
void cloud_task_done(void *context);

/* cloud_orders.c */
/* Once it returns 0 the next start knows all that this one does. */
MUST_CHECK int cloud_orders_save(struct cloud *cloud, struct error *error);
/* As that, for what goes on when it fails, too. */
void cloud_orders_keep(struct cloud *cloud);

/* cloud_news.c */
/* A job that asks for machines is told of on the main thread. */
void cloud_tell_job(struct cloud *cloud, uint64_t job, const struct job_request *request);

/* cloud_seat.c */
/* Of an instance that another start of the market launched. */
const struct cloud_seat *cloud_seat_adopt(struct cloud *cloud, const struct core *core,
                                          const struct fleet_member *member);
/* Gives the task its image, script and token, once the market takes the instance's code: then
 * `ready` is called, with the reason when it does not. */
typedef void cloud_ready(struct cloud_task *task, const struct error *error);
void cloud_seat_prepare(struct cloud_task *task, cloud_ready *ready);
/* Frees those of instances that are gone. */
void cloud_seats_sweep(struct cloud *cloud);
