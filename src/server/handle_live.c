/* Server-sent events. */
#include "server/handle_job.h"
#include "server/handlers.h"
#include "server/live.h"
#include "server/query.h"
#include "server/routes.h"

static void follow(struct server *server, struct http_request *request, uint64_t job)
{
    struct error error;
    if (live_stream(server->live, request, route_caller(request)->account, job, &error) < 0)
        http_reply_error(request, &error);
}

void handle_job_events(struct http_request *request, void *context)
{
    const struct store_value *row = handle_job_find(context, request);
    if (row)
        follow(context, request, (uint64_t)row[JOBS_ID].integer);
}

void handle_events(struct http_request *request, void *context)
{
    follow(context, request, 0);
}
