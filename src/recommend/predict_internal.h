/*
 * Inside of predict: what the frontier's search does for many clusters at once, without ranges.
 */
#pragma once

#include "recommend/flow.h"
#include "recommend/predict.h"

/* A candidate by one fit. */
struct rated {
    const struct candidate *candidate;
    struct flow_kind kind; /* of one worker */
    double losses_per_s;
    double away_s; /* what each loss takes of a worker's time */
};
struct rated rate_candidate(const struct fit *fit, const struct candidate *candidate);
struct flow_server rate_server(const struct fit *fit, const struct server_place *server);

/* Expected, of workers whose numbers are in `rated[].kind.count`. */
struct outlook {
    struct flow flow;
    double start_s, work_s;
    double loss_factor;
    double cost_micro;
    double losses_per_s; /* of all workers */
    double samples;
    uint32_t workers; /* at most CLUSTER_WORKERS_MAX */
};
struct outlook outlook_of(const struct fit *fit, const struct rated *rated, uint32_t count,
                          const struct flow_server *link, const struct server_place *server);
