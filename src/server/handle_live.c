/* Server-sent events. */
#include "server/handle_job.h"
#include "server/handlers.h"
#include "server/live.h"
#include "server/query.h"
#include "server/routes.h"

static void follow(struct server *server, struct http_request *request, uint64_t job)
{
    const struct caller *caller = route_caller(request);
    const struct live_follower follower = {.account = caller->account,
                                           .token = caller->token,
                                           .expires_ms = caller->expires_ms,
                                           .job = job};
    struct error error;
    if (live_stream(server->live, request, &follower, &error) < 0)
        http_reply_error(request, &error);
}

/* Its last state may have come before anyone followed: then it is told again, and that is all. */
static void tell_end(struct http_request *request, const struct store_value *row)
{
    struct error error;
    const struct live_end end = {
        .job = (uint64_t)row[JOBS_ID].integer,
        .state = job_state_name((enum job_state)row[JOBS_STATE].integer),
        .reason = arena_copy_string(http_request_arena(request), row[JOBS_REASON].bytes),
        .at_ms = row[JOBS_ENDED_MS].integer,
    };
    if (live_stream_end(request, &end, &error) < 0)
        http_reply_error(request, &error);
}

void handle_job_events(struct http_request *request, void *context)
{
    const struct store_value *row = handle_job_find(context, request);
    if (!row)
        return;
    if (job_state_is_final((enum job_state)row[JOBS_STATE].integer))
        tell_end(request, row);
    else
        follow(context, request, (uint64_t)row[JOBS_ID].integer);
}

void handle_events(struct http_request *request, void *context)
{
    follow(context, request, 0);
}
