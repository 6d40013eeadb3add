/*
 * Exchange server: a loss that is not finite any more: whom to believe, and the model to go back
 * to.
 *
 * What the server measures itself counts at once, unless the policy went back to a model that it
 * kept. A worker's word does not: one that lies must not end the others' training, so more must say
 * so than go on without complaint, or have yet to come.
 */
#include "base/assert.h"
#include "exchange/server_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BAD_MEASUREMENTS_MAX = 3 };     /* in a row, of a policy that may go back */
static const double good_rise_max = 2; /* above the lowest loss */

void server_keep_good(struct exchange_server *server, const struct evaluation_report *report)
{
    const size_t size = server->options.parameter_count * sizeof(float);
    server->bad_measurements = 0;
    /* On its way out the loss is finite for a while, and the model no good any more. */
    if (server->good && report->loss > good_rise_max * server->good_loss_min)
        return;
    if (!server->good || report->loss < server->good_loss_min)
        server->good_loss_min = report->loss;
    if (!server->good)
        server->good = malloc(size);
    if (!server->good)
        return; /* without memory for it there will be none to go back to */
    memcpy(server->good, report->parameters, size);
    server->good_version = report->version;
    server->good_accuracy = report->accuracy;
    server->good_loss = report->loss;
}

void server_take_good(struct exchange_server *server)
{
    struct exchange_outcome *outcome = &server->outcome;
    outcome->end = EXCHANGE_END_DIVERGED;
    outcome->parameters = server->good;
    outcome->version = server->good_version;
    outcome->has_accuracy = server->good != NULL;
    outcome->test_accuracy = server->good_accuracy;
    outcome->test_loss = server->good_loss;
}

void server_measured_bad(struct exchange_server *server, bool has_gone_back)
{
    server->bad_measurements = has_gone_back ? 0 : server->bad_measurements + 1;
    const bool may_go_back = text_equal(server->options.policy, TEXT("auto"));
    if (has_gone_back || (may_go_back && server->bad_measurements < BAD_MEASUREMENTS_MAX))
        return;
    server_end(server, EXCHANGE_END_DIVERGED, "the loss on the test data is not finite any more");
}

void server_worker_diverged(struct exchange_server *server, const struct connection *connection)
{
    if (!connection->is_member)
        return;
    struct exchange_worker_status *worker = &server->workers[connection->worker];
    worker->has_diverged = true;
    const uint32_t world = server->options.world, seen = server->worker_count;
    uint32_t diverged = 0, sound = world > seen ? world - seen : 0;
    for (uint32_t i = 0; i < server->worker_count; i++) {
        diverged += server->workers[i].has_diverged;
        sound += server->workers[i].is_member && !server->workers[i].has_diverged;
    }
    if (diverged > sound)
        server_end(server, EXCHANGE_END_DIVERGED,
                   "the loss of %" PRIu32 " of %" PRIu32 " workers is not finite any more",
                   diverged, diverged + sound);
}
