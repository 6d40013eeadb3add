#include "server/recommendation_view.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { SPEED_MARGIN_MILLI = 50 }; /* kinds are rounded to a tenth */

static void write_range(struct json_writer *writer, const char *key, const struct range *range)
{
    json_key(writer, key);
    json_object_begin(writer);
    json_field_double(writer, "low", range->low);
    json_field_double(writer, "expected", range->expected);
    json_field_double(writer, "high", range->high);
    json_object_end(writer);
}

static void write_micro_range(struct json_writer *writer, const char *key,
                              const struct range *range)
{
    json_key(writer, key);
    json_object_begin(writer);
    json_field_i64(writer, "low", llround(range->low));
    json_field_i64(writer, "expected", llround(range->expected));
    json_field_i64(writer, "high", llround(range->high));
    json_object_end(writer);
}

/* ---- The job's fields ------------------------------------------------------------------------ */

/* Of the plan's lenders the least: what the market looks for has to suit all of them. */
static void least_of(const struct cluster_plan *plan, uint32_t *out_cores_milli,
                     uint32_t *out_speed_milli, bool *out_is_mixed)
{
    *out_cores_milli = *out_speed_milli = UINT32_MAX;
    *out_is_mixed = false;
    for (uint32_t i = 0; i < plan->part_count; i++) {
        const struct candidate *candidate = plan->parts[i].candidate;
        *out_is_mixed =
            *out_is_mixed || candidate->cores_milli != plan->parts[0].candidate->cores_milli;
        if (candidate->cores_milli < *out_cores_milli)
            *out_cores_milli = candidate->cores_milli;
        if (candidate->speed_weight < *out_speed_milli)
            *out_speed_milli = candidate->speed_weight;
    }
}

static void write_credits(struct json_writer *writer, const char *key, int64_t micro)
{
    char amount[32];
    snprintf(amount, sizeof(amount), "%" PRId64 ".%06" PRId64, micro / 1000000, micro % 1000000);
    if (micro > 0)
        json_field_string(writer, key, amount);
}

void recommendation_write_job(struct json_writer *writer, const struct cluster_plan *plan,
                              const char *policy, const struct recommendation_limits *limits)
{
    uint32_t cores_milli, speed_milli;
    bool is_mixed;
    char cpus[32], time[32];
    least_of(plan, &cores_milli, &speed_milli, &is_mixed);
    const uint32_t speed = speed_milli > SPEED_MARGIN_MILLI ? speed_milli - SPEED_MARGIN_MILLI : 0;
    snprintf(cpus, sizeof(cpus), "%.6g%s", cores_milli / 1000.0, is_mixed ? "+" : "");
    const bool is_whole = limits->max_run_ms % 1000 == 0;
    snprintf(time, sizeof(time), "%" PRId64 "%s", limits->max_run_ms / (is_whole ? 1000 : 1),
             is_whole ? "s" : "ms");
    json_object_begin(writer);
    json_field_u64(writer, "num_nodes", cluster_plan_workers(plan));
    json_key(writer, "resources");
    json_object_begin(writer);
    json_field_string(writer, "cpus", cpus);
    json_object_end(writer);
    json_key(writer, "market");
    json_object_begin(writer);
    write_credits(writer, "max_hourly_cost", limits->max_hourly_micro);
    write_credits(writer, "max_total_cost", limits->max_total_micro);
    if (limits->max_run_ms > 0)
        json_field_string(writer, "max_run_time", time);
    json_field_double(writer, "min_speed", floor(speed / 10.0) / 100);
    json_object_end(writer);
    json_key(writer, "sync");
    json_object_begin(writer);
    json_field_string(writer, "policy", policy);
    json_object_end(writer);
    json_object_end(writer);
}

/* ---- Clusters -------------------------------------------------------------------------------- */

static bool is_market_only(const struct cluster_plan *plan)
{
    for (uint32_t i = 0; i < plan->part_count; i++)
        if (plan->parts[i].candidate->source != CANDIDATE_MARKET)
            return false;
    return true;
}

static void write_pace(struct json_writer *writer, const struct recommendation_request *request,
                       const struct fit *fit, const struct candidate *candidate)
{
    const struct worker_pace pace = predict_pace(fit, candidate);
    json_field_double(writer, "step_s", pace.step_s);
    json_field_double(writer, "push_s", pace.push_s);
    json_field_u64(writer, "runs",
                   observations_on(request->observations, request->observation_count,
                                   &request->job.signature, candidate->name));
}

static void write_workers(struct json_writer *writer, const struct recommendation_request *request,
                          const struct choice *choice)
{
    const struct cluster_plan *plan = &choice->plan;
    json_key(writer, "workers");
    json_array_begin(writer);
    for (uint32_t i = 0; i < plan->part_count; i++) {
        const struct candidate *candidate = plan->parts[i].candidate;
        json_object_begin(writer);
        json_field_string(writer, "type", candidate->name);
        json_field_string(writer, "kind", candidate_source_name(candidate->source));
        json_field_u64(writer, "count", plan->parts[i].count);
        json_field_i64(writer, "price_micro_per_hour", candidate->price_micro_per_hour);
        json_field_u64(writer, "cores_milli", candidate->cores_milli);
        json_field_u64(writer, "speed_weight_milli", candidate->speed_weight);
        json_field_u64(writer, "gpus", candidate->gpu_count);
        write_pace(writer, request, choice->fit, candidate);
        json_object_end(writer);
    }
    json_array_end(writer);
}

static void write_server(struct json_writer *writer, const struct server_place *server)
{
    json_key(writer, "server");
    json_object_begin(writer);
    json_field_string(writer, "type", server->name);
    json_field_i64(writer, "price_micro_per_hour", server->price_micro_per_hour);
    json_field_i64(writer, "bandwidth_kbit", llround(server->bytes_per_s / 125));
    json_object_end(writer);
}

/* What time and cost are made of: start_s + work_s is the time that is expected, and work_s is
 * samples / batch / steps_per_s * loss_factor * correction, or least_s where that is more. */
static void write_figures(struct json_writer *writer, const struct choice *choice)
{
    const struct prediction *told = &choice->prediction;
    const struct fit *fit = choice->fit;
    json_key(writer, "figures");
    json_object_begin(writer);
    json_field_double(writer, "samples", told->samples);
    json_field_u64(writer, "batch", fit->job.signature.batch);
    json_field_double(writer, "steps_per_push", fit->steps_per_push);
    json_field_double(writer, "compute_steps_per_s", told->compute_steps_per_s);
    json_field_double(writer, "steps_per_s", told->steps_per_s);
    json_field_double(writer, "loss_factor", told->loss_factor);
    json_field_double(writer, "correction", fit->bias_factor);
    json_field_double(writer, "least_s", fit->job.least_s);
    json_field_double(writer, "start_s", told->start_s);
    json_field_double(writer, "work_s", told->work_s);
    json_object_end(writer);
}

static const char *policy_of(const struct recommendation_view *view, const struct choice *choice)
{
    /* The paper's rules leave the policy alone. */
    return view->request->rule == RULE_AUTO ? choice->fit->job.signature.policy
                                            : view->request->job.signature.policy;
}

static void write_cluster(struct json_writer *writer, const struct recommendation_view *view,
                          const struct choice *choice, const char *why)
{
    const struct prediction *told = &choice->prediction;
    const struct recommendation_limits limits = recommendation_limits_of(view->request, choice);
    json_object_begin(writer);
    write_workers(writer, view->request, choice);
    write_server(writer, &view->request->server);
    json_field_string(writer, "policy", policy_of(view, choice));
    json_field_i64(writer, "cost_micro_per_hour", choice->price_micro_per_hour);
    write_range(writer, "time_s", &told->seconds);
    write_micro_range(writer, "cost_micro", &told->cost_micro);
    json_field_i64(writer, "risk_milli", llround(1000 * told->risk));
    json_field_i64(writer, "wait_milli", llround(1000 * told->wait_share));
    json_field_i64(writer, "link_milli", llround(1000 * told->link_share));
    write_figures(writer, choice);
    json_field_string(writer, "why", why);
    json_key(writer, "job");
    if (is_market_only(&choice->plan))
        recommendation_write_job(writer, &choice->plan, policy_of(view, choice), &limits);
    else
        json_null(writer);
    json_object_end(writer);
}

/* ---- All ------------------------------------------------------------------------------------- */

static void write_error(struct json_writer *writer, const struct predict_error *errors)
{
    json_key(writer, "error");
    json_object_begin(writer);
    json_field_u64(writer, "count", errors->count);
    json_key(writer, "typical");
    if (errors->count > 0)
        json_double(writer, predict_error_typical(errors));
    else
        json_null(writer);
    json_object_end(writer);
}

static void write_trial(struct json_writer *writer, const struct recommendation_view *view)
{
    const struct trial_plan *trial = &view->made->trial;
    const bool can_run = trial->plan.part_count > 0 && is_market_only(&trial->plan);
    json_key(writer, "trial");
    json_object_begin(writer);
    json_field_bool(writer, "needed", trial->is_needed);
    json_field_i64(writer, "cost_micro", llround(trial->cost_micro));
    json_field_double(writer, "seconds", trial->seconds);
    json_field_u64(writer, "steps", trial->steps);
    json_key(writer, "job");
    if (can_run)
        recommendation_write_job(writer, &trial->plan, view->request->job.signature.policy,
                                 &(struct recommendation_limits){0});
    else
        json_null(writer);
    json_object_end(writer);
}

void recommendation_write(struct json_writer *writer, const struct recommendation_view *view)
{
    const struct recommendation *made = view->made;
    json_object_begin(writer);
    json_field_string(writer, "rule", recommend_rule_name(view->request->rule));
    json_field_string(writer, "signature", view->signature->whole);
    json_field_u64(writer, "observations", made->observation_count);
    json_field_u64(writer, "considered", made->considered);
    write_error(writer, &view->request->errors);
    write_trial(writer, view);
    json_field_u64(writer, "chosen_index", made->chosen);
    json_key(writer, "chosen");
    write_cluster(writer, view, &made->choices[made->chosen], made->why);
    json_key(writer, "frontier");
    json_array_begin(writer);
    for (size_t i = 0; i < made->choice_count; i++)
        write_cluster(writer, view, &made->choices[i], i == made->chosen ? made->why : "");
    json_array_end(writer);
    json_key(writer, "advice");
    json_array_begin(writer);
    for (size_t i = 0; i < made->advice_count; i++) {
        json_object_begin(writer);
        json_field_string(writer, "code", made->advice[i].code);
        json_field_string(writer, "text", made->advice[i].text);
        json_object_end(writer);
    }
    json_array_end(writer);
    json_key(writer, "catalogue_date");
    if (view->catalogue_date.size)
        json_text(writer, view->catalogue_date);
    else
        json_null(writer);
    json_field_i64(writer, "micro_per_usd", view->micro_per_usd);
    json_object_end(writer);
}
