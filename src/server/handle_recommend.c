/* Which machines for a job: what is offered and what runs showed, gathered; then weighed apart. */
#include "base/nearest.h"
#include "base/units.h"
#include "cloud/catalogue_shelf.h"
#include "server/background.h"
#include "server/call.h"
#include "server/cloud.h"
#include "server/cloud_kinds.h"
#include "server/handle_job.h"
#include "server/handlers.h"
#include "server/market_kinds.h"
#include "server/profile_observe.h"
#include "server/profiles.h"
#include "server/recommendation_view.h"
#include "server/view.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { KINDS_MAX = 8, TYPE_SIZE_MAX = 64, DEADLINE_S_MAX = 31622400 };

struct recommend_body {
    struct text job;
    int rule, wish;
    int64_t budget_micro_per_hour, budget_micro;
    int64_t budget_usd_micro_per_hour, budget_usd_micro; /* in place of those */
    double deadline_s;
    int64_t worker_max, share_milli;
    struct text server_type, worker_type;
    struct json_array kinds; /* struct text */
};

static const char *const wish_names[] = {"cheapest", "fastest", "safest", NULL};
#define CREDITS_MAX INT64_C(1000000000000000)

static const struct json_field body_fields[] = {
    {"job", JSON_ANY, offsetof(struct recommend_body, job), .is_required = true,
     .size_max = JOB_SPEC_SIZE_MAX},
    {"rule", JSON_CHOICE, offsetof(struct recommend_body, rule), .choices = recommend_rule_names},
    {"wish", JSON_CHOICE, offsetof(struct recommend_body, wish), .choices = wish_names},
    {"budget_micro_per_hour", JSON_I64, offsetof(struct recommend_body, budget_micro_per_hour),
     .minimum = 1, .maximum = CREDITS_MAX},
    {"budget_micro", JSON_I64, offsetof(struct recommend_body, budget_micro), .minimum = 1,
     .maximum = CREDITS_MAX},
    {"budget_usd_micro_per_hour", JSON_I64,
     offsetof(struct recommend_body, budget_usd_micro_per_hour), .minimum = 1,
     .maximum = CREDITS_MAX},
    {"budget_usd_micro", JSON_I64, offsetof(struct recommend_body, budget_usd_micro), .minimum = 1,
     .maximum = CREDITS_MAX},
    {"deadline_s", JSON_DOUBLE, offsetof(struct recommend_body, deadline_s)},
    {"worker_max", JSON_I64, offsetof(struct recommend_body, worker_max), .minimum = 1,
     .maximum = CLUSTER_WORKERS_MAX},
    {"share_milli", JSON_I64, offsetof(struct recommend_body, share_milli), .minimum = 1,
     .maximum = RECOMMEND_SHARE_ALL},
    {"server_type", JSON_TEXT, offsetof(struct recommend_body, server_type),
     .size_max = TYPE_SIZE_MAX},
    {"worker_type", JSON_TEXT, offsetof(struct recommend_body, worker_type),
     .size_max = TYPE_SIZE_MAX},
    {"kinds", JSON_TEXTS, offsetof(struct recommend_body, kinds), .size_max = KINDS_MAX},
};
static const struct json_schema body_schema =
    JSON_SCHEMA("recommendation", body_fields, struct recommend_body);

/* One that is being made; in the call's arena. */
struct making {
    struct background_task task; /* first */
    struct call *call;
    struct recommend_body body;
    struct job_request wanted;
    struct profile asked;
    double least_s; /* of training for a target */
    struct recommendation_request request;
    struct market_kinds kinds;
    struct catalogue *catalogue; /* NULL: none was asked for; so the next */
    struct text catalogue_date;
    int64_t now_ms;
    int64_t micro_per_usd;
    int64_t age_days_max; /* from which on prices are called old */
    struct text region;   /* of the operator's cloud; "": there is none */
    struct recommendation made;
    int result;
    struct error error;
};

/* ---- The request ----------------------------------------------------------------------------- */

static int check_kinds(const struct json_array *kinds, struct error *error)
{
    const struct text *items = kinds->items;
    for (size_t i = 0; i < kinds->count; i++) {
        bool is_known = false;
        for (int k = 0; k < CANDIDATE_SOURCE_COUNT; k++)
            is_known =
                is_known || text_is(items[i], candidate_source_name((enum candidate_source)k));
        if (!is_known)
            return error_set(error, ERROR_INVALID,
                             "kinds: must be of market, ec2, ec2-spot, function");
    }
    return 0;
}

/* Without any the market's alone: what a job gets by itself. */
static bool wants_kind(const struct recommend_body *body, enum candidate_source source)
{
    const struct text *items = body->kinds.items;
    for (size_t i = 0; i < body->kinds.count; i++)
        if (text_is(items[i], candidate_source_name(source)))
            return true;
    return body->kinds.count == 0 && source == CANDIDATE_MARKET;
}

static bool wants_cloud(const struct recommend_body *body)
{
    return wants_kind(body, CANDIDATE_ON_DEMAND) || wants_kind(body, CANDIDATE_SPOT) ||
           wants_kind(body, CANDIDATE_FUNCTION);
}

static int convert_dollars(struct recommend_body *body, int64_t rate, struct error *error)
{
    const bool has_credits = body->budget_micro_per_hour > 0 || body->budget_micro > 0;
    if (body->budget_usd_micro_per_hour == 0 && body->budget_usd_micro == 0)
        return 0;
    if (has_credits)
        return error_set(error, ERROR_INVALID,
                         "budget_usd_micro_per_hour: give the budget in credits or in dollars");
    body->budget_micro_per_hour = cloud_kinds_credits_micro(body->budget_usd_micro_per_hour, rate);
    body->budget_micro = cloud_kinds_credits_micro(body->budget_usd_micro, rate);
    return 0;
}

/* What each wish and rule needs, before anybody is asked. */
static int check_limits(const struct recommend_body *body, struct error *error)
{
    const bool has_limit = body->budget_micro_per_hour > 0 || body->worker_max > 0;
    if (body->deadline_s < 0 || body->deadline_s > DEADLINE_S_MAX)
        return error_set(error, ERROR_INVALID, "deadline_s: must be from 0 to %d", DEADLINE_S_MAX);
    if (body->rule == RULE_SCALA_OPT_M && !body->worker_type.size)
        return error_set(error, ERROR_INVALID,
                         "worker_type: rule scala-opt-m needs the type whose number it gives");
    if (body->rule != RULE_AUTO && !has_limit)
        return error_set(
            error, ERROR_INVALID,
            "budget_micro_per_hour: rule %s needs a budget an hour or a limit of workers",
            recommend_rule_names[body->rule]);
    if (body->rule == RULE_AUTO && body->wish == WISH_FASTEST && !has_limit &&
        body->budget_micro == 0)
        return error_set(error, ERROR_INVALID,
                         "budget_micro_per_hour: the fastest is the one that costs most: give a "
                         "budget an hour, a budget in all or a limit of workers; the "
                         "cheapest and the safest need none");
    return 0;
}

/* A folder comes as an archive and secrets with the job alone: what they are costs nothing. */
static int read_job(struct call *call, struct making *making, struct error *error)
{
    struct job_spec spec;
    if (job_spec_read_new(call->arena, making->body.job, &spec, error) < 0)
        return error_wrap(error, "job");
    if (job_spec_is_command(&spec))
        return error_set(
            error, ERROR_INVALID,
            "job: only jobs that train a model of their own (runtime native) can be "
            "foretold; what another costs is shown when it is submitted, before it is");
    profile_of_spec(&spec, &making->asked);
    making->least_s = 1e-3 * (double)spec.train.target.min_time_ms;
    spec.workdir = (struct text){0};
    spec.file_mount_count = 0;
    spec.secret_count = 0;
    return handle_job_request(call, &spec, &making->wanted, error);
}

static int read_request(struct call *call, struct http_request *request, struct making *making,
                        struct error *error)
{
    struct recommend_body *body = &making->body;
    if (json_read(call->arena, http_request_body(request), &body_schema, body, error) < 0 ||
        check_kinds(&body->kinds, error) < 0 ||
        convert_dollars(body, making->micro_per_usd, error) < 0 || check_limits(body, error) < 0 ||
        read_job(call, making, error) < 0)
        return -1;
    making->request.own = (struct recommendation_limits){
        .max_total_micro = making->wanted.max_total_micro, .max_run_ms = making->wanted.max_run_ms};
    making->request.rule = (enum recommend_rule)body->rule;
    making->request.share_milli =
        body->share_milli > 0 ? (uint32_t)body->share_milli : RECOMMEND_SHARE_DEFAULT;
    making->request.wish = (struct wish){.kind = (enum wish_kind)body->wish,
                                         .budget_micro_per_hour = body->budget_micro_per_hour,
                                         .budget_micro = body->budget_micro,
                                         .deadline_s = body->deadline_s,
                                         .worker_max = (uint32_t)body->worker_max};
    return 0;
}

/* ---- What runs showed ------------------------------------------------------------------------ */

/* Eight of ten lie within the range of a prediction. */
static double deviation_of(const struct prediction_range *range)
{
    return range->low > 0 && range->high > range->low
               ? log((double)range->high / (double)range->low) / (2 * 1.2816)
               : 0.1;
}

static int learn(const struct call *call, struct making *making, struct error *error)
{
    const struct job_signature *signature = &making->asked.signature;
    struct recommendation_request *request = &making->request;
    struct prediction_outcomes outcomes;
    struct profiles_learnt learnt;
    if (profiles_learn(call->server, call->arena, call->caller.account, signature, &learnt, error) <
            0 ||
        profiles_outcomes(call->server, call->arena, call->caller.account, signature->task,
                          &outcomes, error) < 0)
        return -1;
    struct observation *observations =
        arena_alloc(call->arena, (learnt.count + 1) * sizeof(*observations));
    for (size_t i = 0; i < learnt.count; i++)
        profile_observe(learnt.runs[i], &observations[i]);
    request->observations = observations;
    request->observation_count = learnt.count;
    for (size_t i = outcomes.count; i-- > 0;) /* the newest counts most */
        predict_error_add(&request->errors, 1e-3 * (double)outcomes.items[i].told.time_ms.expected,
                          deviation_of(&outcomes.items[i].told.time_ms),
                          1e-3 * (double)outcomes.items[i].time_ms);
    profile_asks(&making->asked, learnt.runs, learnt.count, &request->job,
                 &request->is_target_known);
    request->least_s = making->least_s;
    /* All epochs end it, whether or not that was so long. */
    if (request->job.target_loss > 0)
        request->job.least_s = making->least_s;
    return 0;
}

/* ---- What is offered ------------------------------------------------------------------------- */

static void note_offered(void *context, const struct core_offered *offered)
{
    market_kinds_add(context, offered);
}

static int look_at_offers(struct engine_request *request, const struct core *core,
                          struct store_batch *batch, struct error *error)
{
    (void)batch;
    (void)error;
    struct making *making = ((struct call *)request)->context;
    core_each_offered(core, &making->wanted, note_offered, &making->kinds);
    return 0;
}

static int refuse_type(const char *field, struct text wanted, const struct nearest *nearest,
                       struct error *error)
{
    char hint[NEAREST_HINT_SIZE];
    return error_set(error, ERROR_INVALID, "%s: no type \"" TEXT_FORMAT "\" is on offer%s", field,
                     TEXT_ARGS(wanted), nearest_hint(nearest, hint));
}

/* There may be some later: it is nobody's mistake. */
static int refuse_none(const struct making *making, const char *what, int64_t free_ms,
                       struct error *error)
{
    char time[UNITS_TEXT_SIZE];
    const int64_t left_ms = free_ms - making->now_ms;
    if (free_ms == 0)
        return error_set(error, ERROR_UNAVAILABLE,
                         "%s: souk machines lists what there is, and a job that is submitted waits "
                         "for one that suits%s",
                         what,
                         wants_cloud(&making->body)
                             ? ""
                             : "; souk recommend --from ec2 weighs those of a cloud");
    return error_set(error, ERROR_UNAVAILABLE,
                     "%s: those that would do are busy, the first of them for %s more at most; a "
                     "job that is submitted waits for it",
                     what, units_format_duration(left_ms > 0 ? left_ms : 0, time));
}

/* The user's, or the one with the largest bandwidth, the cheapest of those. */
static int choose_server(struct making *making, struct error *error)
{
    const struct market_kinds *kinds = &making->kinds;
    const struct text wanted = making->body.server_type;
    const struct market_kind *best = NULL;
    struct nearest nearest;
    nearest_init(&nearest, wanted);
    for (size_t i = 0; i < kinds->server_count; i++) {
        const struct market_kind *kind = &kinds->servers[i];
        nearest_offer(&nearest, kind->name);
        const int64_t more =
            best ? market_kind_bandwidth_kbit(kind) - market_kind_bandwidth_kbit(best) : 1;
        if (wanted.size ? text_is(wanted, kind->name)
                        : more > 0 || (more == 0 && market_kind_price_micro(kind) <
                                                        market_kind_price_micro(best)))
            best = kind;
    }
    if (!best && kinds->server_count == 0)
        return refuse_none(making, "no machine on offer now takes a parameter server for this job",
                           kinds->server_free_ms, error);
    if (!best)
        return refuse_type("server_type", wanted, &nearest, error);
    making->request.server =
        (struct server_place){.name = best->name,
                              .price_micro_per_hour = market_kind_price_micro(best),
                              .bytes_per_s = 125.0 * (double)market_kind_bandwidth_kbit(best)};
    return 0;
}

/* What clouds have, from the catalogue beside the market's data or the program's own. */
static int read_catalogue(struct making *making, struct candidate **out_candidates,
                          size_t *out_count, struct error *error)
{
    const struct call *call = making->call;
    const struct recommend_body *body = &making->body;
    *out_count = 0;
    if (!wants_cloud(body))
        return 0;
    if (catalogue_shelf_take(call->server->catalogue, &making->catalogue, error) < 0)
        return error_wrap(error, "the catalogue of clouds");
    making->catalogue_date = text_of(catalogue_date(making->catalogue));
    *out_count = cloud_kinds(
        call->arena, making->catalogue,
        &(struct cloud_kinds_wish){.wants_on_demand = wants_kind(body, CANDIDATE_ON_DEMAND),
                                   .wants_spot = wants_kind(body, CANDIDATE_SPOT),
                                   .wants_functions = wants_kind(body, CANDIDATE_FUNCTION),
                                   .memory_bytes = making->wanted.worker.ram_bytes,
                                   .micro_per_usd = making->micro_per_usd,
                                   .region = making->region},
        out_candidates);
    return 0;
}

/* What the market's lenders would have beside what is free. */
static void choose_busy(struct making *making, double start_s)
{
    const struct market_kinds *kinds = &making->kinds;
    const struct text wanted = making->body.worker_type;
    struct busy_kind *busy =
        arena_alloc(making->call->arena, (kinds->busy_count + 1) * sizeof(*busy));
    size_t count = 0;
    for (size_t i = 0; i < kinds->busy_count; i++) {
        const struct market_kind *kind = &kinds->busy[i];
        if (wanted.size && !text_is(wanted, kind->name))
            continue;
        busy[count] = (struct busy_kind){market_kind_candidate(kind), kind->busy_since_ms,
                                         kind->busy_until_ms};
        busy[count++].candidate.start_s = start_s;
    }
    making->request.busy = busy;
    making->request.busy_count = wants_kind(&making->body, CANDIDATE_MARKET) ? count : 0;
    making->request.now_ms = making->now_ms;
}

static int choose_candidates(struct making *making, struct error *error)
{
    const struct market_kinds *kinds = &making->kinds;
    const struct text wanted = making->body.worker_type;
    const size_t lenders = wants_kind(&making->body, CANDIDATE_MARKET) ? kinds->worker_count : 0;
    const double start_s =
        market_kinds_start_s(making->request.observations, making->request.observation_count,
                             &making->request.job.signature);
    struct candidate *clouds = NULL;
    struct nearest nearest;
    size_t cloud_count = 0, count = 0;
    nearest_init(&nearest, wanted);
    if (read_catalogue(making, &clouds, &cloud_count, error) < 0)
        return -1;
    struct candidate *candidates =
        arena_alloc(making->call->arena, (lenders + cloud_count + 1) * sizeof(*candidates));
    for (size_t i = 0; i < lenders + cloud_count; i++) {
        struct candidate candidate =
            i < lenders ? market_kind_candidate(&kinds->workers[i]) : clouds[i - lenders];
        if (i < lenders)
            candidate.start_s = start_s;
        nearest_offer(&nearest, candidate.name);
        if (!wanted.size || text_is(wanted, candidate.name))
            candidates[count++] = candidate;
    }
    for (size_t i = 0; count == 0 && wanted.size && lenders > 0 && i < kinds->busy_count; i++)
        if (text_is(wanted, kinds->busy[i].name))
            return refuse_none(making, "worker_type: no machine of this type is free now",
                               kinds->busy[i].busy_until_ms, error);
    if (count == 0 && wanted.size && lenders + cloud_count > 0)
        return refuse_type("worker_type", wanted, &nearest, error);
    if (count == 0)
        return refuse_none(making, "no machine on offer now suits this job",
                           wants_kind(&making->body, CANDIDATE_MARKET) ? kinds->worker_free_ms : 0,
                           error);
    choose_busy(making, start_s);
    making->request.candidates = candidates;
    making->request.candidate_count = count;
    return 0;
}

/* ---- The answer ------------------------------------------------------------------------------ */

static void advise_of_catalogue(struct making *making)
{
    if (!making->catalogue)
        return;
    const int64_t age_days = catalogue_age_days(making->catalogue, making->now_ms);
    if (age_days > making->age_days_max)
        recommendation_advise(
            &making->made, "catalogue-old",
            arena_format(making->call->arena,
                         "cloud prices are of %s, %" PRId64
                         " days old: the market's operator renews them with \"souk cloud catalog "
                         "update\"",
                         catalogue_date(making->catalogue), age_days));
}

static void work(struct background_task *task)
{
    struct making *making = (struct making *)task;
    struct arena *arena = making->call->arena;
    making->result = choose_candidates(making, &making->error);
    if (making->result == 0)
        making->result =
            recommendation_make(arena, &making->request, &making->made, &making->error);
    if (making->result == 0)
        advise_of_catalogue(making);
}

static void send_made(struct making *making, struct http_request *request)
{
    struct view_answer answer;
    view_answer_begin(&answer);
    recommendation_write(&answer.writer,
                         &(struct recommendation_view){.request = &making->request,
                                                       .made = &making->made,
                                                       .signature = &making->asked.signature,
                                                       .catalogue_date = making->catalogue_date,
                                                       .micro_per_usd = making->micro_per_usd});
    view_answer_send(&answer, request, 200);
}

static void done(struct background_task *task)
{
    struct making *making = (struct making *)task;
    struct call *call = making->call;
    struct http_request *request = call_http(call);
    if (request && task->is_dropped)
        http_reply_problem(request, 503, "unavailable", "the market is stopping: try again later");
    else if (request && making->result < 0)
        http_reply_error(request, &making->error);
    else if (request)
        send_made(making, request);
    catalogue_free(making->catalogue);
    call_free(call);
}

static void offers_seen(struct call *call, struct http_request *request)
{
    struct making *making = call->context;
    struct error error;
    making->task = (struct background_task){.work = work, .done = done};
    /* What a run showed that ended before this was asked for is on disk by now: the core did one
     * after the other. */
    if (learn(call, making, &error) < 0 || choose_server(making, &error) < 0 ||
        background_submit(call->server->background, &making->task, &error) < 0) {
        http_reply_error(request, &error);
        call_free(call);
    }
}

void handle_recommendation_create(struct http_request *request, void *context)
{
    AUTO(call) struct call *call = call_new(context, request);
    struct making *making = arena_alloc(call->arena, sizeof(*making));
    struct error error;
    *making =
        (struct making){.call = call,
                        .now_ms = clock_utc_ms(call->server->clock),
                        .micro_per_usd = cloud_credits_micro(call->server->cloud, 1000000),
                        .age_days_max = cloud_catalogue_age_days_max(call->server->cloud),
                        .region = arena_copy_text(call->arena, cloud_region(call->server->cloud))};
    if (read_request(call, request, making, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    call->context = making;
    call_look_take(TAKE(call), look_at_offers, offers_seen);
}
