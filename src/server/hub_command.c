/* Commands to the core, again while it cannot take them. */
#include "base/assert.h"
#include "base/log.h"
#include "server/hub_internal.h"

#include <stdlib.h>

void hub_request_free(struct hub_request *request)
{
    backlog_arrived(request->backlog, 0, 1);
    free(request->rows);
    free(request);
}

static void command_done(struct engine_request *engine_request, const struct error *error)
{
    struct hub_request *request = (struct hub_request *)engine_request;
    if (error && error->code == ERROR_UNAVAILABLE) {
        list_append(&request->hub->retries, &request->node);
        return;
    }
    /* An old fence or a lease that has ended is the way of things; anything else is worth a look.
     */
    if (error)
        log_event(error->code == ERROR_CONFLICT || error->code == ERROR_NOT_FOUND ? LOG_DEBUG
                                                                                  : LOG_WARN,
                  "command_refused", "command=%s error=\"%s\"",
                  request->put ? "rows" : command_kind_name(engine_request->command.kind),
                  error->message);
    hub_request_free(request);
}

static void submit(struct hub_request *request)
{
    struct error error;
    if (engine_submit(request->hub->server->engine, &request->request, true, &error) < 0)
        list_append(&request->hub->retries, &request->node);
}

static struct hub_request *request_new(struct hub *hub)
{
    struct hub_request *request = calloc(1, sizeof(*request));
    ASSERT(request);
    request->hub = hub;
    request->request.loop = hub->loop;
    if (hub->speaking)
        request->backlog = backlog_add(hub->speaking, 0, 1);
    return request;
}

void hub_command(struct hub *hub, const struct command *command, const char *reason)
{
    struct hub_request *request = request_new(hub);
    request->request.has_command = true;
    request->request.command = *command;
    request->request.on_done = command_done;
    if (reason && command->kind == COMMAND_END_LEASE) {
        snprintf(request->reason, sizeof(request->reason), "%s", reason);
        request->request.command.end_lease.reason = text_of(request->reason);
    }
    submit(request);
}

static int put_rows(struct engine_request *engine_request, const struct core *core,
                    struct store_batch *batch, struct error *error)
{
    (void)core;
    (void)error;
    const struct hub_request *request = (const struct hub_request *)engine_request;
    request->put(request->rows, batch);
    return 0;
}

void hub_rows_take(struct hub *hub, void (*put)(void *rows, struct store_batch *batch), void *rows)
{
    struct hub_request *request = request_new(hub);
    request->request.on_decided = put_rows;
    request->request.on_done = command_done;
    request->put = put;
    request->rows = rows;
    submit(request);
}

void hub_retry_commands(struct hub *hub)
{
    struct list waiting;
    list_init(&waiting);
    struct list_node *node;
    while ((node = list_take_first(&hub->retries)))
        list_append(&waiting, node);
    while ((node = list_take_first(&waiting)))
        submit(LIST_ITEM(node, struct hub_request, node));
}
