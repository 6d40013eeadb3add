/*
 * Flow: how many steps workers make together when all of them push to one server, by the rule of
 * their policy.
 *
 *     round     the slowest's steps, a round trip, and the answers one after the other through the
 *               server's link; who is answered last pushes last, so that pushes do not queue again
 *     free      each worker's own steps and commit; all together not more than the link carries
 *     overlap   steps only
 */
#pragma once

#include "recommend/fit.h"

/* Workers of one kind. */
struct flow_kind {
    double count;
    double step_s;
    double rtt_s;
    double up_s, down_s; /* of one push and its answer through its own link */
};

struct flow_server {
    double up_s, down_s; /* of one push and its answer through the server's link */
};

struct flow {
    double steps_per_s;   /* of all workers */
    double wait_share;    /* of workers' time */
    double link_share;    /* of the server's link */
    double compute_share; /* by which part of it steps would take longer if computing did */
    uint32_t slowest;     /* the kind the others wait for; of policies that wait */
    bool waits;
};

/* `steps` in all, for policies that let some get ahead. */
struct flow flow_of(const struct fit *fit, const struct flow_kind *kinds, uint32_t kind_count,
                    const struct flow_server *server, double steps);
