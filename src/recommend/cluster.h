/*
 * Cluster: which machine type, and how many of it, for a budget, by FC²'s rules: one parameter
 * server and workers of one type.
 *
 *     server       the user's, or the type with the largest bandwidth
 *     cost-opt     the cheapest type; as many as the budget pays for
 *     time-opt     the most expensive type; as many as the budget pays for
 *     scala-opt    of every type the lesser of what the budget pays for and of what a share of the
 *                  server's bandwidth feeds; the type with the fewest
 *     scala-opt-m  the same number, of the type that the user names
 *
 * Numbers are rounded down. One worker is always fed, however much bandwidth it uses; of two that
 * are equal the cheaper is taken. A limit of workers may stand beside the budget or in its place.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum {
    RECOMMEND_SHARE_ALL = 1000,    /* thousandths of the server's bandwidth */
    RECOMMEND_SHARE_DEFAULT = 950, /* the paper's experiments */
};

/* Amounts have one unit throughout, per hour; names are borrowed. */
struct recommend_type {
    const char *name;
    int64_t cost;           /* > 0 */
    int64_t bandwidth_kbps; /* of its network */
    int64_t used_kbps;      /* what one worker of it uses on this task; 0: not known */
};

struct recommend_types {
    const struct recommend_type *all;
    size_t count;
};

struct recommend_wish {
    int64_t budget;      /* per hour, the server's cost included; 0: none */
    uint32_t worker_max; /* 0: none */
    uint32_t
        share_milli; /* of the server's bandwidth that workers may fill: 1 to RECOMMEND_SHARE_ALL */
};

struct recommend_cluster {
    const struct recommend_type *server;
    const struct recommend_type *worker;
    uint32_t worker_count;
    int64_t cost; /* per hour, of all */
};

/* NOT_FOUND when there is no type. */
MUST_CHECK int recommend_server(struct recommend_types types,
                                const struct recommend_type **out_server, struct error *error);

/*
 * INVALID when the wish has neither budget nor limit; EXHAUSTED when the budget does not pay for
 * the server and one worker, with the least that does; NOT_FOUND when there is no type, or when it
 * is not known how much bandwidth one of those in question uses.
 */
MUST_CHECK int recommend_cost_opt(struct recommend_types types, const struct recommend_type *server,
                                  const struct recommend_wish *wish,
                                  struct recommend_cluster *out_cluster, struct error *error);
MUST_CHECK int recommend_time_opt(struct recommend_types types, const struct recommend_type *server,
                                  const struct recommend_wish *wish,
                                  struct recommend_cluster *out_cluster, struct error *error);
MUST_CHECK int recommend_scala_opt(struct recommend_types types,
                                   const struct recommend_type *server,
                                   const struct recommend_wish *wish,
                                   struct recommend_cluster *out_cluster, struct error *error);
MUST_CHECK int recommend_scala_opt_m(const struct recommend_type *worker,
                                     const struct recommend_type *server,
                                     const struct recommend_wish *wish,
                                     struct recommend_cluster *out_cluster, struct error *error);
