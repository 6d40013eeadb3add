#include "recommend/predict.h"

#include "base/assert.h"
#include "recommend/predict_internal.h"

#include <math.h>

static const double tenth_normal = 1.2816; /* a tenth of a normal's outcomes lie beyond */
static const double start_deviation = 0.2;
static const double model_deviation = 0.06;   /* of what the model leaves out */
static const double crowded_deviation = 0.15; /* the more the fuller the link */
static const double lost_pushes = 0.5;        /* of a push's steps go with a lost worker */

struct flow_server rate_server(const struct fit *fit, const struct server_place *server)
{
    if (!(server->bytes_per_s > 0))
        return (struct flow_server){0};
    return (struct flow_server){fit->bytes_up / server->bytes_per_s,
                                fit->bytes_down / server->bytes_per_s};
}

struct rated rate_candidate(const struct fit *fit, const struct candidate *candidate)
{
    const double step_s = exp(fit_step(fit, candidate).mean);
    const double transfer = exp(fit->transfer.mean);
    const double bytes_per_s = candidate->bytes_per_s;
    struct rated rated = {
        .candidate = candidate,
        .kind = {.count = 1, .step_s = step_s, .rtt_s = transfer * candidate->rtt_s},
        .losses_per_s = candidate->losses_per_hour / 3600,
        .away_s =
            fmax(fit->replace_s, candidate->start_s) + lost_pushes * fit->steps_per_push * step_s,
    };
    if (bytes_per_s > 0) {
        rated.kind.up_s = transfer * fit->bytes_up / bytes_per_s;
        rated.kind.down_s = transfer * fit->bytes_down / bytes_per_s;
    }
    if (candidate->lifetime_s > 0)
        rated.losses_per_s += 1 / candidate->lifetime_s;
    return rated;
}

struct outlook outlook_of(const struct fit *fit, const struct rated *rated, uint32_t count,
                          const struct flow_server *link, const struct server_place *server)
{
    struct flow_kind kinds[CLUSTER_KINDS_MAX];
    struct outlook outlook = {0};
    double workers = 0, price = (double)server->price_micro_per_hour, away = 0;
    ASSERT(count > 0 && count <= CLUSTER_KINDS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const double number = rated[i].kind.count;
        kinds[i] = rated[i].kind;
        workers += number;
        price += number * (double)rated[i].candidate->price_micro_per_hour;
        outlook.start_s = fmax(outlook.start_s, rated[i].candidate->start_s);
        outlook.losses_per_s += number * rated[i].losses_per_s;
        away += number * rated[i].losses_per_s * rated[i].away_s;
    }
    outlook.workers = workers < CLUSTER_WORKERS_MAX ? (uint32_t)workers : CLUSTER_WORKERS_MAX;
    outlook.samples = fit->samples_expected[outlook.workers];
    const double steps = outlook.samples / fit->job.signature.batch;
    outlook.flow = flow_of(fit, kinds, count, link, steps);
    outlook.loss_factor = 1 + away / workers;
    outlook.work_s = fit->bias_factor * steps / outlook.flow.steps_per_s * outlook.loss_factor;
    outlook.work_s = fmax(outlook.work_s, fit->job.least_s);
    outlook.cost_micro = price * (outlook.start_s + outlook.work_s) / 3600;
    return outlook;
}

/* How the logarithms of step times enter that of the whole: those waited for, or all by what they
 * contribute. */
static double step_variance(const struct fit *fit, const struct rated *rated, uint32_t count,
                            const struct flow *flow)
{
    struct fit_weight weights[CLUSTER_KINDS_MAX];
    double speed = 0;
    if (flow->waits) {
        weights[0] = (struct fit_weight){rated[flow->slowest].candidate, 1};
        return fit_steps(fit, weights, 1).variance;
    }
    for (uint32_t i = 0; i < count; i++)
        speed += rated[i].kind.count / rated[i].kind.step_s;
    for (uint32_t i = 0; i < count; i++)
        weights[i] = (struct fit_weight){rated[i].candidate,
                                         rated[i].kind.count / rated[i].kind.step_s / speed};
    return fit_steps(fit, weights, count).variance;
}

/* By how much the logarithm of the work moves when all steps take e^deviation as long: less where
 * links are what is waited for, all of it where steps come to outweigh them. */
static double step_effect(const struct fit *fit, const struct rated *rated, uint32_t count,
                          const struct flow_server *link, const struct server_place *server,
                          double deviation)
{
    struct rated moved[CLUSTER_KINDS_MAX];
    double work_s[2];
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < count; i++) {
            moved[i] = rated[i];
            moved[i].kind.step_s *= exp(side > 0 ? deviation : -deviation);
        }
        work_s[side] = outlook_of(fit, moved, count, link, server).work_s;
    }
    const double own_s = outlook_of(fit, rated, count, link, server).work_s;
    return fmax(log(work_s[1] / own_s), log(own_s / work_s[0]));
}

static double deviation_of(const struct fit *fit, const struct rated *rated, uint32_t count,
                           const struct flow_server *link, const struct server_place *server,
                           const struct outlook *outlook)
{
    const struct flow *flow = &outlook->flow;
    const double steps =
        step_effect(fit, rated, count, link, server, sqrt(step_variance(fit, rated, count, flow)));
    const double other = 1 - flow->compute_share;
    const double crowded = crowded_deviation * flow->link_share * flow->link_share;
    const double seconds = outlook->start_s + outlook->work_s;
    const double work = outlook->work_s / seconds, start = outlook->start_s / seconds;
    const double variance = steps * steps +
                            other * other * fit->transfer.variance * (1 - flow->link_share) +
                            crowded * crowded + fit->samples[outlook->workers].variance +
                            model_deviation * model_deviation;
    return fit->scale *
           sqrt(work * work * variance + start * start * start_deviation * start_deviation);
}

struct worker_pace predict_pace(const struct fit *fit, const struct candidate *candidate)
{
    const struct flow_kind kind = rate_candidate(fit, candidate).kind;
    return (struct worker_pace){kind.step_s, kind.rtt_s + kind.up_s + kind.down_s};
}

void predict(const struct fit *fit, const struct cluster_plan *plan,
             const struct server_place *server, struct prediction *out_prediction)
{
    struct rated rated[CLUSTER_KINDS_MAX];
    double compute_steps_per_s = 0;
    ASSERT(plan->part_count > 0 && plan->part_count <= CLUSTER_KINDS_MAX);
    for (uint32_t i = 0; i < plan->part_count; i++) {
        rated[i] = rate_candidate(fit, plan->parts[i].candidate);
        rated[i].kind.count = plan->parts[i].count;
        compute_steps_per_s += rated[i].kind.count / rated[i].kind.step_s;
    }
    const struct flow_server link = rate_server(fit, server);
    const struct outlook outlook = outlook_of(fit, rated, plan->part_count, &link, server);
    const double deviation = deviation_of(fit, rated, plan->part_count, &link, server, &outlook);
    const double seconds = outlook.start_s + outlook.work_s;
    const double factor = exp(tenth_normal * deviation);
    const double losses = outlook.losses_per_s * seconds;
    /* It never trains for less, however well it learns. */
    const double low_s = fmax(seconds / factor, fit->job.least_s);
    *out_prediction = (struct prediction){
        .seconds = {low_s, seconds, seconds * factor},
        .cost_micro = {outlook.cost_micro * low_s / seconds, outlook.cost_micro,
                       outlook.cost_micro * factor},
        .deviation = deviation,
        .start_s = outlook.start_s,
        .work_s = outlook.work_s,
        .steps_per_s = outlook.flow.steps_per_s,
        .compute_steps_per_s = compute_steps_per_s,
        .loss_factor = outlook.loss_factor,
        .samples = outlook.samples,
        .wait_share = outlook.flow.wait_share,
        .link_share = outlook.flow.link_share,
        .losses = losses,
        .risk = -expm1(-losses),
    };
}

double prediction_late_share(const struct prediction *prediction, double deadline_s)
{
    const double apart = log(deadline_s / prediction->seconds.expected);
    return 0.5 * erfc(apart / (prediction->deviation * sqrt(2)));
}
