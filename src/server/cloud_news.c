/* What happens in the market that instances depend on: leases, jobs that end, jobs that ask for
 * some. */
#include "base/assert.h"
#include "base/json_schema.h"
#include "base/log.h"
#include "market/machine.h"
#include "runtime/job_spec.h"
#include "server/cloud_internal.h"
#include "server/cloud_job.h"

#include <inttypes.h>
#include <stdlib.h>

enum news_kind { NEWS_LEASES, NEWS_JOB_ENDED, NEWS_JOB_ASKS };

struct news {
    struct cloud *cloud;
    enum news_kind kind;
    uint64_t machine, job, account;
    uint32_t count; /* of leases, or of workers */
    bool use_spot;
    char type[FLEET_NAME_SIZE];
};

/* The job is on disk: what it asked for was checked before, and may still be too much by now. */
static void order_for_job(const struct news *news)
{
    const struct cloud_wish wish = {.types = {text_of(news->type)},
                                    .type_count = 1,
                                    .count = news->count,
                                    .is_spot = news->use_spot,
                                    .job = news->job,
                                    .account = news->account};
    struct error error;
    uint64_t order;
    if (cloud_order(news->cloud, &wish, &order, &error) < 0)
        log_event(LOG_WARN, "cloud_order_refused", "job=%" PRIu64 " error=\"%s\"", news->job,
                  error.message);
}

static void take_news(void *context)
{
    struct news *news = context;
    struct cloud *cloud = news->cloud;
    const int64_t now_ms = clock_utc_ms(cloud->server->clock);
    switch (news->kind) {
    case NEWS_LEASES:
        fleet_leased(cloud->fleet, news->machine, news->count, now_ms);
        break;
    case NEWS_JOB_ENDED:
        fleet_job_ended(cloud->fleet, news->job, now_ms);
        break;
    case NEWS_JOB_ASKS:
        if (cloud->has_thread)
            order_for_job(news);
        break;
    }
    free(news);
}

/* ---- On the core thread ---------------------------------------------------------------------- */

static void tell(struct cloud *cloud, const struct news *told)
{
    struct news *news = malloc(sizeof(*news));
    ASSERT(news);
    *news = *told;
    news->cloud = cloud;
    loop_post(cloud->server->loop, take_news, news);
}

static void tell_leases(struct cloud *cloud, const struct core *core, uint64_t id)
{
    const struct machine *machine = core_machine(core, id);
    /* Instances belong to the operator; the others are nobody's business here. */
    if (machine && machine->owner == ACCOUNT_OPERATOR)
        tell(cloud, &(struct news){.kind = NEWS_LEASES,
                                   .machine = id,
                                   .count = (uint32_t)machine->lease_count});
}

void cloud_tell_job(struct cloud *cloud, uint64_t job, const struct job_request *request)
{
    static const char *const path[] = {"resources", "infra"};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct news news = {.kind = NEWS_JOB_ASKS,
                        .job = job,
                        .account = request->account,
                        .count = (uint32_t)request->num_nodes};
    struct job_spec spec;
    struct error error;
    if (!cloud->config.is_for_jobs || !json_find_text(request->spec, path, 2).size)
        return; /* most jobs */
    if (job_spec_read(arena, request->spec, &spec, &error) < 0 ||
        text_copy(spec.resources.instance_type, news.type, sizeof(news.type), &error) < 0) {
        log_event(LOG_WARN, "cloud_order_refused", "job=%" PRIu64 " error=\"%s\"", job,
                  error.message);
        return;
    }
    news.use_spot = spec.resources.use_spot;
    tell(cloud, &news);
}

void cloud_listen(void *context, const struct core *core, const struct event *events,
                  size_t event_count)
{
    struct cloud *cloud = context;
    for (size_t i = 0; i < event_count; i++) {
        const struct event *event = &events[i];
        if (event->kind == EVENT_LEASE_OFFERED)
            tell_leases(cloud, core, event->lease_offered.machine);
        else if (event->kind == EVENT_LEASE_ENDED)
            tell_leases(cloud, core, event->lease_ended.machine);
        else if (event->kind == EVENT_JOB_SUBMITTED)
            cloud_tell_job(cloud, event->job_submitted.job, &event->job_submitted.request);
        else if (event->kind == EVENT_JOB_STATE_CHANGED &&
                 job_state_is_final(event->job_state_changed.state))
            tell(cloud,
                 &(struct news){.kind = NEWS_JOB_ENDED, .job = event->job_state_changed.job});
    }
}

int cloud_fit_job(const struct cloud *cloud, const struct job_spec *spec,
                  struct job_request *request, int64_t *out_hourly_micro, struct error *error)
{
    const struct job_resources *resources = &spec->resources;
    *out_hourly_micro = 0;
    if (!resources->infra.size)
        return 0;
    if (!cloud || !cloud->config.is_for_jobs)
        return error_set(error, ERROR_REFUSED,
                         "resources.infra: this market starts no machines of a cloud for jobs; "
                         "leave it out to run on machines that are lent here");
    const struct cloud_wish wish = {.types = {resources->instance_type},
                                    .type_count = 1,
                                    .count = (uint32_t)spec->num_nodes,
                                    .is_spot = resources->use_spot};
    AUTO(catalogue) struct catalogue *catalogue = NULL;
    const struct catalogue_type *type;
    int64_t usd_micro;
    if (cloud_check(cloud, &wish, &usd_micro, error) < 0 ||
        cloud_find_type(cloud, resources->instance_type, &catalogue, &type, error) < 0)
        return error_wrap(error, "resources.instance_type");
    if (cloud_job_check(&spec->market, error) < 0 || cloud_job_fit(type, request, error) < 0)
        return -1;
    *out_hourly_micro = cloud_credits_micro(cloud, usd_micro);
    return 0;
}
