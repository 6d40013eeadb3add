/* What an instance's lender enrols with, and on which terms it lends. */
#include "base/assert.h"
#include "base/log.h"
#include "cloud/boot_script.h"
#include "market/machine.h"
#include "server/cloud_internal.h"
#include "server/cloud_kinds.h"
#include "server/job_request.h"

#include <inttypes.h>
#include <stdlib.h>

enum { CODE_MORE_MS = 3600000 }; /* for launches that are asked for again and again */

static struct cloud_seat *find_seat(struct cloud *cloud, uint64_t member)
{
    for (size_t i = 0; i < FLEET_MEMBERS_MAX; i++)
        if (cloud->seats[i].member == member)
            return &cloud->seats[i];
    return NULL;
}

/* ---- What is gone lends no more ---------------------------------------------------------------
 */

struct withdrawal {
    struct engine_request request;
    uint64_t machine;
};

/* Core thread. */
static int find_offer(struct engine_request *request, const struct core *core, struct error *error)
{
    const struct withdrawal *withdrawal = (const struct withdrawal *)request;
    const struct machine *machine = core_machine(core, withdrawal->machine);
    if (!machine || !machine->offer_count)
        return error_set(error, ERROR_NOT_FOUND, "it has no offer any more");
    request->command = (struct command){
        .kind = COMMAND_WITHDRAW_OFFER,
        .withdraw_offer = {.account = ACCOUNT_OPERATOR, .offer = machine->offers[0]->id}};
    return 0;
}

static void withdrawn(struct engine_request *request, const struct error *error)
{
    if (error && error->code != ERROR_NOT_FOUND)
        log_event(LOG_WARN, "cloud_offer_left", "error=\"%s\"", error->message);
    free(request);
}

static void withdraw_offer(struct cloud *cloud, uint64_t machine)
{
    struct withdrawal *withdrawal = calloc(1, sizeof(*withdrawal));
    struct error error;
    ASSERT(withdrawal);
    withdrawal->machine = machine;
    withdrawal->request.has_command = true;
    withdrawal->request.prepare = find_offer;
    withdrawal->request.on_done = withdrawn;
    if (engine_submit(cloud->server->engine, &withdrawal->request, true, &error) < 0)
        withdrawn(&withdrawal->request, &error);
}

void cloud_seats_sweep(struct cloud *cloud)
{
    for (size_t i = 0; i < FLEET_MEMBERS_MAX; i++) {
        struct cloud_seat *seat = &cloud->seats[i];
        const struct fleet_member *member =
            seat->member ? fleet_find_member(cloud->fleet, seat->member) : NULL;
        if (!seat->member || (member && member->state != FLEET_GONE))
            continue;
        if (seat->machine)
            withdraw_offer(cloud, seat->machine);
        explicit_bzero(seat, sizeof(*seat));
    }
}

/* ---- Codes and names --------------------------------------------------------------------------
 */

/* The same after a restart, so that a launch that is asked for again is the same; and in no file.
 */
static void make_code(const struct cloud *cloud, uint64_t member, char out[KEYS_TOKEN_SIZE])
{
    char words[2 * FLEET_NAME_SIZE];
    uint8_t hash[KEYS_HASH_SIZE];
    snprintf(words, sizeof(words), "cloud %s %" PRIu64, fleet_run(cloud->fleet), member);
    token_hash(text_of(words), hash);
    keys_token(cloud->server->keys, "enrol", hash, out);
}

static struct cloud_seat *new_seat(struct cloud *cloud, uint64_t member)
{
    struct cloud_seat *seat = find_seat(cloud, 0);
    ASSERT(seat); /* there are as many as members */
    seat->member = member;
    make_code(cloud, member, seat->code);
    snprintf(seat->name, sizeof(seat->name), "cloud-%.6s-%" PRIu64, fleet_run(cloud->fleet),
             member);
    return seat;
}

static struct cloud_seat *take_seat(struct cloud *cloud, uint64_t member)
{
    struct cloud_seat *seat = find_seat(cloud, member);
    if (seat)
        return seat;
    cloud_seats_sweep(cloud);
    return new_seat(cloud, member);
}

const struct cloud_seat *cloud_seat_adopt(struct cloud *cloud, const struct core *core,
                                          const struct fleet_member *member)
{
    struct cloud_seat *seat = new_seat(cloud, member->id);
    uint8_t hash[KEYS_HASH_SIZE];
    seat->machine = member->machine;
    token_hash(text_of(seat->code), hash);
    seat->is_known = core_code_by_hash(core, hash) != NULL;
    return seat;
}

/* ---- The script ------------------------------------------------------------------------------ */

static int write_script(struct cloud_task *task, const struct cloud_seat *seat, struct error *error)
{
    const struct cloud *cloud = task->cloud;
    const struct server *server = cloud->server;
    const bool is_tls = text_starts_with(text_of(server->url), TEXT("https://"));
    const struct boot_script script = {
        .life_minutes = task->action.life_minutes,
        .package_url = cloud->config.package_url,
        .package_sha256 = cloud->config.package_sha256,
        .server_url = server->url,
        /* Behind a proxy the key is the proxy's. */
        .fingerprint = is_tls && server->is_tls ? keys_fingerprint(server->keys) : NULL,
        .code = seat->code,
        .name = seat->name,
    };
    buffer_clear(&task->user_data);
    return boot_script_write(&script, &task->user_data, error);
}

static int find_image(struct cloud_task *task, struct error *error)
{
    const struct cloud *cloud = task->cloud;
    AUTO(catalogue) struct catalogue *catalogue = NULL;
    const struct catalogue_type *type;
    if (cloud_find_type(cloud, text_of(task->action.candidate.type), &catalogue, &type, error) < 0)
        return -1;
    return text_copy(cloud->config.images[type->architecture], task->image, sizeof(task->image),
                     error);
}

struct seat_request {
    struct engine_request request;
    struct cloud_task *task;
    cloud_ready *ready;
};

static void code_added(struct engine_request *engine_request, const struct error *error)
{
    struct seat_request *request = (struct seat_request *)engine_request;
    struct cloud_task *task = request->task;
    struct cloud_seat *seat = find_seat(task->cloud, task->action.member);
    if (seat && !error)
        seat->is_known = true;
    request->ready(task, error);
    free(request);
}

static void ask_for_code(struct cloud_task *task, const struct cloud_seat *seat, cloud_ready *ready)
{
    struct server *server = task->cloud->server;
    struct seat_request *request = calloc(1, sizeof(*request));
    ASSERT(request);
    request->task = task;
    request->ready = ready;
    request->request.loop = server->loop;
    request->request.on_done = code_added;
    request->request.has_command = true;
    request->request.command = (struct command){
        .kind = COMMAND_ADD_CODE,
        .add_code = {.kind = CODE_KIND_ENROL,
                     .account = ACCOUNT_OPERATOR,
                     .expires_ms =
                         clock_utc_ms(server->clock) + task->cloud->config.boot_ms + CODE_MORE_MS},
    };
    token_hash(text_of(seat->code), request->request.command.add_code.hash);
    struct error error;
    if (engine_submit(server->engine, &request->request, true, &error) < 0)
        code_added(&request->request, &error);
}

void cloud_seat_prepare(struct cloud_task *task, cloud_ready *ready)
{
    struct cloud *cloud = task->cloud;
    struct error error;
    const struct cloud_seat *seat = take_seat(cloud, task->action.member);
    const struct fleet_member *member = fleet_find_member(cloud->fleet, task->action.member);
    const struct fleet_order *order = fleet_find_order(cloud->fleet, member->order);
    task->order = order->id;
    task->job = order->wish.job;
    snprintf(task->token, sizeof(task->token), "souk-%.16s-%" PRIu64 "-%u", fleet_run(cloud->fleet),
             task->action.member, task->action.attempt);
    if (find_image(task, &error) < 0 || write_script(task, seat, &error) < 0)
        ready(task, &error);
    else if (seat->is_known)
        ready(task, NULL);
    else
        ask_for_code(task, seat, ready);
}

/* ---- Enrolling ------------------------------------------------------------------------------- */

int64_t cloud_credits_micro(const struct cloud *cloud, int64_t usd_micro)
{
    const int64_t micro_per_usd = cloud && cloud->config.credits_micro_per_usd
                                      ? cloud->config.credits_micro_per_usd
                                      : cloud_kinds_micro_per_usd();
    return cloud_kinds_credits_micro(usd_micro, micro_per_usd);
}

int64_t cloud_catalogue_age_days_max(const struct cloud *cloud)
{
    return cloud ? cloud->config.catalogue_age_days_max : CATALOGUE_AGE_DAYS_DEFAULT;
}

struct text cloud_region(const struct cloud *cloud)
{
    return cloud ? cloud->config.region : TEXT("");
}

/* All of it lent comes to what it costs: by its GPUs where it has some, else by its cores. */
static struct price_vector minimum_of(int64_t cost_micro, const struct probe *probe,
                                      const struct offer_terms *terms)
{
    const struct price_units units = price_units(terms->resources, probe->speed_weight_milli);
    struct price_vector minimum = {0};
    if (units.gpu_milli > 0)
        minimum.gpu_micro = (cost_micro * 1000 + units.gpu_milli - 1) / units.gpu_milli;
    else if (units.core_milli > 0)
        minimum.core_micro = (cost_micro * 1000 + units.core_milli - 1) / units.core_milli;
    return minimum;
}

static void lend_to(struct arena *arena, uint64_t account, struct offer_terms *terms)
{
    struct offer_account *only = arena_alloc(arena, sizeof(*only));
    only->account = account;
    terms->audience = OFFER_AUDIENCE_ACCOUNTS;
    terms->accounts = (struct json_array){only, 1};
}

uint64_t cloud_take_code(struct cloud *cloud, struct arena *arena, struct text code,
                         const struct probe *probe, struct offer_terms *terms)
{
    for (size_t i = 0; cloud && i < FLEET_MEMBERS_MAX; i++) {
        const struct cloud_seat *seat = &cloud->seats[i];
        if (!seat->member || !text_equal_secret(code, text_of(seat->code)))
            continue;
        const struct fleet_member *member = fleet_find_member(cloud->fleet, seat->member);
        if (!member || member->state == FLEET_GONE)
            return 0;
        const struct fleet_order *order = fleet_find_order(cloud->fleet, member->order);
        const int64_t usd_micro = fleet_member_candidate(cloud->fleet, member)->usd_micro_per_hour;
        const int64_t cost_micro = cloud_credits_micro(cloud, usd_micro);
        terms->minimum = minimum_of(
            cost_micro < PRICE_PER_HOUR_MAX ? cost_micro : PRICE_PER_HOUR_MAX, probe, terms);
        terms->labels = TEXT(JOB_REQUEST_INFRA_PREFIX "aws");
        if (order->wish.account)
            lend_to(arena, order->wish.account, terms);
        return member->id;
    }
    return 0;
}

void cloud_enrolled(struct cloud *cloud, uint64_t member, uint64_t machine)
{
    struct cloud_seat *seat = find_seat(cloud, member);
    if (seat)
        seat->machine = machine;
    log_event(LOG_INFO, "cloud_enrolled", "member=%" PRIu64 " machine=%" PRIu64, member, machine);
    fleet_enrolled(cloud->fleet, member, machine, clock_utc_ms(cloud->server->clock));
}
