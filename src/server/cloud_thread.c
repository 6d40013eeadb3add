/* The thread that asks the cloud, so that nobody else waits for it. */
#include "base/assert.h"
#include "server/cloud_internal.h"

#include <inttypes.h>
#include <stdlib.h>

enum { USER_DATA_MAX = EC2_USER_DATA_MAX, STOP_MS = 10000 };
#define LISTED_MAX ((size_t)10000 * sizeof(struct ec2_instance))

struct cloud_task *cloud_task_new(struct cloud *cloud, const struct fleet_action *action)
{
    struct cloud_task *task = calloc(1, sizeof(*task));
    ASSERT(task);
    task->cloud = cloud;
    task->action = *action;
    buffer_init(&task->user_data, USER_DATA_MAX);
    buffer_init(&task->listed, LISTED_MAX);
    return task;
}

void cloud_task_free(struct cloud_task *task)
{
    if (!task)
        return;
    if (task->user_data.data)
        explicit_bzero(task->user_data.data, task->user_data.size); /* it has the code */
    buffer_done(&task->user_data);
    buffer_done(&task->listed);
    free(task);
}

static int launch(struct cloud_task *task)
{
    struct cloud *cloud = task->cloud;
    /* With each order: somebody may have opened it since. */
    const bool is_known = cloud->group[0] && cloud->group_order == task->order;
    if (!is_known && ec2_find_group(cloud->ec2, cloud->group, &task->error) < 0) {
        task->is_unasked = true;
        return -1;
    }
    cloud->group_order = task->order;
    const struct ec2_launch launch = {
        .image = task->image,
        .group = cloud->group,
        .token = task->token,
        .run = fleet_run(cloud->fleet),
        .member = task->action.member,
        .job = task->job,
        .candidate = task->action.candidate,
        .is_spot = task->action.is_spot,
        .user_data = buffer_text(&task->user_data),
    };
    return ec2_run(cloud->ec2, &launch, &task->instance, &task->error);
}

void cloud_task_run(struct cloud_task *task)
{
    struct ec2 *ec2 = task->cloud->ec2;
    int result = -1;
    switch (task->action.kind) {
    case FLEET_LIST:
        result = ec2_list(ec2, &task->listed, &task->error);
        break;
    case FLEET_LAUNCH:
        result = launch(task);
        break;
    case FLEET_END:
        result = ec2_terminate(ec2, task->action.instance, &task->error);
        break;
    }
    task->is_done = result == 0;
    task->failure = ec2_failure(ec2);
    /* Before it was asked for it is certain that it does not run. */
    if (task->is_unasked && task->failure == FLEET_UNCERTAIN)
        task->failure = FLEET_THROTTLED;
    /* A group that somebody took away is looked for again. */
    if (!task->is_done && task->action.kind == FLEET_LAUNCH)
        task->cloud->group[0] = '\0';
}

static void *run(void *context)
{
    struct cloud *cloud = context;
    pthread_mutex_lock(&cloud->mutex);
    while (!cloud->is_stopping) {
        struct cloud_task *task = TAKE(cloud->task);
        if (!task) {
            pthread_cond_wait(&cloud->changed, &cloud->mutex);
            continue;
        }
        pthread_mutex_unlock(&cloud->mutex);
        cloud_task_run(task);
        loop_post(cloud->server->loop, cloud_task_done, task);
        pthread_mutex_lock(&cloud->mutex);
    }
    pthread_mutex_unlock(&cloud->mutex);
    return NULL;
}

int cloud_thread_start(struct cloud *cloud, struct error *error)
{
    const int failed = pthread_create(&cloud->thread, NULL, run, cloud);
    if (failed)
        return error_set_errno(error, failed, "start the cloud's thread");
    cloud->has_thread = true;
    return 0;
}

void cloud_thread_give(struct cloud *cloud, struct cloud_task *task)
{
    pthread_mutex_lock(&cloud->mutex);
    ASSERT(!cloud->task);
    cloud->task = task;
    pthread_cond_signal(&cloud->changed);
    pthread_mutex_unlock(&cloud->mutex);
}

/* One that was not begun: it is asked for again, or not any more. */
static void hand_back(struct cloud *cloud, struct cloud_task *task)
{
    if (!task)
        return;
    cloud->is_busy = false;
    task->failure = FLEET_THROTTLED;
    error_fill(&task->error, ERROR_UNAVAILABLE, "the market stops");
    cloud_task_take(cloud, task);
    cloud_task_free(task);
}

void cloud_thread_stop(struct cloud *cloud)
{
    if (!cloud->has_thread)
        return;
    pthread_mutex_lock(&cloud->mutex);
    cloud->is_stopping = true;
    cloud->stop_ns = clock_monotonic_ns(cloud->server->clock) + (int64_t)STOP_MS * INT64_C(1000000);
    pthread_cond_signal(&cloud->changed);
    pthread_mutex_unlock(&cloud->mutex);
    pthread_join(cloud->thread, NULL);
    cloud->has_thread = false;
    hand_back(cloud, TAKE(cloud->task));
}
