#include "server/cloud.h"

#include "base/assert.h"
#include "base/log.h"
#include "net/address.h"
#include "server/cloud_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

_Static_assert((int)KEYS_HASH_SIZE == (int)FLEET_KEY_SIZE, "a call's hash is an order's key");

enum { TICK_MS = 1000, STOP_S = 20, STEP_MS = 100, LOOK_MS = 1000 };

static int64_t now_ms(const struct cloud *cloud)
{
    return clock_utc_ms(cloud->server->clock);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static bool is_stopped(void *context)
{
    struct cloud *cloud = context;
    pthread_mutex_lock(&cloud->mutex);
    const bool is_over = cloud->is_stopping && cloud->stop_ns &&
                         clock_monotonic_ns(cloud->server->clock) > cloud->stop_ns;
    pthread_mutex_unlock(&cloud->mutex);
    return is_over;
}

static const char *endpoint_of(struct cloud *cloud)
{
    struct cloud_config *config = &cloud->config;
    if (config->endpoint_url.size)
        return arena_copy_string(cloud->arena, config->endpoint_url);
    /* AWS_ENDPOINT_URL */
    return config->credentials.endpoint_url[0] ? config->credentials.endpoint_url : NULL;
}

int cloud_open(struct server *server, struct cloud **out_cloud, struct error *error)
{
    struct cloud *cloud = calloc(1, sizeof(*cloud));
    ASSERT(cloud);
    cloud->server = server;
    cloud->arena = arena_new(0);
    pthread_mutex_init(&cloud->mutex, NULL);
    pthread_cond_init(&cloud->changed, NULL);
    if (cloud_config_read(cloud->arena, server->options.cloud_file, &cloud->config, error) < 0) {
        cloud_free(cloud);
        return -1;
    }
    cloud->seats = calloc(FLEET_MEMBERS_MAX, sizeof(*cloud->seats));
    ASSERT(cloud->seats);
    snprintf(cloud->orders_path, sizeof(cloud->orders_path), "%s/cloud-orders.json",
             server->options.data_dir);
    buffer_init(&cloud->saved, FLEET_SAVED_MAX);
    *out_cloud = cloud;
    return 0;
}

static void tick(void *context);

/* Instances somewhere else cannot reach this machine's own address. */
static int check_reachable(const struct cloud *cloud, const char *endpoint, struct error *error)
{
    const struct text url = text_of(cloud->server->url);
    const bool is_local = text_starts_with(url, TEXT("http://127.")) ||
                          text_starts_with(url, TEXT("http://localhost")) ||
                          text_starts_with(url, TEXT("http://[::1]"));
    if (is_local && !(endpoint && text_starts_with(text_of(endpoint), TEXT("http://"))))
        return error_set(error, ERROR_INVALID,
                         "--cloud: instances cannot reach this market at %.100s: give --public-url "
                         "and --link-address",
                         cloud->server->url);
    return 0;
}

int cloud_start(struct cloud *cloud, struct error *error)
{
    struct server *server = cloud->server;
    const char *endpoint = endpoint_of(cloud);
    if (check_reachable(cloud, endpoint, error) < 0)
        return -1;
    snprintf(cloud->market, sizeof(cloud->market), "%.16s", keys_fingerprint(server->keys));
    cloud->ec2 = ec2_new(&(struct ec2_options){.credentials = &cloud->config.credentials,
                                               .endpoint_url = endpoint,
                                               .market = cloud->market,
                                               .is_stopped = is_stopped,
                                               .context = cloud});
    remote_credentials_wipe(&cloud->config.credentials); /* it has its own copy */
    cloud->timer = loop_timer_new(server->loop, tick, cloud);
    loop_timer_start(cloud->timer, 0);
    log_event(LOG_INFO, "cloud_started", "region=" TEXT_FORMAT " market=%s",
              TEXT_ARGS(cloud->config.region), cloud->market);
    return cloud_thread_start(cloud, error);
}

void cloud_free(struct cloud *cloud)
{
    if (!cloud)
        return;
    cloud_thread_stop(cloud);
    ec2_free(cloud->ec2);
    fleet_free(cloud->fleet);
    buffer_done(&cloud->saved);
    if (cloud->seats)
        explicit_bzero(cloud->seats, FLEET_MEMBERS_MAX * sizeof(*cloud->seats));
    free(cloud->seats);
    remote_credentials_wipe(&cloud->config.credentials);
    pthread_cond_destroy(&cloud->changed);
    pthread_mutex_destroy(&cloud->mutex);
    arena_free(cloud->arena);
    free(cloud);
}

/* ---- What came of an action ------------------------------------------------------------------ */

static void take_list(struct cloud *cloud, struct cloud_task *task)
{
    const size_t count = task->listed.size / sizeof(struct ec2_instance);
    const struct ec2_instance *found = (const struct ec2_instance *)(const void *)task->listed.data;
    struct fleet_listed *listed = calloc(count + 1, sizeof(*listed));
    ASSERT(listed);
    for (size_t i = 0; i < count; i++)
        listed[i] = found[i].listed;
    const uint64_t before = fleet_stray_count(cloud->fleet);
    fleet_listed(cloud->fleet, &task->action, listed, count, now_ms(cloud));
    if (fleet_stray_count(cloud->fleet) > before)
        log_event(LOG_WARN, "cloud_strays", "count=%" PRIu64,
                  fleet_stray_count(cloud->fleet) - before);
    free(listed);
}

static void log_failure(struct cloud *cloud, const struct cloud_task *task)
{
    static const char *const kinds[] = {"list", "launch", "end"};
    const bool is_list = task->action.kind == FLEET_LIST;
    const bool is_repeated = is_list && cloud->problem.code != ERROR_NONE;
    if (is_list)
        cloud->problem = task->error;
    log_event(is_repeated ? LOG_DEBUG : LOG_WARN, "cloud_failed",
              "action=%s member=%" PRIu64 " type=%s zone=%s error=\"%s\"", kinds[task->action.kind],
              task->action.member, task->action.candidate.type, task->action.candidate.zone,
              task->error.message);
}

void cloud_task_take(struct cloud *cloud, struct cloud_task *task)
{
    if (!task->is_done) {
        log_failure(cloud, task);
        fleet_failed(cloud->fleet, &task->action, task->failure, task->error.message,
                     now_ms(cloud));
        return;
    }
    switch (task->action.kind) {
    case FLEET_LIST:
        cloud->problem = (struct error){0};
        take_list(cloud, task);
        break;
    case FLEET_LAUNCH:
        log_event(LOG_INFO, "cloud_launched",
                  "member=%" PRIu64 " instance=%s type=%s zone=%s minutes=%" PRId64,
                  task->action.member, task->instance.listed.instance, task->action.candidate.type,
                  task->action.candidate.zone, task->action.life_minutes);
        fleet_launched(cloud->fleet, &task->action, task->instance.listed.instance, now_ms(cloud));
        break;
    case FLEET_END:
        log_event(LOG_INFO, "cloud_ended", "member=%" PRIu64 " instance=%s", task->action.member,
                  task->action.instance);
        fleet_ended(cloud->fleet, &task->action, now_ms(cloud));
        break;
    }
}

void cloud_task_done(void *context)
{
    struct cloud_task *task = context;
    struct cloud *cloud = task->cloud;
    cloud->is_busy = false;
    cloud_task_take(cloud, task);
    cloud_task_free(task);
    if (cloud->has_thread)
        tick(cloud);
}

/* ---- What is next ---------------------------------------------------------------------------- */

struct bill {
    struct engine_request request;
    char text[LEDGER_MEMO_SIZE];
};

/* On the core thread: there may be no loop any more. */
static void bill_posted(struct engine_request *request, const struct error *error)
{
    struct bill *bill = (struct bill *)request;
    if (error)
        log_event(LOG_WARN, "cloud_bill_refused", "bill=\"%s\" usd_micro=%" PRId64 " error=\"%s\"",
                  bill->text, request->command.bill_cost.usd_micro, error->message);
    free(bill);
}

static void post_bill(struct cloud *cloud, const struct fleet_cost *cost)
{
    struct bill *bill = calloc(1, sizeof(*bill));
    struct error error;
    ASSERT(bill);
    snprintf(bill->text, sizeof(bill->text), "%.32s %.28s", cost->instance, cost->type);
    bill->request.on_done = bill_posted;
    bill->request.has_command = true;
    bill->request.command =
        (struct command){.kind = COMMAND_BILL_COST,
                         .bill_cost = {.account = ACCOUNT_OPERATOR,
                                       .machine = cost->machine,
                                       .usd_micro = cost->usd_micro,
                                       .amount_micro = cloud_credits_micro(cloud, cost->usd_micro),
                                       .bill = text_of(bill->text)}};
    if (engine_submit(cloud->server->engine, &bill->request, true, &error) < 0)
        bill_posted(&bill->request, &error);
}

static void take_costs(struct cloud *cloud)
{
    struct fleet_cost cost;
    while (fleet_take_cost(cloud->fleet, now_ms(cloud), &cost)) {
        log_event(LOG_INFO, "cloud_cost", "instance=%s type=%s usd_micro=%" PRId64, cost.instance,
                  cost.type, cost.usd_micro);
        cloud_orders_keep(cloud); /* it is in no bill twice */
        if (cloud->server->settings.economy != ECONOMY_KARMA)
            post_bill(cloud, &cost);
    }
}

static void ready(struct cloud_task *task, const struct error *error)
{
    struct cloud *cloud = task->cloud;
    if (!error && cloud->has_thread) {
        cloud_thread_give(cloud, task);
        return;
    }
    /* The cloud was not asked. */
    task->failure = error && error->code != ERROR_UNAVAILABLE ? FLEET_REFUSED : FLEET_THROTTLED;
    error_fill(&task->error, ERROR_UNAVAILABLE, "%s", error ? error->message : "the market stops");
    loop_post(cloud->server->loop, cloud_task_done, task);
}

static void begin(struct cloud *cloud, const struct fleet_action *action)
{
    struct cloud_task *task = cloud_task_new(cloud, action);
    struct error error;
    cloud->is_busy = true;
    if (action->kind != FLEET_LAUNCH) {
        cloud_orders_keep(cloud); /* what costs is ended all the same */
        cloud_thread_give(cloud, task);
    } else if (cloud_orders_save(cloud, &error) < 0) {
        error.code = ERROR_UNAVAILABLE;
        ready(task, &error);
    } else {
        cloud_seat_prepare(task, ready);
    }
}

static void tick(void *context)
{
    struct cloud *cloud = context;
    struct fleet_action action;
    if (!cloud->is_busy && fleet_next(cloud->fleet, now_ms(cloud), &action))
        begin(cloud, &action);
    take_costs(cloud);
    cloud_seats_sweep(cloud);
    cloud_orders_keep(cloud);
    loop_timer_start(cloud->timer, TICK_MS);
}

/* Requests are answered until the very end. */
static void wake(struct cloud *cloud)
{
    if (cloud->timer)
        loop_timer_start(cloud->timer, 0);
}

/* ---- Orders ---------------------------------------------------------------------------------- */

int cloud_find_type(const struct cloud *cloud, struct text name, struct catalogue **out_catalogue,
                    const struct catalogue_type **out_type, struct error *error)
{
    char region[FLEET_NAME_SIZE];
    if (text_copy(cloud->config.region, region, sizeof(region), error) < 0 ||
        (!*out_catalogue &&
         catalogue_shelf_take(cloud->server->catalogue, out_catalogue, error) < 0))
        return -1;
    return catalogue_find(*out_catalogue, name, region, out_type, error);
}

static int add_type(const struct cloud *cloud, struct catalogue **catalogue, struct text name,
                    const struct cloud_wish *wish, struct fleet_candidate *candidates,
                    size_t *count, struct error *error)
{
    const struct text *zones = cloud->config.zones.items;
    const size_t zone_count = cloud->config.zones.count;
    const struct catalogue_type *type;
    if (cloud_find_type(cloud, name, catalogue, &type, error) < 0)
        return -1;
    if (!cloud->config.images[type->architecture].size)
        return error_set(error, ERROR_INVALID,
                         "\"%s\" is an %s machine, and the market has no image for it: \"%s\" in "
                         "the cloud's file",
                         type->name, cloud_architecture_name(type->architecture),
                         type->architecture == CLOUD_ARM64 ? "image_arm64" : "image");
    const int64_t spot = type->spot_usd_micro_per_hour_max;
    const int64_t price = wish->is_spot && spot ? spot : type->usd_micro_per_hour;
    if (!price)
        return error_set(error, ERROR_INVALID, "the catalogue does not know what \"%s\" costs",
                         type->name);
    for (size_t i = 0; i < (zone_count ? zone_count : 1) && *count < FLEET_CANDIDATES_MAX; i++) {
        struct fleet_candidate *candidate = &candidates[(*count)++];
        candidate->usd_micro_per_hour = price;
        if (text_copy(text_of(type->name), candidate->type, FLEET_NAME_SIZE, error) < 0 ||
            text_copy(zone_count ? zones[i] : TEXT(""), candidate->zone, FLEET_NAME_SIZE, error) <
                0)
            return -1;
    }
    return 0;
}

static int make_wish(const struct cloud *cloud, const struct cloud_wish *wish,
                     struct fleet_candidate candidates[FLEET_CANDIDATES_MAX],
                     struct fleet_wish *out_wish, struct error *error)
{
    AUTO(catalogue) struct catalogue *catalogue = NULL;
    size_t count = 0;
    for (size_t i = 0; i < wish->type_count; i++)
        if (add_type(cloud, &catalogue, wish->types[i], wish, candidates, &count, error) < 0)
            return -1;
    *out_wish = (struct fleet_wish){
        .count = wish->count,
        .is_spot = wish->is_spot,
        .usd_micro_per_hour_max = wish->usd_micro_per_hour_max,
        .usd_micro_max = wish->usd_micro_max,
        .job = wish->job,
        .account = wish->account,
        .candidates = candidates,
        .candidate_count = count,
    };
    if (wish->key) {
        memcpy(out_wish->key, wish->key, FLEET_KEY_SIZE);
        memcpy(out_wish->request, wish->request, FLEET_KEY_SIZE);
    }
    return 0;
}

int cloud_check(const struct cloud *cloud, const struct cloud_wish *wish,
                int64_t *out_usd_micro_per_hour, struct error *error)
{
    struct fleet_candidate candidates[FLEET_CANDIDATES_MAX] = {0};
    struct fleet_wish fleet_wish;
    if (make_wish(cloud, wish, candidates, &fleet_wish, error) < 0 ||
        fleet_check(cloud->fleet, &fleet_wish, error) < 0)
        return -1;
    *out_usd_micro_per_hour = candidates[0].usd_micro_per_hour * wish->count;
    return 0;
}

int cloud_order(struct cloud *cloud, const struct cloud_wish *wish, uint64_t *out_order,
                struct error *error)
{
    struct fleet_candidate candidates[FLEET_CANDIDATES_MAX] = {0};
    struct fleet_wish fleet_wish;
    const int64_t made_ms = now_ms(cloud);
    if (!cloud->has_thread)
        return error_set(error, ERROR_UNAVAILABLE, "the market is stopping");
    if (make_wish(cloud, wish, candidates, &fleet_wish, error) < 0 ||
        fleet_order(cloud->fleet, &fleet_wish, made_ms, out_order, error) < 0)
        return -1;
    const bool is_new = fleet_find_order(cloud->fleet, *out_order)->made_ms == made_ms;
    if (is_new && cloud_orders_save(cloud, error) < 0) {
        fleet_take_back(cloud->fleet, *out_order);
        return error_wrap(error, "the order is not kept");
    }
    log_event(LOG_INFO, "cloud_ordered", "order=%" PRIu64 " count=%u type=%s job=%" PRIu64,
              *out_order, wish->count, candidates[0].type, wish->job);
    wake(cloud);
    return 0;
}

int cloud_stop_order(struct cloud *cloud, uint64_t order, struct error *error)
{
    wake(cloud);
    if (fleet_stop(cloud->fleet, order, "the operator stopped it", now_ms(cloud), error) < 0)
        return -1;
    return cloud_orders_save(cloud, error);
}

int cloud_stop_all(struct cloud *cloud, struct error *error)
{
    wake(cloud);
    fleet_stop_all(cloud->fleet, "the operator stopped it", now_ms(cloud));
    return cloud_orders_save(cloud, error);
}

void cloud_sweep(struct cloud *cloud)
{
    wake(cloud);
    fleet_sweep(cloud->fleet);
}

/* ---- The end --------------------------------------------------------------------------------- */

/* Strays that a list had count like its own. */
static bool has_living(const struct cloud *cloud)
{
    if (fleet_strays_left(cloud->fleet))
        return true;
    for (size_t i = 0; i < fleet_member_count(cloud->fleet); i++)
        if (fleet_member_lives(fleet_member_at(cloud->fleet, i)))
            return true;
    return false;
}

/* One that may have been launched: only the cloud's list says how it is called. */
static bool has_nameless(const struct cloud *cloud)
{
    for (size_t i = 0; i < fleet_member_count(cloud->fleet); i++) {
        const struct fleet_member *member = fleet_member_at(cloud->fleet, i);
        if (fleet_member_lives(member) && !member->instance[0])
            return true;
    }
    return false;
}

/* No thread and no loop runs any more: what is left to ask is asked here. */
static void end_rest(struct cloud *cloud)
{
    const struct clock *clock = cloud->server->clock;
    const int64_t until_ns = clock_monotonic_ns(clock) + STOP_S * INT64_C(1000000000);
    int64_t look_ns = 0;
    struct fleet_action action;
    cloud->stop_ns = until_ns;
    while (has_living(cloud) && clock_monotonic_ns(clock) < until_ns) {
        if (has_nameless(cloud) && clock_monotonic_ns(clock) >= look_ns) {
            fleet_sweep(cloud->fleet);
            look_ns = clock_monotonic_ns(clock) + LOOK_MS * INT64_C(1000000);
        }
        if (fleet_next(cloud->fleet, now_ms(cloud), &action)) {
            struct cloud_task *task = cloud_task_new(cloud, &action);
            cloud_task_run(task);
            cloud_task_take(cloud, task);
            cloud_task_free(task);
        } else {
            nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
        }
    }
}

void cloud_stop(struct cloud *cloud, bool ends_instances)
{
    struct error error;
    if (!cloud || !cloud->ec2)
        return;
    cloud_thread_stop(cloud);
    loop_timer_free(TAKE(cloud->timer));
    if (ends_instances)
        fleet_stop_all(cloud->fleet, "the market stops", now_ms(cloud));
    /* What the thread was told last. */
    if (loop_step(cloud->server->loop, 0, &error) < 0)
        log_event(LOG_WARN, "loop_failed", "error=\"%s\"", error.message);
    cloud_orders_keep(cloud);
    if (ends_instances)
        end_rest(cloud);
    take_costs(cloud);
    cloud_seats_sweep(cloud);
    cloud_orders_keep(cloud);
    if (has_living(cloud))
        log_event(LOG_WARN, "cloud_left",
                  "note=\"instances run on: the next start goes on with them, and each ends by "
                  "itself when its part of the budget is used up\"");
}
