/*
 * Jobs that go by a schedule: their lead says between two epochs how many workers the next wants.
 *
 * Only the lead's word counts, under its fence and within what its borrower asked for; what leases
 * may cost bounds growth as it does without a schedule. Those of the highest ranks are let go where
 * fewer are wanted: the lead holds them at its barrier by then. Where more are wanted than there is
 * room for, the job goes on with those it has and gets the others when they can be had.
 */
#include "core/core_internal.h"

#include <inttypes.h>

static int check_resize(const struct job *job, const struct lease *lease, int64_t workers,
                        struct error *error)
{
    if (lease != job_lead(job) || lease->state != LEASE_STATE_RUNNING)
        return error_set(error, ERROR_REFUSED,
                         "lease %" PRIu64 " does not lead job %" PRIu64 ", or does not run yet",
                         lease->id, job->id);
    if (job->workers_wanted == 0 ||
        (job->state != JOB_STATE_STARTING && job->state != JOB_STATE_RUNNING))
        return error_set(error, ERROR_CONFLICT,
                         "job %" PRIu64 " has no schedule of workers, or is about to end", job->id);
    if (workers < job->request.num_nodes || workers > job_request_nodes_max(&job->request))
        return error_set(error, ERROR_INVALID,
                         "job %" PRIu64 " has %" PRId64 " to %" PRId64 " workers, not %" PRId64,
                         job->id, job->request.num_nodes, job_request_nodes_max(&job->request),
                         workers);
    return 0;
}

int decide_resize_job(struct decision *decision, const struct command *command, struct error *error)
{
    const __typeof__(command->resize_job) *resize = &command->resize_job;
    const struct lease *lease = core_lease(decision->core, resize->lease);
    if (!lease)
        return error_set(error, ERROR_NOT_FOUND, "lease %" PRIu64 " does not exist", resize->lease);
    const struct job *job = core_job(decision->core, lease->job);
    if (lease_check_fence(lease, resize->fence, error) < 0 ||
        check_resize(job, lease, resize->workers, error) < 0)
        return -1;
    decision->subject = job->id;
    if (resize->workers == job->workers_wanted)
        return 0;
    struct event event = {.kind = EVENT_JOB_RESIZED,
                          .job_resized = {.job = job->id, .workers = resize->workers}};
    decision_emit(decision, &event);
    for (size_t rank = job->worker_count; rank-- > (size_t)resize->workers;)
        decision_let_go(decision, job->workers[rank], "its job wants fewer workers now");
    decision_settle_job(decision, job);
    if (!decide_has_line(decision))
        decision_grow(decision, job);
    return 0;
}
