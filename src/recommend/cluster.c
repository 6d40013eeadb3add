#include "recommend/cluster.h"

#include "base/assert.h"

#include <inttypes.h>
#include <stdbool.h>

static uint32_t smaller(int64_t count, uint32_t limit)
{
    return count < (int64_t)limit ? (uint32_t)count : limit;
}

static int wish_check(const struct recommend_wish *wish, struct error *error)
{
    ASSERT(wish->budget >= 0 && wish->share_milli > 0 && wish->share_milli <= RECOMMEND_SHARE_ALL);
    if (wish->budget == 0 && wish->worker_max == 0)
        return error_set(error, ERROR_INVALID, "neither a budget per hour nor a limit of workers");
    return 0;
}

/* What the wish pays for; 0: not one. */
static uint32_t affordable_count(const struct recommend_type *worker,
                                 const struct recommend_type *server,
                                 const struct recommend_wish *wish)
{
    ASSERT(worker->cost > 0 && server->cost >= 0);
    const uint32_t limit = wish->worker_max > 0 ? wish->worker_max : UINT32_MAX;
    if (wish->budget == 0)
        return limit;
    return wish->budget > server->cost
               ? smaller((wish->budget - server->cost) / worker->cost, limit)
               : 0;
}

/* What the server's bandwidth feeds; at least 1. */
static uint32_t fed_count(const struct recommend_type *worker, const struct recommend_type *server,
                          const struct recommend_wish *wish)
{
    const int64_t shared_kbps =
        server->bandwidth_kbps / RECOMMEND_SHARE_ALL * wish->share_milli +
        server->bandwidth_kbps % RECOMMEND_SHARE_ALL * wish->share_milli / RECOMMEND_SHARE_ALL;
    const int64_t count = shared_kbps / worker->used_kbps;
    return count > 0 ? smaller(count, UINT32_MAX) : 1;
}

static int refuse_budget(const struct recommend_type *worker, const struct recommend_type *server,
                         struct error *error)
{
    return error_set(error, ERROR_EXHAUSTED,
                     "the budget does not pay for a server %s and one worker %s: %" PRId64
                     " an hour do",
                     server->name, worker->name, server->cost + worker->cost);
}

static struct recommend_cluster cluster_of(const struct recommend_type *worker, uint32_t count,
                                           const struct recommend_type *server)
{
    return (struct recommend_cluster){.server = server,
                                      .worker = worker,
                                      .worker_count = count,
                                      .cost = server->cost + worker->cost * count};
}

/* ---- One type -------------------------------------------------------------------------------- */

int recommend_server(struct recommend_types types, const struct recommend_type **out_server,
                     struct error *error)
{
    const struct recommend_type *best = NULL;
    for (size_t i = 0; i < types.count; i++) {
        const struct recommend_type *type = &types.all[i];
        if (!best || type->bandwidth_kbps > best->bandwidth_kbps ||
            (type->bandwidth_kbps == best->bandwidth_kbps && type->cost < best->cost))
            best = type;
    }
    if (!best)
        return error_set(error, ERROR_NOT_FOUND, "no machine type for a parameter server");
    *out_server = best;
    return 0;
}

/* The cheapest type, or the most expensive. */
static const struct recommend_type *extreme_type(struct recommend_types types, bool is_cheapest)
{
    const struct recommend_type *best = NULL;
    for (size_t i = 0; i < types.count; i++)
        if (!best ||
            (is_cheapest ? types.all[i].cost < best->cost : types.all[i].cost > best->cost))
            best = &types.all[i];
    return best;
}

static int extreme_opt(struct recommend_types types, bool is_cheapest,
                       const struct recommend_type *server, const struct recommend_wish *wish,
                       struct recommend_cluster *out_cluster, struct error *error)
{
    const struct recommend_type *worker = extreme_type(types, is_cheapest);
    if (wish_check(wish, error) < 0)
        return -1;
    if (!worker)
        return error_set(error, ERROR_NOT_FOUND, "no machine type for workers");
    const uint32_t count = affordable_count(worker, server, wish);
    if (count == 0)
        return refuse_budget(worker, server, error);
    *out_cluster = cluster_of(worker, count, server);
    return 0;
}

int recommend_cost_opt(struct recommend_types types, const struct recommend_type *server,
                       const struct recommend_wish *wish, struct recommend_cluster *out_cluster,
                       struct error *error)
{
    return extreme_opt(types, true, server, wish, out_cluster, error);
}

int recommend_time_opt(struct recommend_types types, const struct recommend_type *server,
                       const struct recommend_wish *wish, struct recommend_cluster *out_cluster,
                       struct error *error)
{
    return extreme_opt(types, false, server, wish, out_cluster, error);
}

/* ---- What the server's bandwidth feeds ------------------------------------------------------- */

int recommend_scala_opt_m(const struct recommend_type *worker, const struct recommend_type *server,
                          const struct recommend_wish *wish, struct recommend_cluster *out_cluster,
                          struct error *error)
{
    if (wish_check(wish, error) < 0)
        return -1;
    const uint32_t affordable = affordable_count(worker, server, wish);
    if (affordable == 0)
        return refuse_budget(worker, server, error);
    if (worker->used_kbps <= 0)
        return error_set(error, ERROR_NOT_FOUND,
                         "not known how much bandwidth a worker %s uses on this task",
                         worker->name);
    const uint32_t fed = fed_count(worker, server, wish);
    *out_cluster = cluster_of(worker, fed < affordable ? fed : affordable, server);
    return 0;
}

/* Fewer workers, or as many that are cheaper. */
static bool cluster_is_better(const struct recommend_cluster *cluster,
                              const struct recommend_cluster *best)
{
    if (cluster->worker_count != best->worker_count)
        return cluster->worker_count < best->worker_count;
    return cluster->worker->cost < best->worker->cost;
}

int recommend_scala_opt(struct recommend_types types, const struct recommend_type *server,
                        const struct recommend_wish *wish, struct recommend_cluster *out_cluster,
                        struct error *error)
{
    struct recommend_cluster best = {0};
    if (wish_check(wish, error) < 0)
        return -1;
    if (types.count == 0)
        return error_set(error, ERROR_NOT_FOUND, "no machine type for workers");
    for (size_t i = 0; i < types.count; i++) {
        struct recommend_cluster cluster;
        if (affordable_count(&types.all[i], server, wish) == 0)
            continue;
        if (recommend_scala_opt_m(&types.all[i], server, wish, &cluster, error) < 0)
            return -1;
        if (!best.worker || cluster_is_better(&cluster, &best))
            best = cluster;
    }
    if (!best.worker)
        return refuse_budget(extreme_type(types, true), server, error);
    *out_cluster = best;
    return 0;
}
