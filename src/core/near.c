/* Near: jobs that look for machines near each other, and the machines they could have. */
#include "core/core_internal.h"

size_t core_seeker_count(const struct core *core)
{
    return core->seekers.count;
}

void core_seeker_of(const struct core *core, const struct job_request *request,
                    struct core_seeker *out_seeker)
{
    *out_seeker = (struct core_seeker){.max_rtt_us = request->wishes.max_rtt_us};
    if (request->wishes.max_rtt_us == 0 || job_request_nodes_max(request) < 2)
        return;
    const struct match_wish wish = core_wish(core, request, 0, core->time_ms);
    out_seeker->machine_count = match_near_candidates(core->matcher, &wish, out_seeker->machines);
}

void core_seeker(const struct core *core, size_t index, struct core_seeker *out_seeker)
{
    ASSERT(index < core->seekers.count);
    const struct job *job = core->seekers.items[index].value;
    *out_seeker =
        (struct core_seeker){.job = job->id, .max_rtt_us = job->request.wishes.max_rtt_us};
    if (job->state == JOB_STATE_PENDING && job->start_ms > core->time_ms)
        return; /* its time has not come */
    struct match_wish wish = core_wish_of(core, job);
    wish.beside = job;
    out_seeker->machine_count = match_near_candidates(core->matcher, &wish, out_seeker->machines);
    for (size_t i = 0; i < job->worker_count && out_seeker->machine_count < MATCH_NEAR_MAX; i++)
        if (lease_is_open(job->workers[i])) {
            out_seeker->worker_count++;
            out_seeker->machines[out_seeker->machine_count++] =
                core_machine(core, job->workers[i]->machine);
        }
}
