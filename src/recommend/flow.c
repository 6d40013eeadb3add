#include "recommend/flow.h"

#include "base/assert.h"

#include <math.h>

static const double paced_overlap =
    0.25; /* a commit over a mean step: from here on pace overlaps */
static const double sharpness_least = 4, regular = 0.8, regular_most = 0.02;
static const double far_from_corner = 8;  /* in logarithms: what is left out is e^-8 */
static const uint32_t bounded_rounds = 3; /* enough to settle how long a run takes */

static uint32_t whole(double count)
{
    return count < CLUSTER_WORKERS_MAX ? (uint32_t)count : CLUSTER_WORKERS_MAX;
}

static double larger(double left, double right)
{
    return left > right ? left : right;
}

/* What the slowest of them take from step to step, and what the bytes do. */
static struct flow flow_round(const struct fit *fit, const struct flow_kind *kinds,
                              uint32_t kind_count, const struct flow_server *server)
{
    const double steps = fit->steps_per_push;
    const bool is_first = fit->policy->flow == FLOW_FIRST;
    double workers = 0, speed = 0, slowest_s = 0, rtt_s = 0, up_s = server->up_s, down_s = 0;
    struct flow flow = {.waits = true};
    for (uint32_t i = 0; i < kind_count; i++) {
        workers += kinds[i].count;
        speed += kinds[i].count / kinds[i].step_s;
        rtt_s = larger(rtt_s, kinds[i].rtt_s);
        up_s = larger(up_s, kinds[i].up_s);
        down_s = larger(down_s, kinds[i].down_s);
        const double late = is_first ? 1 : fit->slowest[whole(kinds[i].count)];
        if (steps * kinds[i].step_s * late > slowest_s) {
            slowest_s = steps * kinds[i].step_s * late;
            flow.slowest = i;
        }
    }
    if (fit->policy->trims) {
        flow.waits = false;
        slowest_s = steps * workers / speed * fit->slowest[whole(workers)];
    }
    const double round_s = slowest_s + rtt_s + up_s + larger(down_s, workers * server->down_s);
    const double pushed_s = workers * larger(server->up_s, server->down_s);
    const double taken_s = larger(round_s, pushed_s);
    flow.steps_per_s = workers * steps / taken_s;
    flow.compute_share = slowest_s / taken_s;
    flow.link_share = pushed_s / taken_s;
    for (uint32_t i = 0; i < kind_count; i++)
        flow.wait_share += kinds[i].count / workers * (1 - steps * kinds[i].step_s / taken_s);
    flow.wait_share = larger(flow.wait_share, 0);
    return flow;
}

static double cycle_s(const struct fit *fit, const struct flow_kind *kind,
                      const struct flow_server *server)
{
    return fit->steps_per_push * kind->step_s + kind->rtt_s + larger(kind->up_s, server->up_s) +
           larger(kind->down_s, server->down_s);
}

struct carried {
    double share;   /* of what is wanted of a link */
    double elastic; /* how much of a slower worker is felt: 1 with room, 0 when the link is full */
};

/* Nearly all that is wanted while there is room, then all that the link carries. The corner is as
 * sharp as pushes are regular: `deviation` is that of a worker's time from push to push, as a share
 * of it. The exponent is that of workers who take turns at a server of constant service, two to
 * sixteen of them, by simulation. */
static struct carried carried(double wanted, double deviation)
{
    const double sharpness = sharpness_least + regular / larger(deviation, regular_most);
    const double far = sharpness * log(wanted);
    if (fabs(far) > far_from_corner)
        return far < 0 ? (struct carried){1, 1} : (struct carried){1 / wanted, 0};
    const double elastic = 1 / (1 + exp(far));
    return (struct carried){pow(elastic, 1 / sharpness), elastic};
}

/* Pushes per second of one worker, when none may be `slack` steps ahead of the slowest. */
static double bounded_rate(const struct fit *fit, double own, double slowest, double seconds)
{
    if (fit->policy->flow != FLOW_BOUNDED)
        return own;
    return fmin(own, slowest + fit->policy->slack / (fit->steps_per_push * seconds));
}

static struct flow flow_free(const struct fit *fit, const struct flow_kind *kinds,
                             uint32_t kind_count, const struct flow_server *server, double steps)
{
    const double service_s = larger(server->up_s, server->down_s);
    double cycles_s[CLUSTER_KINDS_MAX], slowest = HUGE_VAL, workers = 0;
    struct flow flow = {0};
    for (uint32_t i = 0; i < kind_count; i++) {
        cycles_s[i] = cycle_s(fit, &kinds[i], server);
        workers += kinds[i].count;
        if (1 / cycles_s[i] < slowest) {
            slowest = 1 / cycles_s[i];
            flow.slowest = i;
        }
    }
    const bool is_bounded = fit->policy->flow == FLOW_BOUNDED && kind_count > 1;
    double seconds = steps / (workers * slowest * fit->steps_per_push);
    double rate = 0, computing = 0;
    for (uint32_t round = 0; round < (is_bounded ? bounded_rounds : 1); round++) {
        rate = computing = 0;
        for (uint32_t i = 0; i < kind_count; i++) {
            const double own = bounded_rate(fit, 1 / cycles_s[i], slowest, seconds);
            rate += kinds[i].count * own;
            computing += kinds[i].count * own * fit->steps_per_push * kinds[i].step_s;
        }
        seconds = steps / (rate * fit->steps_per_push);
    }
    const double deviation = fit->step_deviation / sqrt(fit->steps_per_push) * computing / workers;
    const struct carried link = carried(rate * service_s, deviation);
    flow.waits = is_bounded;
    flow.steps_per_s = rate * link.share * fit->steps_per_push;
    flow.link_share = rate * link.share * service_s;
    flow.wait_share = larger(0, 1 - computing * link.share / workers);
    flow.compute_share = link.elastic * computing / workers;
    return flow;
}

/* Nobody waits: pushes are made as seldom as the link needs. */
static struct flow flow_overlap(const struct fit *fit, const struct flow_kind *kinds,
                                uint32_t kind_count, const struct flow_server *server)
{
    double workers = 0, speed = 0, commit_s = 0;
    for (uint32_t i = 0; i < kind_count; i++) {
        workers += kinds[i].count;
        speed += kinds[i].count / kinds[i].step_s;
        commit_s += kinds[i].count *
                    (cycle_s(fit, &kinds[i], server) - fit->steps_per_push * kinds[i].step_s);
    }
    const double crowd_s = workers * larger(server->up_s, server->down_s);
    const double commit_steps = larger(commit_s / workers, crowd_s) * (speed / workers);
    const bool is_waiting = fit->policy->flow == FLOW_PACED && commit_steps < paced_overlap;
    const double share = is_waiting ? 1 / (fit->slowest[whole(workers)] + commit_steps) : 1;
    return (struct flow){
        .steps_per_s = speed * share,
        .wait_share = 1 - share,
        .link_share = carried(crowd_s * speed / workers, fit->step_deviation).share * crowd_s *
                      speed / workers,
        .compute_share = share,
    };
}

struct flow flow_of(const struct fit *fit, const struct flow_kind *kinds, uint32_t kind_count,
                    const struct flow_server *server, double steps)
{
    ASSERT(kind_count > 0 && kind_count <= CLUSTER_KINDS_MAX);
    switch (fit->policy->flow) {
    case FLOW_ROUND:
    case FLOW_FIRST:
        return flow_round(fit, kinds, kind_count, server);
    case FLOW_BOUNDED:
    case FLOW_FREE:
        return flow_free(fit, kinds, kind_count, server, steps);
    case FLOW_PACED:
    case FLOW_OVERLAP:
        break;
    }
    return flow_overlap(fit, kinds, kind_count, server);
}
