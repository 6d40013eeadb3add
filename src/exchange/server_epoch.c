/*
 * Exchange server: the barrier between two epochs, where the number of workers may change.
 *
 * Nobody computes then. The owner says how many workers the next epoch wants; members of higher
 * ranks are parted: what they pushed is accepted, and they wait to join again, which they may once
 * they are wanted. Whoever lets their leases go need not be in time for that, nor bring those that
 * are missing: the epoch begins with the members there are, and others join when they come.
 */
#include "exchange/server_internal.h"

static uint64_t epoch_index(const struct exchange_server *server)
{
    const uint64_t steps = server->options.sync.epoch_steps;
    return steps > 0 ? server->status.steps / steps : (uint64_t)(server_epochs(server) + 1e-9);
}

static uint32_t ask(struct exchange_server *server)
{
    const struct exchange_epoch epoch = {
        .index = epoch_index(server),
        .passes = server_epochs(server),
        .has_loss = server->status.loss_evaluations > 0,
        .loss = server->status.loss,
        .elapsed_ms = server_elapsed_ms(server),
        .workers = server->member_count,
    };
    return server->options.on_epoch(server->options.context, &epoch);
}

bool server_wants(const struct exchange_server *server, const struct connection *connection)
{
    return server->workers_wanted == 0 || connection->rank < server->workers_wanted;
}

static void part_surplus(struct exchange_server *server)
{
    LIST_EACH(&server->connections, node)
    {
        struct connection *connection = LIST_ITEM(node, struct connection, node);
        if (!connection->is_member || server_wants(server, connection))
            continue;
        if (connection->is_waiting)
            connection_send(connection,
                            &(struct exchange_message){.type = EXCHANGE_ACCEPTED,
                                                       .accepted_push = connection->push.number});
        server_part(server, connection);
    }
}

void server_epoch_over(struct exchange_server *server)
{
    if (server->options.on_epoch) {
        server->workers_wanted = ask(server);
        part_surplus(server);
    }
    sync_policy_go_on(server->policy, server_now_ns(server), &server->actions);
    server_act(server);
    if (!server->options.on_epoch)
        return;
    LIST_EACH(&server->connections, node)
    server_try(server, LIST_ITEM(node, struct connection, node));
    server_changed(server);
}
